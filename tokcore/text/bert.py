"""BERT's pre-tokenizer: words cleaned, lowered and without accents, cut at punctuation.

Rows are cut where no rule of BERT's reaches across: after white space, before a Chinese character,
and between two characters of ASCII of which the first is punctuation. Special tokens are found as
bytes, all at once. `BertTokenizer` also takes for one what becomes one when it is lowered, cleaned
or loses its accents, as `[MÁSK]` may; rows that may hold such are cut in plain Python.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import READABLE, row_offsets, with_margin
from tokcore.kernels.jit import read_only
from tokcore.text.bert_kernels import (
    CHUNK,
    SOFT_BYTES,
    BertTables,
    BertText,
    KnownRows,
    ascii_sources,
    bert_tables,
    find_out_of_order,
)
from tokcore.text.bert_plain import Kind, bert_tokens
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    RowPart,
    ScannedTokens,
    TextRows,
    one_row,
    scan_tokens,
)

_TOKENS_AT_ONCE = 1 << 13
_NOTHING = read_only(np.empty(0, np.int64))
_NO_PLACES = read_only(np.empty(0, np.uint64))
_NO_ROWS = KnownRows(_NOTHING, _NOTHING, with_margin(np.empty(0, np.uint8)), _NOTHING)

WINDOW = 64 << 10  # bytes that are looked at together

_BESIDE = rb'[^\t\n\r\x20-\x7e]*'  # what may be dropped or taken off between two characters
_ANY_OTHER = rb'[\x00-\x7f]?[\x80-\xff]+'


class SpecialSearch(NamedTuple):
    """How special tokens are found in rows."""

    exact: re.Pattern[bytes]
    wide: re.Pattern[bytes] | None  # also matches what may become one; None: nothing else does
    is_tangled: bool  # they overlap, so that the order in which they are looked for matters

    def places(self, rows: TextRows, leaving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the starts and ends of those in rows, uint64 each, in the text's order.

        Sets `leaving` (uint8[rows]) to 1 for rows that need the plain form.
        """
        exact = _spans(self.exact, rows)
        others = exact if self.is_tangled else exact[:0]
        if self.wide is not None:
            wide = _spans(self.wide, rows)
            known = set(map(tuple, exact.tolist()))
            is_new = np.array([tuple(each) not in known for each in wide.tolist()], bool)
            others = np.concatenate([others, wide[is_new]])
        for start, end in others.tolist():
            leaving[(rows.starts <= start) & (end <= rows.ends)] = 1
        return np.ascontiguousarray(exact[:, 0]), np.ascontiguousarray(exact[:, 1])


class RowCuts:
    """Where one row may be cut, other than within its special tokens."""

    def __init__(
        self, text: np.ndarray, split_cjk: bool, special: tuple[np.ndarray, np.ndarray] | None
    ):
        """Takes the starts and ends of special tokens, uint64 each, or None if there are none."""
        self._text, self._split_cjk = text, split_cjk
        self._special = special

    def between(self, start: int, end: int) -> np.ndarray:
        """Returns the places behind `start` and before `end`."""
        has_special = self._special is not None
        places = cut_places(self._text, start, end, self._split_cjk, has_special)
        if has_special and len(self._special[0]):
            starts, ends = (each.astype(np.int64) for each in self._special)
            # A place is within one that starts before it and ends behind it.
            last = np.searchsorted(starts, places, 'left') - 1
            places = places[(last < 0) | (ends[last] <= places)]
        return places

    def next(self, start: int, end: int) -> int:
        """Returns the last place of those within reach of `start`, else the first, else `end`."""
        window = start
        while end - window > WINDOW:
            # One byte before the window is what the first place would be behind.
            places = self.between(max(start, window - 1), window + WINDOW)
            if len(places):
                return int(places[-1 if window == start else 0])
            window += WINDOW
        places = self.between(max(start, window - 1), end) if window > start else []
        return int(places[0]) if len(places) else end


