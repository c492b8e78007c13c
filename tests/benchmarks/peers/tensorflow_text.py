"""TensorFlow Text's WordPiece learner, from a dictionary of counts."""

import time
from collections.abc import Callable
from pathlib import Path

from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner_lib

from tokcore.counts.token_table import TokenTable
from tokcore.wordpiece.options import SPECIAL_TOKENS

from ..outcome import Outcome
from ..stages.wordpieces import pieces_digest


def search_counts(ready: Callable[[], None], *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary of a size, by its own defaults."""
    token_counts = dict(TokenTable.from_bytes(Path(counts).read_bytes()).items())
    ready()
    started = time.perf_counter()
    vocabulary = learner_lib.learn(token_counts, vocabulary_size, ['[UNK]'])
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'size': len(vocabulary)})


def learn(ready: Callable[[], None], *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary of words' pieces, by its own defaults."""
    words = dict(TokenTable.from_bytes(Path(counts).read_bytes()).items())
    ready()
    started = time.perf_counter()
    pieces = learner_lib.learn(words, vocabulary_size, list(SPECIAL_TOKENS))
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'digest': pieces_digest(pieces), 'size': len(pieces)})
