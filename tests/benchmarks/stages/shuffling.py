"""Text to shuffled shards by the kernels alone: what `tokbeam encode` does, without Beam.

An external sort: framed rows are collected, sorted and written as runs; each shard is read back
from all runs and sorted once more.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokcore.corpus.blocks import BLOCK_BYTES
from tokcore.corpus.rows import text_rows
from tokcore.records.framing import FramedRows, frame_examples, sort_rows
from tokcore.records.order import order_keys, shard_of
from tokcore.subword.block_encoding import SubwordBlockEncoder
from tokcore.subword.encoder import SubwordTextEncoder
from tokcore.warm_up import compile_kernels

from ..outcome import Outcome
from .written import files_digest

_BUFFER_BYTES = 256 << 20  # as the pipelines' default


@dataclass(frozen=True)
class _Run:
    records: Path
    keys: np.ndarray
    lengths: np.ndarray

    def of_shard(self, shard: int, shards: int) -> FramedRows:
        """Returns the rows of one shard, which stand together in a run."""
        numbers = shard_of(self.keys, shards)
        first, last = np.searchsorted(numbers, [shard, shard + 1]).tolist()
        lengths = self.lengths[first:last]
        start = int(self.lengths[:first].sum())
        records = np.fromfile(self.records, np.uint8, int(lengths.sum()), offset=start)
        return FramedRows(self.keys[first:last], lengths, records)


def encode_and_shuffle(
    ready: Callable[[], None], *, text: str, vocabulary: str, shards: int, output: str
) -> Outcome:
    """Reads a text file and writes its shards, on one thread."""
    folder = Path(output)
    folder.mkdir()
    compile_kernels()
    encoder = SubwordBlockEncoder(SubwordTextEncoder.load(vocabulary))
    ready()
    started = time.perf_counter()
    runs = []
    for number, parts in enumerate(_buffers(_framed_blocks(Path(text), encoder))):
        rows = sort_rows(parts)
        path = folder / f'run-{number}'
        path.write_bytes(rows.records.data)
        runs.append(_Run(path, rows.keys, rows.lengths))
    for shard in range(shards):
        rows = sort_rows([run.of_shard(shard, shards) for run in runs])
        (folder / f'shard-{shard:05}').write_bytes(rows.records.data)
    seconds = time.perf_counter() - started
    digest = files_digest(sorted(folder.glob('shard-*')))
    shutil.rmtree(folder)
    return Outcome(seconds, {'digest': digest})


def _framed_blocks(path: Path, encoder: SubwordBlockEncoder) -> Iterator[FramedRows]:
    offset = 0
    with open(path, 'rb') as text:
        while data := text.read(BLOCK_BYTES):
            data += text.readline()
            rows = text_rows(data, offset)
            ids = encoder.encode_side(rows.sides[0])
            yield frame_examples([('targets', ids)], order_keys(0, rows.offsets, 0))
            offset += len(data)


def _buffers(parts: Iterator[FramedRows]) -> Iterator[list[FramedRows]]:
    waiting: list[FramedRows] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += part.nbytes
        if size >= _BUFFER_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting
