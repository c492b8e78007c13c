r"""The normalizers: Tensor2Tensor's lines, stripped lines, raw lines and normal forms.

Tensor2Tensor drops every '\r', the rest must be strict UTF-8, and Unicode's white space is stripped
at both ends. Stripped lines lose the white space at their ends and nothing else; an inner '\r'
stays. Of raw lines blanks at the ends and a '\r' are text: only a line of no bytes is empty.
"""

import functools
import itertools
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import readable_parts
from tokcore.text.rows import NormalizedRows, Side
from tokcore.text.unicode import (
    CODE_POINTS,
    FORMS,
    Form,
    check_rows,
    doubtful_bits,
    find_doubtful,
    next_character,
    whitespace_table,
)

_PIECE_BYTES = 1 << 20
"""Looked at together: eight times as much is held for that."""


@dataclass(frozen=True)
class RawLines:
    """The `Normalizer` of these rules; lines must be strict UTF-8.

    Attributes:
        form: 'NFC' or 'NFKC' by this Python's tables, or None, which changes nothing.
    """

    form: Form | None = None

    def __post_init__(self):
        if self.form is not None and self.form not in FORMS:
            raise ValueError(f'{self.form!r} is no form; there are {" and ".join(FORMS)}, and None')

    @property
    def name(self) -> str:
        return 'raw-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.form is None else {'form': self.form}

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the rows as they stand; those that are not normal are written anew."""
        text, starts, ends = map(read_only, (rows.text, rows.starts, rows.ends))
        damaged = np.zeros(len(rows), np.uint8)
        check_rows(text, starts, ends, damaged)
        damages = {}
        for row in np.flatnonzero(damaged).tolist():
            try:
                text[starts[row] : ends[row]].tobytes().decode()
            except UnicodeDecodeError as error:
                damages[row] = int(starts[row]) + error.start
        if damages:
            ends = ends.copy()
            ends[list(damages)] = starts[list(damages)]
        side = Side(text, starts, ends)
        if self.form is not None:
            side = _normalized(side, self.form)
        return NormalizedRows(side, damages)


def _normalized(side: Side, form: Form) -> Side:
    """The rows in this form; the text is a new one if one of them was not."""
    doubtful = []
    bits = doubtful_bits(form)
    for rows in readable_parts(side.text, side.starts, side.ends):
        found = np.zeros(len(rows.starts), np.uint8)
        find_doubtful(rows, bits, found)
        doubtful.append(found)
    changed = {}
    for row in np.flatnonzero(np.concatenate(doubtful or [[]])).tolist():
        line = side.row(row)
        if not unicodedata.is_normalized(form, line):
            changed[row] = unicodedata.normalize(form, line).encode()
    return _replaced(side, changed) if changed else side


def _replaced(side: Side, changed: Mapping[int, bytes]) -> Side:
    """The rows with some of them, in ascending order, replaced; all stand in their order."""
    rows = np.fromiter(changed, np.int64, len(changed))
    lengths = np.fromiter(map(len, changed.values()), np.int64, len(changed))
    # Text between them stays as it is.
    cuts = np.stack([side.starts[rows], side.ends[rows]], axis=1).ravel().tolist()
    kept = itertools.pairwise([0, *cuts, len(side.text)])
    kept = [side.text[start:end] for start, end in itertools.islice(kept, 0, None, 2)]
    written = [np.frombuffer(line, np.uint8) for line in changed.values()]
    pieces = itertools.chain.from_iterable(itertools.zip_longest(kept, written))
    text = np.concatenate([piece for piece in pieces if piece is not None])
    longer = np.zeros(len(side) + 1, np.int64)
    longer[rows + 1] = lengths - (side.ends[rows] - side.starts[rows])
    shifts = longer.cumsum()
    return Side(read_only(text), side.starts + shifts[:-1], side.ends + shifts[1:])


RAW_LINES = RawLines()
"""That changes nothing."""


@dataclass(frozen=True)
class StrippedLines:
    """The `Normalizer` of this rule: strict UTF-8, then `str.strip`.

    Attributes:
        characters: what is stripped, as of `str.strip`; None: all white space.
    """

    characters: str | None = None

    @property
    def name(self) -> str:
        return 'stripped-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.characters is None else {'characters': self.characters}

    def apply(self, rows: Side) -> NormalizedRows:
        text = read_only(rows.text)
        starts, ends = read_only(rows.starts), read_only(rows.ends)
        damaged = np.zeros(len(rows), np.uint8)
        check_rows(text, starts, ends, damaged)
        damages = {}
        for row in np.flatnonzero(damaged).tolist():
            try:
                text[starts[row] : ends[row]].tobytes().decode()
            except UnicodeDecodeError as error:
                damages[row] = int(starts[row]) + error.start
            else:
                damaged[row] = 0
        stripped = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        strip_rows(text, (starts, ends), read_only(damaged), _table(self.characters), stripped)
        return NormalizedRows(Side(text, *stripped), damages)


@functools.cache
def _table(characters: str | None) -> np.ndarray:
    if characters is None:
        return whitespace_table()
    table = np.zeros(CODE_POINTS, np.uint8)
    table[[ord(each) for each in characters]] = 1
    return read_only(table)


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


STRIPPED_LINES = StrippedLines()
"""That strips all white space."""


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


T2T_LINES = T2tLines()
"""The only one there is: it has no options."""
