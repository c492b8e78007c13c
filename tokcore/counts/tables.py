"""Tables of token counts: counted from blocks, read from text, merged, and partitioned by hash.

The sums do not depend on the order of the blocks or tables.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from tokcore.corpus.block_batches import Batch, add_stats, batch_rows, batch_stats
from tokcore.corpus.corpus import UNSTORABLE_TOKEN, Block, OnError, OpenBinary, Reject, Split
from tokcore.corpus.line_rows import line_bounds
from tokcore.corpus.stats import BlockStats, block_stats
from tokcore.counts.counting import (
    LARGEST_COUNT,
    TokenAccumulator,
    add_partition_sizes,
    hash_partitions,
    scatter_tokens,
)
from tokcore.counts.sampling import RowSample, RowsToCount, rows_to_count
from tokcore.counts.token_table import TokenTable, distinct_table
from tokcore.errors import InputError
from tokcore.kernels.bytes import CRC32, crc_table, pick_ranges, row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.normalizers import strip_start
from tokcore.text.pre_tokenizer import PreTokenizer
from tokcore.text.rows import Normalizer, Side
from tokcore.text.unicode import character_name, check_rows, whitespace_table

COUNT_PARTITIONS = 32
"""Hash partitions of a count table, hence files of a COUNTS folder.

