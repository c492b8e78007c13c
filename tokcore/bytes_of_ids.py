"""How many bytes of text each id of a tokenizer stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tokcore.bpe.codes import SEPARATOR, NmtVocabulary, TextbookVocabulary
from tokcore.bpe.vocabulary import EntriesWithAddedTokens, bytes_of
from tokcore.byte.scheme import ByteVocabulary
from tokcore.encoding.tokenizer import Tokenizer
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t import unescape_token
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

_BYTE = re.compile(r'<0x[0-9A-F]{2}>')


def byte_lengths(tokenizer: Tokenizer) -> np.ndarray:
    """Returns the bytes of UTF-8 of the text of each id: int32[vocab_size]; special tokens have 0.

    With byte-level tokenizers without a normalizer their sum over the ids of a text is the size of the
    text. Elsewhere it is not: unknown tokens have 0, a mark (U+2581) has 1 for its space, also before
    the first word; and spaces between words have no bytes where no id stands for them, as with
    WordPiece, words, subwords and codes. What a normalizer changes has the bytes that it became.

    Examples:
        >>> tokenizer = tokcore.learn_vocabulary(['low lower lowest'], 'bpe', vocab_size=262)
        >>> tokenizer.tokenize('lowest'), tokcore.byte_lengths(tokenizer)[tokenizer.encode('lowest')].tolist()
        (['low', 'e', 'st'], [3, 1, 2])
    """
    vocabulary = tokenizer.vocabulary
    lengths = np.fromiter(map(len, _texts(vocabulary)), np.int32, vocabulary.vocab_size)
    special = {id_ for id_ in vocabulary.special_ids if id_ is not None}
    if isinstance(vocabulary, EntriesWithAddedTokens):
        special |= {token.id for token in vocabulary.added if token.special}
    elif isinstance(vocabulary, WordPieceVocabulary):
        special |= {vocabulary.ids[token] for token in vocabulary.special_tokens}
    lengths[[*special]] = 0
    return lengths


def _texts(vocabulary: Vocabulary) -> Iterator[bytes]:
    """Yields the text of each id."""
    match vocabulary:
        case EntriesWithAddedTokens():
            yield from _texts_of_entries(vocabulary)
        case ByteVocabulary():
            yield from [b'\0'] * vocabulary.vocab_size
        case _:
            for piece in vocabulary.pieces:
                match vocabulary:
                    case NmtVocabulary():
                        piece = piece.removesuffix(SEPARATOR)
                    case TextbookVocabulary():
                        piece = piece.removesuffix('_')
                    case WordPieceVocabulary():
                        piece = piece.removeprefix(vocabulary.joiner)
                    case SubwordTextEncoder():
                        piece = unescape_token(piece.removesuffix('_'))
                yield piece.encode('utf-8', 'surrogatepass')


def _texts_of_entries(vocabulary: EntriesWithAddedTokens) -> Iterator[bytes]:
    byte_level, mark, joiner, suffix = vocabulary.spelling
    added = {token.id for token in vocabulary.added}
    for id_, piece in enumerate(vocabulary.pieces):
        piece = piece if id_ in added else piece.removesuffix(suffix)
        if byte_level or id_ in added:
            yield bytes_of(piece, byte_level and id_ not in added)
        elif _BYTE.fullmatch(piece) and vocabulary.decode([id_]) != piece:
            yield b'\0'
        elif mark in piece and mark not in vocabulary.decode([id_]):
            yield piece.replace(mark, ' ').encode('utf-8', 'surrogatepass')
        else:
            yield piece.removeprefix(joiner).encode('utf-8', 'surrogatepass')
