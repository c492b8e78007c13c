"""Kernels over packed tokens: their hash partitions, and whether they ascend.

Packed tokens are `data` uint8 and `offsets` int64: token i is `data[offsets[i]:offsets[i + 1]]`.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.crc import crc_bytes
from tokcore.compiled.ragged_bytes import copy_bytes


@kernel_without_allocation
def find_partitions(data, offsets, partitions, table, found):
    """Fills in each token's partition (uint32), `crc32 * partitions >> 32`."""
    for token in range(len(found)):
        crc = crc_bytes(data, offsets[token], offsets[token + 1], table)
        found[token] = (np.int64(crc) * np.int64(partitions)) >> 32


@kernel_without_allocation
def ascend(data, offsets):
    """Says whether each token is above the one before it, byte by byte."""
    for token in range(1, len(offsets) - 1):
        before, start, end = offsets[token - 1], offsets[token], offsets[token + 1]
        shorter = min(start - before, end - start)
        same = 0
        while same < shorter and data[before + same] == data[start + same]:
            same += 1
        if same == shorter:
            if start - before >= end - start:
                return False
        elif data[before + same] > data[start + same]:
            return False
    return True


@kernel_without_allocation
def add_partition_sizes(offsets, found, sizes):
    """Adds up in sizes[partition] (int64[partitions, 2]) how many tokens and bytes each has."""
    for token in range(len(found)):
        sizes[found[token], 0] += 1
        sizes[found[token], 1] += offsets[token + 1] - offsets[token]


@kernel_without_allocation
def scatter_tokens(data, offsets, counts, found, nexts, dealt_data, dealt_offsets, dealt_counts):
    """Copies each token with its end and its count to the next places of its partition.

    nexts[partition] (int64[partitions, 3]) has the place of its next token, the place of its next
    byte, and how many bytes it has so far, from which its offsets are told.
    """
    for token in range(len(found)):
        partition = found[token]
        place, begin = nexts[partition, 0], nexts[partition, 1]
        start = offsets[token]
        length = offsets[token + 1] - start
        copy_bytes(dealt_data, np.uint64(begin), data, np.uint64(start), np.uint64(length))
        nexts[partition, 0] = place + 1
        nexts[partition, 1] = begin + length
        nexts[partition, 2] += length
        dealt_counts[place] = counts[token]
        # Each partition's offsets begin with a 0, so there is one more of them.
        dealt_offsets[place + partition + 1] = nexts[partition, 2]
