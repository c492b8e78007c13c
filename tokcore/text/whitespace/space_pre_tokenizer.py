"""Words between white space: between U+0020 alone, or between what `str.split` cuts at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.padded_text import TextRows
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, scan_tokens
from tokcore.text.unicode_tables import whitespace_table
from tokcore.text.whitespace.space_scanning import WhiteSpace

Split = Literal['space', 'unicode']
SPLITS: tuple[Split, ...] = get_args(Split)

_TOKENS_AT_ONCE = 1 << 14
_SPACE_ALONE = read_only(np.empty(0, np.uint8))


@dataclass(frozen=True)
class SpacePreTokenizer:
    """A `PreTokenizer` of words.

    Attributes:
        split: 'space', as TensorFlow NMT splits; 'unicode', as `str.split` does.
        at_line_breaks: whether 'space' splits at line feeds and carriage returns too. Lines, which
            NMT reads, have none; texts of JSON and Parquet do. Records do not tell it: each scheme
            has it always or never.
    """

    split: Split = 'space'
    at_line_breaks: bool = False

    @property
    def name(self) -> str:
        return 'spaces'

    @property
    def options(self) -> Mapping[str, object]:
        return {'split': self.split}

    def tokens(self, text: str) -> list[str]:
        """Returns the words of a text, in plain Python."""
        if self.split == 'unicode':
            return text.split()
        if self.at_line_breaks:
            text = text.replace('\n', ' ').replace('\r', ' ')
        return [word for word in text.split(' ') if word]

    def prepare(self, rows: TextRows) -> tuple[WhiteSpace, np.ndarray]:
        table = whitespace_table() if self.split == 'unicode' else _SPACE_ALONE
        return WhiteSpace(table, self.at_line_breaks), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        state, text = self.prepare(rows)
        long_row = rows.part(row, row + 1)
        starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        found = ScannedTokens(text, starts, np.empty_like(starts), np.zeros(2, np.int64))
        done, position = 0, -1
        while not done:
            done, position, tokens = scan_tokens(long_row, done, position, state, found)
            starts, ends = found.starts[:tokens], found.ends[:tokens]
            first = 0
            for token in [*np.flatnonzero(ends - starts > longest).tolist(), tokens]:
                if first < token:
                    yield RowPart(text, int(starts[first]), int(ends[token - 1]), False)
                if token < tokens:
                    yield RowPart(text, int(starts[token]), int(ends[token]), True)
                first = token + 1
