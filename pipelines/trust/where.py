"""Where in the corpus rows of a dataset come from, and which rows lines of the corpus became.

The indexes of the shards have the order keys of all rows, and a key gives the file and the byte. Only rows with
some words are looked for in all of the corpus.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.jobs.recorded import read_corpus_index
from pipelines.shard_formats.tfrecord import Packed
from pipelines.trust.corpus_rows import DatasetCorpus, Take, planned
from pipelines.trust.rerun import refuse_other_job
from pipelines.trust.row_sources import RowPlace, RowSources, SourceRows
from pipelines.trust.stored_rows import PackedPlaces, Segment, StoredRows
from tokcore.corpus.corpus import Block, Rows
from tokcore.corpus.order_keys import shard_of
from tokcore.encoding.vocabulary import spelled_ids
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.options import shown
from tokcore.reading.ordered_rows import by_part
from tokcore.records.manifest import Manifest
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
            a file of the corpus cannot be read, or has changed.
    """
    refuse_other_job(job, manifest)
    splits = job.reading.corpus.split_names
    if wanted.split not in splits:
        raise InputError(
            f'{job.output} has no split {shown(wanted.split)}; there are {", ".join(splits)}'
        )
    corpus = DatasetCorpus(job)
    corpus.prepare()
    finder = _Finder(job, corpus, StoredRows.of(job, corpus, manifest), wanted.split)
    newlines = read_corpus_index(job.output, manifest)
    sources = RowSources(job.reading, newlines, corpus.seed, manifest)
    if wanted.input is not None:
        found = [*sources.on_line(wanted.split, *wanted.input)]
        located = finder.located(np.concatenate([np.empty(0, np.uint64), *(f.keys for f in found)]))
        keys = [*located]
    else:
        of_rows = _keys(job, finder, wanted, workers)
        keys = of_rows.tolist()
        found = [*sources.of_keys(wanted.split, of_rows[:most], workers)]
    rows = finder.described(found, {*keys[:most]})
    return len(keys), [rows[key] for key in keys[:most]]


def _keys(job: BuildJob | EncodeJob, finder: _Finder, wanted: Wanted, workers: int) -> np.ndarray:
    """The order keys of the rows that are wanted: uint64[n]."""
    if wanted.rows is not None:
        return finder.keys(wanted.rows)
    if wanted.record is not None:
        return finder.keys_in(*wanted.record)
    assert wanted.text is not None
    take: Take = functools.partial(_keys_with_text, wanted.text.encode())
    with planned(job) as corpus:
        found = corpus.read(wanted.split, take, workers).taken
    return np.concatenate([np.empty(0, np.uint64), *found])


