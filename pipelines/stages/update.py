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
from tokcore.reading.record_index import FOOTER_BYTES, index_name, parse_index
from tokcore.reading.record_kernels import FOOTER_SIZE, HEADER_SIZE, LARGEST_ID
from tokcore.reading.shards import ExampleParser
from tokcore.records.examples import FeatureEncoder
from tokcore.records.manifest import OutputFile, shard_name

_MERGING = 'merging shards'

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
    found: dict[str, np.ndarray] = {}
    for split in layout:
        keys = _removed_keys(job, split.split)
        is_there = np.zeros(len(keys), bool)
        for number in range(split.shards):
            with contextlib.ExitStack() as stack:
                for shard in _stored(job, split, number, stack):
                    is_there |= is_among(keys, np.ascontiguousarray(shard.index.keys))
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
    corpus, before, (stats, files, _) = reading.corpus, previous.manifest, added
    encoder = BlockEncoder(
        features,
        corpus.splits,
        job.dataset.seed,
        reading.on_error,
        reading.scheme,
        job.dataset.encoding,
    )
    merge = _Merge(job, encoder.load().features(), path, added_path, files)
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
    read = iter(stats.inputs)
    inputs = tuple(each.recorded or next(read) for each in corpus.inputs)
    rejected = tuple(_join_rejected(previous, stats.rejected, path, added_path))
    return (
        ReadStats(inputs, tuple(lines), rejected, tuple(datasets)),
        tuple(shard for shard, _, _ in merged),
        tuple(index for _, index, _ in merged),
    )


class _Shard:
    """The rows of a shard by its index; parts of it are read from its beginning to its end."""

    def __init__(self, folder: str, file: OutputFile, stack: contextlib.ExitStack):
        self._path, self._file = os.path.join(folder, file.name), file
        path = os.path.join(folder, index_name(file.name))
        data = mapped_bytes(path) if filesystem.exists(path) else np.empty(0, np.uint8)
        index = parse_index(data, data[-FOOTER_BYTES:].tobytes())
        stated = file.examples, file.bytes, int(file.crc32c, 16)
        if index is None or index.shard != stated or not (index.has_keys and index.has_offsets):
            raise InputError(
                f'{self._path} has no index with the keys of its rows; run `tokbeam index {folder}`'
            )
        self.index, self._crc32c = index, 0
        self._stream = stack.enter_context(filesystem.open_binary(self._path))

    def part(self, first: int, last: int) -> tuple[np.ndarray, ...]:
        """Returns the records of rows `first` up to `last`, and of each its key, start, length and sizes."""
        index = self.index
        starts, ends = index.bounds(np.arange(first, last))
        data = np.empty(int(ends[-1] - starts[0]) if len(ends) else 0, np.uint8)
        filled = 0
        while filled < len(data):
            read = self._stream.readinto(data[filled:].data)  # type: ignore[attr-defined]
            if not read:
                raise self._damaged()
            filled += read
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        advance(_MERGING, len(data))
        sizes = np.column_stack([index.lengths[first:last], index.text_bytes[first:last]])
        begin = starts[0] if len(starts) else 0
        return data, index.keys[first:last].copy(), starts - begin, ends - starts, sizes

    def check(self) -> None:
        """Raises InputError if what was read, which is all, is not what the manifest states."""
        if f'{self._crc32c:08x}' != self._file.crc32c:
            raise self._damaged()

    def _damaged(self) -> InputError:
        return InputError(
            f'{self._path} is not the file that the manifest states; `tokbeam verify` names what is wrong'
        )


