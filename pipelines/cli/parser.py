"""The shape of the `tokbeam` command: its subcommands, their options and their help."""

import argparse
import sys
from collections.abc import Sequence

from pipelines.options.strict_parser import Parser
from pipelines.options.values import (
    LARGEST_BLOCK,
    LARGEST_BUFFER,
    LARGEST_INT64,
    LARGEST_MEMORY,
    LARGEST_UINT64,
    MOST_COLUMN,
    MOST_SHARDS,
    MOST_WORKERS,
    ByteSize,
    WholeNumber,
    columns,
    dataset_name,
    duration,
    min_count_range,
    output_path,
    path,
    positive,
    said,
    subtoken_length,
    text,
    vocabulary_path,
    work_path,
)
from tokcore.errors import InputError

_SHARDS = WholeNumber(1, MOST_SHARDS)
_WORKERS = WholeNumber(1, MOST_WORKERS)
_SEED = WholeNumber(0, LARGEST_UINT64)
_BLOCK_SIZE = ByteSize(LARGEST_BLOCK)
_BUFFER_SIZE = ByteSize(LARGEST_BUFFER)
_MEMORY_SIZE = ByteSize(LARGEST_MEMORY)

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
        type=path,
        nargs='+',
        action='extend',
        metavar='COUNTS',
        help='instead of text: add up folders of earlier counts',
    )
    _add_side(count)
    count.add_argument(
        '--output', type=output_path, required=True, metavar='COUNTS', help='folder for the counts'
    )
    _add_running(count)

    vocab = _command(commands, 'vocab', 'learn a vocabulary, from text or from counts')
    _add_corpus(vocab, all_splits=False)
    vocab.add_argument(
        '--counts',
        type=path,
        nargs='+',
        action='extend',
        metavar='COUNTS',
        help='instead of text: folders of `tokbeam count`, Parquet files with columns token and '
        'count, or text with a token and its count on a line',
    )
    _add_side(vocab)
    _add_vocabulary(vocab)
    vocab.add_argument(
        '--output',
        type=vocabulary_path,
        required=True,
        metavar='FILE',
        help='vocabulary file to write',
    )
    _add_running(vocab)
    _add_work(vocab)

    encode = _command(commands, 'encode', 'encode a corpus with vocabularies that exist')
    _add_corpus(encode, all_splits=True)
    for side, what in [
        ('', 'all sides'),
        ('source-', 'the source side'),
        ('target-', 'the target side'),
    ]:
        encode.add_argument(
            f'--{side}vocab', type=path, metavar='FILE', help=f'vocabulary of {what}'
        )
    _add_dataset(encode)
    _add_running(encode)
    _add_work(encode)
    _add_shuffle(encode)

    tokenize = _command(commands, 'tokenize', 'lines of text on stdin to lines of ids on stdout')
    _add_filter_vocabulary(tokenize)
    tokenize.add_argument('--eos', action='store_true', help='end each line with id 1')
    detokenize = _command(commands, 'detokenize', 'lines of ids on stdin to text on stdout')
    detokenize.epilog = _DETOKENIZE_EPILOG
    _add_filter_vocabulary(detokenize)
    return parser


def _command(commands, name: str, summary: str) -> Parser:
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + '.',
        epilog=_EPILOG if name not in ('tokenize', 'detokenize') else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_filter_vocabulary(parser: Parser) -> None:
    parser.add_argument(
        '--vocab', type=path, required=True, metavar='FILE', help='vocabulary file'
    )


