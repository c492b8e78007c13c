"""Rows of a dataset as they are stored, by number, and the same of rows that are made again.

Two rows are the same if the bytes that a format has for them are: of TFRecords the whole record, of
text the lines, of Parquet, Megatron's and flat files the ids of each column. Where a row is packed follows
from the lengths of all rows of its shard, which the index has.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.shard_formats.formats import shard_format
from pipelines.shard_formats.shard_format import (
    Column,
    ShardFormat,
    line_writer,
    mapped_bytes,
    parse_rows,
)
from pipelines.shard_formats.tfrecord import WINDOW_ROWS, Packed, PackedWindow
from pipelines.trust.corpus_rows import CHANGED, CorpusRows, DatasetCorpus, Take, features_of
from pipelines.trust.row_sources import RowPlace, place_of
from tokcore.corpus.order_keys import mix64
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import MOST_FINDINGS, Finding
from tokcore.reading.record_index import RecordIndex, index_name, parse_index
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows, parse_features, read_records, sort_rows


@dataclass(frozen=True)
class StoredRows:
    """The rows of a dataset.

    Attributes:
        folder: of the dataset.
        format: of its shards.
        columns: the features of text, inputs before targets.
        vocabularies: of these.
        files: of the shards, by their names, as the manifest has them.
    """

    folder: str
    format: ShardFormat
    columns: Sequence[Column]
    vocabularies: Sequence[Vocabulary]
    files: Mapping[str, OutputFile]

    @classmethod
    def of(cls, job: BuildJob | EncodeJob, corpus: DatasetCorpus, manifest: Manifest) -> StoredRows:
        """Returns the rows of a job's dataset."""
        own = shard_format(job.dataset.output_format, job.dataset.pack)
        scheme = job.reading.scheme
        features = features_of(job)
        ends = job.dataset.ends(features, scheme)
        columns, vocabularies = [], []
        for encoded in features:
            vocabulary = corpus.vocabulary(encoded.vocabulary)
            lines = line_writer(scheme, vocabulary) if own.needs_pieces else None
            sizes = vocabulary.vocab_size, vocabulary.special_ids
            column = Column.of(encoded.feature.name, *sizes, encoded.vocabulary, lines)
            columns.append(column.with_end(ends))
            vocabularies.append(vocabulary)
        files = {file.name: file for file in manifest.files}
        return cls(job.output, own, columns, vocabularies, files)

    def stored(self, shard: str, numbers: np.ndarray) -> Iterator[bytes | None]:
        """Yields rows of a shard, None for those that it does not have.

        Args:
            shard: its name as TFRecords.
            numbers: int64[n], ascending.

        Raises:
            InputError: a file of it cannot be read.
        """
        names = self.format.file_names(shard, [column.name for column in self.columns])
        paths = [os.path.join(self.folder, name) for name in names]
        return self.format.stored_rows(paths, numbers, self.columns, self.files)

    def first_file(self, shard: str) -> OutputFile | None:
        """Returns the first file of a shard, by its name as TFRecords; None if it is not in the manifest."""
        [name, *_] = self.format.file_names(shard, [column.name for column in self.columns])
        return self.files.get(name)

    def index(self, file: OutputFile) -> RecordIndex | None:
        """Returns the index of a shard, by its first file; None if it is missing or has no order keys."""
        path = os.path.join(self.folder, index_name(file.name))
        index = parse_index(mapped_bytes(path)) if filesystem.exists(path) else None
        return index if index is not None and index.has_keys else None

    def index_of(self, file: OutputFile) -> RecordIndex:
        """Returns the index of a shard with order keys, by its first file; raises InputError."""
        index = self.index(file)
        if index is None or len(index) != file.examples:
            path = os.path.join(self.folder, index_name(file.name))
            raise InputError(
                f'{path} is missing or damaged, or does not say where rows come from; run `tokbeam index '
                f'{self.folder}`'
            )
        return index

    def made_again(self, rows: FramedRows) -> Iterator[bytes]:
        """Yields rows that were made again as `stored` yields them."""
        return self.format.row_bytes(rows, self.columns)

    def ids(self, rows: FramedRows) -> list[dict[str, list[int]]]:
        """Returns the ids of each row by feature."""
        encoded = parse_rows(rows, [column.name for column in self.columns])
        bounds = {name: offsets.tolist() for name, offsets in encoded.offsets.items()}
        return [
            {
                name: ids[bounds[name][row] : bounds[name][row + 1]].tolist()
                for name, ids in encoded.ids.items()
            }
            for row in range(len(rows))
        ]


