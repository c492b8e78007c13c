"""Batches as a `tf.data.Dataset`: the only module here, beside those in `text`, with TensorFlow."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import tensorflow as tf

from tokcore.reading.batch_iterator import BatchIterator


def as_tensorflow(one_pass: Callable[[int], BatchIterator]) -> tf.data.Dataset:
    """Returns a dataset whose every iteration is a pass: of its number, counted from 0.

    Its elements are dictionaries of int32 tensors of the same names, shapes and values. Processes
    of a strategy do not share them out again: readers are for that.
    """
    passes = itertools.count()
    signature = {
        name: tf.TensorSpec(shape, tf.as_dtype(dtype))
        for name, (shape, dtype) in one_pass(0).signature().items()
    }
    made = tf.data.Dataset.from_generator(
        lambda: one_pass(next(passes)), output_signature=signature
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return made.with_options(options)
