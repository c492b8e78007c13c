"""The kernels of the BPE trainer: words in cells, pair counts, the queue of pairs, and merges.

    text         l   o   w       l   o   w   e   r
    cells    -1   7  -2   7   -1   7  -2   7   4   9   -1     7 is `low`; beside each its word's index

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
from tokcore.kernels.simd import prefetch

PAUSED, DONE, EXHAUSTED, DUPLICATE_SYMBOL, SYMBOLS_FULL, PAIRS_FULL, OCCURRENCES_FULL = range(7)
"""Why `merge_pairs` returns: `pause_at` merges are made; the limit of merges or symbols is reached;
no pair reaches the threshold; the merged string was a symbol already, so that all pairs must be
counted again; or an array is too small for the next merge, of which nothing is done yet. If that
is the array of occurrences, the lists have been compacted."""

MERGES, SYMBOLS, PAIRS, OCCURRENCES, QUEUED = range(5)
"""How many there are of each, as indices of `state` (int64[5])."""

SMALLEST_IDS, LARGEST_PAIR, FIRST = range(3)
"""The rule for pairs of equal count; see `options.BpeRules.ties`."""

BEFORE, AFTER = 0, 1

BORDER, INSIDE = -1, -2
"""Cells between words, and within a symbol."""

NO_PAIR = -1

_CELLS_AHEAD, _WORDS_AHEAD = 16, 8
"""Occurrences between asking for their cells, asking for the count of their word, and reading both.
They ascend, but are far apart."""

_BATCH = 64
"""Pairs of a `PairBatch`."""

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_0, _1, _8, _32 = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(32)
_RIGHT = (1 << 32) - 1
_LARGEST = (1 << 63) - 1


class Words(NamedTuple):
    """All words, with a `BORDER` before and after each; there are fewer than 2^31 cells."""

    text: np.ndarray  # uint8; the strings of the first symbols and a margin follow the words
    cells: np.ndarray  # int32[bytes and borders, 2]: symbol, word
    counts: np.ndarray  # int64[words]


class Symbols(NamedTuple):
    """Symbols by id, of which `state[SYMBOLS]` are in use."""

    starts: np.ndarray  # int64: where its string starts in words.text
    lengths: np.ndarray  # int32: of the string; 0 if no word can have it
    units: np.ndarray  # int32: its length in bytes or characters; 0 while no word has it
    prefixes: np.ndarray  # uint64: its first eight bytes, big-endian
    slots: np.ndarray  # int32[2^k], a hash table by string: symbol + 1, or 0


class PairCounts(NamedTuple):
    """Pair counts: a hash table by pair."""

    keys: np.ndarray  # int64[2^k]: the pair, or `NO_PAIR`
    counts: np.ndarray  # int64: weighted by the counts of words
    occurrences: np.ndarray  # int64


class Pairs(NamedTuple):
    """The pairs above the threshold by index, with a list of the occurrences of each.

    An occurrence is the first cell of the left symbol. Lists ascend. They may contain stale
    occurrences, where another symbol or the end of the word is by now.
    """

    slots: np.ndarray  # int32[2^k], a hash table by key: index + 1, or 0
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

    counts: np.ndarray  # int64[2, symbols]: then where the new pair's list starts, or -1
    occurrences: np.ndarray  # int64[2, symbols]: how many
    symbols: np.ndarray  # int32[2, symbols]: the neighbors that there are


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
        index = _most_frequent(words, symbols, pairs, queue, config, state)
        if index < 0:
            return EXHAUSTED
        full = _full_array(index, pairs, queue, symbols, state)
        if full == OCCURRENCES_FULL:
            state[OCCURRENCES] = _compact_occurrences(words, symbols, pairs, state[PAIRS])
        if full != PAUSED:
            return full
        pair, count = pairs.keys[index], pairs.counts[index]
        merged = _merged_symbol(index, words, symbols, pairs, state)
        is_new = symbols.units[merged] == 0
        symbols.units[merged] = symbols.units[_left_of(pair)] + symbols.units[_right_of(pair)]
        merges.pairs[state[MERGES]] = pair
        merges.counts[state[MERGES]] = count
        state[MERGES] += 1
        _pop(queue, state[QUEUED], words.text, symbols, config.ties)
        state[QUEUED] -= 1
        occurrences, before, after, doubles, double_count = _merge_occurrences(
            index, merged, words, symbols, pairs, neighbors
        )
        sizes = (before, after)
        if not is_new:
            _reset(sizes, neighbors)
            return DUPLICATE_SYMBOL
        first = state[PAIRS]
        doubles_start = np.int64(-1)
        if doubles:
            neighbors.occurrences[AFTER, _left_of(pair)] -= doubles
            neighbors.counts[AFTER, _left_of(pair)] -= double_count
            _subtract(_pair_of(_right_of(pair), _left_of(pair)), double_count, pairs)
            doubles_start = _add_pair(
                merged, merged, double_count, doubles, symbols, pairs, config, state
            )
        _update_counts(pair, merged, sizes, symbols, pairs, neighbors, config, state)
        pairs.counts[index] = 0
        if state[PAIRS] > first:
            span = (pairs.starts[index], pairs.starts[index] + occurrences)
            _list_occurrences(span, merged, doubles_start, words, symbols, pairs, neighbors)
            for added in range(first, state[PAIRS]):
                _push_pair(added, words, symbols, pairs, queue, config, state)
        _reset(sizes, neighbors)


@kernel_without_allocation
def _most_frequent(words, symbols, pairs, queue, config, state):
    """Returns the index of the pair to merge, which stays first in the queue, or -1."""
    while state[QUEUED]:
        index = np.int64(queue.indices[0])
        count = pairs.counts[index]
        if count < config.threshold:
            _pop(queue, state[QUEUED], words.text, symbols, config.ties)
            state[QUEUED] -= 1
            continue
        tie = _tie(index, words, symbols, pairs, config.ties)
        if count == queue.counts[0] and tie == queue.ties[0]:
            return index
        _replace_first(queue, state[QUEUED], count, tie, index, words.text, symbols, config.ties)
    return -1


@kernel_without_allocation
def _full_array(index, pairs, queue, symbols, state):
    """Returns which array may be too small for the next merge, or `PAUSED`."""
    if state[SYMBOLS] == len(symbols.starts):
        return SYMBOLS_FULL
    occurrences = pairs.ends[index] - pairs.starts[index]
    if state[OCCURRENCES] + 2 * occurrences > len(pairs.occurrences):
        return OCCURRENCES_FULL
    if state[PAIRS] + 2 * min(occurrences, state[SYMBOLS]) + 1 > len(queue.counts):
        return PAIRS_FULL
    return PAUSED


@kernel_without_allocation
def _merged_symbol(index, words, symbols, pairs, state):
    """Returns the symbol of a pair's string: a new one, unless there is one."""
    pair = pairs.keys[index]
    start = _first_occurrence(index, words, symbols, pairs)
    length = np.int64(symbols.lengths[_left_of(pair)]) + symbols.lengths[_right_of(pair)]
    merged = _find_symbol(words.text, start, length, symbols)
    if merged < 0:
        merged = state[SYMBOLS]
        _add_symbol(words.text, start, length, merged, symbols)
        state[SYMBOLS] += 1
    return merged


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

    Returns (occurrences, symbols before, symbols after, occurrences of X X, their count).
    """
    pair, cells = pairs.keys[index], words.cells
    left, right = _left_of(pair), _right_of(pair)
    left_length, right_length = symbols.lengths[left], symbols.lengths[right]
    start, occurrences = pairs.starts[index], 0
    before = after = doubles = 0
    double_count = np.int64(0)
    end = pairs.ends[index]
    for i in range(start, end):
        _prefetch_cells(pairs.occurrences, i + _CELLS_AHEAD, end, cells)
        if i + _WORDS_AHEAD < end:
            word = cells[pairs.occurrences[i + _WORDS_AHEAD], 1]
            prefetch(words.counts, np.uint64(word))
        cell = np.int64(pairs.occurrences[i])
        middle = cell + left_length
        if cells[cell, 0] != left or cells[middle, 0] != right:
            continue
        pairs.occurrences[start + occurrences] = cell
        occurrences += 1
        count = words.counts[cells[cell, 1]]
        neighbor = np.int64(cells[cell - 1, 0])
        cells[cell, 0] = merged
        cells[middle, 0] = INSIDE
        cells[middle + right_length - 1, 0] = merged
        if neighbor == merged:
            doubles += 1
            double_count += count
        elif neighbor >= 0:
            before = _accumulate_neighbor(BEFORE, neighbor, count, neighbors, before)
        neighbor = np.int64(cells[middle + right_length, 0])
        if neighbor >= 0:
            after = _accumulate_neighbor(AFTER, neighbor, count, neighbors, after)
    return occurrences, before, after, doubles, double_count


@kernel_without_allocation
def _prefetch_cells(occurrences, i, end, cells):
    """Asks for the cells of an occurrence that is merged a little later."""
    if i < end:
        prefetch(cells, np.uint64(occurrences[i]) << _1)


@kernel_without_allocation
def _accumulate_neighbor(side, symbol, count, neighbors, size):
    """Adds to the sums of a neighbor; returns how many neighbors there are on this side."""
    if neighbors.occurrences[side, symbol] == 0:
        neighbors.symbols[side, size] = symbol
        size += 1
    neighbors.occurrences[side, symbol] += 1
    neighbors.counts[side, symbol] += count
    return size


@kernel_without_allocation
def _update_counts(pair, merged, sizes, symbols, pairs, neighbors, config, state):
    """Subtracts from the counts of pairs with the merged one's parts, and adds the new pairs.

    Stores in neighbors.counts where each new pair's list starts, or -1.
    """
    for side in range(2):
        for i in range(sizes[side]):
            neighbor = np.int64(neighbors.symbols[side, i])
            occurrences = neighbors.occurrences[side, neighbor]
            count = neighbors.counts[side, neighbor]
            if side == BEFORE:
                _subtract(_pair_of(neighbor, _left_of(pair)), count, pairs)
                start = _add_pair(
                    neighbor, merged, count, occurrences, symbols, pairs, config, state
                )
            else:
                _subtract(_pair_of(_right_of(pair), neighbor), count, pairs)
                start = _add_pair(
                    merged, neighbor, count, occurrences, symbols, pairs, config, state
                )
            neighbors.counts[side, neighbor] = start


@kernel_without_allocation
def _subtract(pair, count, pairs):
    index = _index_of(pair, pairs)
    if index >= 0:
        pairs.counts[index] -= count


@kernel_without_allocation
def _add_pair(left, right, count, occurrences, symbols, pairs, config, state):
    """Adds a new pair if it reaches the threshold; returns where its list starts, or -1."""
    if count < config.threshold or not _may_merge(left, right, symbols, config.max_piece_length):
        return np.int64(-1)
    index = state[PAIRS]
    state[PAIRS] += 1
    pairs.keys[index] = _pair_of(left, right)
    pairs.counts[index] = count
    pairs.starts[index] = state[OCCURRENCES]
    state[OCCURRENCES] += occurrences
    pairs.ends[index] = state[OCCURRENCES]
    _insert_pair(index, pairs)
    return pairs.starts[index]


@kernel_without_allocation
def _list_occurrences(span, merged, doubles_start, words, symbols, pairs, neighbors):
    """Lists the occurrences of the new pairs, around those of the merged pair (first, end).

    The list of `X X` starts at `doubles_start`, or is not kept if that is -1.
    """
    cells = words.cells
    length = symbols.lengths[merged]
    for i in range(span[0], span[1]):
        _prefetch_cells(pairs.occurrences, i + _CELLS_AHEAD, span[1], cells)
        cell = np.int64(pairs.occurrences[i])
        neighbor = np.int64(cells[cell - 1, 0])
        if neighbor == merged:
            if doubles_start >= 0:
                pairs.occurrences[doubles_start] = cell - length
                doubles_start += 1
        elif neighbor >= 0:
            target = neighbors.counts[BEFORE, neighbor]
            if target >= 0:
                pairs.occurrences[target] = cell - symbols.lengths[neighbor]
                neighbors.counts[BEFORE, neighbor] += 1
        neighbor = np.int64(cells[cell + length, 0])
        if neighbor >= 0 and neighbor != merged:
            target = neighbors.counts[AFTER, neighbor]
            if target >= 0:
                pairs.occurrences[target] = cell
                neighbors.counts[AFTER, neighbor] += 1


@kernel_without_allocation
def _reset(sizes, neighbors):
    for side in range(2):
        for i in range(sizes[side]):
            neighbors.counts[side, neighbors.symbols[side, i]] = 0
            neighbors.occurrences[side, neighbors.symbols[side, i]] = 0


@kernel_without_allocation
def _push_pair(index, words, symbols, pairs, queue, config, state):
    tie = _tie(index, words, symbols, pairs, config.ties)
    _push(queue, state[QUEUED], pairs.counts[index], tie, index, words.text, symbols, config.ties)
    state[QUEUED] += 1


@kernel_without_allocation
def _tie(index, words, symbols, pairs, ties):
    """Returns what decides between pairs of equal count."""
    if ties == FIRST:
        return _first_occurrence(index, words, symbols, pairs)
    return pairs.keys[index]


@kernel_without_allocation
def _comes_before(count, tie, other_count, other_tie, text, symbols, ties):
    """Whether a pair is merged before another."""
    if count != other_count:
        return count > other_count
    if ties != LARGEST_PAIR:
        return tie < other_tie
    if _left_of(tie) != _left_of(other_tie):
        return _is_larger(_left_of(tie), _left_of(other_tie), text, symbols)
    return _is_larger(_right_of(tie), _right_of(other_tie), text, symbols)


@kernel_without_allocation
def _is_larger(left, right, text, symbols):
    """Whether a symbol's string is larger than another's, by bytes and so by code points."""
    if symbols.prefixes[left] != symbols.prefixes[right]:
        return symbols.prefixes[left] > symbols.prefixes[right]
    start, other = symbols.starts[left], symbols.starts[right]
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
def _push(queue, size, count, tie, index, text, symbols, ties):
    """Adds an entry to a heap of `size`."""
    entry = size
    while entry > 0:
        parent = (entry - 1) >> 1
        if not _comes_before(
            count, tie, queue.counts[parent], queue.ties[parent], text, symbols, ties
        ):
            break
        _move_entry(queue, parent, entry)
        entry = parent
    _set_entry(queue, entry, count, tie, index)


@kernel_without_allocation
def _replace_first(queue, size, count, tie, index, text, symbols, ties):
    """Removes the first entry of a heap of `size` and adds another."""
    entry = 0
    while 2 * entry + 1 < size:
        child = 2 * entry + 1
        if child + 1 < size and _comes_before(
            queue.counts[child + 1], queue.ties[child + 1],
            queue.counts[child], queue.ties[child], text, symbols, ties,
        ):  # fmt: skip
            child += 1
        if not _comes_before(
            queue.counts[child], queue.ties[child], count, tie, text, symbols, ties
        ):
            break
        _move_entry(queue, child, entry)
        entry = child
    _set_entry(queue, entry, count, tie, index)


@kernel_without_allocation
def _pop(queue, size, text, symbols, ties):
    """Removes the first entry of a heap of `size`."""
    last = size - 1
    if last > 0:
        _replace_first(
            queue, last, queue.counts[last], queue.ties[last], queue.indices[last],
            text, symbols, ties,
        )  # fmt: skip


def count_pairs(
    words: Words, symbols: Symbols, max_piece_length: int, slots: int
) -> tuple[PairCounts, int]:
    """Returns the counts of all pairs that may be merged, in a table of `slots` or more.

    The second result is `NO_PAIR`, or a pair whose count exceeds 2^63 - 1.
    """
    table, batch = _empty_counts(slots), pair_batch()
    cell, size = 1, 0
    while True:
        cell, size, pair = _count_pairs_from(
            cell, words, symbols, max_piece_length, batch, table, size
        )
        if pair != NO_PAIR or cell >= len(words.cells) - 1:
            return table, int(pair)
        larger = _empty_counts(4 * len(table.keys))
        _copy_counts(table, larger)
        table = larger


def _empty_counts(slots: int) -> PairCounts:
    keys = np.full(slots, NO_PAIR, np.int64)
    return PairCounts(keys, np.zeros(slots, np.int64), np.zeros(slots, np.int64))


@kernel_without_allocation
def _count_pairs_from(cell, words, symbols, max_piece_length, batch, table, size):
    """Counts the pairs that may be merged from a symbol's cell on, into a table of `size` pairs.

    Returns (cell, size, pair). The cell is past the last word unless the table is half full.
    The pair is `NO_PAIR`, or one whose count would exceed 2^63 - 1.
    """
    last, most = len(words.cells) - 1, len(table.keys) // 2
    mask = np.uint64(len(table.keys) - 1)
    while cell < last and size + _BATCH <= most:
        cell, read = _read_pairs(cell, words, symbols, batch)
        for i in range(read):
            slot = _first_slot(batch.pairs[i]) & mask
            prefetch(table.keys, slot)
            prefetch(table.counts, slot)
            prefetch(table.occurrences, slot)
        for i in range(read):
            pair = batch.pairs[i]
            if not _may_merge(_left_of(pair), _right_of(pair), symbols, max_piece_length):
                continue
            count = words.counts[words.cells[batch.cells[i], 1]]
            slot = _slot_of(pair, table.keys)
            if table.keys[slot] == NO_PAIR:
                table.keys[slot] = pair
                size += 1
            if table.counts[slot] > _LARGEST - count:
                return cell, size, pair
            table.counts[slot] += count
            table.occurrences[slot] += 1
    return cell, size, np.int64(NO_PAIR)


class PairBatch(NamedTuple):
    """Pairs that are read before any of them is looked up, so that the lookups overlap."""

    pairs: np.ndarray  # int64[_BATCH]
    cells: np.ndarray  # int64[_BATCH]: the first cell of the left symbol
    indices: np.ndarray  # int64[_BATCH]: of `Pairs`, or -1


def pair_batch() -> PairBatch:
    """Returns room for a batch."""
    return PairBatch(*(np.empty(_BATCH, np.int64) for _ in PairBatch._fields))


@kernel_without_allocation
def _read_pairs(cell, words, symbols, batch):
    """Reads pairs of symbols from a symbol's cell on; returns (cell, how many)."""
    cells, cell, last = words.cells, np.uint64(cell), np.uint64(len(words.cells) - 1)
    size = 0
    while cell < last and size < _BATCH:
        left = cells[cell, 0]
        following = cell + np.uint64(symbols.lengths[left])
        right = cells[following, 0]
        if right < 0:
            following += _1
        else:
            batch.pairs[size] = _pair_of(left, right)
            batch.cells[size] = cell
            size += 1
        cell = following
    return np.int64(cell), size


