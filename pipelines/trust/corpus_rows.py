"""The rows of a split's corpus, read once: their order keys, and where the lines of its files are.

An order key is a place in the corpus and nothing else, so sorted keys are the rows of the dataset in
order, and a key alone gives the file and the byte that a row comes from. A pass holds 8 bytes for
each row.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from pipelines.engines.compiling import compile_ahead
from pipelines.engines.progress import stage_running, track_work
from pipelines.files import filesystem
from pipelines.jobs.job import BuildJob, CorpusReading, EncodeJob
from pipelines.jobs.reading import ReadPlan, plan_reading
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, LoadedBlockEncoder
from pipelines.transforms.read import READING, read_items
from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import Block, CorpusFile, Rows, Split, WorkItem, split_of
from tokcore.corpus.order_keys import order_keys, places_of, shard_of
from tokcore.corpus.stats import LineTally, RangeChecksum, block_stats, join_adjacent, line_at
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows
from tokcore.records.examples import encode_rows
from tokcore.records.tfrecord import FramedRows

_Taken = TypeVar('_Taken')

_BLOCKS_AHEAD = 2
"""Blocks of a pass that wait to be looked at, while the next one is read."""

CHANGED = 'the corpus has changed while it was read; run again'


@contextlib.contextmanager
def planned(job: BuildJob | EncodeJob) -> Iterator[DatasetCorpus]:
    """Plans the reading of a dataset's corpus, in a temporary folder for the time of the block."""
    with tempfile.TemporaryDirectory(prefix='tokbeam-') as folder, stage_running('index'):
        plan = plan_reading(job.reading, job.execution, folder)
    yield DatasetCorpus(job, plan)


def features_of(job: BuildJob | EncodeJob) -> list[EncodedFeature]:
    """Returns what an example of a dataset holds."""
    paths = job.vocabulary_paths(job.output) if isinstance(job, BuildJob) else job.vocabularies
    return job.dataset.features(paths, job.reading.corpus.format.sides)


@dataclass(frozen=True)
class RowPlace:
    """Where in the corpus a row comes from.

    Attributes:
        files: that have this line; of pairs two, the source first, or only the source.
        line: in each of them, from 1; None where rows are not lines of text.
        row: its number in the file, from 0, where rows are not lines; None where they are.
        byte: of the line's first byte in the decompressed (source) file, None with `row`.
        piece: the number of the row among those that filters made of the line, from 0.
    """

    files: tuple[CorpusFile, ...]
    line: int | None
    row: int | None
    byte: int | None
    piece: int = 0

    @property
    def number(self) -> int | None:
        """The line, or the row."""
        return self.row if self.line is None else self.line

    def __str__(self) -> str:
        what = f'row {self.row}' if self.line is None else f'line {self.line}'
        return f'{" and ".join(file.path for file in self.files)}, {what}'


@dataclass(frozen=True)
class _BlockPlace:
    """Where a block is, and which item it is read with."""

    file_index: int
    offset: int
    newlines: int | None  # None where its data is not text of the file
    item: WorkItem


@dataclass(frozen=True)
class CorpusRows(Generic[_Taken]):
    """What one pass over a split has found.

    Attributes:
        split: its name.
        keys: uint64[rows], ascending: the order key of each row of the split.
        tallies: of each dataset, without what only encoding counts.
        checksums: of what was read.
        taken: what `take` returned for each block, in the order of the corpus, without None.
        blocks: where they are, in the order of the corpus.
    """

    split: str
    keys: np.ndarray
    tallies: tuple[LineTally, ...]
    checksums: tuple[RangeChecksum, ...]
    taken: tuple[_Taken, ...]
    blocks: tuple[_BlockPlace, ...]


Take = Callable[[Block, Rows, np.ndarray], _Taken | None]
"""Takes what is wanted of a block: its rows, and their order keys."""


