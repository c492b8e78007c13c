"""`tf.train.Example` with `tf.io.TFRecordWriter`: ids to records as TensorFlow's guide has it."""

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from ..outcome import Outcome
from ..stages.written import take_file


def frame_ids(ready: Callable[[], None], *, ids: str, output: str) -> Outcome:
    """Ids in memory to a TFRecord file."""
    with np.load(ids) as arrays:
        rows = np.split(arrays['ids'], arrays['offsets'][1:-1])
    ready()
    started = time.perf_counter()
    with tf.io.TFRecordWriter(output) as writer:
        for row in rows:
            writer.write(serialized(row))
    seconds = time.perf_counter() - started
    return Outcome(seconds, {**take_file(output), 'examples': len(rows)})


def serialized(ids: np.ndarray) -> bytes:
    """Returns an Example of one int64 feature."""
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
    features = tf.train.Features(feature={'targets': feature})
    return tf.train.Example(features=features).SerializeToString()