@kernel_without_allocation
def _copy_counts(table, larger):
    """Copies all pairs of a table into an empty, larger one."""
    for old in range(len(table.keys)):
        if table.keys[old] != NO_PAIR:
            slot = _slot_of(table.keys[old], larger.keys)
            larger.keys[slot] = table.keys[old]
            larger.counts[slot] = table.counts[old]
            larger.occurrences[slot] = table.occurrences[old]


@kernel_without_allocation
def list_pairs(words, symbols, pairs, queue, batch, config, state):
    """Lists the occurrences of `state[PAIRS]` pairs, whose lists are empty, and queues the pairs."""
    insert_pairs(pairs, state[PAIRS])
    cell, last, mask = 1, len(words.cells) - 1, np.uint64(len(pairs.slots) - 1)
    while cell < last:
        cell, read = _read_pairs(cell, words, symbols, batch)
        for i in range(read):
            prefetch(pairs.slots, _first_slot(batch.pairs[i]) & mask)
        for i in range(read):
            index = _index_of(batch.pairs[i], pairs)
            batch.indices[i] = index
            if index >= 0:
                prefetch(pairs.ends, np.uint64(index))
        for i in range(read):
            index = batch.indices[i]
            if index >= 0:
                pairs.occurrences[pairs.ends[index]] = batch.cells[i]
                pairs.ends[index] += 1
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
    return words.cells[cell + symbols.lengths[left], 0] == _right_of(pair)


