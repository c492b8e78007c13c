"""The kernels of byte pair encoding: the symbols of a token, merged by rank.

    tokens   text[starts[i]:ends[i]] of `ScannedTokens`, for each missed i          lower
       │ part_end, if it is a phrase, see `phrases`: parts that are merged alone     lower
       │ _first_symbols, by `Units`: bytes or characters                          l o w e r
       │ merge_short or merge_long: the pair of lowest rank, until there is none    lo w er
    ids      of the m-th missed token from id_bounds[m] on                           low er

Of several pairs of the lowest rank the first is merged, as `tokenizers` does; with
`batched_merges` all of them are, before any pair that these merges create, as subword-nmt does.
A character without a symbol becomes the symbols of its UTF-8 bytes if all of them exist
(`byte_fallback`), else the unknown symbol, or nothing.

The encoder's cache is for short tokens of few ids, and gets them at the end of a pass. A longer
token, or one that is twice in a pass, would be merged each time, which takes longer than all else
that is done with it. So a `TokenMemory` keeps some thousand tokens that were merged lately.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from tokcore.bpe.phrases import (
    IDS_AT_ONCE,
    Joins,
    PartMemory,
    is_phrase,
    part_end,
    part_words,
    recall_part,
    remember_part,
)
from tokcore.encoding.kernels import NO_ROOM, cache_lines, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown, hash_bytes
from tokcore.kernels.hash_tables import NO_PAIR, PairTable, TokenLookup, find_pair, find_token
from tokcore.kernels.jit import inlined_kernel, kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import load_word
from tokcore.text.unicode import CODE_POINTS, next_character

SHORT = 96
"""Symbols: up to so many the lowest rank is found by a linear search, for more by a heap."""

SYMBOLS_PER_BYTE = 2
"""At most: in byte-level text a byte is a character of up to two bytes, with a symbol each."""

NO_ENTRY = -1
"""The output of a symbol without an id."""

NONE = -1
"""No symbol."""

_0, _1, _2, _3, _8, _32 = (np.uint64(number) for number in (0, 1, 2, 3, 8, 32))
_LOW = np.uint64(0xFFFF_FFFF)
_END = np.uint32(0xFFFF_FFFF)

MEMORY_ROWS = 1 << 15
"""For one encoder; 4 MB if all are in use."""

NO_ROW = ~np.uint64(0)

_LONGEST = np.uint64(56)
_MOST_IDS = np.uint64(16)

_LEAD = 0xC0
"""The smallest first byte of a character of several bytes."""


class Units(NamedTuple):
    """The symbols of single bytes or characters; arrays are read-only."""

    symbols: np.ndarray
    """int32[256 or 0x110000]: the symbol of a byte or character + 1, or 0; int32[0]: code points are
    symbols themselves, and the last character of a token is `CODE_POINTS` + its code point."""

    characters: np.ndarray
    """uint32[256]: the byte-level characters of bytes; uint32[0]: units are characters."""

    premerged: np.ndarray
    """int32[0x110000]: the symbol + 1 of a character whose bytes need not be merged, see `model`, or
    0; int32[0]: there is none."""

    fallback: np.ndarray  # int32[256]: the symbols of <0x00> to <0xFF>, or NONE
    unknown: int  # the symbol of characters without one, or NONE
    fuse_unknown: int  # whether a run of such characters is one symbol


def numbered_units(alphabet: Collection[str] = ()) -> Units:
    """Returns the units whose symbols are their numbers: characters, or bytes shown by an alphabet."""
    empty = read_only(np.empty(0, np.int32))
    characters = read_only(np.array([*map(ord, alphabet)], np.uint32))
    return Units(empty, characters, empty, read_only(np.full(256, NONE, np.int32)), NONE, 0)


class MergeState(NamedTuple):
    """What merging reads of a vocabulary; read-only, so that threads can share it."""

    pairs: PairTable  # of (left, right): rank << 32 | the symbol that replaces them
    units: Units
    ignore_merges: TokenLookup  # tokens that are entries and are not merged
    outputs: np.ndarray  # int32[symbols]: the id of each; int32[0]: symbols are ids
    batched_merges: int
    joins: Joins


class TokenMemory(NamedTuple):
    """Tokens and their ids that one thread has merged lately; of phrases, `PartMemory` has parts.

    A token has one row, where the last one that was written stays. The row is two cache lines:

        tokens   length << 32 | number of ids, then up to 56 bytes and zeros
        ids      up to 16
    """

    tokens: np.ndarray  # uint64[a power of two, 8], or uint64[0, 8]: nothing is remembered
    ids: np.ndarray  # int32[as many, 16]
    shift: np.uint64  # 64 - log2 of the rows


class MergeWork(NamedTuple):
    """The workspace; all arrays but `id_bounds` have room for the symbols of the missed tokens."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64
    merges: np.ndarray  # uint64: the value in `pairs` of a symbol and the next one
    previous: np.ndarray  # uint32: links of a doubly linked list, in `merge_long`
    next: np.ndarray  # uint32
    heap: np.ndarray  # uint64, three a symbol: rank << 32 | position, the lowest first
    batch: np.ndarray  # uint64: positions that are merged together
    memory: TokenMemory
    parts: PartMemory  # their symbols


