"""rustbpe: training of byte-level BPE with GPT-4's pattern. It takes its threads from rayon."""

import time
from collections.abc import Callable

import rustbpe

from ..outcome import Outcome


def learn(ready: Callable[[], None], *, text: str, vocabulary_size: int) -> Outcome:
    """Trains on the lines of a file."""
    tokenizer = rustbpe.Tokenizer()
    ready()
    started = time.perf_counter()
    with open(text, encoding='utf-8', newline='\n') as lines:
        tokenizer.train_from_iterator(lines, vocabulary_size)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'size': tokenizer.vocab_size})
