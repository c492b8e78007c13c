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


def _workers_option() -> Any:
    return option(
        'files or work items that are read at once, {range} (default: the cores that this process '
        'may use)',
        WholeNumber(1, MOST_WORKERS),
        'N',
        default=None,
    )


def _job_option() -> Any:
    return option(
        'the job file of the dataset (default: the job that its last run recorded in the folder)',
        path,
        'JOB.toml',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """What `convert` makes of a dataset, where to, and how."""

    to: str = option('the format, as --output-format of build has it', CONVERTED_FORMATS, 'FORMAT')
    pack: int | None = pack_option('--to')
    output: str = option('folder for the result', output_path, 'DIR')
    workers: int | None = _workers_option()
    overwrite: bool = overwrite_option()
    progress: str = progress_option()


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """What `update` adds to a dataset in addition to files, what it removes, and where the result goes."""

    job: str | None = option(
        'a job file with the datasets that are added, after all that are there',
        path,
        'JOB.toml',
        default=None,
    )
    remove: str | None = option(
        'remove the rows of this list, with an address on each line, FILE:BYTE, as where --json gives it',
        path,
        'LIST',
        default=None,
    )
    output: str = option('folder for the result', output_path, 'DIR')
    workers: int | None = _workers_option()
    overwrite: bool = overwrite_option()
    progress: str = progress_option()


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """What `index` writes next to the shards."""

    job: str | None = _job_option()
    workers: int | None = _workers_option()
    progress: str = progress_option()


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """What `card` prints."""

    croissant: bool = option(
        'print the card for programs, as Croissant 1.1: files, sources with sizes and dates, the root, and '
        'sentences for you to replace',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class ReportingOptions:
    """How a command that looks at something reports."""

    json: bool = option('print JSON instead of text for readers', None, default=False)
    progress: str = progress_option()


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """What `verify` proves, in addition to the files being those of the manifest."""

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
    job: str | None = _job_option()
    workers: int | None = _workers_option()


@dataclass(frozen=True, kw_only=True)
class WhereOptions:
    """Which rows `where` looks for, if there is no address."""

    text: str | None = option(
        'the rows whose text has these words on a side', text, 'WORDS', default=None
    )
    split: str = option('the split (default: train)', SPLITS, default='train')
    head: int = option(
        'with --text: show this many rows, {range} (default: 10)',
        WholeNumber(1, 1_000_000),
        'N',
        default=10,
    )
    job: str | None = _job_option()
    workers: int | None = _workers_option()


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Which entries `inspect` shows, and how."""

    head: int = option(
        'show this many entries, {range}; 0 shows numbers of all entries instead (default: 10)',
        WholeNumber(0, LARGEST_INT64),
        'N',
        default=10,
    )
    seed: int | None = option(
        'draw the entries from all of them, by this number, {range} (default: the first are shown)',
        WholeNumber(0, LARGEST_UINT64),
        'N',
        default=None,
    )
    split: str | None = option('the split of a dataset (default: all)', SPLITS, default=None)
    vocab: str | None = option(
        'the vocabulary of the ids of a file of TFRecords: a file, or the folder of a dataset',
        path,
        'FILE',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """What `report` and `compare` read in addition to the shards."""

    corpus: bool | None = option(
        'read the corpus once too, by the job of the last run, for the proof of the shuffle, the '
        'datasets of a split, and the text of all rows (default: if its inputs are still there)',
        None,
        default=None,
    )
    work: str | None = option(
        'where workers leave what they find in the corpus, until the page is made; on a filesystem that '
        'every worker reaches (default: on this machine a folder for temporary files, else that of the '
        'dataset)',
        work_path,
        'DIR',
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class ReportOptions(CorpusOptions):
    """What `report` reads in addition to the shards."""

    job: str | None = _job_option()


@dataclass(frozen=True, kw_only=True)
class CompareOptions(CorpusOptions):
    """What `compare` reads in addition to the shards."""

    common_text: str | None = option(
        'a text that both cut, of which the first 4 MiB are used (default: the first rows of both datasets)',
        path,
        'FILE',
        default=None,
    )
