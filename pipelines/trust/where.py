"""Where in the corpus rows of a dataset come from, and which rows lines of the corpus became.

All of it follows from the order keys of one pass over the split: the n-th key is that of the n-th row,
and a key tells the file and the byte.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.shard_formats.packed import Packed
from pipelines.trust.corpus_rows import CorpusRows, DatasetCorpus, RowPlace, nothing, planned
from pipelines.trust.packed_rows import PackedPlaces, Segment
from pipelines.trust.rerun import refuse_other_job
from pipelines.trust.stored_rows import StoredRows
from tokcore.corpus.corpus import Block, Rows
from tokcore.corpus.order_keys import shard_of
from tokcore.encoding.vocabulary import spelled_ids
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.records.manifest import Manifest, shard_name
from tokcore.text.rows import Side


@dataclass(frozen=True)
class Wanted:
    """The rows that are asked for; one of the fields beside `split` is set.

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
        take = _Having(wanted.text) if wanted.text is not None else nothing
        read = corpus.read(wanted.split, take, workers)
        stored = StoredRows.of(job, corpus, manifest)
        count = shards[wanted.split]
        if not isinstance(stored.format, Packed):
            keys = _keys(corpus, read, wanted, count)
            finder = _Finder(corpus, read, job.dataset.name, count, stored)
            return len(keys), [finder.found(int(key)) for key in keys[:most]]
        if wanted.record is None:
            all_keys = _keys(corpus, read, wanted, count)
            total, keys = len(all_keys), all_keys[:most]
            own = set(shard_of(np.array(keys, np.uint64), count).tolist())
            places = PackedPlaces(corpus, stored, read, own, workers)
        else:
            shard, record = wanted.record
            _check_shard(read, shard, count)
            places = PackedPlaces(corpus, stored, read, [shard], workers)
            keys = places.keys_in(shard, record)
            total = len(keys)
        finder = _Finder(corpus, read, job.dataset.name, count, stored, places)
        return total, [finder.found(int(key)) for key in keys]


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


@dataclass(frozen=True)
class _Having:
    """Takes the order keys of the rows that have some words."""

    words: str

    def __call__(self, block: Block, rows: Rows, keys: np.ndarray) -> np.ndarray | None:
        has = np.zeros(len(rows), bool)
        for side in rows.sides:
            has[list(_rows_having(side, self.words.encode()))] = True
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


class _Finder:
    """Tells of a row, by its order key, all that is known."""

    def __init__(
        self,
        corpus: DatasetCorpus,
        read: CorpusRows,
        name: str,
        shards: int,
        stored: StoredRows,
        places: PackedPlaces | None = None,
    ):
        self._corpus, self._read, self._shards = corpus, read, shards
        self._name, self._stored, self._places = name, stored, places

    def found(self, key: int) -> FoundRow:
        read, corpus = self._read, self._corpus
        row = int(np.searchsorted(read.keys, np.uint64(key)))
        shard = int(shard_of(np.array([key], np.uint64), self._shards)[0])
        before = int(np.searchsorted(shard_of(read.keys, self._shards), shard))
        name = shard_name(self._name, read.split, shard, self._shards)
        block, rows = corpus.row(read, key)
        framed = corpus.encode(block, rows)
        ids = self._stored.ids(framed)
        record: int | None = row - before
        segments = None
        if self._places is not None:
            segments = self._places.of_row(shard, row - before)
            is_stored = self._places.are_stored(name, row - before, segments, ids)
            record = segments[0].record if segments else None
        else:
            [again] = self._stored.made_again(framed)
            [stored] = self._stored.stored(name, np.array([row - before]))
            is_stored = again == stored
        pieces = {
            column.name: spelled_ids(ids[column.name], vocabulary)
            for column, vocabulary in zip(
                self._stored.columns, self._stored.vocabularies, strict=True
            )
        }
        return FoundRow(
            read.split,
            row,
            name,
            record,
            corpus.place(read, key),
            tuple(side.row(0) for side in rows.sides),
            ids,
            pieces,
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
