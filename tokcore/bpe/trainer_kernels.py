"""The kernels of the BPE trainer: words in cells, the queue of pairs, and merges.

    words            low           lower
    cells        |   l  o  w   |   l  o  w  e  r   |      | is a border; each cell has its word's count
    merged       |   7  -  7   |   7  -  7  e  r   |      7 is `low`, - is inside of it
    compacted    |   7  e  r   |                          as before pairs are counted; `low` is left out

A symbol's id is stored in its first and last cell; the cells between are stale, but never equal an
id that is listed as an occurrence there. So both neighbors of a symbol are read from the adjacent
cells, and a merge writes three cells. A pair is `left << 32 | right`.

    before   L  a  b  R          after the merge of `a b` to `X`, the pairs L a and b R lose the
    after    L    X   R          word's count, and L X and X R gain it

Losses and gains are summed by L and by R first, so that the pair table is read once for each of
them. If the occurrence before was merged a moment ago, L is `X` itself: then `b a` loses, `X X`
gains, and the `X a` that was counted a moment ago does not exist.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, hash_bytes, same_bytes
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import WIDE_BYTES, prefetch

PAUSED, DONE, EXHAUSTED, DUPLICATE_SYMBOL, SYMBOLS_FULL, PAIRS_FULL, OCCURRENCES_FULL = range(7)
"""Why `merge_pairs` returns: `pause_at` merges are made; the limit of merges or symbols is reached;
no pair reaches the threshold; the merged string was a symbol already, so that all pairs must be
counted again; or an array is too small for the next merge, of which nothing is done yet. If that
is the array of occurrences, the lists have been compacted."""

MERGES, SYMBOLS, PAIRS, OCCURRENCES, QUEUED, STRING_BYTES, ALIAS, CELLS = range(8)
"""How many there are of each, as indices of `state` (int64[8]). But `ALIAS` is a symbol, or -1: a merge
that made its string again is stored in cells as the number `state[SYMBOLS]`, which stands for it until
they are compacted, since the two differ in cells."""

SMALLEST_IDS, LARGEST_PAIR, FIRST = range(3)
"""The rule for pairs of equal count; see `options.BpeRules.ties`."""

BEFORE, AFTER = 0, 1

NO_PAIR = -1

_CELLS_AHEAD = 16
"""Occurrences between asking for their cells and reading them. They ascend, but are far apart."""

_PAIRS_AHEAD = 8
"""Neighbors between asking for the slots of their pairs and reading them."""

MOST_WORDS, _WORDS = 4, 7
BEGINS_BLANK, ENDS_BLANK, ENDS_COLON, COLON_BLANK = (1 << bit for bit in range(35, 39))
"""What units say of a string: whether it begins or ends with a space, ends with a colon, and has a colon
before a space."""

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_0, _1, _8, _32 = (np.uint64(number) for number in (0, 1, 8, 32))
_RIGHT = (1 << 32) - 1
_LOW = np.uint64(_RIGHT)


class Words(NamedTuple):
    """All words, with a border before and after each; there are fewer than 2^31 cells."""

    cells: np.ndarray  # uint16 or uint32[cells, 2]: symbol, weight; `state[CELLS]` are in use
    counts: np.ndarray  # int64: of words, where they are too large for a weight
    inside: int  # what a cell within a symbol holds; symbols are smaller, a border is larger by 1
    first_index: int  # a weight is a word's count, or from this on an index of `counts`
    may_overflow: bool  # the count of a pair may exceed 2^63 - 1


class Symbols(NamedTuple):
    """Symbols by id, of which `state[SYMBOLS]` are in use."""

    strings: np.ndarray  # uint8: all strings, and a margin
    starts: np.ndarray  # int64: where its string starts in `strings`
    lengths: np.ndarray  # int32: of the string; 0 if no word can have it
    units: np.ndarray  # int64: its length and more, see `joined_units`; 0 while no word has it
    spans: np.ndarray  # int32: its cells
    prefixes: np.ndarray  # uint64: its first eight bytes, big-endian
    slots: np.ndarray  # int32[2^k], a hash table by string: symbol + 1, or 0


class Pairs(NamedTuple):
    """The pairs above the threshold by index, with a list of the occurrences of each.

    An occurrence is the first cell of the left symbol. Lists ascend. They may contain stale
    occurrences, where another symbol or the end of the word is by now.
    """

    slots: np.ndarray  # uint64[2^k], a hash table by key: 32 bits of its hash, index + 1; or 0
    keys: np.ndarray  # int64
    counts: np.ndarray  # int64
    starts: np.ndarray  # int64: of its list; moves on past stale occurrences
    ends: np.ndarray  # int64
    occurrences: np.ndarray  # int32: all lists


class Queue(NamedTuple):
    """A binary heap of `state[QUEUED]` entries, the next pair to merge first.

    A count may be out of date: it is compared with the pair's when the entry is first.
    """

    counts: np.ndarray  # int64
    ties: np.ndarray  # int64: the pair's key, or with the rule FIRST its first occurrence
    indices: np.ndarray  # int32: of the pair


class Neighbors(NamedTuple):
    """What one merge changes, by the symbol `BEFORE` and `AFTER` its occurrences; else all 0."""

    # int64[2, symbols, 2]: count, then where the new pair's list starts, or -1; how many occurrences
    sums: np.ndarray
    symbols: np.ndarray  # int32[2, symbols]: the neighbors that there are
    around: np.ndarray  # like cells, [occurrences, 2]: the symbols before and after each


class Merges(NamedTuple):
    """The first `state[MERGES]` are made."""

    pairs: np.ndarray  # int64
    counts: np.ndarray  # int64: of the pair when it was merged


class TrainerConfig(NamedTuple):
    """Which pairs are merged, and when to return."""

    pause_at: int
    max_merges: int
    max_symbols: int
    threshold: int  # pairs of smaller counts are not listed
    max_piece_length: int
    ties: int


@kernel_without_allocation
def merge_pairs(words, symbols, pairs, queue, neighbors, merges, config, state):
    """Merges the most frequent pair, again and again; returns why it stopped."""
    while True:
        if state[MERGES] >= config.max_merges or state[SYMBOLS] >= config.max_symbols:
            return DONE
        if state[MERGES] >= config.pause_at:
            return PAUSED
        index = most_frequent(words, symbols, pairs, queue, config, state)
        if index < 0:
            return EXHAUSTED
        pair, count = pairs.keys[index], pairs.counts[index]
        reason, _ = merge_pair(pair, words, symbols, pairs, queue, neighbors, config, state)
        if reason != PAUSED and reason != DUPLICATE_SYMBOL:
            return reason
        merges.pairs[state[MERGES]] = pair
        merges.counts[state[MERGES]] = count
        state[MERGES] += 1
        if reason == DUPLICATE_SYMBOL:
            return reason


@kernel_without_allocation
def merge_pair(pair, words, symbols, pairs, queue, neighbors, config, state):
    """Merges a pair, which is listed or does not occur; returns why it stopped, and the count merged.

    `PAUSED` says that the pair is merged. Its entry stays in the queue, with a count that is out of date.
    """
    index = _index_of(pair, pairs)
    if index < 0 or pairs.counts[index] == 0:
        if _symbols_are_full(pair, symbols, state):
            return SYMBOLS_FULL, np.int64(0)
        _merged_symbol(pair, symbols, state)
        return PAUSED, np.int64(0)
    full = _full_array(index, pairs, queue, symbols, neighbors, state)
    if full == OCCURRENCES_FULL:
        state[OCCURRENCES] = _compact_occurrences(words, symbols, pairs, state[PAIRS])
    if full != PAUSED:
        return full, np.int64(0)
    merged, is_new = _merged_symbol(pair, symbols, state)
    occurrences, before, after, doubles, double_count, total = _merge_occurrences(
        index, merged, words, symbols, pairs, neighbors
    )
    sizes = (before, after)
    if not is_new:
        _reset(sizes, neighbors)
        return DUPLICATE_SYMBOL, total
    first = state[PAIRS]
    doubles_start = np.int64(-1)
    if doubles:
        neighbors.sums[AFTER, _left_of(pair), 1] -= doubles
        neighbors.sums[AFTER, _left_of(pair), 0] -= double_count
        _subtract(pair_of(_right_of(pair), _left_of(pair)), double_count, pairs)
        doubles_start = add_pair(
            merged, merged, double_count, doubles, symbols, pairs, config, state
        )
    _update_counts(pair, merged, sizes, symbols, pairs, neighbors, config, state)
    pairs.counts[index] = 0
    if state[PAIRS] > first:
        span = (pairs.starts[index], occurrences)
        _list_occurrences(span, merged, doubles_start, words, symbols, pairs, neighbors)
        for added in range(first, state[PAIRS]):
            _push_pair(added, words, symbols, pairs, queue, config, state)
    _reset(sizes, neighbors)
    return PAUSED, total


@kernel_without_allocation
def most_frequent(words, symbols, pairs, queue, config, state):
    """Returns the index of the pair to merge, which stays first in the queue, or -1."""
    while state[QUEUED]:
        index = np.int64(queue.indices[0])
        count = pairs.counts[index]
        if count < config.threshold:
            _pop(queue, state[QUEUED], symbols, config.ties)
            state[QUEUED] -= 1
            continue
        tie = _tie(index, words, symbols, pairs, config.ties)
        if count == queue.counts[0] and tie == queue.ties[0]:
            return index
        _replace_first(queue, state[QUEUED], count, tie, index, symbols, config.ties)
    return -1


@kernel_without_allocation
def _full_array(index, pairs, queue, symbols, neighbors, state):
    """Returns which array may be too small for the next merge, or `PAUSED`."""
    if _symbols_are_full(pairs.keys[index], symbols, state):
        return SYMBOLS_FULL
    occurrences = pairs.ends[index] - pairs.starts[index]
    if state[OCCURRENCES] + 2 * occurrences > len(pairs.occurrences):
        return OCCURRENCES_FULL
    if state[PAIRS] + 2 * min(occurrences, state[SYMBOLS]) + 1 > len(queue.counts):
        return PAIRS_FULL
    return PAUSED


@kernel_without_allocation
def _symbols_are_full(pair, symbols, state):
    length = np.int64(symbols.lengths[_left_of(pair)]) + symbols.lengths[_right_of(pair)]
    room = len(symbols.strings) - WIDE_BYTES
    return state[SYMBOLS] == len(symbols.starts) or state[STRING_BYTES] + length > room


@kernel_without_allocation
def _merged_symbol(pair, symbols, state):
    """Returns the symbol of a pair's string, and whether it is new to words.

    If it is not, the symbol is another number, for which `state[ALIAS]` is meant.
    """
    start, strings = state[STRING_BYTES], symbols.strings
    end = start
    for part in (_left_of(pair), _right_of(pair)):
        first = symbols.starts[part]
        for i in range(symbols.lengths[part]):
            strings[end] = strings[first + i]
            end += 1
    merged = _find_symbol(start, end - start, symbols)
    is_new = merged < 0 or symbols.units[merged] == 0
    if merged < 0:
        merged = state[SYMBOLS]
        _add_symbol(start, end - start, merged, symbols)
        state[STRING_BYTES] = end
        state[SYMBOLS] += 1
    left, right = _left_of(pair), _right_of(pair)
    symbols.units[merged] = joined_units(symbols.units[left], symbols.units[right])
    if not is_new:
        state[ALIAS] = merged
        merged = state[SYMBOLS]
    symbols.spans[merged] = symbols.spans[left] + symbols.spans[right]
    return merged, is_new


@kernel_without_allocation
def _first_occurrence(index, words, symbols, pairs):
    """Drops stale occurrences at the start of a pair's list; returns the first one that is not."""
    pair, start = pairs.keys[index], pairs.starts[index]
    while not _occurs_at(pairs.occurrences[start], pair, words, symbols):
        start += 1
    pairs.starts[index] = start
    return np.int64(pairs.occurrences[start])


