"""Rows of which some are kept as they are."""

from __future__ import annotations

import numpy as np

from tokcore.corpus.filters.row_filter import Filtered
from tokcore.text.sides import Side


def kept_rows(sides: tuple[Side, ...], is_kept: np.ndarray) -> Filtered:
    """Returns the rows for which `is_kept`, bool[rows], says so."""
    rows = np.flatnonzero(is_kept)
    if len(rows) == len(is_kept):
        return Filtered(sides, rows)
    taken = tuple(Side(each.text, each.starts[rows], each.ends[rows]) for each in sides)
    return Filtered(taken, rows)
