"""The rows of a block that are in a sample for the vocabulary; without one, all that are taken."""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.dataset import Block, Split
from tokcore.corpus.filters.taken_rows import taken_rows
from tokcore.corpus.formats.line_kernels import line_bounds
from tokcore.corpus.rows import Rows
from tokcore.corpus.sampling.taken_lines import TakenLines
from tokcore.records.order_keys import order_keys
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side

_SEED = 0
"""Of the order keys, whatever shuffles: another order of examples is not another vocabulary."""


@dataclass(frozen=True)
class CountedRows:
    """What is counted of a block.

    Attributes:
        rows: for what is told of the block; those outside the sample are in `not_sampled` alone.
        sides: texts to count. They may differ in their number of rows, and from `rows`: a sample of
            lines is of each side by itself.
    """

    rows: Rows
    sides: tuple[Side, ...]


class RowSample(abc.ABC):
    """A sample, as workers are to know it."""

    @abc.abstractmethod
    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> CountedRows:
        """Returns what is counted of a block, as `counted_rows` says."""


def counted_rows(
    block: Block,
    splits: Sequence[Split],
    normalizer: Normalizer,
    sides: frozenset[int],
    sample: RowSample | None,
) -> CountedRows:
    """Returns what is counted of a block.

    Args:
        block: whole rows.
        splits: the corpus.
        normalizer: what makes text of rows.
        sides: which ones are counted.
        sample: what they must be in; None: any.
    """
    if sample is not None:
        return sample.rows(block, splits, normalizer, sides)
    rows = taken_rows(block, splits, normalizer)
    return CountedRows(rows, rows.sides)


@dataclass(frozen=True)
class UniformSample(RowSample):
    """Rows whose order key is below a threshold: whoever reads them, in whatever pieces.

    Attributes:
        threshold: above 0, below 2^64.
    """

    threshold: int

    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> CountedRows:
        rows = taken_rows(block, splits, normalizer)
        keys = order_keys(block.place, rows.identities, _SEED)
        rows = _only(rows, keys < np.uint64(self.threshold))
        return CountedRows(rows, rows.sides)


@dataclass(frozen=True)
class LineSample(RowSample):
    """Lines of files by their numbers: `taken_lines` says which. Blocks are numbered by `line_numbers`.

    A line is counted for its own sake and as it is: also where the other side of its pair is empty or
    cannot be used, and whatever filters make of the row. Of that Tensor2Tensor knows nothing when it
    samples a file.

    Attributes:
        taken: by place and side; the lines of other files are not taken.
    """

    taken: Mapping[tuple[int, int], TakenLines]

    def rows(
        self, block: Block, splits: Sequence[Split], normalizer: Normalizer, sides: frozenset[int]
    ) -> CountedRows:
        rows = taken_rows(block, splits, normalizer)
        lines = [_lines(text.data, block.max_line_bytes) for text in block.texts]
        texts = []
        is_taken = np.zeros(rows.lines, bool)
        for side, all_lines in enumerate(lines):
            taken = self.taken.get((block.place, side), TakenLines(1, 0))
            among = taken.among(block.first_line, len(all_lines))
            of_taken = Side(all_lines.text, all_lines.starts[among], all_lines.ends[among])
            text = normalizer.apply(of_taken).side
            there = text.ends > text.starts
            texts.append(Side(text.text, text.starts[there], text.ends[there]))
            if side in sides:
                is_taken[among] = True
        numbers = np.searchsorted(lines[0].starts, rows.line_starts)
        return CountedRows(_only(rows, is_taken[numbers]), tuple(texts))


def _lines(data: bytes, max_line_bytes: int) -> Side:
    """The lines of a file's part of a block; those that are too long are empty."""
    text = np.frombuffer(data, np.uint8)
    starts, ends = line_bounds(text)
    too_long = ends - starts > max_line_bytes
    if too_long.any():
        ends = np.where(too_long, starts, ends)
    return Side(text, starts, ends)


def _only(rows: Rows, is_sampled: np.ndarray) -> Rows:
    """The rows that `is_sampled` (bool[rows]) says; the others are counted."""
    chosen = np.flatnonzero(is_sampled)
    return dataclasses.replace(rows.at(chosen), not_sampled=len(rows) - len(chosen))
