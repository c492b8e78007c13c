"""The words that a vocabulary is learned from, chosen as TensorFlow Text chooses them."""

from collections.abc import Collection
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
        max_characters: those with other characters than so many of the commonest are left out, of
            equally common ones the first by code point.
        max_words: as many at most, by their counts; None for all.
    """
    lengths = np.diff(words.starts)
    kept = lengths <= max_length
    for word in np.flatnonzero(_first_letters(words, special_tokens)).tolist():
        if words.text(int(words.starts[word]), int(lengths[word])) in special_tokens:
            kept[word] = False
    words = words.pick(np.flatnonzero(kept))
    # As floats the sums cannot overflow; they only rank characters, and up to 2^53 exactly.
    weights = np.zeros(CODE_POINTS, np.float64)
    np.add.at(weights, words.codes, np.repeat(words.counts, np.diff(words.starts)))
    present = np.flatnonzero(weights)
    commonest = present[np.argsort(-weights[present], kind='stable')][:max_characters]
    is_allowed = np.zeros(CODE_POINTS, np.bool_)
    is_allowed[commonest] = True
    strange = np.concatenate([np.zeros(1, np.int64), np.cumsum(~is_allowed[words.codes])])
    allowed = np.flatnonzero(strange[words.starts[1:]] == strange[words.starts[:-1]])
    order = allowed[np.argsort(-words.counts[allowed], kind='stable')]
    return words.pick(order if max_words is None else order[:max_words])


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
