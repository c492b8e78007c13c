"""The order of examples: from where a row stood in the input to where it goes in the output.

A row's identity (which file, which byte) is turned into a 64-bit key by a seeded bijection. Keys of
different rows therefore never tie, and the key alone decides both the shard and the position in it, so the
whole corpus is shuffled at once, whoever does the work.

Other keys, with a changed seed, cut splits off a corpus:

    a row ─ its file and offset, the seed ─▶ a key of 64 bits ─▶ dev: keys below 1 %
                                                               test: the next 1 %
                                                               train: all others
"""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from tokcore.corpus.corpus import KeyRange, Rows
from tokcore.errors import InputError
from tokcore.kernels.bytes import GOLDEN_RATIO

OFFSET_BITS = 44
"""Bits of a byte offset: files up to 16 TiB of decompressed text."""

_FILE_INDEX_BITS = 64 - OFFSET_BITS
"""Bits of a file's number among the inputs: about a million files."""

_MAX_SHARDS = 1 << 32
"""More would not fit in the product of two halves of 32 bits, and no job needs them."""

_MULTIPLIER_1 = 0xBF58476D1CE4E5B9
_MULTIPLIER_2 = 0x94D049BB133111EB
_INVERSE_1, _INVERSE_2 = (pow(factor, -1, 1 << 64) for factor in (_MULTIPLIER_1, _MULTIPLIER_2))


def order_keys(file_index: int | np.ndarray, offsets: np.ndarray, seed: int) -> np.ndarray:
    """Returns the order key of each row: uint64[rows].

    `file_index` is the file's number among the inputs (below 2^20), of all rows or int64[rows], and
    `offsets`, int64[rows], holds the byte offset of each row's line in the decompressed text (below
    2^44).

    Raises InputError if a number or an offset is too large, or the seed is outside 0 to 2^64 - 1.
    """
    return mix64(row_places(file_index, offsets), seed)


def mix64(x: np.ndarray, seed: int) -> np.ndarray:
    """Mixes uint64 values by a seeded bijection: `mix13(mix13(x) ^ mix13(seed + gamma))`, uint64.

    mix13 is variant 13 of David Stafford's "Better Bit Mixing" (2011), which is the finalizer of
    SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA
    2014), and gamma is that generator's increment. The seed enters between two rounds, so another
    seed is another order and not the same one with the rows renamed.

    Raises InputError if the seed is outside 0 to 2^64 - 1.
    """
    return _mix13(_mix13(np.asarray(x, np.uint64)) ^ _seed_mask(seed))


