"""Tokens that are found before kernels run, as the state of a pre-tokenizer: lists of their bounds.

It is for pre-tokenizers in Python, which find the tokens of all rows of a block at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, TextRows, scan_tokens


class ListedTokens(NamedTuple):
    """The state: the tokens of all rows; arrays are read-only."""

    starts: np.ndarray  # uint64[tokens]
    ends: np.ndarray  # uint64[tokens]
    row_tokens: np.ndarray  # int64[rows + 1]

    @classmethod
    def of(cls, starts: object, ends: object, row_tokens: object) -> 'ListedTokens':
        """Takes sequences of integers."""
        return cls(
            read_only(np.array(starts, np.uint64)),
            read_only(np.array(ends, np.uint64)),
            read_only(np.array(row_tokens, np.int64)),
        )


@scan_tokens.register(ListedTokens)
@kernel_without_allocation
def _copy_listed_tokens(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; a position is the index of a token."""
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
class RowTokens:
    """A `PreTokenizer` whose tokens are the rows."""

    name = 'whole-rows'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[ListedTokens, np.ndarray]:
        state = ListedTokens.of(rows.starts, rows.ends, np.arange(len(rows.starts) + 1))
        return state, rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        yield RowPart(rows.text, start, end, end - start > longest)
