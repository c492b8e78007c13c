"""Words with a mark behind each: the textbook's `_`, which is part of a word when it is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.text.padded_text import TextRows, with_margin
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, PreTokenizer, RowPart, scan_tokens


class MarkedTokens(NamedTuple):
    """The state: the tokens of all rows, found already; arrays are read-only."""

    starts: np.ndarray  # uint64[tokens]
    ends: np.ndarray  # uint64[tokens]
    row_tokens: np.ndarray  # int64[rows + 1]


@scan_tokens.register(MarkedTokens)
@kernel_without_allocation
def scan_marked_tokens(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; a position is the number of a token."""
    room = len(tokens.starts) - CHUNK_TOKENS
    count = 0
    while row < len(rows.starts):
        token = pre_tokenizer.row_tokens[row] if position < 0 else position
        while token < pre_tokenizer.row_tokens[row + 1]:
            if count == room:
                return row, token, count
            tokens.starts[count] = pre_tokenizer.starts[token]
            tokens.ends[count] = pre_tokenizer.ends[token]
            count += 1
            token += 1
        row += 1
        position = -1
        tokens.row_tokens[row] = count
    return row, position, count


@dataclass(frozen=True)
class MarkedWords:
    """A `PreTokenizer` that puts a mark behind each token of another.

    Tokens are found by that one's `row_parts`, some microseconds each: it is for small texts.
    """

    words: PreTokenizer
    mark: str = '_'

    @property
    def name(self) -> str:
        return f'marked-{self.words.name}'

    @property
    def options(self) -> Mapping[str, object]:
        return {**self.words.options, 'mark': self.mark}

    def prepare(self, rows: TextRows) -> tuple[MarkedTokens, np.ndarray]:
        mark = self.mark.encode()
        text, starts, ends, counts = bytearray(), [], [], [0]
        for row in range(len(rows.starts)):
            for part in self.words.row_parts(rows, row, 0):
                starts.append(len(text))
                text += part.text[part.start : part.end].tobytes() + mark
                ends.append(len(text))
            counts.append(len(starts))
        places = (read_only(np.array(each, np.uint64)) for each in (starts, ends))
        state = MarkedTokens(*places, read_only(np.array(counts, np.int64)))
        return state, with_margin(np.frombuffer(bytes(text), np.uint8))

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        for part in self.words.row_parts(rows, row, 0):
            word = part.text[part.start : part.end]
            if len(word) + len(self.mark.encode()) <= longest:
                # A row of this word alone: its mark comes when it is scanned.
                yield RowPart(part.text, part.start, part.end, False)
            else:
                marked = np.concatenate([word, np.frombuffer(self.mark.encode(), np.uint8)])
                yield RowPart(with_margin(marked), 0, len(marked), True)


@dataclass(frozen=True)
class WholeRows:
    """A `PreTokenizer` whose tokens are the rows: for words that are known already."""

    name = 'whole-rows'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[MarkedTokens, np.ndarray]:
        bounds = (read_only(each.astype(np.uint64)) for each in (rows.starts, rows.ends))
        return MarkedTokens(*bounds, read_only(np.arange(len(rows.starts) + 1))), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        yield RowPart(rows.text, start, end, end - start > longest)
