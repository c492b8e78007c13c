"""TensorFlow's records, TensorFlow Text's WordPiece learner, and Beam's `WriteToTFRecord`.

Each function imports its tool.
"""

import shutil
from pathlib import Path

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import EncodedSide
from tokcore.records.tfrecord import frame_examples, read_records
from tokcore.wordpiece.options import SPECIAL_TOKENS

from ..outcome import Outcome, Ready, timed
from ..stages.wordpieces import pieces_digest
from ..stages.written import take_file


def frame_ids(ready: Ready, *, ids: str, output: str) -> Outcome:
    """Ids in memory to a TFRecord file by `tf.train.Example`, as TensorFlow's guide has it."""
    import tensorflow as tf

    with np.load(ids) as arrays:
        rows = np.split(arrays['ids'], arrays['offsets'][1:-1])

    def write() -> None:
        with tf.io.TFRecordWriter(output) as writer:
            for row in rows:
                feature = tf.train.Feature(int64_list=tf.train.Int64List(value=row))
                features = tf.train.Features(feature={'targets': feature})
                writer.write(tf.train.Example(features=features).SerializeToString())

    _, seconds = timed(ready, write)
    return Outcome(seconds, {**take_file(output), 'examples': len(rows)})


def beam_examples(ready: Ready, *, ids: str, shards: int, output: str) -> Outcome:
    """Examples in memory to TFRecord shards, by Beam; finished examples are more than ours is given."""
    import apache_beam as beam

    def write(written: list[bytes], path: Path) -> None:
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            (
                pipeline
                | beam.Create(written, reshuffle=False)
                | beam.io.WriteToTFRecord(str(path), num_shards=shards)
            )

    with np.load(ids) as arrays:
        side = EncodedSide(arrays['ids'], arrays['offsets'])
        framed = frame_examples([('targets', side)], arrays['places'].astype(np.uint64))
    examples = list(read_records(framed.records.tobytes(), 'examples'))
    folder = Path(output)
    folder.mkdir()
    write(examples[:10], folder / 'warm-up')
    _, seconds = timed(ready, lambda: write(examples, folder / 'examples'))
    shutil.rmtree(folder)
    return Outcome(seconds, {'examples': len(examples)})


def search_counts(ready: Ready, *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a WordPiece vocabulary of a size from a dictionary of counts, by its own defaults."""
    pieces, seconds = _learned(ready, counts, vocabulary_size, ['[UNK]'])
    return Outcome(seconds, {'size': len(pieces)})


def learn(ready: Ready, *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary of words' pieces, with BERT's special tokens."""
    pieces, seconds = _learned(ready, counts, vocabulary_size, list(SPECIAL_TOKENS))
    return Outcome(seconds, {'digest': pieces_digest(pieces), 'size': len(pieces)})


def _learned(ready: Ready, counts: str, size: int, reserved: list[str]) -> tuple[list[str], float]:
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner_lib

    token_counts = dict(TokenTable.from_bytes(Path(counts).read_bytes()).items())
    return timed(ready, lambda: learner_lib.learn(token_counts, size, reserved))