@kernel_without_allocation
def _merge_occurrences(index, merged, words, symbols, pairs, neighbors):
    """Merges a pair wherever it occurs, and drops stale occurrences from its list.

    Returns (occurrences, symbols before, symbols after, occurrences of X X, their count, the count of
    all occurrences).
    """
    pair, cells, around, inside = pairs.keys[index], words.cells, neighbors.around, words.inside
    left, right = _left_of(pair), _right_of(pair)
    left_span, right_span = np.int64(symbols.spans[left]), np.int64(symbols.spans[right])
    start, occurrences = pairs.starts[index], np.int64(0)
    before = after = np.int64(0)
    doubles = np.int64(0)
    double_count = np.int64(0)
    total = np.int64(0)
    end = pairs.ends[index]
    for i in range(start, end):
        if i + _CELLS_AHEAD < end:
            prefetch(cells, np.uint64(pairs.occurrences[i + _CELLS_AHEAD]) << _1)
        cell = np.int64(pairs.occurrences[i])
        middle = cell + left_span
        if cells[cell, 0] != left or cells[middle, 0] != right:
            continue
        following = middle + right_span
        count = word_count(np.int64(cells[cell, 1]), words)
        total += count
        neighbor, next_neighbor = np.int64(cells[cell - 1, 0]), np.int64(cells[following, 0])
        cells[cell, 0] = merged
        cells[middle, 0] = inside
        cells[following - 1, 0] = merged
        pairs.occurrences[start + occurrences] = cell
        around[occurrences, 0] = neighbor
        around[occurrences, 1] = next_neighbor
        if neighbor == merged:
            around[occurrences - 1, 1] = merged
            doubles += 1
            double_count += count
        elif neighbor < inside:
            before = _accumulate_neighbor(BEFORE, neighbor, count, neighbors, before)
        if next_neighbor < inside:
            after = _accumulate_neighbor(AFTER, next_neighbor, count, neighbors, after)
        occurrences += 1
    return occurrences, before, after, doubles, double_count, total


