"""Cuts tokens by the vocabulary so far, and counts what starts at the cuts.

A token is cut greedily into the longest subtokens, from the left, by walking a trie over the bytes
of its escaped form. What starts at a cut is counted as a suffix. If it is known which suffixes can
still matter (the *frequent* ones, see `select_partition`'s `min_weight`), the same walk finds the
frequent one that begins the suffix, and a number is added to a row; otherwise the suffix is listed.

An edge of the trie is one uint64 in an open-addressing table, 0 where free: the node it leaves (36
bits with the byte it takes), 27 bits for the row of the frequent suffix that ends there (+ 1), and
a bit if a subtoken does. A node is named by the slot of its edge + 2, the root is 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.bytes import GOLDEN_RATIO, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.learning.ranked_text import escaped_length
from tokcore.subword.partitioned.suffix_tables import (
    PrefixPartitions,
    SuffixRows,
    SuffixTable,
    pack_suffixes,
    read_row_head,
)
from tokcore.text.t2t import BACKSLASH, ESCAPED_LINE_FEED, LETTER_U, LINE_FEED, UNDERSCORE
from tokcore.text.unicode import next_character

# Bytes of suffixes that a batch may list, each in full: with sorting, some eight times as much
# memory for each thread; with half, tables repeat more of each other.
BATCH_BYTES = 32 << 20

_MOST_BYTES = 1 << 30  # positions in a batch are int32

_SPREAD = np.uint64(GOLDEN_RATIO)
_ROOT = np.uint64(1)
_KEY_SHIFT = np.uint64(28)
_LOW_BITS = np.uint64((1 << 28) - 1)
SUBTOKEN_BIT = np.uint64(1)
ROW_BITS, FIRST_ROW = _LOW_BITS - SUBTOKEN_BIT, np.uint64(2)
_ONE = np.uint64(1)
_BYTE = np.uint64(8)
_HALF = np.uint64(32)

MOST_NODES = 1 << 26
"""Slots are numbered with 28 bits and at most half of them are taken; rows with 27."""


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


@kernel_without_allocation
def survey_tokens(data, offsets, counts, mask, seen, lengths, picked):
    """Marks the code points seen, and the tokens of a sample: those whose hash has no bit of
    `mask`.

    `lengths` gets the characters of each token's escaped form. The tokens are valid UTF-8.
    """
    for token in range(len(counts)):
        digest = np.uint64(0xCBF29CE484222325)  # FNV-1a
        place, end = offsets[token], offsets[token + 1]
        length = 1
        while place < end:
            point, place = next_character(data, place)
            seen[point] = 1
            digest = (digest ^ np.uint64(point)) * np.uint64(0x100000001B3)
            length += escaped_length(point)
        lengths[token] = length
        digest ^= digest >> _HALF
        digest *= _SPREAD
        picked[token] = (digest >> _HALF) & mask == np.uint64(0)


@kernel_without_allocation
def table_size(nodes):
    """The smallest power of two that is at least twice the nodes."""
    size = 4
    while size < 2 * nodes:
        size *= 2
    return size


@kernel_without_allocation
def _insert(edges, node, byte):
    """Returns the slot of an edge, which is made if there is none."""
    mask = np.uint64(len(edges) - 1)
    key = node << _BYTE | np.uint64(byte)
    slot = (key * _SPREAD >> _HALF) & mask
    while edges[slot] >> _KEY_SHIFT != key and edges[slot] != np.uint64(0):
        slot = (slot + _ONE) & mask
    if edges[slot] == np.uint64(0):
        edges[slot] = key << _KEY_SHIFT
    return slot


@kernel
def add_strings(data, longest, edges, cleared, mark, step):
    """Adds a table's strings, and puts mark + i * step in the `cleared` bits of the i-th's edge.

    All three are uint64.
    """
    path = np.empty(longest + 1, np.uint64)
    path[0] = _ROOT
    place = 0
    while place < len(data):
        common, more, _, place = read_row_head(data, place)
        for i in range(more):
            slot = _insert(edges, path[common + i], data[place + i])
            path[common + i + 1] = slot + np.uint64(2)
        place += more
        slot = path[common + more] - np.uint64(2)
        edges[slot] = edges[slot] & ~cleared | mark
        mark += step


@kernel_without_allocation
def _walk(text, place, end, edges):
    """Follows the suffix text[place:end] down the trie.

    Returns where the longest subtoken ends that it begins with (`place` if none), and the number of
    the last row met + 1, or 0.
    """
    mask = np.uint64(len(edges) - 1)
    node, row = _ROOT, np.uint64(0)
    reach, cut = place, place
    while reach < end:
        key = node << _BYTE | np.uint64(text[reach])
        slot = (key * _SPREAD >> _HALF) & mask
        edge = edges[slot]
        while edge >> _KEY_SHIFT != key and edge != np.uint64(0):
            slot = (slot + _ONE) & mask
            edge = edges[slot]
        if edge == np.uint64(0):
            break
        node = slot + np.uint64(2)
        reach += _ONE
        if edge & SUBTOKEN_BIT:
            cut = reach
        found = (edge & ROW_BITS) >> _ONE
        if found:
            row = found
    return cut, row


@kernel_without_allocation
def weigh_segments(text, starts, counts, edges, weights):
    """Adds each token's count to the row where the suffix at each of its cuts leaves the trie.

    Returns whether a character was in no subtoken.
    """
    last = np.uint64(len(weights) - 1)
    for token in range(len(counts)):
        place, end = np.uint64(starts[token]), np.uint64(starts[token + 1])
        count = counts[token]
        while place < end:
            cut, row = _walk(text, place, end, edges)
            weights[row - _ONE if row else last] += count
            if cut == place:
                return True
            place = cut
    return False


@kernel_without_allocation
def list_segments(starts, edges, longest, lower, upper, rows):
    """Lists in `SuffixRows` the suffixes at the cuts that may be from `lower` on and below `upper`.

    Without edges every character is cut. Those beyond a border but alike in its first seven bytes
    are listed too. Returns their number, or -1 if a character was in no subtoken.
    """
    text = rows.text
    lower_key, lower_shift = _border_key(lower)
    upper_key, upper_shift = _border_key(upper)
    bordered = len(lower) > 0 or len(upper) > 0
    listed = 0
    for token in range(len(starts) - 1):
        place, end = np.uint64(starts[token]), np.uint64(starts[token + 1])
        while place < end:
            cut = place
            if len(edges) == 0:
                cut += _ONE
                while cut < end and text[cut] & 0xC0 == 0x80:
                    cut += _ONE
            else:
                cut, _ = _walk(text, place, end, edges)
                if cut == place:
                    return -1
            length = np.int64(end - place)
            if length > longest:
                length = _bytes_of(text, place, end, longest)
            wanted = True
            if bordered:
                leading = _leading_key(text, place, length)
                wanted = leading >> lower_shift >= lower_key and (
                    len(upper) == 0 or leading >> upper_shift <= upper_key
                )
            if wanted:
                rows.places[listed] = place
                rows.lengths[listed] = length
                rows.owners[listed] = token
                listed += 1
            place = cut
    return listed


@kernel_without_allocation
def _bytes_of(text, place, end, characters):
    """The bytes of so many characters, or of all until the end."""
    reach = place
    left = np.int64(characters)
    while reach < end:
        if text[reach] & 0xC0 != 0x80:
            if left == 0:
                break
            left -= 1
        reach += _ONE
    return np.int64(reach - place)


@kernel_without_allocation
def _leading_key(text, place, length):
    key = np.int64(0)
    for i in range(7):
        key = key << 8 | (np.int64(text[place + np.uint64(i)]) if i < length else np.int64(0))
    return key


@kernel_without_allocation
def _border_key(border):
    """A border's first seven bytes as a number, and by how much seven bytes are shifted to it."""
    length = min(len(border), 7)
    key = np.int64(0)
    for i in range(length):
        key = key << 8 | np.int64(border[i])
    return key, 8 * (7 - length)


@kernel_without_allocation
def escaped_sizes(data, offsets, sizes):
    """Writes the bytes of each token's escaped form."""
    for token in range(len(sizes)):
        size = np.int64(1)
        for place in range(offsets[token], offsets[token + 1]):
            size += escaped_length(data[np.uint64(place)])
        sizes[token] = size


@kernel_without_allocation
def escape_batch(data, offsets, first, last, text):
    """Writes the escaped forms of tokens one after another."""
    written = np.uint64(0)
    for token in range(first, last):
        for place in range(offsets[token], offsets[token + 1]):
            byte = data[np.uint64(place)]
            if byte == LINE_FEED:
                for each in ESCAPED_LINE_FEED:
                    text[written] = each
                    written += _ONE
                continue
            if byte == BACKSLASH or byte == UNDERSCORE:
                text[written] = BACKSLASH
                written += _ONE
                if byte == UNDERSCORE:
                    byte = np.uint8(LETTER_U)
            text[written] = byte
            written += _ONE
        text[written] = UNDERSCORE
        written += _ONE
