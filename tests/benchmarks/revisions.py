"""Rows against an earlier revision of this project, in place of peers or beside them."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# What is shared with tests of other rooms; pytest finds it in the same way.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from earlier_revisions import MissingRevisionError, packages_of  # noqa: E402

from .comparing import RowResult  # noqa: E402
from .contenders import Row  # noqa: E402

__all__ = [
    'MissingRevisionError',
    'SpeedRatio',
    'against',
    'root_of',
    'speed_ratio',
    'without_peers',
]

_ALIKE = 0.93
"""Below it a row is to be measured again, with more runs."""


@dataclass(frozen=True)
class SpeedRatio:
    """How many times as long as today's an earlier revision takes."""

    mean: float
    """Geometric, over the rows."""
    rows: int
    slower: tuple[tuple[str, float], ...]
    """The rows in which today's is much slower, and their ratios."""


def root_of(revision: str) -> Path:
    """Returns a folder with a revision's code and its benchmark, run by this environment's Python.

    Raises:
        MissingRevisionError: it cannot be had here.
    """
    return packages_of(revision)


def without_peers(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows with this project's contender alone."""
    return [replace(row, peers=(), targets={}) for row in rows]


def against(rows: Sequence[Row], revision: str, root: Path) -> list[Row]:
    """Returns the rows with this project's contender as it was at a revision as one more peer."""
    return [
        replace(
            row,
            peers=(*row.peers, replace(row.ours, label=revision, root=root)),
            patience='wait' if not row.peers else row.patience,
        )
        for row in rows
    ]


def speed_ratio(results: Sequence[RowResult], revision: str) -> SpeedRatio | None:
    """Returns the ratios of all rows to the revision as one; None if no row has any."""
    ratios = {
        result.row.name: comparison.ratio
        for result in results
        for comparison in result.comparisons
        if comparison.peer is not None
        and comparison.peer.label == revision
        and comparison.ratio is not None
    }
    if not ratios:
        return None
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    slower = tuple((name, ratio) for name, ratio in ratios.items() if ratio < _ALIKE)
    return SpeedRatio(mean, len(ratios), slower)
