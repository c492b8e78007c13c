"""Token counts merged, and cut into hash partitions. Sums do not depend on any order."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.crc import CRC32, crc_table
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.counts import partition_kernels
from tokcore.counts.token_counter import TokenAccumulator
from tokcore.counts.token_table import TokenTable

_MANY_PARTITIONS = 1 << 16
_CRC32_TABLE = crc_table(CRC32)


def merge_tables(tables: Iterable[TokenTable]) -> TokenTable:
    """Returns one table with the counts of each token added up; none gives an empty table.

    A single table is returned as it is. Others are read one after another, and memory follows the
    distinct tokens. Raises OverflowError if a sum exceeds 2^63 - 1.
    """
    remaining = iter(tables)
    first = list(itertools.islice(remaining, 2))
    if len(first) == 1:
        return first[0]
    accumulator = TokenAccumulator()
    for table in itertools.chain(first, remaining):
        accumulator.add_tokens(table.data, table.offsets, table.counts)
    return TokenTable(*accumulator.finish())


def concatenate_tables(tables: Sequence[TokenTable]) -> TokenTable:
    """Returns one table of one or more that have no token in common, in their order."""
    if len(tables) == 1:
        return tables[0]
    offsets = row_offsets(np.concatenate([np.diff(table.offsets) for table in tables]))
    data = np.concatenate([table.data for table in tables])
    return TokenTable(data, offsets, np.concatenate([table.counts for table in tables]))


def is_partition(number: int, table: TokenTable, partitions: int) -> bool:
    """Says whether all tokens of a table are in this one of so many; see `partition_table`."""
    found = np.empty(len(table), np.uint32)
    packed = (read_only(table.data), read_only(table.offsets))
    partition_kernels.find_partitions(*packed, partitions, _CRC32_TABLE, found)
    return bool((found == number).all())


def partition_table(table: TokenTable, partitions: int) -> list[tuple[int, TokenTable]]:
    """Returns (partition, table) for each hash partition that has tokens, in ascending order.

    A token's partition is `zlib.crc32(token) * partitions >> 32`, so it is the same in every table
    on every machine; the order of tokens within a partition is kept. Raises ValueError unless
    `1 <= partitions <= 2^31`.
    """
    if not 1 <= partitions <= 1 << 31:
        raise ValueError(f'the number of partitions must be 1 to 2^31, not {partitions}')
    packed = (read_only(table.data), read_only(table.offsets))
    found = np.empty(len(table), np.uint32)
    partition_kernels.find_partitions(*packed, partitions, _CRC32_TABLE, found)
    numbers = np.arange(min(partitions, _MANY_PARTITIONS))
    if partitions > _MANY_PARTITIONS:  # most are empty: only the others are numbered
        numbers, found = np.unique(found, return_inverse=True)
        found = found.astype(np.uint32)
    sizes = np.zeros((len(numbers), 2), np.int64)
    partition_kernels.add_partition_sizes(packed[1], read_only(found), sizes)
    ends = np.cumsum(sizes, axis=0)
    starts = ends - sizes
    data = np.empty(len(table.data), np.uint8)
    offsets = np.zeros(len(table) + len(numbers), np.int64)
    counts = np.empty(len(table), np.int64)
    partition_kernels.scatter_tokens(
        *packed,
        read_only(table.counts),
        read_only(found),
        np.concatenate([starts, np.zeros((len(numbers), 1), np.int64)], axis=1),
        data,
        offsets,
        counts,
    )
    return [
        (
            int(numbers[place]),
            TokenTable(
                data[starts[place, 1] : ends[place, 1]],
                offsets[starts[place, 0] + place : ends[place, 0] + place + 1],
                counts[starts[place, 0] : ends[place, 0]],
            ),
        )
        for place in np.flatnonzero(sizes[:, 0]).tolist()
    ]