With 32, the table of 500 million tokens of 10 bytes has partitions of some 300 MB, which one worker
can sort; with 1,000, the table of a small corpus would become as many files of a few tokens. It
must not depend on workers or input, since the folder's bytes depend on it.
"""

SideGroups = tuple[tuple[int, ...], ...]
"""The sides of each table: ((0,), (1,)) counts two sides apart, ((0, 1),) into one table."""

_MANY_PARTITIONS = 1 << 16
_BATCH_BYTES = 16 << 20
_CRC32_TABLE = crc_table(CRC32)

_GOOD = 0
_NOT_UTF8 = 1
_NO_COUNT = 2
_NO_TOKEN = 3
_TOO_LARGE = 4

_REASONS = {
    _NOT_UTF8: 'is not valid UTF-8; convert the file to UTF-8',
    _NO_COUNT: 'does not end with a TAB or a space and a count in decimal digits; write it so',
    _NO_TOKEN: 'has no token before its count; give it one or delete the line',
    _TOO_LARGE: 'has a count above 2^63 - 1; make it smaller',
}


class BlockCounter:
    """Counts blocks one after another into the same tables, one for each group of sides.

    Not thread-safe; `for_another_thread` makes a counter of the same tables.

    Args:
        sample: rows outside of it are not counted.
        row_check: leaves out rows, with the reason.
    """

    def __init__(
        self,
        groups: SideGroups,
        normalizer: Normalizer,
        pre_tokenizer: PreTokenizer,
        sample: RowSample | None = None,
        row_check: RowCheck | None = None,
    ):
        self._groups = groups
        self._normalizer = normalizer
        self._pre_tokenizer = pre_tokenizer
        self._sample, self._row_check = sample, row_check
        self._sides = frozenset(side for sides in groups for side in sides)
        self._accumulators = [TokenAccumulator() for _ in groups]

    def for_another_thread(self) -> BlockCounter:
        """Returns a counter for another thread: it shares the tokens and has its own counts."""
        other = copy.copy(self)
        other._accumulators = [TokenAccumulator(sums.index) for sums in self._accumulators]
        return other

    def nbytes(self, others: Sequence[BlockCounter] = ()) -> int:
        """Returns the bytes in use: the tokens, and the counts of this and of other threads."""
        counters = (self, *others)
        counts = sum(sums.nbytes for counter in counters for sums in counter._accumulators)
        return counts + sum(sums.index.nbytes for sums in self._accumulators)

    def add(
        self,
        block: Block,
        splits: Sequence[Split],
        on_error: OnError = 'stop',
        open_binary: OpenBinary | None = None,
    ) -> BlockStats:
        """Counts the tokens of a block's rows, or of those in the sample.

        The arguments are those of `block_stats`.

        Raises:
            InputError: `on_error` is 'stop', and a line is not UTF-8, lacks a column or has a token
                that cannot be stored; nothing of the block is counted then.
        """
        counted = rows_to_count(block, splits, self._normalizer, self._sides, self._sample)
        if self._row_check is not None:
            counted = self._row_check.reject_rows(counted, self._sides)
        stats = block_stats(block, counted.rows, splits, on_error, open_binary)
        self._add_rows(counted)
        return stats

    def add_batch(
        self,
        blocks: Batch,
        splits: Sequence[Split],
        on_error: OnError = 'stop',
        open_binary: OpenBinary | None = None,
    ) -> BlockStats:
        """Counts the tokens of blocks as `add` does, with a call for all of them where it can."""
        rows = None
        if self._sample is None:
            rows = batch_rows(blocks, splits, self._normalizer)
        if rows is not None:
            counted = RowsToCount(rows, rows.sides)
            if self._row_check is not None:
                counted = self._row_check.reject_rows(counted, self._sides)
            if not counted.rows.rejects:
                self._add_rows(counted)
                return batch_stats(blocks, counted.rows, splits)
        return add_stats([self.add(block, splits, on_error, open_binary) for block in blocks])

    def _add_rows(self, counted: RowsToCount) -> None:
        for sides, sums in zip(self._groups, self._accumulators, strict=True):
            for index in sides:
                side = counted.sides[index]
                sums.add_rows(side.text, side.starts, side.ends, self._pre_tokenizer)

    def finish(self, others: Sequence[BlockCounter] = ()) -> tuple[TokenTable, ...]:
        """Returns the tables, with the counts of other threads; ends the use of all of them."""
        return tuple(
            TokenTable(*sums.finish(counter._accumulators[group] for counter in others))
            for group, sums in enumerate(self._accumulators)
        )


class RowCheck(Protocol):
    """Leaves out rows before their tokens are counted."""

    def reject_rows(self, counted: RowsToCount, sides: Iterable[int]) -> RowsToCount:
        """Returns the rows without those that cannot be counted on these sides, each with the reason."""


@dataclass(frozen=True)
class UnstorableTokens:
    """Tokens that a vocabulary file cannot store, and the rejection of rows that have them.

    Attributes:
        characters: ASCII; a token that contains one of them cannot be stored.
        tokens: splits the text of a row into tokens, in plain Python: it is called only for the few
            rows that contain such a character.
    """

    characters: str
    tokens: Callable[[str], Iterable[str]]

    def reject_rows(self, counted: RowsToCount, sides: Iterable[int]) -> RowsToCount:
        """Rejects the rows that have such a token on one of these sides, and returns the others.

        A sample that is drawn from each side apart is returned as it is.
        """
        rows = counted.rows
        if counted.sides is not rows.sides:
            return counted
        rejects: dict[int, Reject] = {}
        for number in sides:
            for row in self._rows_with(rows.sides[number]):
                text = rows.sides[number].row(row)
                character = next(
                    (
                        each
                        for token in self.tokens(text)
                        for each in self.characters
                        if each in token
                    ),
                    None,
                )
                if character and row not in rejects:
                    offset = int(rows.offsets[row])
                    why = (
                        f'a token of it has {character_name(character)}, and a vocabulary file of this '
                        'scheme holds none; write it otherwise, or leave such rows out with '
                        '--on-error=skip'
                    )
                    rejects[row] = Reject(
                        UNSTORABLE_TOKEN, 0, offset, offset, text.encode(), why=why
                    )
        if not rejects:
            return counted
        storable = rows.select(np.delete(np.arange(len(rows)), [*rejects]))
        more = tuple(rejects[row] for row in sorted(rejects))
        storable = dataclasses.replace(storable, rejects=(*rows.rejects, *more))
        return RowsToCount(storable, storable.sides)

    def _rows_with(self, side: Side) -> Iterator[int]:
        """Yields the rows of a side that have one of the characters."""
        is_unstorable = np.zeros(256, bool)
        is_unstorable[list(self.characters.encode())] = True
        positions = np.flatnonzero(is_unstorable[side.text])
        # The text also has bytes between rows, above all line feeds.
        first = np.searchsorted(positions, side.starts)
        is_within = np.append(positions, np.iinfo(np.int64).max)[first] < side.ends
        yield from np.flatnonzero(is_within).tolist()


class TableMerger:
    """Adds up tables one by one, in memory that grows with the distinct tokens."""

    def __init__(self) -> None:
        self._sums = TokenAccumulator()

    def add(self, table: TokenTable) -> None:
        """Adds a table. Raises OverflowError if a sum exceeds 2^63 - 1."""
        self._sums.add_tokens(table.data, table.offsets, table.counts)

    def merged(self) -> TokenTable:
        """Returns the sum of all tables added."""
        return TokenTable(*self._sums.arrays())


def merge_tables(tables: Iterable[TokenTable]) -> TokenTable:
    """Returns one table with the counts of each token added up; an empty one if there are none.

    A single table is returned as it is. Tables are read one after another. Raises OverflowError if
    a sum exceeds 2^63 - 1.

    Examples:
        >>> table = tokcore.TokenTable.from_items([('the', 3), ('then', 2)])
        >>> list(tokcore.merge_tables([table, table]).items())
        [('the', 6), ('then', 4)]
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
    """Returns one table of one or more tables that have no token in common, in their order."""
    if len(tables) == 1:
        return tables[0]
    offsets = row_offsets(np.concatenate([np.diff(table.offsets) for table in tables]))
    data = np.concatenate([table.data for table in tables])
    return TokenTable(data, offsets, np.concatenate([table.counts for table in tables]))


