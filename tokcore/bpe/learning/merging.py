"""Merging the best pairs, one after another: cells, counts, places and heap kept up.

Of a merge `a b` to `X`, at each place of it:

    before   L  a  b  R          L a and b R lose what the word counts,
    after    L    X   R          L X and X R gain it

What is lost and gained is summed by L and by R first, so tables of pairs are asked once for each.
Where the place before was just merged too, L is an `X`: then `b a` is lost and `X X` is gained, and
the `X a` that was gained a moment ago is not.
"""

from typing import NamedTuple

import numpy as np

from tokcore.bpe.learning.pair_counting import (
    enter_pair,
    find_pair,
    is_there,
    left_of,
    pair_of,
    right_of,
)
from tokcore.bpe.learning.pair_queue import FIRST, push, remove_top, replace_top
from tokcore.bpe.learning.word_cells import INSIDE, find_symbol, may_join, put_symbol
from tokcore.compiled.compilation import kernel_without_allocation

PAUSED, ENDED, EXHAUSTED, MET_AGAIN, SYMBOLS_FULL, PAIRS_FULL, PLACES_FULL = range(7)
"""Why `merge_pairs` returns: as many merges as asked for, or in all; no pair left of the threshold;
a symbol that words had already; no room, and nothing of the next merge is done."""

# What changes, as numbers of an array.
MERGES, SYMBOLS, PAIRS, PLACES, QUEUED = range(5)

BEFORE, BEHIND = 0, 1


class Neighbours(NamedTuple):
    """What one merge needs, by neighbouring symbol: `BEFORE` the pair, and `BEHIND` it.

    Between merges all is 0.
    """

    weights: np.ndarray  # int64[2, symbols]: counts that change; then where places go, or -1
    numbers: np.ndarray  # int64[2, symbols]: places
    met: np.ndarray  # int32[2, symbols]: the symbols that there are


class Merges(NamedTuple):
    """What was merged; how many is in the array of what changes."""

    pairs: np.ndarray  # int64
    products: np.ndarray  # int32
    counts: np.ndarray  # int64


class Limits(NamedTuple):
    """When it ends, and what may be merged."""

    pause: int  # at so many merges
    merges: int
    symbols: int
    threshold: int  # pairs of smaller counts have no number
    max_piece_length: int
    rule: int


@kernel_without_allocation
def _tie(number, words, symbols, pairs, rule):
    """What decides among pairs of a count; passes over places that are past."""
    pair = pairs.keys[number]
    if rule != FIRST:
        return pair
    place = pairs.starts[number]
    while not is_there(pairs.places[place], pair, words, symbols):
        place += 1
    pairs.starts[number] = place
    return np.int64(pairs.places[place])


@kernel_without_allocation
def push_pair(number, words, symbols, pairs, queue, limits, state):
    """Puts a pair into the heap."""
    tie = _tie(number, words, symbols, pairs, limits.rule)
    push(
        queue, state[QUEUED], pairs.counts[number], tie, number, words.text, symbols, limits.rule
    )
    state[QUEUED] += 1


@kernel_without_allocation
def push_pairs(words, symbols, pairs, queue, limits, state):
    """Puts all pairs into the empty heap."""
    for number in range(state[PAIRS]):
        push_pair(number, words, symbols, pairs, queue, limits, state)


@kernel_without_allocation
def _best(words, symbols, pairs, queue, limits, state):
    """Returns the number of the pair to merge, which is the heap's top, or -1."""
    while state[QUEUED]:
        number = np.int64(queue.numbers[0])
        count = pairs.counts[number]
        if count < limits.threshold:
            remove_top(queue, state[QUEUED], words.text, symbols, limits.rule)
            state[QUEUED] -= 1
            continue
        tie = _tie(number, words, symbols, pairs, limits.rule)
        if count == queue.counts[0] and tie == queue.ties[0]:
            return number
        replace_top(
            queue, state[QUEUED], count, tie, number, words.text, symbols, limits.rule
        )
    return -1


