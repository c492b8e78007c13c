"""Rows that compare with an earlier revision of this project."""

import json
import os
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .comparing import RowResult
from .contenders import Contender, Row
from .inputs import Inputs

_ALIKE = 0.93
"""A row with a smaller ratio should be measured again, with more runs."""


@dataclass(frozen=True)
class SpeedRatio:
    """The time of an earlier revision divided by the time of this one."""

    mean: float
    """Geometric, over the rows."""
    rows: int
    slower: tuple[tuple[str, float], ...]
    """The rows in which this revision is clearly slower, with their ratios."""


def without_peers(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows without other contenders."""
    return [replace(row, peers=(), targets={}) for row in rows]


def against(rows: Sequence[Row], revision: str, root: Path) -> list[Row]:
    """Returns the rows with the earlier revision of our contender as one more peer."""
    return [
        replace(
            row,
            peers=(*row.peers, _at(row.ours, revision, root)),
            patience='wait' if not row.peers else row.patience,
        )
        for row in rows
    ]


def _at(ours: Contender, revision: str, root: Path) -> Contender:
    """Returns our contender at a revision, with a dataset that the revision can read."""

    def options(inputs: Inputs) -> dict:
        values = ours.options(inputs)
        folder = values.get('folder')
        return values if folder is None else {**values, 'folder': _dataset_for(root, Path(folder))}

    return replace(ours, label=revision, root=root, options=options)


def _dataset_for(root: Path, folder: Path) -> str:
    """Returns the dataset, or a copy whose manifest has the format number that a revision reads."""
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
    """Returns the mean of all ratios to the revision; None if no row has one."""
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
    mean = statistics.geometric_mean(ratios.values())
    slower = tuple((name, ratio) for name, ratio in ratios.items() if ratio < _ALIKE)
    return SpeedRatio(mean, len(ratios), slower)
