"""Stats and rejected lines: what workers send to the driver in addition to their results.

Stats go through one file that one worker writes, since Beam's metrics hold only sums and differ
between runners. Rejected lines are kept in a file for each split and reason. A job that rejects more
lines than it may ends as soon as that is certain.
"""

import collections
import dataclasses
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import apache_beam as beam
import google_crc32c

from pipelines.files import filesystem
from pipelines.files.system_errors import telling
from pipelines.options.job import RejectionLimit
from tokcore.corpus.stats import BlockStats, RejectedLines
from tokcore.errors import InputError
from tokcore.reading.checking import Sums
from tokcore.records.manifest import OutputFile
from tokcore.records.sorted_runs import RunStats

STATS = 'stats'
"""The tag of a step's output that has the `BlockStats` of blocks, without the rejected lines."""

REJECTED = 'rejected'
"""The tag of a step's output that has `RejectedLines`."""

REJECTED_FOLDER = 'rejected'


def tagged_stats(stats: BlockStats) -> Iterator[beam.pvalue.TaggedOutput]:
    """Yields the stats of a block as outputs of a DoFn, tagged `STATS` or `REJECTED`."""
    yield beam.pvalue.TaggedOutput(STATS, replace(stats, rejected=()))
    for lines in stats.rejected:
        yield beam.pvalue.TaggedOutput(REJECTED, lines)


@dataclass(eq=False)
class WriteStats(beam.PTransform):
    """Writes rows to one file; there is no file if there are no rows.

    A row is a JSON value, or an instance of a dataclass whose fields are JSON values. The tally and each of
    the checksums of a `BlockStats` are written. The driver and the workers reach the file.
    """

    path: str

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        return (
            rows
            | 'Gather' >> GatherToDriver(_json_lines)  # (0, [str])
            | 'Write' >> beam.Map(_write_lines, self.path)
        )


def write_rows(path: str, rows: Iterable[Any]) -> None:
    """Writes rows to one file, as `WriteStats` does."""
    _write_lines((0, map(_json_lines, rows)), path)


def _json_lines(row: Any) -> str:
    # An element of Beam for each checksum costs more than all else that is done with it.
    rows = (row.tally, *row.checksums) if isinstance(row, BlockStats) else (row,)
    return ''.join(map(_json_line, rows))


def _json_line(row: Any) -> str:
    if names := getattr(row, '__dataclass_fields__', None):
        # Not `astuple`, which copies each value: there may be as many rows as files in a corpus.
        row = [type(row).__name__, *(getattr(row, name) for name in names)]
    return json.dumps(row) + '\n'


def _write_lines(gathered: tuple[int, Iterable[str]], path: str) -> None:
    lines = ''.join(gathered[1]).splitlines(keepends=True)
    filesystem.write_bytes(path, ''.join(sorted(lines)).encode())


def read_stats(path: str, *types: type) -> Iterator:
    """Yields the rows that `WriteStats` wrote, sorted by their text; none if there is no file.

    `types` are the dataclasses of the rows; without any, JSON values are returned as they are.

    Raises:
        InputError: something else wrote to the file while this run worked.
    """
    name_to_type = {row_type.__name__: row_type for row_type in types}
    if filesystem.exists(path):
        lines = filesystem.read_bytes(path).splitlines()
        try:
            # At once: there may be as many lines as files in a corpus.
            rows = json.loads(b'[%s]' % b','.join(lines))
            if len(rows) != len(lines):
                raise ValueError('a line is not one value')
            if types:
                rows = [name_to_type[name](*values) for name, *values in rows]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f'{path} was changed while this run worked; run again when nothing else writes there'
            ) from error
        yield from rows


@dataclass(eq=False)
class GatherToDriver(beam.PTransform):
    """Gathers all elements into one (0, iterable), in any order; returns nothing if there are none.

    It has only two steps, since each takes a local runner some hundredths of a second to set up. `pack` maps
    an element to what is gathered instead.
    """

    pack: Callable[[Any], Any] | None = None

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | 'Key' >> beam.Map(_with_one_key, self.pack).with_output_types(tuple[int, Any])
            | 'Group' >> beam.GroupByKey()  # (0, [packed])
        )


def _with_one_key(element: object, pack: Callable[[Any], Any] | None) -> tuple[int, object]:
    return 0, pack(element) if pack else element