def places_of(keys: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the file index and the identity of each row from its order key: int64[rows] each.

    The inverse of `order_keys`; raises InputError as that for the seed.
    """
    identities = _unmixed(keys, seed)
    offsets = identities & np.uint64((1 << OFFSET_BITS) - 1)
    return (identities >> np.uint64(OFFSET_BITS)).astype(np.int64), offsets.astype(np.int64)


def order_of_corpus(keys: np.ndarray, seed: int) -> np.ndarray:
    """Returns the places, among keys of one split, of its rows in the order of the corpus: int64[rows]."""
    return np.argsort(_unmixed(keys, seed), kind='stable')


def shard_of(keys: np.ndarray, shards: int) -> np.ndarray:
    """Returns `(key * shards) >> 64` for uint64 keys: int64, each below `shards`.

    The high bits decide, so each shard is a contiguous range of keys and a multiple of `shards`
    cuts each range again. The product of 96 bits is computed exactly, by halves.

    Raises ValueError if `shards` is not within 1 to 2^32.
    """
    if not 1 <= shards <= _MAX_SHARDS:
        raise ValueError(f'{shards} shards are not within 1 to {_MAX_SHARDS}')
    keys = np.asarray(keys, np.uint64)
    half = np.uint64(32)
    low = (keys & np.uint64(0xFFFFFFFF)) * np.uint64(shards)
    high = (keys >> half) * np.uint64(shards)
    # At most (2^32 - 1) * 2^32 + 2^32 - 1: the carry never leaves 64 bits.
    return ((high + (low >> half)) >> half).astype(np.int64)


def _unmixed(keys: np.ndarray, seed: int) -> np.ndarray:
    return _unmix13(_unmix13(np.asarray(keys, np.uint64)) ^ _seed_mask(seed))


def row_places(file_index: int | np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Returns where rows are in the corpus, uint64[rows], ascending in its order; `order_keys` mixes that."""
    offsets, indexes = np.asarray(offsets), np.asarray(file_index)
    if indexes.size and not (indexes.min() >= 0 and indexes.max() < 1 << _FILE_INDEX_BITS):
        worst = indexes.max() if indexes.min() >= 0 else indexes.min()
        raise InputError(
            f'Input file number {worst} is beyond the {1 << _FILE_INDEX_BITS} files that one split may '
            'have; join files.'
        )
    if offsets.size and not (offsets.min() >= 0 and offsets.max() < 1 << OFFSET_BITS):
        row = int(offsets.argmax() if offsets.min() >= 0 else offsets.argmin())
        index = np.broadcast_to(indexes, offsets.shape)[row]
        raise InputError(
            f'Byte offset {offsets[row]} of input file number {index} is not below 2^{OFFSET_BITS} '
            '(16 TiB of decompressed text); split the file.'
        )
    return indexes.astype(np.uint64) << np.uint64(OFFSET_BITS) | offsets.astype(np.uint64)


def _seed_mask(seed: int) -> np.ndarray:
    if not 0 <= seed < 1 << 64:
        raise InputError(f'Seed {seed} is not within 0 to 2^64 - 1; choose another.')
    # SplitMix64's increment keeps seed 0 away from the mix's fixed point 0.
    return splitmix64(np.array(seed, np.uint64))


def splitmix64(numbers: np.ndarray) -> np.ndarray:
    """Returns for each state, uint64[n], the number that SplitMix64 gives next: uint64[n]."""
    with np.errstate(over='ignore'):
        return _mix13(numbers + np.uint64(GOLDEN_RATIO))


# numpy warns of overflow for scalars, but wrapping around is intended.
def _mix13(x: np.ndarray) -> np.ndarray:
    with np.errstate(over='ignore'):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(_MULTIPLIER_1)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(_MULTIPLIER_2)
    return x ^ (x >> np.uint64(31))


def _unmix13(x: np.ndarray) -> np.ndarray:
    # A shift of n bits is undone by shifts of its multiples, a factor by its inverse modulo 2^64.
    with np.errstate(over='ignore'):
        x = (x ^ (x >> np.uint64(31)) ^ (x >> np.uint64(62))) * np.uint64(_INVERSE_2)
        x = (x ^ (x >> np.uint64(27)) ^ (x >> np.uint64(54))) * np.uint64(_INVERSE_1)
    return x ^ (x >> np.uint64(30)) ^ (x >> np.uint64(60))


_SALT = 0x5B1F_70C2_9D3A_E846
"""Changes the seed. A shard is a range of order keys, so a split by these would empty some shards."""

_END = 1 << 64


def rows_within(key_range: KeyRange, rows: Rows, file_index: int) -> Rows:
    """Returns the rows of a split among those of its files; `lines` counts the lines of the split only.

    `file_index` is that of the rows, unless these have `file_indexes`.
    """
    indexes = file_index if rows.file_indexes is None else rows.file_indexes
    keys = order_keys(indexes, rows.offsets, key_range.seed ^ _SALT)
    within = keys >= np.uint64(key_range.low)
    if key_range.end < _END:
        within &= keys < np.uint64(key_range.end)
    selected = rows.select(within)
    if key_range.has_others:
        return dataclasses.replace(selected, lines=rows.lines - len(rows) + len(selected))
    return dataclasses.replace(selected, lines=len(selected), empty=0, missing_side=0, rejects=())


def is_among(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Returns which values are among others, which are in ascending order: bool[values]."""
    if not len(ascending):
        return np.zeros(len(values), bool)
    return ascending[np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)] == values


def without_left_out(left_out: bytes, rows: Rows, file_index: int) -> Rows:
    """Returns the rows that are not left out by their places (`Split.left_out`), and counts the others."""
    if not left_out:
        return rows
    indexes = file_index if rows.file_indexes is None else rows.file_indexes
    places = row_places(indexes, rows.identities)
    kept = rows.select(~is_among(places, np.frombuffer(left_out, '<u8')))
    return dataclasses.replace(kept, removed=len(rows) - len(kept))


def key_ranges(shares: Mapping[str, Fraction], seed: int) -> dict[str, KeyRange]:
    """Returns the range of keys of `train`, and of each split that has a share of its files.

    Args:
        shares: by split, in an order that is always the same; together below 1.
        seed: of the keys.
    """
    ranges, low = {}, Fraction(0)
    for split, share in shares.items():
        ranges[split] = KeyRange(seed, int(low * _END), int((low + share) * _END))
        low += share
    ranges['train'] = KeyRange(seed, int(low * _END), _END, has_others=True)
    return ranges