@segment_tokens.register(MergeState)
@kernel_without_allocation
def segment_by_merges(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says.

    If a symbol has no id, `failure` is 1 + its position among the symbols of the token.
    """
    if len(work.ids) < SYMBOLS_PER_BYTE * missed.nbytes + missed.count + IDS_AT_ONCE:
        return 0, NO_ROOM
    text, memory = tokens.text, work.memory
    used = _0
    work.id_bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        start, end = tokens.starts[token], tokens.ends[token]
        row = memory_row(text, start, end, memory)
        count = recall_ids(text, start, end, row, memory, work.ids, used)
        if count == _0:
            count, failure = _merged_ids(text, start, end, model, work, used)
            if failure:
                return np.int64(miss), failure
            remember_ids(text, start, end, row, memory, work.ids, used, count)
        used += count
        work.id_bounds[miss + _1] = used
    return 0, 0


@inlined_kernel
def _merged_ids(text, start, end, model, work, used):
    """Writes the ids of text[start:end] to work.ids[used:]; returns how many, and the failure."""
    has_parts = is_phrase(load_word(text, start))
    first_end = part_end(text, start, end, model.joins) if has_parts else end
    # No entry has several parts.
    entry = find_token(text, start, end, model.ignore_merges) if first_end == end else -1
    if entry >= 0:
        work.ids[used] = np.int32(entry)
        count = _1
    elif has_parts:
        count = _symbols_of_parts(text, start, end, first_end, model, work, used)
    else:
        count = _merged_symbols(text, start, end, model, work, used)
    if len(model.outputs):
        for k in range(count):
            id_ = model.outputs[np.uint64(work.ids[used + k])]
            if id_ == NO_ENTRY:
                return count, np.int64(k + _1)
            work.ids[used + k] = id_
    return count, 0


@inlined_kernel
def _symbols_of_parts(text, start, end, first_end, model, work, used):
    """Writes the symbols of text[start:end], whose first part ends at `first_end`."""
    begin = used
    place = first_end
    while True:
        first, second = part_words(text, start, place)
        count = recall_part(first, second, work.parts, work.ids, used)
        if count == _0:
            count = _merged_symbols(text, start, place, model, work, used)
            remember_part(first, second, work.parts, work.ids, used, count)
        used += count
        if place == end:
            return used - begin
        start = place
        place = part_end(text, start, end, model.joins)


@inlined_kernel
def _merged_symbols(text, start, end, model, work, used):
    """Writes the symbols of text[start:end] to work.ids[used:]; returns how many."""
    count = _first_symbols(text, start, end, model.units, work.ids, used)
    if count > np.uint64(SHORT):
        count, _ = merge_long(used, count, model, work)
    elif count > _1:
        count = merge_short(used, count, model, work)
    return count


@kernel_without_allocation
def _first_symbols(text, start, end, units, symbols, used):
    """Writes the symbols of text[start:end] to symbols[used:]; returns how many there are."""
    begin = used
    position, end = np.int64(start), np.int64(end)
    pending = False  # an unknown symbol that the next one may be fused with
    while position < end:
        if len(units.premerged) and text[np.uint64(position)] >= _LEAD:
            code, after = next_character(text, position)
            symbol = units.premerged[np.uint64(code)]
            if symbol and not pending and after <= end:
                symbols[used] = symbol - np.int32(1)
                used += _1
                position = after
                continue
        if len(units.characters):
            code, after = np.int64(text[np.uint64(position)]), position + 1
        else:
            code, after = next_character(text, position)
        position = after
        if len(units.symbols) == 0:
            symbols[used] = np.int32(code if position < end else code + CODE_POINTS)
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
        count = _fallback_symbols(code, units.fallback, symbols, used)
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
def _fallback_symbols(code, fallback, symbols, used):
    """Writes the symbols of a character's UTF-8 bytes if all exist; returns how many, or 0."""
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


@kernel_without_allocation
def _find_merge(ids, left, right, pairs):
    return find_pair(np.uint64(ids[left]), np.uint64(ids[right]), pairs)


@kernel_without_allocation
def merge_short(begin, count, model, work):
    """Merges `count` symbols, one at least, at work.ids[begin:]; returns how many are left there."""
    ids, merges, pairs = work.ids, work.merges, model.pairs
    for k in range(count - _1):
        merges[k] = _find_merge(ids, begin + k, begin + k + _1, pairs)
    while True:
        lowest = NO_PAIR
        position = _0
        for k in range(count - _1):
            if merges[k] < lowest:
                lowest = merges[k]
                position = k
        if lowest == NO_PAIR:
            return count
        if model.batched_merges:
            count = _merge_batch(lowest, position, begin, count, work)
            for k in range(position - min(position, _1), count - _1):
                merges[k] = _find_merge(ids, begin + k, begin + k + _1, pairs)
            continue
        count -= _1
        ids[begin + position] = np.int32(lowest & _LOW)
        for k in range(position + _1, count):
            ids[begin + k] = ids[begin + k + _1]
            merges[k] = merges[k + _1]
        if position:
            merges[position - _1] = _find_merge(ids, begin + position - _1, begin + position, pairs)
        if position + _1 < count:
            merges[position] = _find_merge(ids, begin + position, begin + position + _1, pairs)


@kernel_without_allocation
def _merge_batch(merge, position, begin, count, work):
    """Applies a merge wherever it applies, first at `position`; returns how many symbols are left.

    work.merges stay as they were.
    """
    ids = work.ids
    written = position
    while position < count:
        if position + _1 < count and work.merges[position] == merge:
            ids[begin + written] = np.int32(merge & _LOW)
            position += _2
        else:
            ids[begin + written] = ids[begin + position]
            position += _1
        written += _1
    return written


@kernel_without_allocation
def merge_long(begin, count, model, work):
    """As `merge_short`, with a heap; also returns the pops of it, at most three a symbol."""
    size = _0
    for k in range(count):
        work.previous[k] = np.uint32(k - _1) if k else _END
        work.next[k] = np.uint32(k + _1) if k + _1 < count else _END
    for k in range(count):
        size = _push_merge(k, begin, size, model, work)
    pops = _0
    while size:
        rank = work.heap[0] >> _32
        batch_size = _0
        while size and work.heap[0] >> _32 == rank and (batch_size == _0 or model.batched_merges):
            work.batch[batch_size] = work.heap[0] & _LOW
            size = _pop(work.heap, size)
            batch_size += _1
        pops += batch_size
        for k in range(batch_size):
            position = work.batch[k]
            merge = work.merges[position]
            # An entry is out of date if one of its symbols was merged with another since.
            if merge != NO_PAIR and merge >> _32 == rank:
                size = _merge_at(position, begin, size, model, work)
    left = _0
    position = np.uint32(0)
    while position != _END:
        work.ids[begin + left] = work.ids[begin + np.uint64(position)]
        left += _1
        position = work.next[np.uint64(position)]
    return left, pops


@kernel_without_allocation
def _merge_at(position, begin, size, model, work):
    """Merges the symbol at a position with the next one; returns the size of the heap."""
    removed = np.uint64(work.next[position])
    work.ids[begin + position] = np.int32(work.merges[position] & _LOW)
    work.merges[removed] = NO_PAIR
    following = work.next[removed]
    work.next[position] = following
    if following != _END:
        work.previous[np.uint64(following)] = np.uint32(position)
    previous = work.previous[position]
    if previous != _END:
        size = _push_merge(np.uint64(previous), begin, size, model, work)
    return _push_merge(position, begin, size, model, work)


@kernel_without_allocation
def _push_merge(position, begin, size, model, work):
    """Finds the merge of the symbol at a position and the next one; returns the size of the heap."""
    following = work.next[position]
    merge = NO_PAIR
    if following != _END:
        merge = _find_merge(work.ids, begin + position, begin + np.uint64(following), model.pairs)
    work.merges[position] = merge
    if merge == NO_PAIR:
        return size
    return _push(work.heap, size, (merge >> _32) << _32 | position)


@kernel_without_allocation
def _push(heap, size, key):
    entry = size
    while entry:
        parent = (entry - _1) >> _1
        if heap[parent] <= key:
            break
        heap[entry] = heap[parent]
        entry = parent
    heap[entry] = key
    return size + _1


@kernel_without_allocation
def _pop(heap, size):
    """Removes the lowest key, heap[0]; returns how many are left."""
    size -= _1
    key = heap[size]
    entry = _0
    while True:
        child = _2 * entry + _1
        if child >= size:
            break
        if child + _1 < size and heap[child + _1] < heap[child]:
            child += _1
        if heap[child] >= key:
            break
        heap[entry] = heap[child]
        entry = child
    heap[entry] = key
    return size


@larger_workspace.register(MergeState)
@kernel
def _larger_merge_work(missed, model, work):
    """A `MergeWork` for tokens of any size; room that is not written to takes no memory."""
    most = SYMBOLS_PER_BYTE * missed.nbytes + missed.count + IDS_AT_ONCE
    return MergeWork(
        grown(work.ids, 0, most), work.id_bounds, grown(work.merges, 0, most),
        grown(work.previous, 0, most), grown(work.next, 0, most),
        grown(work.heap, 0, 3 * most), grown(work.batch, 0, most), work.memory, work.parts,
    )  # fmt: skip


def token_memory(rows: int) -> TokenMemory:
    """Returns a memory of so many rows, a power of two above 1, or 0."""
    shift = np.uint64(64 - max(1, rows.bit_length() - 1))
    return TokenMemory(cache_lines(rows), cache_lines(rows).view(np.int32), shift)


@inlined_kernel
def memory_row(text, start, end, memory):
    """The row for text[start:end], NO_ROW if it is not to be remembered."""
    length = end - start
    if len(memory.tokens) == 0 or length > _LONGEST or is_phrase(load_word(text, start)):
        return NO_ROW
    return hash_bytes(text, start, end) >> memory.shift


@inlined_kernel
def recall_ids(text, start, end, row, memory, ids, used):
    """Writes the ids of text[start:end] to ids[used:]; returns how many, 0 if it is not remembered."""
    length = end - start
    if row == NO_ROW or memory.tokens[row, _0] >> _32 != length:
        return _0
    word = _0
    while word << _3 < length:
        if _token_word(text, start, length, word) != memory.tokens[row, word + _1]:
            return _0
        word += _1
    count = memory.tokens[row, _0] & _LOW
    for k in range(count):
        ids[used + k] = memory.ids[row, k]
    return count


@inlined_kernel
def remember_ids(text, start, end, row, memory, ids, used, count):
    """Remembers that text[start:end] has the ids ids[used:used + count], if there is room for them."""
    if row == NO_ROW or count > _MOST_IDS:
        return
    length = end - start
    memory.tokens[row, _0] = length << _32 | count
    word = _0
    while word << _3 < length:
        memory.tokens[row, word + _1] = _token_word(text, start, length, word)
        word += _1
    for k in range(count):
        memory.ids[row, k] = ids[used + k]


@kernel_without_allocation
def _token_word(text, start, length, word):
    """Eight bytes of a token, or those that are left and zeros."""
    left = length - (word << _3)
    bits = load_word(text, start + (word << _3))
    return bits & (~_0 >> (np.uint64(64) - (min(left, _8) << _3)))
