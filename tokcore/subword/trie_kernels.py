"""The trie of a vocabulary's subtokens over code points, and greedy cutting by walking it.

Edges are one open-addressing table, int64[power of two, 2]: `parent << 21 | code point + 1`, or 0
where free, and beside it, so that a step touches one cache line, `child << 32 | id + 1` with the id
of the subtoken that ends at the child, -1 for none. Node 0 is the root.
"""

import numpy as np

from tokcore.compilation import kernel

_KEY, _CHILD = 0, 1
_CODE_BITS = 21
_ID_BITS = 32
_ID_MASK = (1 << _ID_BITS) - 1
_SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 over the golden ratio: spreads consecutive keys


@kernel
def _edge_slot(edges, key):
    """The slot of an edge's key, or the free one where it belongs."""
    mask = edges.shape[0] - 1
    slot = (key * _SPREAD >> 32) & mask
    while edges[slot, _KEY] != key and edges[slot, _KEY] != 0:
        slot = (slot + 1) & mask
    return slot


@kernel
def _add_subtokens(codes, offsets, edges):
    """Fills `edges` with the trie of all subtokens; returns the number of its nodes."""
    nodes = 1
    for subtoken in range(offsets.size - 1):
        node = 0
        slot = -1
        for position in range(offsets[subtoken], offsets[subtoken + 1]):
            key = node << _CODE_BITS | (np.int64(codes[position]) + 1)
            slot = _edge_slot(edges, key)
            if edges[slot, _KEY] == 0:
                edges[slot, _KEY] = key
                edges[slot, _CHILD] = nodes << _ID_BITS
                nodes += 1
            node = edges[slot, _CHILD] >> _ID_BITS
        if slot >= 0:
            edges[slot, _CHILD] = node << _ID_BITS | (subtoken + 1)
    return nodes


@kernel
def _table_size(entries):
    """The smallest power of two that is at least twice the entries."""
    size = 2
    while size < 2 * entries:
        size *= 2
    return size


@kernel
def build_trie(codes, offsets):
    """Returns the edges of the trie of the subtokens `codes[offsets[i]:offsets[i + 1]]`.

    `codes` uint32[...] are code points. Of equal subtokens the last has the id, empty ones none.
    """
    sparse = np.zeros((_table_size(codes.size), 2), np.int64)
    nodes = _add_subtokens(codes, offsets, sparse)
    # Subtokens share beginnings, so the table shrinks much; a small one stays in the cache.
    edges = np.zeros((_table_size(nodes), 2), np.int64)
    for old in range(sparse.shape[0]):
        if sparse[old, _KEY] != 0:
            slot = _edge_slot(edges, sparse[old, _KEY])
            edges[slot, _KEY] = sparse[old, _KEY]
            edges[slot, _CHILD] = sparse[old, _CHILD]
    return edges


@kernel
def cut_greedily(escaped, length, edges, ids, used):
    """Puts the longest subtokens of escaped[:length] into ids[used:]; returns (used, missed).

    The last `missed` code points are left over if no subtoken begins them. `ids` has room for an id
    for each code point.
    """
    mask = edges.shape[0] - 1
    position = 0
    while position < length:
        node = 0
        found = 0
        matched = position
        reach = position
        while reach < length:
            key = node << _CODE_BITS | (np.int64(escaped[reach]) + 1)
            # `_edge_slot`, written out: as a call it would count references for every character.
            slot = (key * _SPREAD >> 32) & mask
            while edges[slot, _KEY] != key and edges[slot, _KEY] != 0:
                slot = (slot + 1) & mask
            child = edges[slot, _CHILD]
            if child == 0:
                break
            node = child >> _ID_BITS
            reach += 1
            if child & _ID_MASK:
                found = child & _ID_MASK
                matched = reach
        if found == 0:
            break
        ids[used] = found - 1
        used += 1
        position = matched
    return used, length - position
