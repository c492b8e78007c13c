"""The options of the commands of a finished folder: those that look at it, `convert` and `index`."""

import argparse
from dataclasses import dataclass
from typing import Any

from pipelines.options.job import (
    CONVERTED_FORMATS,
    SPLITS,
    overwrite_option,
    pack_option,
    progress_option,
    share_of_rows,
)
from tokcore.options import (
    LARGEST_INT64,
    LARGEST_UINT64,
    MOST_SHARDS,
    MOST_WORKERS,
    WholeNumber,
    option,
    output_path,
    path,
    shown,
    text,
    work_path,
)

_HASH_DIGITS = 64


def root(word: str) -> str:
    """A root hash, as `build` prints it; a kind of option."""
    digits = word.strip().lower()
    if len(digits) != _HASH_DIGITS or set(digits) - set('0123456789abcdef'):
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a root, which has {_HASH_DIGITS} hexadecimal digits'
        )
    return digits


def share_or_all(word: str) -> str:
    """A share of rows, as `1%`, or `all`; a kind of option."""
    return word if word == 'all' else share_of_rows(word)


ALL_CACHES = 'all'


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """What `cache` deletes."""

    delete: str | None = option(
        'delete these instead of listing all; a later run makes or copies anew what it needs',
        ('kernels', 'vocabularies', 'datasets', ALL_CACHES),
        default=None,
    )


def _quiet_option() -> Any:
    """Returns the option that hides progress, so that only what was asked for is printed."""
    return option('show no progress', None, default=False)


@dataclass(frozen=True, kw_only=True)
class ReportingOptions:
    """How a command that looks at something reports."""

    json: bool = option('print JSON instead of text for readers', None, default=False)
    quiet: bool = _quiet_option()
    progress: str = progress_option()


def _workers_option() -> Any:
    return option(
        'files or work items that are read at once, {range} (default: the cores that this process '
        'may use)',
        WholeNumber(1, MOST_WORKERS),
        'N',
        default=None,
    )


def _work_option() -> Any:
    return option(
        'where workers leave what they find in the corpus, until the page is made; on a filesystem that '
        'every worker reaches (default: on this machine a folder for temporary files, else that of the '
        'dataset)',
        work_path,
        'DIR',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class LookingOptions(ReportingOptions):
    """How a command that looks at all of something works, and how it reports."""

    workers: int | None = _workers_option()


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """What `convert` makes of a dataset, where to, and how."""

    to: str = option('the format, as --output-format of build has it', CONVERTED_FORMATS)
    pack: int | None = pack_option('--to')
    output: str = option('folder for the result', output_path, 'DIR')
    workers: int | None = _workers_option()
    overwrite: bool = overwrite_option()
    quiet: bool = _quiet_option()
    progress: str = progress_option()


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """What `index` writes beside the shards."""

    corpus_order: bool = option(
        "write the order of the corpus too, for batches with shuffle='corpus'; the corpus is read once",
        None,
        default=False,
    )
    workers: int | None = _workers_option()
    quiet: bool = _quiet_option()
    progress: str = progress_option()


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """What `verify` proves, besides that the files are those of the manifest."""

    rerun: str | None = option(
        'make this share of the rows again from the corpus, as 1%%, or all, and compare them byte for '
        'byte; the corpus is read once for it',
        share_or_all,
        'P%|all',
        default=None,
    )
    seed: int = option(
        'with --rerun: of the rows that are taken, {range} (default: 0)',
        WholeNumber(0, LARGEST_UINT64),
        'N',
        default=0,
    )
    root: str | None = option(
        'the root that the dataset must have, as the end of a build prints it',
        root,
        'HEX',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class MakingOptions:
    """Where the job that made a dataset is written."""

    job: str | None = option(
        'the job file of the dataset (default: the job that its last run recorded beside it)',
        path,
        'JOB.toml',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """Which rows `where` is asked for."""

    row: int | None = option(
        'the row of a split by its number in all shards, from 0',
        WholeNumber(0, LARGEST_INT64),
        'N',
        default=None,
    )
    shard: int | None = option(
        'with --record: the number of the shard, from 0',
        WholeNumber(0, MOST_SHARDS),
        'S',
        default=None,
        goes_with=('record',),
    )
    record: int | None = option(
        'the record of a shard by its number, from 0',
        WholeNumber(0, LARGEST_INT64),
        'R',
        default=None,
        goes_with=('shard',),
    )
    text: str | None = option(
        'the rows whose text has these words on a side', text, 'WORDS', default=None
    )
    input: str | None = option(
        'the rows that were made of this line of an input, from 1 (of Parquet, the row from 0)',
        path,
        'FILE:LINE',
        default=None,
    )
    split: str = option('the split (default: train)', SPLITS, default='train')
    head: int = option(
        'with --text: show this many rows, {range} (default: 10)',
        WholeNumber(1, 1_000_000),
        'N',
        default=10,
    )


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Which entries `inspect` shows, and how."""

    head: int = option(
        'show this many entries, the first, {range} (default: 10)',
        WholeNumber(1, LARGEST_INT64),
        'N',
        default=10,
    )
    sample: int | None = option(
        'show this many entries, drawn by --seed from all, {range}',
        WholeNumber(1, 1_000_000),
        'N',
        default=None,
    )
    seed: int = option(
        'of the sample, {range} (default: 0)', WholeNumber(0, LARGEST_UINT64), 'N', default=0
    )
    find: str | None = option(
        'show only entries whose text, or a piece of it, has these words',
        text,
        'WORDS',
        default=None,
    )
    stats: bool = option('tell numbers of all entries instead', None, default=False)
    split: str | None = option('of a dataset: this split (default: all)', SPLITS, default=None)
    vocab: str | None = option(
        'the vocabulary of the ids, where it is not in the folder', path, 'FILE', default=None
    )


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What `report` reads beside the shards."""

    corpus: bool | None = option(
        'read the corpus once too, for the proof of the shuffle, the datasets of a split, and the text of '
        'all rows (default: if the inputs that the last run recorded are still there)',
        None,
        default=None,
    )
    vocab: str | None = option(
        'the vocabulary of the ids, or that of the inputs, where it is not in the folder',
        path,
        'FILE',
        default=None,
    )
    target_vocab: str | None = option(
        'likewise that of the targets, where they have one of their own', path, 'FILE', default=None
    )
    work: str | None = _work_option()


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What `compare` reads beside the shards."""

    corpus: bool | None = option(
        "read the corpora of both too, by the jobs that their last runs recorded: see report's --corpus",
        None,
        default=None,
    )
    work: str | None = _work_option()


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """What only the owner of a dataset knows of it."""

    licence: str | None = option(
        'the licence, as hubs name it: cc-by-4.0 (default: the card has none)',
        text,
        'ID',
        default=None,
    )
