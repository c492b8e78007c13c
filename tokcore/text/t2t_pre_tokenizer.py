"""Tensor2Tensor's pre-tokenizer: runs of letters and numbers, and runs of all else."""

import types
from collections.abc import Iterator, Mapping

import numpy as np

from tokcore.text.padded_text import TextRows
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, scan_tokens
from tokcore.text.t2t_scanning import AlphanumericRuns, alphanumeric_bits

_TOKENS_AT_ONCE = 1 << 14


class T2TPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `t2t_tokens.tokenize`."""

    name = 't2t'
    options: Mapping[str, object] = types.MappingProxyType({})

    def prepare(self, rows: TextRows) -> tuple[AlphanumericRuns, np.ndarray]:
        return AlphanumericRuns(alphanumeric_bits()), rows.text

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
                # A part goes from a token to a token: a space between two of them may be none.
                if first < token:
                    yield RowPart(text, int(starts[first]), int(ends[token - 1]), False)
                if token < tokens:
                    yield RowPart(text, int(starts[token]), int(ends[token]), True)
                first = token + 1