@dataclass(frozen=True)
class BertPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `bert_tokens`.

    Attributes:
        kind: whose rules: those of transformers, or of google-research.
        lower_case: whether words are lowered.
        strip_accents: whether marks are taken off; None if words are lowered.
        split_cjk: whether Chinese characters are words by themselves.
        special_tokens: are cut out first, and stay as they are.
    """

    kind: Kind = 'bert'
    lower_case: bool = True
    strip_accents: bool | None = None
    split_cjk: bool = True
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, 'special_tokens', tuple(self.special_tokens))
        if '' in self.special_tokens:
            raise ValueError('a special token is empty, and would stand everywhere; leave it out')

    @property
    def name(self) -> str:
        return self.kind

    @property
    def options(self) -> Mapping[str, object]:
        return {
            'lower_case': self.lower_case,
            'split_cjk': self.split_cjk,
            'strip_accents': self._strips,
        }

    @property
    def _strips(self) -> bool:
        return self.lower_case if self.strip_accents is None else self.strip_accents

    @property
    def _tables(self) -> BertTables:
        return bert_tables(self.kind, self.lower_case, self._strips, self.split_cjk)

    @property
    def _search(self) -> SpecialSearch:
        return special_search(self.special_tokens, self.kind, self.lower_case, self._strips)

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, in plain Python."""
        return bert_tokens(
            text,
            self.kind,
            self.lower_case,
            self.strip_accents,
            self.split_cjk,
            self.special_tokens,
        )

    def prepare(self, rows: TextRows) -> tuple[BertText, np.ndarray]:
        tables = self._tables
        leaving = np.zeros(len(rows.starts), np.uint8)
        special = _NO_PLACES, _NO_PLACES
        if tables.asking.any():
            find_out_of_order(rows.text, rows.starts, rows.ends, tables, leaving)
        if self.special_tokens:
            special = self._search.places(rows, leaving)
        known = self._known(rows, np.flatnonzero(leaving))
        longest = tables.growth * int((rows.ends - rows.starts).max(initial=0))
        longest = max(longest, int(np.diff(known.offsets).max(initial=0)))
        # The last of a chunk's characters may end behind it, and whole words are written.
        margin = (CHUNK + 4) * tables.growth + READABLE
        buffer = np.empty(SOFT_BYTES + longest + margin, np.uint8)
        lowering = np.uint8(0x20 if self.lower_case else 0)
        return BertText(tables, lowering, buffer, known, *map(read_only, special)), buffer

    def _known(self, rows: TextRows, leaving: np.ndarray) -> KnownRows:
        """The tokens of the rows whose numbers are given, by the plain form."""
        if not len(leaving):
            return _NO_ROWS
        tokens: list[bytes] = []
        row_tokens = [0]
        for row in leaving.tolist():
            text = rows.text[rows.starts[row] : rows.ends[row]].tobytes()
            found = self.tokens(text.decode('utf-8', 'surrogatepass'))
            tokens += [each.encode('utf-8', 'surrogatepass') for each in found]
            row_tokens.append(len(tokens))
        numbers = np.full(len(rows.starts), -1, np.int64)
        numbers[leaving] = np.arange(len(leaving))
        return KnownRows(
            read_only(numbers),
            read_only(np.array(row_tokens, np.int64)),
            with_margin(np.frombuffer(b''.join(tokens), np.uint8)),
            read_only(row_offsets([len(each) for each in tokens])),
        )

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        special = None
        if self.special_tokens:
            special = self._search.places(rows.part(row, row + 1), np.zeros(1, np.uint8))
        cuts = RowCuts(rows.text, self.split_cjk, special)
        while start < end:
            stop = cuts.next(start, end)
            yield from self._parts(rows.text, start, stop, longest, cuts)
            start = stop

    def _parts(
        self, text: np.ndarray, start: int, end: int, longest: int, cuts: RowCuts
    ) -> Iterator[RowPart]:
        part = one_row(text, start, end)
        if all(most <= longest for _, _, _, most in self._scanned(part)):
            yield RowPart(text, start, end, False)
            return
        # Halved while it is not much longer than its longest token: all others are parts as well.
        places = cuts.between(start, end) if end - start > 4 * longest else _NOTHING
        if len(places):
            middle = int(places[np.abs(places - (start + end) // 2).argmin()])
            yield from self._parts(text, start, middle, longest, cuts)
            yield from self._parts(text, middle, end, longest, cuts)
            return
        for buffer, starts, ends, _ in self._scanned(part):
            used = with_margin(buffer[: ends.max(initial=0)])
            for begin, behind in zip(starts.tolist(), ends.tolist(), strict=True):
                yield RowPart(used, begin, behind, True)

    def _scanned(self, row: TextRows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        """Yields tokens of one row, some thousands at once: text, starts, ends, most bytes."""
        state, buffer = self.prepare(row)
        starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        tokens = ScannedTokens(buffer, starts, np.empty_like(starts), np.zeros(2, np.int64))
        done, position = 0, -1
        while not done:
            done, position, count = scan_tokens(row, done, position, state, tokens)
            found = tokens.starts[:count], tokens.ends[:count]
            yield buffer, *found, int((found[1] - found[0]).max(initial=0))


@functools.cache
def _byte_classes() -> np.ndarray:
    """uint8[256]: 1 for white space, 2 for punctuation to cut behind, 4 for what may be behind it.

    8 for the first bytes of U+5000 to U+8FFF, all of them Chinese characters.
    """
    classes = np.zeros(256, np.uint8)
    classes[list(b'\t\n\r ')] = 1
    for code in range(0x21, 0x7F):
        character = chr(code)
        # To lower() a sigma ends a word even if some punctuation and more letters are behind it.
        parts_words = f'AΣ{character}A'.lower()[1] == 'ς'
        is_mark = not character.isalnum()
        classes[code] = 4 | (2 if is_mark and parts_words else 0)
    classes[0xE5:0xE9] = 8
    return classes


def cut_places(text: np.ndarray, start: int, end: int, split_cjk: bool, spaces: bool) -> np.ndarray:
    """Returns the places behind `start`, int64[...], where text[start:end] may be cut.

    Args:
        text: uint8, valid UTF-8 from start to end.
        start: where a character begins.
        end: where one ends, behind all places.
        split_cjk: Chinese characters are words by themselves.
        spaces: only behind white space, or before such characters.
    """
    classes = _byte_classes()[text[start:end]]
    before, behind = classes[:-1], classes[1:]
    may_cut = before & 1 != 0
    if split_cjk:
        may_cut |= behind & 8 != 0
    if not spaces:
        may_cut |= (before & 2 != 0) & (behind & 4 != 0)
    return np.flatnonzero(may_cut) + (start + 1)


def _spans(pattern: re.Pattern[bytes], rows: TextRows) -> np.ndarray:
    """uint64[matches, 2]: starts and ends of the matches within rows."""
    if not len(rows.starts):
        return np.empty((0, 2), np.uint64)
    text, starts, ends = memoryview(rows.text), rows.starts, rows.ends
    found = _array(pattern.finditer(text, int(starts.min()), int(ends.max())))
    row = np.searchsorted(starts, found[:, 0].astype(np.int64), 'right') - 1
    is_sorted = bool((starts[1:] >= ends[:-1]).all())
    if is_sorted and (row >= 0).all() and (found[:, 1].astype(np.int64) <= ends[row]).all():
        return found
    # A match across a border, or between rows, may hide one within a row.
    matches = (
        match
        for start, end in sorted(zip(starts.tolist(), ends.tolist(), strict=True))
        for match in pattern.finditer(text, start, end)
    )
    return _array(matches)


def _array(matches) -> np.ndarray:
    bounds = (bound for match in matches for bound in match.span())
    return np.fromiter(bounds, np.uint64).reshape(-1, 2)


@functools.lru_cache
def special_search(
    special_tokens: tuple[str, ...], kind: Kind, lower_case: bool, strip: bool
) -> SpecialSearch:
    """Returns how these are found; `special_tokens` has at least one."""
    longest_first = sorted(special_tokens, key=len, reverse=True)
    exact = re.compile(b'|'.join(re.escape(each.encode()) for each in longest_first))
    if kind == 'bert-original':
        return SpecialSearch(exact, None, False)
    # Where all is lowered but them, nothing else can become one that would change itself.
    others = [
        each for each in longest_first if not lower_case or ''.join(map(str.lower, each)) == each
    ]
    sources = ascii_sources(lower_case, strip)
    wide = re.compile(b'|'.join(_widened(each, sources) for each in others)) if others else None
    return SpecialSearch(exact, wide, lower_case and _overlap(special_tokens))


def _overlap(special_tokens: Sequence[str]) -> bool:
    """Whether a part of one, from its start on, stands in another or ends one."""
    return any(
        one in two and one != two or any(two.endswith(one[:size]) for size in range(1, len(one)))
        for one in special_tokens
        for two in special_tokens
    )


def _widened(token: str, sources: Mapping[str, Sequence[str]]) -> bytes:
    parts = []
    for each in token:
        if each.isascii():
            alternatives = [re.escape(other.encode()) for other in (each, *sources.get(each, ()))]
            is_one = len(alternatives) == 1
            parts.append(alternatives[0] if is_one else b'(?:%b)' % b'|'.join(alternatives))
        else:
            parts.append(_ANY_OTHER)
    return _BESIDE.join(parts)
