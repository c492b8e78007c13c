"""The help: of a command what most people need, all of it with `tokbeam help COMMAND`, and topics.

    tokbeam --help          the commands and the topics
    tokbeam build --help    two examples, and the options that most people need
    tokbeam help build
    tokbeam help schemes/bpe

All of it is made of the declarations of the options.
"""

import argparse
import shutil
import textwrap
from collections.abc import Callable, Mapping

from pipelines.cli.printable import GOES_ON, broken
from pipelines.options.commands import BEAM_NOTES, Command, Group, add_groups, known_commands
from pipelines.options.job import LineOptions, OtherFiles, training_files
from pipelines.options.reading import Parser
from pipelines.options.vocabulary import encoding_options, learning_options, token_options
from tokcore.errors import InputError
from tokcore.filters.registry import filter_table
from tokcore.options import Choice, declared, did_you_mean, flag
from tokcore.schemes import scheme_names

_WIDEST = 100
"""Columns of a line; longer ones are hard to read."""

_INPUTS = """\
Every input option takes several paths and globs, plain or compressed (gzip, bzip2, xz, zstd), on
any filesystem that Beam opens. The files of a pair go together in the order given."""

_INDENT = ' ' * 6

_NARROW = 70
"""Columns below which what an option does is on the lines below its name."""

_JOB_FILE = """\
`tokbeam COMMAND JOB.toml [options]` takes from a TOML file what is not given as an option;
--print-job prints such a file. A file whose `clean` names a module:function is code, which --dry-run
runs too."""

_JOB_EXAMPLE = """\
  [[train]]
  format = "bitext"
  paths = { source = "train.*.en.gz", target = "train.*.zh.gz" }

  [vocabulary]
  vocab_size = 32768

  [output]
  name = "enzh"
  output = "out"
"""

_SCHEMES = """\
--scheme chooses how text becomes ids: {schemes}. An option of another scheme is refused.
`tokbeam help schemes/NAME` explains the options of one."""

_KNOWN_FROM = {
    'subword': 'Tensor2Tensor',
    'wordpiece': 'BERT',
    'bpe': 'GPT-2 and others',
    'unigram': 'SentencePiece',
    'pretrained': 'the file of a published tokenizer',
}


def command_help(name: str, command: Command) -> str:
    """Returns the help of a command: examples, and the options that most people need."""
    if not command.essential:
        return all_help(name, command)
    parser = _command_parser(name, command)
    kinds = tuple(kind for group in command.groups for kind in group.kinds)
    add_groups(parser, [Group(kinds, 'what most people need')], command.essential)
    topics = f'\n\nBy topic: tokbeam help {{{", ".join(topics_of())}}}.' if command.sections else ''
    parser.epilog = f'All options: tokbeam help {name}.{topics}'
    return parser.format_help()


def all_help(name: str, command: Command) -> str:
    """Returns the help of a command with all options."""
    notes = f'{_INPUTS}\n\n{_JOB_FILE}\n\n{BEAM_NOTES}' if command.sections else command.notes
    parser = _command_parser(name, command, notes)
    add_groups(parser, command.groups)
    return parser.format_help()


def topics_of() -> list[str]:
    """Returns the names of the topics of `tokbeam help`."""
    return [*_topics(), 'schemes/NAME']


def topic_help(topic: str | None = None) -> str:
    """Returns the text of a topic, or of a command; without one the list of topics.

    Raises:
        InputError: there is no such topic.
    """
    commands = known_commands()
    if topic is None:
        lines = [f'  {name:12}  {about}\n' for name, (about, _) in _topics().items()]
        lines += [f'  {name:12}  {command.summary}\n' for name, command in commands.items()]
        lines.append('  schemes/NAME  options of a scheme')
        return _parser('tokbeam help TOPIC', ''.join(lines)).format_help()
    if topic in commands:
        return all_help(topic, commands[topic])
    if topic in _topics():
        return _topics()[topic][1]()
    kind, _, scheme = topic.partition('/')
    if kind == 'schemes' and scheme in scheme_names():
        return _scheme_help(scheme)
    names = [*_topics(), *(f'schemes/{name}' for name in scheme_names()), *commands]
    hint = did_you_mean(topic, names) or f'there are {", ".join(names)}'
    raise InputError(f'help has no topic {topic}; {hint}')


