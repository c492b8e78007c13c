"""Where in the corpus rows of a dataset come from, and which rows lines of the corpus became.

All of it follows from the order keys of one pass over the split: the n-th key is that of the n-th row,
and a key gives the file and the byte.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.shard_formats.tfrecord import Packed
from pipelines.trust.corpus_rows import CorpusRows, DatasetCorpus, RowPlace, Take, nothing, planned
from pipelines.trust.rerun import refuse_other_job
from pipelines.trust.stored_rows import PackedPlaces, Segment, StoredRows
from tokcore.corpus.corpus import Block, Rows
from tokcore.corpus.order_keys import shard_of
from tokcore.encoding.vocabulary import spelled_ids
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.records.manifest import Manifest, shard_name
from tokcore.text.rows import Side


@dataclass(frozen=True)
class Wanted:
    """The rows that are asked for; one of the fields other than `split` is set.

    Attributes:
        split: its name.
        rows: the numbers of rows in all shards of the split.
        record: a shard's number, and a record's in it.
        text: words that the text of a row has, on any side.
        input: a file of the corpus, and a line of it.
    """

    split: str
    rows: tuple[int, ...] | None = None
    record: tuple[int, int] | None = None
    text: str | None = None
    input: tuple[str, int] | None = None


@dataclass(frozen=True)
class FoundRow:
    """A row, in the dataset and in the corpus.

    Attributes:
        split: its name.
        row: its number in all shards of the split.
        shard: the name of its shard.
        record: its number in the shard; of packed rows that of the first with it, None if it is left out.
        place: where it comes from.
        texts: of each side, as the encoder got it, without the prefix.
        ids: of each feature, with the template.
        pieces: of these ids.
        is_stored: whether the shard has this row, byte for byte; of packed rows, all of its ids.
        segments: of packed rows, where the row is, in parts if it was cut; None of others.
    """

    split: str
    row: int
    shard: str
    record: int | None
    place: RowPlace
    texts: tuple[str, ...]
    ids: dict[str, list[int]]
    pieces: dict[str, list[str]]
    is_stored: bool
    segments: tuple[Segment, ...] | None = None


def find_rows(
    job: BuildJob | EncodeJob, manifest: Manifest, wanted: Wanted, workers: int, most: int
) -> tuple[int, list[FoundRow]]:
    """Returns how many rows there are of those wanted, and the first `most`, in the corpus's order.

    Raises:
        InputError: there is no such row, file or line; the job is not the one that made the dataset; or
            its corpus cannot be read.
    """
    refuse_other_job(job, manifest)
    shards = {split: job.dataset.shards_of(split) for split in job.reading.corpus.split_names}
    if wanted.split not in shards:
        raise InputError(
            f'{job.output} has no split {shown(wanted.split)}; there are {", ".join(shards)}'
        )
    with planned(job) as corpus:
        corpus.prepare()
        take: Take = nothing
        if wanted.text is not None:
            take = functools.partial(_keys_with_text, wanted.text.encode())
        read = corpus.read(wanted.split, take, workers)
        stored = StoredRows.of(job, corpus, manifest)
        count, places = shards[wanted.split], None
        is_packed = isinstance(stored.format, Packed)
        if is_packed and wanted.record is not None:
            shard, record = wanted.record
            _check_shard(read, shard, count)
            places = PackedPlaces(corpus, stored, read, [shard], workers)
            keys: Sequence[int] | np.ndarray = places.keys_in(shard, record)
            total = len(keys)
        else:
            keys = _keys(corpus, read, wanted, count)
            total, keys = len(keys), keys[:most]
            if is_packed:
                own = set(shard_of(np.array(keys, np.uint64), count).tolist())
                places = PackedPlaces(corpus, stored, read, own, workers)
        find = functools.partial(_find_row, corpus, read, job.dataset.name, count, stored, places)
        return total, [find(int(key)) for key in keys]


def _keys(
    corpus: DatasetCorpus, read: CorpusRows, wanted: Wanted, shards: int
) -> Sequence[int] | np.ndarray:
    """The order keys of the rows that are wanted."""
    rows = len(read.keys)
    if wanted.rows is not None:
        for row in wanted.rows:
            if not 0 <= row < rows:
                raise InputError(
                    f'{read.split} has {rows:,} rows, numbered from 0; there is no {row}'
                )
        return [int(read.keys[row]) for row in wanted.rows]
    if wanted.record is not None:
        shard, record = wanted.record
        _check_shard(read, shard, shards)
        own = read.keys[shard_of(read.keys, shards) == shard]
        if record >= len(own):
            raise InputError(
                f'shard {shard} of {read.split} has {len(own):,} records, numbered from 0; there is no '
                f'{record}'
            )
        return [int(own[record])]
    if wanted.text is not None:
        return np.concatenate([np.empty(0, np.uint64), *read.taken])
    assert wanted.input is not None
    return corpus.keys_at(read, *wanted.input)


def _check_shard(read: CorpusRows, shard: int, shards: int) -> None:
    if shard >= shards:
        raise InputError(
            f'{read.split} has {shards:,} shards, numbered from 0; there is no {shard}'
        )


def _keys_with_text(words: bytes, block: Block, rows: Rows, keys: np.ndarray) -> np.ndarray | None:
    """Takes the order keys of the rows that have some words."""
    has = np.zeros(len(rows), bool)
    for side in rows.sides:
        has[list(_rows_having(side, words))] = True
    return keys[has] if has.any() else None


def _rows_having(side: Side, words: bytes) -> Iterator[int]:
    text = side.text.tobytes()
    order = np.argsort(side.starts, kind='stable')
    starts, ends = side.starts[order], side.ends[order]
    at = text.find(words)
    while at >= 0:
        row = int(np.searchsorted(starts, at, side='right')) - 1
        if row >= 0 and at + len(words) <= ends[row]:
            yield int(order[row])
        at = text.find(words, at + 1)


def _find_row(
    corpus: DatasetCorpus,
    read: CorpusRows,
    dataset: str,
    shards: int,
    stored: StoredRows,
    places: PackedPlaces | None,
    key: int,
) -> FoundRow:
    """Returns all that is known of a row, by its order key."""
    row = int(np.searchsorted(read.keys, np.uint64(key)))
    shard = int(shard_of(np.array([key], np.uint64), shards)[0])
    row_in_shard = row - int(np.searchsorted(shard_of(read.keys, shards), shard))
    name = shard_name(dataset, read.split, shard, shards)
    block, rows = corpus.row(read, key)
    framed = corpus.encode(block, rows)
    ids = stored.ids(framed)
    record: int | None = row_in_shard
    segments = None
    if places is not None:
        segments = places.of_row(shard, row_in_shard)
        is_stored = places.are_stored(name, row_in_shard, segments, ids)
        record = segments[0].record if segments else None
    else:
        [again] = stored.made_again(framed)
        [as_stored] = stored.stored(name, np.array([row_in_shard]))
        is_stored = again == as_stored
    return FoundRow(
        read.split,
        row,
        name,
        record,
        corpus.place(read, key),
        tuple(side.row(0) for side in rows.sides),
        ids,
        {
            column.name: spelled_ids(ids[column.name], vocabulary)
            for column, vocabulary in zip(stored.columns, stored.vocabularies, strict=True)
        },
        is_stored,
        segments,
    )


def row_fields(row: FoundRow) -> dict[str, object]:
    """Returns what is known of a row as values of JSON."""
    place = row.place
    return {
        **{name: value for name, value in vars(row).items() if name not in ('place', 'segments')},
        **({} if row.segments is None else {'segments': [*map(vars, row.segments)]}),
        'files': [file.path for file in place.files],
        **{
            field.name: getattr(place, field.name)
            for field in dataclasses.fields(place)
            if field.name in ('line', 'byte', 'piece')
        },
        'file_row': place.row,
    }
