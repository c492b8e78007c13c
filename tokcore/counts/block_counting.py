"""A block of lines to tables of token counts."""

from collections.abc import Sequence

from tokcore.corpus.block_stats import BlockStats, stats_of
from tokcore.corpus.dataset import Block, OnError, Split
from tokcore.corpus.sampling.sampled_rows import RowSample, counted_rows
from tokcore.counts.token_counter import TokenAccumulator
from tokcore.counts.token_index import TokenIndex
from tokcore.counts.token_table import TokenTable
from tokcore.counts.unstorable_rows import UnstorableTokens
from tokcore.text.normalizer import Normalizer
from tokcore.text.pre_tokenizer import PreTokenizer

COUNT_PARTITIONS = 32
"""Hash partitions of a count table, hence files of a COUNTS folder.

With 32, each of 500 million tokens of 10 bytes is in a table of some 300 MB, which one worker still
sorts; with 1,000, a small corpus would leave as many files of a few tokens each. It must not depend
on workers or input, for the folder's bytes depend on it.
"""

SideGroups = tuple[tuple[int, ...], ...]
"""Which sides are counted together: ((0,), (1,)) apart, ((0, 1),) into one table."""


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

    def for_another_thread(self) -> 'BlockCounter':
        """Returns a counter for another thread, which keeps its tokens where this one does."""
        indexes = [each.index for each in self._sums]
        return BlockCounter(
            self._groups, self._normalizer, self._pre_tokenizer, indexes, self._sample,
            self._unstorable,
        )  # fmt: skip

    def nbytes(self, companions: Sequence['BlockCounter'] = ()) -> int:
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

    def finish(self, companions: Sequence['BlockCounter'] = ()) -> tuple[TokenTable, ...]:
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
