r"""The kernels of the subword model: tokens are escaped and cut into the longest subtokens.

    tokens   ScannedTokens, and which of them were missed: text[starts[i]:ends[i]]   cat  a_b
       │ escape_to_code_points, by `alphabet`
    codes    one after another, up to bounds[m]                                      cat_ a\ub_
       │ probe_bigrams, segment_longest_match, by `trie`
    ids      up to id_bounds[m]                                                      c at_ a \u b_

Each node has its own hash table of edges (uint64) in buckets of two slots; of 32 multiplicative
hash functions and growing sizes the first is taken under which no bucket overflows (perfect
hashing), so a look-up is two comparisons and no branch. The root's edges stand at their code
points. An edge is 0 where there is none, else, from the highest bit on: code point, 1, whether a
subtoken ends there, whether the child has edges, their hash function (5 bits), log2 of their number
of pairs (5), the number of the first of these pairs (30). The id of a subtoken is in another array
(int32) at the edge's place.
"""

from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, larger_workspace, segment_tokens
from tokcore.kernels.bytes import GOLDEN_RATIO, grown
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import load_word
from tokcore.text.t2t import BACKSLASH, LETTER_U, UNDERSCORE
from tokcore.text.unicode import CODE_POINTS, decode_word

MAX_GROWTH = 5
"""Characters of escaped text for a byte: a control character such as U+007F becomes `\\127;`."""

_SEMICOLON, _ZERO = np.uint32(0x3B), np.uint32(0x30)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_10 = np.uint64(10)

_SPREAD = GOLDEN_RATIO - (1 << 64)
_KEY, _CHILD, _ID = 0, 1, 2  # columns of the table that the trie is made from

