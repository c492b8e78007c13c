"""The options that commands share, in the groups in which their help tells them."""

import argparse
from collections.abc import Callable, Sequence
from typing import get_args

from pipelines.options.choices import (
    MinCountSearch,
    PairSide,
    SubstringCounting,
    WantedLearner,
)
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
    work_path,
)
from tokcore.corpus.formats.registry import all_formats
from tokcore.schemes import DEFAULT_SCHEME, scheme_names

_SHARDS = WholeNumber(1, MOST_SHARDS)
_WORKERS = WholeNumber(1, MOST_WORKERS)
_SEED = WholeNumber(0, LARGEST_UINT64)
_BLOCK_SIZE = ByteSize(LARGEST_BLOCK)
_BUFFER_SIZE = ByteSize(LARGEST_BUFFER)
_MEMORY_SIZE = ByteSize(LARGEST_MEMORY)

Options = Parser | argparse._ArgumentGroup


def add_option(
    options: Options, name: str, kind: Callable[[str], object], shown: str | None, what: str, **more
) -> None:
    """Adds an option with a value: what makes it of a word, and how the help shows it."""
    options.add_argument(name, type=kind, metavar=shown, help=what, **more)


def add_paths(options: Options, name: str, shown: str, what: str) -> None:
    """Adds an option that takes several paths, and more if it is repeated."""
    add_option(options, name, path, shown, what, nargs='+', action='extend')


def add_choice(options: Options, name: str, choices: Sequence[str], what: str) -> None:
    """Adds an option with one of several words; the first is the default."""
    options.add_argument(name, choices=choices, default=choices[0], help=what)


def add_corpus(parser: Parser, all_splits: bool) -> None:
    titles = {'train': 'training corpus', 'dev': 'development corpus', 'test': 'test corpus'}
    formats = all_formats()
    *others, last = [each.what for each in formats]
    for split in titles if all_splits else ('train',):
        prefix = '' if split == 'train' else f'{split}-'
        group = parser.add_argument_group(titles[split], f'one of: {", ".join(others)}, or {last}')
        for each in formats:
            for role, what in zip(each.roles, each.help, strict=True):
                add_paths(group, f'--{prefix}{role}', 'PATH', what)
        default = '0,1' if split == 'train' else "the training corpus's"
        what = f'0-based columns of source and target, up to {MOST_COLUMN:,} (default: {default})'
        add_option(group, f'--{prefix}columns', columns, 'S,T', what)


def add_scheme(parser: Parser, default: str | None = DEFAULT_SCHEME) -> None:
    """Adds `--scheme`; without a default, a vocabulary's record says which one it is."""
    told = default or f"the one recorded beside the vocabulary, else {DEFAULT_SCHEME}"
    parser.add_argument(
        '--scheme',
        choices=scheme_names(),
        default=default,
        help=f'how text becomes ids (default: {told})',
    )


def add_side(parser: Parser) -> None:
    parser.add_argument(
        '--side',
        choices=get_args(PairSide),
        help='which side of the pairs is counted (default: both)',
    )


def add_dataset(parser: Parser) -> None:
    group = parser.add_argument_group('dataset')
    what = 'name of the dataset, in its file names'
    add_option(group, '--name', dataset_name, None, what, required=True)
    add_option(group, '--output', output_path, 'DIR', 'folder for the result', required=True)
    what = f'training shards, {_SHARDS} (default: 10)'
    add_option(group, '--shards', _SHARDS, 'N', what, default=10)
    for split in ('dev', 'test'):
        what = f'{split} shards, {_SHARDS} (default: 1)'
        add_option(group, f'--{split}-shards', _SHARDS, 'N', what, default=1)
    add_option(group, '--source-prefix', text, 'P', 'put before each source text', default='')
    add_option(group, '--target-prefix', text, 'P', 'put before each target text', default='')
    what = f'of the shuffle, {_SEED} (default: 0)'
    add_option(group, '--seed', _SEED, 'N', what, default=0)


