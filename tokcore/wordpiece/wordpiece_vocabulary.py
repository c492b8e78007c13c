"""A WordPiece vocabulary: pieces by id, and text of ids again."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Sequence

from tokcore.encoding.special_ids import SpecialIds, special_ids_by_name
from tokcore.wordpiece.learning.wordpiece_options import SPECIAL_TOKENS
from tokcore.wordpiece.vocab_txt import dump_pieces

if typing.TYPE_CHECKING:
    from tokcore.wordpiece.piece_trie import PieceTrie
    from tokcore.wordpiece.wordpiece_model import WordPieceModel

JOINER = '##'

MAX_WORD_LENGTH = 100
"""Code points; transformers' `BertTokenizer` has the limit too."""

_SHOWN_UNKNOWN = '[UNK]'

_WITHOUT_SPACE = (
    (' .', '.'), (' ?', '?'), (' !', '!'), (' ,', ','), (" ' ", "'"),
    (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
"""What transformers' decoder puts in the place of what, one after another."""


class WordPieceVocabulary:
    """Pieces by id. Threads can share it."""

    def __init__(self, pieces: Sequence[str], joiner: str = JOINER):
        """Takes the pieces by id, and what begins those that do not begin a word.

        Of equal pieces the last one's id is used; an empty one only takes an id.
        """
        self._pieces = tuple(pieces)
        self._joiner = joiner

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces by id."""
        return self._pieces

    @property
    def vocab_size(self) -> int:
        """The number of ids, those of duplicates and empty pieces included."""
        return len(self._pieces)

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each piece that is used."""
        return {piece: id_ for id_, piece in enumerate(self._pieces)}

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        """The ids of `[PAD]`, `[CLS]`, `[SEP]` and `[UNK]`, if they are there."""
        return special_ids_by_name(self.id_of)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Those of BERT's special tokens that are among the pieces."""
        return tuple(token for token in SPECIAL_TOKENS if token in self.ids)

    def id_of(self, token: str) -> int | None:
        """Returns the id of a piece, or None if there is none."""
        return self.ids.get(token)

    @property
    def model(self) -> WordPieceModel:
        """The vocabulary as the block engine takes it, with BERT's longest word."""
        return self.model_for(MAX_WORD_LENGTH)

    def model_for(self, max_word_length: int) -> WordPieceModel:
        """Returns the model to which words of more code points are unknown."""
        from tokcore.wordpiece.wordpiece_model import WordPieceModel

        unknown = self.special_ids.unknown
        return WordPieceModel(self._trie, self.vocab_size, unknown, max_word_length)

    @functools.cached_property
    def _trie(self) -> PieceTrie:
        from tokcore.wordpiece.piece_trie import piece_trie

        return piece_trie(self.ids.items(), self._joiner)

    def dump(self) -> bytes:
        """Returns the file, a vocab.txt.

        Raises ValueError for pieces that it cannot hold; see `dump_pieces`.
        """
        return dump_pieces(self._pieces)

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """Returns each id's piece; `[UNK]` for ids out of range and of pieces that come again."""
        return [
            self._pieces[id_]
            if 0 <= id_ < len(self._pieces) and self.ids[self._pieces[id_]] == id_
            else _SHOWN_UNKNOWN
            for id_ in ids
        ]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns what `decode` gives, in UTF-8."""
        return self.decode(ids).encode()

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids as `BertTokenizer.decode` of transformers 4 does.

        Pieces are joined and spaces before punctuation left out, as English has it. It is no
        inverse of encoding: where spaces were, accents and capitals cannot be told from ids.
        """
        text = ' '.join(self.pieces_of(ids)).replace(f' {self._joiner}', '').strip()
        for spaced, joined in _WITHOUT_SPACE:
            text = text.replace(spaced, joined)
        return text
