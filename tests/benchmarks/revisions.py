"""Rows against an earlier revision of this project, in place of peers or beside them."""

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# What is shared with tests of other rooms; pytest finds it in the same way.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from earlier_revisions import MissingRevisionError, packages_of  # noqa: E402

from .comparing import RowResult  # noqa: E402
from .contenders import Contender, Row  # noqa: E402
from .inputs import Inputs  # noqa: E402

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
            peers=(*row.peers, _at(row.ours, revision, root)),
            patience='wait' if not row.peers else row.patience,
        )
        for row in rows
    ]


def _at(ours: Contender, revision: str, root: Path) -> Contender:
    """Returns this project's contender as it was at a revision, given what that can read."""

    def options(inputs: Inputs) -> dict:
        values = ours.options(inputs)
        folder = values.get('folder')
        return values if folder is None else {**values, 'folder': _dataset_for(root, Path(folder))}

    return replace(ours, label=revision, root=root, options=options)


def _dataset_for(root: Path, folder: Path) -> str:
    """Returns a dataset whose manifest has the format number that a revision reads; else the same."""
    numbers, before = root / 'tokcore/format_numbers.py', root / 'pipelines/artifacts/manifest.py'
    if numbers.exists():
        found = re.search(r'^DATASET = (\d+)', numbers.read_text(), re.MULTILINE)
    else:
        found = re.search(r'^FORMAT = (\d+)', before.read_text(), re.MULTILINE)
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    if found is None or int(found[1]) == manifest['format']:
        return str(folder)
    copy = folder.with_name(f'{folder.name}.format{found[1]}')
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, copy_function=os.link)
    (copy / 'tokbeam.json').unlink()
    (copy / 'tokbeam.json').write_text(json.dumps({**manifest, 'format': int(found[1])}))
    return str(copy)


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
