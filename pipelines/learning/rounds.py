"""The files of a learner on Beam: the driver and the workers share them, and a new run resumes.

Each search has a folder in the work folder. Its name is the digest of everything that its files
depend on, so a folder with another name is not used. Each file appears whole or not at all, and
tells when it is damaged. A round is one min-count.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.files import filesystem
from pipelines.files.attempts import damaged, read_checked, write_checked
from pipelines.files.claims import WORK_FOLDER, Claim, delete_own_if_empty, sweep_claim
from pipelines.files.filesystem import delete_known
from pipelines.system_errors import system_error
from tokcore.errors import InputError, OperatingSystemError
from tokcore.format_numbers import LEARNER_ROUNDS
from tokcore.subword.partitioned.suffix_tables import PrefixPartitions, SuffixTable
from tokcore.subword.partitioned.sweep import PartitionSelection

_PREFIX = 'learner-'
_LOCK = '.lock'
_FOLDER = re.compile(_PREFIX + r'[0-9a-f]{16}')
_LOCK_FILE = re.compile(_FOLDER.pattern + re.escape(_LOCK))
_ASKED_NAME = 'asked.json'

_SIZE = struct.Struct('<Q')

_NAME = re.compile(
    r'survey\.json|reserved\.json|first-\d{5,}\.json|sizes-\d+-\d+'
    r'|(first|round-\d+/groups)/group-\d{5,}'
    r'|round-\d+/(heavy|sizes\.json|vocabulary-\d|claims-\d-\d{5,}-\d{5,})'
    r'|((first|round-\d+(/groups)?)/)?\.tokbeam-attempt-[0-9a-f]{32}'  # not whole yet
)


@dataclass(frozen=True)
class RoundsPlace:
    """Where the rounds for one output are kept.

    Attributes:
        work: a folder that driver and workers reach, which other outputs use too.
        output: tells the output from all others that use it.
    """

    work: str
    output: str

    @classmethod
    def of(cls, folder: str, name: str, work: str | None = None) -> 'RoundsPlace':
        """Returns the place for a file of an output's folder: below `work`, or in `.tokbeam` there.

        The latter goes where the folder goes, so the file's name is all that it is told by.
        """
        if work is None:
            return cls(filesystem.join(folder, WORK_FOLDER), name)
        return cls(work, filesystem.join(folder, name))

    def sweep(self, keep_begun: bool = False) -> None:
        """Deletes the rounds for this output, as far as no other run is at work on them.

        Args:
            keep_begun: whether those stay that there is something to go on with in.
        """
        for name in filter(_FOLDER.fullmatch, _names(self.work)):
            folder = filesystem.join(self.work, name)
            if _output_of(folder, name) == self.output:
                if not (keep_begun and filesystem.exists(LearnerFiles(folder).stats_path)):
                    _delete(folder)
        # Of runs that were killed before they said what they are for; one that is held stays.
        for name in filter(_LOCK_FILE.fullmatch, _names(self.work)):
            lock = filesystem.join(self.work, name)
            if filesystem.is_local(lock) and not os.path.lexists(lock.removesuffix(_LOCK)):
                sweep_claim(lock)
        delete_own_if_empty(self.work)

    @contextlib.contextmanager
    def swept(self) -> Iterator[None]:
        """Leaves no rounds behind a block that makes the output's result, unless they are of use.

        They are where a run was killed, has failed or was refused something by the system, and are
        of none with a whole result, or with a refusal: then the input or the options must change.
        """
        try:
            yield
        except OperatingSystemError:
            self.sweep(keep_begun=True)
            raise
        except InputError:
            self.sweep()
            raise
        self.sweep()


@dataclass(frozen=True)
class KeptRounds:
    """The rounds of one search.

    Attributes:
        place: where they are kept.
        search: all that their files depend on, as JSON.
    """

    place: RoundsPlace
    search: Mapping[str, object]

    @property
    def folder(self) -> str:
        """The search's own folder."""
        return filesystem.join(self.place.work, _PREFIX + _id(self._asked))

    @property
    def _asked(self) -> dict[str, object]:
        return {'format': LEARNER_ROUNDS, **self.search, 'output': self.place.output}

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Claim]:
        """Holds the folder for a block that works in it.

        Raises:
            InputError: another run is at work there, or nothing can be written there.
        """
        with _claim(self.folder) as claim:
            claim.require()
            _delete_links(self.folder)
            asked_path = filesystem.join(self.folder, _ASKED_NAME)
            write_checked(asked_path, json.dumps(self._asked).encode())
            yield claim


def _id(asked: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _claim(folder: str) -> Claim:
    # Beside the folder: it outlives what is deleted there.
    return Claim(folder + _LOCK, folder)


def _delete_links(folder: str) -> None:
    """Deletes links in a folder, or in its place: a run makes none, and would write behind them."""
    if filesystem.is_local(folder):
        delete_known(folder, lambda name: os.path.islink(os.path.join(folder, name)))


def _names(work: str) -> list[str]:
    if not filesystem.is_local(work):
        return sorted({file.name.partition('/')[0] for file in filesystem.list_folder(work)})
    try:
        return sorted(os.listdir(work))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise system_error(error, f'look into {work}') from error


def _output_of(folder: str, name: str) -> str | None:
    """Returns what output a search's folder says it is for; None if it is none."""
    path = filesystem.join(folder, _ASKED_NAME)
    if filesystem.is_local(folder) and os.path.islink(folder) or not filesystem.exists(path):
        return None
    try:
        asked = json.loads(read_checked(path))
        is_own = _PREFIX + _id(asked) == name
    except (InputError, ValueError, RecursionError):
        return None  # nobody's, or damaged: a run that works there writes it anew
    return asked.get('output') if is_own and isinstance(asked, dict) else None


def _delete(folder: str) -> None:
    """Deletes a search's files and its lock, if no other run holds that; last what it says."""
    with contextlib.ExitStack() as stack:
        try:
            claim = stack.enter_context(_claim(folder))
        except InputError:
            return  # it deletes them itself, or goes on with them
        if claim.is_denied:
            return
        LearnerFiles(folder).clear()
    delete_known(folder, {_ASKED_NAME}.__contains__)


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
    def stats_path(self) -> str:
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
        """Deletes all files, the stats first: as long as those are missing nothing else counts."""
        filesystem.delete_file(self.stats_path)
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
        write_checked(
            self.selection_path(iteration, group_range), line, selected.strings.to_bytes()
        )

    def read_selection(self, iteration: int, group_range: tuple[int, int]) -> PartitionSelection:
        with _content(self.selection_path(iteration, group_range)) as content:
            shared, _, kept = content.partition(b'\n')
            sums = tuple((prefix.encode(), *sums) for prefix, *sums in json.loads(shared))
            return PartitionSelection(SuffixTable.from_bytes(kept), sums)


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


def _read_table(path: str) -> SuffixTable:
    with _content(path) as content:
        return SuffixTable.from_bytes(content)
