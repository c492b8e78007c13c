"""The kernels of the BPE trainer: words in cells, pair counts, the heap, and merges.

    text         l   o   w       l   o   w   e   r
    cells    -1   7  -2   7   -1   7  -2   7   4   9   -1     7 is `low`; beside each its word's number

A symbol's id is in its first and its last cell; the cells between are stale, but never equal an id
that is listed as an occurrence there. So both neighbours of a symbol are read from the cells beside
it, and two symbols are merged by writing three cells. A pair is `left << 32 | right`.

    before   L  a  b  R          a merge `a b` to `X`: L a and b R lose the word's count,
    after    L    X   R          L X and X R gain it

Gains and losses are summed by L and by R first, so the pair table is asked once for each of them.
Where the place before was just merged too, L is an `X`: then `b a` is lost and `X X` is gained, and
the `X a` that was gained a moment ago is not.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, hash_bytes, same_bytes
from tokcore.kernels.jit import kernel_without_allocation

PAUSED, ENDED, EXHAUSTED, MET_AGAIN, SYMBOLS_FULL, PAIRS_FULL, PLACES_FULL = range(7)
"""Why `merge_pairs` returns: as many merges as asked for, or in all; no pair left of the threshold;
a symbol that words had already; no room, and nothing of the next merge is done."""

# What changes, as numbers of an array.
MERGES, SYMBOLS, PAIRS, PLACES, QUEUED = range(5)

BEFORE, BEHIND = 0, 1

SMALLEST_IDS, LARGEST_PAIR, FIRST = range(3)
"""What decides among pairs of one count; see `options`."""

NO_PAIR = -1

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_1, _32 = np.uint64(1), np.uint64(32)
_RIGHT = (1 << 32) - 1
_LARGEST = (1 << 63) - 1

BORDER = -1
INSIDE = -2

_0, _8, _255 = np.uint64(0), np.uint64(8), np.uint64(255)


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
def push_pairs(words, symbols, pairs, queue, limits, state):
    """Puts all pairs into the empty heap."""
    for number in range(state[PAIRS]):
        push_pair(number, words, symbols, pairs, queue, limits, state)


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
            to = _gain(product, product, double_weight, doubles, symbols, pairs, limits, state)
        _settle(pair, product, met, symbols, pairs, near, limits, state)
        pairs.counts[number] = 0
        if state[PAIRS] > first:
            places = (pairs.starts[number], pairs.starts[number] + joined)
            _list(places, product, to, words, symbols, pairs, near)
            for gained in range(first, state[PAIRS]):
                push_pair(gained, words, symbols, pairs, queue, limits, state)
        _forget(met, near)


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
    push(queue, state[QUEUED], pairs.counts[number], tie, number, words.text, symbols, limits.rule)
    state[QUEUED] += 1


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
        replace_top(queue, state[QUEUED], count, tie, number, words.text, symbols, limits.rule)
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


class PairCounts(NamedTuple):
    """Pairs by hash; where there is none, all is 0 but the pair."""

    keys: np.ndarray  # int64, `NO_PAIR` where there is none
    counts: np.ndarray  # int64
    numbers: np.ndarray  # int64: places

    @classmethod
    def empty(cls, slots: int) -> 'PairCounts':
        return cls(
            np.full(slots, NO_PAIR, np.int64), np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        )


class Pairs(NamedTuple):
    """The pairs that may be merged soon, by number, and places where their left symbols begin.

    Places ascend. One may be past: what is there now is another symbol, or a border behind it.
    """

    slots: np.ndarray  # int32[2^k]: numbers by the hashes of keys, plus 1
    keys: np.ndarray  # int64
    counts: np.ndarray  # int64
    starts: np.ndarray  # int64: of the pair's places, from those on that are known to be past
    ends: np.ndarray  # int64
    places: np.ndarray  # int32


@kernel_without_allocation
def left_of(pair):
    return pair >> 32


@kernel_without_allocation
def right_of(pair):
    return pair & _RIGHT


@kernel_without_allocation
def enter_pairs(pairs, used):
    """Makes all pairs below `used` be found, in empty slots."""
    for number in range(used):
        enter_pair(number, pairs)


@kernel_without_allocation
def enter_counts(table, larger):
    """Puts all pairs of a table into an empty one that is larger."""
    for old in range(len(table.keys)):
        if table.keys[old] != NO_PAIR:
            slot = _slot_of(table.keys[old], larger.keys)
            larger.keys[slot] = table.keys[old]
            larger.counts[slot] = table.counts[old]
            larger.numbers[slot] = table.numbers[old]


@kernel_without_allocation
def count_pairs(place, words, symbols, max_piece_length, table, used):
    """Counts pairs from a symbol's cell on, if they may be merged, into a table of `used` pairs.

    Returns (place, used, pair): where it would go on, which is behind all words unless the table is
    half full, or unless there is a pair whose count would be past 2^63 - 1; else that is `NO_PAIR`.
    """
    cells, place = words.cells, np.uint64(place)
    last, most = np.uint64(len(cells) - 1), len(table.keys) // 2
    while place < last and used < most:
        left = cells[place, 0]
        following = place + np.uint64(symbols.lengths[left])
        right = cells[following, 0]
        if right < 0:
            following += _1
        elif may_join(left, right, symbols, max_piece_length):
            pair, count = pair_of(left, right), words.counts[cells[place, 1]]
            slot = _slot_of(pair, table.keys)
            if table.keys[slot] == NO_PAIR:
                table.keys[slot] = pair
                used += 1
            if table.counts[slot] > _LARGEST - count:
                return np.int64(place), used, pair
            table.counts[slot] += count
            table.numbers[slot] += 1
        place = following
    return np.int64(place), used, np.int64(NO_PAIR)


@kernel_without_allocation
def list_places(words, symbols, pairs):
    """Lists the places of all these pairs, of each from `ends` on, which it moves."""
    cells, place = words.cells, np.uint64(1)
    last = np.uint64(len(cells) - 1)
    while place < last:
        left = cells[place, 0]
        following = place + np.uint64(symbols.lengths[left])
        right = cells[following, 0]
        if right < 0:
            following += _1
        else:
            number = find_pair(pair_of(left, right), pairs)
            if number >= 0:
                pairs.places[pairs.ends[number]] = place
                pairs.ends[number] += 1
        place = following


@kernel_without_allocation
def pack_places(words, symbols, pairs, used):
    """Moves the places of pairs together, without those that are past and of pairs merged.

    Returns how many there are now, and how many the pair of most has.
    """
    kept = largest = 0
    for number in range(used):
        first = kept
        for i in range(pairs.starts[number], pairs.ends[number]):
            if pairs.counts[number] and is_there(
                pairs.places[i], pairs.keys[number], words, symbols
            ):
                pairs.places[kept] = pairs.places[i]
                kept += 1
        pairs.starts[number], pairs.ends[number] = first, kept
        largest = max(largest, kept - first)
    return kept, largest


@kernel_without_allocation
def pair_of(left, right):
    """The key of two symbols."""
    return np.int64(left) << 32 | np.int64(right)


@kernel_without_allocation
def _first_slot(pair):
    mixed = np.uint64(pair) * _SPREAD
    return ((mixed ^ (mixed >> _32)) * _MIXER) >> _32


@kernel_without_allocation
def _slot_of(pair, keys):
    """Where a table of keys has a pair, or has room for it."""
    slot, mask = _first_slot(pair), np.uint64(len(keys) - 1)
    while True:
        slot &= mask
        if keys[slot] == pair or keys[slot] == NO_PAIR:
            return slot
        slot += _1


@kernel_without_allocation
def find_pair(pair, pairs):
    """Returns the number of a pair, or -1."""
    slot, mask = _first_slot(pair), np.uint64(len(pairs.slots) - 1)
    while True:
        slot &= mask
        number = pairs.slots[slot] - 1
        if number < 0 or pairs.keys[number] == pair:
            return np.int64(number)
        slot += _1


@kernel_without_allocation
def enter_pair(number, pairs):
    """Makes a pair be found, which is not among those that are."""
    slot, mask = _first_slot(pairs.keys[number]), np.uint64(len(pairs.slots) - 1)
    while True:
        slot &= mask
        if pairs.slots[slot] == 0:
            pairs.slots[slot] = number + 1
            return
        slot += _1


@kernel_without_allocation
def is_there(place, pair, words, symbols):
    """Whether a pair begins in this cell, which it did when that was listed."""
    left = left_of(pair)
    if words.cells[place, 0] != left:
        return False
    return words.cells[place + symbols.lengths[left], 0] == right_of(pair)


class Words(NamedTuple):
    """All words, a `BORDER` before and after each; `cells` are fewer than 2^31."""

    text: np.ndarray  # uint8; behind the words the first symbols' strings, and a chunk of room
    cells: np.ndarray  # int32[bytes and borders, 2]: symbol, word
    counts: np.ndarray  # int64[words]


class Symbols(NamedTuple):
    """Symbols by id; those in use are known to whoever has them."""

    starts: np.ndarray  # int64: where words.text has its string
    lengths: np.ndarray  # int32: of the string; 0 where no word can hold it
    units: np.ndarray  # int32: the bytes or characters it is made of, 0 while it is in no word
    prefixes: np.ndarray  # uint64: its first eight bytes, the first the highest
    slots: np.ndarray  # int32[2^k]: symbols by the hashes of their strings, plus 1


@kernel_without_allocation
def put_symbols(text, symbols, used):
    """Enters all symbols below `used`, whose strings are set, into empty slots."""
    for symbol in range(used):
        put_symbol(text, symbols.starts[symbol], symbols.lengths[symbol], symbol, symbols)


@kernel_without_allocation
def find_symbol(text, start, length, symbols):
    """Returns the symbol that is text[start:start + length], or ~place if there is none."""
    first, size = np.uint64(start), np.uint64(length)
    place = hash_bytes(text, first, first + size) >> np.uint64(33)
    mask = np.uint64(len(symbols.slots) - 1)
    while True:
        place &= mask
        symbol = symbols.slots[place] - 1
        if symbol < 0:
            return ~np.int64(place)
        if symbols.lengths[symbol] == length:
            if same_bytes(text, first, text, np.uint64(symbols.starts[symbol]), size):
                return np.int64(symbol)
        place += _1


@kernel_without_allocation
def put_symbol(text, start, length, symbol, symbols):
    """Enters a symbol of this string, which no other has."""
    symbols.starts[symbol] = start
    symbols.lengths[symbol] = length
    prefix = _0
    for i in range(8):
        prefix <<= _8
        if i < length:
            prefix |= np.uint64(text[start + i])
    symbols.prefixes[symbol] = prefix
    if length:
        found = find_symbol(text, start, length, symbols)
        if found < 0:
            symbols.slots[~found] = symbol + 1


@kernel_without_allocation
def is_larger(left, right, text, symbols):
    """Whether one symbol's string is larger than another's, by bytes and so by code points."""
    if symbols.prefixes[left] != symbols.prefixes[right]:
        return symbols.prefixes[left] > symbols.prefixes[right]
    start, other = symbols.starts[left], symbols.starts[right]
    for i in range(8, min(symbols.lengths[left], symbols.lengths[right])):
        if text[start + i] != text[other + i]:
            return text[start + i] > text[other + i]
    return symbols.lengths[left] > symbols.lengths[right]


@kernel_without_allocation
def may_join(left, right, symbols, max_piece_length):
    """Whether two symbols may be merged."""
    units = np.int64(symbols.units[left]) + symbols.units[right]
    return units < max_piece_length or units == 2
