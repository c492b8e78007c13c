"""Rows of a dataset as they are stored, by number, and the same of rows that are made again.

Two rows are the same if the bytes that a format has for them are: of TFRecords the whole record, of
text the lines, of Parquet, Megatron's and flat files the ids of each column. Where a row is packed follows
from the lengths of all rows of its shard, so all of these are encoded.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from pipelines.trust.corpus_rows import CHANGED, CorpusRows, DatasetCorpus, RowPlace, Take
from tokcore.corpus.corpus import Block, Rows
from tokcore.corpus.order_keys import mix64, shard_of
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import MOST_FINDINGS, Finding
from tokcore.reading.record_index import FOOTER_BYTES, RecordIndex, index_name, parse_index
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
        ends = job.dataset.ends(corpus.features, scheme)
        columns, vocabularies = [], []
        for encoded in corpus.features:
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

    def index(self, name: str) -> RecordIndex | None:
        """Returns the index of a shard, by the name of its first file; None if it is missing or damaged."""
        path = os.path.join(self.folder, index_name(name))
        if not filesystem.exists(path):
            return None
        data = mapped_bytes(path)
        return parse_index(data, data[-FOOTER_BYTES:].tobytes())

    def made_again(self, rows: FramedRows) -> Iterator[bytes]:
        """Yields rows that were made again as `stored` yields them."""
        return self.format.row_bytes(rows, self.columns)

    def ids(self, rows: FramedRows) -> dict[str, list[int]]:
        """Returns the ids of a single row by feature."""
        encoded = parse_rows(rows, [column.name for column in self.columns])
        return {name: ids.tolist() for name, ids in encoded.ids.items()}


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
    """Where the rows of some shards of a split are packed."""

    def __init__(
        self,
        corpus: DatasetCorpus,
        stored: StoredRows,
        read: CorpusRows,
        shards: Collection[int],
        workers: int,
    ):
        """Reads the corpus of the split once more, and encodes the rows of these shards."""
        assert isinstance(stored.format, Packed)
        self._stored, self._read = stored, read
        self._features = [column.name for column in stored.columns]
        count = corpus.shards_of(read.split)
        self._shards = shard_of(read.keys, count)
        wanted = np.isin(self._shards, [*shards])
        encode = _encode_wanted(corpus, read, wanted)

        def lengths_of(block: Block, rows: Rows, keys: np.ndarray):
            """The order keys of wanted rows, uint64[n], and their ids, int64[features, n]."""
            framed = encode(block, rows, keys)
            if framed is None:
                return None
            offsets = parse_rows(framed, self._features).offsets
            return framed.keys, np.array([np.diff(offsets[name]) for name in self._features])

        again = corpus.read(read.split, lengths_of, workers)
        keys = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in again.taken)])
        lengths = np.concatenate(
            [np.empty((len(self._features), 0), np.int64), *(own for _, own in again.taken)], axis=1
        )[:, np.argsort(keys)]
        if lengths.shape[1] != wanted.sum():
            raise InputError(CHANGED)
        of_shards = shard_of(np.sort(keys), count)
        self._segments = {
            shard: [*_segments(stored.format, self._features, lengths[:, of_shards == shard])]
            for shard in shards
        }

    def keys_in(self, shard: int, record: int) -> list[int]:
        """Returns the order keys of the rows in a record, in the order of its segments.

        Raises:
            InputError: there is no such record.
        """
        records = self._segments[shard]
        if record >= len(records):
            raise InputError(
                f'shard {shard} of {self._read.split} has {len(records):,} records, numbered from 0; there '
                f'is no {record}'
            )
        first = int(np.searchsorted(self._shards, shard))
        return [
            int(self._read.keys[first + row]) for row in dict.fromkeys(records[record][0].tolist())
        ]

    def of_row(self, shard: int, row: int) -> tuple[Segment, ...]:
        """Returns the segments of a row by its number in the shard; none if it is left out."""
        return tuple(
            Segment(record, int(place) + 1, int(starts[place]))
            for record, (rows, starts) in enumerate(self._segments[shard])
            for place in np.flatnonzero(rows == row)
        )

    def are_stored(
        self, name: str, row: int, segments: Sequence[Segment], ids: dict[str, list[int]]
    ) -> bool:
        """Whether a shard has a row with these ids where it belongs."""
        own = self._stored.format
        assert isinstance(own, Packed) and own.length is not None
        if not segments:
            [file] = own.file_names(name, self._features)
            return row in self._stored.files[file].dropped
        for segment in segments:
            [record] = self._stored.stored(name, np.array([segment.record]))
            if record is None:
                return False
            try:
                [payload] = read_records(record, name)
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
    firsts = np.searchsorted(shard_of(read.keys, len(names)), range(len(names) + 1)).tolist()
    windows = [
        (shard, at, min(at + WINDOW_ROWS, firsts[shard + 1]))
        for shard in _sample(len(names), share, seed)
        for at in range(firsts[shard], firsts[shard + 1], WINDOW_ROWS)
    ]
    made = 0
    findings: list[Finding] = []
    rows_made = _rows_again(corpus, stored, read, windows, workers, memory_bytes)
    for shard, parts in itertools.groupby(rows_made, operator.itemgetter(0)):
        rows = (rows for _, rows in parts)
        compared, differing = _compare_shard(
            corpus, stored, read, names[shard], firsts[shard], rows
        )
        made += compared
        findings += differing
    if len(findings) > MOST_FINDINGS:
        more = len(findings) - MOST_FINDINGS
        findings = [
            *findings[:MOST_FINDINGS],
            Finding(findings[-1].file, f'{more:,} more records differ, which are not named'),
        ]
    return made, findings


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
) -> tuple[int, list[Finding]]:
    """Compares the records of a shard with those that are made again of its rows, from the `first` on.

    Returns how many rows were made, and what differs.
    """
    packed = stored.format
    assert isinstance(packed, Packed)
    features = [column.name for column in stored.columns]
    [file_name] = packed.file_names(name, features)
    file = stored.files.get(file_name)
    findings: list[Finding] = []
    made, records, dropped = 0, 0, []
    for window in packed.windows(parts, features):
        made += window.count
        dropped += window.dropped.tolist()
        for number, row, is_missing in _differing(stored, name, window, records):
            place = corpus.place(read, int(read.keys[first + row]))
            what = f'the packed row that begins with {place}'
            findings.append(row_finding(file_name, number, what, place, is_missing))
        records += len(window)
    if file is not None and file.rows != records:
        problem = f'the corpus gives {records:,} records of it, and it has {file.rows:,}'
        findings.append(Finding(file_name, problem))
    if file is not None and list(file.dropped) != dropped:
        findings.append(Finding(file_name, 'it leaves out other rows than the corpus gives'))
    return made, findings


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
