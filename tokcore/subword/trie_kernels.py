r"""The kernels of the subword model: tokens are escaped and segmented into the longest subtokens.

    tokens   ScannedTokens, and which of them were missed: text[starts[i]:ends[i]]   cat  a_b
       │ escape_to_code_points, by `alphabet`
    codes    one after another, up to bounds[m]                                      cat_ a\ub_
       │ probe_bigrams, segment_longest_match, by `trie`
    ids      up to id_bounds[m]                                                      c at_ a \u b_

Each node of the trie has its own hash table of edges (uint64), in buckets of two. Of 32
multiplicative hash functions and growing sizes, the first is chosen with which no bucket overflows
(perfect hashing), so a look-up is two comparisons without a branch. The root's edges are indexed by
code point. An edge
is 0 if absent, else, from the highest bit on: code point; 1; whether a subtoken ends there; whether
the child has edges, their hash function (5 bits), log2 of the number of their buckets (5), and the
first of these buckets (30). The id of a subtoken is in another array (int32), at the edge's index.
"""

from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, larger_workspace, segment_tokens
from tokcore.kernels.bytes import GOLDEN_RATIO, grown
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import load_word, prefetch
from tokcore.text.t2t import BACKSLASH, LETTER_U, UNDERSCORE
from tokcore.text.unicode import CODE_POINTS, decode_word

MAX_GROWTH = 5
"""Characters of escaped text per byte: a control character such as U+007F becomes `\\127;`."""

_SEMICOLON, _ZERO = np.uint32(0x3B), np.uint32(0x30)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_10 = np.uint64(10)
_GROUP = np.uint64(64)
"""Code points whose edges are prefetched before the first is read."""

_SPREAD = GOLDEN_RATIO - (1 << 64)
_KEY, _CHILD, _ID = 0, 1, 2  # columns of the table that the trie is built from

