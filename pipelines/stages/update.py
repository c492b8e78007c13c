"""A dataset and what is added to it become one: shards are merged by the keys of their rows, in parts.

Nothing of the corpus of the dataset is read. What its manifest counts of the rows that are removed is known from
their index, and the unknown tokens from their records.
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import google_crc32c
import numpy as np

from pipelines.engines.progress import advance, track_work
from pipelines.files import filesystem
from pipelines.jobs.job import EncodeJob, PreviousDataset
from pipelines.jobs.reading import ReadStats
from pipelines.shard_formats.shard_format import mapped_bytes
from pipelines.shuffle.merge_runs import OrderedShardWriter
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature, SplitShards
from tokcore.corpus.corpus import Split
from tokcore.corpus.order_keys import OFFSET_BITS, is_among, mix64, places_of
from tokcore.corpus.stats import LineTally, add_tallies
from tokcore.errors import InputError
from tokcore.filters.leaving_out import refuse_missing
from tokcore.kernels.jit import read_only
from tokcore.kernels.sorting import SortedRows
from tokcore.reading.checking import Sums
from tokcore.reading.record_index import index_name, parse_index
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE, LARGEST_ID
from tokcore.reading.shards import ExampleParser, checksum
from tokcore.records.examples import FeatureEncoder, IdTally
from tokcore.records.manifest import OutputFile, shard_name

_MERGING = 'merging shards'

_COPY_BYTES = 8 << 20

_PART_BYTES = 32 << 20
"""Records that a thread merges at once, as much as a group of buckets of the shuffle."""

Files = tuple[OutputFile, ...]


def stored_files(previous: PreviousDataset | None) -> list[str]:
    """Returns the paths of the files of a dataset that is updated, if there is one."""
    files = previous.manifest.outputs if previous else ()
    return [os.path.join(previous.folder, file.name) for file in files] if previous else []


def refuse_impossible(job: EncodeJob, layout: Sequence[SplitShards]) -> None:
    """Refuses, before any work, rows that cannot be left out of the dataset that is updated.

    Raises:
        InputError: there is no such row, an index is missing or damaged, or what the manifest counts of a row
            cannot be known without its text.
    """
    assert job.previous is not None
    previous, corpus, seed = job.previous, job.reading.corpus, job.dataset.seed
    shards = _shards(previous.folder, previous.manifest.files, previous.manifest.index)
    found: dict[str, np.ndarray] = {}
    for split in layout:
        keys = _removed_keys(job, split.split)
        is_there = np.zeros(len(keys), bool)
        for number in range(split.shards):
            if shard := shards.get(shard_name(job.dataset.name, split.split, number, split.shards)):
                is_there |= is_among(keys, shard.keys)
        own = [each for each in corpus.splits if each.name == split.split]
        for dataset in {*_datasets_of(keys[is_there], own, seed).tolist()}:
            tally = _stated(previous, own[dataset])
            if tally.dropped_bytes:
                raise InputError(
                    f'{tally.dropped_bytes:,} bytes of the text of {tally.dataset or tally.split} became no id, '
                    'and how many of them are of rows to remove is only known from the text; run `tokbeam '
                    'encode --leave-out` with the whole corpus'
                )
        indexes, identities = places_of(keys[is_there], seed)
        found[split.split] = np.sort((indexes << OFFSET_BITS | identities).astype(np.uint64))
    # Others were removed before, or are looked for when they are read.
    others = previous.corpus, previous.added
    there = [each.left_out.count(b'\n') for each in (corpus, *others)]
    if sum(map(len, found.values())) != there[0] - sum(there[1:]):
        for each in (split for other in others for split in other.splits):
            more = np.frombuffer(each.left_out, '<u8')
            found[each.name] = np.union1d(found[each.name], more)
        refuse_missing(corpus.left_out, corpus.splits, found)


def merge_previous(
    job: EncodeJob,
    features: Sequence[EncodedFeature],
    layout: Sequence[SplitShards],
    added: tuple[ReadStats, Files, Files],
    path: str,
    added_path: str,
) -> tuple[ReadStats, Files, Files]:
    """Merges the shards of a dataset with those of what is added, without the rows that are left out.

    Returns the stats of all, the files of the shards, and those of their indexes.

    Args:
        job: that updates the dataset.
        features: of an example.
        layout: for each split its shards.
        added: the same of what is added.
        path: of the attempt's folder.
        added_path: of the folder with the shards of what is added.

    Raises:
        InputError: a file of the dataset is damaged, or nothing is left of a split or dataset.
    """
    assert job.previous is not None
    reading, previous = job.reading, job.previous
    corpus, before, (stats, files, indexes) = reading.corpus, previous.manifest, added
    encoder = BlockEncoder(
        features,
        corpus.splits,
        job.dataset.seed,
        reading.on_error,
        reading.scheme,
        job.dataset.encoding,
    )
    sources = [
        _shards(previous.folder, before.files, before.index),
        _shards(added_path, files, indexes),
    ]
    merge = _Merge(job, encoder.load().features(), path, sources)
    shards = [(split, number) for split in layout for number in range(split.shards)]
    with (
        track_work('merge', _MERGING, sum(file.bytes for file in (*before.files, *files))),
        ThreadPoolExecutor(job.execution.engine.workers) as pool,
    ):
        merged = [*pool.map(merge.shard, shards)]
    removed = [tally for _, _, tallies in merged for tally in tallies]

    def total(name: str, dataset: str | None, *parts: Sequence[LineTally]) -> LineTally:
        own = [tally for part in parts for tally in part if tally.split == name]
        tally = add_tallies(name, [each for each in own if dataset in (None, each.dataset)])
        if not tally.examples:
            raise InputError(
                f'no row is left of {dataset or name}, and each split has one at least; remove fewer'
            )
        return dataclasses.replace(tally, dataset=dataset or '')

    lines = [total(name, None, before.lines, stats.lines, removed) for name in corpus.split_names]
    datasets = [
        total(split.name, split.dataset, before.datasets, stats.datasets, removed)
        for split in corpus.splits
        if split.dataset
    ]
    read, new, old = iter(stats.inputs), iter(stats.newlines), iter(previous.newlines)
    inputs = tuple(each.recorded or next(read) for each in corpus.inputs)
    newlines = tuple(next(old if each.recorded else new) for each in corpus.inputs)
    rejected = tuple(_join_rejected(previous, stats.rejected, path, added_path))
    return (
        ReadStats(inputs, tuple(lines), rejected, tuple(datasets), newlines),
        tuple(shard for shard, _, _ in merged),
        tuple(index for _, index, _ in merged),
    )


class _Shard:
    """The rows of a shard by its index; parts of it are read from its beginning to its end."""

    def __init__(self, folder: str, file: OutputFile, index: OutputFile | None):
        self.file, self.path, self._crc32c = file, os.path.join(folder, file.name), 0
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
                f'{self.path} has no index with the keys of its rows, or a damaged one; run `tokbeam index '
                f'{folder}`'
            )
        self._index = parsed

    @property
    def keys(self) -> np.ndarray:
        """The order keys of all rows, copied: uint64[rows], ascending."""
        return np.ascontiguousarray(self._index.keys)

    def part(self, stream: BinaryIO, first: int, last: int) -> tuple[np.ndarray, ...]:
        """Returns the records of rows `first` up to `last`, and of each its key, start, length and sizes."""
        index = self._index
        starts, ends = index.bounds(np.arange(first, last))
        begin, size = (int(starts[0]), int(ends[-1] - starts[0])) if len(starts) else (0, 0)
        data, filled = np.empty(size, np.uint8), 0
        while filled < size and (read := stream.readinto(data[filled:].data)):  # type: ignore[attr-defined]
            filled += read
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        if filled < size or (last == len(index) and f'{self._crc32c:08x}' != self.file.crc32c):
            raise _other_file(self.path)
        advance(_MERGING, size)
        sizes = np.column_stack([index.lengths[first:last], index.text_bytes[first:last]])
        return data, index.keys[first:last].copy(), starts - begin, ends - starts, sizes


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


class _Merge:
    """Merges shards; threads can share it."""

    def __init__(
        self,
        job: EncodeJob,
        encoders: Sequence[FeatureEncoder],
        path: str,
        sources: Sequence[dict[str, _Shard]],
    ):
        self._job, self._encoders, self._path, self._sources = job, encoders, path, sources
        self._parser = ExampleParser({each.feature.name: LARGEST_ID for each in encoders})

    def shard(
        self, shard: tuple[SplitShards, int]
    ) -> tuple[OutputFile, OutputFile, list[LineTally]]:
        """Merges a shard; returns its file, that of its index, and what removed rows take off the tallies."""
        split, number = shard
        name = shard_name(self._job.dataset.name, split.split, number, split.shards)
        removed = _removed_keys(self._job, split.split)
        sources = [by_name[name] for by_name in self._sources if name in by_name]
        parts = max(1, -(-sum(source.file.bytes for source in sources) // _PART_BYTES))
        # Keys are spread evenly, so even ranges of them are parts of about equal size.
        firsts = [
            -(-(part << 64) // (split.shards * parts))
            for part in range(number * parts, (number + 1) * parts)
        ]
        bounds = [
            [*np.searchsorted(source.keys, np.array(firsts, np.uint64)), len(source.keys)]
            for source in sources
        ]
        out = OrderedShardWriter(self._path, name, parts)
        tallies: list[LineTally] = []
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(filesystem.open_binary(each.path)) for each in sources]
            for part in range(parts):
                with out.part(part):
                    rows = [
                        source.part(stream, own[part], own[part + 1])
                        for source, stream, own in zip(sources, streams, bounds, strict=True)
                    ]
                    merged, gone = _merged(rows, removed)
                    tallies += self._lost(split.split, *gone)
                    written = out.write(part, merged)
        file, index = (each.listed() for each in written)
        return file, index, tallies

    def _lost(self, name: str, data, keys, starts, lengths, sizes) -> Iterator[LineTally]:
        """Yields what tallies of datasets lose by rows, which are as `_Shard.part` has them."""
        assert self._job.previous is not None
        splits = [split for split in self._job.reading.corpus.splits if split.name == name]
        numbers = _datasets_of(keys, splits, self._job.dataset.seed)
        for number in np.unique(numbers).tolist():
            own, split = numbers == number, splits[number]
            rows = int(np.count_nonzero(own))
            text_bytes = int(sizes[own, -1].sum(dtype=np.int64))
            lost = LineTally(
                name, 0, -rows, 0, dataset=split.dataset, text_bytes=-text_bytes, removed=rows
            )
            ids: dict[str, np.ndarray] = {}
            if _stated(self._job.previous, split).unknown:
                contents = [starts[own] + HEADER_SIZE, lengths[own] - HEADER_SIZE - FOOTER_SIZE]
                ids = self._ids(data, np.array(contents))
            for encoder, size in zip(self._encoders, sizes[own].astype(np.int64).T):
                template, unknown = encoder.template, None
                if encoder.unknown is not None:
                    own_ids = ids.get(encoder.feature.name, np.empty(0))
                    around = (*template.before, *template.after).count(encoder.unknown) * rows
                    unknown = int(around - np.sum(own_ids == encoder.unknown)) if ids else 0
                no_token = int(np.count_nonzero(size == template.size))
                taken = template.size * rows - int(size.sum())
                lost = IdTally(taken, -no_token, unknown).add_to(lost)
            yield lost

    def _ids(self, data: np.ndarray, contents: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the ids of records by feature; contents are (start, size) in the data, int64[2, n]."""
        rows, unparsed = self._parser.parse(read_only(data), contents)
        parts = [rows.ids]
        for start, size in contents[:, unparsed].T.tolist():
            parts.append(self._parser.parse_in_python(data[start : start + size].tobytes()).ids)
        return {name: np.concatenate([part[name] for part in parts]) for name in rows.ids}


