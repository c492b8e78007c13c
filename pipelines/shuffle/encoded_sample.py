"""What all of a corpus becomes, by a sample of its text: what its records take on disk, and its ids.

How large records are follows from the scheme, the filters and, of compressed files, from what is in
them; and whether a vocabulary is for this text only its ids show. So some text is encoded, the
beginnings of work items that are spread over each dataset by their bytes, and stands for all of it.
The sample depends on the corpus and on what a row becomes, not on how the job is run.
"""

import bisect
import collections
import itertools
import time
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
from tokcore.records.tfrecord import FramedRows

_SAMPLED_ITEMS = 16
"""Items of a corpus, and one of each dataset at least. Half would show less of a corpus of many kinds of
text."""

_SAMPLED_BYTES = 256 << 10
"""Of the beginning of each: 4 MiB in all, which takes a kernel some tenths of a second, and a pre-tokenizer
in Python some seconds. With half of it, what is read of a compressed file ahead of its sample would count
for much."""

_THOROUGH_ITEMS, THOROUGH_BYTES = 128, 64 << 10
"""Of a thorough sample: many small ones, since neighbours are alike, 8 MiB in all."""

_MOST_STEP, _COMPRESSED_RATIO = 128, 5
"""Of a compressed file a thorough sample encodes one block of at most so many, and reads on up to there, a GiB
in all. How long its text is, is a guess by its size."""

