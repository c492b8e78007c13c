"""BERT's tokenizer: text to ids of a WordPiece vocabulary, and what is left of the text again."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable

from tokcore.encoding.row_encoder import DEFAULT_CACHE_BYTES, RowEncoder, SharedEncoder
from tokcore.encoding.special_ids import read_vocabulary_file
from tokcore.wordpiece.vocab_txt import parse_pieces
from tokcore.wordpiece.wordpiece_scheme import WordPieceEncodingOptions, WordPieceScheme
from tokcore.wordpiece.wordpiece_vocabulary import WordPieceVocabulary


class WordPieceTokenizer:
    """Gives the ids that transformers' `BertTokenizer` gives; threads can share it.

    Example: with the pieces `[UNK] [CLS] [SEP] un ##able`, `encode('Unable')` gives
    `[1, 3, 4, 2]`.
    """

    def __init__(
        self,
        vocabulary: WordPieceVocabulary,
        *,
        normalizer: str = 'bert',
        lower_case: bool = True,
        strip_accents: bool | None = None,
        split_cjk: bool = True,
        max_word_length: int | None = None,
        allow_special_tokens: bool = False,
    ):
        """Takes a vocabulary, and how text becomes words.

        Args:
            vocabulary: the pieces.
            normalizer: 'bert' as transformers has it, or 'bert-original' as google-research has.
            lower_case: letters become lower case.
            strip_accents: accents are stripped; None: where letters become lower case.
            split_cjk: ideographs are words of their own.
            max_word_length: longer words are unknown; None: 100, 200 with 'bert-original'.
            allow_special_tokens: `[MASK]` in text is that token, as in transformers, and not text.
        """
        self.vocabulary = vocabulary
        scheme = WordPieceScheme.of(normalizer, lower_case, strip_accents, split_cjk)
        options = WordPieceEncodingOptions(
            max_word_length=max_word_length, allow_special_tokens=allow_special_tokens
        )
        self._template = scheme.template(vocabulary)
        self._parts = scheme.encoding_parts(vocabulary, options)
        self._encoder = SharedEncoder(functools.partial(self.row_encoder, cache_bytes=0))

    @classmethod
    def load(cls, path: str | os.PathLike, **options) -> WordPieceTokenizer:
        """Reads a vocab.txt; `options` are those of the constructor.

        Raises InputError if the file cannot be read, is empty or is not UTF-8.
        """
        data = read_vocabulary_file(path)
        return cls(WordPieceVocabulary(parse_pieces(data, os.fspath(path))), **options)

    @property
    def vocab(self) -> dict[str, int]:
        """The id of each piece."""
        return self.vocabulary.ids

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks for one thread; see `RowEncoder`."""
        return RowEncoder(*self._parts, cache_bytes)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text, between `[CLS]` and `[SEP]` unless these are not wanted.

        Raises ValueError naming a word that cannot be spelt if the vocabulary has no `[UNK]`.
        """
        around = self._template if add_special_tokens else ((), ())
        return self._encoder.encode(text, *around)

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text, `[UNK]` for a word that cannot be spelt."""
        return self.vocabulary.pieces_of(self.encode(text, add_special_tokens=False))

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids; see `WordPieceVocabulary.decode`."""
        return self.vocabulary.decode(ids)