def _add_corpus(parser: Parser, all_splits: bool) -> None:
    for split in ('train', 'dev', 'test') if all_splits else ('train',):
        prefix = '' if split == 'train' else f'{split}-'
        titles = {'train': 'training corpus', 'dev': 'development corpus', 'test': 'test corpus'}
        group = parser.add_argument_group(
            titles[split], 'one of: two aligned files, tab-separated columns, or plain lines'
        )
        for role, what in [
            ('source', 'source side of bitext, a sentence a line'),
            ('target', 'target side, the same number of files and of lines'),
            ('tsv', 'pairs in tab-separated columns'),
            ('text', 'text without a source side'),
        ]:
            group.add_argument(
                f'--{prefix}{role}',
                type=path,
                nargs='+',
                action='extend',
                metavar='PATH',
                help=what,
            )
        group.add_argument(
            f'--{prefix}columns',
            type=columns,
            metavar='S,T',
            help=f'0-based columns of source and target, up to {MOST_COLUMN:,} (default: '
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
    group.add_argument(
        '--name', type=dataset_name, required=True, help='name of the dataset, in its file names'
    )
    group.add_argument(
        '--output', type=output_path, required=True, metavar='DIR', help='folder for the result'
    )
    group.add_argument(
        '--shards',
        type=_SHARDS,
        default=10,
        metavar='N',
        help=f'training shards, {_SHARDS} (default: 10)',
    )
    for split in ('dev', 'test'):
        group.add_argument(
            f'--{split}-shards',
            type=_SHARDS,
            default=1,
            metavar='N',
            help=f'{split} shards, {_SHARDS} (default: 1)',
        )
    group.add_argument(
        '--source-prefix', type=text, default='', metavar='P', help='put before each source text'
    )
    group.add_argument(
        '--target-prefix', type=text, default='', metavar='P', help='put before each target text'
    )
    group.add_argument(
        '--seed',
        type=_SEED,
        default=0,
        metavar='N',
        help=f'of the shuffle, {_SEED} (default: 0)',
    )


def _add_vocabulary(parser: Parser) -> None:
    group = parser.add_argument_group('vocabulary')
    group.add_argument(
        '--vocab-size',
        type=positive,
        required=True,
        metavar='N',
        help=f'entries to aim for, {positive}',
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
        help='min-counts to search between, from 1 to '
        f'{said(LARGEST_INT64)} (default: 1:1000, and beyond where that is too low; giving 1:1000 '
        'forbids going beyond)',
    )
    group.add_argument(
        '--max-subtoken-length',
        type=subtoken_length,
        default=200,
        metavar='N|none',
        help=f'subtokens stay shorter than this many characters, {positive} (default: 200)',
    )
    group.add_argument(
        '--reserved-token',
        type=text,
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
        type=_WORKERS,
        metavar='N',
        help=f'work items in flight in a process, {_WORKERS} (default: the cores that this process '
        'may use, 1 on a cluster)',
    )
    group.add_argument(
        '--item-size',
        type=_BLOCK_SIZE,
        default=8 << 20,
        metavar='SIZE',
        help=f'bytes of text in a work item, as 8MiB, {_BLOCK_SIZE}; changes no output (default: '
        '8MiB)',
    )
    group.add_argument(
        '--max-line-size',
        type=_BLOCK_SIZE,
        default=16 << 20,
        metavar='SIZE',
        help=f'the longest line that is read, in bytes without its end, {_BLOCK_SIZE}; memory for '
        '16 times as much may be needed (default: 16MiB)',
    )
    group.add_argument(
        '--deadline',
        type=duration,
        metavar='TIME',
        help='cancel a pipeline that takes longer, as 90s, 30min or 12h, up to 10,000h; not for '
        'the local engine, which cannot cancel (default: none)',
    )
    group.add_argument(
        '--on-error',
        choices=['stop', 'skip'],
        default='stop',
        help='at a line that is not UTF-8, lacks a column or is too long: stop, or leave it out and '
        'keep it in rejected/SPLIT.REASON.jsonl (default: stop)',
    )
    group.add_argument(
        '--overwrite', action='store_true', help='make the result again, replacing what is there'
    )


def _add_work(parser: Parser) -> None:
    parser.add_argument(
        '--work',
        type=work_path,
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
        type=_BUFFER_SIZE,
        default=256 << 20,
        metavar='SIZE',
        help=f'memory of a worker for the runs that it sorts, {_BUFFER_SIZE} (default: 256MiB)',
    )
    group.add_argument(
        '--memory',
        type=_MEMORY_SIZE,
        metavar='SIZE',
        help='memory of the whole job, locally no more than there is; buffers and threads are cut '
        'down to it (default: what is free, on a cluster no limit)',
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
