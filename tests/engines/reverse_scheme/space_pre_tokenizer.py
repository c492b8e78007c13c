"""Tokens are the runs between spaces; spaces are not tokens."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, TextRows, scan_tokens


class Spaces(NamedTuple):
    """The state: which byte is between tokens."""

    space: int


@scan_tokens.register(Spaces)
@kernel_without_allocation
def scan_words(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says."""
    room = len(tokens.starts) - CHUNK_TOKENS
    count = 0
    while row < len(rows.starts):
        place = rows.starts[row] if position < 0 else position
        end = rows.ends[row]
        while place < end:
            if count == room:
                return row, place, count
            begin = place
            while place < end and rows.text[place] != pre_tokenizer.space:
                place += 1
            if place > begin:
                tokens.starts[count] = begin
                tokens.ends[count] = place
                count += 1
            place += 1
        row += 1
        position = -1
        tokens.row_tokens[row] = count
    return row, position, count


class SpacePreTokenizer:
    """A `PreTokenizer` of that rule."""

    name = 'spaces'
    options = {'byte': 32}

    def prepare(self, rows: TextRows) -> tuple[Spaces, np.ndarray]:
        return Spaces(32), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        spaces = start + np.flatnonzero(rows.text[start:end] == 32)
        for space in [*spaces.tolist(), end]:
            if space > start:
                yield RowPart(rows.text, start, space, space - start > longest)
            start = space + 1
