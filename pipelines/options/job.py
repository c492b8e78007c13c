"""The options of a job: the files of its corpus, how lines are read, and how it is run."""

import argparse
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from tokcore.corpus.corpus import MAX_LINE_BYTES
from tokcore.corpus.formats import CorpusFormat, all_formats, format_names
from tokcore.counts.weights import weight
from tokcore.errors import InputError
from tokcore.filters.registry import filter_forms, filter_list
from tokcore.options import (
    LARGEST_BLOCK,
    LARGEST_INT64,
    LARGEST_MEMORY,
    LARGEST_UINT64,
    MOST_SHARDS,
    MOST_WORKERS,
    NO_END,
    ByteSize,
    Declared,
    WholeNumber,
    dataset_name,
    declared,
    field_of,
    line_of_text,
    option,
    output_path,
    path,
    positive,
    shown,
    special_tokens,
    token_or_id,
    vocabulary_path,
    work_path,
)

OnError = Literal['stop', 'skip']
"""What is done at a line that cannot be used."""

LEAST_JOINED = 3
"""Ids of a joined row: those around a pair."""

LARGEST_PACKED = 1 << 22
"""Ids of a packed row: the arrays of one are written at once."""

_BLOCK_SIZE = ByteSize(LARGEST_BLOCK)

SPLITS = ('train', 'dev', 'test')

TAKE_ROWS_AWAY = ('dev_share', 'test_share', 'leave_out')
"""Options of a dataset without which the training corpus has more rows."""

PAIR_OF_FILES = ('source', 'target')
"""The roles of the two files of a pair, for which every split has an option."""

SHARD_FORMATS = {
    'tfrecord': 'pipelines.shard_formats.tfrecord:TfRecord',
    'text': 'pipelines.foreign_formats.text:Text',
    'parquet': 'pipelines.foreign_formats.parquet:Parquet',
    'megatron': 'pipelines.foreign_formats.id_streams:Megatron',
    'flat': 'pipelines.foreign_formats.id_streams:Flat',
    'nanogpt': 'pipelines.foreign_formats.id_streams:NanoGpt',
    'packed': 'pipelines.shard_formats.tfrecord:Packed',
    'joined': 'pipelines.shard_formats.tfrecord:Joined',
    'array_record': 'pipelines.foreign_formats.array_record:ArrayRecord',
}
"""What the shards of a dataset are, each with its class (`shard_formats.shard_format`), by name."""

TFRECORD, TEXT, NANOGPT, PACKED, JOINED = 'tfrecord', 'text', 'nanogpt', 'packed', 'joined'

STREAM_FORMATS = ('megatron', 'flat', NANOGPT)
"""What joins rows, one after another."""

CONVERTED_FORMATS = tuple(name for name in SHARD_FORMATS if name not in (TFRECORD, TEXT))
"""What `convert` makes of TFRecords; pieces, which text consists of, take the vocabulary."""

PairSide = Literal['inputs', 'targets', 'both']
"""The side of pairs that is counted, and that a vocabulary is for."""

_LIMIT = re.compile(r'([0-9]{1,18})|([0-9]{1,3}(?:\.[0-9]{1,6})?)%')


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """A dataset of a job file: its name, its format, and which of its rows are used.

    Attributes:
        name: in the manifest and in the names of rejected lines; required if a split has several.
        format: of its files.
        max_examples: use only this many rows, the first in the order of the files.
        source_prefix: is put before its source texts; None: the prefix of all datasets.
        target_prefix: is put before its target texts.
        clean: filters of its rows, in the order in which they act.
        weight: of its counts, where a vocabulary is learned.
    """

    name: str = option('name of the dataset', dataset_name, default='')
    format: str = option('format of its files', format_names())
    max_examples: int | None = option(
        'take this many examples, the first, {range}', WholeNumber(1, LARGEST_INT64), default=None
    )
    source_prefix: str | None = option('put before each source text', line_of_text, default=None)
    target_prefix: str | None = option('put before each target text', line_of_text, default=None)
    clean: tuple[str, ...] = option('filters of its rows, in this order', filter_list, default=())
    weight: str | None = option('weight of its counts, as 0.7 or 2x', weight, default=None)


