"""The files of a learner's folder: driver and workers meet in them, and a new run resumes.

Each file appears whole or not at all, its name tells what it is of, and it tells when it is
damaged; so what is there need not be made again. A round is one min-count.
"""

import contextlib
import dataclasses
import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.files.checked_files import damaged, read_checked, write_checked
from pipelines.files.folders import delete_known
from tokcore.subword.partitioned.partition_sweep import PartitionSelection
from tokcore.subword.partitioned.prefix_partitions import PrefixPartitions
from tokcore.subword.partitioned.suffix_table import SuffixTable

_SIZE = struct.Struct('<Q')

_NAME = re.compile(
    r'survey\.json|reserved\.json|first-\d{5,}\.json|sizes-\d+(-\d+)?'
    r'|(first|round-\d+/groups)/group-\d{5,}'
    r'|round-\d+/(heavy|sizes\.json|vocabulary-\d|claims-\d-\d{5,}(-\d{5,})?)'
    # In the making, when a run was killed; 6b30307 had the name of what it becomes in the middle.
    r'|((first|round-\d+(/groups)?)/)?\.tokbeam-attempt-([a-z]+[-.\da-z]*-)?[0-9a-f]{32}'
)


def is_learner_file(name: str) -> bool:
    """Tells whether a name below a learner's folder is one that learners give their files."""
    return _NAME.fullmatch(name) is not None


@contextlib.contextmanager
def _content(path: str) -> Iterator[bytes]:
    """Gives a file's content to be parsed; what cannot be parsed is damaged."""
    content = read_checked(path)
    try:
        yield content
    except (ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise damaged(path) from error


@dataclass(frozen=True)
class TokenStats:
    """What the survey of the tokens found."""

    alphabet: str
    tokens: int
    characters: int
    weight: int
    most: int
    predicted_bytes: int
    borders: tuple[bytes, ...]

    @property
    def groups(self) -> PrefixPartitions:
        return PrefixPartitions(self.borders)

    def to_json(self) -> bytes:
        fields = {**dataclasses.asdict(self), 'borders': [each.decode() for each in self.borders]}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, data: bytes) -> 'TokenStats':
        fields = json.loads(data)
        borders = PrefixPartitions(tuple(each.encode() for each in fields['borders'])).borders
        return cls(**{**fields, 'borders': borders})

    def write(self, path: str) -> None:
        write_checked(path, self.to_json())

    @classmethod
    def read(cls, path: str) -> 'TokenStats':
        with _content(path) as content:
            return cls.from_json(content)


@dataclass(frozen=True)
class LearnerFiles:
    """A learner's folder."""

    folder: str

    @property
    def facts_path(self) -> str:
        return filesystem.join(self.folder, 'survey.json')

    @property
    def reserved_path(self) -> str:
        return filesystem.join(self.folder, 'reserved.json')

    @property
    def first(self) -> 'GroupFiles':
        """The first iteration's tables, of no min-count."""
        return GroupFiles(filesystem.join(self.folder, 'first'))

    def pass_path(self, first: int) -> str:
        """Where a pass over the groups from `first` on says that it is done."""
        return filesystem.join(self.folder, f'first-{first:05d}.json')

    def pass_sizes_path(self, first: int, last: int) -> str:
        """Where the workers of a pass over the groups before `last` tell their tables' sizes."""
        return filesystem.join(self.folder, f'sizes-{first}-{last}')

    def finished_pass(self, first: int) -> tuple[int, dict[int, int]] | None:
        """Returns where the pass that begins with a group ended, and its sizes, if it is done."""
        path = self.pass_path(first)
        if not filesystem.exists(path):
            return None
        with _content(path) as content:
            last, sizes = json.loads(content)
            return last, dict(sizes)

    def finish_pass(self, first: int, last: int, sizes: Sequence[Sequence[int]]) -> None:
        """Says that a pass is done: whatever stops a run later, it is not made again."""
        write_checked(self.pass_path(first), json.dumps([last, sizes]).encode())

    def write_reserved(self, reserved: Sequence[str]) -> None:
        write_checked(self.reserved_path, json.dumps(reserved).encode())

    def round(self, min_count: int) -> 'RoundFiles':
        folder = filesystem.join(self.folder, f'round-{min_count}')
        return RoundFiles(folder, self.reserved_path)

    def clear(self) -> None:
        """Deletes all files, the facts first: as long as those are missing nothing else counts."""
        filesystem.delete_file(self.facts_path)
        delete_known(self.folder, is_learner_file)