@kernel_without_allocation
def _may_merge(left, right, symbols, max_piece_length):
    units = np.int64(symbols.units[left]) + symbols.units[right]
    return units < max_piece_length or units == 2


@kernel_without_allocation
def _pair_of(left, right):
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
def _first_slot(pair):
    mixed = np.uint64(pair) * _SPREAD
    return ((mixed ^ (mixed >> _32)) * _MIXER) >> _32


@kernel_without_allocation
def _slot_of(pair, keys):
    """Returns the slot of a pair, or the free one where it belongs."""
    slot, mask = _first_slot(pair), np.uint64(len(keys) - 1)
    while True:
        slot &= mask
        if keys[slot] == pair or keys[slot] == NO_PAIR:
            return slot
        slot += _1


@kernel_without_allocation
def _index_of(pair, pairs):
    """Returns the index of a pair, or -1."""
    slot, mask = _first_slot(pair), np.uint64(len(pairs.slots) - 1)
    while True:
        slot &= mask
        index = pairs.slots[slot] - 1
        if index < 0 or pairs.keys[index] == pair:
            return np.int64(index)
        slot += _1


@kernel_without_allocation
def insert_pairs(pairs, size):
    """Inserts the first `size` pairs into empty slots."""
    for index in range(size):
        _insert_pair(index, pairs)


