"""Further merges on top of a vocabulary of byte-level BPE, whose ids and merges stay.

The rule: the tokens of the new corpus are segmented by the old merges, and the trainer goes on from
there. It takes the most frequent pair of neighbors in these words, of equal ones that of the smallest
ids, and gives its result the next id, after all entries and added tokens; a result that is an entry
already keeps its id. So an old vocabulary that was learned with the same tokens and rules becomes the
one of the larger size that would have been learned at once.

The text may also be cut by nothing (`none`): the old merges are made over whole lines, and the further
ones reach across blanks, as in SuperBPE's second stage (arXiv 2503.13423). As in the trainer of its
authors, no further merge results in a string with more than four words, which are its parts between
spaces, or with a colon before a space.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from tokcore.bpe.options import BpeRules
from tokcore.bpe.trainer import FirstSymbols, LearnedMerges, Learning
from tokcore.bpe.trainer_kernels import (
    BEGINS_BLANK,
    COLON_BLANK,
    ENDS_BLANK,
    ENDS_COLON,
    MOST_WORDS,
)
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import EncodedSide, RowEncoder
from tokcore.errors import InputError
from tokcore.kernels.bytes import write_varints
from tokcore.text.byte_level import ALPHABET, BYTE_TO_CHARACTER, CHARACTER_TO_BYTE, token_bytes
from tokcore.text.pre_tokenizer import RowTokens
from tokcore.text.rows import Side

_BYTES_OF_UTF8 = (*range(0xC0), *range(0xC2, 0xF5))
"""The bytes that text can have: Pythia, MPT and ModernBERT have no entries for others."""


def extend_merges(
    table: TokenTable,
    old: BpeVocabulary,
    rules: BpeRules,
    on_merges: Callable[[int], None] | None = None,
) -> BpeVocabulary:
    """Returns a vocabulary with further merges; the same one if there are none.

    Args:
        table: distinct tokens, cut by the pattern that the result is to have, with their counts.
        old: a byte-level vocabulary; see `check_extensible`.
        rules: `vocab_size` counts all entries, `merges` the further ones alone.
        on_merges: as of `learn_merges`.

    Raises:
        OverflowError, InputError: as `learn_merges`.
    """
    learning = Learning(symbols_of_pieces(old.pieces, rules), rules)
    words = _segmented(table, old)
    learning.merge_words(words, learning.min_count, on_merges)
    learned = learning.learned()
    return _with_merges(old, learned.entries, learned.merges)


def begin_extension(old: BpeVocabulary, rules: BpeRules) -> Learning:
    """Returns a learning with the old merges, to be gone on with in rounds.

    Args:
        old: has no `reason_against_rounds`.
        rules: `merges` counts the old ones too.
    """
    learning = Learning(symbols_of_pieces(old.pieces, rules), rules)
    learning.resume(*old_merges(old))
    return learning


def old_merges(old: BpeVocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Returns the merges as `Learning.pairs`, and counts of 0 since none are known."""
    ids = old.entries
    pairs = np.array([ids[left] << 32 | ids[right] for left, right in old.merges], np.int64)
    return pairs, np.zeros(len(pairs), np.int64)


def extended(old: BpeVocabulary, learned: LearnedMerges) -> BpeVocabulary:
    """Returns a vocabulary with what a learning of `begin_extension` has learned."""
    return _with_merges(old, learned.entries, learned.merges[len(old.merges) :])


def reason_against_rounds(old: BpeVocabulary) -> str | None:
    """Returns why words in rounds would not be those that a vocabulary makes, or None.

    Rounds make all merges one after another in all words. A vocabulary takes the pair of lowest rank in
    a token, again and again. That is the same if each merge comes after those that make its parts.
    """
    if old.rules.ignore_merges:
        return 'tokens that are entries of the vocabulary are not merged (ignore_merges)'
    last = {left + right: rank for rank, (left, right) in enumerate(old.merges)}
    for rank, pair in enumerate(old.merges):
        if any(last.get(part, -1) >= rank for part in pair):
            return (
                f'the merge of {pair[0]!r} and {pair[1]!r} comes before one that makes a part of it'
            )
    return None


def _with_merges(
    old: BpeVocabulary, pieces: Sequence[str], merges: Sequence[tuple[str, str]]
) -> BpeVocabulary:
    """Returns a vocabulary with further merges, and pieces of which the first are its own."""
    if not merges:
        return old
    # Readers number added tokens after the entries, unless they are entries.
    entries = {**old.entries, **{token.content: token.id for token in old.added}}
    for id_ in range(old.vocab_size, len(pieces)):
        entries[pieces[id_]] = id_
    return dataclasses.replace(old, entries=entries, merges=(*old.merges, *merges))


def check_byte_level(old: object, path: str) -> BpeVocabulary:
    """Returns a vocabulary; raises InputError if it is not of byte-level BPE."""
    if not isinstance(old, BpeVocabulary) or not old.parts.byte_level:
        raise InputError(
            f'{path} is not a vocabulary of byte-level BPE, which --extend and --shrink need; give '
            'a tokenizer.json of that kind'
        )
    return old


def check_extensible(old: BpeVocabulary, path: str) -> BpeVocabulary:
    """Returns a vocabulary; raises InputError if it has no entries for some bytes of UTF-8."""
    missing = [byte for byte in _BYTES_OF_UTF8 if BYTE_TO_CHARACTER[byte] not in old.entries]
    if missing:
        raise InputError(
            f'{path} has no entry for the byte {missing[0]:#x}; give a vocabulary with all bytes of UTF-8'
        )
    return old


def symbols_of_pieces(pieces: Sequence[str], rules: BpeRules) -> FirstSymbols:
    """Returns the pieces of a vocabulary, all bytes of UTF-8 among them, as the symbols to begin with."""
    strings = tuple(
        token_bytes(piece) if CHARACTER_TO_BYTE.keys() >= {*piece} else b'' for piece in pieces
    )
    shape = _superword_units if rules.superwords else len
    units = np.array([shape(string) for string in strings], np.int64)
    numbers = {piece: id_ for id_, piece in enumerate(pieces)}
    ids = np.array([numbers.get(BYTE_TO_CHARACTER[byte], -1) for byte in range(256)], np.int32)
    return FirstSymbols(tuple(pieces), strings, units, ids, '', len(ALPHABET))


def _superword_units(string: bytes) -> int:
    """Returns the units of a string; see `joined_units`."""
    words = sum(map(bool, string.split(b' ')))
    return (
        len(string)
        | min(words, MOST_WORDS + 1) << 32
        | string.startswith(b' ') * BEGINS_BLANK
        | string.endswith(b' ') * ENDS_BLANK
        | string.endswith(b':') * ENDS_COLON
        | (b': ' in string) * COLON_BLANK
    )


def encoded_tokens(table: TokenTable, vocabulary: BpeVocabulary) -> EncodedSide:
    """Returns the ids of each token of a table."""
    side = Side(table.data, table.offsets[:-1], table.offsets[1:])
    return RowEncoder(RowTokens(), vocabulary.model).encode_side(side)


def _segmented(table: TokenTable, old: BpeVocabulary) -> TokenTable:
    """Returns the tokens as words of the old entries; see `FirstSymbols.words`."""
    encoded = encoded_tokens(table, old)
    ids = encoded.ids.astype(np.int64)
    data = np.empty(5 * len(ids), np.uint8)  # ids have 31 bits
    data = data[: write_varints(ids, data)]
    ends = np.append(0, np.flatnonzero(data < 0x80) + 1)
    return TokenTable(data, ends[encoded.offsets], table.counts)
