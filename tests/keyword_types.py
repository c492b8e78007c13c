"""Writes the types of keyword arguments from the declarations of options: `python -m tests.keyword_types`.

A type checker and `help` cannot see options that are declared by formats and schemes; they see these
classes. `tests/unit/test_keyword_types.py` fails when they are not what the declarations say.
"""

import pathlib
import textwrap
import typing
from collections.abc import Iterable

from pipelines.options.commands import known_commands
from pipelines.options.job import on_error
from pipelines.options.vocabulary import encoding_options, learning_options, token_options
from tokcore.corpus.formats import all_formats
from tokcore.filters.registry import filter_list
from tokcore.options import (
    PATH_KINDS,
    ByteSize,
    Choice,
    Declared,
    Kind,
    WholeNumber,
    declared,
    token_or_id,
)

ROOT = pathlib.Path(__file__).parents[1]

_HEADER = '''"""{about}

Written by `python -m tests.keyword_types` from the declarations of the options; do not edit it.
"""

from __future__ import annotations

{imports}

'''

_COMMANDS = ('build', 'count', 'vocab', 'encode', 'update')
_SHARED = {
    '_JobKeywords': ('Of every job.', _COMMANDS),
    '_ReadingKeywords': (
        'Of jobs that read a whole corpus.',
        ('build', 'count', 'vocab', 'encode'),
    ),
    '_SplitKeywords': ('Of jobs that read all splits.', ('build', 'encode', 'update')),
    '_DatasetKeywords': ('Of jobs that write a dataset.', ('build', 'encode')),
    '_LearningKeywords': ('Of jobs that learn a vocabulary.', ('build', 'vocab')),
}
"""Classes of the options that just these commands share: what they are of, and the commands."""

_EXAMPLES = {
    'tokcore.SchemeKeywords': """
        >>> options: tokcore.SchemeKeywords = {'pre_tokenizer': 'o200k'}
        >>> tokcore.find_scheme('bpe', **options).tokens('the cat')
        ['the', ' cat']
    """,
    'tokcore.LearnKeywords': """
        >>> options: tokcore.LearnKeywords = {'vocab_size': 300, 'preset': 'cl100k'}
        >>> tokcore.learn_vocabulary(paths=['train.en'], scheme='bpe', **options)
        BpeTokenizer(vocab_size=300, end=0)
    """,
    'tokcore.EncodeKeywords': """
        >>> options: tokcore.EncodeKeywords = {'split': 'unicode', 'unknown': 'token'}
        >>> tokcore.load_tokenizer('words.txt', 'word', **options).encode('the purple\\tcat')
        [3, 0, 4]
    """,
    'tokcore.FormatKeywords': """
        >>> options: tokcore.FormatKeywords = {'columns': [0, 1]}
        >>> pipelines.ReadCorpus('pairs.tsv', format='tsv', **options).splits[0].format.columns
        (0, 1)
    """,
    'pipelines.BuildKeywords': """
        >>> options: pipelines.BuildKeywords = {'text': 'train.en', 'scheme': 'byte', 'name': 'en'}
        >>> pipelines.build_job(output='data/en', **options).dataset.name
        'en'
    """,
    'pipelines.CountKeywords': """
        >>> options: pipelines.CountKeywords = {'text': 'train.en', 'scheme': 'word'}
        >>> pipelines.count(output='counts', **options).manifest.lines[0].examples
        400
    """,
    'pipelines.VocabKeywords': """
        >>> options: pipelines.VocabKeywords = {'scheme': 'word', 'vocab_size': 100}
        >>> result = pipelines.vocab(text='train.en', output='frequent.txt', **options)
        >>> tokcore.load_tokenizer(result.path)
        WordTokenizer(vocab_size=100, begin=1, end=2, unknown=0)
    """,
    'pipelines.EncodeKeywords': """
        >>> options: pipelines.EncodeKeywords = {'vocab': 'data/enzh', 'shards': 1}
        >>> result = pipelines.encode(text='dev.en', name='dev', output='data/dev', **options)
        >>> result.manifest.lines[0].examples
        20
    """,
    'pipelines.UpdateKeywords': """
        >>> options: pipelines.UpdateKeywords = {'source': 'dev.en', 'target': 'dev.zh'}
        >>> result = pipelines.update('data/enzh', output='data/options', **options)
        >>> result.manifest.stage
        'encode'
    """,
}
"""What docstrings show of a class; `tests/unit/test_docstrings.py` has the files."""

_LEFT_OUT = {'progress', 'print_job', 'dry_run'}
"""What the command does around a job."""


def files() -> dict[pathlib.Path, str]:
    """Returns the text of each file that is generated."""
    of_options = [
        ('Scheme', 'schemes that change the tokens of text', _of([token_options()])),
        ('Learning', 'how a vocabulary is learned', _of([learning_options()])),
        ('Encoding', 'how a vocabulary encodes', _of([encoding_options()])),
        ('Format', 'the formats of corpora', _of(all_formats())),
    ]
    tokcore_classes = [
        *(
            _class(
                f'{name}Keywords',
                f'The options of {about}.',
                options,
                _helps(options),
                example=_EXAMPLES.get(f'tokcore.{name}Keywords'),
            )
            for name, about, options in of_options
        ),
        _class(
            'LearnKeywords',
            'Both: the options of a scheme and of its learner.',
            bases='SchemeKeywords, LearningKeywords',
            example=_EXAMPLES['tokcore.LearnKeywords'],
        ),
        _class(
            'EncodeKeywords',
            'Both: the options of a scheme and of its encoder.',
            bases='SchemeKeywords, EncodingKeywords',
            example=_EXAMPLES['tokcore.EncodeKeywords'],
        ),
    ]
    return {
        ROOT / 'tokcore/keyword_types.py': _module(
            'The keyword arguments of schemes and formats, for type checkers and `help`.',
            tokcore_classes,
        ),
        ROOT / 'pipelines/keyword_types.py': _module(
            'The keyword arguments of `build`, `count`, `vocab`, `encode` and `update`, as the command has them.',
            _command_classes(),
        ),
    }


