"""The lines of a table of tokbench's cells, from the figures that `--output` writes."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .speed_plot import with_version
from .tokbench import OURS, SPEEDS, with_spread

Cell = Mapping[str, Any]


def library_lines(cells: Sequence[Cell]) -> Iterator[list[str]]:
    """Yields the head of a model's table, and a line for each library.

    A speed is the median over the kinds of text for which the library has equal ids.
    """
    one_core, all_cores = (_equal(cells, cores) for cores in ('one', 'all'))
    yield ['', 'opened', *SPEEDS, *(['all cores'] if all_cores else []), 'equal ids']
    for library in dict.fromkeys(cell['library'] for cell in cells):
        compared = [cell for cell in cells if (cell['library'], cell['cores']) == (library, 'one')]
        equal = one_core[library]
        opened = zip(*(cell['opened'] for cell in equal))
        yield [
            with_version(library, compared[0].get('version')),
            ', '.join(f'{statistics.median(seconds):.2g} s' for seconds in opened),
            *(_over_kinds(equal, speed) for speed in SPEEDS),
            *([_over_kinds(all_cores[library], 'unseen')] if all_cores else []),
            _equal_ids(compared),
        ]


def times_behind(cells: Sequence[Cell], cores: str, speed: str) -> str:
    """Returns '2 of 9': the models and texts with which a library is faster than tokbeam."""
    speeds: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for cell in cells:
        if cell['ids'] == 'equal' and cell['cores'] == cores:
            speeds[cell['model'], cell['kind']][cell['library']] = statistics.median(cell[speed])
    compared = [by_library for by_library in speeds.values() if 'tokbeam' in by_library]
    behind = sum(
        any(
            speed > by_library['tokbeam']
            for library, speed in by_library.items()
            if library not in OURS
        )
        for by_library in compared
    )
    return f'{behind} of {len(compared)}'


def _equal(cells: Sequence[Cell], cores: str) -> dict[str, list[Cell]]:
    """Returns the cells with equal ids by library."""
    equal: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell['cores'] == cores and cell['ids'] == 'equal':
            equal[cell['library']].append(cell)
    return equal


def _over_kinds(cells: Sequence[Cell], speed: str) -> str:
    """Returns the median over the kinds of text, with the spread of the rounds."""
    rounds = [statistics.median(kinds) for kinds in zip(*(cell[speed] for cell in cells))]
    return with_spread(rounds) if rounds else ''


def _equal_ids(cells: Sequence[Cell]) -> str:
    """Returns '9 of 9', '7 of 9: not english, mixed', or why a library does not read the model."""
    if 'version' not in cells[0]:
        return cells[0]['ids']
    differing = [cell['kind'] for cell in cells if cell['ids'] != 'equal']
    equal = f'{len(cells) - len(differing)} of {len(cells)}'
    return f'{equal}: not {", ".join(differing)}' if differing else equal
