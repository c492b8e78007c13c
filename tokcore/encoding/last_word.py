"""The last word of a corpus, for learners that depend on it.

SentencePiece's trainer goes through the sentences, and each empty one changes places with the last, which leaves.
With E empty sentences, the sentence that ends up last is number E from the end, counted from 0; or the first after
it that is not empty. So E is counted first, and then only the end of the corpus is read again.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.archive_reading import reading_on
from tokcore.corpus.corpus import ITEM_BYTES, OpenBinary, Split, WorkItem, split_of
from tokcore.corpus.formats import format_reader, index_ranges, plan_items, read_blocks
from tokcore.counts.sampling import RowSample, number_blocks, rows_to_count

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.encoding.scheme import Scheme

SENTENCE_END = '\0'
"""What tokens end with that end a sentence; alone, it is the token of an empty sentence."""


def empty_sentences(table: TokenTable) -> int:
    """Returns how many empty sentences were counted."""
    of_a_byte = np.flatnonzero(np.diff(table.offsets) == 1)
    is_end = table.data[table.offsets[of_a_byte]] == ord(SENTENCE_END)
    return int(table.counts[of_a_byte[is_end]].sum())


def with_last_word(
    table: TokenTable, end: CorpusEnd, sides: Sequence[int], earlier: Iterable[bytes] = ()
) -> TokenTable:
    """Returns a whole table of some sides with the last word of its corpus.

    The tokens `earlier` end the sentences before this corpus.
    """
    word = last_word(empty_sentences(table), end, sides, earlier)
    return dataclasses.replace(table, last_word=word)


def last_word(
    empty: int, end: CorpusEnd, sides: Sequence[int], earlier: Iterable[bytes] = ()
) -> bytes:
    """Returns the last word of a corpus with so many empty sentences; b'' if there is none."""
    tokens = [*earlier, *end.last_tokens(empty + 1, sides)][-empty - 1 :]
    return next((token[:-1] for token in tokens if token != SENTENCE_END.encode()), b'')


@dataclass(frozen=True)
class CorpusEnd:
    """The end of a corpus that was counted; all sentences of a side come before those of the next.

    Attributes:
        scheme: whose `pre_tokenizer` has `last_tokens`.
        splits: the corpus.
        open_binary: opens its files.
        items: all of it, in order; None: `work_items`.
        sides: all that were counted at once.
        sample: the rows that were counted; None: all.
    """

    scheme: Scheme
    splits: Sequence[Split]
    open_binary: OpenBinary
    items: Sequence[WorkItem] | None = None
    sides: frozenset[int] = frozenset([0])
    sample: RowSample | None = None

    def last_tokens(self, most: int, sides: Sequence[int]) -> list[bytes]:
        """Returns the tokens that end the last sentences of some sides, in order."""
        items = work_items(self.splits, self.open_binary) if self.items is None else self.items
        tokens: list[bytes] = []
        for side, item in itertools.product(reversed(sides), reversed(items)):
            if len(tokens) < most:
                tokens = [*self._of_item(most, item, side), *tokens][-most:]
        return tokens

    def _of_item(self, most: int, item: WorkItem, side: int) -> Iterator[bytes]:
        pre_tokenizer: typing.Any = self.scheme.pre_tokenizer
        split = split_of(self.splits, item.split, item.file_index)
        assert split is not None  # the items are of these splits
        with reading_on(self.open_binary, [item.files]) as open_binary:
            blocks = read_blocks(item, open_binary, max_line_bytes=split.max_line_bytes)
            for block in blocks if item.first_line is None else number_blocks(item, blocks):
                normalizer = self.scheme.counting_normalizer
                counted = rows_to_count(block, self.splits, normalizer, self.sides, self.sample)
                if self.scheme.row_check is not None:
                    counted = self.scheme.row_check.reject_rows(counted, self.sides)
                yield from pre_tokenizer.last_tokens(counted.sides[side], most)


def work_items(splits: Sequence[Split], open_binary: OpenBinary) -> list[WorkItem]:
    """Returns the work items of a corpus, in order."""
    items: list[WorkItem] = []
    for split in splits:
        reader = format_reader(split.format)
        index = [reader.index(part, open_binary) for part in index_ranges(split, ITEM_BYTES)]
        items += plan_items(split, index)
    return items
