"""The kernels of byte pair encoding: a token's symbols, merged by rank.

    tokens   ScannedTokens, and which of them were missed: text[starts[i]:ends[i]]      lower
       │ put_symbols, by `Units`: bytes or characters                              l o w e r
       │ merge_short or merge_long: the pair of lowest rank, again and again        lo w er
    ids      up to id_bounds[m]                                                     low er

Of several pairs of the lowest rank the first is merged, as `tokenizers` does; with `at_once` all of
them before pairs that come up meanwhile, as subword-nmt does. A character without a symbol becomes
the symbols of its UTF-8 bytes if all of these exist, else the unknown symbol, or nothing.
"""

from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown
from tokcore.kernels.hash_tables import NO_PAIR, PairTable, WholeTokens, find_pair, find_token
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.text.unicode import CODE_POINTS, next_character

SHORT = 96
"""Symbols: the lowest rank of so few is found by looking at each, of more in a heap."""

NO_ENTRY = -1
"""Among `outputs`: what has no id."""

_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
_NONE = np.uint32(0xFFFF_FFFF)

MOST_SYMBOLS = 2
"""For a byte: in byte-level text it is a character of up to two bytes, with a symbol each."""

NONE = -1

_LEAD = 0xC0
"""Bytes from here on begin a character of several."""


class Units(NamedTuple):
    """The symbols of single bytes or characters; arrays are read-only."""

    symbols: np.ndarray
    """int32[256 or 0x110000]: 1 + the symbol of a byte or character, 0 if it has none; int32[0]:
    characters are symbols themselves, and the last of a token is `CODE_POINTS` + itself."""

    characters: np.ndarray
    """uint32[256]: the characters that stand for bytes in byte-level text; uint32[0]: symbols are
    of characters."""

    whole: np.ndarray
    """int32[0x110000]: 1 + the symbol of a character that is not taken as bytes, see
    `model`; int32[0] where none is."""

    fallback: np.ndarray  # int32[256]: the symbols of <0x00> to <0xFF>, or NONE
    unknown: int  # the symbol of what has none, or NONE
    fuse_unknown: int  # whether one stands for a run of them


class MergeState(NamedTuple):
    """What merging reads of a vocabulary; read-only, so that threads can share it."""

    pairs: PairTable  # of (left, right): rank << 32 | the symbol that they become
    units: Units
    whole: WholeTokens  # that are taken without merging
    outputs: np.ndarray  # int32[symbols] or [0]: the id of each symbol, if it is another number
    at_once: int


class MergeWork(NamedTuple):
    """The workspace: places for symbols, each of them 4 or 8 bytes."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64
    values: np.ndarray  # uint64: what find_pair says of a symbol and the next
    before: np.ndarray  # uint32: the symbol before, while it is long
    behind: np.ndarray  # uint32
    heap: np.ndarray  # uint64, three a symbol: rank << 32 | place, the lowest first
    batch: np.ndarray  # uint64: what is merged at once


@segment_tokens.register(MergeState)
@kernel_without_allocation
def segment_by_merges(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says.

    Where a symbol has no id and there is none for it, `left` is 1 + its place among the token's.
    """
    if len(work.ids) < MOST_SYMBOLS * missed.nbytes + missed.count:
        return 0, NO_ROOM
    used = _0
    work.id_bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        start, end = tokens.starts[token], tokens.ends[token]
        whole = find_token(tokens.text, start, end, model.whole)
        if whole >= 0:
            work.ids[used] = np.int32(whole)
            count = _1
        else:
            count = put_symbols(tokens.text, start, end, model.units, work.ids, used)
            if count > np.uint64(SHORT):
                count, _ = merge_long(used, count, model, work)
            elif count > _1:
                count = merge_short(used, count, model, work)
        if len(model.outputs):
            for k in range(count):
                id_ = model.outputs[np.uint64(work.ids[used + k])]
                if id_ == NO_ENTRY:
                    return np.int64(miss), np.int64(k + _1)
                work.ids[used + k] = id_
        used += count
        work.id_bounds[miss + _1] = used
    return 0, 0


