"""The shape of the `tokbeam` command: its subcommands, their options and their help."""

import argparse
import difflib
import re
import sys
from collections.abc import Sequence

from tokcore.errors import InputError

_SIZE = re.compile(r'(\d+)\s*(|[KMG]i?B?|B)', re.IGNORECASE)
_TIME = re.compile(r'(\d+)\s*(s|min|h)')
_SECONDS = {'s': 1, 'min': 60, 'h': 3600}
_UNITS = {'': 1, 'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}

_DESCRIPTION = """\
Learn exact subword vocabularies from whole corpora, and turn the corpora into globally shuffled
TFRecords, as Apache Beam jobs: on this machine with no service, or on any Beam runner.
"""

_EPILOG = """\
Every input option takes several paths and globs, plain or gzip, on any filesystem that Beam opens.
Options of Beam (--runner, --direct_running_mode, ...) are passed on to it; what only a job server
knows stands after --. `tokbeam COMMAND --help` tells a command's options.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are a user's mistakes: a sentence and status 2."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, allow_abbrev=False, **keywords)

    def error(self, message: str):
        raise InputError(f'{message} (see {self.prog} --help)')


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
    _add_corpus(build, all_splits=True)
    _add_dataset(build)
    _add_vocabulary(build)
    build.add_argument(
        '--shared-vocab',
        action='store_true',
        help='learn one vocabulary from both sides (default: one for each side)',
    )
    _add_running(build)
    _add_work(build)
    _add_shuffle(build)

    count = _command(commands, 'count', 'count the tokens of the training lines')
    _add_corpus(count, all_splits=False)
    count.add_argument(
        '--merge',
        nargs='+',
        action='extend',
        metavar='COUNTS',
        help='instead of text: add up folders of earlier counts',
    )
    _add_side(count)
    count.add_argument('--output', required=True, metavar='COUNTS', help='folder for the counts')
    _add_running(count)

    vocab = _command(commands, 'vocab', 'learn a vocabulary, from text or from counts')
    _add_corpus(vocab, all_splits=False)
    vocab.add_argument(
        '--counts',
        nargs='+',
        action='extend',
        metavar='COUNTS',
        help='instead of text: folders of `tokbeam count`, Parquet files with columns token and '
        'count, or text with a token and its count on a line',
    )
    _add_side(vocab)
    _add_vocabulary(vocab)
    vocab.add_argument('--output', required=True, metavar='FILE', help='vocabulary file to write')
    _add_running(vocab)
    _add_work(vocab)

    encode = _command(commands, 'encode', 'encode a corpus with vocabularies that exist')
    _add_corpus(encode, all_splits=True)
    encode.add_argument('--vocab', metavar='FILE', help='vocabulary of all sides')
    encode.add_argument('--source-vocab', metavar='FILE', help='vocabulary of the source side')
    encode.add_argument('--target-vocab', metavar='FILE', help='vocabulary of the target side')
    _add_dataset(encode)
    _add_running(encode)
    _add_work(encode)
    _add_shuffle(encode)

    tokenize = _command(commands, 'tokenize', 'lines of text on stdin to lines of ids on stdout')
    tokenize.add_argument('--vocab', required=True, metavar='FILE', help='vocabulary file')
    tokenize.add_argument('--eos', action='store_true', help='end each line with id 1')
    detokenize = _command(commands, 'detokenize', 'lines of ids on stdin to text on stdout')
    detokenize.add_argument('--vocab', required=True, metavar='FILE', help='vocabulary file')
    return parser


def _command(commands, name: str, summary: str) -> Parser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + '.',
        epilog=_EPILOG if name not in ('tokenize', 'detokenize') else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_corpus(parser: Parser, all_splits: bool) -> None:
    for split in ('train', 'dev', 'test') if all_splits else ('train',):
        prefix = '' if split == 'train' else f'{split}-'
        what = {'train': 'training corpus', 'dev': 'development corpus', 'test': 'test corpus'}
        group = parser.add_argument_group(
            what[split], 'one of: two aligned files, tab-separated columns, or plain lines'
        )
        for role, text in [
            ('source', 'source side of bitext, a sentence a line'),
            ('target', 'target side, the same number of files and of lines'),
            ('tsv', 'pairs in tab-separated columns'),
            ('text', 'text without a source side'),
        ]:
            group.add_argument(
                f'--{prefix}{role}', nargs='+', action='extend', metavar='PATH', help=text
            )
        group.add_argument(
            f'--{prefix}columns',
            type=columns,
            metavar='S,T',
            help='0-based columns of source and target (default: '
            + ('0,1)' if split == 'train' else "the training corpus's)"),
        )


def _add_side(parser: Parser) -> None:
    parser.add_argument(
        '--side',
        choices=['inputs', 'targets', 'both'],
        help='which side of the pairs is counted (default: both)',
    )


def _add_dataset(parser: Parser) -> None:
    group = parser.add_argument_group('dataset')
    group.add_argument('--name', required=True, help='name of the dataset, in its file names')
    group.add_argument('--output', required=True, metavar='DIR', help='folder for the result')
    group.add_argument(
        '--shards', type=positive, default=10, metavar='N', help='training shards (default: 10)'
    )
    for split in ('dev', 'test'):
        group.add_argument(
            f'--{split}-shards', type=positive, default=1, metavar='N',
            help=f'{split} shards (default: 1)',
        )
    group.add_argument(
        '--source-prefix', default='', metavar='P', help='put before each source text'
    )
    group.add_argument(
        '--target-prefix', default='', metavar='P', help='put before each target text'
    )
    group.add_argument(
        '--seed', type=int, default=0, metavar='N', help='of the shuffle (default: 0)'
    )


def _add_vocabulary(parser: Parser) -> None:
    group = parser.add_argument_group('vocabulary')
    group.add_argument(
        '--vocab-size', type=positive, required=True, metavar='N', help='entries to aim for'
    )
    group.add_argument(
        '--search',
        choices=['t2t', 'closest'],
        default='t2t',
        help="t2t: Tensor2Tensor's path over min-counts; closest: the size nearest to the target "
        '(default: t2t)',
    )
    group.add_argument(
        '--min-count-range',
        type=min_count_range,
        metavar='LOW:HIGH',
        help='min-counts to search between (default: 1:1000, and beyond where that is too low; '
        'giving 1:1000 forbids going beyond)',
    )
    group.add_argument(
        '--max-subtoken-length',
        type=subtoken_length,
        default=200,
        metavar='N|none',
        help='subtokens stay shorter than this many characters (default: 200)',
    )
    group.add_argument(
        '--reserved-token',
        action='append',
        default=[],
        metavar='X',
        help='give X an id of its own, from 2 on; may be repeated',
    )
    group.add_argument(
        '--learner',
        choices=['auto', 'memory', 'beam'],
        default='auto',
        help='memory: in this process; beam: on the workers; auto: in memory where it fits '
        '(default: auto)',
    )
    group.add_argument(
        '--substring-counting',
        choices=['packed', 'plain'],
        default='packed',
        help='how a learner on Beam counts: packed tables of suffixes, or each substring, which is '
        'slow and the reference (default: packed)',
    )


def _add_running(parser: Parser) -> None:
    group = parser.add_argument_group('running')
    group.add_argument(
        '--workers',
        type=positive,
        metavar='N',
        help='work items in flight in a process (default: the cores here, 1 on a cluster)',
    )
    group.add_argument(
        '--item-size',
        type=byte_size,
        default=8 << 20,
        metavar='SIZE',
        help='bytes of text in a work item, as 8MiB; changes no output (default: 8MiB)',
    )
    group.add_argument(
        '--deadline',
        type=duration,
        metavar='TIME',
        help='cancel a pipeline that takes longer, as 90s, 30min or 12h; not for the local engine, '
        'which cannot cancel (default: none)',
    )
    group.add_argument(
        '--on-error',
        choices=['stop', 'skip'],
        default='stop',
        help='at a line that is not UTF-8 or lacks a column: stop, or leave it out and keep it in '
        'rejected/SPLIT.REASON.jsonl (default: stop)',
    )
    group.add_argument(
        '--overwrite', action='store_true', help='make the result again, replacing what is there'
    )


def _add_work(parser: Parser) -> None:
    parser.add_argument(
        '--work',
        metavar='DIR',
        help='where a learner on Beam keeps its rounds and the shuffle its runs, to resume from, '
        'until the output is whole; on a filesystem that every worker reaches (default: .tokbeam '
        'beside the output)',
    )


def _add_shuffle(parser: Parser) -> None:
    group = parser.add_argument_group('shuffle', 'none of these changes a byte of output')
    group.add_argument(
        '--shuffle',
        choices=['auto', 'files', 'engine'],
        default='auto',
        help="files: sorted runs on disk, merged; engine: Beam's GroupByKey; auto: files locally "
        'and on Flink, else engine (default: auto)',
    )
    group.add_argument(
        '--buffer',
        type=byte_size,
        default=256 << 20,
        metavar='SIZE',
        help='memory of a worker for the runs that it sorts (default: 256MiB)',
    )
    group.add_argument(
        '--memory',
        type=byte_size,
        metavar='SIZE',
        help='memory of the whole job; buffers and threads are cut down to it (default: what is '
        'free, on a cluster no limit)',
    )


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number above 0')
    return int(text)


def columns(text: str) -> tuple[int, int]:
    """Two different column numbers, as `0,1`."""
    parts = text.split(',')
    if len(parts) != 2 or not all(each.isascii() and each.isdigit() for each in parts):
        raise argparse.ArgumentTypeError(f'{text!r} is not two 0-based columns, as 0,1')
    source, target = map(int, parts)
    if source == target:
        raise argparse.ArgumentTypeError(f'{text!r} names one column twice')
    return source, target


def min_count_range(text: str) -> tuple[int, int]:
    """Two min-counts, as `1:1000`."""
    parts = text.split(':')
    if len(parts) != 2 or not all(each.isascii() and each.isdigit() for each in parts):
        raise argparse.ArgumentTypeError(f'{text!r} is not two min-counts, as 1:1000')
    low, high = map(int, parts)
    if not 1 <= low <= high:
        raise argparse.ArgumentTypeError(f'{text!r} is not a range from 1 up')
    return low, high


def subtoken_length(text: str) -> int | None:
    """A whole number above 0, or `none`."""
    return None if text == 'none' else positive(text)


def byte_size(text: str) -> int:
    """A number of bytes, as `64`, `512KiB` or `12MiB`; units are powers of 1,024."""
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * _UNITS[match[2][:1].lower()] if match else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a size, as 12MiB')
    return size


def duration(text: str) -> float:
    """A time in seconds, as `90s`, `30min` or `12h`."""
    match = _TIME.fullmatch(text.strip())
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if seconds < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a time, as 90s, 30min or 12h')
    return float(seconds)


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
    beam_parser = _beam_parser() if own and strange else None
    if beam_parser is not None:
        # Before anything else is missed: what is missing may be what was mistyped.
        _check_names(strange, own, list(beam_parser._option_string_actions), arguments[0])
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None and not options.version:
        parser.print_help(sys.stderr)
        raise InputError('no command given: one of build, count, vocab, encode, tokenize, detokenize')
    if unknown:
        _check_values(unknown, beam_parser or _beam_parser(), options.command)
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


def _beam_parser() -> Parser:
    from apache_beam.options.pipeline_options import PipelineOptions

    beam_parser = Parser(prog='tokbeam', add_help=False)
    for options_class in PipelineOptions.__subclasses__():
        options_class._add_argparse_args(beam_parser)
    return beam_parser


def _check_names(
    strange: Sequence[str], own: Sequence[str], beam_names: Sequence[str], command: str
) -> None:
    for name in strange:
        if name in beam_names:
            continue
        near = difflib.get_close_matches(name, [*own, *beam_names], 1)
        hint = f'; did you mean {near[0]}?' if near else ''
        raise InputError(
            f'{command} has no option {name}, nor has Beam{hint} '
            '(what only a job server knows stands after --)'
        )


def _check_values(
    unknown: Sequence[str], beam_parser: Parser, command: str
) -> None:
    _, left = beam_parser.parse_known_args(list(unknown))
    if left:
        raise InputError(
            f'{left[0]!r} belongs to no option; see tokbeam {command} --help'
        )