@dataclass(frozen=True)
class GroupFiles:
    """A folder with one file a group, which may lack groups without strings."""

    folder: str

    def path(self, group: int) -> str:
        return filesystem.join(self.folder, f'group-{group:05d}')

    def write(self, group: int, table: SuffixTable) -> None:
        write_checked(self.path(group), table.to_bytes())

    def read(self, group: int) -> SuffixTable:
        return _read_table(self.path(group))


@dataclass(frozen=True)
class RoundFiles:
    """The files of one min-count."""

    folder: str
    reserved_path: str

    @property
    def groups(self) -> GroupFiles:
        """The first iteration's tables without what is too light for this min-count."""
        return GroupFiles(filesystem.join(self.folder, 'groups'))

    @property
    def frequent_path(self) -> str:
        return filesystem.join(self.folder, 'heavy')

    @property
    def sizes_path(self) -> str:
        return filesystem.join(self.folder, 'sizes.json')

    def vocabulary_path(self, iteration: int) -> str:
        return filesystem.join(self.folder, f'vocabulary-{iteration}')

    def selection_path(self, iteration: int, group_range: tuple[int, int]) -> str:
        first, last = group_range
        return filesystem.join(self.folder, f'claims-{iteration}-{first:05d}-{last:05d}')

    def has_vocabulary(self, iteration: int) -> bool:
        return filesystem.exists(self.vocabulary_path(iteration))

    def write_vocabulary(self, iteration: int, vocabulary: SuffixTable) -> None:
        """Comes last in an iteration: where it is, all other files of it are whole."""
        write_checked(self.vocabulary_path(iteration), vocabulary.to_bytes())

    def read_vocabulary(self, iteration: int) -> SuffixTable:
        return _read_table(self.vocabulary_path(iteration))

    def write_sizes(self, sizes: dict[int, int]) -> None:
        """Lists the bytes of each group's table."""
        write_checked(self.sizes_path, json.dumps(sorted(sizes.items())).encode())

    def read_sizes(self) -> dict[int, int]:
        with _content(self.sizes_path) as content:
            return dict(json.loads(content))

    def read_reserved(self) -> list[str]:
        with _content(self.reserved_path) as content:
            return json.loads(content)

    def write_heavy(self, tables: Sequence[SuffixTable] | None) -> None:
        """Writes all groups' tables in one file; None says that they are too many to be known."""
        pieces = []
        for table in tables or ():
            packed = table.to_bytes()
            pieces += [_SIZE.pack(len(packed)), packed]
        write_checked(self.frequent_path, *pieces)

    def read_heavy(self) -> list[SuffixTable] | None:
        tables, place = [], 0
        with _content(self.frequent_path) as data:
            while place < len(data):
                (size,) = _SIZE.unpack_from(data, place)
                place += _SIZE.size
                tables.append(SuffixTable.from_bytes(data[place : place + size]))
                place += size
        return tables or None

    def write_selection(
        self, iteration: int, group_range: tuple[int, int], selected: PartitionSelection
    ) -> None:
        shared = [(prefix.decode(), *sums) for prefix, *sums in selected.shared]
        line = json.dumps(shared).encode() + b'\n'
        write_checked(self.selection_path(iteration, group_range), line, selected.kept.to_bytes())

    def read_selection(self, iteration: int, group_range: tuple[int, int]) -> PartitionSelection:
        with _content(self.selection_path(iteration, group_range)) as content:
            shared, _, kept = content.partition(b'\n')
            sums = tuple((prefix.encode(), *sums) for prefix, *sums in json.loads(shared))
            return PartitionSelection(SuffixTable.from_bytes(kept), sums)


def _read_table(path: str) -> SuffixTable:
    with _content(path) as content:
        return SuffixTable.from_bytes(content)