def _topics() -> dict[str, tuple[str, Callable[[], str]]]:
    """For each topic what it is about, and the function that returns its text."""
    formats = training_files()
    return {
        'formats': (
            'what corpora may be, and the options of each format',
            lambda: _text('formats', _INPUTS, Group((formats,)), Group((OtherFiles,))),
        ),
        'filters': (
            'what drops rows, and what happens to lines that cannot be used',
            lambda: _text('filters', _filters(), Group((LineOptions,))),
        ),
        'schemes': (f'{", ".join(scheme_names())}: which options each has', _schemes),
        'jobs': (
            'job files: a command line as TOML',
            lambda: _text('jobs', f'{_JOB_FILE}\n\n{_JOB_EXAMPLE}'),
        ),
    }


def _filters() -> str:
    filters = ''.join(
        f'  {form}\n{_indented(f"{does}. Unit: {unit}.")}\n'
        + ''.join(f'{_indented(example)}\n' for example in examples)
        for form, does, unit, examples in filter_table()
    ).replace('`', '')
    return (
        '--clean A,B,… drops rows, or changes them, by these filters, in the order given:\n\n'
        f'{filters}\nIn these examples ⇥ is between the sides of a pair. Other splits have filters\n'
        'in a table [[dev]] or [[test]] of a job file.'
    )


def _indented(text: str) -> str:
    return textwrap.fill(text, _line_width(), initial_indent=_INDENT, subsequent_indent=_INDENT)


def _schemes() -> str:
    schemes = ', '.join(
        f'{name} ({_KNOWN_FROM[name]})' if name in _KNOWN_FROM else name for name in scheme_names()
    )
    about = _SCHEMES.format(schemes=schemes)
    return _text('schemes', f'{about}\n\n{as_text(scheme_table(known_commands()))}')


def _scheme_help(scheme: str) -> str:
    groups = (
        Group((token_options().kinds[scheme],), 'tokens'),
        Group((learning_options().kinds[scheme],), 'learning (build, vocab)'),
        Group((encoding_options().kinds[scheme],), 'encoding (build, encode, tokenize)'),
    )
    described = [group for group in groups if any(declared(kind) for kind in group.kinds)]
    return _text(f'schemes/{scheme}', f'Options of --scheme {scheme}.', *described)


def _text(topic: str, about: str, *groups: Group) -> str:
    parser = _parser(f'tokbeam help {topic}', about)
    add_groups(parser, groups)
    return parser.format_help().partition('\n\n')[2]


def _command_parser(name: str, command: Command, notes: str = '') -> Parser:
    takes = command.paths or ('[JOB.toml]' if command.sections else '')
    usage = ' '.join(['tokbeam', name, *takes.split(), '[OPTIONS]'])
    summary = f'{command.summary[0].upper()}{command.summary[1:]}.'
    examples = (broken(f'  {line}', _line_width(), GOES_ON) for line in command.examples)
    return _parser(usage, '\n'.join([summary, '', *examples]), notes)


def _line_width() -> int:
    """Returns the columns of a line of help: those of the terminal, if they are not too many."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


class HelpFormatter(argparse.HelpFormatter):
    """Breaks lines between words alone; paragraphs are filled, unless they begin with a blank."""

    def __init__(self, prog: str):
        width = _line_width()
        super().__init__(prog, width=width, max_help_position=26 if width >= _NARROW else 8)

    def format_help(self) -> str:
        return '\n'.join(broken(line, self._width) for line in super().format_help().split('\n'))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return '\n\n'.join(
            part if part.startswith(' ') else '\n'.join(self._split_lines(part, width))
            for part in text.split('\n\n')
        )

    def _split_lines(self, text: str, width: int) -> list[str]:
        text = ' '.join(text.split())
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _parser(usage: str, description: str, epilog: str = '') -> Parser:
    return Parser(
        prog='tokbeam',
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=HelpFormatter,
        add_help=False,
    )


def scheme_table(commands: Mapping[str, Command]) -> list[tuple[str, str, str]]:
    """Returns (option, schemes, commands) for all options of schemes, in the order of the help."""
    rows: dict[str, tuple[list[str], list[str]]] = {}
    for command, about in commands.items():
        for kind in (kind for group in about.groups for kind in group.kinds):
            if isinstance(kind, Choice):
                for scheme, chosen in kind.kinds.items():
                    for option in declared(chosen):
                        schemes, takers = rows.setdefault(flag(option.name), ([], []))
                        schemes += [scheme] if scheme not in schemes else []
                        takers += [command] if command not in takers else []
    return [
        (option, 'all' if schemes == [*scheme_names()] else ', '.join(schemes), ', '.join(takers))
        for option, (schemes, takers) in rows.items()
    ]


def as_text(rows: list[tuple[str, str, str]]) -> str:
    """Returns the table as help shows it."""
    width = max(len(option) for option, _, _ in rows)
    return ''.join(
        f'  {option:{width}}  {schemes}\n{_INDENT}{takers}\n' for option, schemes, takers in rows
    )
