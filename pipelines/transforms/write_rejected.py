"""Lines that were left out, kept in a file for each split and reason."""

from collections.abc import Iterable
from dataclasses import dataclass

import apache_beam as beam
import google_crc32c

from pipelines.files import filesystem
from pipelines.transforms.write_report import WrittenFile
from tokcore.corpus.block_stats import RejectedLines

REJECTED_FOLDER = 'rejected'


def rejected_name(split: str, reason: str) -> str:
    """Returns a file's name below the output's folder: `rejected/train.invalid_utf8.jsonl`."""
    return f'{REJECTED_FOLDER}/{split}.{reason}.jsonl'


@dataclass(eq=False)
class WriteRejected(beam.PTransform):
    """Writes rejected lines in identity order, each a JSON object with `file`, `offset` and `line`.

    A line that is not UTF-8 has `line_base64` in place of `line`, and one that is too long its
    `bytes` and a `beginning` or `beginning_base64`. Takes `RejectedLines` and gives a `WrittenFile`
    for each file.

    Attributes:
        folder: where the files go, under `rejected_name`.
    """

    folder: str

    def expand(self, rejected: beam.PCollection) -> beam.PCollection:
        return (
            rejected
            | 'Key' >> beam.Map(_keyed).with_output_types(tuple[str, RejectedLines])
            | 'GroupByFile' >> beam.GroupByKey()  # (name, [RejectedLines])
            | 'Write' >> beam.Map(_write_rejected, self.folder)
        )


def _keyed(lines: RejectedLines) -> tuple[str, RejectedLines]:
    return rejected_name(lines.split, lines.reason), lines


def _write_rejected(
    name_to_parts: tuple[str, Iterable[RejectedLines]], folder: str
) -> WrittenFile:
    name, parts = name_to_parts
    ordered = sorted(parts, key=lambda part: (part.place, part.offset))
    data = b''.join(part.json_lines for part in ordered)
    filesystem.write_bytes(filesystem.join(folder, *name.split('/')), data)
    return WrittenFile(name, len(data), google_crc32c.value(data), data.count(b'\n'))
