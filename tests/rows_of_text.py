"""Rows of text as filters are given them, and what filters made of them, as strings."""

import itertools
from collections.abc import Iterable

import numpy as np

from tokcore.corpus.corpus import Filtered, RowFilter
from tokcore.text.rows import Side

GAPS = [b'', b'\n', b'\xff\x80', b'&lt;']


def side_of(
    texts: Iterable[str | bytes], gaps: Iterable[str | bytes] | None = None, after: bytes = b''
) -> Side:
    """Returns texts as rows, with bytes before each of them that are nobody's."""
    parts = [
        part if isinstance(part, bytes) else part.encode()
        for text, gap in zip(texts, itertools.cycle(GAPS) if gaps is None else gaps)
        for part in (gap, text)
    ]
    borders = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    text = np.frombuffer(b''.join([*parts, after]), np.uint8)
    return Side(text, borders[1::2].copy(), borders[2::2].copy())


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