def _merged(
    rows: Sequence[tuple[np.ndarray, ...]], removed: np.ndarray
) -> tuple[SortedRows, tuple[np.ndarray, ...]]:
    """Returns the rows that stay, sorted, and the others, as `_Shard.part` has them."""
    offsets = np.cumsum([0, *(len(data) for data, *_ in rows)])
    data, keys, starts, lengths, sizes = (
        np.concatenate(parts) for parts in zip(*rows, strict=True)
    )
    starts += np.repeat(offsets[:-1], [len(own) for _, own, *_ in rows])
    columns, stays = (keys, starts, lengths.astype(np.uint32), sizes), ~is_among(keys, removed)
    keys, starts, lengths, sizes = (column[stays] for column in columns)
    merged = SortedRows.of(keys, data, starts, lengths, sizes)
    return merged, (data, *(column[~stays] for column in columns))


def _removed_keys(job: EncodeJob, name: str) -> np.ndarray:
    """Returns the order keys of the rows of a split that are left out, uint64 in ascending order."""
    split = next(split for split in job.reading.corpus.splits if split.name == name)
    return np.sort(mix64(np.frombuffer(split.left_out, '<u8'), job.dataset.seed))


def _datasets_of(keys: np.ndarray, splits: Sequence[Split], seed: int) -> np.ndarray:
    """Returns the number of the dataset of each row, int64, among those of its split."""
    firsts = [split.first_file_index for split in splits]
    return np.searchsorted(firsts, places_of(keys, seed)[0], 'right') - 1


