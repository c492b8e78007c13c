"""A heap of pairs, the next to be merged at its top.

    entries[i] is before entries[2i + 1] and entries[2i + 2]

Counts in it may be too high, and what ties are decided by too low: whoever takes the top looks, and
puts it back with what is true now.
"""

from typing import NamedTuple

import numpy as np

from tokcore.bpe.learning.pair_counting import left_of, right_of
from tokcore.bpe.learning.word_cells import is_larger
from tokcore.compiled.compilation import kernel_without_allocation

SMALLEST_IDS, LARGEST_PAIR, FIRST = range(3)
"""What decides among pairs of one count; see `merge_rules`."""


class Queue(NamedTuple):
    """Entries of a heap; how many are used is known to whoever has it."""

    counts: np.ndarray  # int64
    ties: np.ndarray  # int64: the pair's key, or of FIRST where it is first
    numbers: np.ndarray  # int32: of the pair


@kernel_without_allocation
def _is_before(count, tie, other_count, other_tie, text, symbols, rule):
    if count != other_count:
        return count > other_count
    if rule != LARGEST_PAIR:
        return tie < other_tie
    if left_of(tie) != left_of(other_tie):
        return is_larger(left_of(tie), left_of(other_tie), text, symbols)
    return is_larger(right_of(tie), right_of(other_tie), text, symbols)


@kernel_without_allocation
def _put(queue, place, count, tie, number):
    queue.counts[place] = count
    queue.ties[place] = tie
    queue.numbers[place] = number


@kernel_without_allocation
def _move(queue, source, target):
    _put(queue, target, queue.counts[source], queue.ties[source], queue.numbers[source])


@kernel_without_allocation
def push(queue, size, count, tie, number, text, symbols, rule):
    """Puts an entry to `size` others."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if not _is_before(
            count, tie, queue.counts[parent], queue.ties[parent], text, symbols, rule
        ):
            break
        _move(queue, parent, place)
        place = parent
    _put(queue, place, count, tie, number)


@kernel_without_allocation
def replace_top(queue, size, count, tie, number, text, symbols, rule):
    """Puts an entry in the place of the first of `size`."""
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _is_before(
            queue.counts[child + 1], queue.ties[child + 1],
            queue.counts[child], queue.ties[child], text, symbols, rule,
        ):  # fmt: skip
            child += 1
        if not _is_before(queue.counts[child], queue.ties[child], count, tie, text, symbols, rule):
            break
        _move(queue, child, place)
        place = child
    _put(queue, place, count, tie, number)


@kernel_without_allocation
def remove_top(queue, size, text, symbols, rule):
    """Takes the first of `size` entries away."""
    last = size - 1
    if last > 0:
        replace_top(
            queue, last, queue.counts[last], queue.ties[last], queue.numbers[last],
            text, symbols, rule,
        )  # fmt: skip
