r"""The normalizers: unstripped lines, stripped lines, and Tensor2Tensor's lines.

All want strict UTF-8, and a row of nothing but white space, as `str.isspace` has it, is empty to all.
Unstripped lines keep every character of other rows; they can be brought into a Unicode normal form.
Stripped lines lose white space at both ends and nothing else. Tensor2Tensor drops every '\r', even
within a character, before it decodes and strips.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.rows import NormalizedRows, Side
from tokcore.text.unicode import CODE_POINTS, check_rows, next_character, whitespace_table
from tokcore.text.unicode_normalization import normalize_rows

Form = Literal['NFC', 'NFKC']
FORMS: tuple[Form, ...] = get_args(Form)

_PIECE_BYTES = 1 << 20
"""A piece that `_position_with_returns` handles at once; it takes eight times as much memory."""


_ROWS_AT_ONCE = 256
"""Rows that are looked at twice, one time after the other: some tens of kilobytes of text, which a cache
holds. A group costs some dozens of nanoseconds."""


@dataclass(frozen=True)
class UnstrippedLines:
    """A `Normalizer` that keeps lines with text as they are, or brings them into a normal form.

    Attributes:
        form: 'NFC' or 'NFKC' by this Python's tables, or None, which changes nothing.
    """

    name = 'unstripped-lines'

    form: Form | None = None

    def __post_init__(self):
        if self.form is not None and self.form not in FORMS:
            raise ValueError(
                f'{self.form!r} is not a form; there are {" and ".join(FORMS)}, and None'
            )

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.form is None else {'form': self.form}

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the rows; they are copied only if one of them changes."""
        text, starts, ends = rows.arrays()
        damaged, new_ends = np.zeros(len(rows), np.uint8), np.empty(len(rows), np.int64)
        _check_and_empty_rows(text, starts, ends, _white_space(), damaged, new_ends)
        suspects = np.flatnonzero(damaged).tolist()
        damages = find_damages(text, starts, ends, damaged)
        for row in suspects:
            if row not in damages and text[starts[row] : ends[row]].tobytes().decode().strip():
                new_ends[row] = ends[row]
        side = Side(text, starts, new_ends)
        if self.form is not None:
            normalized = normalize_rows(side, self.form)
            side = side if normalized is side else normalized.joined()
        return NormalizedRows(side, damages)


UNSTRIPPED_LINES = UnstrippedLines()
"""The one that changes no text."""


@dataclass(frozen=True)
class StrippedLines:
    """A `Normalizer` that strips lines as `str.strip` does.

    Attributes:
        only: the characters that are stripped, as for `str.strip`; None for all white space.
    """

    name = 'stripped-lines'

    only: str | None = None

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.only is None else {'only': self.only}

    def apply(self, rows: Side) -> NormalizedRows:
        text, starts, ends = rows.arrays()
        damaged = np.zeros(len(rows), np.uint8)
        check_rows(text, starts, ends, damaged)
        damages = find_damages(text, starts, ends, damaged)
        side = _stripped(text, starts, ends, damaged, _strip_table(self.only))
        if self.only is not None:
            new_ends = np.empty(len(rows), np.int64)
            _empty_rows(*side.arrays(), _white_space(), damaged, new_ends)
            side = Side(side.text, side.starts, new_ends)
        return NormalizedRows(side, damages)


STRIPPED_LINES = StrippedLines()
"""The one that strips all white space."""


@dataclass(frozen=True)
class _T2tLines:
    """A `Normalizer` that reads lines as Tensor2Tensor does."""

    name = 't2t-lines'
    options: ClassVar[Mapping[str, object]] = {}

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the rows stripped, without '\\r'."""
        text, starts, ends = rows.arrays()
        damaged = np.zeros(len(rows), np.uint8)
        returns = check_rows(text, starts, ends, damaged)
        damages = find_damages(text, starts, ends, damaged, _find_damage_without_returns)
        if returns:
            text, starts, ends = map(read_only, _drop_returns(text, starts, ends))
        return NormalizedRows(_stripped(text, starts, ends, damaged, whitespace_table()), damages)


T2T_LINES = _T2tLines()


def find_damage(line: bytes) -> int | None:
    """Returns the position of the first byte that is not valid UTF-8, or None."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _find_damage_without_returns(line: bytes) -> int | None:
    r"""Returns where a line breaks UTF-8 once every '\r' is dropped, even within a character.

    >>> _find_damage_without_returns(b'a\r\xff')
    2

    None if it does not.
    """
    position = find_damage(line.replace(b'\r', b''))
    return None if position is None else _position_with_returns(line, position)


