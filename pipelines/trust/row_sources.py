"""Rows where they are in a corpus, by their order keys or by lines of its files; little else is read.

An order key gives the file and the byte. The lines that the index counts in each stretch of a file give the
number of a line, and the byte where a line begins, by reading one stretch.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus, CorpusInput, newlines_of
from pipelines.jobs.job import CorpusReading
from pipelines.transforms.read import archive_lists, find_files, read_items
from pipelines.trust.corpus_rows import CorpusRows, DatasetCorpus
from tokcore.corpus.archives import ArchiveLists
from tokcore.corpus.corpus import (
    STRETCH_BYTES,
    Block,
    BlockText,
    CorpusFile,
    Rows,
    TextRange,
    WorkItem,
    split_of,
)
from tokcore.corpus.formats import format_reader
from tokcore.corpus.order_keys import order_keys, order_of_corpus, places_of
from tokcore.corpus.stats import block_checksums
from tokcore.corpus.stretches import FileNewlines, TextLines, changed
from tokcore.errors import InputError
from tokcore.filters.applying import select_rows
from tokcore.filters.registry import makes_several
from tokcore.filters.user_function import PIECES
from tokcore.kernels.bytes import runs_of
from tokcore.records.manifest import Manifest

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class RowPlace:
    """Where in the corpus a row comes from.

    Attributes:
        files: that have this line; of pairs two, the source first, or only the source.
        number: of the line in each of them, from 1; of the row, from 0, where rows are not lines of text.
        byte: of the line's first byte in the decompressed (source) file; None where rows are not lines.
        piece: the number of the row among those that filters made of the line, from 0.
        is_of_several: whether filters may make several of a line.
    """

    files: tuple[CorpusFile, ...]
    number: int
    byte: int | None
    piece: int = 0
    is_of_several: bool = False

    @property
    def address(self) -> str:
        """The row as a line of a list of rows to leave out."""
        piece = f':{self.piece}' if self.is_of_several else ''
        return f'{self.files[0].path}:{self.number if self.byte is None else self.byte}{piece}'

    @property
    def line(self) -> int | None:
        """The line; None where rows are not lines."""
        return None if self.byte is None else self.number

    @property
    def row(self) -> int | None:
        """The row, where rows are not lines; None where they are."""
        return self.number if self.byte is None else None

    def __str__(self) -> str:
        what = 'row' if self.byte is None else 'line'
        return f'{" and ".join(file.path for file in self.files)}, {what} {self.number}'


class SourceRows(NamedTuple):
    """Some rows of a block.

    Attributes:
        block: of the corpus, without its text.
        rows: the rows that were asked for.
        keys: uint64[rows], their order keys.
        places: of each.
    """

    block: Block
    rows: Rows
    keys: np.ndarray
    places: list[RowPlace]


class _Source(NamedTuple):
    """A file of the corpus, or the files that are read side by side."""

    whole: WorkItem
    lines: list[TextLines]
    is_several: bool  # whether filters may make several rows of one

    @property
    def step(self) -> int:
        """From the identity of one row to that of the next, where rows have numbers."""
        return PIECES if self.is_several and self.whole.format.identity == 'row' else 1

    def items_at(self, offsets: np.ndarray) -> list[WorkItem]:
        return format_reader(self.whole.format).items_at(self.whole, offsets, self.lines)


class RowSources:
    """Reads rows of a corpus.

    Args:
        reading: the corpus.
        newlines: of each of its inputs, as the index has them.
        seed: of the order keys.
        manifest: of the dataset, for the sizes of files; None: they are those of the corpus.
    """

    def __init__(
        self,
        reading: CorpusReading,
        newlines: Sequence[FileNewlines],
        seed: int,
        manifest: Manifest | None = None,
    ):
        self._reading, self._newlines, self._seed = reading, newlines, seed
        self._manifest, self._archives = manifest, archive_lists()
        self._numbers: dict[tuple[str, int], list[int]] = collections.defaultdict(list)
        for number, each in enumerate(reading.corpus.inputs):
            self._numbers[each.split, each.file_index].append(number)

    def of_keys(self, split: str, keys: np.ndarray, workers: int) -> Iterator[SourceRows]:
        """Yields the rows with some order keys, uint64[n], of files and stretches in their order.

        Raises:
            InputError: a file cannot be read, or has changed.
        """
        left = np.unique(keys)
        # The line of the last of several rows may begin in the stretch before.
        for back in (0, STRETCH_BYTES):
            indexes, identities = places_of(left[order_of_corpus(left, self._seed)], self._seed)
            tasks, seen = [], [np.empty(0, np.uint64)]
            for own in runs_of(indexes):
                source = self._source(split, int(indexes[own.start]))
                offsets = np.maximum(identities[own] // source.step - back, 0)
                tasks += [(source, item, identities[own]) for item in source.items_at(offsets)]
            with ThreadPoolExecutor(max(1, workers)) as pool:
                for found in pool.map(lambda task: [*self._identified(*task)], tasks):
                    yield from found
                    seen += [each.keys for each in found]
            left = np.setdiff1d(left, np.concatenate(seen))
            if not len(left):
                return
        raise changed(source.lines[0].file)

    def on_line(self, split: str, path: str, number: int) -> Iterator[SourceRows]:
        """Yields what a line of a file has become, also rows that the dataset has not taken.

        Args:
            split: only its files are looked for.
            path: of the file, or the end of its path, or its name.
            number: of any line of a row, from 1; where rows are not lines, of the row, from 0.

        Raises:
            InputError: the split has no such file, or several; or it cannot be read, or has changed.
        """
        source = self._source(split, self._file_index(split, path))
        bounds: tuple[int, int] | None = (number, number + 1)
        if source.whole.format.identity == 'offset':
            bounds = source.lines[0].bounds(number - 1)
        if bounds is None:
            return
        for item in source.items_at(np.array(bounds[:1])):
            if not item.format.has_same_lines and not _is_named(item.files[0], path):
                raise InputError(
                    f'the rows of {path} are on other lines than in {item.files[0].path}; give the line '
                    'there'
                )
            for block, rows in self._rows(item, *bounds):
                starts, ends = format_reader(item.format).bounds_of_units(block) or (
                    rows.offsets,
                    rows.offsets + 1,
                )
                on_line = starts[(starts < bounds[1]) & (ends > bounds[0])]
                is_there = np.isin(rows.offsets, on_line)
                if is_there.any():
                    yield self._found(source, block, rows.select(is_there))

    def _source(self, name: str, index: int) -> _Source:
        """Returns files by their number; raises InputError if they have changed, as far as sizes show."""
        split = split_of(self._reading.corpus.splits, name, index)
        if split is None:
            raise InputError(
                f'{name} has no input file with number {index}; run `tokbeam index` again'
            )
        may_be_utf_16, lines = format_reader(split.format).may_be_utf_16, []
        for number in self._numbers[name, index]:
            each = self._reading.corpus.inputs[number]
            file = each.file
            if each.recorded is not None:
                file = _as_it_is(each, split.format.content, self._archives)
            if self._manifest is not None and not file.compressed:
                if self._manifest.inputs[number].bytes != file.size:
                    raise changed(file)
            newlines = self._newlines[number] or ()
            lines.append(TextLines(file, newlines, filesystem.open_binary, may_be_utf_16))
        ranges = tuple(TextRange(own.file, 0, own.file.size) for own in lines)
        item = WorkItem(name, split.format, index, ranges)
        return _Source(item, lines, makes_several(split.filters))

    def _identified(
        self, source: _Source, item: WorkItem, identities: np.ndarray
    ) -> Iterator[SourceRows]:
        """Yields the rows of an item with some of these identities, int64[n], ascending."""
        for block, rows in self._rows(item, int(identities[0]), int(identities[-1]) + 1):
            at = np.searchsorted(rows.identities, identities)
            is_here = np.append(rows.identities, -1)[at] == identities
            if is_here.any():
                yield self._found(source, block, rows.select(at[is_here]))

    def _rows(self, item: WorkItem, first: int, end: int) -> Iterator[tuple[Block, Rows]]:
        """Yields the blocks of an item that may have rows in bytes [first, end) of the text, and their rows."""
        for block in read_items([item], STRETCH_BYTES, self._reading.max_line_bytes):
            if block.offset >= end:
                return
            if block.read_ranges is None:
                read = block_checksums(block)[0]
                if read.offset + read.length <= first:
                    continue
            splits, normalizer = self._reading.corpus.splits, self._reading.scheme.normalizer
            yield block, select_rows(block, splits, normalizer)

    def _found(self, source: _Source, block: Block, rows: Rows) -> SourceRows:
        """Returns rows of a block with their places."""
        files = tuple(own.file for own in source.lines)
        files = files if block.format.has_same_lines else files[:1]
        is_line, numbers, offsets = block.format.identity == 'offset', rows.offsets, rows.offsets
        if is_line and block.read_ranges is None:
            assert block.first_line is not None
            feeds = np.flatnonzero(np.frombuffer(block.texts[0].data, np.uint8) == ord('\n'))
            numbers = 1 + block.first_line + np.searchsorted(feeds, offsets - block.offset)
        elif is_line:
            numbers = 1 + source.lines[0].numbers(offsets)
        pieces = (rows.identities - offsets * source.step).tolist()
        starts = offsets.tolist() if is_line else itertools.repeat(None)
        return SourceRows(
            # Without the text of the block: many of these may be in memory.
            dataclasses.replace(block, texts=(BlockText(block.offset, b''),), long_lines=()),
            dataclasses.replace(rows, sides=tuple(side.joined() for side in rows.sides)),
            order_keys(block.file_index, rows.identities, self._seed),
            [
                RowPlace(files, *place, source.is_several)
                for place in zip(numbers.tolist(), starts, pieces)
            ],
        )

    def _file_index(self, split: str, path: str) -> int:
        indexes = {
            each.file_index
            for each in self._reading.corpus.inputs
            if each.split == split and _is_named(each.file, path)
        }
        if len(indexes) != 1:
            what = 'several files' if indexes else 'no file'
            raise InputError(f'{split} has {what} {path}; give a path as the job has it')
        return indexes.pop()


def place_of(corpus: DatasetCorpus, read: CorpusRows, key: int) -> RowPlace:
    """Returns where a row comes from, by its order key and a pass over its split; raises as `of_keys`."""
    newlines = newlines_of(corpus.reading.corpus, read.checksums)
    sources = RowSources(corpus.reading, newlines, corpus.seed)
    [found] = sources.of_keys(read.split, np.array([key], np.uint64), 1)
    return found.places[0]


def found_again(corpus: Corpus) -> Corpus:
    """Returns a recorded corpus with its files as they are now; raises InputError if one has changed."""
    archives, now = archive_lists(), dict[tuple[str, int, int], CorpusInput]()
    for each in corpus.inputs:
        split = split_of(corpus.splits, each.split, each.file_index)
        assert split is not None
        file = _as_it_is(each, split.format.content, archives)
        now[each.split, each.file_index, each.side] = dataclasses.replace(each, file=file)
    splits = []
    for split in corpus.splits:
        sides = range(len(split.format.roles))
        files = [[now[split.name, n, side].file for side in sides] for n in split.file_indexes]
        splits.append(dataclasses.replace(split, files=tuple(map(tuple, files))))
    return dataclasses.replace(corpus, splits=tuple(splits), inputs=tuple(now.values()))


def _as_it_is(recorded: CorpusInput, content: str, archives: ArchiveLists) -> CorpusFile:
    """Returns a file that a run has read as it is now; raises InputError if it is missing or has changed."""
    before = recorded.stored
    try:
        matches = find_files(before.path, archives, content)
    except InputError as error:
        raise InputError(
            f'the rows were made of {before.path}, which cannot be read now ({error}); give --job with a '
            'job file that names where it is'
        ) from error
    now = next((match for match in matches if match.stored.path == before.path), None)
    if now is None or now.stored.size != before.size:
        raise changed(recorded.file)
    if now.stored.modified != before.modified:
        _LOGGER.warning('%s was written to after the rows were made of it', before.path)
    return now.named(recorded.file.name, None).file


def _is_named(file: CorpusFile, path: str) -> bool:
    """Returns whether a path is that of a file, or its end, or its name."""
    return path in (file.path, file.name) or file.path.endswith(f'/{path}')
