"""Makes rows again from the corpus, and compares them with those that are stored, byte for byte.

One pass over the corpus gives the order keys of all its rows, which proves how many rows each shard
must have, and the place of each; the rows that are wanted are encoded on the way. Where they are more
than fit in memory, there are several passes, each for a range of keys.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pipelines.artifacts.outputs import another, differing
from pipelines.artifacts.vocabularies import vocabulary_reader
from pipelines.files import filesystem
from pipelines.jobs.corpus import Corpus, input_texts, newlines_of
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.shard_formats.tfrecord import Packed
from pipelines.stages.encode import vocabulary_records
from pipelines.trust.corpus_rows import (
    CorpusRows,
    DatasetCorpus,
    nothing,
    planned,
)
from pipelines.trust.row_sources import place_of
from pipelines.trust.stored_rows import StoredRows, rerun_packed, row_finding
from tokcore.corpus.order_keys import mix64, shard_of
from tokcore.corpus.stats import LineTally, RangeChecksum, add_tallies
from tokcore.corpus.stretches import CORPUS_INDEX, corpus_index
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.checking import MOST_FINDINGS, Finding
from tokcore.reading.record_index import index_name
from tokcore.records.manifest import (
    MANIFEST_NAME,
    Manifest,
    OutputFile,
    file_of_shard,
)
from tokcore.records.tfrecord import FramedRows, sort_rows

_MEMORY_BYTES = 1 << 30
"""Bytes of rows that are made at once: with half there are twice as many passes over the corpus."""


@dataclass(frozen=True)
class Rerun:
    """What was made again.

    Attributes:
        rows: that were made again and compared.
        all_rows: of the dataset's corpus.
        findings: what differs.
    """

    rows: int
    all_rows: int
    findings: tuple[Finding, ...]


def rerun(
    job: BuildJob | EncodeJob,
    manifest: Manifest,
    share: Fraction,
    seed: int = 0,
    workers: int = 1,
    memory_bytes: int = _MEMORY_BYTES,
) -> Rerun:
    """Makes a share of a dataset's rows again.

    Args:
        job: that made the dataset, whose folder is its output.
        manifest: of the dataset.
        share: of the rows, above 0 and up to 1; where they are packed, of shards, one or more.
        seed: of the sample; the rows are those whose order keys have a hash below the share.
        workers: work items that are read at once.
        memory_bytes: of rows that are in memory at once; more take another pass.

    Raises:
        InputError: the job is not the one that made the dataset, or its corpus cannot be read.
    """
    refuse_other_job(job, manifest)
    made = all_rows = 0
    findings: list[Finding] = []
    checksums: list[RangeChecksum] = []
    with planned(job) as corpus:
        corpus.prepare()
        stored = StoredRows.of(job, corpus, manifest)
        for split in corpus.reading.corpus.split_names:
            work = _SplitRerun(corpus, stored, job, manifest, split)
            is_packed = isinstance(stored.format, Packed)
            size = sum(file.bytes for files in work.files.values() for file in files)
            passes = 1 if is_packed else max(1, math.ceil(size * share / memory_bytes))
            for number in range(passes):
                is_wanted = functools.partial(_is_made_again, share, seed, number, passes)
                take = nothing if is_packed else corpus.encode_where(is_wanted)
                read = corpus.read(split, take, workers)
                if number == 0:
                    checksums += read.checksums
                    findings += work.totals(read)
                    all_rows += len(read.keys)
                if is_packed:
                    rows, differing_records = rerun_packed(
                        corpus, stored, read, work.shards, share, seed, workers, memory_bytes
                    )
                else:
                    rows, differing_records = sum(map(len, read.taken)), [*work.rows(read)]
                made += rows
                findings += differing_records
        changes = [*changed_inputs(corpus.reading.corpus, manifest, checksums)]
        if not changes:
            path = os.path.join(job.output, CORPUS_INDEX)
            data = corpus_index(newlines_of(corpus.reading.corpus, checksums))
            if filesystem.read_if_there(path) not in (None, data):
                problem = 'it is not what the corpus gives; run `tokbeam index` again'
                changes.append(Finding(CORPUS_INDEX, problem))
        findings = [*changes, *findings]
    return Rerun(made, all_rows, tuple(findings))


def refuse_other_job(job: BuildJob | EncodeJob, manifest: Manifest) -> None:
    """Raises InputError if a job is not one that makes a dataset with this manifest, row by row."""
    if all(each.recorded for each in job.reading.corpus.inputs):
        return  # it was made of the manifest
    if isinstance(job, BuildJob):
        key = job.key()
    else:
        scheme = job.reading.scheme
        key = job.key(vocabulary_records(job.vocabularies, vocabulary_reader(scheme), scheme))
    for what, before, now in differing(manifest, key):
        raise InputError(
            f'the job is not the one that made {job.output}: {another(what)}, {before} there and {now} '
            'in the job; give --job with its job file'
        )
    files = [(text.split, text.role) for text in manifest.inputs]
    if files != [
        (corpus_input.split, corpus_input.role) for corpus_input in job.reading.corpus.inputs
    ]:
        raise InputError(
            f'the job is not the one that made {job.output}: it has {len(job.reading.corpus.inputs)} '
            f'input files, and the manifest {len(files)}; give --job with its job file'
        )


def _is_made_again(
    share: Fraction, seed: int, number: int, passes: int, keys: np.ndarray
) -> np.ndarray:
    """Returns which rows are in a share of all, and are made in one of several passes: bool[keys]."""
    wanted = np.ones(len(keys), bool)
    if share < 1:
        wanted = mix64(keys, seed) < np.uint64(int(share * (1 << 64)))
    if passes > 1:
        wanted &= shard_of(keys, passes) == number
    return wanted


class _SplitRerun:
    """Compares the rows of a split."""

    def __init__(
        self,
        corpus: DatasetCorpus,
        stored: StoredRows,
        job: BuildJob | EncodeJob,
        manifest: Manifest,
        split: str,
    ):
        self._corpus, self._stored, self._manifest, self._split = corpus, stored, manifest, split
        self.shards = job.dataset.shard_names(corpus.reading.corpus.only(split))
        self.files: dict[int, list[OutputFile]] = collections.defaultdict(list)  # by shard
        for file in manifest.files:
            of_shard = file_of_shard(file.name)
            if of_shard is not None and of_shard.split == split:
                self.files[of_shard.number].append(file)
        self._named = 0

    def totals(self, read: CorpusRows) -> Iterator[Finding]:
        """Yields what the numbers of lines and rows differ in, and the order keys of indexes."""
        stated = next((lines for lines in self._manifest.lines if lines.split == self._split), None)
        tally = _without_ids(add_tallies(self._split, read.tallies))
        if stated is None or _without_ids(stated).record() != tally.record():
            yield Finding(
                MANIFEST_NAME,
                f'the corpus gives other numbers of lines of {self._split}: {tally.record()}',
            )
        bounds = read.bounds(len(self.shards))
        for number, (shard, first, end) in enumerate(zip(self.shards, bounds, bounds[1:])):
            for file in self.files[number]:
                if file.examples != end - first:
                    yield Finding(
                        file.name,
                        f'the corpus gives {end - first:,} rows of it, and it has {file.examples:,}',
                    )
            own = self._stored.first_file(shard)
            index = None if own is None else self._stored.index(own)
            if own and index is not None and not np.array_equal(index.keys, read.keys[first:end]):
                yield Finding(
                    index_name(own.name),
                    'its order keys are not those of the rows of the corpus; run `tokbeam index` again',
                )

    def rows(self, read: CorpusRows) -> Iterator[Finding]:
        """Yields the rows that differ, of those that a pass has made."""
        if not read.taken:
            return
        made = sort_rows(read.taken)
        places = np.searchsorted(read.keys, made.keys)
        shards = shard_of(made.keys, len(self.shards))
        firsts = read.bounds(len(self.shards))
        for number, name in enumerate(self.shards):
            own = slice(*np.searchsorted(shards, [number, number + 1]))
            rows = places[own] - firsts[number]
            again = _part(made, own)
            try:
                stored = list(self._stored.stored(name, rows))
            except InputError:  # the file itself is a finding
                continue
            for row, key, before, now in zip(
                rows.tolist(),
                made.keys[own].tolist(),
                stored,
                self._stored.made_again(again),
                strict=True,
            ):
                if before != now:
                    yield from self._finding(read, name, row, key, before is None)

    def _finding(
        self, read: CorpusRows, name: str, row: int, key: int, is_missing: bool
    ) -> Iterator[Finding]:
        self._named += 1
        if self._named > MOST_FINDINGS:
            if self._named == MOST_FINDINGS + 1:
                yield Finding(name, 'more rows differ from this one on, which are not named', row)
            return
        place = place_of(self._corpus, read, key)
        yield row_finding(name, row, f'the row that {place} gives', place, is_missing)


def _part(rows: FramedRows, own: slice) -> FramedRows:
    bounds = row_offsets(rows.lengths)
    records = rows.records[bounds[own.start] : bounds[own.stop]]
    return FramedRows(rows.keys[own], rows.lengths[own], records, rows.sizes[own])


def _without_ids(tally: LineTally) -> LineTally:
    return dataclasses.replace(
        tally,
        no_token=0,
        ids=None,
        unknown=None,
        unknown_words={},
        dataset='',
        dropped_bytes=0,
    )


def changed_inputs(
    corpus: Corpus, manifest: Manifest, checksums: Sequence[RangeChecksum]
) -> Iterator[Finding]:
    """Yields the inputs whose text is not the one that was read."""
    now = input_texts(corpus, checksums)
    for stated, text, own in zip(manifest.inputs, now, corpus.inputs, strict=True):
        if (stated.bytes, stated.crc32c) != (text.bytes, text.crc32c):
            yield Finding(
                MANIFEST_NAME,
                f'{own.file.path} has changed: {text.bytes:,} bytes with CRC-32C {text.crc32c}, and '
                f'the rows were made of {stated.bytes:,} with {stated.crc32c}',
                input=own.file.path,
            )