@dataclass(frozen=True)
class WrittenFile:
    """A file that a worker wrote."""

    name: str
    bytes: int
    crc32c: int
    rows: int  # examples of a shard, tokens of a count table, or rejected lines
    sha256: str | None = None  # of a shard, in hexadecimal
    dtype: str | None = None  # of ids that are stored one after another
    dropped: Sequence[int] = ()  # the rows of a shard that the file leaves out
    packed: int | None = None  # the rows of a shard that are in `rows` packed ones
    cut: int | None = None  # the rows of a shard that were cut to the length of joined ones

    @property
    def examples(self) -> int:
        """The rows of the shard, also those that were packed or left out."""
        return (self.rows if self.packed is None else self.packed) + len(self.dropped)

    def listed(self) -> OutputFile:
        """Returns the file as a manifest lists it."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(OutputFile)}
        fields |= {'crc32c': f'{self.crc32c:08x}', 'dropped': tuple(self.dropped)}
        return OutputFile(**fields)


_Summed = TypeVar('_Summed', bound='SummedFile')


class SummedFile:
    """A file that is written from its beginning to its end, with its size and its checksums."""

    def __init__(self, folder: str, name: str):
        self._path, self._name = os.path.join(folder, name), name
        self._sums = Sums()

    def __enter__(self: _Summed) -> _Summed:
        self._created = filesystem.create(self._path)
        self._stream = self._created.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._created.__exit__(*error)

    def write(self, data: Any) -> None:
        """Writes bytes, or an array of uint8; raises InputError if it cannot."""
        with telling(f'write {self._path}'):
            self._stream.write(memoryview(data))
        self._sums.add(data)

    def written(self, rows: int, **fields: Any) -> WrittenFile:
        """Returns the record of the file, which has been closed, with the fields that few files have."""
        sums = self._sums
        return WrittenFile(self._name, sums.bytes, sums.crc32c, rows, sums.sha256, **fields)


@dataclass(eq=False)
class WriteRejected(beam.PTransform):
    """Writes `RejectedLines` to a file for each split and reason; returns a `WrittenFile` for each.

    A line of such a file is a JSON object with `file`, `offset` and `line`, in the order of the
    corpus. A line that is not UTF-8 has `line_base64` instead of `line`; one that is too long has its
    `bytes`, and `beginning` or `beginning_base64`. Names in the folder are those of `rejected_name`.
    """

    folder: str

    def expand(self, rejected: beam.PCollection) -> beam.PCollection:
        return (
            rejected  # RejectedLines
            | 'Key' >> beam.Map(_with_file_name).with_output_types(tuple[str, RejectedLines])
            | 'GroupByFile' >> beam.GroupByKey()  # (name, [RejectedLines])
            | 'Write' >> beam.Map(_write_rejected, self.folder)  # WrittenFile
        )


def rejected_name(split: str, reason: str) -> str:
    """Returns a file's path in the output folder, such as `rejected/train.invalid_utf8.jsonl`."""
    return f'{REJECTED_FOLDER}/{split}.{reason}.jsonl'


def _with_file_name(lines: RejectedLines) -> tuple[str, RejectedLines]:
    return rejected_name(lines.split, lines.reason), lines


def _write_rejected(name_to_parts: tuple[str, Iterable[RejectedLines]], folder: str) -> WrittenFile:
    name, parts = name_to_parts
    ordered = sorted(parts, key=lambda part: (part.file_index, part.offset))
    data = b''.join(part.json_lines for part in ordered)
    filesystem.write_bytes(os.path.join(folder, name), data)
    return WrittenFile(name, len(data), google_crc32c.value(data), data.count(b'\n'))


@dataclass(frozen=True)
class RejectionBudget:
    """How many lines the workers of one pipeline may reject; each process keeps its own account.

    Attributes:
        limit: the job's limit.
        text_bytes: the size of the (first) files of all rows, of which each row takes one byte or
            more; None if it is not known.
        key: names the account, which all copies of the budget in a process share.
    """

    limit: RejectionLimit
    text_bytes: int | None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    def spend(self, stats: BlockStats | RunStats) -> None:
        """Adds the stats of what was read, unless a bundle that failed and is run again has read it before.

        Raises:
            InputError: more lines are rejected than the limit allows, whatever the rest of the
                corpus holds.
        """
        read = {
            (checksum.split, checksum.file_index, 'text', checksum.offset)
            for checksum in stats.checksums
            if checksum.side == 0 and checksum.length
        }
        if isinstance(stats, BlockStats):  # most blocks of Parquet have no checksum
            read |= {
                (lines.split, lines.file_index, 'rejected', lines.offset)
                for lines in stats.rejected
            }
        with _LOCK:
            account = _ACCOUNTS.setdefault(self.key, _Account())
            # Blocks may come again in other batches: one that has any of them is not added.
            if account.read.isdisjoint(read):
                account.read |= read
                account.reasons.update(stats.tally.left_out)
                account.lines += stats.tally.lines
                account.text_bytes += sum(
                    checksum.length for checksum in stats.checksums if checksum.side == 0
                )
            if not stats.tally.rejected:
                return
            most_lines = account.lines
            if self.limit.share is not None:
                if self.text_bytes is None:
                    return
                most_lines += max(0, self.text_bytes - account.text_bytes)
            if self.limit.is_passed(account.reasons.total(), most_lines):
                raise self.limit.error(account.reasons, account.lines)


@dataclass
class _Account:
    """What the budgets of one key have read in this process."""

    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    lines: int = 0
    text_bytes: int = 0
    read: set[tuple[str, int, str, int]] = field(default_factory=set)  # where blocks begin


_ACCOUNTS: dict[str, _Account] = {}
_LOCK = threading.Lock()
