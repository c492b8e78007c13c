"""The files of a learner's work folder: driver and workers meet in them, and a new run resumes.

Each file appears whole or not at all, and its name tells what it is of; so what is there need not
be made again. A round is one min-count.
"""

import dataclasses
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines import filesystem
from tokcore.subword.group_tree import GroupClaims
from tokcore.subword.prefix_groups import PrefixGroups
from tokcore.subword.suffix_tables import SuffixTable

_SIZE = struct.Struct('<Q')


@dataclass(frozen=True)
class TokenFacts:
    """What the survey of the tokens found."""

    alphabet: str
    tokens: int
    characters: int
    weight: int
    most: int
    predicted_bytes: int
    borders: tuple[bytes, ...]

    @property
    def groups(self) -> PrefixGroups:
        return PrefixGroups(self.borders)

    def to_json(self) -> bytes:
        fields = {**dataclasses.asdict(self), 'borders': [each.decode() for each in self.borders]}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, data: bytes) -> 'TokenFacts':
        fields = json.loads(data)
        return cls(**{**fields, 'borders': tuple(each.encode() for each in fields['borders'])})


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

    def pass_path(self, last: int) -> str:
        """Where a pass over the groups before `last` says that it is done."""
        return filesystem.join(self.folder, f'first-{last:05d}.json')

    def round(self, min_count: int) -> 'RoundFiles':
        folder = filesystem.join(self.folder, f'round-{min_count}')
        return RoundFiles(folder, self.reserved_path)


@dataclass(frozen=True)
class GroupFiles:
    """A folder with one file a group, which may lack groups without strings."""

    folder: str

    def path(self, group: int) -> str:
        return filesystem.join(self.folder, f'group-{group:05d}')

    def write(self, group: int, table: SuffixTable) -> None:
        filesystem.write_bytes(self.path(group), table.to_bytes())

    def read(self, group: int) -> SuffixTable:
        return SuffixTable.from_bytes(filesystem.read_bytes(self.path(group)))


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
    def heavy_path(self) -> str:
        return filesystem.join(self.folder, 'heavy')

    @property
    def sizes_path(self) -> str:
        return filesystem.join(self.folder, 'sizes.json')

    def vocabulary_path(self, iteration: int) -> str:
        return filesystem.join(self.folder, f'vocabulary-{iteration}')

    def claims_path(self, iteration: int, part: int) -> str:
        return filesystem.join(self.folder, f'claims-{iteration}-{part:05d}')

    def has_vocabulary(self, iteration: int) -> bool:
        return filesystem.exists(self.vocabulary_path(iteration))

    def read_vocabulary(self, iteration: int) -> SuffixTable:
        return SuffixTable.from_bytes(filesystem.read_bytes(self.vocabulary_path(iteration)))

    def write_sizes(self, sizes: dict[int, int]) -> None:
        """Lists the bytes of each group's file."""
        filesystem.write_bytes(self.sizes_path, json.dumps(sorted(sizes.items())).encode())

    def read_sizes(self) -> dict[int, int]:
        return dict(json.loads(filesystem.read_bytes(self.sizes_path)))

    def read_reserved(self) -> list[str]:
        return json.loads(filesystem.read_bytes(self.reserved_path))

    def write_heavy(self, tables: Sequence[SuffixTable] | None) -> None:
        """Writes all groups' tables in one file; None says that they are too many to be known."""
        if tables is None:
            filesystem.write_bytes(self.heavy_path, b'')
            return
        with filesystem.create(self.heavy_path) as stream:
            for table in tables:
                packed = table.to_bytes()
                stream.write(_SIZE.pack(len(packed)))
                stream.write(packed)

    def read_heavy(self) -> list[SuffixTable] | None:
        data = filesystem.read_bytes(self.heavy_path)
        tables, place = [], 0
        while place < len(data):
            (size,) = _SIZE.unpack_from(data, place)
            place += _SIZE.size
            tables.append(SuffixTable.from_bytes(data[place : place + size]))
            place += size
        return tables or None

    def write_claims(self, iteration: int, part: int, claims: GroupClaims) -> None:
        shared = [(prefix.decode(), *sums) for prefix, *sums in claims.shared]
        data = json.dumps(shared).encode() + b'\n' + claims.kept.to_bytes()
        filesystem.write_bytes(self.claims_path(iteration, part), data)

    def read_claims(self, iteration: int, part: int) -> GroupClaims:
        shared, _, kept = filesystem.read_bytes(self.claims_path(iteration, part)).partition(b'\n')
        sums = tuple((prefix.encode(), *sums) for prefix, *sums in json.loads(shared))
        return GroupClaims(SuffixTable.from_bytes(kept), sums)
