"""Segments tokens by the vocabulary so far, and counts the suffixes that start at segments.

A token is segmented greedily into the longest subtokens, from the left, by walking a trie over the
bytes of its escaped form. If the *frequent* suffixes are known (see `min_weight` of
`select_partition`), the same walk finds the longest of them that is a prefix of the suffix at each
segment, and the token's count is added to its weight. Otherwise these suffixes are listed.

An edge of the trie is a uint64 in an open-addressing table, 0 if free: the parent node and the byte
(36 bits), 27 bits for the row + 1 of the frequent suffix that ends there, and one bit whether a
subtoken ends there. A node's number is the slot of its edge + 2; the root is 1.

A `TokenSurvey` has the alphabet of all tokens, sums over them, and a sample of their suffixes: the
tokens whose hash ends in a number of zero bits, and a smaller sample within it with two more bits. The
growth of the distinct suffixes from the smaller to the larger sample predicts the size of the table
of all suffixes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.bytes import GOLDEN_RATIO, pick_ranges, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.learning.ranked_text import escaped_length
from tokcore.subword.suffix_tables import (
    PrefixPartitions,
    SuffixRows,
    SuffixTable,
    SuffixTableMerger,
    merge_suffix_tables,
    pack_suffixes,
    read_row_head,
)
from tokcore.text.t2t import BACKSLASH, ESCAPED_LINE_FEED, LETTER_U, LINE_FEED, UNDERSCORE
from tokcore.text.unicode import CODE_POINTS, next_character

# Most bytes of the suffixes of a batch, written in full. Sorting takes some eight times as much
# memory in each thread; with half of it, more strings would be repeated in several tables.
BATCH_BYTES = 32 << 20

_MAX_BATCH_BYTES = 1 << 30  # positions in a batch are int32

_SPREAD = np.uint64(GOLDEN_RATIO)
_ROOT = np.uint64(1)
_KEY_SHIFT = np.uint64(28)
_LOW_BITS = np.uint64((1 << 28) - 1)
_SUBTOKEN_BIT = np.uint64(1)
_ROW_BITS, _FIRST_ROW = _LOW_BITS - _SUBTOKEN_BIT, np.uint64(2)
_ONE = np.uint64(1)
_BYTE = np.uint64(8)
_32_BITS = np.uint64(32)

_ONE_GROUP = PrefixPartitions(())
_NESTED_BITS = 2

# In characters. Longer suffixes would not improve the borders, and a few huge tokens would fill a
# worker's memory.
_SAMPLED_LENGTH = 256

MAX_NODES = 1 << 26
"""Slots have 28 bits, and at most half of them are used; rows have 27 bits."""


@dataclass(frozen=True)
class EscapedBatch:
    """Escaped tokens, one after another."""

    text: np.ndarray  # uint8, UTF-8
    starts: np.ndarray  # int64[tokens + 1]
    counts: np.ndarray  # int64[tokens]


def escaped_batches(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, longest: int
) -> Iterator[EscapedBatch]:
    """Yields escaped tokens in batches whose suffixes of up to `longest` characters are bounded."""
    sizes = np.empty(len(counts), np.int64)
    _escaped_sizes(data, offsets, sizes)
    # A suffix ends with its token, and a character has at most four bytes.
    reach = np.minimum(sizes, min(longest, _MAX_BATCH_BYTES) * 4)
    suffix_bytes = np.cumsum(sizes * reach - reach * (reach - 1) // 2)
    first = 0
    while first < len(counts):
        before = int(suffix_bytes[first - 1]) if first else 0
        last = int(np.searchsorted(suffix_bytes, before + BATCH_BYTES, side='right'))
        last = max(last, first + 1)
        starts = row_offsets(sizes[first:last])
        if starts[-1] > _MAX_BATCH_BYTES:
            raise InputError(f'a token of {starts[-1]} bytes is too long; leave it out')
        text = np.empty(int(starts[-1]), np.uint8)
        _escape_batch(data, offsets, first, last, text)
        yield EscapedBatch(read_only(text), read_only(starts), read_only(counts[first:last]))
        first = last


def pack_all_suffixes(
    batch: EscapedBatch,
    longest: int,
    groups: PrefixPartitions,
    group_range: tuple[int, int],
    edges: np.ndarray = read_only(np.zeros(0, np.uint64)),
) -> list[tuple[int, SuffixTable]]:
    """Packs the suffixes at every character, as the first iteration counts them.

    With the edges of a `Segmenter`, packs the suffixes that start at segments.
    """
    lower = np.frombuffer(groups.bounds(group_range[0])[0], np.uint8)
    upper = np.frombuffer(groups.bounds(group_range[1] - 1)[1], np.uint8)
    rows = SuffixRows.empty(batch.text, batch.counts)
    size = _list_suffixes(batch.starts, edges, longest, lower, upper, rows)
    if size < 0:
        raise ValueError('a token has a character that the vocabulary lacks')
    return pack_suffixes(rows.first(size), groups, group_range)


class Segmenter:
    """Segments tokens by one vocabulary; read-only, so that threads can share it.

    Args:
      vocabulary: the subtokens, including every character of the tokens.
      reserved: escaped reserved tokens, which are subtokens too.
      frequent: tables of the frequent suffixes, one for each group; None if they are unknown or too
        many.

    Raises:
      InputError: the trie would have more than MAX_NODES nodes.
    """

    def __init__(
        self,
        vocabulary: SuffixTable,
        reserved: Sequence[str],
        frequent: Sequence[SuffixTable] | None,
    ):
        reserved_table = SuffixTable.from_items((token.encode(), 0) for token in reserved)
        tables = [vocabulary, reserved_table]
        self._frequent = frequent
        nodes = sum(table.added for table in [*tables, *(frequent or ())])
        if nodes > MAX_NODES:
            raise InputError(
                f'a vocabulary of {vocabulary.rows} subtokens is too large to segment by; give a '
                '--min-count-range that begins higher'
            )
        # At least twice as many as there are nodes.
        edges = np.zeros(1 << max(2, (2 * int(nodes) - 1).bit_length()), np.uint64)
        marks = [(table, _SUBTOKEN_BIT, _SUBTOKEN_BIT, np.uint64(0)) for table in tables]
        self._rows = 0
        for table in frequent or ():
            # A shared string may be a row of two groups; either one may get its weight.
            marks.append((table, _ROW_BITS, np.uint64(self._rows + 1) * _FIRST_ROW, _FIRST_ROW))
            self._rows += table.rows
        for table, cleared, mark, step in marks:
            _add_strings(read_only(table.data), table.longest, edges, cleared, mark, step)
        self._edges = read_only(edges)

    @property
    def has_frequent(self) -> bool:
        return self._frequent is not None

    def empty_weights(self) -> np.ndarray:
        """Returns int64[frequent suffixes + 1] zeros; the last is for all other suffixes."""
        return np.zeros(self._rows + 1, np.int64)

    def weigh(self, batch: EscapedBatch, weights: np.ndarray) -> None:
        """Adds the weights of the suffixes at segments to those of their frequent prefixes."""
        if _weigh_segments(batch.text, batch.starts, batch.counts, self._edges, weights):
            raise ValueError('a token has a character that the vocabulary lacks')

    def tables(self, weights: np.ndarray) -> Iterator[tuple[int, SuffixTable]]:
        """Yields (group, table) of the nonzero weights that `weigh` has added up."""
        if weights[-1]:
            raise ValueError('a token has a suffix that the first iteration did not count')
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
        """Packs the suffixes at segment starts, each of up to `longest` characters."""
        return pack_all_suffixes(batch, longest, groups, group_range, self._edges)


@kernel_without_allocation
def _insert(edges, node, byte):
    """Returns the slot of an edge, inserting it if there is none."""
    mask = np.uint64(len(edges) - 1)
    key = node << _BYTE | np.uint64(byte)
    slot = (key * _SPREAD >> _32_BITS) & mask
    while edges[slot] >> _KEY_SHIFT != key and edges[slot] != np.uint64(0):
        slot = (slot + _ONE) & mask
    if edges[slot] == np.uint64(0):
        edges[slot] = key << _KEY_SHIFT
    return slot


@kernel
def _add_strings(data, longest, edges, cleared, mark, step):
    """Inserts a table's strings; sets bits of the edge at the end of each.

    The `cleared` bits of string i become mark + i * step; all three are uint64.
    """
    path = np.empty(longest + 1, np.uint64)
    path[0] = _ROOT
    position = 0
    while position < len(data):
        common, more, _, position = read_row_head(data, position)
        for i in range(more):
            slot = _insert(edges, path[common + i], data[position + i])
            path[common + i + 1] = slot + np.uint64(2)
        position += more
        slot = path[common + more] - np.uint64(2)
        edges[slot] = edges[slot] & ~cleared | mark
        mark += step


@kernel_without_allocation
def _walk(text, position, end, edges):
    """Follows the suffix text[position:end] down the trie.

    Returns where the longest subtoken at its start ends (`position` if there is none), and the row
    + 1 of its longest frequent prefix, or 0.
    """
    mask = np.uint64(len(edges) - 1)
    node, row = _ROOT, np.uint64(0)
    reach, segment_end = position, position
    while reach < end:
        key = node << _BYTE | np.uint64(text[reach])
        slot = (key * _SPREAD >> _32_BITS) & mask
        edge = edges[slot]
        while edge >> _KEY_SHIFT != key and edge != np.uint64(0):
            slot = (slot + _ONE) & mask
            edge = edges[slot]
        if edge == np.uint64(0):
            break
        node = slot + np.uint64(2)
        reach += _ONE
        if edge & _SUBTOKEN_BIT:
            segment_end = reach
        edge_row = (edge & _ROW_BITS) >> _ONE
        if edge_row:
            row = edge_row
    return segment_end, row


@kernel_without_allocation
def _weigh_segments(text, starts, counts, edges, weights):
    """Adds each token's count to the rows of the suffixes at its segments.

    Returns whether a character is in no subtoken.
    """
    last = np.uint64(len(weights) - 1)
    for token in range(len(counts)):
        position, end = np.uint64(starts[token]), np.uint64(starts[token + 1])
        count = counts[token]
        while position < end:
            segment_end, row = _walk(text, position, end, edges)
            weights[row - _ONE if row else last] += count
            if segment_end == position:
                return True
            position = segment_end
    return False


@kernel_without_allocation
def _list_suffixes(starts, edges, longest, lower, upper, rows):
    """Lists the suffixes at segments, from border `lower` to before `upper`, in `SuffixRows`.

    Without edges every character is a segment. Borders are compared by their first seven bytes, so
    some suffixes outside are listed too. Returns their number, or -1 if a character is in no
    subtoken.
    """
    text = rows.text
    lower_key, lower_shift = _border_key(lower)
    upper_key, upper_shift = _border_key(upper)
    has_borders = len(lower) > 0 or len(upper) > 0
    listed = 0
    for token in range(len(starts) - 1):
        position, end = np.uint64(starts[token]), np.uint64(starts[token + 1])
        while position < end:
            segment_end = position
            if len(edges) == 0:
                segment_end += _ONE
                while segment_end < end and text[segment_end] & 0xC0 == 0x80:
                    segment_end += _ONE
            else:
                segment_end, _ = _walk(text, position, end, edges)
                if segment_end == position:
                    return -1
            length = np.int64(end - position)
            if length > longest:
                length = _utf8_length(text, position, end, longest)
            is_within = True
            if has_borders:
                leading = _leading_key(text, position, length)
                is_within = leading >> lower_shift >= lower_key and (
                    len(upper) == 0 or leading >> upper_shift <= upper_key
                )
            if is_within:
                rows.positions[listed] = position
                rows.lengths[listed] = length
                rows.tokens[listed] = token
                listed += 1
            position = segment_end
    return listed


@kernel_without_allocation
def _utf8_length(text, position, end, characters):
    """Returns the bytes of this many characters, or of all until the end."""
    reach = position
    remaining = np.int64(characters)
    while reach < end:
        if text[reach] & 0xC0 != 0x80:
            if remaining == 0:
                break
            remaining -= 1
        reach += _ONE
    return np.int64(reach - position)


@kernel_without_allocation
def _leading_key(text, position, length):
    key = np.int64(0)
    for i in range(7):
        key = key << 8 | (np.int64(text[position + np.uint64(i)]) if i < length else np.int64(0))
    return key


@kernel_without_allocation
def _border_key(border):
    """Returns a border's first seven bytes as a number, and the shift that aligns a leading key."""
    length = min(len(border), 7)
    key = np.int64(0)
    for i in range(length):
        key = key << 8 | np.int64(border[i])
    return key, 8 * (7 - length)


