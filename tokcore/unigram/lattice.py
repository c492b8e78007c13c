"""All ways to segment words: expected counts of the pieces, and the best ways.

Each of N shards of words is summed in single precision in its order, and the N sums are added in theirs: a
shard is what one thread of SentencePiece's trainer computes. Threads take shards, so the result depends on N,
not on the number of threads.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.kernels.simd import prefetch
from tokcore.unigram.numbers import add_logs, add_times_exp, number_tables
from tokcore.unigram.strings import Strings, read_string
from tokcore.unigram.trie import FREE, NO_PIECE, ROOT, find_slot, first_slot

_f32 = np.float32


class Edges(NamedTuple):
    """The edges of a lattice, `width` slots for those that begin at each letter."""

    number: np.ndarray  # int64[letters]: how many begin here
    ends: np.ndarray  # int32[letters * width]
    pieces: np.ndarray  # int32[letters * width]
    scores: np.ndarray  # float32[letters * width]
    # uint64[letters, 3]: where walks down the trie began, their nodes and next slots.
    walks: np.ndarray


@kernel
def new_edges(letters, width):
    size = letters * width
    return Edges(
        np.zeros(letters, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int32),
        np.zeros(size, np.float32), np.zeros((letters, 3), np.uint64),
    )  # fmt: skip


@kernel_without_allocation
def list_edges(string, size, width, nodes, unknown, edges):
    """Lists the pieces that begin at each letter of a string, the shortest first.

    A letter that is no piece is the first piece of all, by the score of unknown ones, after the others. All
    walks go down by one letter at a time, so that the memory for many steps is fetched at once.
    """
    number, walks = edges.number, edges.walks
    for begin in range(np.uint64(size)):
        number[begin] = 0
        walks[begin, 0], walks[begin, 1] = begin, np.uint64(ROOT)
        walks[begin, 2] = first_slot(nodes, ROOT, string[begin])
    left, depth = np.uint64(size), np.uint64(0)
    while left > np.uint64(0):
        going = np.uint64(0)
        for walk in range(left):
            begin, parent = walks[walk, 0], np.int64(walks[walk, 1])
            position = begin + depth
            node = find_slot(nodes, walks[walk, 2], parent, string[position])
            if nodes[node]['parent'] == FREE:
                continue
            piece = nodes[node]['piece']
            if piece != NO_PIECE:
                at = begin * np.uint64(width) + np.uint64(number[begin])
                edges.ends[at], edges.pieces[at] = begin + depth + np.uint64(1), piece
                edges.scores[at] = nodes[node]['score']
                number[begin] += 1
            letter = string[position + np.uint64(1)]
            if letter != 0:
                walks[going, 0], walks[going, 1] = begin, node
                walks[going, 2] = first_slot(nodes, np.int64(node), letter)
                going += np.uint64(1)
        left = going
        depth += np.uint64(1)
    for begin in range(np.uint64(size)):
        at = begin * np.uint64(width)
        if number[begin] == 0 or np.uint64(edges.ends[at]) != begin + np.uint64(1):
            at += np.uint64(number[begin])
            edges.ends[at], edges.pieces[at], edges.scores[at] = begin + np.uint64(1), 0, unknown
            number[begin] += 1


def sum_shards(
    kernel_of_shard: Callable[..., None], shards: Sequence[Strings], nodes: np.ndarray,
    pieces: int, unknown: np.float32, width: int, max_workers: int,
) -> np.ndarray:  # fmt: skip
    """Returns the sums of all shards, float32[pieces]."""
    tables = number_tables()

    def sum_shard(shard: Strings) -> np.ndarray:
        sums = np.zeros(pieces, _f32)
        kernel_of_shard(shard, nodes, unknown, width, tables, sums)
        return sums

    with ThreadPoolExecutor(max_workers) as pool:
        results = pool.map(sum_shard, shards)
        total = next(results)
        for sums in results:
            total += sums
    return total


@kernel
def expect_counts(words, nodes, unknown, width, tables, sums):
    """Adds to each piece's sum how often it is expected in words."""
    edges = new_edges(words.longest, width)
    word, position = np.empty(words.longest + 1, np.int32), 0
    logs = np.empty((2, words.longest + 1), np.float32)
    alpha, beta = logs[0], logs[1]
    for count in words.counts:
        size, position = read_string(words, position, word)
        for end in range(1, size + 1):
            alpha[np.uint64(end)] = np.inf  # not yet known
        alpha[0] = beta[size] = _f32(0)
        list_edges(word, size, width, nodes, unknown, edges)
        for begin in range(size):
            before = alpha[np.uint64(begin)]
            for edge in range(begin * width, begin * width + edges.number[np.uint64(begin)]):
                end = np.uint64(edges.ends[np.uint64(edge)])
                x = _f32(edges.scores[np.uint64(edge)] + before)
                y = alpha[end]
                alpha[end] = x if y == np.inf else add_logs(y, x, tables)
        total = alpha[size]
        for begin in range(size - 1, -1, -1):
            y = _f32(np.inf)
            for edge in range(begin * width, begin * width + edges.number[np.uint64(begin)]):
                prefetch(sums, np.uint64(edges.pieces[np.uint64(edge)]))
                end = np.uint64(edges.ends[np.uint64(edge)])
                x = _f32(edges.scores[np.uint64(edge)] + beta[end])
                y = x if y == np.inf else add_logs(y, x, tables)
            beta[np.uint64(begin)] = y
        for begin in range(size):
            before = alpha[np.uint64(begin)]
            for edge in range(begin * width, begin * width + edges.number[np.uint64(begin)]):
                after = beta[np.uint64(edges.ends[np.uint64(edge)])]
                x = _f32(_f32(_f32(before + edges.scores[np.uint64(edge)]) + after) - total)
                piece = np.uint64(edges.pieces[np.uint64(edge)])
                sums[piece] = add_times_exp(sums[piece], count, x, tables)