def row_finding(file: str, number: int, row: str, place: RowPlace, is_missing: bool) -> Finding:
    """Returns the finding that a row is not stored as it was made again.

    Args:
        file: the shard.
        number: of the row in it.
        row: how the sentence calls it.
        place: where it comes from.
        is_missing: whether the shard has no such row; otherwise it has another.
    """
    problem = 'is missing' if is_missing else 'differs from what is stored'
    return Finding(file, f'{row} {problem}', number, input=place.files[0].path, line=place.number)


@dataclass(frozen=True)
class Segment:
    """A row, or a part of it, in a packed record.

    Attributes:
        record: its number in the shard.
        number: of the segment in it, from 1.
        start: the id of the row at which it begins.
    """

    record: int
    number: int
    start: int


class PackedPlaces:
    """Where the rows of a shard are packed, by their lengths in its index."""

    def __init__(self, stored: StoredRows, name: str, index: RecordIndex):
        assert isinstance(stored.format, Packed)
        self._stored, self._name = stored, name
        self._features = [column.name for column in stored.columns]
        lengths = index.lengths.T.astype(np.int64)
        self.records = [*_segments(stored.format, self._features, lengths)]
        self._of_row: dict[int, list[Segment]] = {}
        for record, (rows, starts) in enumerate(self.records):
            for place, (row, start) in enumerate(zip(rows.tolist(), starts.tolist()), 1):
                self._of_row.setdefault(row, []).append(Segment(record, place, start))

    def of_row(self, row: int) -> tuple[Segment, ...]:
        """Returns the segments of a row by its number in the shard; none if it is left out."""
        return tuple(self._of_row.get(row, ()))

    def are_stored(self, rows: Mapping[int, dict[str, list[int]]]) -> dict[int, bool]:
        """Returns whether the shard has rows with these ids, by their numbers, where they belong."""
        numbers = sorted({segment.record for row in rows for segment in self.of_row(row)})
        records = dict(zip(numbers, self._stored.stored(self._name, np.array(numbers, np.int64))))
        return {row: self._is_stored(row, ids, records) for row, ids in rows.items()}

    def _is_stored(
        self, row: int, ids: dict[str, list[int]], records: Mapping[int, bytes | None]
    ) -> bool:
        own = self._stored.format
        assert isinstance(own, Packed) and own.length is not None
        segments = self.of_row(row)
        if not segments:
            [file] = own.file_names(self._name, self._features)
            return row in self._stored.files[file].dropped
        for segment in segments:
            record = records[segment.record]
            if record is None:
                return False
            try:
                [payload] = read_records(record, self._name)
                features = parse_features(payload)
            except (ValueError, UnicodeDecodeError, InputError):
                return False
            for feature in self._features:
                numbers = features.get(f'{feature}_segmentation', [])
                stored_ids = [
                    id_
                    for id_, number in zip(features.get(feature, []), numbers)
                    if number == segment.number
                ]
                if stored_ids != ids[feature][segment.start : segment.start + own.length]:
                    return False
        return True


