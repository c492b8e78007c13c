"""The Unigram learner in the plain form, on strings: begin here.

All frequent substrings of the words are pieces at first. Twice, count how often each piece is expected in
the text, where a word is segmented in every possible way with the probability of that way, and compute the
scores from these counts. Then drop the pieces whose loss would make the text least improbable. Repeat this
until few enough are left.

SentencePiece computes in single precision, so the order of sums and all roundings decide about the result:
`_f32` stands wherever it rounds. `learner` computes the same with kernels.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.unigram.numbers import digamma, exp, log, log1p, number_tables
from tokcore.unigram.scripts import INHERITED, script_table

_f32, _f64 = np.float32, np.float64

Words = Mapping[str, tuple[int, int]]
"""Words with two counts: all occurrences, and those that end a sentence. Sums are in this order."""

Model = dict[str, np.float32]
"""Pieces with their scores, which are natural logarithms of probabilities."""


def learn_plainly(
    words: Words, last: str, required: Sequence[str], vocab_size: int, num_meta_pieces: int, *,
    num_threads: int = 16, shrinking_factor: float = 0.75, num_sub_iterations: int = 2,
    seed_sentencepiece_size: int = 1_000_000, max_sentencepiece_length: int = 16,
) -> list[tuple[str, np.float32]]:  # fmt: skip
    """Returns the pieces with their scores, the best first, without meta pieces.

    Args:
        words: by count, descending, and then by bytes.
        last: the word that ends the last sentence.
        required: the characters that must be pieces, by count; others are U+2585 in the words.
    """
    counts = {word: count for word, (count, _) in words.items()}
    model = seed_model(words, last, seed_sentencepiece_size, max_sentencepiece_length)
    target = int(vocab_size * 1.1)
    while True:
        for _ in range(num_sub_iterations):
            model = score_pieces(expected_counts(counts, model, num_threads))
        kept = max(target, int(_f32(_f32(shrinking_factor) * _f32(len(model)))))
        model = prune(counts, model, num_threads, kept)
        if len(model) <= target:
            break
    unknown = unknown_score(model)
    reachable = {}
    for piece, score in model.items():
        edges = lattice(piece, model, unknown)
        others = [edge for edge in edges if edge.end - edge.begin < len(piece)]
        if not others or best_way(others)[1] <= score:
            reachable[piece] = score
    return finish(reachable, required, vocab_size - num_meta_pieces)


def seed_model(words: Words, last: str, most: int, longest: int) -> Model:
    """Returns all characters, and the substrings of valid characters that two different bytes follow.

    A zero byte follows a sentence, and the first byte of U+2581 a word within a sentence. After the last
    sentence there is nothing, so that the rests of its last word are followed by zero and nothing or U+2581;
    what ends there is counted twice.
    """
    characters, counts, rests = Counter[str](), Counter[str](), Counter[str]()
    following = defaultdict[str, set[int]](set)
    for word, (count, ending) in words.items():
        for begin, character in enumerate(word):
            characters[character] += count
            for end in range(begin + 2, len(word) + 1):
                counts[word[begin:end]] += count
                after = [0xE2] * (count > ending) + [0] * (ending > 0)
                following[word[begin:end]].update(
                    after if end == len(word) else word[end].encode()[:1]
                )
            rests[word[begin:]] += ending * last.endswith(word[begin:])
    scores = {}
    for part, count in counts.items():
        count = (count if len(following[part]) > 1 else 0) + (rests[part] if rests[part] > 1 else 0)
        if count > 1 and is_piece(part, longest):
            scores[part] = _f32(_f32(count) * _f32(len(part)))
    best = sorted(scores, key=lambda part: (-scores[part], -len(part.encode()), part))[:most]
    singles = sorted(characters, key=lambda character: (-characters[character], character))
    model = {single: _f32(characters[single]) for single in singles if single not in '\u2585\x1f'}
    model |= {part: scores[part] for part in best}
    log_total = log(sum(map(_f64, model.values())))
    return {part: _f32(log(_f64(score)) - log_total) for part, score in model.items()}


def is_piece(part: str, longest: int) -> bool:
    """Whether these characters may be a piece: of one script, and U+2581 at most at the start."""
    scripts = script_table()
    previous = 0
    for character in part.removeprefix('\u2581'):
        script = scripts[ord(character)]
        if script == INHERITED:
            script = previous
        if character in '\u2581\u2585\x1f\0 ' or (script and previous and script != previous):
            return False
        previous = script
    return 1 < len(part) <= longest


class Edge(NamedTuple):
    """A piece in a word; `piece` is the model's first one for an unknown character."""

    begin: int
    end: int
    piece: str
    score: np.float32


