"""Tensor2Tensor's subword vocabulary for one min-count, learned exactly in memory and linear space.

The order of the suffixes, the tree and the weights of the first iteration, which cuts before every
character, depend neither on min-count nor on the iteration: they are made once. Each later
iteration is three passes over arrays: where each suffix is cut, what that weighs, what is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tokcore.compilation import frozen, kernel
from tokcore.escaping import alphabet_of, escape_token
from tokcore.subword.escaped_text import EscapedText, escape_tokens
from tokcore.subword.suffixes import sort_suffixes
from tokcore.subword.tree import (
    SuffixTree,
    build_tree,
    claim_nodes,
    match_nodes,
    own_weights,
    prune_tree,
    sum_below,
)
from tokcore.token_table import TokenTable

RESERVED_TOKENS = ('<pad>', '<EOS>')
"""What every vocabulary of this scheme begins with."""

ITERATIONS = 4
"""How often the original cuts, counts and keeps."""

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
      ValueError: `max_subtoken_length` is below 1, or a token cannot be stored in a vocabulary.
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
        self._counts = frozen(tokens.counts)
        self._whole = self._pruned = None
        if longest > 0 and len(self._counts):
            self._whole = _grow_tree(self._text, self._counts, longest, self._reserved)

    @property
    def smallest_size(self) -> int:
        """The size that no min-count gets below: reserved tokens and alphabet."""
        return len(self._reserved) + len(self._text.alphabet)

    @property
    def largest_count(self) -> int:
        """The largest min-count that keeps a string of two characters or more; 0 if none does."""
        if self._whole is None:
            return 0
        return int(self._whole.totals.max(initial=0, where=self._whole.tree.depths > 1))

    def build(self, min_count: int) -> tuple[str, ...]:
        """Returns the subtokens in the order of their ids, exactly as a vocabulary file has them.

        A reserved token that was also learned stands there twice. A min-count below 1 is 1.
        """
        letters = len(self._text.alphabet)
        if self._whole is None:
            nothing = np.zeros(0, np.int64)
            left_over = np.zeros(letters, np.int64)
            return self._subtokens(nothing, nothing, nothing, left_over)
        min_count = min(max(1, min_count), _LARGEST)
        tree, weights = self._tree_for(min_count)
        claims = claim_nodes(tree, weights, min_count, letters)
        for _ in range(ITERATIONS - 1):
            matches = match_nodes(tree, claims)
            _weigh_cuts(self._text.starts, self._counts, tree.node_of, frozen(matches), weights)
            claims = claim_nodes(tree, weights, min_count, letters)
        places, lengths = tree.places[claims.nodes], tree.depths[claims.nodes]
        return self._subtokens(places, lengths, claims.counts, claims.left_over)

    def _tree_for(self, min_count: int) -> tuple[SuffixTree, np.ndarray]:
        """Returns a tree of all that could be kept, with the first iteration's weights.

        No iteration counts more than the first, so what weighs less there is left out. The smallest
        min-count so far sets the tree: a search goes down first and then turns.
        """
        if min_count == 1:
            grown = self._whole
        else:
            grown = self._pruned
            if grown is None or min_count < grown.least:
                self._pruned = None  # its memory, before the next one's
                tree, totals = prune_tree(self._whole.tree, self._whole.totals, min_count)
                grown = self._pruned = _GrownTree(tree, totals, min_count)
        return grown.tree, own_weights(grown.tree, grown.totals)

    def _subtokens(
        self, places: np.ndarray, lengths: np.ndarray, counts: np.ndarray, left_over: np.ndarray
    ) -> tuple[str, ...]:
        """Orders kept strings and characters by count and string, both descending."""
        text = self._text
        letters = np.arange(len(text.alphabet))
        kept = len(places)
        counts = np.concatenate([counts, left_over])
        first = np.concatenate([text.ranks[places], letters])
        lengths = np.concatenate([lengths, np.ones(len(letters), np.int64)])
        # The kept strings are in descending order; a character comes after those it begins.
        index = np.arange(len(counts))
        order = np.lexsort((index, index >= kept, -first, -counts))

        places = np.concatenate([places, np.full(len(letters), -1)])[order]
        lengths = lengths[order]
        code_points = np.empty(int(lengths.sum()), np.uint32)
        _write_strings(
            text.ranks, text.alphabet, frozen(places), frozen(lengths), frozen(first[order]),
            code_points,
        )  # fmt: skip
        joined = code_points.astype('<u4', copy=False).tobytes().decode('utf-32-le')
        ends = np.cumsum(lengths).tolist()
        return self._reserved + tuple(map(joined.__getitem__, map(slice, [0, *ends], ends)))


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


@dataclass(frozen=True)
class _GrownTree:
    tree: SuffixTree
    totals: np.ndarray  # int64[nodes]: weight at and below each node, cut before every character
    least: int  # no node weighs less


def _grow_tree(
    text: EscapedText, counts: np.ndarray, longest: int, reserved: Sequence[str]
) -> _GrownTree:
    tree = build_tree(text, sort_suffixes(text, longest), longest)
    weights = np.zeros(len(tree.depths), np.int64)
    _weigh_suffixes(text.starts, counts, tree.node_of, weights)
    ranks = [text.rank_string(escaped) for escaped in reserved]
    starts = np.cumsum([0, *map(len, ranks)])
    node_of = tree.node_of.copy()
    _mark_rests(text.ranks, text.starts, frozen(np.concatenate(ranks)), frozen(starts), node_of)
    tree = replace(tree, node_of=frozen(node_of))
    return _GrownTree(tree, sum_below(tree, weights), 1)


@kernel
def _mark_rests(ranks, starts, reserved_ranks, reserved_starts, node_of):
    """Complements the node where all the rest of a token is a reserved one."""
    for token in range(len(starts) - 1):
        begin, end = starts[token], starts[token + 1]
        for i in range(len(reserved_starts) - 1):
            low, length = reserved_starts[i], reserved_starts[i + 1] - reserved_starts[i]
            if length > end - begin or node_of[end - length] < 0:
                continue
            same = length - 1  # both end with the underscore
            while same > 0 and ranks[end - length + same - 1] == reserved_ranks[low + same - 1]:
                same -= 1
            if same == 0:
                node_of[end - length] = ~node_of[end - length]


@kernel
def _weigh_suffixes(starts, counts, node_of, weights):
    """Adds up the weights of all suffixes."""
    for token in range(len(counts)):
        for place in range(starts[token], starts[token + 1]):
            weights[node_of[place]] += counts[token]


@kernel
def _weigh_cuts(starts, counts, node_of, matches, weights):
    """Adds up the weights of the suffixes that start where a token is cut.

    A token is cut into the longest matches from its left; a complemented node is the last one.
    """
    weights[:] = 0
    for token in range(len(counts)):
        place, end = starts[token], starts[token + 1]
        while place < end:
            node = node_of[place]
            if node < 0:
                weights[~node] += counts[token]
                break
            weights[node] += counts[token]
            place += matches[node]


@kernel
def _write_strings(ranks, alphabet, places, lengths, first, code_points):
    """Writes strings of the text one after another; a negative place is the character alone."""
    written = 0
    for i in range(len(places)):
        if places[i] < 0:
            code_points[written] = alphabet[first[i]]
            written += 1
            continue
        for j in range(places[i], places[i] + lengths[i]):
            code_points[written] = alphabet[ranks[j]]
            written += 1
