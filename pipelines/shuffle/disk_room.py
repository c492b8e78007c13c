"""Whether there is room on disk for a shuffle's runs and its shards, before any of them is written.

How large records are follows from the scheme, the filters and, of compressed files, from what is in
them. So some text is encoded, the beginnings of work items that are spread over each dataset by their
bytes, and stands for all of it.
"""

import bisect
import collections
import dataclasses
import itertools
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus
from pipelines.jobs.read_plan import ReadPlan
from pipelines.transforms.encode_blocks import BlockEncoder, LoadedBlockEncoder
from tokcore.corpus.archive_reading import reading_on
from tokcore.corpus.corpus import Block, MemberFile, Split, WorkItem
from tokcore.corpus.formats import read_blocks
from tokcore.errors import FullDiskError
from tokcore.reading.record_index import OFFSET_BYTES
from tokcore.records.examples import EncodedBlock
from tokcore.records.sorted_runs import ROW_BYTES

_SAMPLED_ITEMS = 16
"""Of a corpus, and one of each dataset at least: at the default size of an item it takes a second or
two to encode them. Half would tell less of a corpus of many kinds of text."""

_LEAST_SHARE = 0.5
"""Of what a sample says is needed: with less free a job is refused, with more it begins. Later text
may be so much shorter, or more is left out of it; a job that would fit must not be refused, and one
that does not fit after all ends with a sentence and keeps what is finished."""

_AMPLE = 8
"""So many times the guess from the text's size are free: then no text is encoded to know better. Of
lines of ten bytes the records are six times their text; half would leave less beyond these."""


@dataclass(frozen=True)
class DiskNeed:
    """Bytes on disk that a job takes until its result is whole."""

    runs: int
    shards: int
    index: int = 0

    @property
    def result(self) -> int:
        return self.shards + self.index

    @property
    def bytes(self) -> int:
        return self.runs + self.result


def find_room(
    read_plan: ReadPlan, encoder: BlockEncoder, runs_folder: str, output: str
) -> DiskNeed:
    """Returns about how much a job needs: by a sample, or by its text's size if there is ample room.

    Args:
        read_plan: what is read, as work items.
        encoder: of its blocks.
        runs_folder: where the runs go; those that are there already need no room.
        output: the folder of the shards, perhaps on another disk.

    Raises:
        FullDiskError: there is less than half of what the job seems to need.
    """
    need = _guess(read_plan.reading.corpus)
    if all(use.free > _AMPLE * use.bytes for use in _uses(need, runs_folder, output)):
        return need
    need = measure_need(read_plan, encoder)
    for use in _uses(need, runs_folder, output):
        if use.free < _LEAST_SHARE * use.bytes:
            raise FullDiskError(
                f'about {_mib(use.bytes)} MiB are needed in {use.folder} for {use.what}, by a sample '
                f'of the text, and {use.free >> 20} MiB are free; make room, or give another '
                f'{use.option}'
            )
    return need


@dataclass(frozen=True)
class _Use:
    """Bytes that are needed on the disk of a folder, and that are free there."""

    folder: str
    what: str
    option: str
    bytes: int

    @property
    def free(self) -> int:
        return shutil.disk_usage(_existing(self.folder)).free


def _uses(need: DiskNeed, runs_folder: str, output: str) -> list[_Use]:
    """Returns what is needed of each disk of this machine."""
    there = 0
    if not filesystem.is_shared(runs_folder) and os.path.isdir(runs_folder):
        there = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(runs_folder))
    runs = _Use(runs_folder, 'the shuffle', '--work', max(0, need.runs - there))
    shards = _Use(output, 'the result', '--output', need.result)
    local = [use for use in (runs, shards) if not filesystem.is_shared(use.folder)]
    if len({os.stat(_existing(use.folder)).st_dev for use in local}) == 2 or len(local) < 2:
        return local
    both = 'the shuffle and the result'
    return [_Use(output, both, '--output', runs.bytes + shards.bytes)]


