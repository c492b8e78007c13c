"""The files of learners on Beam, which driver and workers share and a new run resumes.

A round of the subword learner and of WordPiece's learns the vocabulary of one min-count; a round of
byte pair encoding makes some more merges. Each search has a folder in the work folder, named
by a digest of everything that its files depend on, so a search never uses files of another one.
Files are written whole or not at all, with a checksum.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import apache_beam as beam
import numpy as np

from pipelines.engines.engine import RunPipeline
from pipelines.files import filesystem
from pipelines.files.attempts import (
    WORK_FOLDER,
    damaged,
    delete_own_if_empty,
    read_checked,
    write_checked,
)
from pipelines.files.claims import Claim, sweep_claim
from pipelines.files.filesystem import delete_known
from pipelines.transforms.stats import GatherToDriver
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned, Scheme
from tokcore.errors import InputError
from tokcore.format_numbers import LEARNER_ROUNDS
from tokcore.subword.suffix_tables import PrefixPartitions, SuffixTable
from tokcore.subword.sweep import PartitionSelection

_PREFIX = 'learner-'
_LOCK = '.lock'
_FOLDER = re.compile(_PREFIX + r'[0-9a-f]{16}')
_LOCK_FILE = re.compile(_FOLDER.pattern + re.escape(_LOCK))
_SEARCH_FILE = 'search.json'
_SURVEY_FILE = 'survey.json'
_LEARNED_FILE = 'learned'

TableT = TypeVar('TableT', SuffixTable, TokenTable)

_SIZE = struct.Struct('<Q')
_INT64 = np.dtype('<i8')

_WORDS_FOLDER = re.compile(r'words-(\d+)')
_WORDS_FILE = re.compile(r'part-\d{5,}|\.tokbeam-attempt-[0-9a-f]{32}')

_NAME = re.compile(
    r'learned|survey\.json|reserved\.json|first-\d{5,}\.json|sizes-\d+-\d+'
    r'|(first|round-\d+/groups)/group-\d{5,}'
    r'|round-\d+/(frequent|sizes\.json|vocabulary-\d|selection-\d-\d{5,}-\d{5,})'
    r'|merges|(characters|pieces)\.json|words-\d+/part-\d{5,}'
    r'|first\.json|(words|first)/part-\d{5,}|round-\d+/pieces-\d+'
    r'|((first|round-\d+(/groups)?|words(-\d+)?)/)?\.tokbeam-attempt-[0-9a-f]{32}'  # was being written
)


@dataclass(frozen=True)
class OutputRounds:
    """The rounds of all searches for one output.

    Attributes:
        work: a folder that driver and workers reach, shared with other outputs.
        output: identifies the output among all that share the folder.
    """

    work: str
    output: str

    @classmethod
    def of(cls, folder: str, name: str, work: str | None = None) -> OutputRounds:
        """Returns the rounds for a file in an output folder, in `work` or else in its `.tokbeam`.

        An output folder may be moved with its `.tokbeam`, so there the file's name identifies it.
        """
        if work is None:
            return cls(os.path.join(folder, WORK_FOLDER), name)
        return cls(work, os.path.join(folder, name))

    def sweep(self, keep_begun: bool = False) -> None:
        """Deletes the rounds for this output that no other run is using.

        Args:
            keep_begun: keep those that a new run can resume.
        """
        for name in filter(_FOLDER.fullmatch, filesystem.entries(self.work)):
            folder = os.path.join(self.work, name)
            if _output_of(folder, name) == self.output:
                if not (keep_begun and _is_begun(folder)):
                    _delete(folder)
        # Locks of runs that were killed before they wrote anything; one that is in use stays.
        names = filesystem.entries(self.work)
        for name in filter(_LOCK_FILE.fullmatch, names):
            if name.removesuffix(_LOCK) not in names:
                sweep_claim(os.path.join(self.work, name))
        delete_own_if_empty(self.work)


@dataclass(frozen=True)
class SearchRounds:
    """The rounds of one search.

    Attributes:
        output_rounds: the rounds of the search's output.
        search: everything that the files depend on, as JSON values.
    """

    output_rounds: OutputRounds
    search: Mapping[str, object]

    @property
    def folder(self) -> str:
        """The folder of this search."""
        return os.path.join(self.output_rounds.work, _PREFIX + _digest(self._description))

    @property
    def _description(self) -> dict[str, object]:
        return {'format': LEARNER_ROUNDS, **self.search, 'output': self.output_rounds.output}

    @contextlib.contextmanager
    def claimed(self) -> Iterator[Claim]:
        """Claims the folder for a block that works in it.

        Raises:
            InputError: another run has claimed it, or it cannot be written to.
        """
        with _claim(self.folder) as claim:
            claim.require()
            self._write_description()
            yield claim

    def _write_description(self) -> None:
        write_json(os.path.join(self.folder, _SEARCH_FILE), self._description)

    def keep(self, learned: Learned) -> None:
        """Keeps the vocabulary until the output is whole: its file, after a line of how it was learned."""
        self._write_description()
        fields = [learned.min_count, learned.tried, learned.reachable, learned.smallest_size]
        line = json.dumps(fields).encode()
        path = os.path.join(self.folder, _LEARNED_FILE)
        write_checked(path, line, b'\n', learned.vocabulary.dump())

    def kept(self, scheme: Scheme) -> Learned | None:
        """Returns the vocabulary that an earlier run has kept; None if there is none."""
        path = os.path.join(self.folder, _LEARNED_FILE)
        if not filesystem.exists(path):
            return None
        self._write_description()  # a damaged one would keep the folder from being deleted
        with _content(path) as content:
            line, _, data = content.partition(b'\n')
            min_count, tried, reachable, smallest_size = json.loads(line)
            vocabulary = scheme.parse(data, path)
            tried, reachable = (tuple(map(tuple, pairs)) for pairs in (tried, reachable))
            return Learned(vocabulary, min_count, tried, reachable, smallest_size)


@dataclass(frozen=True)
class ClaimedRun:
    """Runs a pipeline if the claim to the folder of rounds still holds."""

    claim: Claim
    run: RunPipeline

    def __call__(self, build: Callable[[beam.Pipeline], None]) -> None:
        self.claim.check()
        self.run(build)


def _path_of(name: str) -> property:
    """Returns a property of the classes below: the path of a file in their folder."""
    return property(lambda files: os.path.join(files.folder, name))


@dataclass(frozen=True)
class LearnerFiles:
    """The folder of a search."""

    folder: str

    survey_path = _path_of(_SURVEY_FILE)
    reserved_path = _path_of('reserved.json')

    @property
    def first(self) -> GroupFiles:
        """The first iteration's tables, which serve all min-counts."""
        return GroupFiles(os.path.join(self.folder, 'first'))

    def pass_path(self, first: int) -> str:
        """The file of the end and the sizes of the pass over the groups from `first` on.

        It is there when the pass is finished, so that a new run does not repeat it.
        """
        return os.path.join(self.folder, f'first-{first:05d}.json')

    def pass_sizes_path(self, first: int, last: int) -> str:
        """The file of the tables' sizes that the workers of a pass write."""
        return os.path.join(self.folder, f'sizes-{first}-{last}')

    def round(self, min_count: int) -> RoundFiles:
        return RoundFiles(os.path.join(self.folder, f'round-{min_count}'), self.reserved_path)

    def clear(self) -> None:
        """Deletes all files, the survey first: without it a new run ignores the others."""
        delete_known(self.folder, {_SURVEY_FILE}.__contains__)
        delete_known(self.folder, is_learner_file)