def unknown_score(model: Model) -> np.float32:
    """Returns the score of unknown characters."""
    return _f32(min(model.values()) - _f32(10))


def lattice(word: str, model: Model, unknown: np.float32) -> list[Edge]:
    """Returns the edges by begin and length; an unknown character comes after the pieces."""
    edges = []
    for begin in range(len(word)):
        for end in range(begin + 1, len(word) + 1):
            if word[begin:end] in model:
                edges.append(Edge(begin, end, word[begin:end], model[word[begin:end]]))
        if word[begin] not in model:
            edges.append(Edge(begin, begin + 1, next(iter(model)), unknown))
    return edges


def sum_counts(
    counts: Mapping[str, int],
    model: Model,
    num_threads: int,
    add: Callable[[str, int, Model], None],
) -> Model:
    """Returns a sum for each piece, to which `add` adds word after word: sums of threads are added."""
    total: Model = {}
    for thread in range(num_threads):
        sums = dict.fromkeys(model, _f32(0))
        for word in [*counts][thread::num_threads]:
            add(word, counts[word], sums)
        total = {piece: _f32(total.get(piece, _f32(0)) + sums[piece]) for piece in model}
    return total


def expected_counts(counts: Mapping[str, int], model: Model, num_threads: int) -> Model:
    """Returns how often each piece is expected in the words."""
    unknown = unknown_score(model)

    def add_shares(word: str, count: int, sums: Model) -> None:
        edges = lattice(word, model, unknown)
        alpha, beta = {0: _f32(0)}, {len(word): _f32(0)}
        for edge in edges:
            before = _f32(edge.score + alpha[edge.begin])
            alpha[edge.end] = _add_logs(alpha.get(edge.end), before)
        for edge in sorted(edges, key=lambda edge: (-edge.begin, edge.end)):
            after = _f32(edge.score + beta[edge.end])
            beta[edge.begin] = _add_logs(beta.get(edge.begin), after)
        for edge in edges:
            share = _f32(_f32(alpha[edge.begin] + edge.score) + beta[edge.end])
            share = _f32(share - alpha[len(word)])
            added = _f64(_f32(count)) * exp(_f64(share), number_tables().powers)
            sums[edge.piece] = _f32(_f64(sums[edge.piece]) + added)

    return sum_counts(counts, model, num_threads, add_shares)


def _add_logs(one: np.float32 | None, other: np.float32) -> np.float32:
    """Returns log(exp(one) + exp(other)); None is the log of 0."""
    if one is None:
        return other
    low, high = min(one, other), max(one, other)
    if high > _f32(low + _f32(50)):
        return high
    return _f32(_f64(high) + log1p(exp(_f64(_f32(low - high)), number_tables().powers)))


def score_pieces(expected: Model) -> Model:
    """Returns the scores of the pieces that are expected at least every second time."""
    kept = {piece: count for piece, count in expected.items() if count >= _f32(0.5)}
    total = _f32(0)
    for count in kept.values():
        total = _f32(total + count)
    log_total = _f64(_f32(digamma(_f64(total))))
    return {piece: _f32(digamma(_f64(count)) - log_total) for piece, count in kept.items()}


def prune(counts: Mapping[str, int], model: Model, num_threads: int, kept: int) -> Model:
    """Returns the pieces without another way, and those with the largest losses, `kept` in all.

    The loss is how much less probable the text is if a piece becomes the second best way to write it.
    """
    unknown = unknown_score(model)

    def add_best_way(word: str, count: int, sums: Model) -> None:
        for piece in best_way(lattice(word, model, unknown))[0]:
            sums[piece] = _f32(sums[piece] + _f32(count))

    total = sum_counts(counts, model, num_threads, add_best_way)
    everything = _f32(sum(map(_f64, total.values())))
    log_sum = _f64(_f32(log(_f64(everything))))
    pruned, losses = {}, {}
    for piece, count in total.items():
        ways = [*best_ways(lattice(piece, model, unknown), len(piece))]
        if count == 0 or (len(ways) > 1 and len(ways[0]) > 1):
            continue
        if len(ways) == 1:
            pruned[piece] = model[piece]
            continue
        with_alternatives = _f32(everything + _f32(count * _f32(len(ways[1]) - 1)))
        log_alternatives = _f64(_f32(log(_f64(with_alternatives))))
        alternative = _f32(0)
        for other in ways[1]:
            other_log = log(_f64(_f32(total[other] + count))) - log_alternatives
            alternative = _f32(_f64(alternative) + other_log)
        own = _f32(log(_f64(count)) - log_sum)
        losses[piece] = _f32(_f32(count / everything) * _f32(own - alternative))
    best = sorted(losses, key=lambda piece: -losses[piece])[: kept - len(pruned)]
    return pruned | {piece: model[piece] for piece in best}


