"""The pre-tokenizers of GPT-2 and of cl100k: rows cut by a pattern, and nothing of them dropped."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.text.byte_level.character_classes import character_classes
from tokcore.text.byte_level.pattern_scanning import PatternText
from tokcore.text.byte_level.plain_patterns import PATTERNS, WHITE_SPACE, Pattern, split
from tokcore.text.padded_text import TextRows
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, scan_tokens

_TOKENS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class PatternPreTokenizer:
    r"""A `PreTokenizer` whose tokens are those of `plain_patterns.split`.

    Letters and numbers are those of this Python's `unicodedata` (L* and N*), white space is
    `WHITE_SPACE`.

    Attributes:
        pattern: 'gpt2' or 'cl100k'.
    """

    pattern: Pattern = 'gpt2'

    def __post_init__(self):
        if self.pattern not in PATTERNS:
            raise ValueError(f'{self.pattern!r} is no pattern; there are {" and ".join(PATTERNS)}')

    @property
    def name(self) -> str:
        return 'pattern'

    @property
    def options(self) -> Mapping[str, object]:
        return {'pattern': self.pattern}

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, in plain Python."""
        return split(text, self.pattern)

    def prepare(self, rows: TextRows) -> tuple[PatternText, np.ndarray]:
        return PatternText(character_classes(), self.pattern == 'cl100k'), rows.text

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
                for last in _part_ends(text, starts, ends, first, token):
                    yield RowPart(text, int(starts[first]), int(ends[last]), False)
                    first = last + 1
                if token < tokens:
                    yield RowPart(text, int(starts[token]), int(ends[token]), True)
                first = token + 1


def _part_ends(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, first: int, end: int
) -> list[int]:
    """The last tokens of parts of the tokens from `first` up to `end`, none if there is no token.

    White space at the end of a text is one token, so where there are several each ends a part.
    """
    last = end - 1
    found = [last] if first < end else []
    while last > first and _is_space(text[starts[last] : ends[last]]):
        last -= 1
        found.insert(0, last)
    return found


def _is_space(token: np.ndarray) -> bool:
    return not token.tobytes().decode().strip(WHITE_SPACE)