def add_vocabulary(parser: Parser) -> None:
    group = parser.add_argument_group('vocabulary')
    what = f'entries to aim for, {positive}'
    add_option(group, '--vocab-size', positive, 'N', what, required=True)
    what = (
        "t2t: Tensor2Tensor's path over min-counts; closest: the size nearest to the target "
        '(default: t2t)'
    )
    add_choice(group, '--search', get_args(MinCountSearch), what)
    what = (
        'min-counts to search between, from 1 to '
        f'{said(LARGEST_INT64)} (default: 1:1000, and beyond where that is too low; giving 1:1000 '
        'forbids going beyond)'
    )
    add_option(group, '--min-count-range', min_count_range, 'LOW:HIGH', what)
    what = f'subtokens stay shorter than this many characters, {positive} (default: 200)'
    add_option(group, '--max-subtoken-length', subtoken_length, 'N|none', what, default=200)
    what = 'give X an id of its own, from 2 on; may be repeated'
    add_option(group, '--reserved-token', text, 'X', what, action='append', default=[])
    what = (
        'memory: in this process; beam: on the workers; auto: in memory where it fits '
        '(default: auto)'
    )
    add_choice(group, '--learner', get_args(WantedLearner), what)
    what = (
        'how a learner on Beam counts: packed tables of suffixes, or each substring, which is '
        'slow and the reference (default: packed)'
    )
    add_choice(group, '--substring-counting', get_args(SubstringCounting), what)


def add_running(parser: Parser) -> None:
    group = parser.add_argument_group('running')
    what = (
        f'work items in flight in a process, {_WORKERS} (default: the cores that this process '
        'may use, 1 on a cluster)'
    )
    add_option(group, '--workers', _WORKERS, 'N', what)
    what = (
        f'bytes of text in a work item, as 8MiB, {_BLOCK_SIZE}; changes no output (default: '
        '8MiB)'
    )
    add_option(group, '--item-size', _BLOCK_SIZE, 'SIZE', what, default=8 << 20)
    what = (
        f'the longest line that is read, in bytes without its end, {_BLOCK_SIZE}; memory for '
        '16 times as much may be needed (default: 16MiB)'
    )
    add_option(group, '--max-line-size', _BLOCK_SIZE, 'SIZE', what, default=16 << 20)
    what = (
        'cancel a pipeline that takes longer, as 90s, 30min or 12h, up to 10,000h; not for '
        'the local engine, which cannot cancel (default: none)'
    )
    add_option(group, '--deadline', duration, 'TIME', what)
    what = (
        'at a line that is not UTF-8, lacks a column or is too long: stop, or leave it out and '
        'keep it in rejected/SPLIT.REASON.jsonl (default: stop)'
    )
    add_choice(group, '--on-error', ['stop', 'skip'], what)
    group.add_argument(
        '--overwrite', action='store_true', help='make the result again, replacing what is there'
    )


def add_work(parser: Parser) -> None:
    what = (
        'where a learner on Beam keeps its rounds and the shuffle its runs, to resume from, '
        'until the output is whole; on a filesystem that every worker reaches (default: .tokbeam '
        'beside the output)'
    )
    add_option(parser, '--work', work_path, 'DIR', what)


def add_shuffle(parser: Parser) -> None:
    group = parser.add_argument_group('shuffle', 'none of these changes a byte of output')
    what = (
        "files: sorted runs on disk, merged; engine: Beam's GroupByKey; auto: files locally "
        'and on Flink, else engine (default: auto)'
    )
    add_choice(group, '--shuffle', ['auto', 'files', 'engine'], what)
    what = f'memory of a worker for the runs that it sorts, {_BUFFER_SIZE} (default: 256MiB)'
    add_option(group, '--buffer', _BUFFER_SIZE, 'SIZE', what, default=256 << 20)
    what = (
        'memory of the whole job, locally no more than there is; buffers and threads are cut '
        'down to it (default: what is free, on a cluster no limit)'
    )
    add_option(group, '--memory', _MEMORY_SIZE, 'SIZE', what)
