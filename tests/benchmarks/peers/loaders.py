"""Loaders that read a dataset's rows: ArrayRecord in grain, MosaicML's streaming, litdata, TensorFlow.

Each function imports its tool. MosaicML's streaming and litdata bring PyTorch, so they are not in the
extra `bench`. Loaders without a rule of batches by a budget of tokens get one in plain Python. Each
has its own files, made once; where records are bytes, they are bare int32s, which cost no parsing.
"""

import bisect
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from tokcore.reading.batching import batch_sizes, growing_boundaries

from ..outcome import Outcome, Ready, timed
from ..stages.reading import (
    AT_ONCE,
    BATCH_SIZE,
    LONGEST,
    TOKENS,
    WINDOW,
    budget_facts,
    random_numbers,
    row_facts,
    tally,
)

Row = dict[str, np.ndarray]

_BOUNDS = growing_boundaries(TOKENS)
_SIZES = batch_sizes(TOKENS, (*_BOUNDS, TOKENS))

_ARRAY_RECORD_OPTIONS = 'group_size:1,zstd:3,window_log:20'
"""A record is compressed by itself, as grain asks for."""


def _batches(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields padded batches of rows of similar length, as `Dataset.batches` forms them."""
    waiting: list[list[Row]] = [[] for _ in _SIZES]
    for row in rows:
        bucket = bisect.bisect_right(_BOUNDS, max(map(len, row.values())))
        waiting[bucket].append(row)
        if len(waiting[bucket]) == _SIZES[bucket]:
            yield _padded(waiting[bucket])
            waiting[bucket] = []
    yield from (_padded(rest) for rest in waiting if rest)


def _padded(rows: list[Row]) -> Row:
    batch = {}
    for name in rows[0]:
        batch[name] = np.zeros((len(rows), max(len(row[name]) for row in rows)), np.int32)
        for padded, row in zip(batch[name], rows, strict=True):
            padded[: len(row[name])] = row[name]
    return batch


def _budget(ready: Ready, rows: Callable[[], Iterable[Row]]) -> Outcome:
    """An epoch of shuffled rows in batches."""
    facts, seconds = timed(ready, lambda: budget_facts(_batches(rows())))
    return Outcome(seconds, facts)


def _written(folder: str, suffix: str, write: Callable[[Path, Iterator[Row]], None]) -> str:
    """Returns a loader's own files of a dataset; no clock runs."""
    from tokcore import open_dataset

    path = Path(f'{folder}.{suffix}')
    if not path.exists():
        part = path.with_suffix('.part')
        shutil.rmtree(part, ignore_errors=True)  # of a benchmark that was killed
        write(part, open_dataset(folder).examples('train'))
        part.rename(path)
    return str(path)


def _record_of(row: Row) -> bytes:
    """Returns a pair as bare int32s."""
    head = np.array([len(row['inputs'])], np.int32)
    return np.concatenate([head, row['inputs'], row['targets']]).tobytes()


def _row_of(record: bytes) -> Row:
    """Returns the pair of such a record."""
    ids = np.frombuffer(record, np.int32)
    return {'inputs': ids[1 : 1 + ids[0]], 'targets': ids[1 + ids[0] :]}


def grain(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """An epoch of shuffled rows of ArrayRecord in batches, by grain."""
    import grain

    source = _array_records(folder)
    rows = grain.MapDataset.source(source).shuffle(seed=1).map(_row_of)
    # On one core threads that read ahead are in the way.
    reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    return _budget(ready, lambda: iter(rows.to_iter_dataset(reading)))


def one_by_one(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """Random rows of ArrayRecord, each by itself."""
    source = _array_records(folder)
    numbers = random_numbers(len(source)).tolist()
    facts, seconds = timed(ready, lambda: row_facts(_row_of(source[each]) for each in numbers))
    return Outcome(seconds, facts)


def many_at_once(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """Random rows of ArrayRecord, many in one call."""
    source = _array_records(folder)
    numbers = random_numbers(len(source))
    facts, seconds = timed(
        ready,
        lambda: row_facts(
            _row_of(record)
            for first in range(0, len(numbers), AT_ONCE)
            for record in source.__getitems__(numbers[first : first + AT_ONCE].tolist())
        ),
    )
    return Outcome(seconds, facts)


def _array_records(folder: str):
    import grain
    from array_record.python import array_record_module

    def write(path: Path, rows: Iterator[Row]) -> None:
        writer = array_record_module.ArrayRecordWriter(str(path), _ARRAY_RECORD_OPTIONS)
        for row in rows:
            writer.write(_record_of(row))
        writer.close()

    source = grain.sources.ArrayRecordDataSource(_written(folder, 'array_record', write))
    _row_of(source[0])
    return source


def mosaic(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """An epoch of MosaicML's streaming over its own shards (MDS)."""
    from streaming import MDSWriter, StreamingDataset

    def write(path: Path, rows: Iterator[Row]) -> None:
        columns = dict.fromkeys(('inputs', 'targets'), 'ndarray:int32')
        with MDSWriter(out=str(path), columns=columns) as writer:
            for row in rows:
                writer.write({name: np.asarray(ids) for name, ids in row.items()})

    rows = StreamingDataset(
        local=_written(folder, 'mds', write), shuffle=True, shuffle_seed=1, batch_size=1,
        num_canonical_nodes=1,
    )  # fmt: skip
    rows[0]
    return _budget(ready, lambda: iter(rows))


def litdata(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """An epoch of litdata over its own chunks."""
    from litdata import StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    def write(path: Path, rows: Iterator[Row]) -> None:
        path.mkdir()
        writer = BinaryWriter(str(path), chunk_bytes='64MB')
        for number, row in enumerate(rows):
            writer[number] = _record_of(row)
        writer.done()
        writer.merge()

    rows = StreamingDataset(_written(folder, 'litdata', write), shuffle=True, seed=1)
    _row_of(rows[0])
    return _budget(ready, lambda: map(_row_of, rows))


def tf_data(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """An epoch of tf.data over our shards: shuffled, parsed, in buckets as Tensor2Tensor has them."""
    import tensorflow as tf

    def parsed(record: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
        return tf.io.parse_single_example(record, {'inputs': ids, 'targets': ids})

    def length(row: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.maximum(tf.size(row['inputs']), tf.size(row['targets']))

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    shards = sorted(str(path) for path in Path(folder).glob('words-train-*'))
    batches = (
        tf.data.TFRecordDataset(shards)
        .shuffle(WINDOW, seed=1)
        .map(parsed)
        .bucket_by_sequence_length(length, list(_BOUNDS), list(_SIZES))
        .with_options(options)
    )
    next(batches.as_numpy_iterator())
    facts, seconds = timed(ready, lambda: budget_facts(batches.as_numpy_iterator()))
    return Outcome(seconds, facts)


def nmt_batches(ready: Ready, *, folder: str, shared: str) -> Outcome:
    """The batches that TensorFlow makes of two files of text, shuffled as NMT does."""
    from tokcore import training_batches

    source, target, vocabulary = shared.split('|')
    made = training_batches(
        source, target, vocabulary, vocabulary, batch_size=BATCH_SIZE,
        source_max_length=LONGEST, target_max_length=LONGEST, seed=1,
    )  # fmt: skip
    facts, seconds = timed(ready, lambda: tally(made.as_numpy_iterator()))
    return Outcome(seconds, facts)


def tensorflow_import(ready: Ready, *, folder: str) -> Outcome:
    """`import tensorflow` in a new process."""
    import importlib

    return Outcome(timed(ready, lambda: importlib.import_module('tensorflow'))[1])
