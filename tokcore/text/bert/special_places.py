"""Where special tokens stand in rows, and which rows need the plain form for them.

They are found as bytes, all at once. `BertTokenizer` takes more for a special token than that: also
what becomes one when it is lowered, cleaned or loses its accents, as `[MÁSK]` may. Rows
that may hold such are found by a pattern that is too wide, and cut in plain Python.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.text.bert.bert_tables import ascii_sources
from tokcore.text.bert.plain_bert_tokens import Kind
from tokcore.text.padded_text import TextRows

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
        each
        for each in longest_first
        if not lower_case or ''.join(map(str.lower, each)) == each
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
