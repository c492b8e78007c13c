"""`clean_en_xx` over the rows of a block at once: pairs to those that are wanted."""

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.corpus.filters.clean_en_xx_kernels import english_classes, first_tests
from tokcore.corpus.filters.clean_en_xx_sentences import count_sentences, cut_sentences
from tokcore.text.sides import Side


def failed_tests(english: Side) -> np.ndarray:
    """Returns uint8[rows], 0 for rows that no test drops.

    Else the number, from 1, of the first in `plain_clean_en_xx.TESTS` by which a row is dropped.
    """
    tests = np.empty(len(english), np.uint8)
    first_tests(*_arrays(english), english_classes(), tests)
    return tests


def clean_pairs(english: Side, other: Side) -> tuple[Side, Side, np.ndarray, np.ndarray]:
    """Returns the pairs that come of some pairs, the numbers of those, and which are wanted.

    Sides, which share the texts that are given; int64[pairs]; bool[pairs], where only sentences of
    pairs that were cut can be unwanted.
    """
    passed = np.flatnonzero(failed_tests(english) == 0)
    sides = _taken(english, passed), _taken(other, passed)
    counts, others = _counts(sides[0], True), _counts(sides[1], False)
    as_many = np.flatnonzero(counts == others)
    rows, counts = passed[as_many], counts[as_many]
    sides = _taken(sides[0], as_many), _taken(sides[1], as_many)
    several = np.flatnonzero(counts > 1)
    if not len(several):
        return *sides, rows, np.ones(len(rows), bool)
    english, other = _cut(sides[0], several, counts, True), _cut(sides[1], several, counts, False)
    is_wanted = np.ones(len(english), bool)
    is_piece = np.repeat(counts > 1, counts)
    is_wanted[is_piece] = failed_tests(_taken(english, is_piece)) == 0
    return english, other, np.repeat(rows, counts), is_wanted


def _taken(side: Side, rows: np.ndarray) -> Side:
    return Side(side.text, side.starts[rows], side.ends[rows])


def _arrays(side: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return read_only(side.text), read_only(side.starts), read_only(side.ends)


def _counts(side: Side, is_english: bool) -> np.ndarray:
    counts = np.empty(len(side), np.int64)
    count_sentences(*_arrays(side), is_english, english_classes(), counts)
    return counts


def _cut(side: Side, several: np.ndarray, counts: np.ndarray, is_english: bool) -> Side:
    """The rows with those that are of several sentences cut into these."""
    text, *rows = _arrays(_taken(side, several))
    size = int(counts[several].sum())
    pieces = np.empty(size, np.int64), np.empty(size, np.int64)
    cut_sentences(text, tuple(rows), is_english, english_classes(), pieces)
    is_piece = np.repeat(counts > 1, counts)
    starts, ends = np.repeat(side.starts, counts), np.repeat(side.ends, counts)
    starts[is_piece], ends[is_piece] = pieces
    return Side(side.text, starts, ends)
