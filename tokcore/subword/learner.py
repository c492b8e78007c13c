"""Learns Tensor2Tensor's subwords in memory, exactly and in linear space.

`plain_iteration` has the algorithm in sixty lines; `tokcore.learning.suffix_trie` explains, with an
example, how to do it in linear space. The trie does not depend on the iteration, and a smaller
min-count only adds nodes to it. Each iteration after the first is three passes over arrays: inherit
match lengths, weigh segment starts, select. The strings of a vocabulary are made when they are
first read, since a search compares the sizes of some ten vocabularies and returns one.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.learning.pruned_trie import PrunedSuffixTrie
from tokcore.learning.ranked_text import EscapedText, escape_tokens
from tokcore.learning.suffix_trie import FullSuffixTrie, select_first, select_next
from tokcore.text.t2t import alphabet_of, escape_token

RESERVED_TOKENS = ('<pad>', '<EOS>')
"""The first tokens of every vocabulary of this scheme."""

ITERATIONS = 4
"""Iterations of segmenting, counting and selecting, as in Tensor2Tensor."""

# Most steps down the trie per character on average, else suffixes are sorted; some texts take six,
# and with the usual limit of length it is 199 at most.
_MAX_STEPS = 2000
# The min-count at which searches begin.
_FIRST_MIN_COUNT = 500
_UNLIMITED = 2**31 - 1
_LARGEST = 2**63 - 1


class Subtokens(Sequence[str]):
    """Reserved tokens, then selected strings and characters by count and string, both descending.

    Equal to a tuple of the same strings, and to other `Subtokens` of the same strings.

    Args:
      positions: int[selected], where each selected string occurs in the text.
      lengths: int32[selected].
      counts: int64[selected].
      letter_counts: int64[letters], the counts of the characters of the alphabet.
    """

    def __init__(
        self,
        reserved: tuple[str, ...],
        text: EscapedText,
        positions: np.ndarray,
        lengths: np.ndarray,
        counts: np.ndarray,
        letter_counts: np.ndarray,
    ):
        letters = len(text.alphabet)
        self._reserved, self._text = reserved, text
        # A character need not occur in the text: its position is its rank, complemented.
        self._positions = np.concatenate([positions, ~np.arange(letters)])
        self._lengths = np.concatenate([lengths, np.ones(letters, np.int32)])
        self._counts = np.concatenate([counts, letter_counts])

    def __len__(self) -> int:
        return len(self._reserved) + len(self._positions)

    def __getitem__(self, index):
        return self._strings[index]

    def __iter__(self):
        return iter(self._strings)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (tuple, Subtokens)):
            return len(self) == len(other) and self._strings == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._strings)

    def __repr__(self) -> str:
        return f'Subtokens{self._strings}'

    @cached_property
    def _strings(self) -> tuple[str, ...]:
        text = self._text
        order = _descending(text, self._positions, self._lengths, self._counts)
        positions, lengths = self._positions[order], self._lengths[order]
        code_points = np.empty(int(lengths.sum()), np.uint32)
        _write_strings(
            text.ranks, text.alphabet, read_only(positions), read_only(lengths), code_points
        )
        joined = code_points.astype('<u4', copy=False).tobytes().decode('utf-32-le')
        ends = np.cumsum(lengths).tolist()
        return self._reserved + tuple(map(joined.__getitem__, map(slice, [0, *ends], ends)))


class MemoryLearner:
    """Learns the vocabularies of one token table, for any number of min-counts.

    The result is, subtoken by subtoken, what `SubwordTextEncoder.build_from_token_counts` of
    Tensor2Tensor 1.15.7 returns.

    Args:
      tokens: distinct tokens and their counts, in any order.
      max_subtoken_length: as in Tensor2Tensor: learned subtokens are at least one character
        shorter; None sets no limit.
      reserved_tokens: reserved tokens after `<pad>` and `<EOS>`.

    Raises:
      ValueError: `max_subtoken_length` is below 1, or a token is not UTF-8.
      OverflowError: count times escaped length, summed over the tokens, exceeds 2^63 - 1.

    Examples:
        >>> table = tokcore.TokenTable.from_items([('the', 3), ('then', 2)])
        >>> tokcore.MemoryLearner(table).build(2)[:4]
        ('<pad>_', '<EOS>_', 'the_', 'then_')
    """

    def __init__(
        self,
        tokens: TokenTable,
        *,
        max_subtoken_length: int | None = 200,
        reserved_tokens: Sequence[str] = (),
    ):
        longest = longest_candidate(max_subtoken_length)
        reserved = RESERVED_TOKENS + tuple(reserved_tokens)
        alphabet = alphabet_of(reserved)
        self._reserved = tuple(escape_token(token, alphabet) for token in reserved)
        self._text = escape_tokens(tokens.data, tokens.offsets, tokens.counts, reserved)
        self._counts = tokens.counts
        self._trie: FullSuffixTrie | PrunedSuffixTrie | None = None
        if longest > 0 and len(self._counts):
            kind = FullSuffixTrie if _needs_sorting(self._text, longest) else PrunedSuffixTrie
            self._trie = kind(self._text, self._counts, longest, self._reserved_suffixes())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _counts=read_only(state['_counts']))

    def __repr__(self) -> str:
        """Shows the number of tokens."""
        return f'<MemoryLearner of {len(self._counts):,} distinct tokens>'

    @property
    def smallest_size(self) -> int:
        """The size of the smallest vocabulary: the reserved tokens and the alphabet."""
        return len(self._reserved) + len(self._text.alphabet)

    @property
    def largest_count(self) -> int:
        """The largest min-count that selects a string of two characters or more, or 0."""
        if self._trie is None:
            return 0
        min_count = _FIRST_MIN_COUNT
        while True:
            trie = self._trie.at_least(min_count)
            if len(trie.totals) > trie.letters or min_count == 1:
                return int(trie.totals[trie.letters :].max(initial=0))
            min_count = max(1, min_count // 10)

    def build(self, min_count: int) -> Subtokens:
        """Returns the subtokens by id, as in a vocabulary file.

        A reserved token that is also learned occurs twice. A min-count below 1 counts as 1.
        """
        letters = len(self._text.alphabet)
        if self._trie is None:
            empty = np.zeros(0, np.int64)
            letter_counts = np.zeros(letters, np.int64)
            return Subtokens(self._reserved, self._text, empty, empty, empty, letter_counts)
        min_count = min(max(1, min_count), _LARGEST)
        trie = self._trie.at_least(min_count)
        selection = select_first(trie, min_count)
        for _ in range(ITERATIONS - 1):
            select_next(trie, self._text.starts, self._counts, selection, min_count)
        nodes = np.flatnonzero(selection[letters:, 1]) + letters
        return Subtokens(
            self._reserved,
            self._text,
            trie.positions[nodes],
            trie.depths[nodes],
            selection[nodes, 0],
            selection[:letters, 0].copy(),
        )

    def _reserved_suffixes(self) -> np.ndarray:
        """Returns the positions of suffixes that are reserved tokens."""
        ranks = [self._text.rank_string(escaped) for escaped in self._reserved]
        starts = np.cumsum([0, *map(len, ranks)])
        reserved_suffixes = np.zeros(len(self._text.ranks), np.bool_)
        _mark_reserved_suffixes(
            self._text.ranks,
            self._text.starts,
            read_only(np.concatenate(ranks)),
            read_only(starts),
            reserved_suffixes,
        )
        return np.flatnonzero(reserved_suffixes)


def longest_candidate(max_subtoken_length: int | None) -> int:
    """Returns the length of the longest candidate: Tensor2Tensor's limit is off by one.

    Raises:
      ValueError: the limit is below 1.
    """
    if max_subtoken_length is None:
        return _UNLIMITED
    if max_subtoken_length < 1:
        raise ValueError(f'max_subtoken_length is {max_subtoken_length}; it must be 1 or more')
    return min(max_subtoken_length - 1, _UNLIMITED)


def _needs_sorting(text: EscapedText, longest: int) -> bool:
    """Whether following all suffixes down could take too many steps per character."""
    lengths = np.diff(text.starts).astype(np.float64)
    return float((lengths * np.minimum(lengths, longest)).sum()) > _MAX_STEPS * len(text.ranks)


@kernel_without_allocation
def _mark_reserved_suffixes(ranks, starts, reserved_ranks, reserved_starts, reserved_suffixes):
    """Marks suffixes that are reserved tokens."""
    for token in range(len(starts) - 1):
        begin, end = starts[token], starts[token + 1]
        for i in range(len(reserved_starts) - 1):
            low, length = reserved_starts[i], reserved_starts[i + 1] - reserved_starts[i]
            if length > end - begin:
                continue
            same = length - 1  # both end with an underscore
            while same > 0 and ranks[end - length + same - 1] == reserved_ranks[low + same - 1]:
                same -= 1
            if same == 0:
                reserved_suffixes[end - length] = True


def _descending(
    text: EscapedText, positions: np.ndarray, lengths: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Returns the order by count and string, both descending; the strings differ."""
    bits = len(text.alphabet).bit_length()
    packed = 63 // bits
    order = np.argsort(-counts, kind='stable')
    ordered = counts[order]
    # Whether a string equals the one before in count and in the characters compared so far.
    tied = np.append(False, ordered[1:] == ordered[:-1])
    begin = 0
    while tied.any():
        among = np.flatnonzero(tied | np.append(tied[1:], False))
        group = np.cumsum(~tied)[among]
        members = order[among]
        keys = np.empty(len(members), np.int64)
        _pack_strings(
            text.ranks,
            read_only(positions[members]),
            read_only(lengths[members]),
            begin,
            packed,
            bits,
            keys,
        )
        inside = np.lexsort((-keys, group))
        order[among] = members[inside]
        keys = keys[inside]
        tied[among[1:]] &= keys[1:] == keys[:-1]
        begin += packed
    return order


@kernel_without_allocation
def _pack_strings(ranks, positions, lengths, begin, packed, bits, keys):
    """Packs characters of each string from `begin` on, as rank + 1, with zeros after its end."""
    for i in range(len(positions)):
        key = 0
        for j in range(begin, begin + packed):
            key <<= bits
            if j < lengths[i]:
                key |= 1 + (
                    np.int64(ranks[positions[i] + j]) if positions[i] >= 0 else ~positions[i]
                )
        keys[i] = key


@kernel_without_allocation
def _write_strings(ranks, alphabet, positions, lengths, code_points):
    """Writes strings one after another."""
    written = 0
    for i in range(len(positions)):
        if positions[i] < 0:
            code_points[written] = alphabet[~positions[i]]
            written += 1
            continue
        for j in range(positions[i], positions[i] + lengths[i]):
            code_points[written] = alphabet[ranks[j]]
            written += 1


def largest_count(table: TokenTable) -> int:
    """Returns an upper bound of the count of any substring: the number of characters."""
    return int(np.dot(table.counts.astype(np.float64), np.diff(table.offsets) + 1))
