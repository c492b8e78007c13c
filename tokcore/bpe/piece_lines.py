"""Lines of text as lines of pieces, as subword-nmt's apply-bpe writes them.

The blanks at both ends of a line are kept, those between words become one. A word that was met is
not segmented again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tokcore.bpe.vocabulary.codes_vocabulary import CodesVocabulary, TextbookVocabulary
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.encoding.row_encoder import RowEncoder
from tokcore.text.sides import Side
from tokcore.text.whitespace.space_pre_tokenizer import SpacePreTokenizer

BLANK = '\r\n '
"""What is no part of a line's words at its ends."""

_MOST_WORDS = 1 << 20
"""Words remembered, some 200 MB; beyond it all are forgotten."""


class PieceLines:
    """Segments lines; for one thread."""

    def __init__(self, vocabulary: CodesVocabulary):
        """Takes codes; their pieces need no ids."""
        self._vocabulary = vocabulary
        self._mark = '_' if isinstance(vocabulary, TextbookVocabulary) else ''
        self._encoder = RowEncoder(SpacePreTokenizer('space'), vocabulary.piece_model, 0)
        self._known: dict[str, list[str]] = {}

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Returns the pieces of each line, separated by spaces; lines may end in line breaks."""
        words = [self.words(line) for line in lines]
        self._learn(word for row in words for word in row)
        return [
            self._line(line, row) for line, row in zip(lines, words, strict=True)
        ]

    def text(self, line: str) -> str:
        """Returns the text of a line of pieces, whether or not these have ids."""
        return self._vocabulary.joined(line.split(' '))

    def pieces(self, text: str) -> list[str]:
        """Returns the pieces of a text."""
        words = self.words(text)
        self._learn(words)
        return [piece for word in words for piece in self._known[word]]

    @staticmethod
    def words(line: str) -> list[str]:
        """Returns what stands between spaces; other white space is part of words."""
        return [word for word in line.strip(BLANK).split(' ') if word]

    def _line(self, line: str, words: Sequence[str]) -> str:
        rest = line.lstrip(BLANK)
        before, after = line[: len(line) - len(rest)], rest[len(rest.rstrip(BLANK)) :]
        return before + ' '.join(piece for word in words for piece in self._known[word]) + after

    def _learn(self, words: Iterable[str]) -> None:
        if len(self._known) > _MOST_WORDS:
            self._known.clear()
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if not new:
            return
        coded = [(word + self._mark).encode('utf-8', 'surrogatepass') for word in new]
        offsets = row_offsets([len(word) for word in coded])
        text = np.frombuffer(b''.join(coded), np.uint8)
        found = self._encoder.encode_side(Side(text, offsets[:-1], offsets[1:]))
        symbols, bounds = found.ids.tolist(), found.offsets.tolist()
        for number, word in enumerate(new):
            own = symbols[bounds[number] : bounds[number + 1]]
            self._known[word] = self._vocabulary.written(own)