@kernel_without_allocation
def _escaped_sizes(data, offsets, sizes):
    """Writes the number of bytes of each escaped token."""
    for token in range(len(sizes)):
        size = np.int64(1)
        for position in range(offsets[token], offsets[token + 1]):
            size += escaped_length(data[np.uint64(position)])
        sizes[token] = size


@kernel_without_allocation
def _escape_batch(data, offsets, first, last, text):
    """Writes the escaped tokens one after another."""
    written = np.uint64(0)
    for token in range(first, last):
        for position in range(offsets[token], offsets[token + 1]):
            byte = data[np.uint64(position)]
            if byte == LINE_FEED:
                for character in ESCAPED_LINE_FEED:
                    text[written] = character
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


@dataclass(frozen=True)
class TokenSurvey:
    """The survey of some tokens; surveys of parts can be added."""

    alphabet: str  # every character, ascending
    tokens: int
    characters: int  # of all escaped tokens
    weight: int  # sum of count times escaped length
    largest_count: int  # sum of count times bytes: an upper bound of the count of any substring
    sample: SuffixTable
    smaller_sample: SuffixTable

    def predicted_bytes(self, bits: int) -> int:
        """Returns the bytes of a table of all suffixes, by Heaps' law through both samples."""
        if bits == 0 or not self.smaller_sample.rows:
            return self.sample.nbytes << bits
        growth = math.log2(self.sample.nbytes / self.smaller_sample.nbytes) / _NESTED_BITS
        return math.ceil(self.sample.nbytes * 2 ** (bits * min(max(growth, 0.3), 1.0)))