def share_of_rows(word: str) -> str:
    """A share of rows, as `1%`; a kind of option. Returns the one spelling that manifests record."""
    match = _LIMIT.fullmatch(word)
    if not match or not match[2] or not 0 < Fraction(match[2]) < 100:
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a share of rows between 0% and 100%, as 1% or 0.5%'
        )
    return _percent(match)


def share_of_ids(word: str) -> str:
    """A share of ids from `0%` to `100%`; a kind of option."""
    match = _LIMIT.fullmatch(word)
    if not match or not match[2] or Fraction(match[2]) > 100:
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a share of ids from 0% to 100%, as 20% or 0.5%'
        )
    return _percent(match)


def _percent(match: re.Match[str]) -> str:
    whole, _, digits = match[2].partition('.')
    digits = digits.rstrip('0')
    return f'{int(whole)}{"." * bool(digits)}{digits}%'


def _share(split: str) -> Any:
    return option(
        f'cut this share of the rows off the training corpus as the {split} split, as 1%%: by a key '
        'of each row and --seed; the vocabulary is learned from the others',
        share_of_rows,
        'P%',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )


def overwrite_option() -> Any:
    """Returns the option by which a result replaces another."""
    return option('make the result again, replacing what is there', None, default=False)


def _prefix(help: str) -> Any:
    return option(help, line_of_text, 'P', default='', changes_bytes=True)


def pack_option(where: str) -> Any:
    """Returns the option of the length of packed and joined rows."""
    return option(
        f'with {where} packed: ids of a packed row at most, {{range}}; longer texts are cut, longer '
        f'pairs left out; with {where} joined: ids of a row, at least 3; longer pairs are cut',
        WholeNumber(1, LARGEST_PACKED),
        'LENGTH',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )


def check_pack(output_format: str, pack: int | None, flag: str) -> None:
    """Raises InputError if a length of rows is missing or too small, or is given for another format."""
    if (output_format in (PACKED, JOINED)) != (pack is not None):
        raise InputError(
            f'--pack LENGTH and {flag} {PACKED} or {JOINED} go together; give both, or none of them'
        )
    if output_format == JOINED and pack is not None and pack < LEAST_JOINED:
        raise InputError(
            f'--pack {pack} leaves no room for the {LEAST_JOINED} ids around a pair; give more'
        )


def one_shard(given: Mapping[str, object]) -> dict[str, object]:
    """Returns the number of shards of `nanogpt`; raises InputError if the user gives another."""
    if given.get('shards', 1) != 1:
        raise InputError(
            f'{NANOGPT} has one file for each split, and --shards {given["shards"]} asks for more; leave it '
            'out'
        )
    return {'shards': 1}


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """What the shards depend on, in addition to the corpus and the vocabularies."""

    name: str = option('name of the dataset, in its file names', dataset_name, changes_bytes=True)
    shards: int = option(
        'training shards, {range}; other splits have one (default: 10)',
        WholeNumber(1, MOST_SHARDS),
        'N',
        default=10,
        changes_bytes=True,
    )
    dev_share: str | None = _share('dev')
    test_share: str | None = _share('test')
    source_prefix: str = _prefix(
        'put before each source text; a reserved or special token of the vocabulary in it gets its id, '
        'as <2zh> in "<2zh> "'
    )
    target_prefix: str = _prefix('put before each target text, as --source-prefix')
    seed: int = option(
        'seed of the shuffle, {range} (default: 0)',
        WholeNumber(0, LARGEST_UINT64),
        'N',
        default=0,
        changes_bytes=True,
    )

    output_format: str = option(
        'what shards are: TFRecords of tf.train.Example; aligned text, one file for each side, '
        'pieces between blanks; Parquet with columns list<int32>; .bin and .idx of Megatron; flat, ids '
        'one after another as .npy without a header, with a .csv.gz of documents; nanogpt, likewise '
        'train.bin, and val.bin of the dev split, for nanoGPT; packed, TFRecords '
        "with several rows in each, of --pack ids; joined, TFRecords of --pack ids with BERT's "
        'input_ids, input_mask and segment_ids; or ArrayRecord, for grain (default: tfrecord)',
        tuple(SHARD_FORMATS),
        default='tfrecord',
        changes_bytes=True,
        unrecorded_default=True,
    )
    pack: int | None = pack_option('--output-format')
    leave_out: str | None = option(
        'leave out the rows of this list, with an address on each line, FILE:BYTE, as where --json gives it',
        path,
        'LIST',
        default=None,
    )

    @property
    def shares(self) -> dict[str, Fraction]:
        """The share of the rows of the training corpus that each split gets, if it gets one."""
        by_split = {'dev': self.dev_share, 'test': self.test_share}
        return {
            split: Fraction(share.removesuffix('%')) / 100
            for split, share in by_split.items()
            if share is not None
        }

    def shards_of(self, split: str) -> int:
        """Returns how many shards a split has."""
        return self.shards if split == 'train' else 1