def _segments(
    packed: Packed, features: Sequence[str], lengths: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the segments of each record of a shard, whose rows have these lengths."""

    def rows(first: int) -> EncodedRows:
        own = lengths[:, first : first + WINDOW_ROWS]
        return EncodedRows(
            {name: np.zeros(int(own[k].sum()), np.int32) for k, name in enumerate(features)},
            {name: row_offsets(own[k]) for k, name in enumerate(features)},
        )

    parts = map(rows, range(0, lengths.shape[1], WINDOW_ROWS))
    for window in packed.windows(parts, features):
        yield from window.segments()


def _encode_wanted(corpus: DatasetCorpus, read: CorpusRows, wanted: np.ndarray) -> Take[FramedRows]:
    """Returns what encodes the rows of a block that are wanted, of all rows of a split."""

    def is_wanted(keys: np.ndarray) -> np.ndarray:
        places = np.searchsorted(read.keys, keys)
        if len(keys) and (places.max() >= len(read.keys) or (read.keys[places] != keys).any()):
            raise InputError(CHANGED)
        return wanted[places]

    return corpus.encode_where(is_wanted)


def rerun_packed(
    corpus: DatasetCorpus,
    stored: StoredRows,
    read: CorpusRows,
    names: Sequence[str],
    share: Fraction,
    seed: int,
    workers: int,
    memory_bytes: int,
) -> tuple[int, list[Finding]]:
    """Makes a share of a split's shards again, one or more; a shard is packed as a whole.

    Args:
        corpus: of the dataset.
        stored: its rows.
        read: a pass over the split.
        names: of its shards, as TFRecords.
        share: of shards, which are those whose numbers have a hash below it.
        seed: of these hashes.
        workers: work items that are read at once.
        memory_bytes: of rows that are in memory at once; more take another pass over the corpus.

    Returns how many rows were made, and what differs.
    """
    firsts = read.bounds(len(names))
    windows = [
        (shard, at, min(at + WINDOW_ROWS, firsts[shard + 1]))
        for shard in _sample(len(names), share, seed)
        for at in range(firsts[shard], firsts[shard + 1], WINDOW_ROWS)
    ]
    findings: list[Finding] = []
    rows_made = _rows_again(corpus, stored, read, windows, workers, memory_bytes)
    for shard, parts in itertools.groupby(rows_made, operator.itemgetter(0)):
        rows = (rows for _, rows in parts)
        findings += _compare_shard(corpus, stored, read, names[shard], firsts[shard], rows)
    if len(findings) > MOST_FINDINGS:
        more = len(findings) - MOST_FINDINGS
        findings = [
            *findings[:MOST_FINDINGS],
            Finding(findings[-1].file, f'{more:,} more records differ, which are not named'),
        ]
    return sum(last - first for _, first, last in windows), findings


def _sample(shards: int, share: Fraction, seed: int) -> list[int]:
    hashes = mix64(np.arange(shards, dtype=np.uint64), seed)
    if share >= 1:
        return [*range(shards)]
    chosen = np.flatnonzero(hashes < np.uint64(int(share * (1 << 64)))).tolist()
    return chosen or [int(np.argmin(hashes))]


def _rows_again(
    corpus: DatasetCorpus,
    stored: StoredRows,
    read: CorpusRows,
    windows: Sequence[tuple[int, int, int]],
    workers: int,
    memory_bytes: int,
) -> Iterator[tuple[int, EncodedRows]]:
    """Yields the rows of windows, (shard, first, last), with their shard; several of a pass."""
    features = [column.name for column in stored.columns]
    size = sum(file.bytes for file in stored.files.values())
    most_rows = memory_bytes * sum(file.examples for file in stored.files.values()) // max(1, size)
    left = [*windows]
    while left:
        wanted = np.zeros(len(read.keys), bool)
        group: list[tuple[int, int, int]] = []
        while left and (not group or wanted.sum() + left[0][2] - left[0][1] <= most_rows):
            group.append(left.pop(0))
            wanted[slice(*group[-1][1:])] = True
        again = corpus.read(read.split, _encode_wanted(corpus, read, wanted), workers)
        framed = sort_rows(again.taken)
        if len(framed) != wanted.sum():
            raise InputError(CHANGED)
        rows = parse_rows(framed, features)
        at = 0
        for shard, first, last in group:
            yield shard, rows.part(at, at + last - first)
            at += last - first


def _compare_shard(
    corpus: DatasetCorpus,
    stored: StoredRows,
    read: CorpusRows,
    name: str,
    first: int,
    parts: Iterator[EncodedRows],
) -> Iterator[Finding]:
    """Yields where a shard differs from the records that are made again of its rows, from the `first` on."""
    packed = stored.format
    assert isinstance(packed, Packed)
    features = [column.name for column in stored.columns]
    [file_name] = packed.file_names(name, features)
    file = stored.files.get(file_name)
    records, dropped = 0, []
    for window in packed.windows(parts, features):
        dropped += window.dropped.tolist()
        for number, row, is_missing in _differing(stored, name, window, records):
            place = place_of(corpus, read, read.keys[first + row])
            what = f'the packed row that begins with {place}'
            yield row_finding(file_name, number, what, place, is_missing)
        records += len(window)
    if file is not None and file.rows != records:
        problem = f'the corpus gives {records:,} records of it, and it has {file.rows:,}'
        yield Finding(file_name, problem)
    if file is not None and list(file.dropped) != dropped:
        yield Finding(file_name, 'it leaves out other rows than the corpus gives')


def _differing(
    stored: StoredRows, name: str, window: PackedWindow, first: int
) -> Iterator[tuple[int, int, bool]]:
    """Yields records that differ: the number, the first row, and whether there is no such record."""
    try:
        before = [*stored.stored(name, first + np.arange(len(window)))]
    except InputError:  # the file itself is a finding
        return
    now = (record for framed in window.records() for record in stored.made_again(framed))
    for number, (as_stored, again, (rows, _)) in enumerate(
        zip(before, now, window.segments(), strict=True), first
    ):
        if as_stored != again:
            yield number, int(rows[0]), as_stored is None