@kernel_without_allocation
def _pair_value(ids, left, right, pairs):
    return find_pair(np.uint64(ids[left]), np.uint64(ids[right]), pairs)


@kernel_without_allocation
def merge_short(begin, count, model, work):
    """Merges the symbols at work.ids[begin:], some at least; returns how many are left there."""
    ids, values, pairs = work.ids, work.values, model.pairs
    for k in range(count - _1):
        values[k] = _pair_value(ids, begin + k, begin + k + _1, pairs)
    while True:
        lowest = NO_PAIR
        place = _0
        for k in range(count - _1):
            if values[k] < lowest:
                lowest = values[k]
                place = k
        if lowest == NO_PAIR:
            return count
        if model.at_once:
            count = _merge_all(lowest, place, begin, count, work)
            for k in range(place - min(place, _1), count - _1):
                values[k] = _pair_value(ids, begin + k, begin + k + _1, pairs)
            continue
        count -= _1
        ids[begin + place] = np.int32(lowest & _LOW)
        for k in range(place + _1, count):
            ids[begin + k] = ids[begin + k + _1]
            values[k] = values[k + _1]
        if place:
            values[place - _1] = _pair_value(ids, begin + place - _1, begin + place, pairs)
        if place + _1 < count:
            values[place] = _pair_value(ids, begin + place, begin + place + _1, pairs)


@kernel_without_allocation
def _merge_all(value, place, begin, count, work):
    """Merges each pair of this value, the first is at `place`; returns how many symbols are left.

    work.values are as they were before.
    """
    ids = work.ids
    written = place
    while place < count:
        if place + _1 < count and work.values[place] == value:
            ids[begin + written] = np.int32(value & _LOW)
            place += _2
        else:
            ids[begin + written] = ids[begin + place]
            place += _1
        written += _1
    return written


@kernel_without_allocation
def _push(heap, size, key):
    place = size
    while place:
        above = (place - _1) >> _1
        if heap[above] <= key:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = key
    return size + _1


@kernel_without_allocation
def _pop(heap, size):
    """Takes the lowest, heap[0], out of so many; returns how many are left."""
    size -= _1
    key = heap[size]
    place = _0
    while True:
        below = _2 * place + _1
        if below >= size:
            break
        if below + _1 < size and heap[below + _1] < heap[below]:
            below += _1
        if heap[below] >= key:
            break
        heap[place] = heap[below]
        place = below
    heap[place] = key
    return size


@kernel_without_allocation
def _renew(place, begin, size, model, work):
    """Looks up the symbol at a place and the next, if any; returns the size of the heap."""
    behind = work.behind[place]
    value = NO_PAIR
    if behind != _NONE:
        value = _pair_value(work.ids, begin + place, begin + np.uint64(behind), model.pairs)
    work.values[place] = value
    if value == NO_PAIR:
        return size
    return _push(work.heap, size, (value >> _32) << _32 | place)


@kernel_without_allocation
def merge_long(begin, count, model, work):
    """As `merge_short`; returns also the pops of the heap, at most three for a symbol."""
    size = _0
    for k in range(count):
        work.before[k] = np.uint32(k - _1) if k else _NONE
        work.behind[k] = np.uint32(k + _1) if k + _1 < count else _NONE
    for k in range(count):
        size = _renew(k, begin, size, model, work)
    pops = _0
    while size:
        rank = work.heap[0] >> _32
        taken = _0
        while size and work.heap[0] >> _32 == rank and (taken == _0 or model.at_once):
            work.batch[taken] = work.heap[0] & _LOW
            size = _pop(work.heap, size)
            taken += _1
        pops += taken
        for k in range(taken):
            place = work.batch[k]
            value = work.values[place]
            # What was pushed earlier may be merged with others by now.
            if value != NO_PAIR and value >> _32 == rank:
                size = _merge_at(place, begin, size, model, work)
    kept = _0
    place = np.uint32(0)
    while place != _NONE:
        work.ids[begin + kept] = work.ids[begin + np.uint64(place)]
        kept += _1
        place = work.behind[np.uint64(place)]
    return kept, pops


