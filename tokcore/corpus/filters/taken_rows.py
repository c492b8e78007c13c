"""The rows of a block that are taken: of a dataset with a limit those before its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from tokcore.corpus.dataset import Block, Split, split_of
from tokcore.corpus.formats.corpus_format import block_rows
from tokcore.corpus.rows import Rows
from tokcore.text.normalizer import Normalizer
from tokcore.text.sides import Side


def taken_rows(block: Block, splits: Sequence[Split], normalizer: Normalizer) -> Rows:
    """Returns a block's rows but for those behind its dataset's end, which are only counted.

    Args:
        block: whole rows.
        splits: the corpus.
        normalizer: what makes text of rows.
    """
    rows = block_rows(block, normalizer)
    split = split_of(splits, block.split, block.place)
    if split is None or split.end is None:
        return rows
    place, offset = split.end
    if block.place < place:
        return rows
    return _before(rows, offset if block.place == place else 0)


def _before(rows: Rows, end: int) -> Rows:
    """The rows before a place of their (first) file.

    Of a pair that is left out for what stands in its second file, nobody knows where it is in the
    first one: it stays.
    """
    kept = int(np.searchsorted(rows.offsets, end))
    rejects = tuple(each for each in rows.rejects if each.side or each.offset < end)
    return dataclasses.replace(
        rows,
        sides=tuple(Side(each.text, each.starts[:kept], each.ends[:kept]) for each in rows.sides),
        line_starts=rows.line_starts[:kept],
        kept=tuple(each.taken(slice(kept)) for each in rows.kept),
        rejects=rejects,
        beyond=len(rows) - kept + len(rows.rejects) - len(rejects),
    )


def find_end(
    blocks: Iterable[Block], max_examples: int, normalizer: Normalizer
) -> tuple[int, int] | None:
    """Returns place and offset behind the last row that is taken; None if there are no more rows.

    Args:
        blocks: of a dataset, in the order of places and rows; no more are taken than are needed.
        max_examples: as many rows are taken.
        normalizer: what makes text of rows.
    """
    left = max_examples
    for block in blocks:
        rows = block_rows(block, normalizer)
        if len(rows) >= left:
            return block.place, int(rows.offsets[left - 1]) + 1
        left -= len(rows)
    return None

