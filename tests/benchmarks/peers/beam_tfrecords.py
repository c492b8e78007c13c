"""Beam's own `WriteToTFRecord`, given examples as bytes, on its direct engine."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import numpy as np

from tokcore.encoding.encoder import EncodedSide
from tokcore.records.tfrecord import frame_examples, read_records

from ..outcome import Outcome


def write_examples(ready: Callable[[], None], *, ids: str, shards: int, output: str) -> Outcome:
    """Examples in memory to TFRecord shards; finished examples are more than ours is given."""
    with np.load(ids) as arrays:
        side = EncodedSide(arrays['ids'], arrays['offsets'])
        framed = frame_examples([('targets', side)], arrays['places'].astype(np.uint64))
    examples = list(read_records(framed.records.tobytes(), 'examples'))
    folder = Path(output)
    folder.mkdir()
    _write(examples[:10], shards, folder / 'warm-up')
    ready()
    started = time.perf_counter()
    _write(examples, shards, folder / 'examples')
    seconds = time.perf_counter() - started
    shutil.rmtree(folder)
    return Outcome(seconds, {'examples': len(examples)})


def _write(examples: list[bytes], shards: int, path: Path) -> None:
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        (
            pipeline
            | beam.Create(examples, reshuffle=False)
            | beam.io.WriteToTFRecord(str(path), num_shards=shards)
        )
