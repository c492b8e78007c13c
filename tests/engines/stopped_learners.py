"""Tables of counts for learners on Beam, and the death of a learner between two of its files."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import apache_beam as beam
import pyarrow.parquet as parquet
import pytest

from pipelines.files.local import LocalFolder
from tokcore.counts.token_table import TokenTable


def write_counts(
    folder: Path,
    counts: Mapping[str, int],
    files: int = 3,
    in_each: Sequence[tuple[str, int]] = (),
    row_group_size: int | None = None,
) -> list[str]:
    """Writes a table as some Parquet files, with further rows in each; returns their paths."""
    folder.mkdir(exist_ok=True)
    items = sorted(counts.items())
    paths = []
    for number in range(files):
        paths.append(str(folder / f'counts-{number}.parquet'))
        table = TokenTable.from_items([*items[number::files], *in_each])
        parquet.write_table(table.to_arrow(), paths[-1], row_group_size=row_group_size)
    return paths


class StoppedError(RuntimeError):
    """Stands for the death of driver and workers."""

    def __init__(self):
        super().__init__(type(self).__name__)


def stop_after(patch: pytest.MonkeyPatch, files: int) -> None:
    """Lets a number of files get their final names, as if a kill came before the next."""
    left = itertools.count(files, -1)
    replace = LocalFolder.replace

    def stop_or_replace(folder, *names):
        if next(left) <= 0:
            raise StoppedError
        replace(folder, *names)

    patch.setattr(LocalFolder, 'replace', stop_or_replace)


class Runs:
    """Runs pipelines in this process; before one more than a number of them the driver dies."""

    def __init__(self, most=1000):
        self.jobs, self._most = 0, most

    def __call__(self, build_pipeline):
        if self.jobs == self._most:
            raise StoppedError
        self.jobs += 1
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            build_pipeline(pipeline)
