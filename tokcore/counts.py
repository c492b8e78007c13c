"""Token counts: of rows, merged, cut into hash partitions. Sums do not depend on any order."""

import functools
import itertools
from collections.abc import Iterable

import numpy as np

from tokcore import token_packing
from tokcore.compilation import frozen
from tokcore.corpus.rows import Rows
from tokcore.counts_text import read_counts_text
from tokcore.token_accumulator import TokenAccumulator
from tokcore.token_table import TokenTable

__all__ = ['TokenTable', 'count_rows', 'merge_tables', 'partition_table', 'read_counts_text']


@functools.cache
def _crc32_table() -> np.ndarray:
    return frozen(token_packing.crc32_table())


def count_rows(rows: Rows, sides: tuple[int, ...]) -> TokenTable:
    """Returns the tokens of these sides of all rows, counted together, as `tokenize` cuts them."""
    accumulator = TokenAccumulator()
    for index in sides:
        side = rows.sides[index]
        accumulator.add_rows(side.text, side.starts, side.ends)
    return TokenTable(*accumulator.arrays())


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
    return TokenTable(*accumulator.arrays())


def _runs(ascending: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the different numbers, and how often each is there: int64."""
    starts = np.flatnonzero(np.diff(ascending, prepend=ascending[:1] + 1))
    return ascending[starts], np.diff(starts, append=len(ascending))


def partition_table(table: TokenTable, partitions: int) -> list[tuple[int, TokenTable]]:
    """Returns (partition, table) for each hash partition that has tokens, in ascending order.

    A token's partition is `zlib.crc32(token) * partitions >> 32`, so it is the same in every table
    on every machine; the order of tokens within a partition is kept. Raises ValueError unless
    `1 <= partitions <= 2^31`.
    """
    if not 1 <= partitions <= 1 << 31:
        raise ValueError(f'the number of partitions must be 1 to 2^31, not {partitions}')
    found = np.empty(len(table), np.int64)
    token_packing.find_partitions(
        frozen(table.data), frozen(table.offsets), partitions, _crc32_table(), found
    )
    if partitions <= 1 << 16:
        found = found.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(found, kind='stable')
    together = table.pick(order)
    numbers, sizes = _runs(found[order])
    tables = []
    start = 0
    for number, size in zip(numbers.tolist(), sizes.tolist()):
        offsets = together.offsets[start : start + size + 1]
        tables.append(
            (
                number,
                TokenTable(
                    together.data[offsets[0] : offsets[-1]],
                    offsets - offsets[0],
                    together.counts[start : start + size],
                ),
            )
        )
        start += size
    return tables
