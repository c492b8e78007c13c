"""The Unigram learner in memory: from words to pieces and scores, bit for bit as SentencePiece 0.2.3.

`plain_iteration` shows the algorithm on strings. Here words and pieces are arrays of letters, and a trie of the
pieces lists the edges of a word's lattice. A word of n letters takes 2n + 40 bytes while words are ranked, and then
5 and one or two for each letter.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.bytes import read_varints
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.unigram.lattice import count_best_ways, expect_counts, sum_shards
from tokcore.unigram.numbers import digamma
from tokcore.unigram.plain_iteration import finish
from tokcore.unigram.pruning import find_reachable, keep_pieces
from tokcore.unigram.seeds import Pieces, seed_pieces
from tokcore.unigram.trie import PieceTrie
from tokcore.unigram.words import Alphabet, choose_alphabet, count_characters, rank_words

_f32, _f64 = np.float32, np.float64


class PieceRules(NamedTuple):
    """How pieces are learned, with the names and defaults of SentencePiece's trainer."""

    vocab_size: int  # the number of pieces, meta pieces among them
    num_meta_pieces: int
    character_coverage: float = 0.9995
    num_threads: int = 16  # the number of partial sums, on which the result depends
    shrinking_factor: float = 0.75
    num_sub_iterations: int = 2
    seed_sentencepiece_size: int = 1_000_000
    max_sentencepiece_length: int = 16
    hard_vocab_limit: bool = True

    @property
    def most_seeds(self) -> int:
        return self.seed_sentencepiece_size or max(100_000, 8 * self.vocab_size)

    @property
    def target(self) -> int:
        """How many pieces the last step of pruning leaves at most."""
        return int(self.vocab_size * 1.1)

    def kernel(self, step: int) -> Callable[..., None]:
        """Returns what sums the words of a shard in a step, from 0 on."""
        is_last = step % (self.num_sub_iterations + 1) == self.num_sub_iterations
        return count_best_ways if is_last else expect_counts

    def most_steps(self, step: int, pieces: int) -> int:
        """Returns how many steps there are from this one on, at most: if only pruning drops pieces."""
        rounds = math.log(max(pieces, 1) / self.target) / -math.log(self.shrinking_factor)
        each = self.num_sub_iterations + 1
        return each * max(1, math.ceil(rounds)) - step % each

    def check_size(self, required: int) -> None:
        """Raises InputError if the vocabulary has no room for so many characters."""
        if required + self.num_meta_pieces > self.vocab_size:
            raise InputError(
                f'{required:,} character{"s" * (required > 1)} and {self.num_meta_pieces} meta pieces '
                f'are required, more than the vocabulary size of {self.vocab_size:,}; give a larger --vocab-size or a '
                'smaller --character-coverage'
            )


Report = Callable[[int, int], None]
"""Takes the number of finished steps, and of all, at most; at the end twice the same."""


def learn_pieces(
    table: TokenTable, rules: PieceRules, max_workers: int = 1,
    report: Report = lambda done, total: None,
) -> list[tuple[str, np.float32]]:  # fmt: skip
    """Returns the pieces, with their scores, that SentencePiece's trainer writes, without meta pieces.

    Args:
        table: of words as `words.py` describes. It is not kept, so the caller should not keep it either.
        rules: the options.
        max_workers: threads that run at a time, on which the result does not depend.
        report: see `Report`.

    Raises:
        InputError: there is no word, or the size is too small or too large for them.
    """
    alphabet = choose_alphabet(count_characters(table), rules.character_coverage)
    rules.check_size(len(alphabet.required))
    words, width = alphabet.words_of(table), rules.max_sentencepiece_length
    del table
    code_points, held = alphabet.code_points, [words]
    seeds = [seed_pieces(words, code_points, rules.most_seeds, width, max_workers)]
    del words  # so that `rank_words` can free them
    shards = rank_words(held.pop(), len(code_points), rules.num_threads)

    def sum_step(step: int, pieces: Pieces, trie: PieceTrie) -> np.ndarray:
        return sum_shards(
            rules.kernel(step), shards, trie.nodes, len(pieces.scores), pieces.unknown_score,
            width, max_workers,
        )  # fmt: skip

    return learn_from_seeds(seeds.pop(), alphabet, rules, sum_step, report=report)


