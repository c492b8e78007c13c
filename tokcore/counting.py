"""A block of lines to tables of token counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcore.corpus.blocks import block_rows
from tokcore.corpus.dataset import Block, Split
from tokcore.corpus.facts import BlockFacts, facts_of
from tokcore.counts import TokenTable, count_rows, merge_tables

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
    """Adds up tables, and merges as soon as those that wait outweigh the merged one.

    So what is held is at most about twice the merged table and one more, however many come, and
    every token is moved a number of times that grows with the logarithm only.
    """

    def __init__(self) -> None:
        self._merged: TokenTable | None = None
        self._waiting: list[TokenTable] = []
        self._waiting_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._waiting_bytes + (self._merged.nbytes if self._merged else 0)

    def add(self, table: TokenTable) -> None:
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._merged is None or self._waiting_bytes >= self._merged.nbytes:
            self.merged()

    def merged(self) -> TokenTable:
        """Returns the sum of all tables added."""
        if self._waiting or self._merged is None:
            tables = ([self._merged] if self._merged is not None else []) + self._waiting
            self._merged = merge_tables(tables)
            self._waiting, self._waiting_bytes = [], 0
        return self._merged
