"""Tensor2Tensor's subword vocabulary for one min-count, learned exactly in memory and linear space.

What is computed stands in `plain_iteration`, in sixty lines; how it is had in linear space, with an
example drawn, in `tokcore.learning.suffix_trie`. The trie and its weights do not depend on the
iteration, and a smaller min-count only adds to them. Each later iteration is three passes over
arrays: how far each suffix matches, what the segments weigh, what is selected.
"""

from collections.abc import Sequence

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.counts.token_table import TokenTable
from tokcore.learning.full_trie import FullSuffixTrie
from tokcore.learning.pruned_trie import PrunedSuffixTrie
from tokcore.learning.ranked_text import EscapedText, escape_tokens
from tokcore.learning.suffix_trie import select_first, select_next
from tokcore.subword.subtokens import Subtokens
from tokcore.text.escaping import alphabet_of, escape_token

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
            selection.left(nodes),
            selection.left(slice(letters)),
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