@kernel_without_allocation
def _merge_at(place, begin, size, model, work):
    """Merges the symbol at a place with the next; returns the size of the heap."""
    gone = np.uint64(work.behind[place])
    work.ids[begin + place] = np.int32(work.values[place] & _LOW)
    work.values[gone] = NO_PAIR
    behind = work.behind[gone]
    work.behind[place] = behind
    if behind != _NONE:
        work.before[np.uint64(behind)] = np.uint32(place)
    before = work.before[place]
    if before != _NONE:
        size = _renew(np.uint64(before), begin, size, model, work)
    return _renew(place, begin, size, model, work)


@larger_workspace.register(MergeState)
@kernel
def larger_merge_work(missed, model, work):
    """A `MergeWork` for tokens of any size; room that is not written to takes no memory."""
    most = MOST_SYMBOLS * missed.nbytes + missed.count
    return MergeWork(
        grown(work.ids, 0, most), work.id_bounds, grown(work.values, 0, most),
        grown(work.before, 0, most), grown(work.behind, 0, most),
        grown(work.heap, 0, 3 * most), grown(work.batch, 0, most),
    )  # fmt: skip


@kernel_without_allocation
def put_symbols(text, start, end, units, symbols, used):
    """Puts those of text[start:end] into symbols[used:]; returns how many they are."""
    begin = used
    place, end = np.int64(start), np.int64(end)
    pending = False  # an unknown symbol waits whether more are fused with it
    while place < end:
        if len(units.whole) and text[np.uint64(place)] >= _LEAD:
            code, behind = next_character(text, place)
            symbol = units.whole[np.uint64(code)]
            if symbol and not pending:
                symbols[used] = symbol - np.int32(1)
                used += _1
                place = behind
                continue
        if len(units.characters):
            code, behind = np.int64(text[np.uint64(place)]), place + 1
        else:
            code, behind = next_character(text, place)
        place = behind
        if len(units.symbols) == 0:
            symbols[used] = np.int32(code if place < end else code + CODE_POINTS)
            used += _1
            continue
        symbol = units.symbols[np.uint64(code)]
        if symbol:
            if pending:
                symbols[used] = np.int32(units.unknown)
                used += _1
                pending = False
            symbols[used] = symbol - np.int32(1)
            used += _1
            continue
        if len(units.characters):
            code = np.int64(units.characters[np.uint64(code)])
        count = _put_fallback(code, units.fallback, symbols, used)
        used += count
        if count == _0 and units.unknown != NONE:
            if pending and not units.fuse_unknown:
                symbols[used] = np.int32(units.unknown)
                used += _1
            pending = True
    if pending:
        symbols[used] = np.int32(units.unknown)
        used += _1
    return used - begin


@kernel_without_allocation
def _put_fallback(code, fallback, symbols, used):
    """Puts the symbols of a character's UTF-8 if all of them are there; returns how many."""
    if code < 0x80:
        size, lead = 1, 0
    elif code < 0x800:
        size, lead = 2, 0xC0
    elif code < 0x10000:
        size, lead = 3, 0xE0
    else:
        size, lead = 4, 0xF0
    for k in range(size):
        byte = code >> 6 * (size - 1 - k)
        byte = lead | byte if k == 0 else 0x80 | byte & 0x3F
        symbol = fallback[np.uint64(byte)]
        if symbol == NONE:
            return _0
        symbols[used + np.uint64(k)] = symbol
    return np.uint64(size)