def learn_from_seeds(
    pieces: Pieces, alphabet: Alphabet, rules: PieceRules,
    sum_step: Callable[[int, Pieces, PieceTrie], np.ndarray],
    step: int = 0, report: Report = lambda done, total: None,
) -> list[tuple[str, np.float32]]:  # fmt: skip
    """Improves and prunes pieces until they are few enough.

    Args:
        pieces: with which a step begins: the seeds, or what an earlier run has left.
        alphabet: of the words.
        sum_step: returns the sums of a step, by its number, over all words: float32[pieces].
        step: the number of the first step.
        report: see `Report`.

    Raises:
        InputError: there are fewer pieces than asked for.
    """
    trie = PieceTrie.of(pieces)
    total = step + rules.most_steps(step, len(pieces.scores))
    while True:
        report(step, total)
        sums = sum_step(step, pieces, trie)
        if rules.kernel(step) is expect_counts:
            pieces, trie = _improve(pieces, trie, sums)
        else:
            pieces = _prune(pieces, trie, sums, rules)
            if len(pieces.scores) <= rules.target:
                break
            del trie, sums  # room for the new one
            trie = PieceTrie.of(pieces)
        step += 1
    report(total, total)
    pieces = _drop_unreachable(pieces, rules.max_sentencepiece_length)
    characters = [*map(chr, alphabet.code_points[alphabet.required].tolist())]
    most = rules.vocab_size - rules.num_meta_pieces
    found = finish(_model_of(pieces, alphabet.code_points), characters, most)
    if rules.hard_vocab_limit and len(found) < most:
        raise InputError(
            f'the words give only {len(found) + rules.num_meta_pieces:,} pieces, fewer than the '
            f'vocabulary size of {rules.vocab_size:,}; give a smaller --vocab-size, or '
            '--no-hard-vocab-limit'
        )
    return found


def _improve(pieces: Pieces, trie: PieceTrie, expected: np.ndarray) -> tuple[Pieces, PieceTrie]:
    """Computes scores from expected counts; drops what is expected in less than half of a word."""
    kept = np.flatnonzero(expected >= _f32(0.5))
    scores = np.empty(len(kept), _f32)
    _scores_of_counts(read_only(expected[kept]), scores)
    return pieces.pick(kept, scores), trie.score(kept, scores)


def _prune(pieces: Pieces, trie: PieceTrie, totals: np.ndarray, rules: PieceRules) -> Pieces:
    """Returns the pieces that have no replacement, and those of the largest losses, in this order."""
    share = _f32(_f32(rules.shrinking_factor) * _f32(len(totals)))
    most = max(rules.target, int(share))
    kept, losses = np.empty(len(totals), np.int64), np.empty(len(totals), _f32)
    everything = _f32(totals.sum(dtype=_f64))
    always, others = keep_pieces(
        pieces, totals, everything, trie.nodes, pieces.unknown_score,
        rules.max_sentencepiece_length, kept, losses,
    )  # fmt: skip
    others = len(kept) - 1 - np.arange(others)
    order = others[np.argsort(-losses[others], kind='stable')][: most - always]
    kept = np.concatenate([kept[:always], kept[order]])
    return pieces.pick(kept, pieces.scores[kept])


def _drop_unreachable(pieces: Pieces, width: int) -> Pieces:
    """Returns the pieces that are not worse than the best way to write them in others."""
    trie = PieceTrie.of(pieces)
    reachable = np.empty(len(pieces.scores), np.bool_)
    find_reachable(pieces, trie, pieces.unknown_score, width, reachable)
    return pieces.pick(np.flatnonzero(reachable), pieces.scores[reachable])


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
    letters = np.empty(np.count_nonzero(pieces.letters < 0x80), np.int64)
    read_varints(pieces.letters, 0, letters)
    text = ''.join(map(chr, alphabet[letters].tolist()))
    return dict(zip(text.split('\0'), pieces.scores))