class Ways(NamedTuple):
    """The best way up to each letter, and up to each edge."""

    best: np.ndarray  # float32[letters + 1]: the best score of a way that ends here
    edge: np.ndarray  # int64[letters + 1]: its last edge, the first of equal ones
    is_close: np.ndarray  # bool[letters + 1]: whether rounding may make an earlier edge equal
    scores: np.ndarray  # float32[edges]
    before: np.ndarray  # int64[edges]: the edge before it


@kernel
def new_ways(letters, width):
    return Ways(
        np.empty(letters + 1, np.float32), np.empty(letters + 1, np.int64), np.empty(letters + 1, np.bool_),
        np.empty(letters * width, np.float32), np.empty(letters * width, np.int64),
    )  # fmt: skip


@kernel_without_allocation
def find_best_way(string, size, width, nodes, unknown, edges, ways):
    """Lists all edges of a string and finds its best way; returns its last edge and its score.

    For each edge the best one before it is chosen with the score of the edge itself added, so that two
    that differ may become equal, and the first one of them is taken.
    """
    for end in range(size + 1):
        ways.best[end], ways.is_close[end] = -np.inf, False
    list_edges(string, size, width, nodes, unknown, edges)
    for begin in range(size):
        for edge in range(begin * width, begin * width + edges.number[begin]):
            score, last = edges.scores[edge], np.int64(-1)
            if begin > 0:
                score, last = _extend(ways, edges, begin, width, score)
            ways.scores[edge], ways.before[edge] = score, last
            end = np.int64(edges.ends[edge])
            if score > ways.best[end]:
                # Sums of single precision are equal at most if they differ less than this.
                near = _f32(1e-6) * _f32(abs(score) + abs(unknown))
                ways.is_close[end] = ways.best[end] >= _f32(score - near)
                ways.best[end], ways.edge[end] = score, edge
    score, last = _extend(ways, edges, size, width, _f32(0))
    return last, score


@kernel_without_allocation
def _extend(ways, edges, begin, width, score):
    """Returns the best sum of a way that ends at a letter and a score, and the last edge of that way."""
    most, last = _f32(ways.best[begin] + score), ways.edge[begin]
    if ways.is_close[begin]:
        for other in range(max(0, begin * width - width * width), last):
            from_ = other // width
            if other - from_ * width < edges.number[from_] and edges.ends[other] == begin:
                if _f32(ways.scores[other] + score) == most:
                    return most, np.int64(other)
    return most, last


@kernel
def count_best_ways(words, nodes, unknown, width, tables, sums):
    """Adds the words' counts to the sums of the pieces of their best ways."""
    edges, ways = new_edges(words.longest, width), new_ways(words.longest, width)
    word, position = np.empty(words.longest + 1, np.int32), 0
    for count in words.counts:
        size, position = read_string(words, position, word)
        edge, _ = find_best_way(word, size, width, nodes, unknown, edges, ways)
        while edge >= 0:
            piece = edges.pieces[edge]
            sums[piece] = _f32(sums[piece] + count)
            edge = ways.before[edge]