@kernel_without_allocation
def word_count(weight, words):
    """Returns the count of a word by the weight in its cells."""
    if weight < words.first_index:
        return weight
    return words.counts[weight - words.first_index]


@kernel_without_allocation
def _accumulate_neighbor(side, symbol, count, neighbors, size):
    """Adds to the sums of a neighbor; returns how many neighbors there are on this side."""
    occurrences = neighbors.sums[side, symbol, 1]
    neighbors.symbols[side, size] = symbol
    neighbors.sums[side, symbol, 1] = occurrences + 1
    neighbors.sums[side, symbol, 0] += count
    return size + np.int64(occurrences == 0)


@kernel_without_allocation
def _update_counts(pair, merged, sizes, symbols, pairs, neighbors, config, state):
    """Subtracts from the counts of pairs with the merged one's parts, and adds the new pairs.

    Stores in neighbors.sums where each new pair's list starts, or -1.
    """
    left, right = _left_of(pair), _right_of(pair)
    mask = np.uint64(len(pairs.slots) - 1)
    for side in range(2):
        for i in range(sizes[side]):
            if i + _PAIRS_AHEAD < sizes[side]:
                ahead = np.int64(neighbors.symbols[side, i + _PAIRS_AHEAD])
                key = pair_of(ahead, left) if side == BEFORE else pair_of(right, ahead)
                prefetch(pairs.slots, (_hash(key) >> _32) & mask)
            neighbor = np.int64(neighbors.symbols[side, i])
            count = neighbors.sums[side, neighbor, 0]
            occurrences = neighbors.sums[side, neighbor, 1]
            if side == BEFORE:
                _subtract(pair_of(neighbor, left), count, pairs)
                start = add_pair(
                    neighbor, merged, count, occurrences, symbols, pairs, config, state
                )
            else:
                _subtract(pair_of(right, neighbor), count, pairs)
                start = add_pair(
                    merged, neighbor, count, occurrences, symbols, pairs, config, state
                )
            neighbors.sums[side, neighbor, 0] = start


