"""Batches as a `tf.data.Dataset`: the only module here, beside those in `text`, with TensorFlow."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tokcore.reading.batch_iterator import BatchIterator


def as_tensorflow(batches: Callable[[], BatchIterator]) -> tf.data.Dataset:
    """Returns a dataset whose every iteration is one of a new iterator of batches.

    Its elements are dictionaries of int32 tensors of the same names, shapes and values.
    """
    signature = {
        name: tf.TensorSpec(shape, tf.as_dtype(dtype))
        for name, (shape, dtype) in batches().signature().items()
    }
    return tf.data.Dataset.from_generator(batches, output_signature=signature)
