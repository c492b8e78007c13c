"""A pre-tokenizer of any regular expressions, one after the other, as `tokenizers` has them.

The package `regex` cuts the rows of a block before kernels run: some MB a second. Patterns that have
a kernel are a hundred times as fast (`byte_level_scan`).

Splits after ByteLevel, as Falcon's, see each byte as the character that stands for it. A token may then
end within a character: `²` is the bytes C2 B2, and B2 is shown as a `²`, which is a digit.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tokcore.text import byte_level
from tokcore.text.expression_trees import Tree, compiled_for, spelled
from tokcore.text.pre_tokenizer import ListedTokens, PreTokenizer, RowPart, RowTokens, TextRows

Behavior = Literal['Isolated', 'Removed', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']
BEHAVIORS: tuple[Behavior, ...] = get_args(Behavior)

_GROUPED = 512
"""Tokens of a long row that are tried as one part."""

_LONGEST_KEPT = 64
"""Bytes of a token whose cuts are kept; all together take some 30 MB."""

_CONTINUATION = 0x80

_Span = tuple[int, int]


@dataclass(frozen=True)
class Split:
    """Cuts a text at the matches of a regular expression, as `Split` of `tokenizers` does.

    Attributes:
        expression: as `regex` takes it in its mode VERSION1.
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
        parts = _parts(self.expression, text)
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


def _parts(expression: str, text: str) -> list[tuple[_Span, bool]]:
    """Returns the matches of a text and what lies between them, in order."""
    parts = []
    end = 0
    for start, stop in matches(expression, text):
        if end < start:
            parts.append(((end, start), False))
        parts.append(((start, stop), True))
        end = stop
    if end < len(text):
        parts.append(((end, len(text)), False))
    return parts


def matches(expression: str, text: str) -> Iterator[_Span]:
    """Yields the places of matches; after empty ones it goes on as the engines of tokenizers do, not as `regex`.

    An empty match where the last match ended does not count, and the search goes on one character later.
    Nothing matches in an empty text.
    """
    pattern = compiled_for(text, expression)
    place, last = 0, -1
    while text and place <= len(text):
        for match in pattern.finditer(text, place):
            start, end = match.span()
            if start == end:
                break
            yield start, end
            place = last = end
        else:
            return
        if start == last:
            place += 1
        else:
            yield start, start
            place = last = start


def replacing(tree: Tree, content: str) -> Callable[[str], str]:
    """Returns a function that replaces the matches of an expression."""
    expression = spelled(tree)

    def replaced(text: str) -> str:
        parts = _parts(expression, text)
        return ''.join(content if is_match else text[a:b] for (a, b), is_match in parts)

    return replaced


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
        loses_text: whether there may be text that is in no token because no expression matches it.
    """

    splits: tuple[Split, ...]
    label: str | tuple[str, ...] | None = None
    loses_text: bool = False

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
            return RowTokens().prepare(rows)
        return self._tokens(rows), rows.text

    def _tokens(self, rows: TextRows) -> ListedTokens:
        starts: list[int] = []
        ends: list[int] = []
        counts = [0]
        data: list[bytes] = []
        before = 0  # characters of the rows before
        for start, end in zip(rows.starts.tolist(), rows.ends.tolist(), strict=True):
            data.append(rows.text[start:end].tobytes())
            text = data[-1].decode('utf-8', 'surrogatepass')
            borders = self._borders(text, before)
            if borders is None:
                spans = cut(text, self.splits)
                starts += [before + first for first, _ in spans]
                ends += [before + last for _, last in spans]
            else:
                starts += borders[:-1]
                ends += borders[1:]
            counts.append(len(starts))
            before += len(text)
        joined = np.frombuffer(b''.join(data), np.uint8)
        places = np.append(np.flatnonzero((joined & 0xC0) != _CONTINUATION), len(joined))
        shifts = rows.starts - np.append(0, np.cumsum(rows.ends - rows.starts))[:-1]
        found = places[np.array([starts, ends], np.int64)] + np.repeat(shifts, np.diff(counts))
        return ListedTokens.of(found[0], found[1], counts)

    def _borders(self, text: str, first: int) -> list[int] | None:
        """Returns where tokens begin, and the last one ends, if they are the matches of one expression.

        None if that is not sure. It takes half of the time of `cut`.
        """
        split = self.splits[0]
        pattern = compiled_for(text, split.expression)
        takes_matches = (split.behavior, split.invert) in (('Isolated', False), ('Removed', True))
        if len(self.splits) > 1 or pattern.groups or not takes_matches:
            return None
        lengths = [*map(len, pattern.findall(text))]
        borders = [*itertools.accumulate(lengths, initial=first)]
        return borders if borders[-1] - first == len(text) and 0 not in lengths else None

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        # An expression may look at what is next to a token. So tokens are a part together only if
        # they are the tokens of that part, and else each is one for the model.
        text = rows.text
        spans = self._spans(rows.part(row, row + 1))
        for first in range(0, len(spans), _GROUPED):
            group = spans[first : first + _GROUPED]
            start, stop = int(group[0, 0]), int(group[-1, 1])
            is_short = (group[:, 1] - group[:, 0]).max() <= longest
            part = TextRows(text, np.array([start]), np.array([stop]))
            if is_short and np.array_equal(self._spans(part), group):
                yield RowPart(text, start, stop, False)
            else:
                for token_start, token_end in group.tolist():
                    yield RowPart(text, token_start, token_end, True)

    def _spans(self, rows: TextRows) -> np.ndarray:
        """Returns int64[tokens, 2]: the first byte of each token, and where it ends."""
        tokens, _ = self.prepare(rows)
        return np.stack([tokens.starts, tokens.ends], 1).astype(np.int64)


@dataclass(frozen=True)
class ByteSplitPreTokenizer:
    """A `PreTokenizer` that cuts the tokens of another one, which are slices of rows, by splits."""

    first: PreTokenizer
    splits: tuple[Split, ...]

    name = 'byte-splits'

    @property
    def options(self) -> Mapping[str, object]:
        return {'first': [self.first.name, self.first.options], 'splits': [*map(str, self.splits)]}

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        parts = [[*self.row_parts(rows, row, 0)] for row in range(len(rows.starts))]
        starts = [part.start for part in itertools.chain(*parts)]
        ends = [part.end for part in itertools.chain(*parts)]
        return ListedTokens.of(starts, ends, np.cumsum([0, *map(len, parts)])), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        for part in self.first.row_parts(rows, row, longest):
            if not part.is_long_token:
                if part.start < part.end:
                    yield part
                continue
            find_cuts = _kept_cuts if part.end - part.start <= _LONGEST_KEPT else _cuts
            token = part.text[part.start : part.end].tobytes()
            for start, end in find_cuts(token, self.splits):
                yield RowPart(part.text, part.start + start, part.start + end, True)


def _cuts(token: bytes, splits: tuple[Split, ...]) -> list[tuple[int, int]]:
    return cut(byte_level.spelled(token), splits)


_kept_cuts = functools.lru_cache(1 << 16)(_cuts)