@kernel_without_allocation
def _subtract(pair, count, pairs):
    index = _index_of(pair, pairs)
    if index >= 0:
        pairs.counts[index] -= count


@kernel_without_allocation
def add_pair(left, right, count, occurrences, symbols, pairs, config, state):
    """Adds a new pair if it reaches the threshold; returns where its list starts, or -1."""
    if count < config.threshold or not may_merge(left, right, symbols, config.max_piece_length):
        return np.int64(-1)
    index = state[PAIRS]
    state[PAIRS] += 1
    pairs.keys[index] = pair_of(left, right)
    pairs.counts[index] = count
    pairs.starts[index] = state[OCCURRENCES]
    state[OCCURRENCES] += occurrences
    pairs.ends[index] = state[OCCURRENCES]
    _insert_pair(index, pairs)
    return pairs.starts[index]


@kernel_without_allocation
def _list_occurrences(span, merged, doubles_start, words, symbols, pairs, neighbors):
    """Lists the occurrences of the new pairs, around those of the merged pair (start, how many).

    The list of `X X` starts at `doubles_start`, or is not kept if that is -1.
    """
    spans, sums, inside = symbols.spans, neighbors.sums, words.inside
    for i in range(span[1]):
        cell = np.int64(pairs.occurrences[span[0] + i])
        neighbor = np.int64(neighbors.around[i, 0])
        if neighbor == merged:
            if doubles_start >= 0:
                pairs.occurrences[doubles_start] = cell - spans[merged]
                doubles_start += 1
        elif neighbor < inside:
            target = sums[BEFORE, neighbor, 0]
            if target >= 0:
                pairs.occurrences[target] = cell - spans[neighbor]
                sums[BEFORE, neighbor, 0] = target + 1
        neighbor = np.int64(neighbors.around[i, 1])
        if neighbor < inside and neighbor != merged:
            target = sums[AFTER, neighbor, 0]
            if target >= 0:
                pairs.occurrences[target] = cell
                sums[AFTER, neighbor, 0] = target + 1