@dataclass(frozen=True, kw_only=True)
class EndOptions:
    """What ends documents where rows are joined."""

    end: str | None = option(
        'the token, or its id, that follows each document in megatron, flat and nanogpt, and where rows are packed '
        "as they are read; none: nothing does (default: the vocabulary's)",
        token_or_id,
        'TOKEN|ID|none',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )

    @property
    def has_no_end(self) -> bool:
        """Whether documents are joined without an end."""
        return self.end == NO_END

    def check(self, output_format: str) -> None:
        """Raises InputError if an end does not go with a format."""
        if self.end is not None and output_format in (TEXT, PACKED, JOINED):
            raise InputError(
                f'{output_format} has rows as the template makes them; leave out --end'
            )


@dataclass(frozen=True, kw_only=True)
class DatasetOutput:
    """Where a dataset is written."""

    output: str = option('folder for the result', output_path, 'DIR')


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """How work is run, in addition to Beam's options."""

    workers: int | None = option(
        'work items in flight in a process, {range} (default: the cores that this process may '
        'use, 1 on a cluster)',
        WholeNumber(1, MOST_WORKERS),
        'N',
        default=None,
    )


@dataclass(frozen=True)
class RejectionLimit:
    """How many lines may be left out: a number, or a share of the lines read."""

    typed: str
    lines: int | None = None
    share: Fraction | None = None

    def __str__(self) -> str:
        return self.typed

    def is_passed(self, rejected: int, lines: int) -> bool:
        """Returns whether there are too many rejected lines, of those that were read."""
        if self.lines is not None:
            return rejected > self.lines
        assert self.share is not None
        return rejected > self.share * lines

    def error(self, reasons: Mapping[str, int], lines: int) -> InputError:
        """Returns the error of a job that rejected too many lines; `reasons` counts them."""
        by_count = sorted(reasons.items(), key=lambda item: -item[1])
        counts = ', '.join(f'{count} {reason}' for reason, count in by_count)
        return InputError(
            f'{sum(reasons.values())} of {lines} lines read could not '
            f'be used ({counts}), more than --on-error {self} allows; mend the files, or give more'
        )


def rejection_limit(on_error: str) -> RejectionLimit | None:
    """Returns how many lines a value of `--on-error` lets a job leave out; None: any number, or none."""
    if on_error in get_args(OnError):
        return None
    match = _LIMIT.fullmatch(on_error)
    if match and match[1]:
        return RejectionLimit(on_error, lines=int(match[1]))
    if match and Fraction(match[2]) <= 100:
        return RejectionLimit(on_error, share=Fraction(match[2]) / 100)
    raise argparse.ArgumentTypeError(
        f'{shown(on_error)} is not stop, skip, a number of lines, as 100, or a share, as 0.5%'
    )


def on_error(word: str) -> str:
    """What is done at a line that cannot be used; a kind of option."""
    rejection_limit(word)
    return word


