"""`index`: files by which rows of a dataset are read by their numbers, and found in the corpus."""

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
    if is_object(path) or os.path.exists(os.path.join(path, MANIFEST_NAME)):
        print_lines(_of_dataset(options))
        return 0
    if options.job is not None:
        raise InputError(f'--job names the corpus of a dataset, and {path} has no {MANIFEST_NAME}')
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


def _of_dataset(options: argparse.Namespace) -> list[str]:
    # Importing Beam takes seconds, and only the corpus needs it.
    from pipelines.artifacts.manifest import read_dataset_manifest
    from pipelines.cli.folder_commands import job_of, workers_of
    from pipelines.files import filesystem
    from pipelines.trust.indexes import write_indexes

    path, reason = options.path, 'the copy of an object store has no corpus'
    if not is_object(path):
        folder = filesystem.absolute(path)
        try:
            manifest = read_dataset_manifest(folder)
            job = job_of(folder, manifest, options.job, options.workers, fetches=False)
            count = write_indexes(job, manifest, workers_of(options))
            return [f'{count} shards of {path} have an index']
        except InputError as error:
            if options.job is not None:
                raise
            reason = str(error)
    count = open_dataset(path).write_index()
    return [f'{count} shards of {path} have an index, which was made without the corpus: {reason}']
