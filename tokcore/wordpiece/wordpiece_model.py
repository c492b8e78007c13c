"""A vocabulary of pieces as a model of the block engine."""

from collections.abc import Iterator

import numpy as np

from tokcore.text.pre_tokenizer import RowPart
from tokcore.wordpiece.piece_segmenting import NO_UNKNOWN, PieceIds, WordPieces, segment_word
from tokcore.wordpiece.piece_trie import PieceTrie

_SHOWN = 60  # characters of a word that an error shows


class WordPieceModel:
    """A `Model`: a word's ids are those of the longest pieces from its left, or the unknown one."""

    def __init__(self, trie: PieceTrie, size: int, unknown: int | None, max_word_length: int):
        """Takes the pieces and how many ids there are.

        Args:
            trie: of the pieces.
            size: all ids are below.
            unknown: the id of a word that cannot be spelt, or None where that is an error.
            max_word_length: code points; longer words are unknown.
        """
        self.size = size
        self.state = WordPieces(trie, NO_UNKNOWN if unknown is None else unknown, max_word_length)

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds(np.empty(tokens, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        start, end = np.uint64(part.start), np.uint64(part.end)
        # An id for a character at most; where none are written the room takes no memory.
        room = min(part.end - part.start, self.state.max_word_length) + 1
        ids = np.empty(room, np.int32)
        used, left = segment_word(part.text, start, end, self.state, ids, np.uint64(0))
        if left:
            token = part.text[part.start : part.end].tobytes().decode('utf-8', 'surrogatepass')
            raise ValueError(self.unspelled(token, int(left)))
        yield ids[: int(used)]

    def unspelled(self, token: str, left: int) -> str:
        rest = token.encode('utf-8', 'surrogatepass')[-left:].decode('utf-8', 'surrogatepass')
        return (
            f'no pieces of the vocabulary spell the word {_shown(token)}, from {_shown(rest)} on, '
            'and it has no entry for unknown words; give a vocabulary with [UNK]'
        )


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else f'{text[:_SHOWN]!r}…'
