"""Runs of some characters as tokens, found in the pass that counts all characters of the rows."""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, TextRows, scan_tokens
from tokcore.text.unicode import CODE_POINTS, next_character

_CODES_BELOW = ((0x80, 0x80), (0xE0, 0x800), (0xF0, 0x10000), (0xF1, 0x40000))
"""Text whose bytes are all below the first number has code points below the second."""

_0, _1 = np.uint64(0), np.uint64(1)


class CharacterRuns(NamedTuple):
    """The state of `scan_tokens`, and what a `TokenAccumulator` takes; it is for one thread."""

    is_inside: np.ndarray  # uint8[0x110000]: 1 for the characters of tokens, 0 for the others
    counts: (
        np.ndarray
    )  # int64[more than any code point]: each character of the rows adds 1 to its own

    @classmethod
    def of(cls, is_inside: np.ndarray, text: np.ndarray) -> 'CharacterRuns':
        """Takes the characters of tokens, and valid UTF-8 that has the rows; all counts are 0."""
        greatest = int(text.max(initial=0))
        # As few counts as the text may need: most of it is of few code points.
        codes = next((codes for byte, codes in _CODES_BELOW if greatest < byte), CODE_POINTS)
        return cls(is_inside, np.zeros(codes, np.int64))

    def prepare(self, rows: TextRows) -> tuple['CharacterRuns', np.ndarray]:
        """Returns the state and the text of the tokens."""
        return self, rows.text


@scan_tokens.register(CharacterRuns)
@kernel_without_allocation
def _scan_character_runs(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows. Counts each character once."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    ended = _0
    while row < len(rows.starts):
        place = np.int64(rows.starts[row] if position < 0 else position)
        row_end = rows.ends[row]
        was_inside = _0
        while place < row_end:
            # Between two tokens, so that a call that continues here counts no character again.
            if ended > room and was_inside == _0:
                return row, place, np.int64(ended)
            start = np.uint64(place)
            code, place = next_character(rows.text, place)
            pre_tokenizer.counts[np.uint64(code)] += 1
            is_inside = np.uint64(pre_tokenizer.is_inside[np.uint64(code)])
            # Written at each character, and kept at borders: no processor can predict these.
            tokens.starts[ended + was_inside] = start
            tokens.ends[ended] = start
            ended += was_inside & (is_inside ^ _1)
            was_inside = is_inside
        tokens.ends[ended] = np.uint64(row_end)
        ended += was_inside
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)
