"""The words that a model is learned from: in letters, and in the order of SentencePiece's sums.

A word is counted as a token that ends with the character after it: U+2581 of the next word, or U+0000 at the
end of a sentence.
"""

from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.unicode import CODE_POINTS, next_character
from tokcore.unigram.strings import (
    POSITION_BITS,
    copy_strings,
    entries_of,
    position_of,
    sort_strings,
)

WORD_START, RARE, META_NAME = '\u2581', '\u2585', '\x1f'
"""Characters with a meaning: a space, a character beyond the coverage, and the name of a meta piece."""


class Words(NamedTuple):
    """Words in letters; a letter is the rank of a character, from 1 on."""

    letters: np.ndarray  # uint16, or int32 for a larger alphabet, with a 0 behind each word
    counts: np.ndarray  # int64[words]
    ending: np.ndarray  # int64[words]: occurrences that end a sentence
    last: (
        np.ndarray
    )  # int32: the last word of the text, after empty sentences changed places with the last


class Alphabet(NamedTuple):
    """The characters that are not rare."""

    code_points: np.ndarray  # int32[letters + 1]: ascending from index 1 on
    letter_of: np.ndarray  # int32[CODE_POINTS]
    required: np.ndarray  # int64: the letters that must be pieces, by count, descending

    @property
    def dtype(self) -> np.dtype:
        """The type of letters. Kernels are compiled for each, so none has 8 bits."""
        return np.dtype(np.uint16 if len(self.code_points) <= 1 << 16 else np.int32)

    def letters_of(self, words: TokenTable) -> tuple[np.ndarray, np.ndarray]:
        """Returns the letters of words, with a 0 behind each, and int64[words + 1] starts."""
        # As many as first bytes of characters; the one after a word makes room for the 0.
        letters = np.zeros(np.count_nonzero(words.data.view(np.int8) >= -64), self.dtype)
        starts = np.zeros(len(words) + 1, np.int64)
        _write_letters(words.data, words.offsets, read_only(self.letter_of), letters, starts)
        return read_only(letters), read_only(starts)

    def letters_of_word(self, word: bytes | None) -> np.ndarray:
        """Returns the letters of a word, int32."""
        assert word is not None
        return self.letter_of[np.frombuffer(word.decode().encode('utf-32-le'), np.uint32)]


def rank_words(words: TokenTable, alphabet: Alphabet, shards: int) -> tuple[Words, np.ndarray]:
    """Adds up words that are equal in letters; orders them by count, descending, and then by bytes.

    Returns them as they are dealt to shards in turn: all of a shard, then all of the next one. The second result
    is where the shards are in the letters and in the words, int64[2, shards + 1].
    """
    letters, starts = alphabet.letters_of(words)
    counts, is_last = words.counts, end_sentences(words)
    last = alphabet.letters_of_word(words.last_word)
    del words  # from here on, letters are enough
    entries, common = entries_of(starts[:-1]), np.zeros(len(counts), np.int32)
    del starts
    sort_strings(letters, len(alphabet.code_points), len(letters), entries, common)
    sums = np.zeros((2, len(counts)), np.int64)
    different = _add_up(letters, counts, is_last, common, entries, sums)
    del counts, common, is_last
    entries, (counts, ending) = entries[:different], sums[:, :different]
    order = np.argsort(-counts, kind='stable')
    order = np.concatenate([order[shard::shards] for shard in range(shards)])
    entries, counts, ending = entries[order], counts[order], ending[order]
    del sums, order
    bounds = np.zeros((2, shards + 1), np.int64)
    bounds[1] = row_offsets([len(range(shard, different, shards)) for shard in range(shards)])
    dealt = np.zeros(len(letters), letters.dtype)
    for shard in range(shards):
        part = read_only(entries[slice(*bounds[1, shard : shard + 2])])
        bounds[0, shard + 1] = copy_strings(letters, part, dealt, bounds[0, shard])
    letters = read_only(dealt[: bounds[0, -1]])
    return Words(letters, read_only(counts), read_only(ending), last), bounds


def end_sentences(words: TokenTable) -> np.ndarray:
    """Returns which of the tokens are words that end a sentence, bool[words]."""
    return read_only(words.data[words.offsets[1:] - 1] == 0)


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
def _write_letters(data, offsets, letter_of, letters, starts):
    size = 0
    for word in range(len(offsets) - 1):
        character, position = next_character(data, offsets[word])
        while position < offsets[word + 1]:
            letters[size] = letter_of[character]
            size += 1
            character, position = next_character(data, position)
        size += 1
        starts[word + 1] = size


@kernel_without_allocation
def _add_up(letters, counts, is_last, common, entries, sums):
    """Adds up the counts of sorted words, all and of those that end a sentence.

    Replaces the entries by the positions of different words, and returns how many there are.
    """
    size, before = 0, 0
    for i in range(len(entries)):
        word, position = entries[i] >> POSITION_BITS, position_of(entries[i])
        if i == 0 or letters[position + common[i]] != 0 or letters[before + common[i]] != 0:
            entries[size] = position
            size += 1
        sums[0, size - 1] += counts[word]
        sums[1, size - 1] += counts[word] * is_last[word]
        before = position
    return size
