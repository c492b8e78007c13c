"""Rows of a dataset as they are stored, by number, and the same of rows that are made again.

Two rows are the same if the bytes that a format has for them are: of TFRecords the whole record, of
text the lines, of Parquet, Megatron's and flat files the ids of each column.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.jobs.job import BuildJob, EncodeJob
from pipelines.shard_formats.formats import shard_format
from pipelines.shard_formats.shard_format import Column, ShardFormat, line_writer, parse_rows
from pipelines.trust.corpus_rows import DatasetCorpus, RowPlace
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.reading.checking import Finding
from tokcore.records.manifest import Manifest, OutputFile
from tokcore.records.tfrecord import FramedRows


@dataclass(frozen=True)
class StoredRows:
    """The rows of a dataset.

    Attributes:
        folder: of the dataset.
        format: of its shards.
        columns: the features of text, inputs before targets.
        vocabularies: of these.
        files: of the shards, by their names, as the manifest has them.
    """

    folder: str
    format: ShardFormat
    columns: Sequence[Column]
    vocabularies: Sequence[Vocabulary]
    files: Mapping[str, OutputFile]

    @classmethod
    def of(cls, job: BuildJob | EncodeJob, corpus: DatasetCorpus, manifest: Manifest) -> StoredRows:
        """Returns the rows of a job's dataset."""
        own = shard_format(job.dataset.output_format, job.dataset.pack)
        scheme = job.reading.scheme
        ends = job.dataset.ends(corpus.features, scheme)
        columns, vocabularies = [], []
        for encoded in corpus.features:
            vocabulary = corpus.vocabulary(encoded.vocabulary)
            lines = line_writer(scheme, vocabulary) if own.needs_pieces else None
            sizes = vocabulary.vocab_size, vocabulary.special_ids
            column = Column.of(encoded.feature.name, *sizes, encoded.vocabulary, lines)
            columns.append(column.with_end(ends))
            vocabularies.append(vocabulary)
        files = {file.name: file for file in manifest.files}
        return cls(job.output, own, columns, vocabularies, files)

    def stored(self, shard: str, numbers: np.ndarray) -> Iterator[bytes | None]:
        """Yields rows of a shard, None for those that it does not have.

        Args:
            shard: its name as TFRecords.
            numbers: int64[n], ascending.

        Raises:
            InputError: a file of it cannot be read.
        """
        names = self.format.file_names(shard, [column.name for column in self.columns])
        paths = [os.path.join(self.folder, name) for name in names]
        return self.format.stored_rows(paths, numbers, self.columns, self.files)

    def made_again(self, rows: FramedRows) -> Iterator[bytes]:
        """Yields rows that were made again as `stored` yields them."""
        return self.format.row_bytes(rows, self.columns)

    def ids(self, rows: FramedRows) -> dict[str, list[int]]:
        """Returns the ids of a single row by feature."""
        encoded = parse_rows(rows, [column.name for column in self.columns])
        return {name: ids.tolist() for name, ids in encoded.ids.items()}


def row_finding(file: str, number: int, row: str, place: RowPlace, is_missing: bool) -> Finding:
    """Returns the finding that a row is not stored as it was made again.

    Args:
        file: the shard.
        number: of the row in it.
        row: how the sentence calls it.
        place: where it comes from.
        is_missing: whether the shard has no such row; otherwise it has another.
    """
    problem = 'is missing' if is_missing else 'differs from what is stored'
    return Finding(file, f'{row} {problem}', number, input=place.files[0].path, line=place.number)
