"""Some rows written anew, all at once as the lines of one text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.corpus.filters.texts.row_kernels import join_lines
from tokcore.text.sides import Side

_FEED = 0x0A


def rewritten(side: Side, rows: np.ndarray, rewrite: Callable[[bytes], bytes]) -> Side:
    """Returns a side of which some rows are written anew, the same one if nothing changes.

    Args:
        side: rows of text.
        rows: int64[…], ascending: those that may change.
        rewrite: what is done to them; each is a line, or several if there are line feeds in it. It
            makes as many line feeds as there were, in their order.
    """
    if not len(rows):
        return side
    joined, _, ends = join_lines(
        read_only(side.text), read_only(side.starts[rows]), read_only(side.ends[rows])
    )
    given = joined.tobytes()
    made = rewrite(given)
    if made == given:
        return side
    new = np.frombuffer(made, np.uint8)
    feeds = np.flatnonzero(new == _FEED)
    # Which of all line feeds stands behind each row.
    last = np.searchsorted(np.flatnonzero(joined == _FEED), ends)
    new_ends = feeds[last]
    new_starts = np.concatenate([[0], new_ends[:-1] + 1])
    starts, all_ends = side.starts.copy(), side.ends.copy()
    starts[rows] = new_starts + len(side.text)
    all_ends[rows] = new_ends + len(side.text)
    return Side(read_only(np.concatenate([side.text, new])), starts, all_ends)
