"""Rows of text as filters are given them, and what filters made of them, as strings."""

import itertools

import numpy as np

from tokcore.corpus.corpus import Filtered, RowFilter
from tokcore.text.rows import Side

GAPS = [b'', b'\n', b'\xff\x80', b'&lt;']


def side_of(texts: list[str]) -> Side:
    """Returns texts as rows, with bytes between some of them that are nobody's; none at the end."""
    lines = [line.encode() for line in texts]
    parts = [part for both in zip(itertools.cycle(GAPS), lines) for part in both]
    borders = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Side(np.frombuffer(b''.join(parts), np.uint8), borders[1:-1:2], borders[2::2])


def texts_of(found: Filtered) -> list[tuple[str, ...]]:
    """Returns the rows that came out."""
    return [tuple(side.row(row) for side in found.sides) for row in range(len(found.rows))]


Row = tuple[str, ...]


def applied(made: RowFilter, rows: list[Row]) -> tuple[list[Row], list[int]]:
    """Returns the rows that a filter leaves, and the number of the one that each came from."""
    count = len(rows[0]) if rows else 2
    sides = tuple(side_of([row[side] for row in rows]) for side in range(count))
    before = [(side.text.tobytes(), side.starts.tolist(), side.ends.tolist()) for side in sides]
    found = made.apply(sides)
    after = [(side.text.tobytes(), side.starts.tolist(), side.ends.tolist()) for side in sides]
    assert after == before, 'a filter changes nothing of what it is given'
    numbers = found.rows.tolist()
    assert numbers == sorted(numbers) and found.rows.dtype == np.int64
    return texts_of(found), numbers


def kept(made: RowFilter, rows: list[tuple[str, ...]]) -> list[int]:
    """Returns the numbers of the rows that a filter leaves, each as it was."""
    texts, numbers = applied(made, rows)
    assert texts == [rows[number] for number in numbers]
    return numbers
