"""What all of a corpus becomes, by a sample of its text: what its records take on disk, and its ids.

How large records are follows from the scheme, the filters and, of compressed files, from what is in
them; and whether a vocabulary is for this text only its ids show. So some text is encoded, the
beginnings of work items that are spread over each dataset by their bytes, and stands for all of it.
The sample depends on the corpus and on what a row becomes, not on how the job is run.
"""

import bisect
import collections
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.files import filesystem
from pipelines.jobs.reading import ReadPlan
from pipelines.transforms.encode_blocks import BlockEncoder, LoadedBlockEncoder
from pipelines.transforms.read import CountedReads
from tokcore.corpus.archive_reading import reading_on
from tokcore.corpus.corpus import Block, MemberFile, OpenBinary, Split, WorkItem
from tokcore.corpus.formats import format_reader, read_blocks
from tokcore.reading.record_index import entry_type
from tokcore.records.examples import IdTally, add_id_tallies
from tokcore.records.sorted_runs import ROW_BYTES, SIZE_BYTES

_SAMPLED_ITEMS = 16
"""Items of a corpus, and one of each dataset at least. Half would show less of a corpus of many kinds of
text."""

_SAMPLED_BYTES = 256 << 10
"""Of the beginning of each: 4 MiB in all, which takes a kernel some tenths of a second, and a pre-tokenizer
in Python some seconds. With half of it, what is read of a compressed file ahead of its sample would count
for much."""

_LISTED_ROWS = 256
"""Rows of a block whose unknown tokens are listed, as examples: to list all may take longer than to encode."""


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


@dataclass(frozen=True)
class EncodedSample:
    """What a sample of a corpus became.

    Attributes:
        need: what all of the corpus takes on disk.
        text_bytes: that were encoded.
        ids: the counts of these, for each feature.
    """

    need: DiskNeed
    text_bytes: int
    ids: tuple[IdTally, ...]


