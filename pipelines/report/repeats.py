"""Rows that occur more than once: in a split, and in both a split and the training set.

Rows are equal if their ids are. They are compared by hashes of 64 bits: among a billion different rows two
have the same hash with a probability of 1 in 37. The hashes are in a temporary file, 8 bytes for each row,
and are sorted there, so memory does not grow with the number of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping

import numpy as np

from tokcore.counts.counting import Tokens, hash_tokens
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.jit import read_only
from tokcore.reading.shards import EncodedRows

_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Tells the hash of a feature from that of the next one."""

_AT_ONCE = 1 << 20
"""Sorted hashes that are looked at together: 8 MiB."""


def hashes_in_file(rows: int) -> np.ndarray:
    """Returns room for the hashes of so many rows, uint64[rows], in a temporary file."""
    file = tempfile.TemporaryFile(prefix='tokbeam-')
    return np.memmap(file, np.uint64, 'w+', shape=(max(1, rows),))[:rows]


def hash_rows(rows: EncodedRows) -> np.ndarray:
    """Returns a hash of the ids of each row: uint64[rows]."""
    hashes, weights = np.zeros(len(rows), np.uint64), read_only(np.empty(0, np.int64))
    for name, ids in rows.ids.items():
        bounds = (rows.offsets[name] * ids.itemsize).view(np.uint64)
        text, of_feature = with_margin(ids.view(np.uint8)), np.empty_like(hashes)
        hash_tokens(Tokens(text, bounds[:-1], bounds[1:], of_feature, weights), len(hashes))
        hashes = hashes * _ODD + of_feature
    return hashes


def repeats(by_split: Mapping[str, np.ndarray]) -> Iterator[dict[str, object]]:
    """Sorts the hashes of each split; yields how often rows occur again: split, rows, distinct, most, in_train.

    See `Figures`.
    """
    for hashes in by_split.values():
        hashes.sort()
    train = by_split.get('train', np.empty(0, np.uint64))
    for split, hashes in by_split.items():
        distinct = most = last = in_train = 0
        for begin in range(0, len(hashes), _AT_ONCE):
            part = hashes[begin : begin + _AT_ONCE]
            is_first = np.append(not begin or part[0] != hashes[begin - 1], part[1:] != part[:-1])
            starts = begin + np.flatnonzero(is_first)
            distinct += len(starts)
            most = max(most, int(np.diff(starts, prepend=last).max(initial=0)))
            last = int(starts[-1]) if len(starts) else last
            if len(train):
                found = np.minimum(np.searchsorted(train, part), len(train) - 1)
                in_train += int(np.count_nonzero(train[found] == part))
        yield {
            'split': split,
            'rows': len(hashes),
            'distinct': distinct,
            'most': max(most, len(hashes) - last),
            'in_train': in_train if split != 'train' and len(train) else None,
        }
