"""The pieces as a trie in a hash table: a node is the slot where it is, found by its parent and a letter.

A slot has all that a step needs, so that a step reads memory once: whose child it is, and the piece that
ends there with its score.
"""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, read_varint
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.kernels.simd import prefetch
from tokcore.unigram.seeds import Pieces

NODE = np.dtype(
    [('parent', np.int32), ('letter', np.int32), ('piece', np.int32), ('score', np.float32)]
)

ROOT, NO_PIECE = 0, -1

FREE = -1
"""As a parent: there is no node."""

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)


class PieceTrie(NamedTuple):
    """The nodes, and the node of each piece."""

    nodes: np.ndarray  # NODE[a power of two]
    node_of: np.ndarray  # int32[pieces]

    @classmethod
    def of(cls, pieces: Pieces) -> 'PieceTrie':
        """Returns the trie of distinct pieces."""
        node_of = np.empty(len(pieces.scores), np.int32)
        slots, is_built = 1 << max(4, (2 * len(node_of) - 1).bit_length()), False
        while not is_built:
            nodes = np.zeros(slots, NODE)
            nodes['parent'], nodes['piece'] = FREE, NO_PIECE
            is_built = _insert_pieces(pieces.letters, nodes, node_of)
            slots *= 2
        return cls(nodes, node_of).score(slice(None), pieces.scores)

    def score(self, kept: np.ndarray | slice, scores: np.ndarray) -> 'PieceTrie':
        """Sets the scores of these pieces, which are numbered anew; switches all others off."""
        self.nodes['piece'][self.node_of] = NO_PIECE
        node_of = self.node_of[kept]
        self.nodes['piece'][node_of] = np.arange(len(scores), dtype=np.int32)
        self.nodes['score'][node_of] = scores
        return PieceTrie(self.nodes, node_of)


@kernel_without_allocation
def first_slot(nodes, parent, letter):
    """Returns the slot from which on the child of a node by a letter is searched, and prefetches it."""
    spread = (np.uint64(parent) * _MIXER ^ np.uint64(letter)) * _SPREAD
    slot = spread >> np.uint64(32) & np.uint64(len(nodes) - 1)
    prefetch(nodes, slot)
    return slot


@kernel_without_allocation
def find_slot(nodes, slot, parent, letter):
    """Returns the slot of a child, or the free one where it would be."""
    while True:
        found = nodes[slot]['parent']
        if found == FREE or (found == parent and nodes[slot]['letter'] == letter):
            return slot
        slot = (slot + np.uint64(1)) & np.uint64(len(nodes) - 1)


@kernel_without_allocation
def _insert_pieces(letters, nodes, node_of):
    """Inserts all pieces; returns False if less than a third of the slots is free."""
    nodes[ROOT]['parent'], nodes[ROOT]['letter'] = ROOT, -1
    used, position = 1, 0
    for piece in range(len(node_of)):
        node = np.int64(ROOT)
        letter, position = read_varint(letters, position)
        while letter != 0:
            slot = find_slot(nodes, first_slot(nodes, node, letter), node, letter)
            if nodes[slot]['parent'] == FREE:
                nodes[slot]['parent'], nodes[slot]['letter'] = node, letter
                used += 1
            node = np.int64(slot)
            letter, position = read_varint(letters, position)
        if 3 * used > 2 * len(nodes):
            return False
        node_of[piece] = node
    return True
