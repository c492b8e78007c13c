"""The parser of the `tokbeam` command: subcommands and their options."""

import argparse
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.cli.help import HelpFormatter, command_help, topics_of
from pipelines.cli.terminal import print_lines
from pipelines.options.commands import add_groups, finish_options, known_commands
from pipelines.options.reading import Parser
from tokcore.encoding.scheme import refuse_options
from tokcore.errors import InputError
from tokcore.options import did_you_mean, path, shown
from tokcore.schemes import find_scheme, scheme_names

_DESCRIPTION = """\
Learn exact subword vocabularies from whole corpora, and turn the corpora into globally shuffled
TFRecords, as Apache Beam jobs: on this machine with no service, or on any Beam runner.
"""

_EPILOG = """\
  tokbeam COMMAND --help    the options that most people need, with examples
  tokbeam help COMMAND      all options
  tokbeam help TOPIC        {topics}
  tokbeam completion SHELL  completion for bash, zsh or fish
"""


def parse_command(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Returns the options of a command line, and those that go to Beam.

    Raises:
        InputError: an option that neither knows, or a value that cannot be.
    """
    arguments = list(arguments)
    job_server: list[str] = []
    if '--' in arguments:
        cut = arguments.index('--')
        arguments, job_server = arguments[:cut], arguments[cut + 1 :]
    for word in arguments:
        name, _, value = word.partition('=')
        if value == '--' and name.startswith('--'):
            # argparse would drop the value, and give the option an empty list.
            raise InputError(
                f'{shown(name)[1:-1]} cannot have the value --, which stands before options of a job '
                'server; give another'
            )
    known = known_commands()
    name = arguments[0] if arguments else ''
    if name and not name.startswith('-') and name not in known:
        commands = [*known, 'help', 'completion']
        hint = did_you_mean(name, commands) or f'there are {", ".join(commands)}'
        raise InputError(f'there is no command {shown(name)}; {hint}')
    command = known.get(name)
    job_path = None
    if command is not None:
        if command.sections and arguments[1:] and not arguments[1].startswith('-'):
            # Only the first word: a later one might be the value of one of Beam's options.
            job_path = arguments.pop(1)
        own = ['--help', *command.flags]
        typed = (word.partition('=')[0] for word in arguments if word.startswith('--'))
        others = [option for option in typed if option not in own]
        # Importing Beam takes seconds, and mostly there are no options of Beam.
        if others:
            for scheme in scheme_names() if '--scheme' in command.flags else ():
                refuse_options(find_scheme(scheme), others)
            from pipelines.options.beam import check_names

            # Before a missing option is reported: it may be the one that was mistyped.
            check_names(others, own, name)
    parser = command_parser(name)
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None and not options.version:
        parser.print_help(sys.stderr)
        raise InputError(f'no command given: one of {", ".join(known)}')
    if unknown and command is not None and command.paths and not command.takes_beam_options:
        raise InputError(f'{name} has no {shown(unknown[0])} (see tokbeam {name} --help)')
    if unknown or job_server:
        from pipelines.options.beam import check_flags

        check_flags(unknown, job_server, options.command)
    if command is not None:
        options = with_job_file(options, job_path)
    return options, unknown + job_server


class _HelpParser(Parser):
    """Raises an error if its help cannot be written, which argparse ignores."""

    def print_help(self, file: Any = None) -> None:
        if file is None:
            print_lines(self.format_help().removesuffix('\n').split('\n'))
        else:
            super().print_help(file)


def command_parser(only: str | None = None) -> Parser:
    """Returns the parser of the whole command line.

    `only` is the one command whose options are needed; None for all.
    """
    parser = _HelpParser(
        prog='tokbeam',
        description=_DESCRIPTION,
        epilog=_EPILOG.format(topics=', '.join(topics_of())),
        formatter_class=HelpFormatter,
    )
    parser._positionals.title = 'commands'
    parser.add_argument('--version', action='store_true', help='print the version and exit')
    commands = parser.add_subparsers(dest='command', metavar='COMMAND', parser_class=_HelpParser)

    for name, command in known_commands().items():
        subparser = commands.add_parser(name, help=command.summary)
        subparser.format_help = functools.partial(command_help, name, command)  # type: ignore[method-assign]
        for name_of_path, shown_as in zip(('path', 'second'), command.paths.split()):
            subparser.add_argument(
                name_of_path,
                metavar=shown_as,
                type=path,
                nargs='?' if shown_as.startswith('[') else None,
            )
        if only in (None, name):
            add_groups(subparser, command.groups)
    return parser


def with_job_file(typed: argparse.Namespace, job_path: str | None) -> argparse.Namespace:
    """Returns a command's options: as typed, or as a job file has them, or their defaults.

    `given` are the options without the defaults, `datasets` those of the job file at `job_path`.
    """
    given: dict[str, object] = dict(vars(typed))
    datasets: Mapping[str, Sequence[object]] = {}
    if job_path is not None:
        from pipelines.cli.job_file import read_job

        values, datasets = read_job(job_path, typed.command)
        given = {**values, **given}
    finished = finish_options(known_commands()[typed.command], given, bool(datasets))
    of_job = {'given': given, 'datasets': datasets, 'job_path': job_path}
    return argparse.Namespace(**{**finished, **of_job})