def nothing(block: Block, rows: Rows, keys: np.ndarray) -> None:
    """Takes nothing: a pass gives keys and tallies."""


class DatasetCorpus:
    """The corpus of a dataset, as the job names it that made it."""

    def __init__(self, job: BuildJob | EncodeJob, plan: ReadPlan):
        self._job, self._plan = job, plan
        self._encoder: LoadedBlockEncoder | None = None

    @property
    def reading(self) -> CorpusReading:
        """The corpus, and how it is read."""
        return self._plan.reading

    @property
    def seed(self) -> int:
        return self._job.dataset.seed

    def shards_of(self, split: str) -> int:
        """Returns how many shards a split has."""
        return self._job.dataset.shards_of(split)

    @property
    def features(self) -> list[EncodedFeature]:
        """What an example holds."""
        return features_of(self._job)

    def vocabulary(self, path: str) -> Vocabulary:
        """Returns the vocabulary of a feature by its path."""
        return self._loaded().vocabulary(path)

    def read(self, split: str, take: Take, workers: int) -> CorpusRows:
        """Reads a split once, with several threads.

        Raises:
            InputError: a file cannot be read, or has a line that cannot be used.
        """
        passes = self._plan.passes[split]
        total = sum(item.stored_bytes for items in passes for item in items)

        def read(items: Sequence[WorkItem]) -> list:
            parts = []
            looks: collections.deque[Future] = collections.deque()
            for item, block in self._blocks(items):
                looks.append(lookers.submit(self._look, item, block, take))
                if len(looks) > _BLOCKS_AHEAD:
                    parts.append(looks.popleft().result())
            return parts + [look.result() for look in looks]

        parts = []
        with (
            stage_running('read'),
            track_work('read', READING, total),
            # A file that only one thread can unpack is looked at by others meanwhile.
            ThreadPoolExecutor(max(1, workers)) as lookers,
            ThreadPoolExecutor(max(1, workers)) as pool,
        ):
            for part in pool.map(read, passes):
                parts += part
        parts.sort(key=lambda part: (part[0].file_index, part[0].offset))
        keys = np.sort(np.concatenate([np.empty(0, np.uint64), *(part[1] for part in parts)]))
        if len(keys) and np.any(keys[1:] == keys[:-1]):
            raise RuntimeError('two rows have one order key')
        return CorpusRows(
            split,
            keys,
            tuple(part[2] for part in parts),
            tuple(join_adjacent(checksum for part in parts for checksum in part[3])),
            tuple(part[4] for part in parts if part[4] is not None),
            tuple(part[0] for part in parts),
        )

    def encode(self, block: Block, rows: Rows) -> FramedRows:
        """Returns rows of a block as they are written."""
        return encode_rows(block, rows, self._loaded().features(), self.seed, self._splits)

    def encode_where(self, is_wanted: Callable[[np.ndarray], np.ndarray]) -> Take[FramedRows]:
        """Returns what takes the rows of a block with wanted order keys, as they are written.

        Args:
            is_wanted: returns which of some keys are wanted: bool[keys].
        """

        def take(block: Block, rows: Rows, keys: np.ndarray) -> FramedRows | None:
            wanted = is_wanted(keys)
            return self.encode(block, rows.select(wanted)) if wanted.any() else None

        return take

    def prepare(self) -> None:
        """Loads the vocabularies, before threads need them."""
        compile_ahead(self._job.execution.engine.scheme, ['encoding', 'records'])
        self._loaded().features()

    def place(self, read: CorpusRows, key: int) -> RowPlace:
        """Returns where the row with an order key comes from."""
        index, identity = (int(part[0]) for part in places_of(np.array([key]), self.seed))
        split = split_of(self._splits, read.split, index)
        assert split is not None, 'a key is of a file of the corpus'
        files = split.files_at(index)
        block, rows, number = self._find(read, index, identity)
        files = files if block.format.has_same_lines else files[:1]
        offset = int(rows.offsets[number])
        piece = number - int(np.searchsorted(rows.offsets, offset))
        if split.format.identity == 'row':
            return RowPlace(files, None, offset, None, piece)
        if block.read_ranges is not None:
            line = line_at(files[0], offset, filesystem.open_binary)
            if line is None:
                raise InputError(CHANGED)
            return RowPlace(files, line, None, offset, piece)
        before = sum(
            place.newlines or 0
            for place in read.blocks
            if place.file_index == index and place.offset < block.offset
        )
        own = block.texts[0].data.count(b'\n', 0, offset - block.offset)
        return RowPlace(files, before + own + 1, None, offset, piece)

    def row(self, read: CorpusRows, key: int) -> tuple[Block, Rows]:
        """Returns the row with an order key, as rows of one, and its block, by reading its item."""
        index, identity = (int(part[0]) for part in places_of(np.array([key]), self.seed))
        block, rows, number = self._find(read, index, identity)
        return block, rows.select(slice(number, number + 1))

    def keys_at(self, read: CorpusRows, path: str, number: int) -> np.ndarray:
        """Returns the order keys of the rows made of a line of a file, uint64; none if it has none.

        Args:
            read: the pass over the split.
            path: of the file, or the end of its path, or its name.
            number: of the line, from 1; where rows are not lines, of the row, from 0.

        Raises:
            InputError: the split has no such file, or several.
        """
        index = self._file_index(read.split, path)
        places = [place for place in read.blocks if place.file_index == index]
        if not places:
            return np.empty(0, np.uint64)
        first = places[0].item
        if not first.format.has_same_lines and not _is_named(first.files[0], path):
            raise InputError(
                f'the rows of {path} are on other lines than in {first.files[0].path}; give the line '
                'there'
            )
        if places[0].newlines is None:
            bounds = (number, number + 1)
            if places[0].item.format.identity != 'row':
                bounds = _bounds_of_line(places[0].item.files[0], number)
            return self._keys_within(index, self._blocks_of(places), *bounds)
        ends = np.cumsum([place.newlines or 0 for place in places])
        at = min(int(np.searchsorted(ends, number - 1, side='right')), len(places) - 1)
        block = self._block(places[at])
        data = block.texts[0].data
        start = _line_start(data, number - 1 - int(ends[at - 1] if at else 0))
        if start is None:
            return np.empty(0, np.uint64)
        end = data.find(b'\n', start) + 1 or len(data) + 1
        return self._keys_within(index, [block], block.offset + start, block.offset + end)

    def _keys_within(self, index: int, blocks: Iterable[Block], first: int, end: int) -> np.ndarray:
        """The order keys of the rows whose offsets are from `first` up to `end`."""
        keys = [np.empty(0, np.uint64)]
        for block in blocks:
            rows = self._rows(block)
            identities = rows.identities[(rows.offsets >= first) & (rows.offsets < end)]
            keys.append(order_keys(index, identities, self.seed))
        return np.concatenate(keys)

    @property
    def _splits(self) -> tuple[Split, ...]:
        return self._plan.reading.corpus.splits

    def _loaded(self) -> LoadedBlockEncoder:
        if self._encoder is None:
            job = self._job
            self._encoder = BlockEncoder(
                self.features,
                self._splits,
                self.seed,
                job.reading.on_error,
                job.reading.scheme,
                job.dataset.encoding,
            ).load()
        return self._encoder

    def _blocks(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, Block]]:
        by_file: dict[tuple[str, int], list[WorkItem]] = {
            (item.split, item.file_index): [] for item in items
        }
        for item in items:
            by_file[item.split, item.file_index].append(item)
        plan = self._plan
        for block in read_items(items, plan.item_bytes, plan.reading.max_line_bytes):
            own = by_file[block.split, block.file_index]
            starts = [item.ranges[0].start for item in own]
            at = bisect.bisect_right(starts, block.offset) - 1 if len(own) > 1 else 0
            yield own[max(at, 0)], block

    def _look(self, item: WorkItem, block: Block, take: Take) -> tuple:
        rows = self._rows(block)
        keys = order_keys(block.file_index, rows.identities, self.seed)
        stats = block_stats(block, rows, self._splits, self._plan.reading.on_error)
        place = _BlockPlace(block.file_index, block.offset, _newlines(block), item)
        tally = dataclasses.replace(stats.tally, text_bytes=rows.text_bytes)
        return place, keys, tally, stats.checksums, take(block, rows, keys)

    def _rows(self, block: Block) -> Rows:
        return select_rows(block, self._splits, self._job.reading.scheme.normalizer)

    def _find(self, read: CorpusRows, index: int, identity: int) -> tuple[Block, Rows, int]:
        """Reads the block of a row again; returns it, its rows, and the row's number in it."""
        places = [place for place in read.blocks if place.file_index == index]
        if places and places[0].item.format.identity == 'offset':
            at = bisect.bisect_right([place.offset for place in places], identity) - 1
            blocks: Iterable[Block] = [self._block(places[max(at, 0)])]
        else:
            blocks = self._blocks_of(places)
        for block in blocks:
            rows = self._rows(block)
            at = int(np.searchsorted(rows.identities, identity))
            if at < len(rows) and rows.identities[at] == identity:
                return block, rows, at
        raise InputError(CHANGED)

    def _block(self, place: _BlockPlace) -> Block:
        """Reads a block again."""
        for block in self._blocks_of([place]):
            if block.offset == place.offset:
                return block
        raise InputError(CHANGED)

    def _blocks_of(self, places: Iterable[_BlockPlace]) -> Iterator[Block]:
        """Reads the items of some blocks of one file again."""
        for item in dict.fromkeys(place.item for place in places):
            yield from (block for _, block in self._blocks([item]))

    def _file_index(self, split: str, path: str) -> int:
        indexes = {
            index
            for own in self._splits
            if own.name == split
            for index, files in zip(own.file_indexes, own.files, strict=True)
            for file in files
            if _is_named(file, path)
        }
        if len(indexes) != 1:
            what = 'several files' if indexes else 'no file'
            raise InputError(f'{split} has {what} {path}; give a path as the job has it')
        return indexes.pop()


