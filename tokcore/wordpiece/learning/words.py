"""The words that a vocabulary is learned from, chosen as TensorFlow Text chooses them."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.counts.token_table import TokenTable
from tokcore.text.unicode_tables import CODE_POINTS
from tokcore.text.utf8 import next_character


class Words(NamedTuple):
    """Words as code points: word i is codes[starts[i]:starts[i + 1]], counted counts[i] times."""

    codes: np.ndarray  # uint32
    starts: np.ndarray  # int64[words + 1]
    counts: np.ndarray  # int64[words]

    def text(self, begin: int, length: int) -> str:
        """Returns some of the characters."""
        return self.codes[begin : begin + length].tobytes().decode('utf-32-le', 'surrogatepass')

    def pick(self, chosen: np.ndarray) -> 'Words':
        """Returns the words of these numbers, in this order."""
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        codes = np.empty(int(starts[-1]), np.uint32)
        _copy_words(self.codes, read_only(self.starts[chosen]), read_only(starts), codes)
        return Words(read_only(codes), read_only(starts), read_only(self.counts[chosen]))


def words_of(table: TokenTable) -> Words:
    """Returns all words of a table, ascending by code point."""
    table = table.sorted()
    lengths = np.empty(len(table), np.int64)
    codes = np.empty(len(table.data), np.uint32)
    size = _decode(read_only(table.data), read_only(table.offsets), codes, lengths)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Words(read_only(codes[:size]), read_only(starts), read_only(table.counts))


def learned_words(
    words: Words,
    special_tokens: Collection[str],
    max_length: int,
    max_characters: int,
    max_words: int | None,
) -> Words:
    """Returns the words to learn from, by their counts, of equal ones by code point.

    Args:
        words: all, ascending by code point.
        special_tokens: are not learned from.
        max_length: longer ones are left out.
        max_characters: those with other characters than so many of the commonest are left out.
        max_words: as many at most, by their counts; None for all.
    """
    words = fitting_words(words, special_tokens, max_length)
    characters = commonest_characters(character_weights(words), max_characters)
    words = fitting_words(words, special_tokens, max_length, characters)
    order = np.argsort(-words.counts, kind='stable')
    return words.pick(order if max_words is None else order[:max_words])


def fitting_words(
    words: Words,
    special_tokens: Collection[str],
    max_length: int,
    characters: str | None = None,
) -> Words:
    """Returns the words that are no special tokens, and not longer, and have no other characters."""
    lengths = np.diff(words.starts)
    kept = lengths <= max_length
    for word in np.flatnonzero(_first_letters(words, special_tokens)).tolist():
        if words.text(int(words.starts[word]), int(lengths[word])) in special_tokens:
            kept[word] = False
    if characters is not None:
        is_strange = np.ones(CODE_POINTS, np.bool_)
        is_strange[[ord(each) for each in characters]] = False
        strange = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_strange[words.codes])])
        kept &= strange[words.starts[1:]] == strange[words.starts[:-1]]
    return words.pick(np.flatnonzero(kept))


def character_weights(words: Words) -> dict[str, int]:
    """Returns how often each character occurs in words, by their counts; exact at any size."""
    characters, places = np.unique(words.codes, return_inverse=True)
    counts = np.repeat(words.counts, np.diff(words.starts))
    high, low = (np.zeros(len(characters), np.int64) for _ in range(2))
    np.add.at(high, places, counts >> 32)
    np.add.at(low, places, counts & 0xFFFFFFFF)
    return {
        chr(character): (int(above) << 32) + int(below)
        for character, above, below in zip(characters.tolist(), high, low, strict=True)
    }


def commonest_characters(weights: Mapping[str, int], most: int) -> str:
    """Returns so many characters of the largest weights, of equal ones the first by code point."""
    return ''.join(sorted(weights, key=lambda each: (-weights[each], each))[:most])


def _first_letters(words: Words, tokens: Collection[str]) -> np.ndarray:
    """Which words begin as one of the tokens does: bool[words]."""
    codes = np.array([ord(token[0]) for token in tokens if token], np.uint32)
    begins = words.starts[:-1]
    return np.isin(words.codes[np.minimum(begins, max(0, len(words.codes) - 1))], codes) & (
        np.diff(words.starts) > 0
    )


@kernel_without_allocation
def _decode(data, offsets, codes, lengths):
    """Writes tokens of UTF-8 as code points; returns how many these are."""
    size = 0
    for token in range(len(offsets) - 1):
        place, first = offsets[token], size
        while place < offsets[token + 1]:
            code, place = next_character(data, place)
            codes[size] = code
            size += 1
        lengths[token] = size - first
    return size


@kernel_without_allocation
def _copy_words(codes, begins, starts, copy):
    """Copies words that begin at these places one after another, to `starts`."""
    for word in range(len(begins)):
        for k in range(starts[word + 1] - starts[word]):
            copy[starts[word] + k] = codes[begins[word] + k]
