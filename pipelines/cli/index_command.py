"""`index`: files by which rows of a dataset are read by their numbers, or in the order of the corpus."""

import argparse
import os
from collections.abc import Sequence

from pipelines.cli.terminal import print_lines
from tokcore.errors import InputError
from tokcore.object_stores import is_object
from tokcore.reading.dataset import open_dataset
from tokcore.reading.other_records import index_of_others
from tokcore.records.manifest import MANIFEST_NAME


def index(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Writes the indexes of a dataset's shards, or of other TFRecords; returns the exit status."""
    path = options.path
    if options.corpus_order:
        print_lines(_with_corpus_order(options))
        return 0
    if options.job is not None:
        raise InputError('--job names how the corpus is read; give --corpus-order with it')
    if is_object(path) or os.path.exists(os.path.join(path, MANIFEST_NAME)):
        print_lines([f'{open_dataset(path).write_index()} shards of {path} have an index'])
        return 0
    skipped = index_of_others(path)
    dataset = open_dataset(path if os.path.isdir(path) else os.path.dirname(path) or os.curdir)
    lines = [
        f'{split}: {sizes.examples:,} rows, whose shards have an index'
        for split, sizes in dataset.splits.items()
    ]
    lines += [f'features: {", ".join(dataset.features)}'] if dataset.features else []
    lines += [f'skipped: not TFRecords: {", ".join(skipped)}'] if skipped else []
    print_lines(lines)
    return 0


def _with_corpus_order(options: argparse.Namespace) -> list[str]:
    # Importing Beam takes seconds, and only the corpus needs it.
    from pipelines.artifacts.manifest import read_dataset_manifest
    from pipelines.cli.folder_commands import job_of
    from pipelines.engines.machine import usable_cores
    from pipelines.files import filesystem
    from pipelines.trust.corpus_order import write_corpus_orders

    dataset = open_dataset(options.path)
    if is_object(options.path):
        raise InputError(
            f'{options.path} is in an object store, and readers take a copy of it; give the folder of '
            f'the copy, {dataset.folder}'
        )
    folder = filesystem.absolute(options.path)
    manifest = read_dataset_manifest(folder)
    job = job_of(folder, manifest, options.job, options.workers)
    rows = write_corpus_orders(job, manifest, folder, options.workers or usable_cores())
    lines = [f'{dataset.write_index()} shards of {options.path} have an index']
    return lines + [
        f'{split}: the order of {count:,} rows in the corpus' for split, count in rows.items()
    ]
