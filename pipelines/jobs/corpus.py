"""The paths that the user gave for each dataset, as the files of a corpus.

All files are looked at before any work, so that a typing error in the last split costs seconds and
not the hours of a count.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.artifacts.outputs import InputState
from pipelines.files import filesystem
from pipelines.files.fetching import FetchedFile
from pipelines.files.filesystem import StoredFile
from pipelines.options.job import split_flag
from pipelines.transforms.read import FoundFile, archive_lists, find_files
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.archives import ArchiveLists
from tokcore.corpus.corpus import CorpusFile, FilterSpec, MemberFile, Split
from tokcore.corpus.filters.registry import asked_filters, try_filters
from tokcore.corpus.formats import CorpusFormat, check_files, corpus_format
from tokcore.corpus.seekable import may_have_index
from tokcore.corpus.stats import RangeChecksum, TextSummary, checksum_file, join_checksums
from tokcore.corpus.storage import MOST_RATIO, Compression
from tokcore.errors import InputError
from tokcore.records.manifest import InputText

_GZIP_RATIO = 5
"""Text compresses three- to fourfold with gzip; a little more is a safe guess of its size."""

_MOST_GZIP_RATIO = 1032
"""No more than 258 bytes come of two bits (RFC 1951: the longest match)."""


@dataclass(frozen=True)
class CorpusInput:
    """One input file with its place in the corpus and its state on its filesystem."""

    split: str
    role: str  # one of its format's
    file_index: int
    side: int
    file: CorpusFile
    stored: StoredFile

    def text(self, summary: TextSummary) -> InputText:
        """Returns the manifest's entry from the checksum of all of it."""
        sha256 = self.stored.sha256
        return InputText(
            self.split,
            self.role,
            self.file.name,
            summary.bytes,
            f'{summary.crc32c:08x}',
            stored_bytes=None if sha256 is None else self.stored.size,
            sha256=sha256,
        )


@dataclass(frozen=True)
class Corpus:
    """The splits of a job and their files, in the order of splits, places and sides."""

    splits: tuple[Split, ...]  # a split of several datasets is as many of these
    inputs: tuple[CorpusInput, ...]

    def only(self, split: str) -> 'Corpus':
        """Returns the corpus of one split."""
        return Corpus(
            tuple(each for each in self.splits if each.name == split),
            tuple(each for each in self.inputs if each.split == split),
        )

    @property
    def split_names(self) -> tuple[str, ...]:
        """The names of its splits; each may have several datasets."""
        return tuple(dict.fromkeys(each.name for each in self.splits))

    @property
    def format(self) -> CorpusFormat:
        """The format of the first split; its rows have as many sides as those of all others."""
        return self.splits[0].format

    @property
    def is_paired(self) -> bool:
        """Whether its rows are pairs, of a source and a target."""
        return len(self.format.sides) > 1

    @property
    def most_text_bytes(self) -> int:
        """The most bytes of text that a file can hold."""
        return max(each.file.size * _most_ratio(each.file.compressed) for each in self.inputs)

    @property
    def may_have_parts(self) -> bool:
        """Whether there are files that several workers may read, though they are compressed."""
        return any(may_have_index(each.file) for each in self.inputs)

    def text_bytes(self, split: str) -> int:
        """Returns about how many bytes of text a split holds."""
        return sum(
            each.file.size * (_GZIP_RATIO if each.file.compressed else 1)
            for each in self.inputs
            if each.split == split
        )

    def wanted_inputs(self) -> tuple[InputState, ...]:
        """Returns the files' state, by which a stage knows them again."""
        checksums = InputChecksums(self.inputs)
        return tuple(
            InputState(each.split, each.role, each.stored, lambda each=each: checksums.of(each))
            for each in self.inputs
        )


@dataclass(frozen=True)
class SplitPaths:
    """A dataset as the command line or a job file has it.

    Attributes:
        split: whose it is.
        format: that of its files, by name.
        paths: for each of the format's roles.
        options: of the format, by name, as far as they are given.
        dataset: its name; empty where it needs none.
        max_examples: as many of its rows are taken; None: all.
        source_prefix: put before its source texts; None: the job's.
        target_prefix: put before its target texts; None: the job's.
        clean: filters that its rows go through, each by its name with options.
    """

    split: str
    format: str
    paths: Mapping[str, Sequence[str]]
    options: Mapping[str, object] = field(default_factory=dict)
    dataset: str = ''
    max_examples: int | None = None
    source_prefix: str | None = None
    target_prefix: str | None = None
    clean: Sequence[str] = ()

    def option(self, name: str) -> str:
        """Returns the name of one of this split's options: `--source`, `--dev-source`."""
        return split_flag(self.split, name)

    @property
    def chosen_format(self) -> CorpusFormat:
        """The format with its options."""
        return corpus_format(self.format)(**self.options)