def _stated(previous: PreviousDataset, split: Split) -> LineTally:
    """Returns what the manifest counts of a dataset, or of a split with one."""
    tallies = previous.manifest.datasets if split.dataset else previous.manifest.lines
    return next(
        tally for tally in tallies if (tally.split, tally.dataset) == (split.name, split.dataset)
    )


def _join_rejected(
    previous: PreviousDataset, added: Sequence[OutputFile], path: str, added_path: str
) -> Iterator[OutputFile]:
    """Writes the files of lines that were left out, those of the dataset before those of what is added."""
    parts: dict[str, list[tuple[str, OutputFile]]] = {}
    for folder, files in [(previous.folder, previous.manifest.rejected), (added_path, added)]:
        for file in files:
            parts.setdefault(file.name, []).append((os.path.join(folder, file.name), file))
    for name in sorted(parts, key=json.dumps):  # as the stats of an encode are
        sums = Sums()
        with filesystem.create(os.path.join(path, name)) as out:
            for part, file in parts[name]:
                own = Sums()
                with filesystem.open_binary(part) as stream:
                    while piece := stream.read(_COPY_BYTES):
                        out.write(piece)
                        own.add(piece)
                        sums.add(piece)
                if f'{own.crc32c:08x}' != file.crc32c:
                    raise _other_file(part)
        rows = sum(file.rows for _, file in parts[name])
        yield OutputFile(name, sums.bytes, f'{sums.crc32c:08x}', rows)
