"""Text to ids, ids to records, and text to records, without Beam."""

import shutil
import threading
import time
from pathlib import Path

import numpy as np

from tokcore.corpus.corpus import Rows
from tokcore.corpus.line_rows import text_rows
from tokcore.corpus.order_keys import order_keys
from tokcore.encoding.encoder import EncodedSide
from tokcore.records.tfrecord import frame_examples, sort_rows, split_by_bucket
from tokcore.subword.text_encoder import EOS_ID, SubwordTextEncoder
from tokcore.text.normalizers import T2T_LINES

from ..outcome import Outcome, Ready, timed
from .blocks import TextBlock, get_ready, map_blocks, text_blocks
from .written import take_file


class _ThreadsEncoders:
    """An encoder for each thread, as in the pipelines."""

    def __init__(self, vocabulary: str):
        self._encoder = SubwordTextEncoder.load(vocabulary)
        _ = self._encoder.model.state  # built before the clock starts
        self._of_thread = threading.local()

    def rows_and_ids(self, block: TextBlock) -> tuple[Rows, EncodedSide]:
        if not hasattr(self._of_thread, 'encoder'):
            self._of_thread.encoder = self._encoder.row_encoder()
        rows = text_rows(block.data, block.offset, T2T_LINES)
        return rows, self._of_thread.encoder.encode_side(rows.sides[0], after=[EOS_ID])

    def ids(self, block: TextBlock) -> np.ndarray:
        return self.rows_and_ids(block)[1].ids

    def records(self, block: TextBlock) -> np.ndarray:
        rows, ids = self.rows_and_ids(block)
        return frame_examples([('targets', ids)], order_keys(0, rows.offsets, 0)).records


def encode(ready: Ready, *, text: str, vocabulary: str, threads: int) -> Outcome:
    """Text in memory to ids in memory."""
    get_ready()
    blocks = text_blocks(Path(text).read_bytes())
    encoders = _ThreadsEncoders(vocabulary)
    ids, seconds = timed(ready, lambda: list(map_blocks(encoders.ids, blocks, threads)))
    return Outcome(seconds, {'ids': sum(map(len, ids))})


def write_records(
    ready: Ready, *, text: str, vocabulary: str, threads: int, output: str
) -> Outcome:
    """Text in memory to a TFRecord file, in the text's order."""
    get_ready()
    blocks = text_blocks(Path(text).read_bytes())
    encoders = _ThreadsEncoders(vocabulary)

    def write() -> None:
        with open(output, 'wb') as file:
            for records in map_blocks(encoders.records, blocks, threads):
                file.write(records.data)

    _, seconds = timed(ready, write)
    return Outcome(seconds, take_file(output))


def frame_ids(ready: Ready, *, ids: str, output: str) -> Outcome:
    """Ids in memory to a TFRecord file."""
    get_ready()
    with np.load(ids) as arrays:
        side = EncodedSide(arrays['ids'], arrays['offsets'])
        keys = order_keys(0, arrays['places'], 0)
    ready()
    started = time.perf_counter()
    framed = frame_examples([('targets', side)], keys)
    Path(output).write_bytes(framed.records.data)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {**take_file(output), 'examples': len(framed)})


def write_shards(ready: Ready, *, ids: str, shards: int, output: str) -> Outcome:
    """Ids in memory to TFRecord shards, shuffled."""
    get_ready()
    with np.load(ids) as arrays:
        side, places = EncodedSide(arrays['ids'], arrays['offsets']), arrays['places']
    folder = Path(output)
    folder.mkdir()
    ready()
    started = time.perf_counter()
    framed = frame_examples([('targets', side)], order_keys(0, places, 0))
    for shard, rows in split_by_bucket(framed, shards):
        (folder / f'shard-{shard:05}').write_bytes(sort_rows([rows]).records.data)
    seconds = time.perf_counter() - started
    shutil.rmtree(folder)
    return Outcome(seconds, {'examples': len(framed)})
