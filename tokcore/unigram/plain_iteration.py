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
from tokcore.unigram.pruning import pop, push
from tokcore.unigram.scripts import INHERITED, script_table

_f32, _f64 = np.float32, np.float64

Words = Mapping[str, tuple[int, int]]
"""Words with two counts: all occurrences, and those that end a sentence. Sums are in this order."""

Model = dict[str, np.float32]
"""Pieces with their scores, which are natural logarithms of probabilities, or with their counts."""


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
    model = seed_model(words, last, seed_sentencepiece_size, max_sentencepiece_length)
    target = int(vocab_size * 1.1)
    while True:
        for _ in range(num_sub_iterations):
            model = score_pieces(sum_shares(words, model, num_threads, expected_shares))
        totals = sum_shares(words, model, num_threads, best_shares)
        most = max(target, int(_f32(_f32(shrinking_factor) * _f32(len(model)))))
        model = prune(totals, model, most)
        if len(model) <= target:
            break
    reachable = {}
    for piece, score in model.items():
        others = [edge for edge in lattice(piece, model) if edge.end - edge.begin < len(piece)]
        if not others or best_way(others)[1][-1] <= score:
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
        after = [0xE2] * (count > ending) + [0] * (ending > 0)
        for begin, character in enumerate(word):
            characters[character] += count
            for end in range(begin + 2, len(word) + 1):
                part = word[begin:end]
                counts[part] += count
                following[part].update(after if end == len(word) else word[end].encode()[:1])
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


def lattice(word: str, model: Model) -> list[Edge]:
    """Returns the edges by begin and length; an unknown character comes after the pieces."""
    unknown = _f32(min(model.values()) - _f32(10))
    edges = []
    for begin in range(len(word)):
        for end in range(begin + 1, len(word) + 1):
            if word[begin:end] in model:
                edges.append(Edge(begin, end, word[begin:end], model[word[begin:end]]))
        if word[begin] not in model:
            edges.append(Edge(begin, begin + 1, next(iter(model)), unknown))
    return edges


Shares = Iterator[tuple[str, np.float64]]
"""Pieces, and how often each is counted for one occurrence of a word."""


def sum_shares(
    words: Words, model: Model, num_threads: int, shares: Callable[[list[Edge]], Shares]
) -> Model:
    """Returns the count of each piece: each thread adds its words in order, then their sums are added."""
    total = dict.fromkeys(model, _f32(0))
    for thread in range(num_threads):
        sums = dict.fromkeys(model, _f32(0))
        for word in [*words][thread::num_threads]:
            count = _f64(_f32(words[word][0]))
            for piece, share in shares(lattice(word, model)):
                sums[piece] = _f32(_f64(sums[piece]) + count * share)
        total = {piece: _f32(total[piece] + sums[piece]) for piece in model}
    return total


def expected_shares(edges: list[Edge]) -> Shares:
    """Yields the probability of each edge."""
    length = edges[-1].end
    alpha, beta = {0: _f32(0)}, {length: _f32(0)}
    for edge in edges:
        before = _f32(edge.score + alpha[edge.begin])
        alpha[edge.end] = _add_logs(alpha.get(edge.end), before)
    for edge in sorted(edges, key=lambda edge: -edge.begin):
        after = _f32(edge.score + beta[edge.end])
        beta[edge.begin] = _add_logs(beta.get(edge.begin), after)
    for edge in edges:
        share = _f32(_f32(alpha[edge.begin] + edge.score) + beta[edge.end])
        yield edge.piece, exp(_f64(_f32(share - alpha[length])), number_tables().powers)


def _add_logs(one: np.float32 | None, other: np.float32) -> np.float32:
    """Returns log(exp(one) + exp(other)); None is the log of 0."""
    if one is None:
        return other
    low, high = min(one, other), max(one, other)
    if high > _f32(low + _f32(50)):
        return high
    return _f32(_f64(high) + log1p(exp(_f64(_f32(low - high)), number_tables().powers)))