def scale_table(table: TokenTable, factor: Fraction) -> TokenTable:
    """Returns a table with each count multiplied by a factor and rounded, half to even.

    Raises:
        OverflowError: a product exceeds 2^63 - 1.

    Examples:
        >>> table = tokcore.TokenTable.from_items([('the', 3), ('then', 1)])
        >>> list(scale_table(table, Fraction(3, 2)).items())  # of 4.5 and 1.5
        [('the', 4), ('then', 2)]
    """
    # Exact in Python's integers; distinct counts are few.
    values, indices = np.unique(table.counts, return_inverse=True)
    scaled = [round(value * factor) for value in values.tolist()]
    if scaled and scaled[-1] > LARGEST_COUNT:
        raise OverflowError(f'a count of {values[-1]} times {float(factor):.6g} exceeds 2^63 - 1')
    return dataclasses.replace(table, counts=np.array(scaled, np.int64)[indices])


def refuse_unstorable(path: str, data: np.ndarray, offsets: np.ndarray, unstorable: str) -> None:
    """Refuses tokens that the vocabulary file to be learned cannot hold.

    Raises:
        InputError: there is one.
    """
    if not unstorable:
        return
    for start in range(int(offsets[0]), int(offsets[-1]), _BATCH_BYTES):
        text = data[start : min(start + _BATCH_BYTES, int(offsets[-1]))]
        places = np.flatnonzero(np.isin(text, np.frombuffer(unstorable.encode(), np.uint8)))
        if len(places):
            token = int(np.searchsorted(offsets, start + places[0], side='right')) - 1
            beginning = data[offsets[token] : offsets[token + 1]][:100].tobytes()
            what = character_name(chr(data[start + places[0]]))
            raise InputError(
                f'{path} has the token {beginning.decode(errors="replace")!r}, and a token with {what} '
                'cannot be stored in a vocabulary file of this scheme; leave it out, or count the '
                'text again with this version of tokbeam'
            )


def partition_table(table: TokenTable, partitions: int) -> list[tuple[int, TokenTable]]:
    """Returns (partition, table) for each hash partition that has tokens, in ascending order.

    A token's partition is `zlib.crc32(token) * partitions >> 32`: the same in every table and on
    every machine. The order of tokens within a partition stays. Raises ValueError unless `1 <=
    partitions <= 2^31`.
    """
    if not 1 <= partitions <= 1 << 31:
        raise ValueError(f'the number of partitions must be 1 to 2^31, not {partitions}')
    partition_of = _partition_of(table, partitions)
    numbers = np.arange(min(partitions, _MANY_PARTITIONS))
    if partitions > _MANY_PARTITIONS:  # most are empty: only the others get arrays
        numbers, inverse = np.unique(partition_of, return_inverse=True)
        partition_of = inverse.astype(np.uint32)
    sizes = np.zeros((len(numbers), 2), np.int64)
    add_partition_sizes(table.offsets, read_only(partition_of), sizes)
    ends = np.cumsum(sizes, axis=0)
    starts = ends - sizes
    data = np.empty(len(table.data), np.uint8)
    offsets = np.zeros(len(table) + len(numbers), np.int64)
    counts = np.empty(len(table), np.int64)
    scatter_tokens(
        table.data,
        table.offsets,
        table.counts,
        read_only(partition_of),
        np.concatenate([starts, np.zeros((len(numbers), 1), np.int64)], axis=1),
        data,
        offsets,
        counts,
    )
    return [
        (
            int(numbers[i]),
            TokenTable(
                data[starts[i, 1] : ends[i, 1]],
                offsets[starts[i, 0] + i : ends[i, 0] + i + 1],
                counts[starts[i, 0] : ends[i, 0]],
            ),
        )
        for i in np.flatnonzero(sizes[:, 0]).tolist()
    ]


