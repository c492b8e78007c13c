"""Writes the types of keyword arguments from the declarations of options: `python -m tests.keyword_types`.

A type checker and `help` cannot see options that are declared by formats and schemes; they see these
classes. `tests/unit/test_keyword_types.py` fails when they are not what the declarations say.
"""

import pathlib
import textwrap
import typing
from collections.abc import Iterable

from pipelines.options.commands import known_commands
from pipelines.options.job import path
from pipelines.options.vocabulary import encoding_options, learning_options, token_options
from tokcore.corpus.filters.registry import filter_list
from tokcore.corpus.formats import all_formats
from tokcore.options import (
    ByteSize,
    Choice,
    Declared,
    Kind,
    WholeNumber,
    declared,
    duration,
    output_path,
    vocabulary_path,
    work_path,
)

ROOT = pathlib.Path(__file__).parents[1]

_HEADER = '''"""{about}

Written by `python -m tests.keyword_types` from the declarations of the options; do not edit it.
"""

from __future__ import annotations

{imports}

'''

_PATHS = (path, output_path, vocabulary_path, work_path)
_LEFT_OUT = {'quiet', 'progress', 'print_job', 'dry_run'}
"""What the command does around a job."""


def files() -> dict[pathlib.Path, str]:
    """Returns the text of each file that is generated."""
    formats = all_formats()
    tokcore_classes = [
        (
            'SchemeKeywords',
            'The options of schemes that change the tokens of text.',
            _of([token_options()]),
        ),
        (
            'LearningKeywords',
            'The options of how a vocabulary is learned.',
            _of([learning_options()]),
        ),
        ('EncodingKeywords', 'The options of how a vocabulary encodes.', _of([encoding_options()])),
        ('FormatKeywords', 'The options of the formats of corpora.', _of(formats)),
        (
            'LearnKeywords',
            'Both: the options of a scheme and of its learner.',
            None,
            'SchemeKeywords, LearningKeywords',
        ),
        (
            'EncodeKeywords',
            'Both: the options of a scheme and of its encoder.',
            None,
            'SchemeKeywords, EncodingKeywords',
        ),
    ]
    pipelines_classes = [
        (f'{name.capitalize()}Keywords', f'The options of `tokbeam {name}`.', _of_command(name))
        for name in ('build', 'count', 'vocab', 'encode')
    ]
    return {
        ROOT / 'tokcore/keyword_types.py': _module(
            'The keyword arguments of schemes and formats, for type checkers and `help`.',
            tokcore_classes,
        ),
        ROOT / 'pipelines/keyword_types.py': _module(
            'The keyword arguments of `build`, `count`, `vocab` and `encode`, as the command has them.',
            pipelines_classes,
        ),
    }


_Options = dict[str, tuple[str, str]]
"""By name the type and the help."""


def _of(kinds: Iterable[Kind], prefix: str = '') -> _Options:
    options: dict[str, tuple[list[str], list[str]]] = {}
    for kind in kinds:
        dataclasses = kind.kinds.values() if isinstance(kind, Choice) else [kind]
        for dataclass_ in dataclasses:
            hints = typing.get_type_hints(dataclass_)
            for declaration in declared(dataclass_):
                types, helps = options.setdefault(prefix + declaration.key, ([], []))
                for type_ in _types(declaration, str(hints.get(declaration.field, ''))):
                    types += [type_] if type_ not in types else []
                text = declaration.help.replace('%%', '%')
                helps += [text] if text not in helps else []
    return {name: (_union(types), '; or '.join(helps)) for name, (types, helps) in options.items()}


def _of_command(name: str) -> _Options:
    options: _Options = {}
    for group in known_commands()[name].groups:
        if group.prefix:
            of_files = _of(group.kinds, group.prefix)
            options |= {
                key: (type_, 'as of the training corpus') for key, (type_, _) in of_files.items()
            }
        else:
            options |= _of(group.kinds)
    return {key: value for key, value in options.items() if key not in _LEFT_OUT}


def _types(declaration: Declared, hint: str) -> list[str]:
    option, kind = declaration.option, declaration.option.kind
    if option.many:
        single = 'Path' if kind in _PATHS else 'str'
        return [single, f'Sequence[{single}]']
    optional = ['None'] if declaration.default is None else []
    if kind is None:
        return ['bool', *optional]
    if isinstance(kind, tuple):
        return [f'Literal[{", ".join(map(repr, kind))}]', *optional]
    if isinstance(kind, WholeNumber):
        return ['int', *optional]
    if isinstance(kind, ByteSize):
        return ['int', 'str', *optional]
    if kind in _PATHS:
        return ['Path', *optional]
    if kind is filter_list or 'tuple' in hint or hint == "<class 'object'>":
        return ['str', 'Sequence[object]', *optional]
    if 'RejectionLimit' in hint:
        return ['int', 'str', *optional]
    if 'int' in hint and 'str' not in hint:
        return ['int', 'None']
    if 'float' in hint and kind is not duration:
        return ['float', 'str', *optional]
    return ['str', *optional]


def _union(types: list[str]) -> str:
    literals = [type_ for type_ in types if type_.startswith('Literal')]
    if len(literals) > 1:
        words = dict.fromkeys(word for each in literals for word in each[8:-1].split(', '))
        types = [f'Literal[{", ".join(words)}]', *(each for each in types if each not in literals)]
    return ' | '.join(
        [*(each for each in types if each != 'None'), *(['None'] if 'None' in types else [])]
    )


def _module(about: str, classes: list[tuple]) -> str:
    bodies = [_class(*each) for each in classes]
    body = '\n\n'.join(bodies)
    imports = []
    if 'Path' in body:
        imports.append('import os')
    if 'Sequence[' in body:
        imports.append('from collections.abc import Sequence')
    imports.append(f'from typing import {"Literal, " if "Literal[" in body else ""}TypedDict')
    if 'Path' in body:
        imports.append('\nPath = str | os.PathLike')
    return _HEADER.format(about=about, imports='\n'.join(imports)) + body


def _class(name: str, about: str, options: _Options | None, bases: str = 'TypedDict') -> str:
    if options is None:
        return f'class {name}({bases}, total=False):\n    """{about}"""\n'
    lines = []
    for key, (_, help) in options.items():
        text = ' '.join(f'{key}: {help}'.split()).replace('\\', '\\\\')
        lines += textwrap.wrap(
            text, 96, initial_indent='    ', subsequent_indent='        ', break_on_hyphens=False
        )
    fields = [f'    {key}: {type_}' for key, (type_, _) in options.items()]
    doc = '\n'.join([f'    """{about}', '', *lines, '    """'])
    return '\n'.join([f'class {name}({bases}, total=False):', doc, '', *fields, ''])


if __name__ == '__main__':
    for file, text in files().items():
        file.write_text(text)