_NONE, _32 = np.uint64(0), np.uint64(32)
_MULTIPLIER = np.uint64(GOLDEN_RATIO)
_FUNCTIONS = 32
_PRESENT, _HAS_ID, _HAS_EDGES = np.uint64(1 << 42), np.uint64(1 << 41), np.uint64(1 << 40)
_CODE_SHIFT, _PRESENT_SHIFT, _ID_SHIFT = np.uint64(43), np.uint64(42), np.uint64(41)
_EDGES_SHIFT = np.uint64(40)
_FUNCTION_SHIFT, _SIZE_SHIFT = np.uint64(35), np.uint64(30)
_ALL_OF_22 = np.uint64((1 << 22) - 1)
_FIVE_BITS, _FIRST_BITS = np.uint64(0x1F), np.uint64((1 << 30) - 1)
_LOW_HALF = np.uint64((1 << 32) - 1)
_EMPTY_PAIR = np.uint64(CODE_POINTS // 2)  # where nodes without edges are said to have them


class Trie(NamedTuple):
    edges: np.ndarray  # uint64[...]
    edge_ids: np.ndarray  # int32[...]: the ids of the subtokens that end at the edges


class SubwordState(NamedTuple):
    """What segmenting reads of a vocabulary; read-only, so that threads can share it."""

    trie: Trie
    alphabet: np.ndarray
    """uint64[0x110000 / 64]: bit c % 64 of word c // 64 says that code point c is written as
    itself; the others are escaped."""


@kernel_without_allocation
def escape_to_code_points(tokens, missed, alphabet, codes, bounds):
    """Writes the `MissedTokens` of `ScannedTokens`, escaped, as code points.

    The m-th becomes `codes[bounds[m]:bounds[m + 1]]` (uint32, uint64), with room for `MAX_GROWTH`
    code points for a byte and one more.
    """
    length = _0
    bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        place = tokens.starts[token]
        end = tokens.ends[token]
        while place < end:
            word = load_word(tokens.text, place)
            code = decode_word(word)
            # Branches, so that the next character need not wait until this one is loaded.
            if word & np.uint64(0x80) == _0:
                place += _1
            elif word & np.uint64(0xF0) == np.uint64(0xE0):
                place += np.uint64(3)
            else:
                place += _2 if code < np.uint64(0x800) else np.uint64(4)
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
    r"""Puts what stands for a character into out[length:]: `\\`, `\u` or `\<decimal>;`.

    Returns the new length.
    """
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


@segment_tokens.register(SubwordState)
@kernel_without_allocation
def segment_subwords(tokens, missed, model, work):
    """Segments tokens as `segment_tokens` says; `work` is a `TrieWalk`.

    What cannot be spelt are the last `left` escaped characters of a token.
    """
    if len(work.codes) < _most_codes(missed):
        return 0, NO_ROOM
    escape_to_code_points(tokens, missed, model.alphabet, work.codes, work.bounds)
    probe_bigrams(work, np.int64(work.bounds[missed.count]), model.trie)
    return segment_longest_match(work, missed.count, model.trie)


@kernel_without_allocation
def _most_codes(missed):
    """How many code points the tokens can take, with the one more that is read."""
    return MAX_GROWTH * missed.nbytes + missed.count + 1


@larger_workspace.register(SubwordState)
@kernel
def larger_walk(missed, model, work):
    """A `TrieWalk` for tokens of any size; room that is not written to takes no memory."""
    most = _most_codes(missed)
    codes, ids = grown(work.codes, 0, most), grown(work.ids, 0, most)
    matches, deeper = grown(work.matches, 0, most), grown(work.deeper, 0, most)
    return TrieWalk(codes, work.bounds, matches, deeper, ids, work.id_bounds)


class TrieWalk(NamedTuple):
    """Escaped tokens as code points, what the trie has for them, and their ids.

    Token i is codes[bounds[i]:bounds[i + 1]], its ids ids[id_bounds[i]:id_bounds[i + 1]].
    """

    codes: np.ndarray  # uint32, one more than are used
    bounds: np.ndarray  # uint64[tokens + 1]
    matches: np.ndarray  # uint64, one for each code point: see `probe_bigrams`
    deeper: np.ndarray  # uint64, likewise
    ids: np.ndarray  # int32, room for as many as code points
    id_bounds: np.ndarray  # uint64[tokens + 1]


@kernel
def build_trie(codes, offsets):
    """Returns edges and ids of the trie of the subtokens `codes[offsets[i]:offsets[i + 1]]`.

    `codes` uint32[...] are code points. Of equal subtokens the last has the id, empty ones none.
    """
    size = 2
    while size < 2 * codes.size:
        size *= 2
    table = np.zeros((size, 3), np.int64)
    nodes = _add_subtokens(codes, offsets, table)
    lows, places = _place_edges(table, nodes)
    edges = np.zeros(places, np.uint64)
    ids = np.zeros(places, np.int32)
    for slot in range(size):
        key = table[slot, _KEY]
        if key != 0:
            node, code = key >> 21, np.uint64((key & 0x1FFFFF) - 1)
            place = code
            if node != 0:
                place = _find_edge(edges, lows[node], code)[0]
                if edges[place] != _NONE:
                    place += _1
            edges[place] = code << _CODE_SHIFT | _PRESENT | lows[table[slot, _CHILD]]
            if table[slot, _ID] != 0:
                edges[place] |= _HAS_ID
                ids[place] = table[slot, _ID] - 1
    return edges, ids


@kernel_without_allocation
def probe_bigrams(walk, length, trie):
    """Says of so many places of escaped tokens what the trie has for one code point and for two.

    Places do not depend on each other and there is no branch, so the processor waits for several
    look-ups at once, which it cannot where a cut decides on the next place. Tokens end with `_`.
    Sets matches[i] to the id of the longer subtoken of the two at codes[i] and its length << 32, or
    0, and deeper[i] to the edge of two code points if longer ones begin so, else 0.
    """
    codes, matches, deeper = walk.codes, walk.matches, walk.deeper
    edges, edge_ids = trie.edges, trie.edge_ids
    for position in range(np.uint64(length)):
        code = np.uint64(codes[position])
        edge = edges[code]
        # What follows `_` is another token.
        low = _EMPTY_PAIR if code == UNDERSCORE else edge
        place, second = _find_edge(edges, low, np.uint64(codes[position + _1]))
        longer = second >> _ID_SHIFT & _1
        match = np.uint64(edge_ids[code + (place - code) * longer]) | (_1 + longer) << _32
        matches[position] = match * ((edge | second) >> _ID_SHIFT & _1)
        deeper[position] = second * (second >> _EDGES_SHIFT & _1)


@kernel_without_allocation
def segment_longest_match(walk, tokens, trie):
    """Cuts so many escaped tokens of a `TrieWalk` into the longest subtokens, each from its left.

    `probe_bigrams` has been there. Returns (token, left) where no subtoken begins the last `left`
    code points of a token, or (tokens, 0).
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
                place, edge = _find_edge(edges, edge, np.uint64(codes[reach]))
                reach += _1
                if edge & _HAS_ID != _NONE:
                    match = np.uint64(edge_ids[place]) | (reach - position) << _32
            if match == _NONE:
                return np.int64(token), np.int64(end - position)
            ids[used] = np.int32(match & _LOW_HALF)
            used += _1
            position += match >> _32
        id_bounds[token + _1] = used
    return tokens, 0


@kernel_without_allocation
def _pair_within(code, function, size):
    """Which of 2 ** size pairs an edge belongs to."""
    return (np.uint64(code) * _MULTIPLIER >> function) & ((_1 << size) - _1)


@kernel_without_allocation
def _is_other(edge, wanted):
    """0 if an edge's 22 highest bits are the wanted ones, else 1."""
    return ((edge >> _PRESENT_SHIFT ^ wanted) + _ALL_OF_22) >> np.uint64(22)


@kernel_without_allocation
def _find_edge(edges, edge, code):
    """The place of the child's edge of a code point, and that edge, or 0 where it has none."""
    pair = (edge & _FIRST_BITS) + _pair_within(
        code, edge >> _FUNCTION_SHIFT & _FIVE_BITS, edge >> _SIZE_SHIFT & _FIVE_BITS
    )
    # In arithmetic, since of a comparison the compiler makes a branch, which nobody can guess.
    wanted = code << _1 | _1
    place = (pair << _1) + _1
    place -= _is_other(edges[place], wanted)
    found = edges[place]
    return place, found & (_is_other(found, wanted) - _1)


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


@kernel_without_allocation
def _fitting(codes, taken):
    """Returns a hash function and a size that put no more than two of the code points in a pair.

    `taken` uint8[...] is zero, and is left so; the function found is among those of the least size.
    """
    size = 0
    while 2 << size < codes.size:
        size += 1
    while True:
        for function in range(_FUNCTIONS):
            most = 0
            for code in codes:
                pair = _pair_within(code, np.uint64(function), np.uint64(size))
                taken[pair] += 1
                most = max(most, taken[pair])
            for code in codes:
                taken[_pair_within(code, np.uint64(function), np.uint64(size))] = 0
            if most <= 2:
                return function, size
        size += 1


@kernel
def _place_edges(table, nodes):
    """Returns for each node its edge's low 41 bits, and how many places there are in all."""
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
    lows = np.full(nodes, _EMPTY_PAIR)
    taken = np.zeros(2 * CODE_POINTS, np.uint8)
    pairs = np.int64(_EMPTY_PAIR) + 1
    for node in range(1, nodes):
        if ends[node + 1] > ends[node]:
            function, size = _fitting(codes[ends[node] : ends[node + 1]], taken)
            lows[node] = _HAS_EDGES | np.uint64(function << 35 | size << 30 | pairs)
            pairs += 1 << size
    return lows, 2 * pairs