_READ_AHEAD = 16 << 10
"""Of a compressed file, half of what is read at once: on average so much is not yet needed."""

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
        total: what is to come of all of the corpus.
        spread: twice the standard error of each number of `total`; NaN if one block was encoded.
        seconds: that encoding took.
        rows: that were encoded, of a thorough sample.
    """

    need: DiskNeed
    text_bytes: int
    ids: tuple[IdTally, ...]
    total: np.ndarray
    spread: np.ndarray
    seconds: float
    rows: list[FramedRows]


def encode_sample(
    read_plan: ReadPlan, encoder: BlockEncoder, is_thorough: bool = False
) -> EncodedSample:
    """Encodes a sample of what is read.

    What Parquet takes on disk may be much more than the sample says, never less: what a work item
    stores is read before its first row.

    Args:
        read_plan: what is read; what is sampled follows from how it is cut into work items.
        encoder: of its blocks.
        is_thorough: take more of the text, for an estimate that users see; too slow for each job.

    Raises:
        InputError: a file cannot be read, or a vocabulary cannot spell its text.
    """
    # The job itself refuses lines that must not be left out, the first that it meets.
    loaded = encoder.load().for_samples(_LISTED_ROWS)
    corpus = read_plan.reading.corpus
    taken = [(split, _taken_passes(split, read_plan)) for split in corpus.splits]
    stored = sum(_stored(items) for _, passes in taken for items in passes)
    sampler = _Sampler(read_plan, loaded, is_thorough)
    number = _THOROUGH_ITEMS if is_thorough else _SAMPLED_ITEMS
    total, variance = np.zeros(_KINDS), np.zeros(_KINDS)
    for split, passes in taken:
        own = sum(map(_stored, passes))
        places = max(1, number * own // max(1, stored))
        sampled, own_variance = _sample_dataset(passes, places, sampler)
        share = min(1, (split.max_examples or np.inf) / max(1, sampled[ROWS]))
        total += sampled * share
        variance += own_variance * share**2
    rows, records, rejected, *_ = total.tolist()
    files = records + rejected
    features = len(encoder.features)
    runs = files + (ROW_BYTES + SIZE_BYTES * (features + 1)) * rows
    index = entry_type(features, True, True).itemsize * rows
    need = DiskNeed(round(runs), round(files), round(index))
    spread = 2 * np.sqrt(variance)
    return EncodedSample(
        need, sampler.text_bytes, sampler.ids, total, spread, sampler.seconds, sampler.rows
    )


ROWS, RECORDS, _REJECTED, IDS, TEXT = range(_KINDS := 5)

_Sizes = np.ndarray
"""What came of some text, or is to come of all, float64[5]: rows, bytes of their records, bytes of what
is kept of rows left out, ids with those around a text, and bytes of text."""

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


def _sample_dataset(
    passes: Sequence[_Pass], places: int, sampler: '_Sampler'
) -> tuple[_Sizes, _Sizes]:
    """Returns what is to come of all passes by those at this many places, evenly spread over bytes.

    The second array has the variances.
    """
    ends = list(itertools.accumulate(map(_stored, passes)))
    total = ends[-1] if ends else 0
    if not total:
        return np.zeros(_KINDS), np.zeros(_KINDS)
    middles = ((2 * place + 1) * total // (2 * places) for place in range(places))
    chosen = collections.Counter(bisect.bisect_right(ends, middle) for middle in middles)
    estimates, weights, read = [], [], 0.0
    for number, times in chosen.items():
        parts = sampler.encode(passes[number], times)
        own = sum(stored for _, stored in parts)
        read += own
        estimates += [sizes * (total / stored) for sizes, stored in parts]
        weights += [times / places * stored / own for _, stored in parts]
    estimate = np.array(weights) @ np.array(estimates)
    unread, count = max(0.0, 1 - read / total), len(estimates)
    if count == 1:
        return estimate, np.full(_KINDS, np.nan if unread else 0.0)
    deviations = (np.array(estimates) - estimate) ** 2
    return estimate, unread * (np.square(weights) @ deviations) * count / (count - 1)


class _Sampler:
    """Encodes the beginnings of passes; `text_bytes` are those that were encoded so far."""

    def __init__(self, read_plan: ReadPlan, encoder: LoadedBlockEncoder, is_thorough: bool):
        self._read_plan, self._encoder, self._is_thorough = read_plan, encoder, is_thorough
        size = THOROUGH_BYTES if is_thorough else _SAMPLED_BYTES
        self._sampled_bytes = min(size, read_plan.item_bytes)
        self._tallies: list[tuple[IdTally, ...]] = []
        self.text_bytes, self.seconds = 0, 0.0
        self.rows: list[FramedRows] = []

    @property
    def ids(self) -> tuple[IdTally, ...]:
        """The counts of the ids so far, for each feature; none without a block."""
        return tuple(map(add_id_tallies, zip(*self._tallies, strict=True)))

    def encode(self, items: _Pass, times: int) -> list[tuple[_Sizes, float]]:
        """Encodes the beginning of a pass, or, of a compressed one, blocks spread over more of it.

        Returns what came of each block, and of how many stored bytes.
        """
        parts: list[tuple[_Sizes, int]] = []
        stored, texts, step, left = 0, list[int](), 1, self._sampled_bytes
        reads = CountedReads(filesystem.open_binary)
        if self._is_thorough:
            left *= times
            if any(
                item.is_compressed or format_reader(item.format).beginning(item, left) is item
                for item in items
                if item.stored_bytes > left
            ):
                step = max(1, min(_MOST_STEP, _COMPRESSED_RATIO * _stored(items) // left))
                left = max(left * step, _SAMPLED_BYTES)  # less is read at once
        with reading_on(reads.open_binary, [item.files for item in items]) as open_binary:
            for item in items:
                # What is read of an archive is not one member's: a compressed one counts as read whole.
                is_stream = item.is_compressed and not any(
                    isinstance(file, MemberFile) for file in item.files
                )
                text = 0
                part = format_reader(item.format).beginning(item, left)
                for block in self._blocks(part, item, open_binary):
                    if len(texts) % step == 0:
                        parts.append((self._encode(block), max(1, block.held_bytes)))
                    texts.append(block.held_bytes)
                    text += _read_bytes(block)
                    # Of Parquet all is read before the first row.
                    is_read = self._is_thorough and not is_stream and text >= item.stored_bytes
                    if text >= left and not is_read:
                        break
                left -= text
                if left <= 0:
                    ahead = _READ_AHEAD if self._is_thorough else 0
                    read = max(1, reads.bytes - ahead) if is_stream else text
                    stored += min(item.stored_bytes, read)
                    break
                stored += item.stored_bytes if part is item or not text else text
        share = max(1, stored) / max(1, sum(texts))
        parts = parts or [(np.zeros(_KINDS), max(1, sum(texts)))]
        return [(sizes, text * share) for sizes, text in parts]

    def _encode(self, block: Block) -> _Sizes:
        began = time.perf_counter()
        encoded = self._encoder.encode(block)
        self.seconds += time.perf_counter() - began
        rows = encoded.rows
        if self._is_thorough:
            self.rows.append(rows)
        self._tallies.append(encoded.ids)
        self.text_bytes += block.held_bytes
        rejected = sum(len(lines.json_lines) for lines in encoded.stats.rejected)
        ids, text = rows.sizes[:, :-1].sum(), rows.sizes[:, -1:].sum()
        return np.array([len(rows), len(rows.records), rejected, ids, text], float)

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
