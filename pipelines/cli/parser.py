"""The shape of the `tokbeam` command: its subcommands, their options and their help."""

import argparse
import sys
from collections.abc import Sequence

from pipelines.cli.option_groups import (
    add_corpus,
    add_dataset,
    add_option,
    add_paths,
    add_running,
    add_scheme,
    add_shuffle,
    add_side,
    add_vocabulary,
    add_work,
)
from pipelines.options.strict_parser import Parser
from pipelines.options.values import output_path, path, vocabulary_path
from tokcore.errors import InputError

_DESCRIPTION = """\
Learn exact subword vocabularies from whole corpora, and turn the corpora into globally shuffled
TFRecords, as Apache Beam jobs: on this machine with no service, or on any Beam runner.
"""

_EPILOG = """\
Every input option takes several paths and globs, plain or gzip, on any filesystem that Beam opens.
Options of Beam (--runner, --direct_running_mode, ...) are passed on to it; what only a job server
knows stands after --. `tokbeam COMMAND --help` tells a command's options.
"""

_DETOKENIZE_EPILOG = """\
There are as many lines as were read: a line feed that ids spell is written as a space. Half of a
surrogate pair, which UTF-8 cannot hold, is written as U+FFFD.
"""


def command_parser() -> Parser:
    """Returns the parser of the whole command line."""
    parser = Parser(
        prog='tokbeam',
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--version', action='store_true', help='print the version and exit')
    commands = parser.add_subparsers(dest='command', metavar='COMMAND', parser_class=Parser)

    build = _command(commands, 'build', 'count, learn and encode: the main job, in one go')
    add_corpus(build, all_splits=True)
    add_dataset(build)
    add_scheme(build)
    add_vocabulary(build)
    build.add_argument(
        '--shared-vocab',
        action='store_true',
        help='learn one vocabulary from both sides (default: one for each side)',
    )
    add_running(build)
    add_work(build)
    add_shuffle(build)

    count = _command(commands, 'count', 'count the tokens of the training lines')
    add_corpus(count, all_splits=False)
    add_paths(count, '--merge', 'COUNTS', 'instead of text: add up folders of earlier counts')
    add_side(count)
    add_scheme(count)
    add_option(count, '--output', output_path, 'COUNTS', 'folder for the counts', required=True)
    add_running(count)

    vocab = _command(commands, 'vocab', 'learn a vocabulary, from text or from counts')
    add_corpus(vocab, all_splits=False)
    add_paths(
        vocab,
        '--counts',
        'COUNTS',
        'instead of text: folders of `tokbeam count`, Parquet files with columns token and '
        'count, or text with a token and its count on a line',
    )
    add_side(vocab)
    add_scheme(vocab)
    add_vocabulary(vocab)
    add_option(
        vocab, '--output', vocabulary_path, 'FILE', 'vocabulary file to write', required=True
    )
    add_running(vocab)
    add_work(vocab)

    encode = _command(commands, 'encode', 'encode a corpus with vocabularies that exist')
    add_corpus(encode, all_splits=True)
    add_option(encode, '--vocab', path, 'FILE', 'vocabulary of all sides')
    add_option(encode, '--source-vocab', path, 'FILE', 'vocabulary of the source side')
    add_option(encode, '--target-vocab', path, 'FILE', 'vocabulary of the target side')
    add_scheme(encode, default=None)
    add_dataset(encode)
    add_running(encode)
    add_work(encode)
    add_shuffle(encode)

    tokenize = _command(commands, 'tokenize', 'lines of text on stdin to lines of ids on stdout')
    detokenize = _command(commands, 'detokenize', 'lines of ids on stdin to text on stdout')
    detokenize.epilog = _DETOKENIZE_EPILOG
    for each in (tokenize, detokenize):
        add_option(each, '--vocab', path, 'FILE', 'vocabulary file', required=True)
        add_scheme(each, default=None)
    tokenize.add_argument('--eos', action='store_true', help='end each line with id 1')
    return parser


def _command(commands, name: str, summary: str) -> Parser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + '.',
        epilog=_EPILOG if name not in ('tokenize', 'detokenize') else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


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
    parser = command_parser()
    own = _own_options(parser, arguments)
    strange = [each for each in map(_option_name, arguments) if each and each not in own]
    # What is Beam's takes its time to import, and mostly there is none.
    if own and strange:
        from pipelines.options.beam_flags import check_names

        # Before anything else is missed: what is missing may be what was mistyped.
        check_names(strange, own, arguments[0])
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None and not options.version:
        parser.print_help(sys.stderr)
        raise InputError('no command given: one of build, count, vocab, encode, tokenize, detokenize')
    if unknown or job_server:
        from pipelines.options.beam_flags import check_flags

        check_flags(unknown, job_server, options.command)
    return options, unknown + job_server


def _own_options(parser: Parser, arguments: Sequence[str]) -> list[str]:
    """The long options of the command that a command line names; none if it names none."""
    [subparsers] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    command = subparsers.choices.get(arguments[0]) if arguments else None
    return [
        name for action in (command._actions if command else ()) for name in action.option_strings
    ]


def _option_name(argument: str) -> str | None:
    return argument.partition('=')[0] if argument.startswith('--') else None