@kernel_without_allocation
def _meet(side, neighbour, count, near, met):
    """Adds to a neighbour's sums; returns how many have been met."""
    if near.numbers[side, neighbour] == 0:
        near.met[side, met] = neighbour
        met += 1
    near.numbers[side, neighbour] += 1
    near.weights[side, neighbour] += count
    return met


@kernel_without_allocation
def _join(number, product, words, symbols, pairs, near):
    """Joins a pair wherever it is, and moves those places to the first of its own.

    Returns (places, met before, met behind, times X X, their weight).
    """
    pair, cells = pairs.keys[number], words.cells
    left, right = left_of(pair), right_of(pair)
    first, last = symbols.lengths[left], symbols.lengths[right]
    start, joined = pairs.starts[number], 0
    before = behind = doubles = 0
    double_weight = np.int64(0)
    for i in range(start, pairs.ends[number]):
        place = np.int64(pairs.places[i])
        middle = place + first
        if cells[place, 0] != left or cells[middle, 0] != right:
            continue
        pairs.places[start + joined] = place
        joined += 1
        count = words.counts[cells[place, 1]]
        neighbour = np.int64(cells[place - 1, 0])
        cells[place, 0] = product
        cells[middle, 0] = INSIDE
        cells[middle + last - 1, 0] = product
        if neighbour == product:
            doubles += 1
            double_weight += count
        elif neighbour >= 0:
            before = _meet(BEFORE, neighbour, count, near, before)
        neighbour = np.int64(cells[middle + last, 0])
        if neighbour >= 0:
            behind = _meet(BEHIND, neighbour, count, near, behind)
    return joined, before, behind, doubles, double_weight


@kernel_without_allocation
def _lose(pair, count, pairs):
    number = find_pair(pair, pairs)
    if number >= 0:
        pairs.counts[number] -= count


@kernel_without_allocation
def _gain(left, right, count, places, symbols, pairs, limits, state):
    """Makes a pair if it is worth it; returns where its places go, or -1."""
    if count < limits.threshold or not may_join(left, right, symbols, limits.max_piece_length):
        return np.int64(-1)
    number = state[PAIRS]
    state[PAIRS] += 1
    pairs.keys[number] = pair_of(left, right)
    pairs.counts[number] = count
    pairs.starts[number] = state[PLACES]
    state[PLACES] += places
    pairs.ends[number] = state[PLACES]
    enter_pair(number, pairs)
    return pairs.starts[number]


@kernel_without_allocation
def _settle(pair, product, met, symbols, pairs, near, limits, state):
    """Takes from the counts of pairs what is lost, and makes those that are gained.

    Puts into near.weights where each neighbour's places go, or -1. `met` is (before, behind).
    """
    for side in range(2):
        for i in range(met[side]):
            other = np.int64(near.met[side, i])
            places = near.numbers[side, other]
            weight = near.weights[side, other]
            if side == BEFORE:
                _lose(pair_of(other, left_of(pair)), weight, pairs)
                to = _gain(other, product, weight, places, symbols, pairs, limits, state)
            else:
                _lose(pair_of(right_of(pair), other), weight, pairs)
                to = _gain(product, other, weight, places, symbols, pairs, limits, state)
            near.weights[side, other] = to


@kernel_without_allocation
def _list(places, product, doubles, words, symbols, pairs, near):
    """Lists the places of the pairs gained; `places` is (first, end), of what was merged.

    Those of the product twice go to `doubles`, or nowhere if that is -1.
    """
    cells = words.cells
    length = symbols.lengths[product]
    for i in range(places[0], places[1]):
        place = np.int64(pairs.places[i])
        other = np.int64(cells[place - 1, 0])
        if other == product:
            if doubles >= 0:
                pairs.places[doubles] = place - length
                doubles += 1
        elif other >= 0:
            to = near.weights[BEFORE, other]
            if to >= 0:
                pairs.places[to] = place - symbols.lengths[other]
                near.weights[BEFORE, other] += 1
        other = np.int64(cells[place + length, 0])
        if other >= 0 and other != product:
            to = near.weights[BEHIND, other]
            if to >= 0:
                pairs.places[to] = place
                near.weights[BEHIND, other] += 1


