"""Text to shuffled shards by the kernels only: the work of `tokbeam encode` without Beam.

An external sort: framed rows are collected, sorted and written as runs; each shard is merged from
all runs. These are the functions that the pipelines call, one after another on one thread.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tokcore.corpus.corpus import BLOCK_BYTES, Block, BlockText, CorpusFile, Split
from tokcore.corpus.declarations import PlainText
from tokcore.encoding.encoder import RowEncoder
from tokcore.encoding.vocabulary import Template
from tokcore.records.examples import EncodedBlock, Feature, FeatureEncoder, encode_block
from tokcore.records.sorted_runs import (
    RunBuffer,
    RunFile,
    RunHead,
    bucket_groups,
    merge_buckets,
    read_slices,
    record_pieces,
    write_run,
)
from tokcore.subword.text_encoder import EOS_ID, SubwordTextEncoder
from tokcore.text.normalizers import T2T_LINES

from ..outcome import Outcome, Ready
from .blocks import get_ready
from .written import files_digest

_BUFFER_BYTES = 256 << 20  # as the pipelines' default
_GROUP_BYTES = 32 << 20
_BUCKET_BYTES = 16 << 20
_SPLIT = 'train'
_FINGERPRINT = bytes(16)


def encode_and_shuffle(
    ready: Ready, *, text: str, vocabulary: str, shards: int, output: str
) -> Outcome:
    """Reads a text file and writes its shards, on one thread."""
    folder = Path(output)
    folder.mkdir()
    get_ready()
    encoder = SubwordTextEncoder.load(vocabulary).row_encoder()
    per_shard = -(-Path(text).stat().st_size // (shards * _BUCKET_BYTES))
    ready()
    started = time.perf_counter()
    runs = list(_write_runs(_encoded_blocks(Path(text), encoder), folder, shards * per_shard))
    for shard in range(shards):
        _write_shard(runs, shard * per_shard, per_shard, shards, folder / f'shard-{shard:05}')
    seconds = time.perf_counter() - started
    digest = files_digest(sorted(folder.glob('shard-*')))
    shutil.rmtree(folder)
    return Outcome(seconds, {'digest': digest})


def _encoded_blocks(path: Path, encoder: RowEncoder) -> Iterator[EncodedBlock]:
    file = CorpusFile(str(path), str(path), path.stat().st_size, compressed=False)
    splits = (Split(_SPLIT, PlainText(), ((file,),)),)
    template = Template(after=(EOS_ID,))
    features = (FeatureEncoder(Feature('targets', 0), encoder, template),)
    offset = 0
    with open(path, 'rb') as text:
        while data := text.read(BLOCK_BYTES):
            data += text.readline()
            block = Block(_SPLIT, PlainText(), 0, (BlockText(offset, data),))
            yield encode_block(block, features, 0, splits, T2T_LINES)
            offset += len(data)


def _write_runs(blocks: Iterator[EncodedBlock], folder: Path, buckets: int) -> Iterator[RunFile]:
    buffer = RunBuffer(_BUFFER_BYTES)
    written = 0
    for block in blocks:
        if not buffer.fits(block):
            yield _write_run(buffer, folder, written, buckets)
            written += 1
        buffer.add(block)
    yield _write_run(buffer, folder, written, buckets)


def _write_run(buffer: RunBuffer, folder: Path, number: int, buckets: int) -> RunFile:
    head = RunHead(_FINGERPRINT, number, 0, True, buckets)
    stats = buffer.stats(_SPLIT, 0, 1)
    path = folder / f'run-{number}'
    with open(path, 'wb') as stream:
        size, _ = write_run(stream, head, buffer.sorted_rows(), stats)
    buffer.clear()
    return RunFile(str(path), size)


def _write_shard(runs: list[RunFile], first: int, per_shard: int, shards: int, path: Path) -> None:
    def open_binary(name: str):
        return open(name, 'rb')

    end = first + per_shard
    slices = read_slices(runs, _FINGERPRINT, per_shard * shards, first, end, open_binary)
    with open(path, 'wb') as stream:
        for group in bucket_groups(slices, first, end, _GROUP_BYTES):
            merged = merge_buckets([each.part(*group) for each in slices], open_binary)
            for piece in record_pieces(merged, 0, len(merged)):
                stream.write(piece.data)
