"""The memo: ids of the tokens met before, in tables of bounded size, and rows read by it.

A token of up to 8 bytes is its own key, packed into a word; a longer one has a hash as its key, and
its bytes are compared. A slot of `index` (uint64[power of two], open addressing) holds half a hash
and the number of an entry + 1, or 0. Entries stand in the order first met, so frequent ones lie
together in the cache. Their words: key; where long bytes begin << 32 | bytes << 16 | number of ids;
two words of up to four ids, or where more ids begin. A full memo is emptied.
"""

import numpy as np

from tokcore.compilation import kernel
from tokcore.pretokenization import SPACE, next_token

_KEY, _LENGTHS, _IDS, _MORE_IDS = 0, 1, 2, 3  # words of an entry
ENTRY_WORDS = 4
_ENTRIES, _BYTES_USED, _IDS_USED = 0, 1, 2  # places of `memo_used`

IDS_INSIDE = 4
"""As many ids an entry holds itself."""

LONGEST_REMEMBERED = 256
"""Bytes; longer tokens hardly come back and would crowd out the others."""

MAX_GROWTH = 5
"""Characters of escaped text for a byte: a control character such as U+007F becomes `\\127;`."""

IDS_MARGIN = MAX_GROWTH * LONGEST_REMEMBERED + 1 + IDS_INSIDE
"""Room for the ids of any token of the memo, and the four that are always written behind them."""

WORD = 8  # bytes
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_FREE = np.uint64(0)
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_QUARTER = np.uint64(16)
_HALF_BITS = np.uint64(0xFFFFFFFF)
_QUARTER_BITS = np.uint64(0xFFFF)
_TAG_BITS = np.uint64(0xFFFFFFFF00000000)

ALL_HASH_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The mask that leaves a hash as it is; tests give a narrow one, to make tokens collide."""


@kernel
def _load_word(data, position):
    """Eight bytes as a little-endian word; the compiler makes one load of it."""
    at = np.uint64(position)  # an unsigned index is not asked whether it counts from the end
    word = np.uint64(data[at])
    word |= np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
    word |= np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    return word


@kernel
def _hash_long(text, start, end, hash_mask):
    """A hash of a token of more than 8 bytes."""
    value = _SPREAD
    for position in range(start, end - WORD, WORD):
        value = (value ^ _load_word(text, position)) * _SPREAD
        value ^= value >> _HALF
    value = (value ^ _load_word(text, end - WORD)) * _SPREAD  # overlaps the one before
    return (value ^ (value >> _HALF)) & hash_mask


@kernel
def _equal_long(first, first_start, second, second_start, length):
    """Whether two tokens of the same length, of more than 8 bytes, are equal."""
    last = length - WORD
    different = _load_word(first, first_start + last) ^ _load_word(second, second_start + last)
    for place in range(0, last, WORD):
        different |= _load_word(first, first_start + place) ^ _load_word(
            second, second_start + place
        )
    return different == _FREE


@kernel
def _recall(entries, memo_ids, entry, ids, used):
    """Puts the ids of an entry into ids[used:]; returns how many.

    Four are written whatever the number: most tokens have fewer, and a processor too often guesses
    wrong where a branch depends on it. `ids` has room for four more than the entry has.
    """
    count = np.int64(entries[entry, _LENGTHS] & _QUARTER_BITS)
    low = entries[entry, _IDS]
    high = entries[entry, _MORE_IDS]
    ids[used] = low & _HALF_BITS
    ids[used + 1] = low >> _HALF
    ids[used + 2] = high & _HALF_BITS
    ids[used + 3] = high >> _HALF
    if count > IDS_INSIDE:
        for place in range(count):
            ids[used + place] = memo_ids[np.int64(low) + place]
    return count


@kernel
def recall_tokens(
    text, position, row_start, row_end, byte_classes, classes,
    index, entries, memo_bytes, memo_ids, hash_mask, ids, used,
):  # fmt: skip
    """Puts the ids of tokens into ids[used:], up to the first that is not in the memo.

    Returns (start, position, used, slot, key, token_hash): the place of that token and of its entry
    to be, or start = position at the row's end; -1 for start if `ids` is short of room.
    `text` is readable for 8 bytes from each token's start on.
    """
    # The loop leaves its arrays to no function that has branches: numba counts references to them
    # there, for every token, and that takes as long as all the rest.
    mask = np.uint64(index.size - 1)
    slot = key = token_hash = _FREE
    while position < row_end:
        if used + IDS_MARGIN > ids.size:
            return -1, position, used, slot, key, token_hash
        start = position
        position = next_token(text, start, row_end, byte_classes, classes)
        length = position - start
        # `is_dropped_space`, written out for the reason above.
        if length == 1 and text[start] == SPACE and start != row_start and position != row_end:
            continue
        if length <= WORD:
            key = _load_word(text, start) << np.uint64(8 * (WORD - length))
        else:
            key = _hash_long(text, start, position, hash_mask)
        token_hash = (key ^ np.uint64(length)) * _SPREAD
        token_hash = (token_hash ^ (token_hash >> _HALF)) & hash_mask
        slot = token_hash & mask
        word = index[slot]
        while word != _FREE:
            if (word ^ token_hash) & _TAG_BITS == _FREE:
                entry = (word & _HALF_BITS) - _ONE
                lengths = entries[entry, _LENGTHS]
                if entries[entry, _KEY] == key and (
                    (lengths >> _QUARTER) & _QUARTER_BITS == np.uint64(length)
                ):
                    begin = np.int64(lengths >> _HALF)
                    if length <= WORD or _equal_long(text, start, memo_bytes, begin, length):
                        break
            slot = (slot + _ONE) & mask
            word = index[slot]
        if word == _FREE:
            return start, position, used, slot, key, token_hash
        used += _recall(entries, memo_ids, (word & _HALF_BITS) - _ONE, ids, used)
    return position, position, used, slot, key, token_hash


@kernel
def remember(
    index, entries, memo_bytes, memo_ids, memo_used,
    slot, key, token_hash, text, start, end, ids, first, used,
):  # fmt: skip
    """Enters a token with its `ids[first:used]` at its free slot, or empties a full memo."""
    length = end - start
    count = used - first
    if length > LONGEST_REMEMBERED or length > memo_bytes.size or count > memo_ids.size:
        return
    entry = memo_used[_ENTRIES]
    if (
        entry == entries.shape[0]
        or memo_used[_BYTES_USED] + length > memo_bytes.size
        or memo_used[_IDS_USED] + count > memo_ids.size
    ):
        index[:] = _FREE
        memo_used[:] = 0
        return
    begin = 0
    if length > WORD:
        begin = memo_used[_BYTES_USED]
        for place in range(length):
            memo_bytes[begin + place] = text[start + place]
        memo_used[_BYTES_USED] += length
    index[slot] = token_hash & _TAG_BITS | np.uint64(entry + 1)
    entries[entry, _KEY] = key
    entries[entry, _LENGTHS] = (
        np.uint64(begin) << _HALF | np.uint64(length) << _QUARTER | np.uint64(count)
    )
    entries[entry, _IDS] = _FREE
    entries[entry, _MORE_IDS] = _FREE
    if count > IDS_INSIDE:
        more = memo_used[_IDS_USED]
        entries[entry, _IDS] = more
        for place in range(count):
            memo_ids[more + place] = ids[first + place]
        memo_used[_IDS_USED] += count
    else:
        for place in range(count):
            id_ = np.uint64(ids[first + place])
            entries[entry, _IDS + place // 2] |= id_ << np.uint64(32 * (place % 2))
    memo_used[_ENTRIES] += 1
