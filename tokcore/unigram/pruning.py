"""Which pieces are dropped: those that have better ways to be written, and those of the smallest losses."""

from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.unigram.lattice import find_best_way, new_edges, new_ways
from tokcore.unigram.numbers import log
from tokcore.unigram.strings import read_string
from tokcore.unigram.trie import NO_PIECE

_f32, _f64 = np.float32, np.float64

_ONLY, _SPLIT, _REPLACEABLE = 0, 1, 2
"""A piece: the only way to write it; not the best way; the best way of several."""

_WHOLE, _END = -2, -1
"""In place of an edge: the whole string is written; nothing is."""

_ROOM = 1 << 16
"""Hypotheses of a search. SentencePiece gives up after some more, too, and keeps the piece."""


class Search(NamedTuple):
    """The hypotheses of a search, which are ways from somewhere in a string to its end."""

    heap: np.ndarray  # int64[hypotheses]
    links: np.ndarray  # int64[hypotheses, 2]: the first edge, and the hypothesis of what follows it
    scores: np.ndarray  # float32[hypotheses]
    bounds: np.ndarray  # float32[hypotheses]: the score of the best whole way that ends so


@kernel
def keep_pieces(pieces, totals, everything, nodes, unknown, width, kept, losses):
    """Lists the pieces that are always kept from the front of `kept`, and others from its back.

    Args:
        pieces: `Pieces`.
        totals: float32: how often each piece occurs in the best ways of the words.
        everything: float32, their sum.
        losses: float32, of each of the others: how much less probable the text is if the piece is written
            in the second best way.

    Returns how many are always kept, and how many others there are.
    """
    log_sum = _f64(_f32(log(_f64(everything))))
    edges, ways = new_edges(width, width), new_ways(width, width)
    search = Search(
        np.empty(_ROOM, np.int64), np.empty((_ROOM, 2), np.int64), np.empty(_ROOM, np.float32),
        np.empty(_ROOM, np.float32),
    )  # fmt: skip
    string, way = np.empty(width + 1, np.int32), np.empty(width, np.int64)
    always = others = position = 0
    for piece in range(len(totals)):
        size, position = read_string(pieces, position, string)
        if totals[piece] == _f32(0):
            continue
        _, best = find_best_way(string, size, width, nodes, unknown, edges, ways)
        kind, length = _second_way(size, width, best, edges, ways, search, way)
        if kind == _ONLY:
            kept[always] = piece
            always += 1
        elif kind == _REPLACEABLE:
            count = totals[piece]
            without = _f32(everything + _f32(count * _f32(length - 1)))
            log_without = _f64(_f32(log(_f64(without))))
            other_score = _f32(0)
            for k in range(length):
                other = log(_f64(_f32(totals[way[k]] + count))) - log_without
                other_score = _f32(_f64(other_score) + other)
            score = _f32(log(_f64(count)) - log_sum)
            others += 1
            kept[len(kept) - others] = piece
            losses[len(kept) - others] = _f32(_f32(count / everything) * _f32(score - other_score))
    return always, others


@kernel_without_allocation
def _second_way(size, width, best, edges, ways, search, way):
    """Finds the two best ways by A* from the end; `way` gets the pieces of the second.

    Returns the kind of the piece, and how many pieces there are.
    """
    heap, links, scores, bounds = search.heap, search.links, search.scores, search.bounds
    links[0, 0], links[0, 1], scores[0], bounds[0] = _END, -1, _f32(0), best
    hypotheses, heaped, is_found = 1, push(heap, 0, bounds, 0), False
    while heaped > 0 and hypotheses + width < len(heap):
        top = heap[0]
        heaped = pop(heap, heaped, bounds)
        edge = links[top, 0]
        if edge == _WHOLE:
            length, each = 0, links[top, 1]
            while links[each, 1] >= 0:
                way[length] = edges.pieces[links[each, 0]]
                length += 1
                each = links[each, 1]
            if is_found or length > 1:
                return _REPLACEABLE if is_found else _SPLIT, length
            is_found = True
            continue
        begin = size if edge == _END else edge // width
        if begin == 0:
            links[hypotheses, 0], links[hypotheses, 1] = _WHOLE, top
            bounds[hypotheses] = scores[top]
            heaped = push(heap, heaped, bounds, hypotheses)
            hypotheses += 1
        for before in range(max(0, begin - width), begin):
            for other in range(before * width, before * width + edges.number[before]):
                if edges.ends[other] == begin:
                    links[hypotheses, 0], links[hypotheses, 1] = other, top
                    scores[hypotheses] = _f32(edges.scores[other] + scores[top])
                    bounds[hypotheses] = _f32(ways.scores[other] + scores[top])
                    heaped = push(heap, heaped, bounds, hypotheses)
                    hypotheses += 1
    return _ONLY, 0


@kernel_without_allocation
def push(heap, size, bounds, hypothesis):
    """Adds to a heap as libstdc++ does, whose order of equal bounds is not that of Python; returns the size."""
    _rise(heap, size, bounds, hypothesis)
    return size + 1


@kernel_without_allocation
def _rise(heap, hole, bounds, hypothesis):
    while hole > 0 and bounds[heap[(hole - 1) // 2]] < bounds[hypothesis]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = hypothesis


@kernel_without_allocation
def pop(heap, size, bounds):
    """Removes the first of a heap; returns the size."""
    size -= 1
    hypothesis, hole = heap[size], 0
    while 2 * hole + 1 < size:
        child = min(2 * hole + 2, size - 1)
        if bounds[heap[child]] < bounds[heap[2 * hole + 1]]:
            child = 2 * hole + 1
        heap[hole] = heap[child]
        hole = child
    _rise(heap, hole, bounds, hypothesis)
    return size


@kernel
def find_reachable(pieces, trie, unknown, width, reachable):
    """Writes whether each piece is as good as the best way to write it in others."""
    edges, ways = new_edges(width, width), new_ways(width, width)
    string, position = np.empty(width + 1, np.int32), 0
    for piece in range(len(pieces.scores)):
        size, position = read_string(pieces, position, string)
        reachable[piece] = True
        if size > 1:
            node = trie.node_of[piece]
            trie.nodes[node]['piece'] = NO_PIECE
            _, score = find_best_way(string, size, width, trie.nodes, unknown, edges, ways)
            trie.nodes[node]['piece'] = piece
            reachable[piece] = score <= pieces.scores[piece]
