"""Splits after ByteLevel, as Falcon's: expressions that see each byte as the character that stands for it.

A token may then end within a character: `²` is the bytes C2 B2, and B2 is shown as a `²`, which is a digit.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.text.byte_level import spelled
from tokcore.text.listed_tokens import ListedTokens
from tokcore.text.pre_tokenizer import PreTokenizer, RowPart, TextRows
from tokcore.text.regex_splits import Split, cut

_LONGEST_KEPT = 64
"""Bytes of a token whose cuts are kept; all together take some 30 MB."""


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
    return cut(spelled(token), splits)


_kept_cuts = functools.lru_cache(1 << 16)(_cuts)
