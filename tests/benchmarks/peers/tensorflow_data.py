"""tf.data over our shards: shuffled, parsed, and in buckets, as Tensor2Tensor has them."""

import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from ..outcome import Outcome
from ..stages.reading import WINDOW, budget_facts
from .python_budget import BOUNDS, SIZES


def budget(ready: Callable[[], None], *, folder: str, shared: str) -> Outcome:
    """An epoch of shuffled rows in batches."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    shards = sorted(str(path) for path in Path(folder).glob('words-train-*'))
    batches = (
        tf.data.TFRecordDataset(shards)
        .shuffle(WINDOW, seed=1)
        .map(_parsed)
        .bucket_by_sequence_length(_length, list(BOUNDS), list(SIZES))
        .with_options(options)
    )
    next(batches.as_numpy_iterator())
    ready()
    started = time.perf_counter()
    facts = budget_facts(batches.as_numpy_iterator())
    return Outcome(time.perf_counter() - started, facts)


def _parsed(record: tf.Tensor) -> dict[str, tf.Tensor]:
    ids = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    return tf.io.parse_single_example(record, {'inputs': ids, 'targets': ids})


def _length(row: dict[str, tf.Tensor]) -> tf.Tensor:
    return tf.maximum(tf.size(row['inputs']), tf.size(row['targets']))