def encode_sample(read_plan: ReadPlan, encoder: BlockEncoder) -> EncodedSample:
    """Encodes a sample of what is read.

    What Parquet takes on disk may be much more than the sample says, never less: what a work item
    stores is read before its first row.

    Args:
        read_plan: what is read; what is sampled follows from how it is cut into work items.
        encoder: of its blocks.

    Raises:
        InputError: a file cannot be read, or a vocabulary cannot spell its text.
    """
    # The job itself refuses lines that must not be left out, the first that it meets.
    loaded = encoder.load().for_samples(_LISTED_ROWS)
    corpus = read_plan.reading.corpus
    taken = [(split, _taken_passes(split, read_plan)) for split in corpus.splits]
    stored = sum(_stored(items) for _, passes in taken for items in passes)
    total, sampler = np.zeros(3), _Sampler(read_plan, loaded)
    for split, passes in taken:
        own = sum(map(_stored, passes))
        places = max(1, _SAMPLED_ITEMS * own // max(1, stored))
        sampled = _sample_dataset(passes, places, sampler)
        if split.max_examples is not None and sampled[0] > split.max_examples:
            sampled = sampled * (split.max_examples / sampled[0])
        total += sampled
    rows, records, rejected = total.tolist()
    files = records + rejected
    features = len(encoder.features)
    runs = files + (ROW_BYTES + SIZE_BYTES * (features + 1)) * rows
    index = entry_type(features, True, True).itemsize * rows
    need = DiskNeed(round(runs), round(files), round(index))
    return EncodedSample(need, sampler.text_bytes, sampler.ids)


_Sizes = np.ndarray
"""What came of some text, or is to come of all, float64[3]: rows, bytes of their records, and bytes of what
is kept of rows left out."""

_Pass = tuple[WorkItem, ...]
"""Work items that are read one after the other, as `ReadPlan.passes` has them."""


def _taken_passes(split: Split, read_plan: ReadPlan) -> list[_Pass]:
    """Returns a dataset's passes up to the last row that is taken."""
    last = split.file_indexes.stop if split.end is None else split.end[0]
    passes, indexes = read_plan.passes[split.name], split.file_indexes
    start, end = (
        bisect.bisect_left(passes, index, key=lambda items: items[0].file_index)
        for index in (indexes.start, indexes.stop)
    )
    return [items for items in passes[start:end] if min(item.file_index for item in items) <= last]


def _stored(items: Iterable[WorkItem]) -> int:
    return sum(item.stored_bytes for item in items)


def _sample_dataset(passes: Sequence[_Pass], places: int, sampler: '_Sampler') -> _Sizes:
    """Returns what is to come of all passes by those at this many places, evenly spread over bytes."""
    ends = list(itertools.accumulate(map(_stored, passes)))
    total = ends[-1] if ends else 0
    if not total:
        return np.zeros(3)
    middles = ((2 * place + 1) * total // (2 * places) for place in range(places))
    chosen = collections.Counter(bisect.bisect_right(ends, middle) for middle in middles)
    estimate = np.zeros(3)
    for number, times in chosen.items():
        sampled, stored = sampler.encode(passes[number])
        estimate += sampled * (times / places * total / max(1, stored))
    return estimate


class _Sampler:
    """Encodes the beginnings of passes; `text_bytes` are those that were encoded so far."""

    def __init__(self, read_plan: ReadPlan, encoder: LoadedBlockEncoder):
        self._read_plan, self._encoder = read_plan, encoder
        self._sampled_bytes = min(_SAMPLED_BYTES, read_plan.item_bytes)
        self._tallies: list[tuple[IdTally, ...]] = []
        self.text_bytes = 0

    @property
    def ids(self) -> tuple[IdTally, ...]:
        """The counts of the ids so far, for each feature; none without a block."""
        return tuple(map(add_id_tallies, zip(*self._tallies, strict=True)))

    def encode(self, items: _Pass) -> tuple[_Sizes, int]:
        """Encodes the beginning of a pass; returns what came of it, and of how many stored bytes."""
        sample, stored = np.zeros(3), 0
        left, reads = self._sampled_bytes, CountedReads(filesystem.open_binary)
        with reading_on(reads.open_binary, [item.files for item in items]) as open_binary:
            for item in items:
                # What is read of an archive is not one member's: a compressed one counts as read whole.
                is_stream = item.is_compressed and not any(
                    isinstance(file, MemberFile) for file in item.files
                )
                text = 0
                part = format_reader(item.format).beginning(item, left)
                for block in self._blocks(part, item, open_binary):
                    encoded = self._encoder.encode(block)
                    rejected = sum(len(lines.json_lines) for lines in encoded.stats.rejected)
                    sample += [len(encoded.rows), len(encoded.rows.records), rejected]
                    self._tallies.append(encoded.ids)
                    self.text_bytes += block.held_bytes
                    text += _read_bytes(block)
                    if text >= left:
                        read = reads.bytes if is_stream else text
                        return sample, stored + min(item.stored_bytes, read)
                left -= text
                stored += item.stored_bytes if part is item or not text else text
        return sample, stored

    def _blocks(self, part: WorkItem, item: WorkItem, open_binary: OpenBinary) -> Iterator[Block]:
        """Yields the blocks of the part of an item; of all of it if no row begins in the part."""
        has_any = False
        longest = self._read_plan.reading.max_line_bytes
        for block in read_blocks(part, open_binary, self._sampled_bytes, longest):
            has_any = True
            yield block
        if not has_any and part is not item:
            yield from read_blocks(item, open_binary, self._sampled_bytes, longest)


def _read_bytes(block: Block) -> int:
    """Returns how much was read for a block: stored bytes, or text if it was decompressed."""
    if block.read_ranges is None:
        return block.read_bytes
    return sum(read_range.length for read_range in block.read_ranges)
