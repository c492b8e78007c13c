"""Writes the indexes of a dataset's shards again, by one pass over the corpus."""

from __future__ import annotations

import os

import numpy as np

from pipelines.jobs.corpus import newlines_of
from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.shard_formats.tfrecord import TfRecord
from pipelines.trust.corpus_rows import planned
from pipelines.trust.rerun import changed_inputs, refuse_other_job
from pipelines.trust.stored_rows import StoredRows
from tokcore.corpus.corpus import Block, Rows
from tokcore.corpus.stats import RangeChecksum
from tokcore.corpus.stretches import CORPUS_INDEX, corpus_index
from tokcore.errors import InputError
from tokcore.reading.record_index import Addresses, index_path, write_index, write_whole
from tokcore.reading.shards import ShardFile
from tokcore.records.manifest import Manifest
from tokcore.records.tfrecord import joined_sizes


def write_indexes(job: BuildJob | EncodeJob, manifest: Manifest, workers: int) -> int:
    """Writes the index of each shard; returns how many there are.

    Args:
        job: that made the dataset, whose folder, on this machine, is its output.
        manifest: of the dataset.
        workers: work items that are read at once.

    Raises:
        InputError: the job is not the one that made the dataset, its corpus cannot be read or has
            changed, or the folder cannot be written to.
    """
    refuse_other_job(job, manifest)
    indexes: list[tuple[ShardFile, Addresses]] = []
    checksums: list[RangeChecksum] = []
    with planned(job) as corpus:
        corpus.prepare()
        stored = StoredRows.of(job, corpus, manifest)

        def addresses(block: Block, rows: Rows, keys: np.ndarray) -> tuple[np.ndarray, ...]:
            framed = corpus.encode(block, rows)
            return framed.keys, framed.lengths, framed.sizes

        for split in corpus.reading.corpus.split_names:
            read = corpus.read(split, addresses, workers)
            checksums += read.checksums
            keys, lengths, sizes = zip(*read.taken, strict=True) if read.taken else ([], [], [])
            order = np.argsort(np.concatenate([np.empty(0, np.uint64), *keys]))
            all_lengths = np.concatenate([np.empty(0, np.int64), *lengths])[order]
            all_sizes = joined_sizes([*sizes])[order]
            names = job.dataset.shard_names(corpus.reading.corpus.only(split))
            bounds = read.bounds(len(names))
            for name, first, end in zip(names, bounds, bounds[1:]):
                own, file = slice(first, end), stored.first_file(name)
                if file is None or file.examples != end - first:
                    rows = 'is not in the manifest' if file is None else f'has {file.examples:,}'
                    raise InputError(
                        f'the corpus gives {end - first:,} rows of {name}, which {rows}; `tokbeam '
                        'verify --rerun` names what differs'
                    )
                path = os.path.join(job.output, file.name)
                shard = ShardFile(path, file.examples, file.bytes, file.crc32c)
                found = Addresses(all_lengths[own], read.keys[own], all_sizes[own])
                indexes.append((shard, found))
        for finding in changed_inputs(corpus.reading.corpus, manifest, checksums):
            raise InputError(finding.problem)
        of_corpus = corpus_index(newlines_of(corpus.reading.corpus, checksums))
    path = os.path.join(job.output, CORPUS_INDEX)
    try:
        write_whole(path, [of_corpus])
        for shard, found in indexes:
            path = index_path(shard)
            has_offsets = type(stored.format) is TfRecord
            write_index(shard, len(stored.columns), [found], has_offsets)
    except OSError as error:
        raise InputError(
            f'{path} cannot be written ({error.strerror}); give a folder that can'
        ) from error
    return len(indexes)