@kernel_without_allocation
def _forget(met, near):
    for side in range(2):
        for i in range(met[side]):
            near.weights[side, near.met[side, i]] = 0
            near.numbers[side, near.met[side, i]] = 0


@kernel_without_allocation
def _no_room(number, pairs, queue, symbols, state):
    """Which room the next merge may lack, or `PAUSED`."""
    if state[SYMBOLS] == len(symbols.starts):
        return SYMBOLS_FULL
    places = pairs.ends[number] - pairs.starts[number]
    if state[PLACES] + 2 * places > len(pairs.places):
        return PLACES_FULL
    if state[PAIRS] + 2 * min(places, state[SYMBOLS]) + 1 > len(queue.counts):
        return PAIRS_FULL
    return PAUSED


@kernel_without_allocation
def _product(number, words, symbols, pairs, state):
    """The symbol that a pair becomes: a new one, if there is none of its string."""
    pair = pairs.keys[number]
    left, right = left_of(pair), right_of(pair)
    place = pairs.starts[number]
    while not is_there(pairs.places[place], pair, words, symbols):
        place += 1
    pairs.starts[number] = place
    start = np.int64(pairs.places[place])
    length = np.int64(symbols.lengths[left]) + symbols.lengths[right]
    product = find_symbol(words.text, start, length, symbols)
    if product < 0:
        product = state[SYMBOLS]
        put_symbol(words.text, start, length, product, symbols)
        state[SYMBOLS] += 1
    return product


@kernel_without_allocation
def merge_pairs(words, symbols, pairs, queue, near, merges, limits, state):
    """Merges pairs until it has to stop, and returns why.

    `state` (int64[5]) says how many there are of merges, symbols, pairs, places and entries.
    """
    while True:
        if state[MERGES] >= limits.merges or state[SYMBOLS] >= limits.symbols:
            return ENDED
        if state[MERGES] >= limits.pause:
            return PAUSED
        number = _best(words, symbols, pairs, queue, limits, state)
        if number < 0:
            return EXHAUSTED
        full = _no_room(number, pairs, queue, symbols, state)
        if full != PAUSED:
            return full
        pair, count = pairs.keys[number], pairs.counts[number]
        product = _product(number, words, symbols, pairs, state)
        is_new = symbols.units[product] == 0
        symbols.units[product] = symbols.units[left_of(pair)] + symbols.units[right_of(pair)]
        merges.pairs[state[MERGES]] = pair
        merges.products[state[MERGES]] = product
        merges.counts[state[MERGES]] = count
        state[MERGES] += 1
        remove_top(queue, state[QUEUED], words.text, symbols, limits.rule)
        state[QUEUED] -= 1
        joined, before, behind, doubles, double_weight = _join(
            number, product, words, symbols, pairs, near
        )
        met = (before, behind)
        if not is_new:
            _forget(met, near)
            return MET_AGAIN
        first = state[PAIRS]
        to = np.int64(-1)
        if doubles:
            near.numbers[BEHIND, left_of(pair)] -= doubles
            near.weights[BEHIND, left_of(pair)] -= double_weight
            _lose(pair_of(right_of(pair), left_of(pair)), double_weight, pairs)
            to = _gain(
                product, product, double_weight, doubles, symbols, pairs, limits, state
            )
        _settle(pair, product, met, symbols, pairs, near, limits, state)
        pairs.counts[number] = 0
        if state[PAIRS] > first:
            places = (pairs.starts[number], pairs.starts[number] + joined)
            _list(places, product, to, words, symbols, pairs, near)
            for gained in range(first, state[PAIRS]):
                push_pair(gained, words, symbols, pairs, queue, limits, state)
        _forget(met, near)
