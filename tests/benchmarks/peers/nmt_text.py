"""TensorFlow's operations on plain text: NMT's batches, and TensorFlow itself."""

import time
from collections.abc import Callable

from ..outcome import Outcome
from ..stages.reading import BATCH_SIZE, LONGEST, tally


def batches(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """The batches of two files of text, shuffled as NMT does."""
    from tokcore import training_batches

    source, target, vocabulary = shared.split('|')
    made = training_batches(
        source, target, vocabulary, vocabulary, batch_size=BATCH_SIZE,
        source_max_length=LONGEST, target_max_length=LONGEST, seed=1,
    )  # fmt: skip
    ready()
    started = time.perf_counter()
    facts = tally(made.as_numpy_iterator())
    return Outcome(time.perf_counter() - started, facts)


def imported(ready: Callable[[], None], *, folder: str) -> Outcome:
    """`import tensorflow` in a new process."""
    ready()
    started = time.perf_counter()
    import tensorflow  # noqa: F401

    return Outcome(time.perf_counter() - started)
