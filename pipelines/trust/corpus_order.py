"""Writes the order of the corpus next to the shards of a dataset, by one pass over the corpus.

The n-th of the sorted order keys is that of the n-th row, and a key says where in the corpus its row
comes from: sorted by these places, the numbers of the rows are the order of the corpus.
"""

from __future__ import annotations

import numpy as np

from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.trust.corpus_rows import nothing, order_of_corpus, planned, rows_in_shard
from pipelines.trust.rerun import changed_inputs, refuse_other_job
from tokcore.corpus.stats import RangeChecksum
from tokcore.errors import InputError
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.record_index import corpus_order_path, write_corpus_order
from tokcore.records.manifest import Manifest


def write_corpus_orders(
    job: BuildJob | EncodeJob, manifest: Manifest, folder: str, workers: int
) -> dict[str, int]:
    """Writes the order of each split; returns the number of its rows.

    Args:
        job: that made the dataset.
        manifest: of the dataset.
        folder: of the dataset, on this machine.
        workers: work items that are read at once.

    Raises:
        InputError: the job is not the one that made the dataset, its corpus cannot be read or has
            changed, or the folder cannot be written to.
    """
    refuse_other_job(job, manifest)
    orders: dict[str, np.ndarray] = {}
    checksums: list[RangeChecksum] = []
    splits = DatasetManifest.read(folder).splits
    with planned(job) as corpus:
        for split, shards in splits.items():
            read = corpus.read(split, nothing, workers)
            checksums += read.checksums
            stated = [shard.rows for shard in shards]
            counts = rows_in_shard(read.keys, len(shards)).tolist()
            if counts != stated:
                raise InputError(
                    f'the corpus gives {sum(counts):,} rows of {split}, in its shards {counts}, and the '
                    f'manifest states {stated}; `tokbeam verify --rerun` names what differs'
                )
            orders[split] = order_of_corpus(read.keys, corpus.seed)
        for finding in changed_inputs(corpus.reading.corpus, manifest, checksums):
            raise InputError(finding.problem)
    for split, numbers in orders.items():
        try:
            write_corpus_order(folder, split, splits[split], numbers)
        except OSError as error:
            raise InputError(
                f'{corpus_order_path(folder, split)} cannot be written ({error.strerror}); give a folder '
                'that can'
            ) from error
    return {split: len(numbers) for split, numbers in orders.items()}
