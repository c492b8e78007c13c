"""The Unigram learner in memory: from words to pieces and scores, bit for bit as SentencePiece 0.2.3.

`plain_iteration` shows the algorithm on strings. Here words and pieces are arrays of letters, and a trie of
the pieces lists the edges of a word's lattice.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.unigram.lattice import Strings, count_best_ways, expect_counts, sum_shards
from tokcore.unigram.numbers import digamma
from tokcore.unigram.plain_iteration import finish
from tokcore.unigram.pruning import find_reachable, keep_pieces
from tokcore.unigram.seeds import Pieces, seed_pieces
from tokcore.unigram.trie import PieceTrie
from tokcore.unigram.words import RankedWords, Words, rank_words

_f32, _f64 = np.float32, np.float64


class LearnedPieces(NamedTuple):
    """Pieces without meta pieces, in the order of SentencePiece's model: the best first."""

    pieces: list[bytes]
    scores: np.ndarray  # float32


def learn_pieces(
    words: Words, *, vocab_size: int, num_meta_pieces: int, character_coverage: float = 0.9995,
    required_chars: str = '', num_threads: int = 16, shrinking_factor: float = 0.75,
    num_sub_iterations: int = 2, seed_sentencepiece_size: int = 1_000_000,
    max_sentencepiece_length: int = 16, hard_vocab_limit: bool = True, max_workers: int = 1,
    report: Callable[[str], None] = lambda line: None,
) -> LearnedPieces:  # fmt: skip
    """Learns the pieces that SentencePiece's trainer writes for the same words and options.

    Args:
        words: distinct ones. They are not kept, so the caller should not keep them either.
        vocab_size: the number of pieces, meta pieces among them.
        num_threads: the number of partial sums, on which the result depends.
        max_workers: threads that run at a time, on which it does not depend.
        report: is called with a line after each step.

    Raises:
        InputError: there is no word, or the size is too small or too large for them.
    """
    ranked = rank_words(words, character_coverage, required_chars)
    del words
    if len(ranked.required) + num_meta_pieces > vocab_size:
        raise InputError(
            f'{len(ranked.required):,} characters and {num_meta_pieces} meta pieces are required, more '
            f'than the vocabulary size of {vocab_size:,}; give a larger --vocab-size or a smaller '
            '--character-coverage'
        )
    most_seeds = seed_sentencepiece_size or max(100_000, 8 * vocab_size)
    pieces = seed_pieces(ranked, most_seeds, max_sentencepiece_length, max_workers)
    report(f'{len(pieces.scores):,} pieces to begin with')
    model = _Model(ranked, max_sentencepiece_length, num_threads, max_workers)
    alphabet, required = ranked.alphabet, ranked.alphabet[ranked.required]
    del ranked  # 24 bytes a word that are not needed from here on
    target = int(vocab_size * 1.1)
    while True:
        trie = PieceTrie.of(pieces)
        for _ in range(num_sub_iterations):
            pieces, trie = model.improve(pieces, trie)
            report(f'{len(pieces.scores):,} pieces are expected in the words')
        kept = max(target, int(_f32(_f32(shrinking_factor) * _f32(len(pieces.scores)))))
        pieces = model.prune(pieces, trie, kept)
        report(f'{len(pieces.scores):,} pieces are kept')
        if len(pieces.scores) <= target:
            break
    pieces = model.drop_unreachable(pieces)
    characters = [*map(chr, required.tolist())]
    found = finish(_model_of(pieces, alphabet), characters, vocab_size - num_meta_pieces)
    size = len(found) + num_meta_pieces
    if hard_vocab_limit and size < vocab_size:
        raise InputError(
            f'the words give only {size:,} pieces, fewer than the vocabulary size of {vocab_size:,}; '
            'give a smaller --vocab-size, or --no-hard-vocab-limit'
        )
    return LearnedPieces(
        [piece.encode() for piece, _ in found], np.array([score for _, score in found], _f32)
    )


class _Model:
    """The steps over the words."""

    def __init__(self, words: RankedWords, width: int, num_threads: int, max_workers: int):
        counts = read_only(words.counts.astype(_f32))
        self._words = _strings(words.letters, words.starts, counts)
        self._width = width
        self._num_threads, self._max_workers = num_threads, max_workers

    def _sum(self, step: Callable, pieces: Pieces, trie: PieceTrie) -> np.ndarray:
        return sum_shards(
            step, self._words, trie.nodes, len(pieces.scores), _unknown_score(pieces), self._width,
            self._num_threads, self._max_workers,
        )  # fmt: skip

    def improve(self, pieces: Pieces, trie: PieceTrie) -> tuple[Pieces, PieceTrie]:
        """Computes scores from expected counts; drops what is expected in less than half of a word."""
        expected = self._sum(expect_counts, pieces, trie)
        kept = np.flatnonzero(expected >= _f32(0.5))
        scores = np.empty(len(kept), _f32)
        _scores_of_counts(read_only(expected[kept]), scores)
        return pieces.pick(kept, scores), trie.score(kept, scores)

    def prune(self, pieces: Pieces, trie: PieceTrie, most: int) -> Pieces:
        """Returns the pieces that have no replacement, and those of the largest losses, in this order."""
        totals = self._sum(count_best_ways, pieces, trie)
        kept, losses = np.empty(len(totals), np.int64), np.empty(len(totals), _f32)
        everything = _f32(totals.sum(dtype=_f64))
        always, others = keep_pieces(
            _strings(pieces.letters, pieces.starts, pieces.scores), totals, everything, trie.nodes,
            _unknown_score(pieces), self._width, kept, losses,
        )  # fmt: skip
        others = len(kept) - 1 - np.arange(others)
        order = others[np.argsort(-losses[others], kind='stable')][: most - always]
        kept = np.concatenate([kept[:always], kept[order]])
        return pieces.pick(kept, pieces.scores[kept])

    def drop_unreachable(self, pieces: Pieces) -> Pieces:
        """Returns the pieces that are not worse than the best way to write them in others."""
        trie = PieceTrie.of(pieces)
        reachable = np.empty(len(pieces.scores), np.bool_)
        find_reachable(
            _strings(pieces.letters, pieces.starts, pieces.scores), pieces.scores, trie,
            _unknown_score(pieces), self._width, reachable,
        )  # fmt: skip
        return pieces.pick(np.flatnonzero(reachable), pieces.scores[reachable])


def _strings(letters: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> Strings:
    return Strings(letters, starts, counts, int(np.diff(starts).max()) - 1)


def _unknown_score(pieces: Pieces) -> np.float32:
    return _f32(pieces.scores.min() - _f32(10))


@kernel_without_allocation
def _scores_of_counts(expected, scores):
    total = _f32(0)
    for piece in range(len(expected)):
        total = _f32(total + expected[piece])
    log_total = _f64(_f32(digamma(_f64(total))))
    for piece in range(len(expected)):
        scores[piece] = _f32(digamma(_f64(expected[piece])) - log_total)


def _model_of(pieces: Pieces, alphabet: np.ndarray) -> dict[str, np.float32]:
    """Returns the pieces as strings with their scores."""
    text = ''.join(map(chr, alphabet[pieces.letters].tolist()))
    return dict(zip(text.split('\0'), pieces.scores))