@dataclass(frozen=True, kw_only=True)
class RunningOptions:
    """How a job is run; no byte of its results depends on these."""

    work: str | None = option(
        'where a learner on Beam keeps its rounds and the shuffle its runs, to resume from, '
        'until the output is whole, and what is fetched is kept; on a filesystem that every worker '
        'reaches (default: .tokbeam in the folder of the output)',
        work_path,
        'DIR',
        default=None,
    )
    overwrite: bool = overwrite_option()


@dataclass(frozen=True, kw_only=True)
class UnknownOptions:
    """How much of a text a vocabulary must know; no byte of a result depends on it."""

    max_unknown: str = option(
        'stop before any work if more of the ids in a sample of the text are unknown tokens, or bytes that '
        'become no id; a vocabulary learned from the same text is only warned of (default: 20%%)',
        share_of_ids,
        'P%',
        default='20%',
    )

    @property
    def unknown_share(self) -> Fraction:
        """The share of the ids that may be unknown."""
        return Fraction(self.max_unknown.removesuffix('%')) / 100


@dataclass(frozen=True, kw_only=True)
class LineOptions:
    """How files are read as lines; all results depend on these.

    A limit of `--on-error`, which is a number or a share until `CorpusReading` has it as `skip`, changes
    no byte.
    """

    max_line_bytes: int = option(
        'the longest line that is read, in bytes without its end, {range}; memory for 16 times as '
        'much may be needed (default: 16MiB)',
        _BLOCK_SIZE,
        'SIZE',
        default=MAX_LINE_BYTES,
        name='max-line-size',
        changes_bytes=True,
        unrecorded_default=True,
    )
    on_error: OnError = option(
        'at a line that is not UTF-8, lacks a column or is too long: stop, or skip: leave it out and '
        'keep it in rejected/SPLIT.REASON.jsonl; 100 or 0.5%% skips so many lines, or this share of '
        'those read, and stops once it is sure that there are more (default: stop)',
        on_error,
        'stop|skip|N|P%',
        default='stop',
        changes_bytes=True,
    )
    keep_rejected: bool = option(
        'keep what --clean drops too, in rejected/SPLIT.FILTER.jsonl',
        None,
        default=False,
        changes_bytes=True,
        unrecorded_default=True,
    )