def find_corpus(
    paths: Sequence[SplitPaths],
    fetched: Mapping[str, FetchedFile] | None = None,
    keeps_dropped: bool = False,
) -> Corpus:
    """Finds the files of all splits.

    Args:
        paths: of each dataset.
        fetched: the files of those paths that are addresses.
        keeps_dropped: whether what filters drop is kept.

    Raises:
        InputError: a path that does not exist or cannot be read, files that do not pair, or a
            filter that there is not or that is not for such rows.
    """
    splits: list[Split] = []
    inputs: list[CorpusInput] = []
    archives = archive_lists()
    for given in paths:
        chosen = given.chosen_format
        found = [
            [
                each
                for pattern in given.paths[role]
                for each in _find(pattern, fetched or {}, archives)
            ]
            for role in chosen.roles
        ]
        _check_numbers(given, chosen, [len(each) for each in found])
        places = list(zip(*found, strict=True))
        files = [tuple(each.file for each in place) for place in places]
        _check(chosen, files)
        if not any(first.size or first.compressed for first, *_ in files):
            names = ', '.join(first.path for first, *_ in files)
            raise InputError(
                f'the {given.split} corpus is empty: no byte in {names}; check the files'
            )
        first = sum(len(each.files) for each in splits if each.name == given.split)
        split = _split_of(given, chosen, tuple(files), first)
        splits.append(
            dataclasses.replace(split, keeps_dropped=keeps_dropped and bool(split.filters))
        )
        inputs += [
            CorpusInput(
                given.split, role, first + number, side, place[side].file, place[side].stored
            )
            for number, place in enumerate(places)
            for side, role in enumerate(chosen.roles)
        ]
    return Corpus(tuple(splits), tuple(inputs))


def input_texts(corpus: Corpus, checksums: Sequence[RangeChecksum]) -> tuple[InputText, ...]:
    """Returns the manifest's inputs from what was read.

    Raises:
        RuntimeError: a file was not read exactly once, from its first byte to its last.
    """
    by_file: dict[tuple[str, int, int], list[RangeChecksum]] = {}
    for checksum in checksums:
        by_file.setdefault((checksum.split, checksum.file_index, checksum.side), []).append(
            checksum
        )
    texts = []
    for each in corpus.inputs:
        length = None if each.file.compressed else each.file.size
        try:
            summary = join_checksums(
                by_file.get((each.split, each.file_index, each.side), ()), length
            )
        except ValueError as error:
            raise RuntimeError(f'{each.file.path} was not read exactly once: {error}') from error
        texts.append(each.text(summary))
    return tuple(texts)


class InputChecksums:
    """The manifest's entries of inputs, by reading these from beginning to end.

    Where one is a member of an archive, all of that archive are read with it, and are known then.
    """

    def __init__(self, inputs: Sequence[CorpusInput]):
        self._inputs = inputs
        self._of_members: dict[CorpusInput, InputText] = {}

    def of(self, asked: CorpusInput) -> InputText:
        """Returns the entry of one of the inputs; raises InputError if it cannot be read."""
        if not isinstance(asked.file, MemberFile):
            return asked.text(checksum_file(asked.file, filesystem.open_binary))
        if asked not in self._of_members:
            of_archive = [
                each
                for each in self._inputs
                if isinstance(each.file, MemberFile) and each.file.archive == asked.file.archive
            ]
            [together] = in_passes(of_archive, lambda each: (each.file,), sys.maxsize)
            with reading_on(
                filesystem.open_binary, [(each.file,) for each in together]
            ) as open_binary:
                for each in together:
                    self._of_members[each] = each.text(checksum_file(each.file, open_binary))
        return self._of_members[asked]


def _most_ratio(compressed: Compression) -> int:
    if not compressed:
        return 1
    return _MOST_GZIP_RATIO if compressed is True else MOST_RATIO


def _check(chosen: CorpusFormat, files: Sequence[tuple[CorpusFile, ...]]) -> None:
    """Looks at the files of each place, at those of an archive in its order."""
    for together in in_passes(files, lambda place: place, sys.maxsize):
        with reading_on(filesystem.open_binary, together) as open_binary:
            for place in together:
                check_files(chosen, place, open_binary)


def _find(
    pattern: str, fetched: Mapping[str, FetchedFile], archives: ArchiveLists
) -> list[FoundFile]:
    if pattern not in fetched:
        return find_files(pattern, archives)
    # A name is the same wherever the work folder is: the address, and the member if there is one.
    file = fetched[pattern]
    inside = '' if file.member is None else f'!{file.member}'
    return [
        each.named(file.name + each.stored.path[len(file.path) :], file.sha256)
        for each in find_files(file.path + inside, archives)
    ]


def _split_of(
    given: SplitPaths, chosen: CorpusFormat, files: tuple[tuple[CorpusFile, ...], ...], first: int
) -> Split:
    of_sides = {'inputs': given.source_prefix}
    prefixes = tuple(of_sides.get(side, given.target_prefix) for side in chosen.sides)
    return Split(
        given.split,
        chosen,
        files,
        given.dataset,
        first,
        () if set(prefixes) == {None} else prefixes,
        given.max_examples,
        filters=_filters(given, chosen),
    )


def _filters(given: SplitPaths, chosen: CorpusFormat) -> tuple[FilterSpec, ...]:
    if not given.clean:
        return ()
    try:
        asked = asked_filters(given.clean)
        # Kernels are compiled by that too, before there are workers.
        try_filters(asked, len(chosen.sides))
    except InputError as error:
        raise InputError(f'{given.option("clean")}: {error}') from error
    return asked


def _check_numbers(given: SplitPaths, chosen: CorpusFormat, numbers: Sequence[int]) -> None:
    for role, number in zip(chosen.roles, numbers, strict=True):
        if number != numbers[0]:
            raise InputError(
                f'{given.option(chosen.roles[0])} names {numbers[0]} files but '
                f'{given.option(role)} names {number}; they pair in the order given, so give as '
                'many of each'
            )
