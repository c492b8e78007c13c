"""Learns Tensor2Tensor's subwords in memory, exactly and in linear space; searches a size.

`plain_iteration` says in sixty lines what is computed; `tokcore.learning.suffix_trie` how that is
done in linear space, with an example. The trie and its weights do not depend on the iteration, and
a smaller min-count only adds to them. Each later iteration is three passes over arrays: how far
each suffix matches, what the segments weigh, what is selected. The subtokens of a vocabulary are
written out only when they are first read, since a search looks at the sizes of ten and takes one.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.learning.pruned_trie import PrunedSuffixTrie
from tokcore.learning.ranked_text import EscapedText, escape_tokens
from tokcore.learning.size_search import Progress, search_vocabulary
from tokcore.learning.suffix_trie import FullSuffixTrie, select_first, select_next
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t import alphabet_of, escape_token

RESERVED_TOKENS = ('<pad>', '<EOS>')
"""What every vocabulary of this scheme begins with."""

ITERATIONS = 4
"""How often the original cuts, counts and keeps."""

# Down the trie for each character; some texts take six, and the usual limit of length 199 at most.
_MOST_STEPS = 2000
# Where searches begin.
_FIRST_LEAST = 500
_UNLIMITED = 2**31 - 1
_LARGEST = 2**63 - 1


class Subtokens(Sequence[str]):
    """Reserved tokens, then kept strings and characters by count and string, both descending.

    Equal to a tuple of the same strings, and to another sequence of its kind.

    Args:
      places: int[kept], where each kept string stands in the text.
      lengths: int32[kept].
      counts: int64[kept], what each is ordered by.
      left_over: int64[letters], the same for the characters of the alphabet.
    """

    def __init__(
        self,
        reserved: tuple[str, ...],
        text: EscapedText,
        places: np.ndarray,
        lengths: np.ndarray,
        counts: np.ndarray,
        left_over: np.ndarray,
    ):
        letters = len(text.alphabet)
        self._reserved, self._text = reserved, text
        # A character may stand nowhere in the text: its place is its rank, complemented.
        self._places = np.concatenate([places, ~np.arange(letters)])
        self._lengths = np.concatenate([lengths, np.ones(letters, np.int32)])
        self._counts = np.concatenate([counts, left_over])

    def __len__(self) -> int:
        return len(self._reserved) + len(self._places)

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
        order = _descending(text, self._places, self._lengths, self._counts)
        places, lengths = self._places[order], self._lengths[order]
        code_points = np.empty(int(lengths.sum()), np.uint32)
        _write_strings(
            text.ranks, text.alphabet, read_only(places), read_only(lengths), code_points
        )
        joined = code_points.astype('<u4', copy=False).tobytes().decode('utf-32-le')
        ends = np.cumsum(lengths).tolist()
        return self._reserved + tuple(map(joined.__getitem__, map(slice, [0, *ends], ends)))


class MemoryLearner:
    """Learns the vocabularies of one token table, for any number of min-counts.

    >>> table = TokenTable.from_items([('the', 3), ('then', 2)])
    >>> MemoryLearner(table).build(2)[:4]
    ('<pad>_', '<EOS>_', 'the_', 'then_')

    The result is, subtoken by subtoken, what `SubwordTextEncoder.build_from_token_counts` of
    Tensor2Tensor 1.15.7 gives.

    Args:
      tokens: distinct tokens and their counts, in any order.
      max_subtoken_length: as in Tensor2Tensor, so the longest subtoken learned is one character
        shorter; None sets no limit.
      reserved_tokens: those beyond `<pad>` and `<EOS>`.

    Raises:
      ValueError: `max_subtoken_length` is below 1, or a token is not UTF-8.
      OverflowError: the counts could sum up to more than 2^63 - 1.
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
        self._counts = read_only(tokens.counts)
        self._trie = None
        if longest > 0 and len(self._counts):
            kind = FullSuffixTrie if _repeats_too_long(self._text, longest) else PrunedSuffixTrie
            self._trie = kind(self._text, self._counts, longest, self._reserved_suffixes())

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below: reserved tokens and alphabet."""
        return len(self._reserved) + len(self._text.alphabet)

    @property
    def largest_count(self) -> int:
        """The largest min-count that keeps a string of two characters or more; 0 if none does."""
        if self._trie is None:
            return 0
        least = _FIRST_LEAST
        while True:
            trie = self._trie.at_least(least)
            if len(trie.totals) > trie.letters or least == 1:
                return int(trie.totals[trie.letters :].max(initial=0))
            least = max(1, least // 10)

    def build(self, min_count: int) -> Subtokens:
        """Returns the subtokens in the order of their ids, exactly as a vocabulary file has them.

        A reserved token that was also learned stands there twice. A min-count below 1 is 1.
        """
        letters = len(self._text.alphabet)
        if self._trie is None:
            nothing = np.zeros(0, np.int64)
            left_over = np.zeros(letters, np.int64)
            return Subtokens(self._reserved, self._text, nothing, nothing, nothing, left_over)
        min_count = min(max(1, min_count), _LARGEST)
        trie = self._trie.at_least(min_count)
        selection = select_first(trie, min_count)
        for _ in range(ITERATIONS - 1):
            selection = select_next(trie, self._text.starts, self._counts, selection, min_count)
        nodes = selection.selected(letters)
        return Subtokens(
            self._reserved,
            self._text,
            trie.positions[nodes],
            trie.depths[nodes],
            selection.remaining(nodes),
            selection.remaining(slice(letters)),
        )

    def _reserved_suffixes(self) -> np.ndarray:
        """Returns the positions of suffixes that are reserved tokens."""
        ranks = [self._text.rank_string(escaped) for escaped in self._reserved]
        starts = np.cumsum([0, *map(len, ranks)])
        reserved_suffixes = np.zeros(len(self._text.ranks), np.bool_)
        _mark_reserved_suffixes(
            self._text.ranks, self._text.starts, read_only(np.concatenate(ranks)), read_only(starts), reserved_suffixes
        )  # fmt: skip
        return np.flatnonzero(reserved_suffixes)


def longest_candidate(max_subtoken_length: int | None) -> int:
    """Returns how long a learned subtoken may get: Tensor2Tensor's limit is one off.

    Raises:
      ValueError: the limit is below 1.
    """
    if max_subtoken_length is None:
        return _UNLIMITED
    if max_subtoken_length < 1:
        raise ValueError(f'max_subtoken_length is {max_subtoken_length}; it must be 1 or more')
    return min(max_subtoken_length - 1, _UNLIMITED)


def _repeats_too_long(text: EscapedText, longest: int) -> bool:
    """Whether following all suffixes down could take too many steps for a character."""
    lengths = np.diff(text.starts).astype(np.float64)
    return float((lengths * np.minimum(lengths, longest)).sum()) > _MOST_STEPS * len(text.ranks)


@kernel_without_allocation
def _mark_reserved_suffixes(ranks, starts, reserved_ranks, reserved_starts, reserved_suffixes):
    """Marks suffixes that are reserved tokens."""
    for token in range(len(starts) - 1):
        begin, end = starts[token], starts[token + 1]
        for i in range(len(reserved_starts) - 1):
            low, length = reserved_starts[i], reserved_starts[i + 1] - reserved_starts[i]
            if length > end - begin:
                continue
            same = length - 1  # both end with the underscore
            while same > 0 and ranks[end - length + same - 1] == reserved_ranks[low + same - 1]:
                same -= 1
            if same == 0:
                reserved_suffixes[end - length] = True


def _descending(
    text: EscapedText, places: np.ndarray, lengths: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Returns the order by count and string, both descending; the strings differ."""
    bits = len(text.alphabet).bit_length()
    packed = 63 // bits
    order = np.argsort(-counts, kind='stable')
    ordered = counts[order]
    # Whether each is tied with the one before, as far as compared.
    tied = np.append(False, ordered[1:] == ordered[:-1])
    begin = 0
    while tied.any():
        among = np.flatnonzero(tied | np.append(tied[1:], False))
        group = np.cumsum(~tied)[among]
        members = order[among]
        keys = np.empty(len(members), np.int64)
        _pack_strings(
            text.ranks,
            read_only(places[members]),
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
def _pack_strings(ranks, places, lengths, begin, packed, bits, keys):
    """Packs characters of each string from `begin` on, as rank + 1; zeros stand behind its end."""
    for i in range(len(places)):
        key = 0
        for j in range(begin, begin + packed):
            key <<= bits
            if j < lengths[i]:
                key |= 1 + (np.int64(ranks[places[i] + j]) if places[i] >= 0 else ~places[i])
        keys[i] = key


@kernel_without_allocation
def _write_strings(ranks, alphabet, places, lengths, code_points):
    """Writes strings one after another."""
    written = 0
    for i in range(len(places)):
        if places[i] < 0:
            code_points[written] = alphabet[~places[i]]
            written += 1
            continue
        for j in range(places[i], places[i] + lengths[i]):
            code_points[written] = alphabet[ranks[j]]
            written += 1


class SubwordLearner(Protocol):
    """Learns the vocabularies of one token table, for any number of min-counts."""

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below."""

    def build(self, min_count: int) -> Sequence[str]:
        """Returns the subtokens by id."""


class SearchOptions(Protocol):
    """What is asked of a search, as `search_vocabulary` takes it."""

    vocab_size: int
    search: str
    min_count_range: tuple[int, int] | None


def search_subwords(
    learner: SubwordLearner, largest_count: int, options: SearchOptions, report: Progress
) -> Learned:
    """Searches min-counts for the size that is asked for.

    Args:
        learner: builds the vocabulary of a min-count.
        largest_count: no string is counted more often, or the learner tells none.
        options: the size, and which min-counts are tried.
        report: is told of each vocabulary that was built.

    Raises:
        InputError: a size below the alphabet, or a range that is empty.
    """
    found = search_vocabulary(
        learner.build,
        options.vocab_size,
        strategy=options.search,
        min_count_range=options.min_count_range,
        smallest_size=learner.smallest_size,
        largest_count=largest_count,
        report=report,
    )
    return Learned(
        SubwordTextEncoder(found.subtokens),
        found.min_count,
        found.tried,
        found.reachable,
        learner.smallest_size,
    )


def largest_count(table: TokenTable) -> int:
    """Returns what no substring is counted more often than: there are as many characters."""
    return int(np.dot(table.counts.astype(np.float64), np.diff(table.offsets) + 1))