class Surveyor:
    """Surveys batches of tokens, one after another.

    Args:
      bits: one token in 2^bits is sampled.
      longest: of the suffixes counted, in characters.
    """

    def __init__(self, bits: int, longest: int):
        self._bits = bits
        self._longest = min(longest, _SAMPLED_LENGTH)
        self._seen = np.zeros(CODE_POINTS, np.uint8)
        self._tokens = self._characters = self._weight = self._largest_count = 0
        self._samples = (SuffixTableMerger(), SuffixTableMerger())

    def add(self, data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> None:
        """Adds tokens of valid UTF-8: `data[offsets[i]:offsets[i + 1]]` with counts[i]."""
        lengths = np.empty(len(counts), np.int64)
        self._tokens += len(counts)
        for merger, bits in zip(self._samples, (self._bits, self._bits + _NESTED_BITS)):
            picked = np.zeros(len(counts), np.bool_)
            mask = np.uint64((1 << bits) - 1)
            _survey_tokens(data, offsets, counts, mask, self._seen, lengths, picked)
            indices = np.flatnonzero(picked)
            if not len(indices) or self._longest < 1:
                continue
            starts, ends = read_only(offsets[indices]), read_only(offsets[indices + 1])
            tokens, bounds = map(read_only, pick_ranges(data, starts, ends))
            weights = read_only(counts[indices])
            for batch in escaped_batches(tokens, bounds, weights, self._longest):
                for _, table in pack_all_suffixes(batch, self._longest, _ONE_GROUP, (0, 1)):
                    merger.add(table)
        self._characters += int(lengths.sum())
        self._weight += _exact_dot(counts, lengths)
        self._largest_count += _exact_dot(counts, np.diff(offsets) + 1)

    def result(self) -> TokenSurvey:
        points = np.flatnonzero(self._seen).tolist()
        sample, smaller = (merger.merged() for merger in self._samples)
        return TokenSurvey(
            ''.join(map(chr, points)),
            self._tokens,
            self._characters,
            self._weight,
            self._largest_count,
            sample,
            smaller,
        )


def add_surveys(surveys: Iterable[TokenSurvey]) -> TokenSurvey:
    """Returns the survey of all parts."""
    surveys = list(surveys)
    return TokenSurvey(
        ''.join(sorted(set().union(*(survey.alphabet for survey in surveys)))),
        sum(survey.tokens for survey in surveys),
        sum(survey.characters for survey in surveys),
        sum(survey.weight for survey in surveys),
        sum(survey.largest_count for survey in surveys),
        merge_suffix_tables(survey.sample for survey in surveys),
        merge_suffix_tables(survey.smaller_sample for survey in surveys),
    )


def _exact_dot(counts: np.ndarray, factors: np.ndarray) -> int:
    """Returns the sum of products of int64, which may exceed 2^63."""
    low, high = counts & 0xFFFFFFFF, counts >> 32
    return (int(np.dot(high, factors)) << 32) + int(np.dot(low, factors))


@kernel_without_allocation
def _survey_tokens(data, offsets, counts, mask, seen, lengths, picked):
    """Marks the code points seen, and as `picked` the tokens whose hash has no bit of `mask`.

    Writes the characters of each escaped token to `lengths`. The tokens are valid UTF-8.
    """
    for token in range(len(counts)):
        digest = np.uint64(0xCBF29CE484222325)  # FNV-1a
        position, end = offsets[token], offsets[token + 1]
        length = 1
        while position < end:
            point, position = next_character(data, position)
            seen[point] = 1
            digest = (digest ^ np.uint64(point)) * np.uint64(0x100000001B3)
            length += escaped_length(point)
        lengths[token] = length
        digest ^= digest >> _32_BITS
        digest *= _SPREAD
        picked[token] = (digest >> _32_BITS) & mask == np.uint64(0)
