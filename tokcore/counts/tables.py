"""Tables of token counts: from a block of lines, from text, merged, and cut into hash partitions.

Sums do not depend on any order.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import UNSTORABLE_TOKEN, Block, OnError, Reject, Split
from tokcore.corpus.line_index import line_bounds
from tokcore.corpus.sampling import CountedRows, RowSample, counted_rows
from tokcore.corpus.stats import BlockStats, stats_of
from tokcore.counts.counting import TokenAccumulator, TokenIndex
from tokcore.counts.kernels import (
    LARGEST_COUNT,
    add_partition_sizes,
    find_partitions,
    scatter_tokens,
)
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

With 32, each of 500 million tokens of 10 bytes is in a table of some 300 MB, which one worker still
sorts; with 1,000, a small corpus would leave as many files of a few tokens each. It must not depend
on workers or input, for the folder's bytes depend on it.
"""

SideGroups = tuple[tuple[int, ...], ...]
"""Which sides are counted together: ((0,), (1,)) apart, ((0, 1),) into one table."""

_MANY_PARTITIONS = 1 << 16
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

    Not for use from several threads at once, but each may have a companion of the same counter.
    """

    def __init__(
        self,
        groups: SideGroups,
        normalizer: Normalizer,
        pre_tokenizer: PreTokenizer,
        indexes: Sequence[TokenIndex] | None = None,
        sample: RowSample | None = None,
        unstorable: UnstorableTokens | None = None,
    ):
        """Takes where each group's tokens are kept, if not apart from all other counters'.

        With a sample, what is outside it is not counted. Rows with tokens that are `unstorable` are
        rejected.
        """
        self._groups = groups
        self._normalizer = normalizer
        self._pre_tokenizer = pre_tokenizer
        self._sample, self._unstorable = sample, unstorable
        self._sides = frozenset(side for sides in groups for side in sides)
        self._sums = [TokenAccumulator(each) for each in indexes or [None] * len(groups)]

    def for_another_thread(self) -> BlockCounter:
        """Returns a counter for another thread, which keeps its tokens where this one does."""
        indexes = [each.index for each in self._sums]
        return BlockCounter(
            self._groups, self._normalizer, self._pre_tokenizer, indexes, self._sample,
            self._unstorable,
        )  # fmt: skip

    def nbytes(self, companions: Sequence[BlockCounter] = ()) -> int:
        """Returns the bytes held: the tokens, and the counts of this and of its companions."""
        counts = sum(each.nbytes for counter in (self, *companions) for each in counter._sums)
        return counts + sum(each.index.nbytes for each in self._sums)

    def add(self, block: Block, splits: Sequence[Split], on_error: OnError = 'stop') -> BlockStats:
        """Counts the tokens of a block's kept rows, or of those in the sample.

        Raises:
            InputError: a line is not UTF-8 or lacks a column, or one of its tokens cannot be stored,
                and `on_error` is 'stop'; nothing of the block is counted then.
        """
        counted = counted_rows(block, splits, self._normalizer, self._sides, self._sample)
        if self._unstorable is not None:
            counted = self._unstorable.left_out(counted, self._sides)
        facts = stats_of(block, counted.rows, splits, on_error)
        for sides, sums in zip(self._groups, self._sums, strict=True):
            for index in sides:
                side = counted.sides[index]
                sums.add_rows(side.text, side.starts, side.ends, self._pre_tokenizer)
        return facts

    def finish(self, companions: Sequence[BlockCounter] = ()) -> tuple[TokenTable, ...]:
        """Returns the tables, with all companions' counts; none of them may be used any more."""
        return tuple(
            TokenTable(*sums.finish(each._sums[group] for each in companions))
            for group, sums in enumerate(self._sums)
        )