def best_shares(edges: list[Edge]) -> Shares:
    """Yields 1 for each piece of the best way."""
    for piece in best_way(edges)[0]:
        yield piece, _f64(1)


def score_pieces(expected: Model) -> Model:
    """Returns the scores of the pieces that are expected at least every second time."""
    kept = {piece: count for piece, count in expected.items() if count >= _f32(0.5)}
    total = _f32(0)
    for count in kept.values():
        total = _f32(total + count)
    log_total = _f64(_f32(digamma(_f64(total))))
    return {piece: _f32(digamma(_f64(count)) - log_total) for piece, count in kept.items()}


def prune(totals: Model, model: Model, most: int) -> Model:
    """Returns the pieces without another way, and those with the largest losses, `most` in all.

    The loss is how much less probable the text is if a piece becomes the second best way to write it.
    """
    everything = _f32(sum(map(_f64, totals.values())))
    log_sum = _f64(_f32(log(_f64(everything))))
    kept, losses = {}, {}
    for piece, count in totals.items():
        ways = two_best_ways(lattice(piece, model))
        if count == 0 or (len(ways) > 1 and len(ways[0]) > 1):
            continue
        if len(ways) == 1:
            kept[piece] = model[piece]
            continue
        without = _f32(everything + _f32(count * _f32(len(ways[1]) - 1)))
        log_without = _f64(_f32(log(_f64(without))))
        other_score = _f32(0)
        for other in ways[1]:
            other_log = log(_f64(_f32(totals[other] + count))) - log_without
            other_score = _f32(_f64(other_score) + other_log)
        score = _f32(log(_f64(count)) - log_sum)
        losses[piece] = _f32(_f32(count / everything) * _f32(score - other_score))
    best = sorted(losses, key=lambda piece: -losses[piece])[: most - len(kept)]
    return kept | {piece: model[piece] for piece in best}


def best_way(edges: list[Edge]) -> tuple[list[str], list[np.float32]]:
    """Returns the pieces of the best way, and the best score up to each edge and up to the end.

    Scores are compared with that of the next edge added: by rounding, different ones may become equal.
    """
    best: list[np.float32] = []
    before: list[int] = []
    for edge in [*edges, Edge(edges[-1].end, 0, '', _f32(0))]:
        ways = [i for i in range(len(best)) if edges[i].end == edge.begin]
        sums = [_f32(best[i] + edge.score) for i in ways]
        best.append(max(sums, default=edge.score))
        before.append(ways[sums.index(best[-1])] if ways else -1)  # the first of equal ones
    pieces, last = list[str](), before[-1]
    while last >= 0:
        pieces.insert(0, edges[last].piece)
        last = before[last]
    return pieces, best


def two_best_ways(edges: list[Edge]) -> list[list[str]]:
    """Returns the pieces of the two best ways, or of the only one, found by A* from the end.

    `pruning` has the heap of libstdc++, whose order of equal bounds is not that of Python.
    """
    best = best_way(edges)[1]
    heap, bounds, size = np.zeros(1 << 16, np.int64), np.zeros(1 << 16, _f32), 0
    # The bound of the whole ways that end so; the score, the begin and the pieces; whether it is whole.
    added = [(best[-1], _f32(0), edges[-1].end, list[str](), False)]
    ways, found = added[:0], list[list[str]]()
    while len(found) < 2:
        for way in added:
            bounds[len(ways)] = way[0]
            size = push(heap, size, bounds, len(ways))
            ways.append(way)
        if size == 0:
            break
        _, score, begin, pieces, is_whole = ways[heap[0]]
        size = pop(heap, size, bounds)
        added = [
            (
                _f32(bound + score),
                _f32(edge.score + score),
                edge.begin,
                [edge.piece, *pieces],
                False,
            )
            for edge, bound in zip(edges, best)
            if edge.end == begin
        ]
        if is_whole:
            found.append(pieces)
        elif begin == 0:
            added = [(score, score, 0, pieces, True)]
    return found


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