_Options = dict[str, tuple[str, str]]
"""By name the type and the help."""


def _of(kinds: Iterable[Kind]) -> _Options:
    options: dict[str, tuple[list[str], list[str]]] = {}
    for kind in kinds:
        dataclasses = kind.kinds.values() if isinstance(kind, Choice) else [kind]
        for dataclass_ in dataclasses:
            hints = typing.get_type_hints(dataclass_)
            for declaration in declared(dataclass_):
                types, helps = options.setdefault(declaration.key, ([], []))
                for type_ in _types(declaration, str(hints.get(declaration.field, ''))):
                    types += [type_] if type_ not in types else []
                text = declaration.help.replace('%%', '%')
                helps += [text] if text not in helps else []
    return {name: (_union(types), '; or '.join(helps)) for name, (types, helps) in options.items()}


def _command_classes() -> list[str]:
    """Each class documents all options of its command, and inherits the types of those that it shares.

    `update` has many options of `encode`, and documents the others.
    """
    commands = {name: _of_command(name) for name in _COMMANDS}
    inherited: dict[str, set[str]] = {name: set() for name in _COMMANDS}
    classes = []
    for base, (about, names) in _SHARED.items():
        shared = {
            key: option
            for key, option in commands[names[0]].items()
            if names == tuple(name for name in _COMMANDS if _has(commands[name], key, option))
        }
        classes.append(_class(base, about, shared))
        for name in names:
            inherited[name] |= shared.keys()
    for name, options in commands.items():
        class_name, about = f'{name.capitalize()}Keywords', f'The options of `tokbeam {name}`.'
        helps = _helps(options)
        if name == 'update':
            about = f'{about[:-1]}; those of files are as of `EncodeKeywords`.'
            of_encode = _helps(commands['encode']).items()
            helps = {key: help for key, help in helps.items() if (key, help) not in of_encode}
        bases = (
            ', '.join(base for base, (_, names) in _SHARED.items() if name in names) or 'TypedDict'
        )
        own = {key: option for key, option in options.items() if key not in inherited[name]}
        example = _EXAMPLES[f'pipelines.{class_name}']
        classes.append(_class(class_name, about, own, helps, bases, example))
    return classes


def _has(options: _Options, key: str, option: tuple[str, str]) -> bool:
    return key in options and options[key][0] == option[0]


def _of_command(name: str) -> _Options:
    options: _Options = {}
    for group in known_commands()[name].groups:
        options |= _of(group.kinds)
    return {key: option for key, option in options.items() if key not in _LEFT_OUT}


def _helps(options: _Options) -> dict[str, str]:
    """The help of each option."""
    return {key: help for key, (_, help) in options.items()}


def _types(declaration: Declared, hint: str) -> list[str]:
    option, kind = declaration.option, declaration.option.kind
    if option.many:
        single = 'Path' if kind in PATH_KINDS else 'str'
        return [single, f'Sequence[{single}]']
    optional = ['None'] if declaration.default is None else []
    if kind is None:
        return ['bool', *optional]
    if isinstance(kind, tuple):
        return [f'Literal[{", ".join(map(repr, kind))}]', *optional]
    if isinstance(kind, WholeNumber):
        return ['int', *optional]
    if isinstance(kind, ByteSize) or kind in (token_or_id, on_error):
        return ['int', 'str', *optional]
    if kind in PATH_KINDS:
        return ['Path', *optional]
    if kind is filter_list or 'tuple' in hint or hint == "<class 'object'>":
        return ['str', 'Sequence[object]', *optional]
    if 'int' in hint and 'str' not in hint:
        return ['int', 'None']
    if 'float' in hint:
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


def _module(about: str, classes: list[str]) -> str:
    body = '\n\n'.join(classes)
    imports = []
    if 'Path' in body:
        imports.append('import os')
    if 'Sequence[' in body:
        imports.append('from collections.abc import Sequence')
    imports.append(f'from typing import {"Literal, " if "Literal[" in body else ""}TypedDict')
    if 'Path' in body:
        imports.append('\nPath = str | os.PathLike')
    return _HEADER.format(about=about, imports='\n'.join(imports)) + body


def _class(
    name: str,
    about: str,
    options: _Options | None = None,
    helps: dict[str, str] | None = None,
    bases: str = 'TypedDict',
    example: str | None = None,
) -> str:
    """A class with these fields; its docstring has the help of options, where there is one."""
    lines = []
    for key, help in (helps or {}).items():
        text = ' '.join(f'{key}: {help}'.split()).replace('\\', '\\\\')
        lines += textwrap.wrap(
            text, 96, initial_indent='    ', subsequent_indent='        ', break_on_hyphens=False
        )
    if example:
        shown = textwrap.dedent(example).strip().replace('\\', '\\\\')
        lines += [*([''] if lines else []), '    Examples:', textwrap.indent(shown, ' ' * 8)]
    doc = [f'    """{about}', '', *lines, '    """'] if lines else [f'    """{about}"""']
    fields = [f'    {key}: {type_}' for key, (type_, _) in (options or {}).items()]
    return '\n'.join([f'class {name}({bases}, total=False):', *doc, '', *fields, ''])


if __name__ == '__main__':
    for file, text in files().items():
        file.write_text(text)
