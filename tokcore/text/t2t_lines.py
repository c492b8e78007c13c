"""Tensor2Tensor's rule for lines of text, as `tf.gfile` and it read them.

Every '\\r' is dropped, what is left must be strict UTF-8, and Unicode's white space is stripped at
both ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import kernel, kernel_without_allocation, read_only
from tokcore.text.normalizer import NormalizedRows
from tokcore.text.sides import Side
from tokcore.text.unicode_tables import whitespace_table
from tokcore.text.utf8 import next_character
from tokcore.text.utf8_checking import check_rows

_PIECE_BYTES = 1 << 20
"""Looked at together: eight times as much is held for that."""


@dataclass(frozen=True)
class T2tLines:
    """The `Normalizer` of this rule."""

    @property
    def name(self) -> str:
        return 't2t-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the rows stripped; a '\\r' is dropped within a character too."""
        text = read_only(rows.text)
        starts, ends = read_only(rows.starts), read_only(rows.ends)
        damaged = np.zeros(len(rows), np.uint8)
        returns = check_rows(text, starts, ends, damaged)
        damages = {}
        for row in np.flatnonzero(damaged).tolist():
            damage = find_damage(text[starts[row] : ends[row]].tobytes())
            if damage is None:
                damaged[row] = 0
            else:
                damages[row] = int(starts[row]) + damage
        if returns:
            text, starts, ends = map(read_only, drop_returns(text, starts, ends))
        stripped = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        strip_rows(text, (starts, ends), read_only(damaged), whitespace_table(), stripped)
        return NormalizedRows(Side(text, *stripped), damages)


T2T_LINES = T2tLines()
"""The only one there is: it has no options."""


def find_damage(line: bytes) -> int | None:
    r"""Returns where a line's UTF-8 breaks once every '\r' is dropped, also within a character.

    >>> find_damage(b'a\r\xff')
    2

    None if it does not.
    """
    try:
        line.replace(b'\r', b'').decode()
    except UnicodeDecodeError as error:
        return _place_of_kept(line, error.start)
    return None


def _place_of_kept(line: bytes, index: int) -> int:
    """The place in a line of the byte that has this index once every '\\r' is dropped."""
    for start in range(0, len(line), _PIECE_BYTES):
        is_kept = np.frombuffer(line[start : start + _PIECE_BYTES], np.uint8) != ord('\r')
        kept = int(np.count_nonzero(is_kept))
        if index < kept:
            return start + int(np.flatnonzero(is_kept)[index])
        index -= kept
    return len(line)


@kernel
def drop_returns(text, starts, ends):
    """Returns the rows without their '\\r', one after another, with their starts and ends."""
    size = 0
    for row in range(len(starts)):
        size += ends[row] - starts[row]
    kept = np.empty(size, np.uint8)
    kept_starts = np.empty(len(starts), np.int64)
    kept_ends = np.empty(len(starts), np.int64)
    size = 0
    for row in range(len(starts)):
        kept_starts[row] = size
        for position in range(starts[row], ends[row]):
            if text[position] != 0x0D:
                kept[size] = text[position]
                size += 1
        kept_ends[row] = size
    return kept[:size], kept_starts, kept_ends


@kernel_without_allocation
def strip_start(text, start, end, whitespace):
    """Where text[start:end] begins without the whitespace in front, at most `end`."""
    while start < end:
        character, behind = next_character(text, start)
        if not whitespace[character]:
            break
        start = behind
    return start


@kernel_without_allocation
def strip_end(text, start, end, whitespace):
    """Where text[start:end] ends without the whitespace behind, at least `start`."""
    while start < end:
        last = end - 1
        while text[last] & 0xC0 == 0x80:
            last -= 1
        if not whitespace[next_character(text, last)[0]]:
            break
        end = last
    return end


@kernel_without_allocation
def strip_rows(text, rows, damaged, whitespace, stripped):
    """Fills in where each row begins and ends without white space; nowhere if it is damaged.

    `rows` and `stripped` are (starts, ends), int64[rows] each.
    """
    starts, ends = rows
    stripped_starts, stripped_ends = stripped
    for row in range(len(damaged)):
        start = ends[row]
        end = ends[row]
        if not damaged[row]:
            start = strip_start(text, starts[row], end, whitespace)
            end = strip_end(text, start, end, whitespace)
        stripped_starts[row] = start
        stripped_ends[row] = end
