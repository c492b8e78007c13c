"""A split that is cut off a corpus: the rows whose keys are in a range.

    a row ─ its file and offset, the seed ─▶ a key of 64 bits ─▶ dev: keys below 1 %
                                                               test: the next 1 %
                                                               train: all others

Keys depend on nothing else, so every worker cuts in the same way, and each row of the corpus is in
exactly one split.
"""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from tokcore.corpus.corpus import KeyRange, Rows
from tokcore.corpus.order_keys import order_keys

_SALT = 0x5B1F_70C2_9D3A_E846
"""Changes the seed. A shard is a range of order keys, so a split by these would empty some shards."""

_END = 1 << 64


def rows_within(key_range: KeyRange, rows: Rows, file_index: int) -> Rows:
    """Returns the rows of a split among those of its files; `lines` counts its own lines only.

    `file_index` is that of the rows, unless they have their own.
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
