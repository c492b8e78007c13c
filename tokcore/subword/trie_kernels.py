"""The trie of a vocabulary's subtokens over bytes, and greedy cutting by walking it.

Edges are one open-addressing table: a word holds parent, byte and child. Escaped text is matched
byte by byte; as subtokens are whole characters, a match ends between characters.
"""

import numpy as np

from tokcore.compilation import kernel

_CHILD_BITS = 27
MAX_NODES = 1 << _CHILD_BITS  # so that parent, byte and child fit the 63 bits of an edge
_CHILD_MASK = MAX_NODES - 1
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 over the golden ratio: spreads consecutive keys


@kernel
def _edge_slot(edges, key):
    """The slot of an edge's key (parent << 8 | byte), or the free one where it belongs."""
    mask = edges.size - 1
    slot = (key * _SPREAD >> 32) & mask
    while edges[slot] != 0 and edges[slot] >> _CHILD_BITS != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def _add_edges(data, offsets, edges):
    """Fills `edges` with the trie of all pieces of `data`; returns the number of its nodes."""
    nodes = 1
    for piece in range(offsets.size - 1):
        node = 0
        for position in range(offsets[piece], offsets[piece + 1]):
            key = node << 8 | np.int64(data[position])
            slot = _edge_slot(edges, key)
            if edges[slot] == 0:
                edges[slot] = key << _CHILD_BITS | nodes
                nodes += 1
            node = edges[slot] & _CHILD_MASK
    return nodes


@kernel
def _table_size(entries):
    """The smallest power of two that is at least twice the entries."""
    size = 2
    while size < 2 * entries:
        size *= 2
    return size


@kernel
def build_trie(data, offsets):
    """Returns the trie of the subtokens `data[offsets[i]:offsets[i + 1]]` as (edges, node_ids).

    int64[power of two] and int32[nodes] as in `VocabularyArrays`; the last of equal ones has the id.
    """
    sparse = np.zeros(_table_size(data.size), np.int64)
    nodes = _add_edges(data, offsets, sparse)
    # Subtokens share beginnings, so the table shrinks much; a small one stays in the cache.
    edges = np.zeros(_table_size(nodes), np.int64)
    for edge in sparse:
        if edge != 0:
            edges[_edge_slot(edges, edge >> _CHILD_BITS)] = edge
    node_ids = np.full(nodes, -1, np.int32)
    for piece in range(offsets.size - 1):
        node = 0
        for position in range(offsets[piece], offsets[piece + 1]):
            key = node << 8 | np.int64(data[position])
            node = edges[_edge_slot(edges, key)] & _CHILD_MASK
        if node != 0:
            node_ids[node] = piece
    return edges, node_ids


@kernel
def cut_greedily(escaped, length, edges, node_ids, ids, used):
    """Puts the longest subtokens of escaped[:length] into ids[used:]; returns (used, missed).

    `missed` bytes are left over where no subtoken begins. `ids` has room for one id a byte.
    """
    position = 0
    while position < length:
        node = 0
        found = -1
        matched = position
        reach = position
        while reach < length:
            edge = edges[_edge_slot(edges, node << 8 | np.int64(escaped[reach]))]
            if edge == 0:
                break
            node = edge & _CHILD_MASK
            reach += 1
            if node_ids[node] >= 0:
                found = node_ids[node]
                matched = reach
        if found < 0:
            break
        ids[used] = found
        used += 1
        position = matched
    return used, length - position
