"""The words that a model is learned from: in letters, and in the order of SentencePiece's sums.

A word is counted as a token that ends with the character after it: U+2581 of the next word, or U+0000 at the
end of a sentence.
"""

from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.unicode import CODE_POINTS, next_character
from tokcore.unigram.strings import POSITION_BITS, Strings, entries_of, position_of, sort_strings

WORD_START, RARE, META_NAME = '\u2581', '\u2585', '\x1f'
"""Characters with a meaning: a space, a character beyond the coverage, and the name of a meta piece."""


class Words(NamedTuple):
    """Words in letters; a letter is the rank of a character, from 1 on. Words may repeat."""

    letters: np.ndarray  # uint16, or int32 for a larger alphabet, with a 0 behind each word
    counts: np.ndarray  # int64[words]
    are_last: np.ndarray  # bool[words]: whether a sentence ends after them
    last: np.ndarray
    """int32: the last word of the text, after empty sentences have changed places with the last."""


class Alphabet(NamedTuple):
    """The characters that are not rare."""

    code_points: np.ndarray  # int32[letters + 1]: ascending from index 1 on
    letter_of: np.ndarray  # int32[CODE_POINTS]
    required: np.ndarray  # int64: the letters that must be pieces, by count, descending

    @property
    def dtype(self) -> np.dtype:
        """The type of letters. Kernels are compiled for each, so none has 8 bits."""
        return np.dtype(np.uint16 if len(self.code_points) <= 1 << 16 else np.int32)

    def words_of(self, table: TokenTable) -> Words:
        """Returns the words of a table."""
        # As many as first bytes of characters; the one after a word makes room for the 0.
        letters = np.zeros(np.count_nonzero(table.data.view(np.int8) >= -64), self.dtype)
        _write_letters(table.data, table.offsets, read_only(self.letter_of), letters)
        are_last = read_only(table.data[table.offsets[1:] - 1] == 0)
        return Words(
            read_only(letters), table.counts, are_last, self.letters_of_word(table.last_word)
        )

    def letters_of_word(self, word: bytes | None) -> np.ndarray:
        """Returns the letters of a word, int32."""
        assert word is not None
        return self.letter_of[np.frombuffer(word.decode().encode('utf-32-le'), np.uint32)]


def rank_words(words: Words, alphabet_size: int, shards: int) -> list[Strings]:
    """Adds up equal words, and deals them by count, descending, and bytes to shards in turn."""
    letters, counts = words.letters, words.counts
    del words
    entries, common = entries_of(letters), np.zeros(len(counts), np.int32)
    sort_strings(letters, alphabet_size, len(letters), entries, common)
    sums = np.zeros(len(counts), np.int64)
    different = _add_up(letters, counts, common, entries, sums)
    del counts, common
    entries, sums = entries[:different], sums[:different]
    order = np.argsort(-sums, kind='stable')
    entries, sums = entries[order], sums[order].astype(np.float32)
    del order
    parts = [(entries[shard::shards].copy(), sums[shard::shards].copy()) for shard in range(shards)]
    return [Strings.of(letters, *part) for part in parts]


def count_characters(words: TokenTable) -> np.ndarray:
    """Returns the occurrences of each character in words, int64[CODE_POINTS]."""
    totals = np.zeros(CODE_POINTS, np.int64)
    _count_characters(words.data, words.offsets, words.counts, totals)
    return totals


def choose_alphabet(totals: np.ndarray, coverage: float) -> Alphabet:
    """Returns the most frequent characters, which cover a part of the text.

    Args:
        totals: as `count_characters` returns them.
        coverage: the part.

    Raises:
        InputError: there is no word.
    """
    totals[0] = 0
    found = np.flatnonzero(totals)
    if not len(found):
        raise InputError('there is no word to learn from; check the text and its counts')
    found = found[np.argsort(-totals[found], kind='stable')]
    before = np.cumsum(totals[found]) - totals[found]
    found = found[(before / totals.sum()).astype(np.float32) < np.float32(coverage)]
    chosen = found[found != ord(META_NAME)]
    code_points = np.unique(np.append(chosen, [0, ord(RARE)])).astype(np.int32)
    letter_of = np.full(CODE_POINTS, np.searchsorted(code_points, ord(RARE)), np.int32)
    letter_of[code_points] = np.arange(len(code_points))
    letter_of[0] = letter_of[ord(RARE)]
    return Alphabet(code_points, letter_of, letter_of[chosen].astype(np.int64))


@kernel_without_allocation
def _count_characters(data, offsets, counts, totals):
    """Adds up the occurrences of each character of words."""
    for word in range(len(counts)):
        character, position = next_character(data, offsets[word])
        while position < offsets[word + 1]:
            totals[character] += counts[word]
            character, position = next_character(data, position)


@kernel_without_allocation
def _write_letters(data, offsets, letter_of, letters):
    size = 0
    for word in range(len(offsets) - 1):
        character, position = next_character(data, offsets[word])
        while position < offsets[word + 1]:
            letters[size] = letter_of[character]
            size += 1
            character, position = next_character(data, position)
        size += 1


@kernel_without_allocation
def _add_up(letters, counts, common, entries, sums):
    """Adds up the counts of sorted words, without the empty one of empty sentences.

    Replaces the entries by the positions of different words, and returns how many there are.
    """
    size, before = 0, 0
    for i in range(len(entries)):
        position, same = position_of(entries[i]), common[i]
        if letters[position] == 0:
            continue
        if size == 0 or letters[position + same] != 0 or letters[before + same] != 0:
            size += 1
        sums[size - 1] += counts[entries[i] >> POSITION_BITS]
        entries[size - 1] = position
        before = position
    return size
