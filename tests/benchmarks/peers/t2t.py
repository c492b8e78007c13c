"""Tensor2Tensor 1.15.7: its vocabulary search, its encoder and its TFRecords."""

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow.compat.v1 as tf
from tensor2tensor.data_generators import text_encoder

from tokcore.counts import TokenTable

from ..outcome import Outcome
from ..stages.counting import MAX_SUBTOKEN_LENGTH, MIN_COUNTS
from ..stages.written import take_file


class _AnyName(type):
    def __getattr__(cls, name: str) -> type:
        return cls


class _NoEstimator(metaclass=_AnyName):
    """Stands for all of `tf.estimator`, which TensorFlow dropped.

    `generator_utils` imports modules that name parts of it, in default arguments and the like, and
    what is measured here uses none.
    """


if not hasattr(tf, 'estimator'):
    tf.estimator = _NoEstimator

from tensor2tensor.data_generators import generator_utils  # noqa: E402


def search_counts(
    ready: Callable[[], None], *, counts: str, vocabulary_size: int
) -> Outcome:
    """Searches a vocabulary of a size, from a dictionary in memory."""
    token_counts = dict(TokenTable.from_bytes(Path(counts).read_bytes()).items())
    ready()
    started = time.perf_counter()
    encoder = text_encoder.SubwordTextEncoder.build_to_target_size(
        vocabulary_size, token_counts, *MIN_COUNTS, max_subtoken_length=MAX_SUBTOKEN_LENGTH
    )
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'vocabulary'
        encoder.store_to_file(str(path))
        stored = path.read_bytes()
    facts = {'digest': hashlib.sha256(stored).hexdigest()[:16], 'size': encoder.vocab_size}
    return Outcome(seconds, facts)


def write_records(
    ready: Callable[[], None], *, text: str, vocabulary: str, output: str
) -> Outcome:
    """Lines in memory through encode, to_example and TFRecordWriter."""
    encoder = text_encoder.SubwordTextEncoder(vocabulary)
    data = Path(text).read_bytes()
    ready()
    started = time.perf_counter()
    with tf.python_io.TFRecordWriter(output) as writer:
        for line in data.decode().split('\n'):
            line = line.replace('\r', '').strip()
            if line:
                ids = encoder.encode(line) + [text_encoder.EOS_ID]
                example = generator_utils.to_example({'targets': ids})
                writer.write(example.SerializeToString())
    seconds = time.perf_counter() - started
    return Outcome(seconds, take_file(output))
