"""gigabpe: training of byte-level BPE."""

import time
from collections.abc import Callable

import gigabpe

from ..outcome import Outcome


def learn(ready: Callable[[], None], *, text: str, vocabulary_size: int, threads: int) -> Outcome:
    """Trains on a file."""
    ready()
    started = time.perf_counter()
    vocabulary, _ = gigabpe.train_bpe(
        [text], vocabulary_size, pretokenizer='bytelevel', threads=threads
    )
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'size': len(vocabulary)})
