"""A dataset and what is added to it become one: shards are merged by the keys of their rows, in parts.

Nothing of the corpus of the dataset is read. What its manifest counts of the rows that are removed is known from
their index and their records.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import google_crc32c
import numpy as np

from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.jobs.job import EncodeJob, PreviousDataset
from pipelines.jobs.reading import ReadStats, totals
from pipelines.shard_formats.shard_format import mapped_bytes, parse_rows
from pipelines.shuffle.merge_runs import OrderedShardWriter
from pipelines.transforms.encode_blocks import EncodedFeature
from pipelines.transforms.stats import SummedFile
from tokcore.corpus.corpus import Split
from tokcore.corpus.order_keys import is_among, mix64, places_of, shard_of
from tokcore.corpus.stats import LineTally
from tokcore.errors import InputError
from tokcore.filters.leaving_out import refuse_missing
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.sorting import SortedRows
from tokcore.reading.record_index import index_name, parse_index
from tokcore.reading.shards import checksum
from tokcore.records.examples import FeatureEncoder, IdTally
from tokcore.records.manifest import OutputFile, file_of_shard
from tokcore.records.tfrecord import FramedRows, join_rows

_MERGING = 'merging shards'

_COPY_BYTES = 8 << 20

_PART_BYTES = 32 << 20
"""Records that a thread merges at once, as much as a group of buckets of the shuffle."""

EncodedFiles = tuple[ReadStats, tuple[OutputFile, ...], tuple[OutputFile, ...]]
"""The stats of what was read, the files of the shards, and those of their indexes."""


def refuse_impossible(job: EncodeJob) -> None:
    """Refuses, before any work, rows that cannot be left out of the dataset that is updated.

    Raises:
        InputError: there is no such row, an index is missing or damaged, or what the manifest counts of a row
            cannot be known without its text.
    """
    assert job.previous is not None
    previous, seed, found = job.previous, job.dataset.seed, dict[str, np.ndarray]()
    manifest = previous.manifest
    shards = _shards(previous.folder, manifest.files, manifest.index)
    for split in previous.corpus.split_names:
        corpus = previous.corpus.only(split)
        places = np.frombuffer(corpus.splits[0].left_out, '<u8')
        keys, is_there = mix64(places, seed), np.zeros(len(places), bool)
        for shard in filter(None, map(shards.get, job.dataset.shard_names(corpus))):
            is_there |= is_among(keys, shard.keys)
        found[split] = places[is_there]
        numbers = {*_datasets_of(keys[is_there], corpus.splits, seed).tolist()}
        losing = {(split, corpus.splits[number].dataset) for number in numbers}
        for tally in (*manifest.datasets, *manifest.lines):
            if tally.dropped_bytes and (tally.split, tally.dataset) in losing:
                raise InputError(
                    f'{tally.dropped_bytes:,} bytes of the text of {tally.dataset or tally.split} became no id, '
                    'and how many of them are of rows to remove is only known from the text; run `tokbeam '
                    'encode --leave-out` with the whole corpus'
                )
    if sum(map(len, found.values())) < len(previous.corpus.left_out):
        there = {(split, place) for split, own in found.items() for place in own.tolist()}
        refuse_missing(previous.corpus.left_out, there)


def merge_previous(
    job: EncodeJob,
    features: Sequence[EncodedFeature],
    added: EncodedFiles,
    path: str,
    added_path: str,
) -> EncodedFiles:
    """Merges the shards of a dataset with those of what is added, without the rows that are left out.

    Args:
        job: that updates the dataset.
        features: of an example.
        added: what became of what is added.
        path: of the attempt's folder.
        added_path: of the folder with the shards of what is added.

    Raises:
        InputError: a file of the dataset is damaged, or nothing is left of a split or dataset.
    """
    assert job.previous is not None
    previous, corpus = job.previous, job.reading.corpus
    before, (stats, files, indexes) = previous.manifest, added
    sources = [
        _shards(previous.folder, before.files, before.index),
        _shards(added_path, files, indexes),
    ]
    encoder = job.dataset.encoder(features, job.reading).load()
    merge = functools.partial(_merge_shard, job, encoder.features(), path, sources)
    with (
        track_work('merge', _MERGING, sum(file.bytes for file in (*before.files, *files))),
        ThreadPoolExecutor(job.execution.engine.workers) as pool,
    ):
        merged = [*pool.map(merge, job.dataset.shard_names(corpus))]
    tallies = [tally for _, _, lost in merged for tally in lost]
    for each in (before, stats):
        named = {tally.split for tally in each.datasets}
        tallies += [*each.datasets, *(own for own in each.lines if own.split not in named)]
    lines, of_splits = totals(corpus, tallies)
    for tally in (*lines, *of_splits):
        if not tally.examples:
            raise InputError(
                f'no row is left of {tally.dataset or tally.split}, and each split has one at least; '
                'remove fewer'
            )
    datasets = tuple(tally for tally in of_splits if tally.dataset)
    read, new, old = iter(stats.inputs), iter(stats.newlines), iter(previous.newlines)
    inputs = tuple(each.recorded or next(read) for each in corpus.inputs)
    newlines = tuple(next(old if each.recorded else new) for each in corpus.inputs)
    rejected = tuple(_join_rejected(previous, stats.rejected, path, added_path))
    return (
        ReadStats(inputs, tuple(lines), rejected, datasets, newlines),
        tuple(shard for shard, _, _ in merged),
        tuple(index for _, index, _ in merged),
    )


class _Shard:
    """The rows of a shard by its index; parts of it are read from its beginning to its end."""

    def __init__(self, folder: str, file: OutputFile, index: OutputFile | None):
        self.file, self._path, self._crc32c = file, os.path.join(folder, file.name), 0
        path = os.path.join(folder, index_name(file.name))
        data = mapped_bytes(path) if filesystem.exists(path) else np.empty(0, np.uint8)
        parsed = parse_index(data)
        if (
            parsed is None
            or not (parsed.has_keys and parsed.has_offsets)
            or parsed.shard != (file.examples, file.bytes, int(file.crc32c, 16))
            or (index is not None and index.crc32c != checksum(data))
        ):
            raise InputError(
                f'{self._path} has no index with the keys of its rows, or a damaged one; run `tokbeam index '
                f'{folder}`'
            )
        self._index = parsed

    @property
    def keys(self) -> np.ndarray:
        """The order keys of all rows, copied: uint64[rows], ascending."""
        return np.ascontiguousarray(self._index.keys)

    def rows(self, first: int, last: int) -> FramedRows:
        """Reads rows `first` up to `last`, which follow those that were read before."""
        index, own = self._index, slice(first, last)
        starts, ends = index.bounds(np.arange(first, last))
        size = int((ends - starts).sum())
        with filesystem.open_binary(self._path) as stream:
            stream.seek(int(starts[0]) if size else 0)
            data = np.frombuffer(stream.read(size), np.uint8)
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        if len(data) < size or (last == len(index) and f'{self._crc32c:08x}' != self.file.crc32c):
            raise _other_file(self._path)
        advance(_MERGING, size)
        sizes = np.column_stack([index.lengths[own], index.text_bytes[own]])
        return FramedRows(index.keys[own].copy(), ends - starts, data, sizes)


def _shards(
    folder: str, files: Sequence[OutputFile], index: Sequence[OutputFile]
) -> dict[str, _Shard]:
    """Returns the shards of TFRecords in a folder by their names."""
    indexes = {file.name: file for file in index}
    return {file.name: _Shard(folder, file, indexes.get(index_name(file.name))) for file in files}


def _other_file(path: str) -> InputError:
    return InputError(
        f'{path} is not the file that the manifest states; `tokbeam verify` names what is wrong'
    )


def _merge_shard(
    job: EncodeJob,
    encoders: Sequence[FeatureEncoder],
    path: str,
    sources: Sequence[dict[str, _Shard]],
    name: str,
) -> tuple[OutputFile, OutputFile, list[LineTally]]:
    """Merges a shard; returns its file, that of its index, and what removed rows take off the tallies."""
    shard = file_of_shard(name)
    assert shard is not None  # the job names it
    count, splits = job.dataset.shards_of(shard.split), job.reading.corpus.only(shard.split).splits
    removed = np.sort(mix64(np.frombuffer(splits[0].left_out, '<u8'), job.dataset.seed))
    merged = [by_name[name] for by_name in sources if name in by_name]
    parts = max(1, -(-sum(each.file.bytes for each in merged) // _PART_BYTES))
    # Keys are spread evenly, so even ranges of them are parts of about equal size.
    ranges = range(shard.number * parts, (shard.number + 1) * parts + 1)
    bounds = [
        np.searchsorted(shard_of(each.keys, count * parts), ranges).tolist() for each in merged
    ]
    out = OrderedShardWriter(path, name, parts)
    tallies: list[LineTally] = []
    for part in range(parts):
        with out.part(part):
            rows = join_rows(
                each.rows(*own[part : part + 2]) for each, own in zip(merged, bounds, strict=True)
            )
            numbers = _datasets_of(rows.keys, splits, job.dataset.seed)
            numbers[~is_among(rows.keys, removed)] = -1
            for dataset in np.unique(numbers[numbers >= 0]).tolist():
                gone = _selected(rows, numbers == dataset)
                tallies.append(_lost(gone, encoders, shard.split, splits[dataset].dataset))
            written = out.write(part, _selected(rows, numbers < 0))
    file, index = (each.listed() for each in written)
    return file, index, tallies


def _datasets_of(keys: np.ndarray, splits: Sequence[Split], seed: int) -> np.ndarray:
    """Returns the number of the dataset of each row, int64, among those of its split."""
    firsts = [split.first_file_index for split in splits]
    return np.searchsorted(firsts, places_of(keys, seed)[0], 'right') - 1


def _selected(rows: FramedRows, which: np.ndarray) -> SortedRows:
    """Returns the rows that a bool[rows] marks, sorted by their keys."""
    starts, lengths = row_offsets(rows.lengths)[:-1], rows.lengths.astype(np.uint32)
    columns = (rows.keys, starts, lengths, rows.sizes)
    keys, starts, lengths, sizes = (column[which] for column in columns)
    return SortedRows.of(keys, rows.records, starts, lengths, sizes)


def _lost(
    gone: SortedRows, encoders: Sequence[FeatureEncoder], split: str, dataset: str
) -> LineTally:
    """Returns what the tally of a dataset loses by rows that are removed."""
    count, text_bytes = len(gone), int(gone.sizes[:, -1].sum(dtype=np.int64))
    lost = LineTally(split, 0, -count, 0, dataset=dataset, text_bytes=-text_bytes, removed=count)
    framed = FramedRows(gone.keys, gone.lengths.astype(np.int64), gone.records(), gone.sizes)
    rows = parse_rows(framed, [each.feature.name for each in encoders])
    for encoder in encoders:
        ids, offsets = (of[encoder.feature.name] for of in (rows.ids, rows.offsets))
        template, unknown = encoder.template, None
        if encoder.unknown is not None:
            around = (*template.before, *template.after).count(encoder.unknown) * count
            unknown = around - int(np.count_nonzero(ids == encoder.unknown))
        no_token = int(np.count_nonzero(np.diff(offsets) == template.size))
        lost = IdTally(template.size * count - len(ids), -no_token, unknown).add_to(lost)
    return lost


def _join_rejected(
    previous: PreviousDataset, added: Sequence[OutputFile], path: str, added_path: str
) -> Iterator[OutputFile]:
    """Writes the files of lines that were left out, those of the dataset before those of what is added."""
    parts: dict[str, list[tuple[str, OutputFile]]] = {}
    for folder, files in [(previous.folder, previous.manifest.rejected), (added_path, added)]:
        for file in files:
            parts.setdefault(file.name, []).append((os.path.join(folder, file.name), file))
    for name in sorted(parts, key=json.dumps):  # as the stats of an encode are
        with SummedFile(path, name) as out:
            for part, file in parts[name]:
                crc32c = 0
                with filesystem.open_binary(part) as stream:
                    while piece := stream.read(_COPY_BYTES):
                        out.write(piece)
                        crc32c = google_crc32c.extend(crc32c, piece)
                if f'{crc32c:08x}' != file.crc32c:
                    raise _other_file(part)
        written = out.written(sum(file.rows for _, file in parts[name])).listed()
        yield dataclasses.replace(written, sha256=None)