def _is_named(file: CorpusFile, path: str) -> bool:
    """Returns whether a path is that of a file, or its end, or its name."""
    return path in (file.path, file.name) or file.path.endswith(f'/{path}')


def rows_in_shard(keys: np.ndarray, shards: int) -> np.ndarray:
    """Returns how many of some order keys are in each shard: int64[shards]."""
    return np.bincount(shard_of(keys, shards), minlength=shards)


def _newlines(block: Block) -> int | None:
    if block.read_ranges is not None:
        return None
    long_lines = [line for line in block.long_lines if line.side == 0]
    if long_lines:
        return sum(line.length - line.nbytes for line in long_lines)
    if block.long_lines:  # of the other file of a pair; each side is one line
        return 1
    return block.texts[0].data.count(b'\n')


def _bounds_of_line(file: CorpusFile, number: int) -> tuple[int, int]:
    """Returns where a line of a file's text begins and ends, by its number from 1."""
    place, line, first = 0, 1, 0
    for piece in text_pieces(file, filesystem.open_binary):
        for end in np.flatnonzero(np.frombuffer(piece, np.uint8) == ord('\n')).tolist():
            if line == number:
                return first, place + end + 1
            line, first = line + 1, place + end + 1
        place += len(piece)
    return (first, place) if line == number else (0, 0)


def _line_start(data: bytes, number: int) -> int | None:
    """Returns where a line of a text begins, by its number from 0; None if it has not so many."""
    if number == 0:
        return 0
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord('\n'))
    if number > len(ends) or int(ends[number - 1]) + 1 == len(data):
        return None
    return int(ends[number - 1]) + 1