def _position_with_returns(line: bytes, position: int) -> int:
    """Returns where in a line the byte is that has this position once every '\\r' is dropped."""
    for start in range(0, len(line), _PIECE_BYTES):
        stays = np.frombuffer(line[start : start + _PIECE_BYTES], np.uint8) != ord('\r')
        count = int(np.count_nonzero(stays))
        if position < count:
            return start + int(np.flatnonzero(stays)[position])
        position -= count
    return len(line)


def find_damages(
    text: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    damaged: np.ndarray,
    find: Callable[[bytes], int | None] = find_damage,
) -> dict[int, int]:
    """Returns the place in `text` of the first wrong byte of each damaged row.

    `damaged`, uint8[rows] as `check_rows` leaves it, is set to 0 for rows that are valid after all.
    """
    damages = {}
    for row in np.flatnonzero(damaged).tolist():
        position = find(text[starts[row] : ends[row]].tobytes())
        if position is None:
            damaged[row] = 0
        else:
            damages[row] = int(starts[row]) + position
    return damages


@functools.cache
def _white_space() -> tuple[np.ndarray, np.ndarray]:
    """Returns uint8[256], 1 for bytes with which white space begins, and `whitespace_table`."""
    whitespace, leads = whitespace_table(), np.zeros(256, np.uint8)
    leads[[chr(point).encode()[0] for point in np.flatnonzero(whitespace).tolist()]] = 1
    return read_only(leads), whitespace


@functools.cache
def _strip_table(characters: str | None) -> np.ndarray:
    if characters is None:
        return whitespace_table()
    table = np.zeros(CODE_POINTS, np.uint8)
    table[[ord(character) for character in characters]] = 1
    return read_only(table)


def _stripped(
    text: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    damaged: np.ndarray,
    whitespace: np.ndarray,
) -> Side:
    """Returns the rows without the characters of a table at their ends; damaged rows are empty."""
    stripped = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    _strip_rows(text, (starts, ends), read_only(damaged), whitespace, stripped)
    return Side(text, *stripped)


@kernel
def _check_and_empty_rows(text, starts, ends, white_space, damaged, new_ends):
    """Does as `check_rows` and `_empty_rows`, with so few rows at a time that their text is cached."""
    for first in range(0, len(starts), _ROWS_AT_ONCE):
        end = min(first + _ROWS_AT_ONCE, len(starts))
        check_rows(text, starts[first:end], ends[first:end], damaged[first:end])
        _empty_rows(
            text,
            starts[first:end],
            ends[first:end],
            white_space,
            damaged[first:end],
            new_ends[first:end],
        )


@kernel_without_allocation
def _empty_rows(text, starts, ends, white_space, damaged, new_ends):
    """Fills in where each row ends: at its start, if it is damaged or has only white space."""
    leads, whitespace = white_space
    for row in range(len(damaged)):
        start = starts[row]
        end = ends[row]
        if start < end and (leads[text[np.uint64(start)]] or damaged[row]):
            if damaged[row] or strip_start(text, start, end, whitespace) == end:
                end = start
        new_ends[row] = end


@kernel_without_allocation
def _strip_rows(text, rows, damaged, whitespace, stripped):
    """Fills in where each row begins and ends without white space; a damaged row is empty.

    `rows` and `stripped` are (starts, ends), int64[rows] each.
    """
    starts, ends = rows
    stripped_starts, stripped_ends = stripped
    for row in range(len(damaged)):
        start = ends[row]
        end = ends[row]
        if not damaged[row]:
            start = strip_start(text, starts[row], end, whitespace)
            end = _strip_end(text, start, end, whitespace)
        stripped_starts[row] = start
        stripped_ends[row] = end


@kernel_without_allocation
def strip_start(text, start, end, whitespace):
    """Returns where text[start:end] begins without leading white space, at most `end`."""
    while start < end:
        character, after = next_character(text, start)
        if not whitespace[character]:
            break
        start = after
    return start


@kernel_without_allocation
def _strip_end(text, start, end, whitespace):
    """Returns where text[start:end] ends without trailing white space, at least `start`."""
    while start < end:
        last = end - 1
        while text[last] & 0xC0 == 0x80:
            last -= 1
        if not whitespace[next_character(text, last)[0]]:
            break
        end = last
    return end


@kernel
def _drop_returns(text, starts, ends):
    """Returns the rows without '\\r', one after another, with their starts and ends."""
    size = 0
    for row in range(len(starts)):
        size += ends[row] - starts[row]
    out = np.empty(size, np.uint8)
    out_starts = np.empty(len(starts), np.int64)
    out_ends = np.empty(len(starts), np.int64)
    size = 0
    for row in range(len(starts)):
        out_starts[row] = size
        for position in range(starts[row], ends[row]):
            if text[position] != 0x0D:
                out[size] = text[position]
                size += 1
        out_ends[row] = size
    return out[:size], out_starts, out_ends
