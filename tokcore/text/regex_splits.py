"""A pre-tokenizer of any regular expressions, one after the other, as `tokenizers` has them.

The package `regex` cuts the rows of a block before kernels run: some MB a second. Patterns that have
a kernel are a hundred times as fast (`byte_level_scan`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import regex

from tokcore.text.listed_tokens import ListedTokens
from tokcore.text.pre_tokenizer import RowPart, TextRows

Behavior = Literal['Isolated', 'Removed', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']
BEHAVIORS: tuple[Behavior, ...] = get_args(Behavior)

_GROUPED = 512
"""Tokens of a long row that are tried as one part."""

_CONTINUATION = 0x80

_Span = tuple[int, int]


@dataclass(frozen=True)
class Split:
    """Cuts a text at the matches of a regular expression, as `Split` of `tokenizers` does.

    Attributes:
        expression: as `regex` takes it.
        behavior: what becomes of matches: tokens (`Isolated`), nothing (`Removed`), the end of the
            token before, the beginning of the next one; or neighbours that both match, or both do
            not, are one token (`Contiguous`).
        invert: whether what lies between matches is taken for matches.
    """

    expression: str
    behavior: Behavior = 'Isolated'
    invert: bool = False

    def cuts(self, text: str) -> list[_Span]:
        """Returns the tokens of a text, as places in it; some may be empty."""
        parts = _parts(_compiled(self.expression), text)
        if self.behavior == 'Isolated':
            return [span for span, _ in parts]
        if self.invert:
            parts = [(span, not is_match) for span, is_match in parts]
        match self.behavior:
            case 'Removed':
                return [span for span, is_match in parts if not is_match]
            case 'Contiguous':
                return _joined(parts, lambda is_match, before: is_match == before)
            case 'MergedWithPrevious':
                return _joined(parts, lambda is_match, before: is_match and not before)
            case 'MergedWithNext':
                backwards = [((-end, -start), is_match) for (start, end), is_match in parts[::-1]]
                joined = _joined(backwards, lambda is_match, before: is_match and not before)
                return [(-end, -start) for start, end in joined[::-1]]


def cut(text: str, splits: Sequence[Split]) -> list[_Span]:
    """Returns the tokens of a text, as places in it: each split cuts what the one before left."""
    tokens = [(0, len(text))]
    for split in splits:
        if len(tokens) == 1 and tokens[0] == (0, len(text)):
            tokens = split.cuts(text)
        else:
            tokens = [
                (start + first, start + last)
                for start, end in tokens
                for first, last in split.cuts(text[start:end])
            ]
        tokens = [token for token in tokens if token[0] < token[1]]
    return [token for token in tokens if token[0] < token[1]]


@functools.lru_cache(64)
def _compiled(expression: str) -> regex.Pattern[str]:
    return regex.compile(expression)


def _parts(pattern: regex.Pattern[str], text: str) -> list[tuple[_Span, bool]]:
    """Returns the matches of a text and what lies between them, in order."""
    parts = []
    end = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        if end < start:
            parts.append(((end, start), False))
        parts.append(((start, stop), True))
        end = stop
    if end < len(text):
        parts.append(((end, len(text)), False))
    return parts


def _joined(parts: list[tuple[_Span, bool]], joins) -> list[_Span]:
    """Returns the parts, those joined to the one before for which `joins(is_match, before)`."""
    spans: list[_Span] = []
    before = False
    for span, is_match in parts:
        if spans and joins(is_match, before):
            spans[-1] = (spans[-1][0], span[1])
        else:
            spans.append(span)
        before = is_match
    return spans


@dataclass(frozen=True)
class SplitPreTokenizer:
    """A `PreTokenizer` that cuts rows by regular expressions.

    Attributes:
        splits: each cuts the tokens of the one before; without any, a row is a token.
        label: the name that manifests have for them, or the expressions as files spell them; None:
            manifests have the splits.
    """

    splits: tuple[Split, ...]
    label: str | tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return 'splits' if self.label is None else 'pattern'

    @property
    def options(self) -> Mapping[str, object]:
        if self.label is not None:
            return {'pattern': [*self.label] if isinstance(self.label, tuple) else self.label}
        return {
            'splits': [[split.expression, split.behavior, split.invert] for split in self.splits]
        }

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text."""
        return [text[start:end] for start, end in cut(text, self.splits)]

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        if not self.splits:
            is_token = rows.starts < rows.ends
            row_tokens = np.append(0, np.cumsum(is_token))
            whole = ListedTokens.of(rows.starts[is_token], rows.ends[is_token], row_tokens)
            return whole, rows.text
        bounds = [np.empty((0, 2), np.int64)]
        counts = [0]
        for start, end in zip(rows.starts.tolist(), rows.ends.tolist(), strict=True):
            spans = self._byte_spans(rows.text[start:end])
            bounds.append(spans + start)
            counts.append(counts[-1] + len(spans))
        starts, ends = np.concatenate(bounds).T
        return ListedTokens.of(starts, ends, counts), rows.text

    def _byte_spans(self, row: np.ndarray) -> np.ndarray:
        """Returns int64[tokens, 2]: the first byte of each token of a row, and where it ends."""
        text = row.tobytes().decode('utf-8', 'surrogatepass')
        spans = np.array(cut(text, self.splits), np.int64).reshape(-1, 2)
        if len(text) == len(row):
            return spans
        places = np.flatnonzero((row & 0xC0) != _CONTINUATION)
        return np.append(places, len(row))[spans]

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        # An expression may look at what is beside a token. So tokens are a part together only if
        # they are the tokens of that part, and else each is one for the model.
        begin, end = int(rows.starts[row]), int(rows.ends[row])
        text = rows.text
        spans = self._byte_spans(text[begin:end]) + begin
        for first in range(0, len(spans), _GROUPED):
            group = spans[first : first + _GROUPED]
            start, stop = int(group[0, 0]), int(group[-1, 1])
            is_short = (group[:, 1] - group[:, 0]).max() <= longest
            if is_short and np.array_equal(self._byte_spans(text[start:stop]) + start, group):
                yield RowPart(text, start, stop, False)
            else:
                for token_start, token_end in group.tolist():
                    yield RowPart(text, token_start, token_end, True)