class TableMerger:
    """Adds up tables as they come, so that none of them waits.

    What is held follows the distinct tokens and not the number of tables. (Waiting until others
    outweigh the sum, and then merging all anew, moved every token a few times more.)
    """

    def __init__(self) -> None:
        self._sums = TokenAccumulator()
        self._merged: TokenTable | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held, room to grow included."""
        held = self._merged.nbytes if self._merged else 0
        return held + self._sums.index.nbytes + self._sums.nbytes

    def add(self, table: TokenTable) -> None:
        """Adds a table. Raises OverflowError if a sum exceeds 2^63 - 1."""
        self._sums.add_tokens(table.data, table.offsets, table.counts)
        self._merged = None

    def merged(self) -> TokenTable:
        """Returns the sum of all tables added."""
        if self._merged is None:
            self._merged = TokenTable(*self._sums.arrays())
        return self._merged


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
    find_partitions(*packed, partitions, _CRC32_TABLE, found)
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
    find_partitions(*packed, partitions, _CRC32_TABLE, found)
    numbers = np.arange(min(partitions, _MANY_PARTITIONS))
    if partitions > _MANY_PARTITIONS:  # most are empty: only the others are numbered
        numbers, found = np.unique(found, return_inverse=True)
        found = found.astype(np.uint32)
    sizes = np.zeros((len(numbers), 2), np.int64)
    add_partition_sizes(packed[1], read_only(found), sizes)
    ends = np.cumsum(sizes, axis=0)
    starts = ends - sizes
    data = np.empty(len(table.data), np.uint8)
    offsets = np.zeros(len(table) + len(numbers), np.int64)
    counts = np.empty(len(table), np.int64)
    scatter_tokens(
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


def read_counts_text(lines: bytes, name: str) -> TokenTable:
    """Returns the table of a text of counts: `b'the 12\\nof\\t7\\n'` gives the: 12, of: 7.

    Each line is split at its last TAB or else its last space, the token taken as it stands; repeats
    are added up, a '\\r' before the '\\n' is dropped and blank lines are passed over. Raises
    InputError, with the file's name and the line, for any other line and for a sum past 2^63 - 1.
    """
    data = np.frombuffer(lines, np.uint8)
    found = tuple(map(read_only, line_bounds(data)))
    size = len(found[0])
    damaged = np.zeros(size, np.uint8)
    check_rows(data, *found, damaged)
    starts = np.empty(size, np.int64)
    ends = np.empty(size, np.int64)
    counts = np.empty(size, np.int64)
    line, tokens, verdict = parse_counts(
        data, found, read_only(damaged), whitespace_table(), starts, ends, counts
    )
    if verdict != _GOOD:
        raise InputError(f'{name}: line {line + 1} {_REASONS[verdict]}')
    packed, offsets = pick_ranges(data, read_only(starts[:tokens]), read_only(ends[:tokens]))
    try:
        return distinct_table(packed, offsets, counts[:tokens])
    except OverflowError as error:
        raise InputError(f'{name}: {error}; make them smaller') from error


@kernel_without_allocation
def find_separator(data, start, end):
    """Where the last TAB of data[start:end] is, else its last space, else -1."""
    space = -1
    for position in range(end - 1, start - 1, -1):
        if data[position] == 0x09:
            return position
        if data[position] == 0x20 and space < 0:
            space = position
    return space


@kernel_without_allocation
def parse_counts(data, lines, damaged, whitespace, starts, ends, counts):
    """Cuts each line into token and count; returns (lines, tokens, verdict).

    `lines` is (starts, ends), int64[lines] each, without their '\\n'.

    It stops before the first line that is not good, so `lines` is then its index. Blank lines give
    no token.
    """
    line_starts, line_ends = lines
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
        separator = find_separator(data, start, end)
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


@dataclass(frozen=True)
class UnstorableTokens:
    """Which tokens cannot be entries of a vocabulary.

    Attributes:
        characters: of ASCII; a token with one of them is such.
        tokens: cuts the text of a row into tokens, in plain Python: it is called for rows that have
            such a character, which lines have not.
    """

    characters: str
    tokens: Callable[[str], Iterable[str]]

    def left_out(self, counted: CountedRows, sides: Iterable[int]) -> CountedRows:
        """Returns rows without those that have such a token on one of the sides counted.

        Lines of a sample that is of each side by itself stay as they are.
        """
        rows = counted.rows
        if counted.sides is not rows.sides:
            return counted
        rejects: dict[int, Reject] = {}
        for number in sides:
            for row in self._rows_with(rows.sides[number]):
                found = self._found(rows.sides[number].row(row))
                if found and row not in rejects:
                    at = int(rows.offsets[row])
                    line = rows.sides[number].row(row).encode()
                    rejects[row] = Reject(UNSTORABLE_TOKEN, 0, at, at, line, why=_why(found))
        if not rejects:
            return counted
        stays = np.ones(len(rows), bool)
        stays[list(rejects)] = False
        left = rows.at(np.flatnonzero(stays))
        more = tuple(rejects[row] for row in sorted(rejects))
        left = dataclasses.replace(left, rejects=(*rows.rejects, *more))
        return CountedRows(left, left.sides)

    def _rows_with(self, side: Side) -> Iterator[int]:
        """Yields the rows of a side that have one of the characters."""
        wanted = np.zeros(256, bool)
        wanted[list(self.characters.encode())] = True
        places = np.flatnonzero(wanted[side.text])
        # Between rows stands what is nobody's, line feeds above all.
        first = np.searchsorted(places, side.starts)
        is_within = np.append(places, np.iinfo(np.int64).max)[first] < side.ends
        yield from np.flatnonzero(is_within).tolist()

    def _found(self, text: str) -> str | None:
        """Returns the character that one of a text's tokens has."""
        for token in self.tokens(text):
            for character in self.characters:
                if character in token:
                    return character
        return None


def _why(character: str) -> str:
    return (
        f'a token of it has {character_name(character)}, and a vocabulary file of this scheme holds '
        'none; write it otherwise, or leave such rows out with --on-error=skip'
    )
