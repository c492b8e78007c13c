"""BERT's pre-tokenizer: words cleaned, lowercased, without accents, and split at punctuation.

Rows are cut where no rule of BERT's looks across: after white space, before a Chinese character,
and between two ASCII characters of which the first is punctuation. Special tokens are found as
bytes, all in one pass. `BertTokenizer` also takes for a special token what becomes one once it is
lowercased, cleaned or stripped of accents, as `[MÁSK]` may; a row that may hold such text is
tokenized by the plain Python rules (`bert_plain`). `bert_words` follows these rules character by
character, and knows where in the text each word is.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import READABLE, row_offsets, with_margin
from tokcore.kernels.jit import read_only
from tokcore.text.alignment import AlignedText, Span
from tokcore.text.bert_kernels import (
    CHUNK,
    SOFT_BYTES,
    BertText,
    PlainRows,
    ascii_sources,
    bert_tables,
    mark_rows_to_normalize,
)
from tokcore.text.bert_plain import (
    Kind,
    bert_tokens,
    is_cjk,
    is_dropped,
    is_punctuation,
    is_space,
    strip_marks,
)
from tokcore.text.pre_tokenizer import RowPart, TextRows, one_row, scan_row

WINDOW = 64 << 10
"""Bytes that are searched together for a place to cut."""

_EMPTY = read_only(np.empty(0, np.int64))
_NO_BOUNDS = read_only(np.empty(0, np.uint64))
_NO_ROWS = PlainRows(_EMPTY, _EMPTY, with_margin(np.empty(0, np.uint8)), _EMPTY)

_MAY_VANISH = rb'[^\t\n\r\x20-\x7e]*'  # what may be dropped or stripped between two characters
_ANY_OTHER = rb'[\x00-\x7f]?[\x80-\xff]+'


@dataclass(frozen=True)
class BertPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `bert_tokens`.

    Attributes:
        kind: 'bert' for the rules of transformers, 'bert-original' for those of google-research.
        lower_case: whether words are lowercased.
        strip_accents: whether accents are stripped; None: if words are lowercased.
        split_cjk: whether each Chinese character is a word of its own.
        special_tokens: are split off first, and stay as they are.
    """

    kind: Kind = 'bert'
    lower_case: bool = True
    strip_accents: bool | None = None
    split_cjk: bool = True
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, 'special_tokens', tuple(self.special_tokens))
        if '' in self.special_tokens:
            raise ValueError('a special token is empty, and would be everywhere; leave it out')

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
    def _search(self) -> '_SpecialSearch':
        return _special_search(self.special_tokens, self.kind, self.lower_case, self._strips)

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
        tables = bert_tables(self.kind, self.lower_case, self._strips, self.split_cjk)
        is_plain = np.zeros(len(rows.starts), np.uint8)
        special = _NO_BOUNDS, _NO_BOUNDS
        if tables.needs_context.any():
            mark_rows_to_normalize(rows.text, rows.starts, rows.ends, tables, is_plain)
        if self.special_tokens:
            special = self._search.find(rows, is_plain)
        plain = self._plain_rows(rows, np.flatnonzero(is_plain))
        longest = tables.growth * int((rows.ends - rows.starts).max(initial=0))
        longest = max(longest, int(np.diff(plain.offsets).max(initial=0)))
        # The last character of a chunk may end after it, and whole words are written.
        margin = (CHUNK + 4) * tables.growth + READABLE
        buffer = np.empty(SOFT_BYTES + longest + margin, np.uint8)
        lowering = np.uint8(0x20 if self.lower_case else 0)
        return BertText(tables, lowering, buffer, plain, *map(read_only, special)), buffer

    def _plain_rows(self, rows: TextRows, numbers: np.ndarray) -> PlainRows:
        """Returns the tokens of the rows with these numbers, found in plain Python."""
        if not len(numbers):
            return _NO_ROWS
        tokens: list[bytes] = []
        row_tokens = [0]
        for row in numbers.tolist():
            text = rows.text[rows.starts[row] : rows.ends[row]].tobytes()
            for token in self.tokens(text.decode('utf-8', 'surrogatepass')):
                tokens.append(token.encode('utf-8', 'surrogatepass'))
            row_tokens.append(len(tokens))
        indices = np.full(len(rows.starts), -1, np.int64)
        indices[numbers] = np.arange(len(numbers))
        return PlainRows(
            read_only(indices),
            read_only(np.array(row_tokens, np.int64)),
            with_margin(np.frombuffer(b''.join(tokens), np.uint8)),
            read_only(row_offsets(list(map(len, tokens)))),
        )

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        special = None
        if self.special_tokens:
            special = self._search.find(rows.part(row, row + 1), np.zeros(1, np.uint8))
        cuts = RowCuts(rows.text, self.split_cjk, special)
        while start < end:
            stop = cuts.next(start, end)
            yield from self._parts(rows.text, start, stop, longest, cuts)
            start = stop

    def _parts(
        self, text: np.ndarray, start: int, end: int, longest: int, cuts: 'RowCuts'
    ) -> Iterator[RowPart]:
        part = one_row(text, start, end)
        if all((ends - starts).max(initial=0) <= longest for _, starts, ends in self._scan(part)):
            yield RowPart(text, start, end, False)
            return
        # Halved while much longer than a long token; after that every token is a part.
        places = cuts.between(start, end) if end - start > 4 * longest else _EMPTY
        if len(places):
            middle = int(places[np.abs(places - (start + end) // 2).argmin()])
            yield from self._parts(text, start, middle, longest, cuts)
            yield from self._parts(text, middle, end, longest, cuts)
            return
        for buffer, starts, ends in self._scan(part):
            used = with_margin(buffer[: ends.max(initial=0)])
            for token_start, token_end in zip(starts.tolist(), ends.tolist(), strict=True):
                yield RowPart(used, token_start, token_end, True)

    def _scan(self, row: TextRows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        state, buffer = self.prepare(row)
        for starts, ends in scan_row(row, state, buffer):
            yield buffer, starts, ends


class RowCuts:
    """The places at which one row may be cut, none of them within a special token."""

    def __init__(
        self, text: np.ndarray, split_cjk: bool, special: tuple[np.ndarray, np.ndarray] | None
    ):
        """Takes the starts and ends of special tokens, uint64[...], or None if there are none."""
        self._text, self._split_cjk = text, split_cjk
        self._special = special

    def between(self, start: int, end: int) -> np.ndarray:
        """Returns the places after `start` and before `end`."""
        places = cut_places(self._text, start, end, self._split_cjk, self._special is not None)
        if self._special is not None and len(self._special[0]):
            starts, ends = (bounds.astype(np.int64) for bounds in self._special)
            # A place is within a special token that starts before it and ends after it.
            last = np.searchsorted(starts, places, 'left') - 1
            places = places[(last < 0) | (ends[last] <= places)]
        return places

    def next(self, start: int, end: int) -> int:
        """Returns the last place within `WINDOW` of `start`, else the first after it, else `end`."""
        window = start
        while end - window > WINDOW:
            # From the byte before the window on, since `between` excludes its start.
            places = self.between(max(start, window - 1), window + WINDOW)
            if len(places):
                return int(places[-1 if window == start else 0])
            window += WINDOW
        places = self.between(max(start, window - 1), end) if window > start else _EMPTY
        return int(places[0]) if len(places) else end


def cut_places(text: np.ndarray, start: int, end: int, split_cjk: bool, spaces: bool) -> np.ndarray:
    """Returns the places after `start`, int64[...], at which text[start:end] may be cut.

    Args:
        text: uint8, valid UTF-8 from start to end.
        start: where a character begins.
        end: where a character ends.
        split_cjk: whether Chinese characters are words of their own.
        spaces: whether to cut only after white space and before such characters.
    """
    classes = _byte_classes()[text[start:end]]
    before, after = classes[:-1], classes[1:]
    may_cut = before & 1 != 0
    if split_cjk:
        may_cut |= after & 8 != 0
    if not spaces:
        may_cut |= (before & 2 != 0) & (after & 4 != 0)
    return np.flatnonzero(may_cut) + (start + 1)


@functools.cache
def _byte_classes() -> np.ndarray:
    """Returns uint8[256]: 1 for white space, 2 for punctuation to cut after, 4 for printable ASCII.

    8 for the first bytes of U+5000 to U+8FFF, all of them Chinese characters.
    """
    classes = np.zeros(256, np.uint8)
    classes[list(b'\t\n\r ')] = 1
    for code in range(0x21, 0x7F):
        character = chr(code)
        # For lower(), a sigma is not final if letters follow it even after some punctuation.
        ends_word = f'AΣ{character}A'.lower()[1] == 'ς'
        classes[code] = 4 | (2 if not character.isalnum() and ends_word else 0)
    classes[0xE5:0xE9] = 8
    return classes


class _SpecialSearch(NamedTuple):
    """How special tokens are found in rows."""

    exact: re.Pattern[bytes]
    wide: re.Pattern[bytes] | None  # also matches text that may become one; None: no other text can
    overlaps: bool  # special tokens overlap, so that the order in which they are tried matters

    def find(self, rows: TextRows, is_plain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the starts and ends of special tokens in rows, uint64[...], ascending.

        Sets `is_plain` (uint8[rows]) to 1 for rows that need the plain rules.
        """
        exact = _matches_in_rows(self.exact, rows)
        uncertain = exact if self.overlaps else exact[:0]
        if self.wide is not None:
            wide = _matches_in_rows(self.wide, rows)
            known = set(map(tuple, exact.tolist()))
            is_new = np.array([tuple(bounds) not in known for bounds in wide.tolist()], bool)
            uncertain = np.concatenate([uncertain, wide[is_new]])
        for start, end in uncertain.tolist():
            is_plain[(rows.starts <= start) & (end <= rows.ends)] = 1
        return np.ascontiguousarray(exact[:, 0]), np.ascontiguousarray(exact[:, 1])


@functools.lru_cache
def _special_search(
    special_tokens: tuple[str, ...], kind: Kind, lower_case: bool, strip: bool
) -> _SpecialSearch:
    longest_first = sorted(special_tokens, key=len, reverse=True)
    exact = re.compile(b'|'.join(re.escape(token.encode()) for token in longest_first))
    if kind == 'bert-original':
        return _SpecialSearch(exact, None, False)
    # Lowercased text cannot become a special token that lowercasing would change.
    reachable = [
        token
        for token in longest_first
        if not lower_case or ''.join(map(str.lower, token)) == token
    ]
    sources = ascii_sources(lower_case, strip)
    wide = None
    if reachable:
        wide = re.compile(b'|'.join(_wide_pattern(token, sources) for token in reachable))
    return _SpecialSearch(exact, wide, lower_case and _have_overlaps(special_tokens))


def _have_overlaps(special_tokens: Sequence[str]) -> bool:
    """Returns whether one is within another, or begins with the end of another."""
    return any(
        one in two and one != two or any(two.endswith(one[:size]) for size in range(1, len(one)))
        for one in special_tokens
        for two in special_tokens
    )


def _wide_pattern(token: str, sources: Mapping[str, Sequence[str]]) -> bytes:
    """Returns a pattern of all text that may become a special token."""
    parts = []
    for character in token:
        if character.isascii():
            variants = (character, *sources.get(character, ()))
            alternatives = [re.escape(variant.encode()) for variant in variants]
            is_single = len(alternatives) == 1
            parts.append(alternatives[0] if is_single else b'(?:%b)' % b'|'.join(alternatives))
        else:
            parts.append(_ANY_OTHER)
    return _MAY_VANISH.join(parts)


def _matches_in_rows(pattern: re.Pattern[bytes], rows: TextRows) -> np.ndarray:
    """Returns uint64[matches, 2]: the starts and ends of the matches within rows."""
    if not len(rows.starts):
        return np.empty((0, 2), np.uint64)
    text, starts, ends = rows.text.data, rows.starts, rows.ends
    bounds = _spans(pattern.finditer(text, int(starts.min()), int(ends.max())))
    row = np.searchsorted(starts, bounds[:, 0].astype(np.int64), 'right') - 1
    is_sorted = bool((starts[1:] >= ends[:-1]).all())
    if is_sorted and (row >= 0).all() and (bounds[:, 1].astype(np.int64) <= ends[row]).all():
        return bounds
    # A match that crosses the bounds of a row may hide one within the row.
    return _spans(
        match
        for start, end in sorted(zip(starts.tolist(), ends.tolist(), strict=True))
        for match in pattern.finditer(text, start, end)
    )


def _spans(matches: Iterable[re.Match[bytes]]) -> np.ndarray:
    bounds = (bound for match in matches for bound in match.span())
    return np.fromiter(bounds, np.uint64).reshape(-1, 2)


_Word = tuple[str, list[Span]]
"""A word, and for each of its characters what of the text became it."""


def bert_words(
    text: str, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool, specials: Sequence[str]
) -> Iterator[_Word]:
    """Yields the tokens of `bert_tokens` with their places; arguments as there."""
    longest_first = sorted(map(re.escape, specials), key=len, reverse=True)
    parts = re.split(f'({"|".join(longest_first)})', text) if specials else [text]
    whole = AlignedText(text, [(place, place + 1) for place in range(len(text))])
    end = 0
    for number, part in enumerate(parts):
        start, end = end, end + len(part)
        if number % 2:
            yield part, [(start, end)] * len(part)
        else:
            yield from _ordinary_words(whole.part(start, end), kind, lower_case, strip, split_cjk)


def _ordinary_words(
    text: AlignedText, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool
) -> Iterator[_Word]:
    text = text.mapped(
        lambda each: ' ' if is_space(each) else '' if is_dropped(each, kind) else each
    )
    if kind == 'bert' and lower_case:
        text = text.mapped(str.lower)
    if split_cjk:
        text = text.mapped(lambda each: f' {each} ' if is_cjk(ord(each)) else each)
    if kind == 'bert':
        text = text.normalized('NFC')
    for found in re.finditer(r'\S+', text.text):
        word = text.part(*found.span())
        if lower_case:  # as a whole, for the sigma at its end
            word = word.mapped(str.lower)._replace(text=word.text.lower())
        if strip:
            word = word.normalized('NFD').mapped(strip_marks)
        yield from _split_at_punctuation(word)


def _split_at_punctuation(word: AlignedText) -> Iterator[_Word]:
    first = 0
    for place, character in enumerate(f'{word.text} '):
        if character.isspace() or is_punctuation(character):
            if first < place:
                yield word.text[first:place], word.spans[first:place]
            if not character.isspace():
                yield character, [word.spans[place]]
            first = place + 1