class _Finder:
    """The rows of a split, by the indexes of its shards."""

    def __init__(
        self, job: BuildJob | EncodeJob, corpus: DatasetCorpus, stored: StoredRows, split: str
    ):
        self._corpus, self._stored, self._split = corpus, stored, split
        names = job.dataset.shard_names(job.reading.corpus.only(split))
        files = [file for name in names if (file := stored.first_file(name)) is not None]
        self._names, self._firsts = names, row_offsets([file.examples for file in files])
        self._index = functools.cache(lambda shard: stored.index_of(files[shard]))
        self._packed = functools.cache(
            lambda shard: PackedPlaces(stored, names[shard], self._index(shard))
        )
        self._is_packed = isinstance(stored.format, Packed)

    def keys(self, rows: Sequence[int]) -> np.ndarray:
        """Returns the order keys of rows by their numbers; raises InputError if there are not so many."""
        keys = np.empty(len(rows), np.uint64)
        for row in rows:
            if not 0 <= row < self._firsts[-1]:
                raise InputError(
                    f'{self._split} has {self._firsts[-1]:,} rows, numbered from 0; there is no {row}'
                )
        numbers = np.array(rows, np.int64)
        for shard, own in by_part(self._firsts.tolist(), numbers):
            keys[own] = self._index(shard).keys[numbers[own] - self._firsts[shard]]
        return keys

    def keys_in(self, shard: int, record: int) -> np.ndarray:
        """Returns the order keys of the rows in a record; raises InputError if there is none."""
        if shard >= len(self._names):
            raise InputError(
                f'{self._split} has {len(self._names):,} shards, numbered from 0; there is no {shard}'
            )
        index = self._index(shard)
        records = self._packed(shard).records if self._is_packed else index
        if record >= len(records):
            raise InputError(
                f'shard {shard} of {self._split} has {len(records):,} records, numbered from 0; there '
                f'is no {record}'
            )
        rows = self._packed(shard).records[record][0].tolist() if self._is_packed else [record]
        return index.keys[[*dict.fromkeys(rows)]]

    def located(self, keys: np.ndarray) -> dict[int, tuple[int, int]]:
        """Returns the shard and the number in it of each row by its order key; none of other keys."""
        located = {}
        for shard, key in zip(
            shard_of(keys, len(self._names)).tolist(), keys.tolist(), strict=True
        ):
            of_shard = self._index(shard).keys
            row = bisect.bisect_left(of_shard, key)  # in a mapped file, of which little is read so
            if row < len(of_shard) and of_shard[row] == key:
                located[key] = shard, row
        return located

    def described(self, found: Iterable[SourceRows], keys: Collection[int]) -> dict[int, FoundRow]:
        """Returns all that is known of rows with some of these order keys."""
        made: dict[int, dict[int, tuple]] = {}  # by shard and row, what the corpus gives of it
        for each in found:
            framed = self._corpus.encode(each.block, each.rows)
            texts = zip(*(map(side.row, range(len(each.rows))) for side in each.rows.sides))
            made_again = self._stored.ids(framed), self._stored.made_again(framed)
            located = self.located(each.keys)
            for key, place, *row in zip(
                each.keys.tolist(), each.places, texts, *made_again, strict=True
            ):
                if key not in keys:
                    continue
                if key not in located:
                    raise InputError(
                        f'the index has no row of {place}, which the corpus gives; run `tokbeam index` '
                        'again'
                    )
                shard, number = located[key]
                made.setdefault(shard, {})[number] = key, place, *row
        rows = {}
        for shard, of_shard in made.items():
            is_stored = self._are_stored(shard, of_shard)
            for number, (key, place, text, ids, _) in of_shard.items():
                record: int | None = number
                segments = None
                if self._is_packed:
                    segments = self._packed(shard).of_row(number)
                    record = segments[0].record if segments else None
                vocabularies = zip(self._stored.columns, self._stored.vocabularies, strict=True)
                rows[key] = FoundRow(
                    self._split,
                    int(self._firsts[shard]) + number,
                    self._names[shard],
                    record,
                    place,
                    text,
                    ids,
                    {
                        column.name: spelled_ids(ids[column.name], own)
                        for column, own in vocabularies
                    },
                    is_stored[number],
                    segments,
                )
        return rows

    def _are_stored(self, shard: int, rows: Mapping[int, tuple]) -> dict[int, bool]:
        """Returns whether a shard has rows as the corpus gives them, by their numbers."""
        if self._is_packed:
            return self._packed(shard).are_stored({row: made[3] for row, made in rows.items()})
        numbers = sorted(rows)
        stored = self._stored.stored(self._names[shard], np.array(numbers, np.int64))
        return {row: rows[row][4] == own for row, own in zip(numbers, stored, strict=True)}


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


def row_fields(row: FoundRow) -> dict[str, object]:
    """Returns what is known of a row as values of JSON."""
    place = row.place
    return {
        **{name: value for name, value in vars(row).items() if name not in ('place', 'segments')},
        **({} if row.segments is None else {'segments': [*map(vars, row.segments)]}),
        'address': place.address,
        'files': [file.path for file in place.files],
        'line': place.line,
        'byte': place.byte,
        'piece': place.piece,
        'file_row': place.row,
    }
