"""Kernels can be held in one's head: few arguments, and no more lines than a screen has."""

import ast
import pathlib

import tokcore

MOST_ARGUMENTS = 8
MOST_LINES = 60

EXCEPTIONS: dict[str, str] = {}
"""Kernels that are over a limit, `path:name`, and why; three at most."""

PACKAGE = pathlib.Path(tokcore.__file__).parent
_NAMES = ('kernel', 'intrinsic', 'overload', 'register')


def is_compiled(function):
    """Whether a decorator says so: `@kernel`, `@kernel_family(...)`, `@family.register(...)`."""
    return any(
        name in ast.unparse(decorator).split('(')[0]
        for decorator in function.decorator_list
        for name in _NAMES
    )


def kernels():
    """Each kernel's place and its syntax tree, with the plain bodies that intrinsics have."""
    for path in sorted(PACKAGE.rglob('*.py')):
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        plain = {
            argument.id
            for function in functions
            for decorator in function.decorator_list
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == 'intrinsic'
            for argument in decorator.args
        }
        for function in functions:
            if is_compiled(function) or function.name in plain:
                yield f'{path.relative_to(PACKAGE).as_posix()}:{function.name}', function


KERNELS = dict(kernels())


def test_all_sorts_are_found():
    assert {
        'compiled/atomics.py:exchange_if',
        'compiled/atomics.py:_exchange_if',
        'counts/row_counting.py:count_rows',
        'encoding/encoding_kernels.py:encode_rows',
        'text/pre_tokenizer.py:scan_tokens',
        'text/t2t_scanning.py:scan_alphanumeric_runs',
    } <= KERNELS.keys()
    assert len(KERNELS) > 100


def test_none_takes_too_many_arguments():
    counted = {
        place: len([*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs])
        for place, each in KERNELS.items()
    }
    over = {place: count for place, count in counted.items() if count > MOST_ARGUMENTS}
    assert not {place: over[place] for place in over.keys() - EXCEPTIONS.keys()}


def test_none_is_longer_than_a_screen():
    lines = {place: each.end_lineno - each.lineno + 1 for place, each in KERNELS.items()}
    over = {place: count for place, count in lines.items() if count > MOST_LINES}
    assert not {place: over[place] for place in over.keys() - EXCEPTIONS.keys()}


def test_exceptions_are_few_and_have_a_reason():
    assert len(EXCEPTIONS) <= 3
    assert EXCEPTIONS.keys() <= KERNELS.keys() and all(EXCEPTIONS.values())
