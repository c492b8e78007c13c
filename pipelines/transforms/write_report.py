"""Small facts from workers to the driver: rows of numbers and names, through one file.

Metrics hold only sums and differ by runner; a file that one worker writes reads the same anywhere.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apache_beam as beam

from pipelines.files import filesystem


@dataclass(eq=False)
class WriteReport(beam.PTransform):
    """Writes tuples of JSON values, sorted, one a line; no file if there are none.

    Attributes:
        path: the file, on a filesystem that the driver and the workers reach.
    """

    path: str

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        return (
            rows
            | 'Encode' >> beam.Map(_keyed_line).with_output_types(tuple[int, str])
            | 'Gather' >> beam.GroupByKey()  # (0, [line])
            | 'Write' >> beam.ParDo(_WriteReportFn(self.path))
        )


def read_report(path: str) -> list[list]:
    """Returns the rows of a report in the order of their text, or none if there is no file."""
    if not filesystem.exists(path):
        return []
    return [json.loads(line) for line in filesystem.read_bytes(path).splitlines()]


def _keyed_line(row: tuple) -> tuple[int, str]:
    return 0, json.dumps(row)


class _WriteReportFn(beam.DoFn):
    def __init__(self, path: str):
        self._path = path

    def process(self, element: tuple[int, Iterable[str]]) -> None:
        lines = sorted(element[1])
        filesystem.write_bytes(self._path, ''.join(line + '\n' for line in lines).encode())