@kernel_without_allocation
def _insert_pair(index, pairs):
    slot, mask = _first_slot(pairs.keys[index]), np.uint64(len(pairs.slots) - 1)
    while True:
        slot &= mask
        if pairs.slots[slot] == 0:
            pairs.slots[slot] = index + 1
            return
        slot += _1


@kernel_without_allocation
def add_symbols(text, symbols, size):
    """Adds the first `size` symbols, whose starts and lengths are set, to empty slots."""
    for symbol in range(size):
        _add_symbol(text, symbols.starts[symbol], symbols.lengths[symbol], symbol, symbols)


@kernel_without_allocation
def _add_symbol(text, start, length, symbol, symbols):
    symbols.starts[symbol] = start
    symbols.lengths[symbol] = length
    prefix = _0
    for i in range(8):
        prefix <<= _8
        if i < length:
            prefix |= np.uint64(text[start + i])
    symbols.prefixes[symbol] = prefix
    if length:
        other = _find_symbol(text, start, length, symbols)
        if other < 0:
            symbols.slots[~other] = symbol + 1


@kernel_without_allocation
def _find_symbol(text, start, length, symbols):
    """Returns the symbol of text[start:start + length], or ~slot where it belongs."""
    first, size = np.uint64(start), np.uint64(length)
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
