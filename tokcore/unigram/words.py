"""The words that a model is learned from: as they are counted, and in the order of SentencePiece's sums."""

from typing import NamedTuple

import numpy as np

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