@dataclass(frozen=True)
class RoundFiles:
    """The files of a round."""

    folder: str
    reserved_path: str

    frequent_path = _path_of('frequent')
    sizes_path = _path_of('sizes.json')

    @property
    def groups(self) -> GroupFiles:
        """The first iteration's tables without suffixes that are infrequent at this min-count.

        `sizes_path` has the bytes of each group's table.
        """
        return GroupFiles(os.path.join(self.folder, 'groups'))

    def vocabulary_path(self, iteration: int) -> str:
        return os.path.join(self.folder, f'vocabulary-{iteration}')

    def selection_path(self, iteration: int, group_range: tuple[int, int]) -> str:
        first, last = group_range
        return os.path.join(self.folder, f'selection-{iteration}-{first:05d}-{last:05d}')

    def has_vocabulary(self, iteration: int) -> bool:
        return filesystem.exists(self.vocabulary_path(iteration))

    def iterations_done(self) -> int:
        """Returns how many iterations have left their vocabulary."""
        return next(done for done in itertools.count() if not self.has_vocabulary(done + 1))

    def write_vocabulary(self, iteration: int, vocabulary: SuffixTable) -> None:
        """Written last in an iteration: if it exists, all files of the iteration are whole."""
        write_checked(self.vocabulary_path(iteration), vocabulary.to_bytes())

    def read_vocabulary(self, iteration: int) -> SuffixTable:
        return read_packed(SuffixTable, self.vocabulary_path(iteration))

    def write_frequent(self, tables: Sequence[SuffixTable] | None) -> None:
        """Writes the tables of all groups in one file; None if they have too many nodes."""
        pieces = []
        for table in tables or ():
            packed = table.to_bytes()
            pieces += [_SIZE.pack(len(packed)), packed]
        write_checked(self.frequent_path, *pieces)

    def read_frequent(self) -> list[SuffixTable] | None:
        tables, position = [], 0
        with _content(self.frequent_path) as data:
            while position < len(data):
                (size,) = _SIZE.unpack_from(data, position)
                position += _SIZE.size
                tables.append(SuffixTable.from_bytes(data[position : position + size]))
                position += size
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
            shared, _, strings = content.partition(b'\n')
            sums = tuple((prefix.encode(), *sums) for prefix, *sums in json.loads(shared))
            return PartitionSelection(SuffixTable.from_bytes(strings), sums)