class _Merge:
    """Merges shards; threads can share it."""

    def __init__(
        self,
        job: EncodeJob,
        encoders: Sequence[FeatureEncoder],
        path: str,
        added_path: str,
        added: Sequence[OutputFile],
    ):
        self._job, self._encoders, self._path, self._added_path = job, encoders, path, added_path
        self._added = {file.name: file for file in added}
        self._parser = ExampleParser({each.feature.name: LARGEST_ID for each in encoders})

    def shard(
        self, shard: tuple[SplitShards, int]
    ) -> tuple[OutputFile, OutputFile, list[LineTally]]:
        """Merges a shard; returns its file, that of its index, and what the removed rows take off tallies."""
        split, number = shard
        job = self._job
        tallies: list[LineTally] = []
        name = shard_name(job.dataset.name, split.split, number, split.shards)
        removed = _removed_keys(job, split.split)
        with contextlib.ExitStack() as stack:
            sources = [*_stored(job, split, number, stack)]
            size = sum(source.index.shard[1] for source in sources)
            if added := self._added.get(name):
                sources.append(_Shard(self._added_path, added, stack))
                size += added.bytes
            parts = max(1, -(-size // _PART_BYTES))
            buckets = range(number * parts, (number + 1) * parts)
            least = np.array(
                [-(-(each << 64) // (split.shards * parts)) for each in buckets], np.uint64
            )
            bounds = [
                [
                    *np.searchsorted(np.ascontiguousarray(source.index.keys), least),
                    len(source.index),
                ]
                for source in sources
            ]
            out = OrderedShardWriter(self._path, name, parts)
            for part in range(parts):
                with out.part(part):
                    rows = [
                        source.part(own[part], own[part + 1])
                        for source, own in zip(sources, bounds, strict=True)
                    ]
                    merged, taken = self._merged(rows, removed)
                    tallies += self._removed(split.split, *taken)
                    if part + 1 == parts:
                        for source in sources:
                            source.check()
                    written = out.write(part, merged)
        file, index = (each.listed() for each in written)
        if added:
            filesystem.delete_file(os.path.join(self._added_path, name))
        return file, index, tallies

    def _merged(
        self, rows: Sequence[tuple[np.ndarray, ...]], removed: np.ndarray
    ) -> tuple[SortedRows, tuple[np.ndarray, ...]]:
        """Returns the rows that stay, sorted, and the others, as `_Shard.part` has them."""
        offsets = np.cumsum([0, *(len(data) for data, *_ in rows)])
        data, keys, _, lengths, sizes = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        starts = np.concatenate([own[2] + first for own, first in zip(rows, offsets)])
        columns = keys, starts, lengths, sizes
        stays = ~is_among(keys, removed)
        keys, starts, lengths, sizes = (column[stays] for column in columns)
        merged = SortedRows.of(keys, data, starts, lengths.astype(np.uint32), sizes)
        return merged, (data, *(column[~stays] for column in columns))

    def _removed(self, name: str, data, keys, starts, lengths, sizes) -> Iterator[LineTally]:
        """Yields what tallies of datasets lose by rows, which are as `_Shard.part` has them."""
        previous = self._job.previous
        assert previous is not None
        splits = [split for split in self._job.reading.corpus.splits if split.name == name]
        numbers = _datasets_of(keys, splits, self._job.dataset.seed)
        for number in np.unique(numbers).tolist():
            own, split = numbers == number, splits[number]
            rows = int(np.count_nonzero(own))
            lost = LineTally(
                name,
                0,
                -rows,
                0,
                dataset=split.dataset,
                text_bytes=-int(sizes[own, -1].sum()),
                removed=rows,
            )
            contents = np.array(
                [starts[own] + HEADER_SIZE, lengths[own] - HEADER_SIZE - FOOTER_SIZE]
            )
            has_unknown = bool(_stated(previous, split).unknown)
            ids = self._ids(data, contents) if has_unknown else {}
            for k, encoder in enumerate(self._encoders):
                size, template = sizes[own, k].astype(np.int64), encoder.template
                no_token = int(np.count_nonzero(size == template.size))
                lost = dataclasses.replace(lost, no_token=lost.no_token - no_token)
                if encoder.unknown is None:
                    continue
                unknown = 0
                if has_unknown:
                    around = (*template.before, *template.after).count(encoder.unknown) * rows
                    unknown = (
                        int(np.count_nonzero(ids[encoder.feature.name] == encoder.unknown)) - around
                    )
                count = int(size.sum()) - template.size * rows
                lost = dataclasses.replace(
                    lost, ids=(lost.ids or 0) - count, unknown=(lost.unknown or 0) - unknown
                )
            yield lost

    def _ids(self, data: np.ndarray, contents: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the ids of records by feature; contents are (start, size) in the data, int64[2, n]."""
        rows, unparsed = self._parser.parse(read_only(data), np.ascontiguousarray(contents))
        parts = [rows.ids]
        for start, size in contents[:, unparsed].T.tolist():
            parts.append(self._parser.parse_in_python(data[start : start + size].tobytes()).ids)
        return {name: np.concatenate([part[name] for part in parts]) for name in rows.ids}


def _stored(
    job: EncodeJob, split: SplitShards, number: int, stack: contextlib.ExitStack
) -> Iterator[_Shard]:
    """Yields a shard of the dataset that is updated, if it has this split; its file is open in the stack."""
    assert job.previous is not None
    name = shard_name(job.dataset.name, split.split, number, split.shards)
    for file in job.previous.manifest.files:
        if file.name == name:
            yield _Shard(job.previous.folder, file, stack)


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
        data = b''
        for part, file in parts[name]:
            own = filesystem.read_bytes(part)
            if f'{google_crc32c.value(own):08x}' != file.crc32c:
                raise InputError(f'{part} is not the file that the manifest states')
            data += own
        filesystem.write_bytes(os.path.join(path, name), data)
        rows = sum(file.rows for _, file in parts[name])
        yield OutputFile(name, len(data), f'{google_crc32c.value(data):08x}', rows)