@kernel_without_allocation
def _reset(sizes, neighbors):
    for side in range(2):
        for i in range(sizes[side]):
            neighbors.sums[side, neighbors.symbols[side, i], 0] = 0
            neighbors.sums[side, neighbors.symbols[side, i], 1] = 0


@kernel_without_allocation
def _push_pair(index, words, symbols, pairs, queue, config, state):
    tie = _tie(index, words, symbols, pairs, config.ties)
    _push(queue, state[QUEUED], pairs.counts[index], tie, index, symbols, config.ties)
    state[QUEUED] += 1


@kernel_without_allocation
def _tie(index, words, symbols, pairs, ties):
    """Returns what decides between pairs of equal count."""
    if ties == FIRST:
        return _first_occurrence(index, words, symbols, pairs)
    return pairs.keys[index]


@kernel_without_allocation
def _comes_before(count, tie, other_count, other_tie, symbols, ties):
    """Whether a pair is merged before another."""
    if count != other_count:
        return count > other_count
    if ties != LARGEST_PAIR:
        return tie < other_tie
    if _left_of(tie) != _left_of(other_tie):
        return _is_larger(_left_of(tie), _left_of(other_tie), symbols)
    return _is_larger(_right_of(tie), _right_of(other_tie), symbols)


@kernel_without_allocation
def _is_larger(left, right, symbols):
    """Whether a symbol's string is larger than another's, by bytes and so by code points."""
    if symbols.prefixes[left] != symbols.prefixes[right]:
        return symbols.prefixes[left] > symbols.prefixes[right]
    text, start, other = symbols.strings, symbols.starts[left], symbols.starts[right]
    for i in range(8, min(symbols.lengths[left], symbols.lengths[right])):
        if text[start + i] != text[other + i]:
            return text[start + i] > text[other + i]
    return symbols.lengths[left] > symbols.lengths[right]


