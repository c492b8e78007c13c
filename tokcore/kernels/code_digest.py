"""A digest of all that the compiled code of a kernel depends on.

A kernel is compiled with the kernels that it calls and the values of the globals that it reads. The
digest follows these names from function to function, through all files: bytecode, constants, options,
the typing functions of intrinsics, the fields of named tuples, and the bodies of families for the
named tuples that can occur. Comments, line numbers and the text of docstrings do not count.

It covers more than is compiled: a global counts also if a kernel has an attribute of its name. What
comes with Python, numba, llvmlite and NumPy is covered by their versions. What a kernel reaches in
another way, such as a function that numba knows by `overload` alone, is not seen.
"""

import enum
import functools
import hashlib
import platform
import re
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import llvmlite
import numba
import numba.core.types
import numpy as np

_VERSIONED = {*sys.stdlib_module_names, 'numba', 'llvmlite', 'numpy'}

_PLAIN = {type(None), bool, int, float, str, bytes}

_OPTIONS = ('targetoptions', 'locals', '_prefer_literal')
"""Attributes of numba's objects for functions."""

_ADDRESS = re.compile(' at 0x[0-9a-fA-F]+')

# What a word is made from has no such character: names, numbers and the results of `repr`.
_SEPARATOR = '\0'


def code_digest(functions: Sequence[Any], argument_types: Any) -> str:
    """Returns a digest, 16 hexadecimal digits, of what numba compiles for some argument types.

    Args:
        functions: the kernel, and others on which its code depends.
        argument_types: a tuple of numba's types.
    """
    digest = hashlib.sha256(_SEPARATOR.join([*_versions(), repr(argument_types)]).encode())
    parts = [*dict.fromkeys([*functions, *_named_tuples(argument_types)])]
    numbers = {id(part): number for number, part in enumerate(parts)}
    families: list[Any] = []
    states: list[type] = []
    for part in parts:  # which grows
        part_digest, reached = _digest_part(part)
        bodies = []
        if isinstance(part, type):
            states.append(part)
            bodies = [family.bodies[part] for family in families if part in family.bodies]
        elif hasattr(part, 'bodies'):
            families.append(part)
            bodies = [part.bodies[state] for state in states if state in part.bodies]
        for other in [*reached, *bodies]:
            if id(other) not in numbers:
                numbers[id(other)] = len(parts)
                parts.append(other)
            part_digest += numbers[id(other)].to_bytes(4, 'little')
        digest.update(part_digest)
    return digest.hexdigest()[:16]


def _versions() -> list[str]:
    of_python = [platform.python_implementation(), platform.python_version(), platform.machine()]
    return [*of_python, numba.__version__, llvmlite.__version__, np.__version__]


def _named_tuples(key: Any) -> Iterator[type]:
    """The classes of the named tuples among the types of arguments, nested ones too."""
    if isinstance(key, numba.core.types.Type):
        key = key.key
    if isinstance(key, tuple):
        for part in key:
            yield from _named_tuples(part)
    elif isinstance(key, type) and hasattr(key, '_fields'):
        yield key


@functools.cache
def _digest_part(part: Any) -> tuple[bytes, list[Any]]:
    """Returns the digest of a function or class by itself, and the others that it names.

    Once in a process: as numba does, it takes the globals of kernels for constants.
    """
    reached: list[Any] = []
    words = _words_of_class if isinstance(part, type) else _words_of_function
    text = _SEPARATOR.join([part.__module__ or '', part.__qualname__, *words(part, reached)])
    return hashlib.sha256(text.encode('utf-8', 'surrogatepass')).digest(), reached


def _words_of_class(part: type, reached: list[Any]) -> Iterator[str]:
    yield repr(getattr(part, '_fields', None))
    yield from _words(getattr(part, '_field_defaults', None), (), reached)
    if issubclass(part, enum.Enum):
        yield repr([*part])


def _words_of_function(part: Any, reached: list[Any]) -> Iterator[str]:
    if hasattr(part, 'bodies'):
        # Its bodies depend on the types of arguments; `code_digest` adds them.
        yield part.argument
        return
    for option in _OPTIONS:
        yield from _words(getattr(part, option, None), (), reached)
    yield from _words(getattr(part, '__wrapped__', None), (), reached)
    if isinstance(part, types.FunctionType):
        yield from _words_of_code(part.__code__, part.__globals__, part.__doc__, reached)
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        names = part.__code__.co_names
        for value in (part.__defaults__, part.__kwdefaults__, cells):
            yield from _words(value, names, reached)


def _words_of_code(
    code: types.CodeType, scope: dict[str, Any], docstring: str | None, reached: list[Any]
) -> Iterator[str]:
    yield repr(
        (
            *(code.co_code, getattr(code, 'co_exceptiontable', b''), code.co_flags),
            *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars),
        )
    )
    for index, constant in enumerate(code.co_consts):
        if isinstance(constant, types.CodeType):
            yield from _words_of_code(constant, scope, None, reached)
        elif index or docstring is None or constant != docstring:
            yield from _words(constant, (), reached)
    for name in code.co_names:
        if name in scope:
            yield name
            yield from _words(scope[name], code.co_names, reached)


def _words(value: Any, names: Collection[str], reached: list[Any]) -> Iterator[str]:
    """Describes a value; appends the functions and classes in it to `reached`.

    Args:
        value: of a global, a constant or an option.
        names: those of the attributes that may be read from it.
        reached: is appended to.
    """
    if type(value) in _PLAIN:
        yield f'{type(value).__name__} {value!r}'
    elif isinstance(value, types.ModuleType):
        yield value.__name__
        if not _is_versioned(value.__name__):
            for name in names:
                if name in vars(value):
                    yield name
                    others = [other for other in names if other != name]
                    yield from _words(vars(value)[name], others, reached)
    elif hasattr(value, '__qualname__'):
        yield f'{value.__module__}.{value.__qualname__}'
        if not _is_versioned(value.__module__ or ''):
            reached.append(value)
    else:
        yield from _words(type(value), (), reached)
        yield from _words_of_content(value, names, reached)


def _words_of_content(value: Any, names: Collection[str], reached: list[Any]) -> Iterator[str]:
    def each(values: Iterable[Any]) -> Iterator[str]:
        for one in values:
            yield from _words(one, names, reached)

    if isinstance(value, (np.ndarray, np.void)):
        array = np.asarray(value)
        yield repr((array.dtype, array.shape, array.strides))
        yield hashlib.sha256(array.tobytes()).hexdigest()
    elif isinstance(value, (tuple, list)):
        yield str(len(value))
        yield from each(value)
    elif isinstance(value, (set, frozenset)):
        # Their order depends on the seed of hashes.
        yield str(len(value))
        yield from sorted(repr([*each([one])]) for one in value)
    elif isinstance(value, dict):
        yield str(len(value))
        yield from each(one for item in value.items() for one in item)
    else:
        yield _ADDRESS.sub('', repr(value))


def _is_versioned(module: str) -> bool:
    return module.partition('.')[0] in _VERSIONED
