"""The distinct endings of words, numbered, and what weighs them: a trie read from words' ends."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.wordpiece.learning.hashed_trie import child_or_new, empty_edges
from tokcore.wordpiece.learning.words import Words


class Endings(NamedTuple):
    """Ending i is codes[begins[i]:begins[i] + lengths[i]] of the words' code points."""

    begins: np.ndarray  # int64[endings]
    lengths: np.ndarray  # int32[endings]
    numbers: np.ndarray  # int32[code points]: which ending a word has from this place on
    first_weights: np.ndarray  # int64[endings]: of the first iteration, with places in words alone


def endings_of(words: Words) -> Endings:
    """Returns the endings of all words that begin behind a word's first character."""
    size = len(words.codes)
    begins, lengths = np.empty(size + 1, np.int64), np.empty(size + 1, np.int32)
    numbers, weights = np.zeros(size, np.int32), np.zeros(size + 1, np.int64)
    count = _number_endings(words, empty_edges(size), begins, lengths, numbers, weights)
    kept = [read_only(each[:count].copy()) for each in (begins, lengths)]
    return Endings(*kept, read_only(numbers), read_only(weights[:count].copy()))


@kernel_without_allocation
def _number_endings(words, edges, begins, lengths, numbers, weights):
    """Fills in what `Endings` has; ending 0 is the empty one. Returns how many there are."""
    count = 1
    begins[0] = lengths[0] = 0
    for word in range(len(words.counts)):
        node = np.int64(0)
        for place in range(words.starts[word + 1] - 1, words.starts[word], -1):
            depth = words.starts[word + 1] - place
            node = child_or_new(edges, node, words.codes[place], count)
            if node == count:
                begins[node] = place
                lengths[node] = depth
                count += 1
            numbers[place] = node
            weights[node] += words.counts[word]
    return count
