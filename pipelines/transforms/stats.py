"""What workers report to the driver, and the lines that were left out.

Reports go through one file that one worker writes, since metrics hold only sums and differ by
runner. Lines that were left out are kept in a file per split and reason; a job that leaves out more
than it may ends as soon as that is certain.
"""

import collections
import json
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol

import apache_beam as beam
import google_crc32c

from pipelines.files import filesystem
from pipelines.options.job import RejectionLimit
from tokcore.corpus.stats import LineTally, RangeChecksum, RejectedLines

_LOCK = threading.Lock()

REJECTED_FOLDER = 'rejected'


class ReadStats(Protocol):
    """What is known of a block, or of several."""

    tally: LineTally
    checksums: Sequence[RangeChecksum]


@dataclass(frozen=True)
class RejectionBudget:
    """What the workers of one pipeline may leave out; each process keeps its own account.

    Attributes:
        limit: that of the job.
        text_bytes: of the (first) files of all rows, each of which takes one at least; None if that
            is not known.
    """

    limit: RejectionLimit
    text_bytes: int | None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    def spend(self, stats: ReadStats) -> None:
        """Adds what was read.

        Raises:
            InputError: too much is lost, whatever is still to be read.
        """
        with _LOCK:
            spent = _SPENT.setdefault(self.key, _Spent())
            spent.lines += stats.tally.lines
            spent.text_bytes += sum(each.length for each in stats.checksums if each.side == 0)
            if not stats.tally.rejected:
                return
            spent.reasons.update(stats.tally.left_out)
            most = spent.lines
            if self.limit.share is not None:
                if self.text_bytes is None:
                    return
                most += max(0, self.text_bytes - spent.text_bytes)
            if self.limit.is_passed(spent.reasons.total(), most):
                raise self.limit.error(spent.reasons, spent.lines)


@dataclass
class _Spent:
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    lines: int = 0
    text_bytes: int = 0


_SPENT: dict[str, _Spent] = {}


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
            | 'Key' >> beam.Map(_by_file_name).with_output_types(tuple[str, RejectedLines])
            | 'GroupByFile' >> beam.GroupByKey()  # (name, [RejectedLines])
            | 'Write' >> beam.Map(_write_rejected, self.folder)
        )


def _by_file_name(lines: RejectedLines) -> tuple[str, RejectedLines]:
    return rejected_name(lines.split, lines.reason), lines


@dataclass(frozen=True)
class WrittenFile:
    """A file that a worker wrote."""

    name: str
    bytes: int
    crc32c: int
    rows: int  # examples of a shard, tokens of a count table, lines that were left out


def _write_rejected(name_to_parts: tuple[str, Iterable[RejectedLines]], folder: str) -> WrittenFile:
    name, parts = name_to_parts
    ordered = sorted(parts, key=lambda part: (part.file_index, part.offset))
    data = b''.join(part.json_lines for part in ordered)
    filesystem.write_bytes(filesystem.join(folder, *name.split('/')), data)
    return WrittenFile(name, len(data), google_crc32c.value(data), data.count(b'\n'))


@dataclass(eq=False)
class WriteStats(beam.PTransform):
    """Writes instances of dataclasses, with JSON values as fields; no file if there are none.

    Attributes:
        path: the file, on a filesystem that the driver and the workers reach.
    """

    path: str

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        return (
            rows
            | 'Gather' >> GatherToDriver(_line)  # (0, [line])
            | 'Write' >> beam.Map(_write_lines, self.path)
        )


def read_stats(path: str, *types: type) -> Iterator:
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


@dataclass(eq=False)
class GatherToDriver(beam.PTransform):
    """Gathers all elements as one (0, iterable), in any order; nothing if there are none.

    It is two steps and no more: each takes a local runner some hundredths of a second to set up.

    Attributes:
        pack: makes of an element what is gathered in its place.
    """

    pack: Callable[[Any], Any] | None = None

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | 'Key' >> beam.Map(_under_one_key, self.pack).with_output_types(tuple[int, Any])
            | 'Group' >> beam.GroupByKey()
        )


def _line(row: object) -> str:
    return json.dumps([type(row).__name__, *astuple(row)])


def _write_lines(gathered: tuple[int, Iterable[str]], path: str) -> None:
    lines = gathered[1]
    filesystem.write_bytes(path, ''.join(line + '\n' for line in sorted(lines)).encode())


def _under_one_key(element: object, pack: Callable[[Any], Any] | None) -> tuple[int, object]:
    return 0, pack(element) if pack else element
