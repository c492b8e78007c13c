"""Cutting tokens by the vocabulary so far, and what is counted where they are cut.

A token is cut greedily into the longest subtokens, from the left, by walking a trie over the bytes
of its escaped form. What starts at a cut is counted as a suffix. If it is known which suffixes can
still matter (the *frequent* ones, see `select_partition`'s `min_weight`), the same walk finds the frequent one that
begins the suffix, and a number is added to a row; otherwise the suffix itself is listed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.errors import InputError
from tokcore.subword.partitioned.prefix_partitions import PrefixPartitions
from tokcore.subword.partitioned.segmenting_kernels import (
    FIRST_ROW,
    MOST_NODES,
    ROW_BITS,
    SUBTOKEN_BIT,
    add_strings,
    escape_batch,
    escaped_sizes,
    list_segments,
    table_size,
    weigh_segments,
)
from tokcore.subword.partitioned.suffix_packing import SuffixRows, pack_suffixes
from tokcore.subword.partitioned.suffix_table import SuffixTable

# Bytes of suffixes that a batch may list, each in full: with sorting, some eight times as much
# memory for each thread; with half, tables repeat more of each other.
BATCH_BYTES = 32 << 20

_MOST_BYTES = 1 << 30  # positions in a batch are int32


@dataclass(frozen=True)
class EscapedBatch:
    """Tokens in their escaped form, UTF-8, one after another."""

    text: np.ndarray  # uint8
    starts: np.ndarray  # int64[tokens + 1]
    counts: np.ndarray  # int64[tokens]


def escaped_batches(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, longest: int
) -> Iterator[EscapedBatch]:
    """Escapes tokens in batches whose suffixes, each of up to `longest` characters, are bounded."""
    sizes = np.empty(len(counts), np.int64)
    escaped_sizes(data, offsets, sizes)
    # A suffix has no more bytes than are left of its token, nor than four for each character.
    reach = np.minimum(sizes, min(longest, _MOST_BYTES) * 4)
    listed = np.cumsum(sizes * reach - reach * (reach - 1) // 2)
    first = 0
    while first < len(counts):
        before = int(listed[first - 1]) if first else 0
        last = int(np.searchsorted(listed, before + BATCH_BYTES, side='right'))
        last = max(last, first + 1)
        starts = row_offsets(sizes[first:last])
        if starts[-1] > _MOST_BYTES:
            raise InputError(f'a token of {starts[-1]} bytes is too long; leave it out')
        text = np.empty(int(starts[-1]), np.uint8)
        escape_batch(data, offsets, first, last, text)
        yield EscapedBatch(read_only(text), read_only(starts), read_only(counts[first:last]))
        first = last


def pack_all_suffixes(
    batch: EscapedBatch, longest: int, groups: PrefixPartitions, group_range: tuple[int, int]
) -> list[tuple[int, SuffixTable]]:
    """Packs the suffixes at every character: the first iteration's."""
    return pack_suffixes(_listed(batch, np.zeros(0, np.uint64), longest, groups, group_range),
                         groups, group_range)  # fmt: skip


class Segmenter:
    """Cuts by one vocabulary; read-only, so that threads can share it.

    Args:
      vocabulary: the subtokens, every character of the tokens among them.
      reserved: reserved tokens in their escaped form; they cut too.
      frequent: tables of the suffixes that can matter, one for each group; None if those are not
        known or too many.

    Raises:
      InputError: the trie would have more than MOST_NODES nodes.
    """

    def __init__(
        self,
        vocabulary: SuffixTable,
        reserved: Sequence[str],
        frequent: Sequence[SuffixTable] | None,
    ):
        reserved_table = SuffixTable.from_items((each.encode(), 0) for each in reserved)
        tables = [vocabulary, reserved_table]
        self._frequent = frequent
        nodes = sum(table.added for table in [*tables, *(frequent or ())])
        if nodes > MOST_NODES:
            raise InputError(
                f'a vocabulary of {vocabulary.rows} subtokens is too large to cut by; give a '
                '--min-count-range that begins higher'
            )
        self._edges = np.zeros(table_size(nodes), np.uint64)
        for table in tables:
            self._add_strings(table, SUBTOKEN_BIT, SUBTOKEN_BIT, np.uint64(0))
        self._rows = 0
        for table in frequent or ():
            # A shared string may be a row of two groups; either may have its weight.
            self._add_strings(table, ROW_BITS, np.uint64(self._rows + 1) * FIRST_ROW, FIRST_ROW)
            self._rows += table.rows
        self._edges = read_only(self._edges)

    def _add_strings(
        self, table: SuffixTable, cleared: np.uint64, mark: np.uint64, step: np.uint64
    ) -> None:
        add_strings(read_only(table.data), table.longest, self._edges, cleared, mark, step)

    @property
    def has_frequent(self) -> bool:
        return self._frequent is not None

    def empty_weights(self) -> np.ndarray:
        """Returns int64[frequent suffixes + 1], all 0; the last is for suffixes that none begins."""
        return np.zeros(self._rows + 1, np.int64)

    def weigh(self, batch: EscapedBatch, weights: np.ndarray) -> None:
        """Adds the weights of the suffixes at the starts of segments to those of the frequent ones."""
        if weigh_segments(batch.text, batch.starts, batch.counts, self._edges, weights):
            raise ValueError('a token has a character that the vocabulary lacks')

    def tables(self, weights: np.ndarray) -> Iterator[tuple[int, SuffixTable]]:
        """Yields (group, table) of what `weigh` has added up, where there is any."""
        if weights[-1]:
            raise ValueError('a token was met that the first iteration had not')
        first = 0
        for group, table in enumerate(self._frequent or ()):
            weighed = table.with_weights(weights, first)
            first += table.rows
            if weighed.rows:
                yield group, weighed

    def pack(
        self,
        batch: EscapedBatch,
        longest: int,
        groups: PrefixPartitions,
        group_range: tuple[int, int],
    ) -> list[tuple[int, SuffixTable]]:
        """Packs the suffixes at the starts of segments, each of up to `longest` characters."""
        return pack_suffixes(_listed(batch, self._edges, longest, groups, group_range),
                             groups, group_range)  # fmt: skip


def _listed(
    batch: EscapedBatch,
    edges: np.ndarray,
    longest: int,
    groups: PrefixPartitions,
    group_range: tuple[int, int],
) -> SuffixRows:
    lower, upper = groups.bounds(group_range[0])[0], groups.bounds(group_range[1] - 1)[1]
    borders = (np.frombuffer(border, np.uint8) for border in (lower, upper))
    rows = SuffixRows.empty(batch.text, batch.counts)
    listed = list_segments(batch.starts, edges, longest, *borders, rows)
    if listed < 0:
        raise ValueError('a token has a character that the vocabulary lacks')
    return rows.first(listed)
