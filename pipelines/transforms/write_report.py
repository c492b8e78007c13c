"""Small facts from workers to the driver: rows of numbers and names, through one file.

Metrics hold only sums and differ by runner; a file that one worker writes reads the same anywhere.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

import apache_beam as beam

from pipelines.files import filesystem


@dataclass(frozen=True)
class WrittenFile:
    """A file that a worker wrote."""

    name: str
    bytes: int
    crc32c: int
    rows: int  # examples of a shard, tokens of a count table, lines that were left out


@dataclass(eq=False)
class WriteReport(beam.PTransform):
    """Writes instances of dataclasses, with JSON values as fields; no file if there are none.

    Attributes:
        path: the file, on a filesystem that the driver and the workers reach.
    """

    path: str

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        return (
            rows
            | 'Gather' >> GatherOnOne(_line)  # (0, [line])
            | 'Write' >> beam.Map(_write_lines, self.path)
        )


def read_report(path: str, *types: type) -> Iterator:
    """Yields the rows of a report in the order of their text, or none if there is no file.

    Args:
        path: of the report.
        types: the dataclasses of its rows, which are told by their names.
    """
    named = {each.__name__: each for each in types}
    if filesystem.exists(path):
        for line in filesystem.read_bytes(path).splitlines():
            name, *fields = json.loads(line)
            yield named[name](*fields)


def _line(row: object) -> str:
    return json.dumps([type(row).__name__, *astuple(row)])


def _write_lines(gathered: tuple[int, Iterable[str]], path: str) -> None:
    lines = gathered[1]
    filesystem.write_bytes(path, ''.join(line + '\n' for line in sorted(lines)).encode())


@dataclass(eq=False)
class GatherOnOne(beam.PTransform):
    """All elements as (0, iterable), in any order; nothing if there are none.

    It is two steps and no more: each takes a local runner some hundredths of a second to set up.

    Attributes:
        pack: makes of an element what is gathered in its place.
    """

    pack: Callable[[Any], Any] | None = None

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | 'Key' >> beam.Map(_keyed, self.pack).with_output_types(tuple[int, Any])
            | 'Group' >> beam.GroupByKey()
        )


def _keyed(element: object, pack: Callable[[Any], Any] | None) -> tuple[int, object]:
    return 0, pack(element) if pack else element