def _existing(folder: str) -> str:
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _guess(corpus: Corpus) -> DiskNeed:
    text = sum(map(corpus.text_bytes, corpus.split_names))
    return DiskNeed(text * 11 // 10, text)


def measure_need(read_plan: ReadPlan, encoder: BlockEncoder) -> DiskNeed:
    """Returns what all records take, by those of a sample.

    Of Parquet it may be much too little, never too much: what a work item stores is read before its
    first row.

    Raises:
        InputError: a file cannot be read, or a vocabulary cannot spell its text.
    """
    # What must not be left out is for the job to tell, of the first line that it meets.
    loaded = dataclasses.replace(encoder, on_error='skip').load()
    corpus = read_plan.reading.corpus
    taken = [(split, _taken_passes(split, read_plan)) for split in corpus.splits]
    stored = sum(_stored(items) for _, passes in taken for items in passes)
    total = _Sampled()
    for split, passes in taken:
        own = sum(map(_stored, passes))
        places = max(1, _SAMPLED_ITEMS * own // max(1, stored))
        sampled = _sample_dataset(passes, places, read_plan, loaded)
        if split.max_examples is not None and sampled.rows > split.max_examples:
            sampled = sampled.times(split.max_examples / sampled.rows)
        total += sampled
    files = total.records + total.rejected
    runs, index = files + ROW_BYTES * total.rows, OFFSET_BYTES * total.rows
    return DiskNeed(round(runs), round(files), round(index))


@dataclass(frozen=True)
class _Sampled:
    """What came of some text, or is to come of all."""

    rows: float = 0
    records: float = 0  # bytes of them
    rejected: float = 0  # bytes of what is kept of rows left out

    def __add__(self, other: '_Sampled') -> '_Sampled':
        return _Sampled(
            self.rows + other.rows,
            self.records + other.records,
            self.rejected + other.rejected,
        )

    def times(self, factor: float) -> '_Sampled':
        return _Sampled(self.rows * factor, self.records * factor, self.rejected * factor)


_Pass = tuple[WorkItem, ...]
"""Work items that are read one after the other, as `ReadPlan.passes` has them."""


def _taken_passes(split: Split, read_plan: ReadPlan) -> list[_Pass]:
    """Returns a dataset's passes up to the last row that is taken."""
    last = split.file_indexes.stop if split.end is None else split.end[0]
    return [
        items
        for items in read_plan.passes[split.name]
        if items[0].file_index in split.file_indexes
        and min(item.file_index for item in items) <= last
    ]


def _stored(items: Iterable[WorkItem]) -> int:
    return sum(item.stored_bytes for item in items)


def _sample_dataset(
    passes: Sequence[_Pass], places: int, read_plan: ReadPlan, encoder: LoadedBlockEncoder
) -> _Sampled:
    """Returns what is to come of all passes by those at this many places, evenly spread over bytes."""
    ends = list(itertools.accumulate(map(_stored, passes)))
    total = ends[-1] if ends else 0
    if not total:
        return _Sampled()
    middles = ((2 * place + 1) * total // (2 * places) for place in range(places))
    chosen = collections.Counter(bisect.bisect_right(ends, middle) for middle in middles)
    estimate = _Sampled()
    for number, times in chosen.items():
        sampled, stored = _sample_pass(passes[number], read_plan, encoder)
        estimate += sampled.times(times / places * total / max(1, stored))
    return estimate


def _sample_pass(
    items: _Pass, read_plan: ReadPlan, encoder: LoadedBlockEncoder
) -> tuple[_Sampled, int]:
    """Encodes the beginning of a pass; returns what came of it, and of how many stored bytes."""
    sample, stored, left = _Sampled(), 0, read_plan.item_bytes
    reads = _CountedReads()
    with reading_on(reads.open_binary, [item.files for item in items]) as open_binary:
        for item in items:
            # What is read of an archive is not one member's: a compressed one counts as read whole.
            is_stream = item.is_compressed and not any(
                isinstance(file, MemberFile) for file in item.files
            )
            text = 0
            for block in read_blocks(
                item, open_binary, read_plan.item_bytes, read_plan.reading.max_line_bytes
            ):
                sample += _of_block(encoder.encode(block))
                text += _read_bytes(block)
                if text >= left:
                    read = reads.bytes if is_stream else text
                    return sample, stored + min(item.stored_bytes, read)
            left -= text
            stored += item.stored_bytes
    return sample, stored


def _of_block(encoded: EncodedBlock) -> _Sampled:
    rejected = sum(len(lines.json_lines) for lines in encoded.stats.rejected)
    return _Sampled(len(encoded.rows), len(encoded.rows.records), rejected)


def _read_bytes(block: Block) -> int:
    """Returns how much was read for a block: stored bytes, or text if it was decompressed."""
    if block.read_ranges is None:
        return block.read_bytes
    return sum(read_range.length for read_range in block.read_ranges)


class _CountedReads:
    """Counts the bytes that are read of files as they are stored."""

    def __init__(self):
        self.bytes = 0

    def open_binary(self, path: str) -> BinaryIO:
        return _CountedFile(filesystem.open_binary(path), self)  # type: ignore[return-value]


class _CountedFile:
    """A file of which reads are counted; all else is as the file has it."""

    def __init__(self, file: BinaryIO, reads: _CountedReads):
        self._file, self._reads = file, reads

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._reads.bytes += len(data)
        return data

    def __getattr__(self, name: str):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._file.close()


def _mib(size: int) -> int:
    return -(-size >> 20)
