"""The Unigram learner in memory: from words to pieces and scores."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from tokcore.errors import InputError
from tokcore.unigram.plain_iteration import learn_plainly
from tokcore.unigram.words import META_NAME, RARE, Words


class LearnedPieces(NamedTuple):
    """Pieces without meta pieces, in the order of SentencePiece's model: the best first."""

    pieces: list[bytes]
    scores: np.ndarray  # float32


def learn_pieces(
    words: Words, *, vocab_size: int, num_meta_pieces: int, character_coverage: float = 0.9995,
    required_chars: str = '', num_threads: int = 16, shrinking_factor: float = 0.75,
    num_sub_iterations: int = 2, seed_sentencepiece_size: int = 1_000_000,
    max_sentencepiece_length: int = 16, hard_vocab_limit: bool = True, max_workers: int = 1,
) -> LearnedPieces:  # fmt: skip
    """Learns the pieces that SentencePiece's trainer writes for the same words and options.

    Args:
        words: each may occur once.
        vocab_size: the pieces and the meta pieces.
        num_threads: the number of partial sums, on which the result depends.
        max_workers: threads that run at a time, on which it does not depend.

    Raises:
        InputError: there is no word, or the size is too small or too large for them.
    """
    text = words.text.tobytes()
    ws = [text[a:b].decode() for a, b in zip(words.offsets, words.offsets[1:])]
    ch = Counter()
    for w, c in zip(ws, words.counts.tolist()):
        for x in w:
            ch[x] += c
    total = sum(ch.values())
    acc = 0
    req = []
    for x, c in sorted(ch.items(), key=lambda i: (-i[1], i[0])):
        if np.float32(acc / total) >= np.float32(character_coverage):
            break
        acc += c
        if x != META_NAME:
            req.append(x)
    keep = set(req)
    A, B = Counter(), Counter()
    rep = lambda w: ''.join(x if x in keep else RARE for x in w)
    for w, c, e in zip(ws, words.counts.tolist(), words.ending.tolist()):
        A[rep(w)] += c
        B[rep(w)] += e
    d = {w: (A[w], B[w]) for w in sorted(A, key=lambda w: (-A[w], w))}
    found = learn_plainly(
        d, rep(words.last.decode()), req, vocab_size, num_meta_pieces, num_threads=num_threads,
        shrinking_factor=shrinking_factor, num_sub_iterations=num_sub_iterations,
        seed_sentencepiece_size=seed_sentencepiece_size,
        max_sentencepiece_length=max_sentencepiece_length,
    )
    if hard_vocab_limit and len(found) + num_meta_pieces < vocab_size:
        raise InputError('too few')
    return LearnedPieces([p.encode() for p, _ in found], np.array([s for _, s in found], np.float32))