@dataclass(frozen=True)
class GroupFiles:
    """A folder with a file for each group; groups without strings may lack theirs."""

    folder: str

    def path(self, group: int) -> str:
        return os.path.join(self.folder, f'group-{group:05d}')

    def write(self, group: int, table: SuffixTable) -> None:
        write_checked(self.path(group), table.to_bytes())

    def read(self, group: int) -> SuffixTable:
        return read_packed(SuffixTable, self.path(group))


@dataclass(frozen=True)
class MergeFiles:
    """The folder of a search for merges.

    Each file is a function of the counts and of how many merges are made, so those of any run are
    good for every other one, also where a kill has left only some of them.
    """

    folder: str

    merges_path = _path_of('merges')
    characters_path = _path_of('characters.json')  # those within tokens, and those at their ends
    pieces_path = _path_of('pieces.json')  # of the vocabulary that is extended, by id

    def words_path(self, merges: int, part: int) -> str:
        """The file of the words of a part of the counts, with this many merges made in them."""
        return os.path.join(self._words_folder(merges), f'part-{part:05d}')

    def write_merges(self, pairs: np.ndarray, counts: np.ndarray) -> None:
        """Writes all merges so far: their pairs and the counts of these, int64[merges] each."""
        write_checked(
            self.merges_path, *(array.astype(_INT64).tobytes() for array in (pairs, counts))
        )

    def read_merges(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns pairs and counts of the merges so far; there may be none."""
        if not filesystem.exists(self.merges_path):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        with _content(self.merges_path) as content:
            pairs, counts = np.frombuffer(content, _INT64).astype(np.int64).reshape(2, -1)
            return pairs, counts

    def numbers_of_merges(self) -> list[int]:
        """Returns with how many merges there are files of words, the largest number first."""
        names = map(_WORDS_FOLDER.fullmatch, filesystem.entries(self.folder))
        return sorted((int(name[1]) for name in names if name), reverse=True)

    def delete_words(self, merges: int) -> None:
        """Deletes the files of words with this many merges made in them."""
        delete_known(self._words_folder(merges), lambda name: bool(_WORDS_FILE.fullmatch(name)))

    def _words_folder(self, merges: int) -> str:
        return os.path.join(self.folder, f'words-{merges}')


@dataclass(frozen=True)
class WordFiles:
    """The folder of a search for pieces of words.

    A file of words or of first counts belongs to a partition; which partitions there are is in the
    file that is written when all of theirs are whole.
    """

    folder: str

    survey_path = _path_of(_SURVEY_FILE)  # without it a new run ignores the other files
    first_path = _path_of('first.json')  # of the first iteration, which serves all min-counts

    def words_path(self, partition: int) -> str:
        return os.path.join(self.folder, 'words', f'part-{partition:05d}')

    def first_counts_path(self, partition: int) -> str:
        return os.path.join(self.folder, 'first', f'part-{partition:05d}')

    def pieces_path(self, min_count: int, iteration: int) -> str:
        """The pieces that an iteration of a min-count has selected."""
        return os.path.join(self.folder, f'round-{min_count}', f'pieces-{iteration}')

    def clear(self) -> None:
        """Deletes all files, the survey first."""
        filesystem.delete_file(self.survey_path)
        delete_known(self.folder, is_learner_file)


@dataclass(frozen=True)
class TokenStats:
    """The result of the survey of the tokens."""

    alphabet: str
    tokens: int
    characters: int
    weight: int
    largest_count: int
    predicted_bytes: int
    borders: tuple[bytes, ...]

    @property
    def groups(self) -> PrefixPartitions:
        return PrefixPartitions(self.borders)

    def write(self, path: str) -> None:
        borders = [border.decode() for border in self.borders]
        write_json(path, {**dataclasses.asdict(self), 'borders': borders})

    @classmethod
    def read(cls, path: str) -> TokenStats:
        with _content(path) as content:
            fields = json.loads(content)
            borders = PrefixPartitions(tuple(border.encode() for border in fields['borders']))
            return cls(**{**fields, 'borders': borders.borders})


def is_learner_file(name: str) -> bool:
    """Returns whether a path below a search's folder is one of the learner's files."""
    return _NAME.fullmatch(name) is not None


@contextlib.contextmanager
def _content(path: str) -> Iterator[bytes]:
    """Yields a file's content to be parsed; a file that cannot be parsed is damaged."""
    content = read_checked(path)
    try:
        yield content
    except (ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
        raise damaged(path) from error


def read_json(path: str) -> Any:
    """Returns the value of a JSON file."""
    with _content(path) as content:
        return json.loads(content)


def read_json_if_there(path: str) -> Any | None:
    """Returns the value of a JSON file, None if there is no file."""
    return read_json(path) if filesystem.exists(path) else None


def write_json(path: str, value: object) -> None:
    """Writes a JSON file whole."""
    write_checked(path, json.dumps(value).encode())


def read_packed(kind: type[TableT], path: str) -> TableT:
    """Returns the table that a file has, packed by its `to_bytes`."""
    with _content(path) as content:
        return kind.from_bytes(content)


def _is_begun(folder: str) -> bool:
    """Whether there is work in a search's folder from which a new run would go on."""
    begun = [os.path.join(folder, name) for name in (_SURVEY_FILE, _LEARNED_FILE)]
    begun.append(MergeFiles(folder).merges_path)
    return any(map(filesystem.exists, begun))


def _digest(description: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def _claim(folder: str) -> Claim:
    # The lock is next to the folder, so that it exists until everything in the folder is deleted.
    return Claim(folder + _LOCK, folder)


def _output_of(folder: str, name: str) -> str | None:
    """Returns the output of the search whose folder this is; None if it is not one."""
    path = os.path.join(folder, _SEARCH_FILE)
    try:
        description = json.loads(read_checked(path))
        is_own = _PREFIX + _digest(description) == name
    except (InputError, ValueError, RecursionError):
        return None  # not ours, or damaged: a run that uses the folder writes it again
    return description.get('output') if is_own and isinstance(description, dict) else None


def _delete(folder: str) -> None:
    """Deletes a search's files and its lock, unless another run has claimed it; its name last."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_claim(folder)).require()
        except InputError:
            return  # another run deletes or resumes them, or nothing can be deleted
        LearnerFiles(folder).clear()
    delete_known(folder, {_SEARCH_FILE}.__contains__)


def build_chain(steps: Mapping[str, beam.PTransform], pipeline: beam.Pipeline) -> None:
    """Builds steps, by their labels; each takes a signal and returns one."""
    signal = pipeline | 'Begin' >> beam.Create([0], reshuffle=False)
    for label, step in steps.items():
        signal = signal | label >> step


@dataclass(eq=False)
class EmitElements(beam.PTransform):
    """Emits the elements of a plan for any worker, when the signal is there."""

    plan: Sequence

    def expand(self, signal: beam.PCollection) -> beam.PCollection:
        return signal | 'Emit' >> beam.FlatMap(_emit, self.plan) | 'Reshuffle' >> beam.Reshuffle()


def _emit(signal: object, plan: Sequence) -> Sequence:
    return plan


@dataclass(eq=False)
class GatherResults(beam.PTransform):
    """Takes (signal, results) and returns one (0, [results]), with None among them.

    With one more element, a step without results ends with a signal too.
    """

    def expand(self, inputs) -> beam.PCollection:
        signal, results = inputs
        none = signal | 'AddNone' >> beam.Map(_none)
        return (none, results) | beam.Flatten() | 'Gather' >> GatherToDriver()


def _none(signal: object) -> None:
    return None
