"""The words that a model is learned from: as they are counted, and in the order of SentencePiece's sums."""

from typing import NamedTuple

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.unicode import CODE_POINTS, next_character
from tokcore.unigram.string_sorting import POSITION_BITS, entries_of, pick_strings, sort_strings

WORD_START, RARE, META_NAME = '\u2581', '\u2585', '\x1f'
"""Characters with a meaning: a space, a character beyond the coverage, and the name of a meta piece."""


class Words(NamedTuple):
    """Distinct words as they are counted, in any order; each begins with `WORD_START`."""

    text: np.ndarray  # uint8: all words in UTF-8, one after another
    offsets: np.ndarray  # int64[words + 1]
    counts: np.ndarray  # int64[words]: all occurrences
    ending: np.ndarray  # int64[words]: occurrences that end a sentence
    last: bytes
    """The word that ends the last sentence, after empty ones have changed places with the last."""


class RankedWords(NamedTuple):
    """Words by count, descending, and then by bytes; a letter is the rank of a character, from 1 on."""

    letters: np.ndarray  # uint16, or int32 for a larger alphabet: the words, with a 0 behind each
    starts: np.ndarray  # int64[words + 1]
    counts: np.ndarray  # int64[words]
    ending: np.ndarray  # int64[words]
    last: np.ndarray  # the letters of the last word
    alphabet: np.ndarray  # int32[letters + 1]: code points, ascending from index 1 on
    required: np.ndarray  # int64: the letters that must be pieces, by count, descending


class Alphabet(NamedTuple):
    """The characters that are not rare."""

    code_points: np.ndarray  # int32[letters + 1]: ascending from index 1 on
    letter_of: np.ndarray  # int32[CODE_POINTS]
    required: np.ndarray  # int64: the letters that must be pieces, by count, descending

    @property
    def dtype(self) -> np.dtype:
        """The type of letters. Kernels are compiled for each, so none has 8 bits."""
        return np.dtype(np.uint16 if len(self.code_points) <= 1 << 16 else np.int32)

    def letters_of(self, words: Words) -> tuple[np.ndarray, np.ndarray]:
        """Returns the letters of words, with a 0 behind each, and int64[words + 1] starts."""
        characters = np.count_nonzero(words.text & 0xC0 != 0x80)
        letters = np.zeros(characters + len(words.counts), self.dtype)
        starts = np.zeros(len(words.offsets), np.int64)
        text, offsets = read_only(words.text), read_only(words.offsets)
        _write_letters(text, offsets, read_only(self.letter_of), letters, starts)
        return read_only(letters), read_only(starts)

    def letters_of_word(self, word: bytes) -> np.ndarray:
        """Returns the letters of a word, int32."""
        return self.letter_of[np.frombuffer(word.decode().encode('utf-32-le'), np.uint32)]


def rank_words(words: Words, character_coverage: float, required_chars: str) -> RankedWords:
    """Replaces rare characters, by which words may become equal, and sorts the words.

    Raises:
        InputError: there is no word.
    """
    alphabet = choose_alphabet(count_characters(words), character_coverage, required_chars)
    letters, starts = alphabet.letters_of(words)
    entries, common = entries_of(starts[:-1]), np.zeros(len(starts) - 1, np.int32)
    sort_strings(letters, len(alphabet.code_points), len(letters), entries, common)
    order = entries >> POSITION_BITS
    del entries
    sizes = np.diff(starts)[order]
    firsts = np.flatnonzero(
        np.append(True, (common[1:] + 1 < sizes[1:]) | (sizes[1:] != sizes[:-1]))
    )
    counts = np.add.reduceat(words.counts[order], firsts)
    ending = np.add.reduceat(words.ending[order], firsts)
    by_count = np.argsort(-counts, kind='stable')
    picked = firsts[by_count]
    return RankedWords(
        *pick_strings(letters, starts[order[picked]], sizes[picked]),
        read_only(counts[by_count]), read_only(ending[by_count]),
        alphabet.letters_of_word(words.last), alphabet.code_points, alphabet.required,
    )  # fmt: skip


def count_characters(words: Words) -> np.ndarray:
    """Returns the occurrences of each character in the text, int64[CODE_POINTS]."""
    totals = np.zeros(CODE_POINTS, np.int64)
    text, offsets, counts = map(read_only, words[:3])
    _count_characters(text, offsets, counts, totals)
    return totals


def choose_alphabet(totals: np.ndarray, character_coverage: float, required_chars: str) -> Alphabet:
    """Returns the letters of words with these characters, as `count_characters` returns them.

    Raises:
        InputError: there is no word.
    """
    if not totals.any():
        raise InputError('there is no word to learn from; check the text and its counts')
    chosen = _choose_characters(totals, character_coverage, required_chars)
    code_points = np.unique(np.append(chosen, [0, ord(RARE)])).astype(np.int32)
    letter_of = np.full(CODE_POINTS, np.searchsorted(code_points, ord(RARE)), np.int32)
    letter_of[code_points] = np.arange(len(code_points))
    letter_of[0] = letter_of[ord(RARE)]
    return Alphabet(code_points, letter_of, letter_of[chosen].astype(np.int64))


def _choose_characters(totals: np.ndarray, coverage: float, required_chars: str) -> np.ndarray:
    """Returns the required characters, and the most frequent ones that cover a part; all by count."""
    totals[0] = 0
    is_required = np.zeros(CODE_POINTS, np.bool_)
    is_required[[ord(character) for character in required_chars if character != '\0']] = True
    found = np.flatnonzero((totals > 0) | is_required)
    found = found[np.lexsort((found, -totals[found], ~is_required[found]))]
    before = np.cumsum(totals[found]) - totals[found]
    taken = (before / totals.sum()).astype(np.float32) < np.float32(coverage)
    chosen = np.sort(found[: len(found) if taken.all() else int(np.argmin(taken))])
    chosen = chosen[chosen != ord(META_NAME)]
    return chosen[np.argsort(-totals[chosen], kind='stable')]


@kernel_without_allocation
def _count_characters(text, offsets, counts, totals):
    """Adds up the occurrences of each character."""
    for word in range(len(counts)):
        position = offsets[word]
        while position < offsets[word + 1]:
            character, position = next_character(text, position)
            totals[character] += counts[word]


@kernel_without_allocation
def _write_letters(text, offsets, letter_of, letters, starts):
    size = 0
    for word in range(len(offsets) - 1):
        position = offsets[word]
        while position < offsets[word + 1]:
            character, position = next_character(text, position)
            letters[size] = letter_of[character]
            size += 1
        size += 1
        starts[word + 1] = size
