"""Whole words: text to ids, and back to words with spaces between them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable

from tokcore.encoding.row_encoder import SharedEncoder
from tokcore.encoding.special_ids import read_vocabulary_file
from tokcore.word.word_options import Unknown, WordEncodingOptions
from tokcore.word.word_scheme import WordScheme
from tokcore.word.word_vocabulary import WordVocabulary, parse_words


class WordTokenizer:
    """Gives each word its id; threads can share it.

    Example: with the words `<unk> <s> </s> the cat`, `encode('the black cat')` gives `[3, 0, 4]`.
    """

    def __init__(
        self, vocabulary: WordVocabulary, *, split: str = 'space', unknown: Unknown = 'token'
    ):
        """Takes a vocabulary, and how text becomes words.

        Args:
            vocabulary: the words.
            split: 'space', at U+0020 alone, or 'unicode', as `str.split` does.
            unknown: 'token', unknown words get that token's id; 'stop', they are a ValueError.
        """
        self.vocabulary = vocabulary
        scheme, options = WordScheme(split), WordEncodingOptions(unknown=unknown)
        self._encoder = SharedEncoder(functools.partial(scheme.encoder, vocabulary, options))

    @classmethod
    def load(cls, path: str | os.PathLike, **options) -> WordTokenizer:
        """Reads a file of words; `options` are those of the constructor.

        Raises InputError if the file cannot be read or is no vocabulary of words.
        """
        return cls(parse_words(read_vocabulary_file(path), os.fspath(path)), **options)

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text's words, with nothing around them.

        Raises ValueError naming a word that is not known, if there is no id for such.
        """
        return self._encoder.encode(text)

    def tokenize(self, text: str) -> list[str]:
        """Returns the words that the ids of a text stand for."""
        return [self.vocabulary.words[id_] for id_ in self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words of ids, with spaces between them."""
        return self.vocabulary.decode(ids)
