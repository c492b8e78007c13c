"""A block of lines to tables of token counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcore.corpus.blocks import block_rows
from tokcore.corpus.dataset import Block, Split
from tokcore.corpus.facts import BlockFacts, facts_of
from tokcore.counts import TokenTable, count_rows
from tokcore.token_accumulator import TokenAccumulator

COUNT_PARTITIONS = 32
"""Hash partitions of a count table, hence files of a COUNTS folder.

With 32, each of 500 million tokens of 10 bytes is in a table of some 300 MB, which one worker still
sorts; with 1,000, a small corpus would leave as many files of a few tokens each. It must not depend
on workers or input, for the folder's bytes depend on it.
"""

SideGroups = tuple[tuple[int, ...], ...]
"""Which sides are counted together: ((0,), (1,)) apart, ((0, 1),) into one table."""


@dataclass(frozen=True)
class CountedBlock:
    tables: tuple[TokenTable, ...]  # one for each group of sides
    facts: BlockFacts


def count_block(
    block: Block, groups: SideGroups, splits: Sequence[Split], on_error: str = 'stop'
) -> CountedBlock:
    """Counts the tokens of a block's kept rows, a table for each group of sides.

    Raises:
        InputError: a line is not UTF-8 or lacks a column, and `on_error` is 'stop'.
    """
    rows = block_rows(block)
    facts = facts_of(block, rows, splits, on_error)
    return CountedBlock(tuple(count_rows(rows, sides) for sides in groups), facts)


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
        return self._sums.nbytes + (self._merged.nbytes if self._merged else 0)

    def add(self, table: TokenTable) -> None:
        """Adds a table. Raises OverflowError if a sum exceeds 2^63 - 1."""
        self._sums.add_tokens(table.data, table.offsets, table.counts)
        self._merged = None

    def merged(self) -> TokenTable:
        """Returns the sum of all tables added."""
        if self._merged is None:
            self._merged = TokenTable(*self._sums.arrays())
        return self._merged