@kernel_without_allocation
def _set_entry(queue, entry, count, tie, index):
    queue.counts[entry] = count
    queue.ties[entry] = tie
    queue.indices[entry] = index


@kernel_without_allocation
def _move_entry(queue, source, target):
    _set_entry(queue, target, queue.counts[source], queue.ties[source], queue.indices[source])


@kernel_without_allocation
def _push(queue, size, count, tie, index, symbols, ties):
    """Adds an entry to a heap of `size`."""
    entry = size
    while entry > 0:
        parent = (entry - 1) >> 1
        if not _comes_before(count, tie, queue.counts[parent], queue.ties[parent], symbols, ties):
            break
        _move_entry(queue, parent, entry)
        entry = parent
    _set_entry(queue, entry, count, tie, index)


@kernel_without_allocation
def _replace_first(queue, size, count, tie, index, symbols, ties):
    """Removes the first entry of a heap of `size` and adds another."""
    entry = 0
    while 2 * entry + 1 < size:
        child = 2 * entry + 1
        if child + 1 < size and _comes_before(
            queue.counts[child + 1], queue.ties[child + 1],
            queue.counts[child], queue.ties[child], symbols, ties,
        ):  # fmt: skip
            child += 1
        if not _comes_before(queue.counts[child], queue.ties[child], count, tie, symbols, ties):
            break
        _move_entry(queue, child, entry)
        entry = child
    _set_entry(queue, entry, count, tie, index)


@kernel_without_allocation
def _pop(queue, size, symbols, ties):
    """Removes the first entry of a heap of `size`."""
    last = size - 1
    if last > 0:
        _replace_first(
            queue, last, queue.counts[last], queue.ties[last], queue.indices[last],
            symbols, ties,
        )  # fmt: skip


@kernel_without_allocation
def queue_pairs(words, symbols, pairs, queue, config, state):
    """Queues all pairs."""
    for index in range(state[PAIRS]):
        _push_pair(index, words, symbols, pairs, queue, config, state)


@kernel_without_allocation
def _compact_occurrences(words, symbols, pairs, size):
    """Removes stale occurrences and those of merged pairs; returns how many are left."""
    end = 0
    for index in range(size):
        start = end
        for i in range(pairs.starts[index], pairs.ends[index]):
            if pairs.counts[index] and _occurs_at(
                pairs.occurrences[i], pairs.keys[index], words, symbols
            ):
                pairs.occurrences[end] = pairs.occurrences[i]
                end += 1
        pairs.starts[index], pairs.ends[index] = start, end
    return end


@kernel_without_allocation
def _occurs_at(cell, pair, words, symbols):
    """Whether an occurrence of a pair is not stale."""
    left = _left_of(pair)
    if words.cells[cell, 0] != left:
        return False
    return words.cells[cell + symbols.spans[left], 0] == _right_of(pair)


@kernel_without_allocation
def may_merge(left, right, symbols, max_piece_length):
    return may_join(symbols.units[left], symbols.units[right], max_piece_length)


@kernel_without_allocation
def may_join(left, right, max_piece_length):
    """Whether symbols may be merged, by the units of both."""
    units = joined_units(left, right)
    length = units & _RIGHT
    if units & COLON_BLANK or units >> 32 & _WORDS > MOST_WORDS:
        return False
    return length < max_piece_length or length == 2


