"""The options of a job: what its files are called, how lines are read, and how it is run."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

from pipelines.options.choices import OutputFormat
from pipelines.options.corpus_options import option_name
from pipelines.options.rejection_limits import RejectionLimit, rejection_limit
from tokcore.corpus.dataset import MAX_LINE_BYTES
from tokcore.corpus.formats.work_items import ITEM_BYTES
from tokcore.options.option_fields import option
from tokcore.options.values import (
    LARGEST_BLOCK,
    LARGEST_BUFFER,
    LARGEST_MEMORY,
    LARGEST_UINT64,
    MOST_SHARDS,
    MOST_WORKERS,
    ByteSize,
    WholeNumber,
    dataset_name,
    duration,
    line_of_text,
    output_path,
    vocabulary_path,
    work_path,
)

OnError = Literal['stop', 'skip']
ShuffleMethod = Literal['auto', 'files', 'engine']

BUFFER_BYTES = 256 << 20
"""Two runs of half of it are in memory at once, one that is filled and one that is written. With
half there are twice as many range reads; twice as much sorts no faster."""

_BLOCK_SIZE = ByteSize(LARGEST_BLOCK)


def _shards(help: str, default: int) -> dataclasses.Field:
    return option(
        f'{help}, {{range}} (default: {default})',
        WholeNumber(1, MOST_SHARDS),
        'N',
        default=default,
        changes_bytes=True,
    )


def _prefix(help: str) -> dataclasses.Field:
    return option(help, line_of_text, 'P', default='', changes_bytes=True)


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """What the shards depend on, beside what is read and the vocabularies."""

    name: str = option('name of the dataset, in its file names', dataset_name, changes_bytes=True)
    shards: int = _shards('training shards', 10)
    dev_shards: int = _shards('dev shards', 1)
    test_shards: int = _shards('test shards', 1)
    source_prefix: str = _prefix('put before each source text')
    target_prefix: str = _prefix('put before each target text')
    seed: int = option(
        'of the shuffle, {range} (default: 0)',
        WholeNumber(0, LARGEST_UINT64),
        'N',
        default=0,
        changes_bytes=True,
    )

    output_format: OutputFormat = option(
        'what shards are: TFRecords of tf.train.Example; aligned text, one file for each side, '
        'pieces between blanks; or Parquet with columns list<int32> (default: tfrecord)',
        get_args(OutputFormat),
        default='tfrecord',
        changes_bytes=True,
        unrecorded_default=True,
    )

    def shards_of(self, split: str) -> int:
        """Returns how many shards a split has."""
        return getattr(self, option_name(split, 'shards'))


@dataclass(frozen=True, kw_only=True)
class DatasetOutput:
    """Where a dataset goes."""

    output: str = option('folder for the result', output_path, 'DIR', after='name')


@dataclass(frozen=True, kw_only=True)
class CountsOutput:
    """Where counts go."""

    output: str = option('folder for the counts', output_path, 'COUNTS')


@dataclass(frozen=True, kw_only=True)
class VocabularyOutput:
    """Where a vocabulary goes."""

    output: str = option('vocabulary file to write', vocabulary_path, 'FILE')


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """What of the engine is not Beam's."""

    workers: int | None = option(
        'work items in flight in a process, {range} (default: the cores that this process may '
        'use, 1 on a cluster)',
        WholeNumber(1, MOST_WORKERS),
        'N',
        default=None,
    )
    deadline: float | None = option(
        'cancel a pipeline that takes longer, as 90s, 30min or 12h, up to 10,000h; not for the '
        'local engine, which cannot cancel (default: none)',
        duration,
        'TIME',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class RunningOptions:
    """How a job is run; no byte of its results depends on it."""

    item_bytes: int = option(
        'bytes of text in a work item, as 8MiB, {range}; changes no output (default: 8MiB)',
        _BLOCK_SIZE,
        'SIZE',
        default=ITEM_BYTES,
        name='item-size',
        after='workers',
    )
    max_rejected: RejectionLimit | None = option(
        'with --on-error=skip: end the job once it is sure that more lines are left out, as 100, or '
        '0.5%% of those read (default: no limit)',
        rejection_limit,
        'N|P%%',
        default=None,
    )
    overwrite: bool = option(
        'make the result again, replacing what is there', None, default=False
    )


@dataclass(frozen=True, kw_only=True)
class TryingOptions:
    """What is told in place of a job's work."""

    print_job: bool = option(
        'print the job file that these options stand for, and do nothing', None, default=False
    )
    dry_run: bool = option(
        'open every input, read its first block, and print what would be read and written',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class TellingOptions:
    """What is told while a job runs."""

    quiet: bool = option(
        'tell nothing but warnings and errors: no progress, and not what was made',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class LineOptions:
    """How files are read as lines, on which all results depend."""

    max_line_bytes: int = option(
        'the longest line that is read, in bytes without its end, {range}; memory for 16 times as '
        'much may be needed (default: 16MiB)',
        _BLOCK_SIZE,
        'SIZE',
        default=MAX_LINE_BYTES,
        name='max-line-size',
        changes_bytes=True,
        unrecorded_default=True,
        after='item-size',
    )
    on_error: OnError = option(
        'at a line that is not UTF-8, lacks a column or is too long: stop, or leave it out and '
        'keep it in rejected/SPLIT.REASON.jsonl (default: stop)',
        get_args(OnError),
        default='stop',
        changes_bytes=True,
        after='deadline',
    )
    keep_rejected: bool = option(
        'keep what --clean drops too, in rejected/SPLIT.FILTER.jsonl',
        None,
        default=False,
        changes_bytes=True,
        unrecorded_default=True,
        after='on-error',
    )


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """Where what survives a killed run is kept."""

    work: str | None = option(
        'where a learner on Beam keeps its rounds and the shuffle its runs, to resume from, '
        'until the output is whole, and what is fetched is kept; on a filesystem that every worker '
        'reaches (default: .tokbeam beside the output)',
        work_path,
        'DIR',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """What may be had from elsewhere."""

    fetch: bool = option(
        'fetch inputs that are http:// or https:// addresses, once, into the work folder; behind '
        'one #sha256=HEX may stand, which what comes must have',
        None,
        default=False,
        after='on-error',
    )


@dataclass(frozen=True, kw_only=True)
class ShuffleOptions:
    """How examples are shuffled; no byte of them depends on it."""

    shuffle: ShuffleMethod = option(
        "files: sorted runs on disk, merged; engine: Beam's GroupByKey; auto: files locally "
        'and on Flink, else engine (default: auto)',
        get_args(ShuffleMethod),
        default='auto',
    )
    buffer_bytes: int = option(
        'memory of a worker for the runs that it sorts, {range} (default: 256MiB)',
        ByteSize(LARGEST_BUFFER),
        'SIZE',
        default=BUFFER_BYTES,
        name='buffer',
    )
    memory_bytes: int | None = option(
        'memory of the whole job, locally no more than there is; buffers and threads are cut '
        'down to it (default: what is free, on a cluster no limit)',
        ByteSize(LARGEST_MEMORY),
        'SIZE',
        default=None,
        name='memory',
    )