def partition_of(token: bytes, partitions: int) -> int:
    """Returns the partition of a token; see `partition_table`."""
    return zlib.crc32(token) * partitions >> 32


def is_partition(number: int, table: TokenTable, partitions: int) -> bool:
    """Returns whether all tokens of a table are in this hash partition; see `partition_table`."""
    return bool((_partition_of(table, partitions) == number).all())


def _partition_of(table: TokenTable, partitions: int) -> np.ndarray:
    """Returns the partition of each token, uint32."""
    partition_of = np.empty(len(table), np.uint32)
    hash_partitions(table.data, table.offsets, partitions, _CRC32_TABLE, partition_of)
    return partition_of


def read_counts_text(lines: bytes, name: str) -> TokenTable:
    """Returns the table of a text of counts: `b'the 12\\nof\\t7\\n'` gives the: 12, of: 7.

    Each line is split at its last TAB, or else at its last space, and tokens may repeat. A '\\r'
    before the '\\n' is dropped, and blank lines are skipped. Raises InputError, with the file's
    name and the line, for any other line and for a sum past 2^63 - 1.
    """
    data = np.frombuffer(lines, np.uint8)
    bounds, _ = line_bounds(data)
    line_starts, line_ends = map(read_only, (bounds[:-1], bounds[1:] - 1))
    size = len(line_starts)
    damaged = np.zeros(size, np.uint8)
    check_rows(data, line_starts, line_ends, damaged)
    starts = np.empty(size, np.int64)
    ends = np.empty(size, np.int64)
    counts = np.empty(size, np.int64)
    line, tokens, status = _parse_counts(
        data,
        (line_starts, line_ends),
        read_only(damaged),
        whitespace_table(),
        starts,
        ends,
        counts,
    )
    if status != _GOOD:
        raise InputError(f'{name}: line {line + 1} {_REASONS[status]}')
    packed, offsets = pick_ranges(data, read_only(starts[:tokens]), read_only(ends[:tokens]))
    try:
        return distinct_table(packed, offsets, counts[:tokens])
    except OverflowError as error:
        raise InputError(f'{name}: {error}; make them smaller') from error


@kernel_without_allocation
def _find_separator(data, start, end):
    """Returns the position of the last TAB of data[start:end], else of its last space, else -1."""
    space = -1
    for position in range(end - 1, start - 1, -1):
        if data[position] == 0x09:
            return position
        if data[position] == 0x20 and space < 0:
            space = position
    return space


@kernel_without_allocation
def _parse_counts(data, bounds, damaged, whitespace, starts, ends, counts):
    """Splits each line into token and count; returns (lines, tokens, status).

    `bounds` is (starts, ends) of the lines, int64[lines] each, without their '\\n'. It stops at the
    first invalid line, and the lines returned are then its index. Blank lines give no token.
    """
    line_starts, line_ends = bounds
    tokens = 0
    for line in range(len(damaged)):
        if damaged[line]:
            return line, tokens, _NOT_UTF8
        start = line_starts[line]
        end = line_ends[line]
        if strip_start(data, start, end, whitespace) == end:
            continue
        if end > start and data[end - 1] == 0x0D:
            end -= 1
        separator = _find_separator(data, start, end)
        if separator < 0 or separator + 1 == end:
            return line, tokens, _NO_COUNT
        count = np.int64(0)
        for position in range(separator + 1, end):
            digit = np.int64(data[position]) - 0x30
            if digit < 0 or digit > 9:
                return line, tokens, _NO_COUNT
            if count > (LARGEST_COUNT - digit) // 10:
                return line, tokens, _TOO_LARGE
            count = count * 10 + digit
        if separator == start:
            return line, tokens, _NO_TOKEN
        starts[tokens] = start
        ends[tokens] = separator
        counts[tokens] = count
        tokens += 1
    return len(damaged), tokens, _GOOD