def best_way(edges: Sequence[Edge]) -> tuple[list[str], np.float32]:
    """Returns the pieces of the best way, and its score."""
    best, before, length = _best_before(edges)
    ends = [i for i, edge in enumerate(edges) if edge.end == length]
    edge = max(ends, key=lambda i: best[i])  # the first of equal ones
    score, way = best[edge], []
    while edge >= 0:
        way.append(edges[edge].piece)
        edge = before[edge]
    return way[::-1], score


def _best_before(edges: Sequence[Edge]) -> tuple[list[np.float32], list[int], int]:
    """Returns the best score up to each edge, the edge before it, and the word's length.

    Scores are compared with that of the edge added: by rounding, different ones may become equal.
    """
    best: list[np.float32] = []
    before = []
    for edge in edges:
        choices = [i for i, other in enumerate(edges[: len(best)]) if other.end == edge.begin]
        sums = [_f32(best[i] + edge.score) for i in choices]
        best.append(max(sums) if choices else edge.score)
        before.append(choices[sums.index(max(sums))] if choices else -1)
    return best, before, max(edge.end for edge in edges)


class Hypothesis(NamedTuple):
    """A way from somewhere in the word to its end."""

    bound: np.float32  # the score of the best whole way that ends so
    score: np.float32
    begin: int
    pieces: list[str]
    is_whole: bool = False


def best_ways(edges: Sequence[Edge], length: int) -> Iterator[list[str]]:
    """Yields the two best ways, or the only one, by A* from the word's end; pieces are in order."""
    best = _best_before(edges)[0]
    heap: list[Hypothesis] = []
    _push(heap, Hypothesis(best_way(edges)[1], _f32(0), length, []))
    found = 0
    while heap and found < 2:
        top = _pop(heap)
        if top.is_whole:
            found += 1
            yield top.pieces
        elif top.begin == 0:
            _push(heap, Hypothesis(top.score, top.score, 0, top.pieces, is_whole=True))
        else:
            for edge, bound in zip(edges, best):
                if edge.end == top.begin:
                    scores = _f32(bound + top.score), _f32(edge.score + top.score)
                    _push(heap, Hypothesis(*scores, edge.begin, [edge.piece, *top.pieces]))


def _push(heap: list[Hypothesis], item: Hypothesis) -> None:
    """Adds to a heap as libstdc++ does, whose order of equal bounds is another than Python's."""
    heap.append(item)
    _rise(heap, len(heap) - 1, item)


def _rise(heap: list[Hypothesis], hole: int, item: Hypothesis) -> None:
    while hole > 0 and heap[(hole - 1) // 2].bound < item.bound:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = item


def _pop(heap: list[Hypothesis]) -> Hypothesis:
    top, item = heap[0], heap.pop()
    if heap:
        hole = 0
        while 2 * hole + 1 < len(heap):
            child = min(2 * hole + 2, len(heap) - 1)
            if heap[child].bound < heap[2 * hole + 1].bound:
                child = 2 * hole + 1
            heap[hole] = heap[child]
            hole = child
        _rise(heap, hole, item)
    return top


def finish(model: Model, required: Sequence[str], size: int) -> list[tuple[str, np.float32]]:
    """Returns the required characters and the best other pieces by score, descending, and then by bytes."""
    lowest, penalty = min(model.values()), _f32(0)
    chosen = {}
    for character in required:
        chosen[character] = model.get(character, _f32(lowest + penalty))
        if character not in model:
            penalty = _f32(_f64(penalty) + _f64(_f32(0.0001)))
    for piece in sorted(model, key=lambda piece: (-model[piece], piece)):
        if piece not in chosen and len(chosen) < size:
            chosen[piece] = model[piece]
    return sorted(chosen.items(), key=lambda item: (-item[1], item[0]))