def progress_option() -> Any:
    """Returns the option of how progress is shown."""
    return option(
        'how progress is shown: auto, a bar on a terminal and lines elsewhere; json, an object on each '
        'line of standard error; none, nothing but warnings and errors, and not what was made '
        '(default: auto)',
        ('auto', 'json', 'none'),
        default='auto',
    )


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """What the command does around a job, and what it prints."""

    progress: str = progress_option()
    print_job: bool = option(
        'print the job file that these options stand for, and do nothing', None, default=False
    )
    dry_run: bool = option(
        'open every input, read its first block, and print what would be read and written',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """What memory a job may take; no byte of the result depends on it."""

    memory_bytes: int | None = option(
        'memory of the whole job, locally no more than there is; buffers and threads are cut '
        'down to it, and a learner that needs more goes in rounds or on Beam (default: what is free, '
        'on a cluster no limit)',
        ByteSize(LARGEST_MEMORY),
        'SIZE',
        default=None,
        name='memory',
    )


def formats_with_options() -> list[type[CorpusFormat]]:
    """Returns the formats whose files options of a command can name."""
    return [kind for kind in all_formats() if not kind.is_in_job_files_only]


def training_files() -> type:
    """Returns a dataclass with the options for the files of a training corpus and for their formats.

    An option of a format that is not given is None: the format's default applies.
    """
    formats = formats_with_options()
    files: dict[str, Any] = {}
    by_field: dict[str, tuple[Declared, list[str]]] = {}
    for kind in formats:
        for role, help in zip(kind.roles, kind.help, strict=True):
            files[role] = paths_option(help)  # of several formats the last, which is the plainest
        for declaration in declared(kind):
            # Formats may share an option, which then goes with the files of any of them.
            first, roles = by_field.setdefault(declaration.field, (declaration, []))
            if first != declaration:
                raise ValueError(f'--{declaration.name} is declared in two ways')
            roles += [role.replace('_', '-') for role in kind.roles]
    clean = option(
        'filters of the rows, which act in this order (`tokbeam help filters` explains them): '
        f'{", ".join(filter_forms())} (default: none, or those of the job file)',
        filter_list,
        'A,B,…',
        default=None,
        changes_bytes=True,
    )
    fields = [
        *((role, tuple[str, ...], paths) for role, paths in files.items()),
        *(
            (name, object, _format_option(declaration, tuple(roles)))
            for name, (declaration, roles) in by_field.items()
        ),
        ('clean', tuple[str, ...] | None, clean),
    ]
    return dataclasses.make_dataclass('TrainingFiles', fields, frozen=True, kw_only=True)


def paths_option(help: str, metavar: str = 'PATH') -> Any:
    """Returns an option that takes several paths of inputs."""
    return option(help, path, metavar, default=(), many='words', reads=True)


@dataclass(frozen=True, kw_only=True)
class OtherFiles:
    """The files of the development and the test corpus."""

    dev: tuple[str, ...] = paths_option(
        'development corpus, of the same format as the training corpus and with the same options of it'
    )
    dev_source: tuple[str, ...] = paths_option('source side of the development corpus')
    dev_target: tuple[str, ...] = paths_option('target side of the development corpus')
    test: tuple[str, ...] = paths_option('test corpus, as --dev')
    test_source: tuple[str, ...] = paths_option('source side of the test corpus')
    test_target: tuple[str, ...] = paths_option('target side of the test corpus')


def _side_option() -> Any:
    help = 'which side of the pairs is counted (default: both)'
    return option(help, get_args(PairSide), default=None, changes_bytes=True)


@dataclass(frozen=True, kw_only=True)
class CountOptions:
    """What `count` counts, and where to."""

    counts: tuple[str, ...] = paths_option(
        'instead of text: add up folders of earlier counts', 'COUNTS'
    )
    pieces: bool = option(
        'count the pieces that codes make of the text, into a table `piece count`, and write '
        'their ids next to the codes: X.vocab next to X.codes',
        None,
        default=False,
    )
    vocab: str | None = option(
        'with --pieces: the codes', path, 'X.codes', default=None, goes_with=('pieces',)
    )
    special_tokens: tuple[str, ...] | None = option(
        'with --pieces: what has the first ids (default: <pad>,</s>,<unk>)',
        special_tokens,
        'A,B,…',
        default=None,
        goes_with=('pieces',),
    )
    vocabulary_threshold: int = option(
        'with --pieces: pieces that occur less often get no ids (default: 1; subword-nmt has this where '
        'text is encoded)',
        positive,
        'N',
        default=1,
        goes_with=('pieces',),
    )
    side: PairSide | None = _side_option()
    output: str = option('folder for the counts', output_path, 'COUNTS')


@dataclass(frozen=True, kw_only=True)
class VocabOptions:
    """What `vocab` learns from, and where to."""

    counts: tuple[str, ...] = paths_option(
        'instead of text: folders of `tokbeam count`, Parquet files with columns token and '
        'count, or text with a token and its count on a line; each may have a weight, as en=0.7, or a whole '
        'factor, as en=2x',
        'COUNTS[=W]',
    )
    parity: tuple[str, ...] = option(
        'for bytes of bpe: a development text of each of --counts, in their order; at each merge, the '
        'language whose text has the most pieces chooses the pair',
        path,
        'TEXT',
        default=(),
        many='words',
        goes_with=('counts',),
    )
    side: PairSide | None = _side_option()
    output: str = option('vocabulary file to write', vocabulary_path, 'FILE')


def _format_option(declaration: Declared, roles: tuple[str, ...]) -> Any:
    changed = dataclasses.replace(
        declaration.option,
        help=f'{declaration.help} (default: {declaration.option.default_help})',
        goes_with=roles,
        changes_bytes=True,
    )
    return field_of(changed, None)