@kernel_without_allocation
def joined_units(left, right):
    """Returns the units of the result of a merge, by those of its parts.

    They are its length, and for `BpeRules.superwords` its words, of which none are counted after the
    fifth, times 2^32, and the four bits above.
    """
    units = (left & _RIGHT) + (right & _RIGHT)
    if left >> 32 == 0:
        return units
    words = (left >> 32 & _WORDS) + (right >> 32 & _WORDS)
    if left & ENDS_BLANK == 0 and right & BEGINS_BLANK == 0:
        words -= 1
    if left & ENDS_COLON and right & BEGINS_BLANK:
        units |= COLON_BLANK
    units |= min(words, MOST_WORDS + 1) << 32 | (left | right) & COLON_BLANK
    return units | left & BEGINS_BLANK | right & (ENDS_BLANK | ENDS_COLON)


@kernel_without_allocation
def pair_of(left, right):
    """Returns the key of two symbols."""
    return np.int64(left) << 32 | np.int64(right)


@kernel_without_allocation
def _left_of(pair):
    """Returns the left symbol of a pair."""
    return pair >> 32


@kernel_without_allocation
def _right_of(pair):
    """Returns the right symbol of a pair."""
    return pair & _RIGHT


@kernel_without_allocation
def _hash(pair):
    mixed = np.uint64(pair) * _SPREAD
    return (mixed ^ (mixed >> _32)) * _MIXER


@kernel_without_allocation
def _index_of(pair, pairs):
    """Returns the index of a pair, or -1."""
    hashed, mask = _hash(pair), np.uint64(len(pairs.slots) - 1)
    slot = hashed >> _32
    while True:
        slot &= mask
        entry = pairs.slots[slot]
        if entry == _0:
            return np.int64(-1)
        if (entry >> _32) == (hashed & _LOW):
            index = np.int64(entry & _LOW) - 1
            if pairs.keys[index] == pair:
                return index
        slot += _1


@kernel_without_allocation
def insert_pairs(pairs, size):
    """Inserts the first `size` pairs into empty slots."""
    for index in range(size):
        _insert_pair(index, pairs)


@kernel_without_allocation
def _insert_pair(index, pairs):
    hashed, mask = _hash(pairs.keys[index]), np.uint64(len(pairs.slots) - 1)
    slot = hashed >> _32
    while True:
        slot &= mask
        if pairs.slots[slot] == _0:
            pairs.slots[slot] = hashed << _32 | np.uint64(index + 1)
            return
        slot += _1


@kernel_without_allocation
def add_symbols(symbols, size):
    """Adds the first `size` symbols, whose starts and lengths are set, to empty slots."""
    for symbol in range(size):
        _add_symbol(symbols.starts[symbol], symbols.lengths[symbol], symbol, symbols)


@kernel_without_allocation
def _add_symbol(start, length, symbol, symbols):
    symbols.starts[symbol] = start
    symbols.lengths[symbol] = length
    prefix = _0
    for i in range(8):
        prefix <<= _8
        if i < length:
            prefix |= np.uint64(symbols.strings[start + i])
    symbols.prefixes[symbol] = prefix
    if length:
        other = _find_symbol(start, length, symbols)
        if other < 0:
            symbols.slots[~other] = symbol + 1


@kernel_without_allocation
def _find_symbol(start, length, symbols):
    """Returns the symbol of symbols.strings[start:start + length], or ~slot where it belongs."""
    text, first, size = symbols.strings, np.uint64(start), np.uint64(length)
    slot = hash_bytes(text, first, first + size) >> np.uint64(33)
    mask = np.uint64(len(symbols.slots) - 1)
    while True:
        slot &= mask
        symbol = symbols.slots[slot] - 1
        if symbol < 0:
            return ~np.int64(slot)
        if symbols.lengths[symbol] == length:
            if same_bytes(text, first, text, np.uint64(symbols.starts[symbol]), size):
                return np.int64(symbol)
        slot += _1
