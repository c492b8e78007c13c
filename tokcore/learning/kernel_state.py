"""What the kernels of a trie are given: tuples of arrays, drawn in the page of this room.

Their arrays are allocated before, and no kernel makes one larger. What a kernel changes beside
arrays is a field of a record, an array of one.
"""

from typing import NamedTuple

import numpy as np

from tokcore.learning.ranked_text import EscapedText


class RankedText(NamedTuple):
    """An `EscapedText` with the counts of its tokens."""

    ranks: np.ndarray  # uint16 or int32[characters]
    starts: np.ndarray  # int64[tokens + 1]
    counts: np.ndarray  # int64[tokens]
    letters: int
    end_rank: int
    bits: int  # that a rank takes where several are packed

    @classmethod
    def of(cls, text: EscapedText, counts: np.ndarray) -> 'RankedText':
        letters = len(text.alphabet)
        bits = max(1, (letters - 1).bit_length())
        return cls(text.ranks, text.starts, counts, letters, text.end_rank, bits)


TRIE_CURSOR = np.dtype([('nodes', np.int64)], align=True)


class Trie(NamedTuple):
    """The nodes made, as `SuffixTrie` has them, with room for all that there could be."""

    parents: np.ndarray
    depths: np.ndarray
    positions: np.ndarray
    totals: np.ndarray
    cursor: np.ndarray  # TRIE_CURSOR[1]: how many nodes are made


class SuffixEnds(NamedTuple):
    """How far each suffix has been followed down."""

    node_of: np.ndarray  # int[characters]
    next_weight_bounds: np.ndarray
    """uint16[characters]: upper bound of the weight of the next, longer string at a position; 0 if
    there is none. It tells whether a smaller min-count makes the suffix active again."""


class Limits(NamedTuple):
    """What strings of a trie there are."""

    longest: int  # characters
    min_weight: int


class Repeats(NamedTuple):
    """The repeats of each character, one after another: once, twice, up to the most there are."""

    begins: np.ndarray  # int64[letters]: where each character's are
    most: np.ndarray  # int64[letters]: how many there are
    weights: np.ndarray  # int64[repeats]
    positions: np.ndarray  # int[repeats]: a position in the text where each stands
    names: np.ndarray  # int[repeats]: the node that each begins at


class Bigrams(NamedTuple):
    """A table of pairs of characters, see `bigram_slot`."""

    number_of: np.ndarray  # int32[letters]: the most frequent characters from 0 on; others have -1
    width: int  # how many are numbered; its square is at most half of the slots
    weights: np.ndarray  # int64[slots]: a power of two, at least 2
    names: np.ndarray  # int[width * width]: the nodes of the pairs of numbered characters, or 0


class NodeLists(NamedTuple):
    """The lists of the frontier, one after another: those of the nodes from `first` on."""

    first: int
    ends: np.ndarray  # int64[nodes]


class SuffixList(NamedTuple):
    """A list to be split."""

    begin: int
    end: int
    node: int
    side: int  # which of the two buffers it is in
    held: int  # how many of the packed characters are still to come


class Frontier(NamedTuple):
    """The suffixes still active, in lists by nodes, and a second buffer to scatter them to."""

    positions: np.ndarray  # int[2, suffixes]
    weights: np.ndarray  # uint32 or int64[2, suffixes]
    words: np.ndarray  # uint64[2, suffixes]: packed characters, later where the suffix stops
    stack: np.ndarray  # int64[suffixes / 2 + 2, 5]: lists to be split, each a `SuffixList`
    picked: np.ndarray  # int64[2, ...]: positions and weights on their way to the lists


class Entries(NamedTuple):
    """Suffixes of one list, or of one buffer of the frontier."""

    positions: np.ndarray
    weights: np.ndarray
    words: np.ndarray


class Continuations(NamedTuple):
    """Of a list that is split, by the character that follows: each int64[letters]."""

    weights: np.ndarray  # zeros between two lists, as are the sizes
    sizes: np.ndarray
    positions: np.ndarray  # of one suffix
    destinations: np.ndarray  # where suffixes are written to
    nodes: np.ndarray  # where they stop
    found: np.ndarray  # the characters met, in their order


class Regions(NamedTuple):
    """The text in regions of 2^bits positions: what is written of one stays in a core's cache."""

    bits: int
    sizes: np.ndarray  # int64[regions]: suffixes of each; afterwards where they begin
