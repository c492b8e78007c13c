"""The rows of a block that are taken: those that filters leave, before its dataset's end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from tokcore.corpus.dataset import Block, Split, split_of
from tokcore.corpus.filters.filtered_rows import filtered_rows, identity_step
from tokcore.corpus.formats.corpus_format import block_rows
from tokcore.corpus.rows import Rows
from tokcore.text.normalizer import Normalizer


def taken_rows(block: Block, splits: Sequence[Split], normalizer: Normalizer) -> Rows:
    """Returns a block's rows as filters leave them, but for those behind its dataset's end.

    The latter are only counted, and no filter sees them.

    Args:
        block: whole rows.
        splits: the corpus.
        normalizer: what makes text of rows.

    Raises:
        InputError: a user's filter fails.
    """
    rows = block_rows(block, normalizer)
    split = split_of(splits, block.split, block.place)
    if split is None:
        return rows
    end = None
    if split.end is not None and block.place >= split.end[0]:
        end = split.end[1] if block.place == split.end[0] else 0
        # The end may be between rows that come of one, which then is filtered.
        rows = _before(rows, -(-end // identity_step(split)))
    if not split.filters:
        return rows
    rows = filtered_rows(rows, split, block, normalizer)
    return rows if end is None else _pieces_before(rows, end)


def _pieces_before(rows: Rows, end: int) -> Rows:
    """The rows whose identities are before one."""
    kept = int(np.searchsorted(rows.identities, end))
    return dataclasses.replace(
        rows.at(slice(kept)), beyond=rows.beyond + len(rows) - kept
    )


def _before(rows: Rows, end: int) -> Rows:
    """The rows before a place of their (first) file.

    Of a pair that is left out for what stands in its second file, nobody knows where it is in the
    first one: it stays.
    """
    kept = int(np.searchsorted(rows.offsets, end))
    rejects = tuple(each for each in rows.rejects if each.side or each.offset < end)
    return dataclasses.replace(
        rows.at(slice(kept)),
        rejects=rejects,
        beyond=len(rows) - kept + len(rows.rejects) - len(rejects),
    )


def find_end(
    blocks: Iterable[Block], split: Split, normalizer: Normalizer
) -> tuple[int, int] | None:
    """Returns place and identity behind the last row that is taken; None if there are no more rows.

    Args:
        blocks: of the dataset, in the order of places and rows; no more are taken than are needed.
        split: the dataset; `max_examples` are those that its filters leave.
        normalizer: what makes text of rows.

    Raises:
        InputError: a user's filter fails.
    """
    left = split.max_examples
    for block in blocks:
        rows = block_rows(block, normalizer)
        if split.filters:
            rows = filtered_rows(rows, split, block, normalizer)
        if len(rows) >= left:
            return block.place, int(rows.identities[left - 1]) + 1
        left -= len(rows)
    return None