_NONE, _32 = np.uint64(0), np.uint64(32)
_MULTIPLIER = np.uint64(GOLDEN_RATIO)
_FUNCTIONS = 32
_PRESENT, _HAS_ID, _HAS_EDGES = np.uint64(1 << 42), np.uint64(1 << 41), np.uint64(1 << 40)
_CODE_SHIFT, _PRESENT_SHIFT, _ID_SHIFT = np.uint64(43), np.uint64(42), np.uint64(41)
_EDGES_SHIFT = np.uint64(40)
_FUNCTION_SHIFT, _SIZE_SHIFT = np.uint64(35), np.uint64(30)
_MASK_22 = np.uint64((1 << 22) - 1)
_FIVE_BITS, _FIRST_BITS = np.uint64(0x1F), np.uint64((1 << 30) - 1)
_LOW_HALF = np.uint64((1 << 32) - 1)
_EMPTY_BUCKET = np.uint64(CODE_POINTS // 2)  # the bucket of nodes without edges: it stays empty


class HashedTrie(NamedTuple):
    """The trie of the subtokens."""

    edges: np.ndarray  # uint64[...]
    edge_ids: np.ndarray  # int32[...]: the ids of the subtokens that end at the edges


class SubwordState(NamedTuple):
    """What segmenting reads of a vocabulary; read-only, so that threads can share it."""

    trie: HashedTrie
    alphabet: np.ndarray
    """uint64[0x110000 / 64]: if bit c % 64 of word c // 64 is 0, code point c is escaped."""


class TrieWalk(NamedTuple):
    """Escaped tokens as code points, the results of trie look-ups, and the tokens' ids.

    Token i is codes[bounds[i]:bounds[i + 1]], its ids ids[id_bounds[i]:id_bounds[i + 1]].
    """

    codes: np.ndarray  # uint32, with room for one more than are used
    bounds: np.ndarray  # uint64[tokens + 1]
    matches: np.ndarray  # uint64, one for each code point: see `probe_bigrams`
    deeper: np.ndarray  # uint64, likewise
    ids: np.ndarray  # int32, with room for as many as code points
    id_bounds: np.ndarray  # uint64[tokens + 1]


@segment_tokens.register(SubwordState)
@kernel_without_allocation
def _segment_subwords(tokens, missed, model, work):
    """Segments tokens as `segment_tokens`; `work` is a `TrieWalk`.

    Of a token that cannot be segmented, it returns the number of the remaining escaped characters.
    """
    if len(work.codes) < _max_codes(missed):
        return 0, NO_ROOM
    escape_to_code_points(tokens, missed, model.alphabet, work.codes, work.bounds)
    probe_bigrams(work, np.int64(work.bounds[missed.count]), model.trie)
    return segment_longest_match(work, missed.count, model.trie)


@kernel_without_allocation
def escape_to_code_points(tokens, missed, alphabet, codes, bounds):
    """Writes the `MissedTokens` of `ScannedTokens`, escaped, as code points.

    The m-th becomes `codes[bounds[m]:bounds[m + 1]]` (uint32, uint64). `codes` has room for
    `MAX_GROWTH` code points per byte and one more per token.
    """
    length = _0
    bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        position = tokens.starts[token]
        end = tokens.ends[token]
        while position < end:
            word = load_word(tokens.text, position)
            code = decode_word(word)
            # With branches the processor can go on to the next character before this one is loaded.
            if word & np.uint64(0x80) == _0:
                position += _1
            elif word & np.uint64(0xF0) == np.uint64(0xE0):
                position += np.uint64(3)
            else:
                position += _2 if code < np.uint64(0x800) else np.uint64(4)
            if alphabet[code >> np.uint64(6)] >> (code & np.uint64(63)) & _1 != _0:
                codes[length] = code
                length += _1
            else:
                length = _put_escape(code, codes, length)
        codes[length] = UNDERSCORE
        length += _1
        bounds[miss + _1] = length


@kernel_without_allocation
def _put_escape(code, out, length):
    r"""Writes the escape of a character to out[length:], `\\`, `\u` or `\<decimal>;`."""
    out[length] = BACKSLASH
    length += _1
    if code == BACKSLASH or code == UNDERSCORE:
        out[length] = BACKSLASH if code == BACKSLASH else LETTER_U
        return length + _1
    digits = _1
    limit = _10
    while code >= limit:
        digits += _1
        limit *= _10
    for digit in range(digits):
        out[length + digits - _1 - digit] = _ZERO + np.uint32(code % _10)
        code //= _10
    out[length + digits] = _SEMICOLON
    return length + digits + _1


@kernel_without_allocation
def probe_bigrams(walk, length, trie):
    """Looks up one and two code points from each of the first `length` positions on.

    The positions are independent and there is no branch, so the processor does several look-ups at
    once, and their memory is prefetched; segmenting cannot, since a segment's end decides where the
    next begins. Tokens end with `_`. Sets matches[i] to the id of the longest subtoken of one or two
    code points at codes[i] and its length << 32, or 0; and deeper[i] to the edge of the second code
    point if it leads further, or 0.
    """
    codes, matches, deeper = walk.codes, walk.matches, walk.deeper
    edges, edge_ids = trie.edges, trie.edge_ids
    for group in range(_0, np.uint64(length), _GROUP):
        end = min(group + _GROUP, np.uint64(length))
        for position in range(group, end):
            code = np.uint64(codes[position])
            # Another token follows after `_`.
            low = _EMPTY_BUCKET if code == UNDERSCORE else edges[code]
            index = _second_of_bucket(low, np.uint64(codes[position + _1]))
            matches[position] = index
            prefetch(edges, index)
            prefetch(edge_ids, index)
            prefetch(edge_ids, code)
        for position in range(group, end):
            code = np.uint64(codes[position])
            index, second = _edge_in_bucket(
                edges, matches[position], np.uint64(codes[position + _1])
            )
            longer = second >> _ID_SHIFT & _1
            match = np.uint64(edge_ids[code + (index - code) * longer]) | (_1 + longer) << _32
            matches[position] = match * ((edges[code] | second) >> _ID_SHIFT & _1)
            deeper[position] = second * (second >> _EDGES_SHIFT & _1)


@kernel_without_allocation
def segment_longest_match(walk, tokens, trie):
    """Segments the first escaped tokens of a `TrieWalk` into the longest subtokens, from the left.

    `probe_bigrams` was called before. Returns (token, remaining) if no subtoken begins the last
    `remaining` code points of a token, else (tokens, 0).
    """
    codes, bounds, matches, deeper = walk.codes, walk.bounds, walk.matches, walk.deeper
    edges, edge_ids, ids, id_bounds = trie.edges, trie.edge_ids, walk.ids, walk.id_bounds
    used = _NONE
    id_bounds[0] = used
    for token in range(np.uint64(tokens)):
        position = bounds[token]
        end = bounds[token + _1]
        while position < end:
            match = matches[position]
            edge = deeper[position]
            reach = position + _2
            while edge & _HAS_EDGES != _NONE and reach < end:
                index, edge = _find_edge(edges, edge, np.uint64(codes[reach]))
                reach += _1
                if edge & _HAS_ID != _NONE:
                    match = np.uint64(edge_ids[index]) | (reach - position) << _32
            if match == _NONE:
                return np.int64(token), np.int64(end - position)
            ids[used] = np.int32(match & _LOW_HALF)
            used += _1
            position += match >> _32
        id_bounds[token + _1] = used
    return tokens, 0


@kernel_without_allocation
def _find_edge(edges, edge, code):
    """Returns the index of a node's edge for a code point, and that edge, or 0 if there is none."""
    return _edge_in_bucket(edges, _second_of_bucket(edge, code), code)


@kernel_without_allocation
def _second_of_bucket(edge, code):
    """Returns the second index of the bucket in which a node has its edge for a code point."""
    bucket = (edge & _FIRST_BITS) + _bucket_of(
        code, edge >> _FUNCTION_SHIFT & _FIVE_BITS, edge >> _SIZE_SHIFT & _FIVE_BITS
    )
    return (bucket << _1) + _1


@kernel_without_allocation
def _edge_in_bucket(edges, index, code):
    # Arithmetic, since the compiler turns a comparison into a branch, which is unpredictable.
    expected = code << _1 | _1
    index -= _is_other(edges[index], expected)
    child = edges[index]
    return index, child & (_is_other(child, expected) - _1)


@kernel_without_allocation
def _is_other(edge, expected):
    """Returns 0 if an edge's 22 highest bits are the expected ones, else 1."""
    return ((edge >> _PRESENT_SHIFT ^ expected) + _MASK_22) >> np.uint64(22)


@kernel_without_allocation
def _bucket_of(code, function, size):
    """Returns the one of 2 ** size buckets that an edge belongs to."""
    return (np.uint64(code) * _MULTIPLIER >> function) & ((_1 << size) - _1)


@larger_workspace.register(SubwordState)
@kernel
def _larger_walk(missed, model, work):
    """Returns a `TrieWalk` with room for the missed tokens; unused pages take no memory."""
    size = _max_codes(missed)
    codes, ids = grown(work.codes, 0, size), grown(work.ids, 0, size)
    matches, deeper = grown(work.matches, 0, size), grown(work.deeper, 0, size)
    return TrieWalk(codes, work.bounds, matches, deeper, ids, work.id_bounds)


@kernel_without_allocation
def _max_codes(missed):
    """Returns the most code points of the escaped tokens, and one more, which is read."""
    return MAX_GROWTH * missed.nbytes + missed.count + 1


@kernel
def build_trie(codes, offsets):
    """Returns the edges and ids (`HashedTrie`) of the subtokens `codes[offsets[i]:offsets[i + 1]]`.

    `codes` uint32[...] are code points. Of equal subtokens, the last gives the id; empty ones are
    not in the trie.
    """
    size = 2
    while size < 2 * codes.size:
        size *= 2
    table = np.zeros((size, 3), np.int64)
    nodes = _add_subtokens(codes, offsets, table)
    lows, length = _allocate_edges(table, nodes)
    edges = np.zeros(length, np.uint64)
    ids = np.zeros(length, np.int32)
    for slot in range(size):
        key = table[slot, _KEY]
        if key != 0:
            node, code = key >> 21, np.uint64((key & 0x1FFFFF) - 1)
            index = code
            if node != 0:
                index = _find_edge(edges, lows[node], code)[0]
                if edges[index] != _NONE:
                    index += _1
            edges[index] = code << _CODE_SHIFT | _PRESENT | lows[table[slot, _CHILD]]
            if table[slot, _ID] != 0:
                edges[index] |= _HAS_ID
                ids[index] = table[slot, _ID] - 1
    return edges, ids


@kernel_without_allocation
def _add_subtokens(codes, offsets, table):
    """Fills a hash table of rows (node << 21 | code point + 1, child, id + 1 or 0).

    Returns the number of nodes; 0 is the root.
    """
    mask = table.shape[0] - 1
    nodes = 1
    for subtoken in range(offsets.size - 1):
        node = 0
        slot = -1
        for position in range(offsets[subtoken], offsets[subtoken + 1]):
            key = node << 21 | (np.int64(codes[position]) + 1)
            slot = (key * _SPREAD >> 32) & mask
            while table[slot, _KEY] != key and table[slot, _KEY] != 0:
                slot = (slot + 1) & mask
            if table[slot, _KEY] == 0:
                table[slot, _KEY] = key
                table[slot, _CHILD] = nodes
                nodes += 1
            node = table[slot, _CHILD]
        if slot >= 0:
            table[slot, _ID] = subtoken + 1
    return nodes


@kernel
def _allocate_edges(table, nodes):
    """Returns the low 41 bits of each node's edge, and the length of the array of edges."""
    ends = np.zeros(nodes + 1, np.int64)
    for slot in range(table.shape[0]):
        if table[slot, _KEY] != 0:
            ends[(table[slot, _KEY] >> 21) + 1] += 1
    ends = np.cumsum(ends)
    codes = np.empty(ends[nodes], np.int64)
    begins = ends[:nodes].copy()
    for slot in range(table.shape[0]):
        if table[slot, _KEY] != 0:
            node = table[slot, _KEY] >> 21
            codes[begins[node]] = (table[slot, _KEY] & 0x1FFFFF) - 1
            begins[node] += 1
    lows = np.full(nodes, _EMPTY_BUCKET)
    sizes = np.zeros(2 * CODE_POINTS, np.uint8)
    buckets = np.int64(_EMPTY_BUCKET) + 1
    for node in range(1, nodes):
        if ends[node + 1] > ends[node]:
            function, size = _find_hash_function(codes[ends[node] : ends[node + 1]], sizes)
            lows[node] = _HAS_EDGES | np.uint64(function << 35 | size << 30 | buckets)
            buckets += 1 << size
    return lows, 2 * buckets


@kernel_without_allocation
def _find_hash_function(codes, sizes):
    """Returns a hash function, and the least log2 of buckets, with at most two code points in each.

    `sizes` uint8[...] is 0 before and after.
    """
    size = 0
    while 2 << size < codes.size:
        size += 1
    while True:
        for function in range(_FUNCTIONS):
            fullest = 0
            for code in codes:
                bucket = _bucket_of(code, np.uint64(function), np.uint64(size))
                sizes[bucket] += 1
                fullest = max(fullest, sizes[bucket])
            for code in codes:
                sizes[_bucket_of(code, np.uint64(function), np.uint64(size))] = 0
            if fullest <= 2:
                return function, size
        size += 1
