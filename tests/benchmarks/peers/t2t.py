"""Tensor2Tensor 1.15.7: its vocabulary search, its encoder and its TFRecords."""

import hashlib
import os
import pickle
import tempfile
import time
from pathlib import Path

import tensorflow.compat.v1 as tf
from tensor2tensor.data_generators import text_encoder

from tokcore.counts.token_table import TokenTable

from ..outcome import Outcome, Ready
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


class _BuiltOnce(text_encoder.SubwordTextEncoder):
    """Searches of one table begin with the same builds; one made before counts what it took then.

    For one search in a process.
    """

    folder: Path
    saved_seconds = 0.0

    def build_from_token_counts(self, token_counts: dict, min_count: int, *args, **kwargs) -> None:
        path = self.folder / str(min_count)
        started = time.perf_counter()
        if path.exists():
            state, seconds = pickle.loads(path.read_bytes())
            self.__dict__.update(state)
        else:
            super().build_from_token_counts(token_counts, min_count, *args, **kwargs)
            seconds = time.perf_counter() - started
            part = path.with_suffix(f'.{os.getpid()}')
            part.write_bytes(pickle.dumps((self.__dict__, seconds)))
            part.rename(path)
        _BuiltOnce.saved_seconds += seconds - (time.perf_counter() - started)


def search_counts(ready: Ready, *, counts: str, vocabulary_size: int, builds: str) -> Outcome:
    """Searches a vocabulary of a size, from a dictionary in memory.

    `builds` is a folder that searches of the same counts have in common.
    """
    token_counts = dict(TokenTable.from_bytes(Path(counts).read_bytes()).items())
    _BuiltOnce.folder = Path(builds)
    ready()
    started = time.perf_counter()
    encoder = _BuiltOnce.build_to_target_size(
        vocabulary_size, token_counts, *MIN_COUNTS, max_subtoken_length=MAX_SUBTOKEN_LENGTH
    )
    seconds = time.perf_counter() - started + _BuiltOnce.saved_seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'vocabulary'
        encoder.store_to_file(str(path))
        stored = path.read_bytes()
    facts = {
        'digest': hashlib.sha256(stored).hexdigest()[:16],
        'size': encoder.vocab_size,
        'seconds_of_earlier_builds': round(_BuiltOnce.saved_seconds, 3),
    }
    return Outcome(seconds, facts)


def write_records(ready: Ready, *, text: str, vocabulary: str, output: str) -> Outcome:
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
