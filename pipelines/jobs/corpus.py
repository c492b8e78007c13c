"""The files of a corpus, found from the paths of its datasets.

All files are looked up before any work, so that a mistyped path of the last split costs seconds and
not the hours of a count.
"""

import collections
import dataclasses
import functools
import itertools
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.artifacts.outputs import InputState
from pipelines.files import filesystem
from pipelines.files.fetching import FetchedFile
from pipelines.files.filesystem import StoredFile
from pipelines.files.hub import is_hub_address
from pipelines.options.job import PAIR_OF_FILES
from pipelines.transforms.read import MatchedFile, archive_lists, files_at, find_files, warn_of_nuls
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.archives import ArchiveLists
from tokcore.corpus.contents import Compression
from tokcore.corpus.corpus import CorpusFile, FilterSpec, KeyRange, MemberFile, Split, split_of
from tokcore.corpus.formats import CorpusFormat, corpus_format, format_reader
from tokcore.corpus.seekable import may_have_index
from tokcore.corpus.stats import RangeChecksum, TextSummary, checksum_file, join_checksums
from tokcore.corpus.storage import MOST_RATIO, likely_text_bytes
from tokcore.corpus.stretches import FileNewlines
from tokcore.errors import InputError
from tokcore.filters.leaving_out import Address, AddressedFiles
from tokcore.filters.registry import filter_specs, try_filters
from tokcore.options import flag, shown
from tokcore.records.manifest import InputText

_LOGGER = logging.getLogger(__name__)

_MOST_GZIP_RATIO = 1032
"""Two bits expand to at most 258 bytes (RFC 1951: the longest match)."""


@dataclass(frozen=True)
class CorpusInput:
    """An input file, its position in the corpus and its state on its filesystem."""

    split: str
    role: str  # of its format
    file_index: int
    side: int
    file: CorpusFile
    stored: StoredFile
    recorded: InputText | None = None  # of a dataset that is updated: its entry, and it is not read

    def text(self, summary: TextSummary) -> InputText:
        """Returns the manifest's entry of the file; `summary` is of its whole text."""
        sha256 = self.stored.sha256
        return InputText(
            self.split,
            self.role,
            self.file.name,
            summary.bytes,
            f'{summary.crc32c:08x}',
            stored_bytes=None if sha256 is None else self.stored.size,
            sha256=sha256,
            origin=self.file.name if is_hub_address(self.file.name) else None,
        )


@dataclass(frozen=True)
class Corpus:
    """The splits of a job and their files, in the order of splits, files and sides."""

    splits: tuple[Split, ...]  # one for each dataset of a split
    inputs: tuple[CorpusInput, ...]
    left_out: frozenset[Address] = frozenset()
    is_added: bool = False  # to a dataset that is there: then it may have no rows
    weights: tuple[str | None, ...] = ()  # of the training datasets, in their order

    def only(self, split: str, dataset: str | None = None) -> 'Corpus':
        """Returns the corpus of one split, or of one of its datasets."""
        splits = [
            part for part in self.splits if part.name == split and dataset in (None, part.dataset)
        ]
        indexes = {index for part in splits for index in part.file_indexes}
        inputs = (
            each for each in self.inputs if each.split == split and each.file_index in indexes
        )
        return dataclasses.replace(self, splits=tuple(splits), inputs=tuple(inputs))

    def apart(self, dataset: str) -> 'Corpus':
        """Returns the corpus that a training dataset is alone, with file indexes from 0 on."""
        part = self.only('train', dataset)
        [split] = part.splits
        first = split.first_file_index
        return dataclasses.replace(
            part,
            splits=(dataclasses.replace(split, first_file_index=0),),
            inputs=tuple(
                dataclasses.replace(each, file_index=each.file_index - first)
                for each in part.inputs
            ),
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the training datasets, if there are several."""
        names = tuple(split.dataset for split in self.splits if split.name == 'train')
        return names if len(names) > 1 else ()

    def without(self, addresses: Iterable[Address]) -> 'Corpus':
        """Returns the corpus without some of its rows."""
        left_out = frozenset(addresses)
        places = {name: own.tobytes() for name, own in AddressedFiles.places(left_out).items()}
        splits = tuple(
            dataclasses.replace(split, left_out=places.get(split.name, b''))
            for split in self.splits
        )
        return dataclasses.replace(self, splits=splits, left_out=left_out)

    def added(self) -> 'Corpus':
        """Returns what is added to a dataset that is there: all its datasets, with these files alone."""
        inputs = tuple(each for each in self.inputs if each.recorded is None)
        own = {(each.split, each.file_index) for each in inputs}
        splits = []
        for split in self.splits:
            indexes = [index for index in split.file_indexes if (split.name, index) in own]
            files = split.files[len(split.files) - len(indexes) :]
            first = split.file_indexes.stop - len(indexes)
            splits.append(dataclasses.replace(split, files=files, first_file_index=first))
        left_out = frozenset(each for each in self.left_out if each.file.key in own)
        return Corpus(tuple(splits), inputs, left_out, is_added=True)

    @property
    def split_names(self) -> tuple[str, ...]:
        """The names of its splits, each once."""
        return tuple(dict.fromkeys(split.name for split in self.splits))

    @property
    def format(self) -> CorpusFormat:
        """The format of the first split; the rows of all splits have the same number of sides."""
        return self.splits[0].format

    @property
    def is_paired(self) -> bool:
        """Whether its rows are pairs of a source and a target."""
        return len(self.format.sides) > 1

    @property
    def most_text_bytes(self) -> int:
        """The most bytes of text that a file can hold."""
        sizes = [each.file.size * _most_ratio(each.file.compressed) for each in self.inputs]
        return max(sizes, default=0)

    @property
    def may_have_parts(self) -> bool:
        """Whether several workers may read one compressed file."""
        return any(may_have_index(corpus_input.file) for corpus_input in self.inputs)

    def text_bytes(self, split: str) -> int:
        """Returns about how many bytes of text a split holds."""
        return likely_text_bytes(each.file for each in self.inputs if each.split == split)

    def wanted_inputs(self) -> tuple[InputState, ...]:
        """Returns the states of the files, by which a stage recognizes them."""
        checksum = input_checksums(self.inputs)
        return tuple(
            InputState(
                file.split,
                file.role,
                file.stored,
                functools.partial(dataclasses.replace, file.recorded)
                if file.recorded
                else functools.partial(checksum, file),
                file.file.archive.path if isinstance(file.file, MemberFile) else None,
            )
            for file in self.inputs
        )


@dataclass(frozen=True)
class SplitPaths:
    """A dataset as a command line or a job file describes it.

    Attributes:
        split: that it belongs to.
        format: of its files, by name.
        paths: by the roles of the format.
        options: of the format, by name; others have their defaults.
        dataset: its name; may be empty if it is the only one of its split.
        max_examples: use only this many of its rows; None: all.
        source_prefix: is put before its source texts; None: the prefix of the job.
        target_prefix: is put before its target texts; None: the prefix of the job.
        clean: filters of its rows, each a name with options.
        key_range: which rows of the files are its own; None: all of them.
        weight: of its counts, as `tokcore.counts.weights.weight` returns it.
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
    key_range: KeyRange | None = None
    weight: str | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether its files are those of the training corpus."""
        return self.key_range is not None and self.split != 'train'

    def option(self, name: str) -> str:
        """Returns how users give something of its split: `--source`, or `clean of [[dev]]`."""
        if self.split == 'train':
            return flag(name)
        return (
            flag(f'{self.split}_{name}') if name in PAIR_OF_FILES else f'{name} of [[{self.split}]]'
        )

    @property
    def chosen_format(self) -> CorpusFormat:
        """The format with its options."""
        return corpus_format(self.format)(**self.options)


def check_same_shape(formats: Sequence[tuple[str, CorpusFormat]]) -> None:
    """Checks that the rows of all datasets, whose names are given, become the same features.

    Raises:
        InputError: they do not, or a label has another number in one of them.
    """
    if len({len(kind.sides) for _, kind in formats}) > 1:
        raise InputError('the splits must all be pairs, or all of one side; give such files')
    first, *others = [(name, kind.features) for name, kind in formats]
    for other in others:
        if first[1] != other[1]:
            described = ' and '.join(f'{name} {", ".join(names)}' for name, names in (first, other))
            raise InputError(
                f'all examples must have the same features, and there are of {described}'
            )
    labels = [(name, each.labels) for name, kind in formats for each in kind.extra_fields]
    most, longest = max(labels, key=lambda each: len(each[1]), default=('', ()))
    for name, some in labels:
        if some != longest[: len(some)]:
            raise InputError(
                f'{most} has the labels {shown(", ".join(longest))} and {name} has '
                f'{shown(", ".join(some))}, and a label must have one number; give both the same file'
            )


def find_corpus(
    datasets: Sequence[SplitPaths],
    fetched: Mapping[str, FetchedFile] | None = None,
    keeps_dropped: bool = False,
    is_added: bool = False,
) -> Corpus:
    """Finds the files of all splits.

    Args:
        datasets: of all splits.
        fetched: the files of those paths that are web addresses.
        keeps_dropped: whether the rows that filters drop are kept.
        is_added: whether they are added to a dataset that is there; then they may be empty.

    Raises:
        InputError: a path that does not exist or cannot be read, files that do not pair, or a
            filter that does not exist or is not for such rows.
    """
    splits: list[Split] = []
    inputs: list[CorpusInput] = []
    archives = archive_lists()
    found: list[MatchedFile] = []
    counts: collections.Counter[str] = collections.Counter()  # of files, by split
    for dataset in datasets:
        kind = dataset.chosen_format
        by_role = [
            [
                file
                for pattern in dataset.paths[role]
                for file in _find(pattern, fetched or {}, archives, kind.content)
            ]
            for role in kind.roles
        ]
        _check_numbers(dataset, kind, [len(files) for files in by_role])
        rows = list(zip(*by_role, strict=True))  # of files that are read together
        found += itertools.chain.from_iterable(rows)
        files = [tuple(file.file for file in row) for row in rows]
        _check(kind, files, dataset.options)
        if not is_added and not any(first.size or first.compressed for first, *_ in files):
            names = ', '.join(first.path for first, *_ in files)
            raise InputError(
                f'the {dataset.split} corpus is empty: no byte in {names}; check the files'
            )
        first = counts[dataset.split]
        counts[dataset.split] += len(files)
        split = _split_of(dataset, kind, tuple(files), first)
        splits.append(
            dataclasses.replace(split, keeps_dropped=keeps_dropped and bool(split.filters))
        )
        inputs += [
            CorpusInput(dataset.split, role, first + number, side, row[side].file, row[side].stored)
            for number, row in enumerate(rows)
            for side, role in enumerate(kind.roles)
        ]
    warn_of_repeated(splits)
    warn_of_nuls(found)
    weights = tuple(each.weight for each in datasets if each.split == 'train')
    return Corpus(tuple(splits), tuple(inputs), is_added=is_added, weights=weights)


def newlines_of(corpus: Corpus, checksums: Iterable[RangeChecksum]) -> list[FileNewlines]:
    """Returns the line feeds of each input, from the checksums of the ranges that were read."""
    found: list[FileNewlines] = []
    for each, ranges in _by_input(corpus, checksums):
        counts: collections.Counter[int] = collections.Counter()
        for stretch, count in itertools.chain.from_iterable(own.newlines for own in ranges):
            counts[stretch] += count
        split = split_of(corpus.splits, each.split, each.file_index)
        has_lines = split is not None and split.format.identity == 'offset'
        last = max(counts, default=-1)
        found.append(tuple(counts[at] for at in range(last + 1)) if has_lines else None)
    return found


def input_texts(corpus: Corpus, checksums: Iterable[RangeChecksum]) -> tuple[InputText, ...]:
    """Returns the manifest's inputs from the checksums of the ranges that were read.

    Raises:
        RuntimeError: a file was not read exactly once, from its first byte to its last.
    """
    texts = []
    for corpus_input, ranges in _by_input(corpus, checksums):
        length = None if corpus_input.file.compressed else corpus_input.file.size
        try:
            summary = join_checksums(ranges, length)
        except ValueError as error:
            raise RuntimeError(
                f'{corpus_input.file.path} was not read exactly once: {error}'
            ) from error
        texts.append(corpus_input.text(summary))
    return tuple(texts)


def _by_input(
    corpus: Corpus, checksums: Iterable[RangeChecksum]
) -> Iterator[tuple[CorpusInput, list[RangeChecksum]]]:
    by_file: dict[tuple[str, int, int], list[RangeChecksum]] = {}
    for checksum in checksums:
        key = checksum.split, checksum.file_index, checksum.side
        by_file.setdefault(key, []).append(checksum)
    for each in corpus.inputs:
        yield each, by_file.get((each.split, each.file_index, each.side), [])


def input_checksums(inputs: Sequence[CorpusInput]) -> Callable[[CorpusInput], InputText]:
    """Returns a function that reads an input from beginning to end, and gives its entry in the manifest.

    All members of an archive are read when the first of them is asked for. It raises InputError for an
    input that cannot be read.
    """

    @functools.cache
    def members_of(archive: CorpusFile) -> dict[CorpusInput, InputText]:
        members = [
            member
            for member in inputs
            if isinstance(member.file, MemberFile) and member.file.archive == archive
        ]
        [in_order] = in_passes(members, lambda member: (member.file,), sys.maxsize)
        files = [(member.file,) for member in in_order]
        with reading_on(filesystem.open_binary, files) as open_binary:
            return {
                member: member.text(checksum_file(member.file, open_binary)) for member in in_order
            }

    def read(corpus_input: CorpusInput) -> InputText:
        if isinstance(corpus_input.file, MemberFile):
            return members_of(corpus_input.file.archive)[corpus_input]
        return corpus_input.text(checksum_file(corpus_input.file, filesystem.open_binary))

    return read


def _most_ratio(compressed: Compression) -> int:
    if not compressed:
        return 1
    return _MOST_GZIP_RATIO if compressed is True else MOST_RATIO


def _check(
    kind: CorpusFormat, files: Sequence[tuple[CorpusFile, ...]], stated: Collection[str]
) -> None:
    """Checks the files that are read together, those of an archive in its order."""
    for rows in in_passes(files, lambda row: row, sys.maxsize):
        with reading_on(filesystem.open_binary, rows) as open_binary:
            for row in rows:
                format_reader(kind).check(row, open_binary, stated)


def _find(
    pattern: str, fetched: Mapping[str, FetchedFile], archives: ArchiveLists, content: str
) -> list[MatchedFile]:
    if pattern not in fetched:
        return find_files(pattern, archives, content)
    # A name does not depend on the work folder: it is the address, and the member if there is one.
    file = fetched[pattern]
    try:
        matches = files_at(file.path, file.member, archives, content)
    except InputError as error:
        raise InputError(
            f'{error} (it was fetched from {file.name}; delete it to fetch it again)'
        ) from error
    return [
        match.named(file.name + match.stored.path[len(file.path) :], file.sha256)
        for match in matches
    ]


def _split_of(
    dataset: SplitPaths, kind: CorpusFormat, files: tuple[tuple[CorpusFile, ...], ...], first: int
) -> Split:
    prefixes = tuple(
        dataset.source_prefix if side == 'inputs' else dataset.target_prefix for side in kind.sides
    )
    return Split(
        dataset.split,
        kind,
        files,
        dataset.dataset,
        first,
        () if set(prefixes) == {None} else prefixes,
        dataset.max_examples,
        filters=_filters(dataset, kind),
        key_range=dataset.key_range,
    )


def _filters(dataset: SplitPaths, kind: CorpusFormat) -> tuple[FilterSpec, ...]:
    if not dataset.clean:
        return ()
    try:
        filters = filter_specs(dataset.clean)
        # This also compiles their kernels, before there are workers.
        try_filters(filters, len(kind.sides))
    except InputError as error:
        raise InputError(f'{dataset.option("clean")}: {error}') from error
    return filters


def _check_numbers(dataset: SplitPaths, kind: CorpusFormat, numbers: Sequence[int]) -> None:
    for role, number in zip(kind.roles, numbers, strict=True):
        if number != numbers[0]:
            raise InputError(
                f'{dataset.option(kind.roles[0])} names {numbers[0]} files but '
                f'{dataset.option(role)} names {number}; they pair in the order given, so give as '
                'many of each'
            )


def warn_of_repeated(splits: Iterable[Split]) -> None:
    """Logs which files a split reads several times, and which of them another split reads too.

    A file is the same under all of its names. Files that are read side by side count together, since a
    source may have several targets.
    """
    identity = functools.cache(_identity)
    readers: dict[tuple[object, ...], collections.Counter[str]] = {}
    paths: dict[tuple[object, ...], str] = {}
    for split in splits:
        if split.key_range is not None and split.name != 'train':
            continue  # its share of the training corpus is rows that no other split has
        for files in split.files:
            key = (repr(split.format), *map(identity, files))
            readers.setdefault(key, collections.Counter())[split.name] += 1
            paths.setdefault(key, ' with '.join(file.path for file in files))
    twice: dict[str, list[str]] = {}
    shared: dict[tuple[str, str], list[str]] = {}
    for key, counts in readers.items():
        first, *others = counts
        for other in others:
            shared.setdefault((first, other), []).append(paths[key])
        for split_name, count in counts.items():
            if count > 1:
                twice.setdefault(split_name, []).append(paths[key])
    for split_name, repeated in twice.items():
        _LOGGER.warning(
            '%s is read more than once for %s, and each of its rows is in the result as often; name '
            'it once, if that is not wanted',
            _shown(repeated),
            split_name,
        )
    for (first, other), repeated in shared.items():
        _LOGGER.warning(
            '%s is read for %s and for %s; give other files, if these are to have no row in common',
            _shown(repeated),
            first,
            other,
        )


def _shown(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return paths[0]
    return f'each of {len(paths):,} files, the first of them {paths[0]},'


def _identity(file: CorpusFile) -> object:
    """Returns what is the same for all names of a file, and for no other file."""
    stored = file.archive if isinstance(file, MemberFile) else file
    if filesystem.is_shared(stored.path):
        return file.path
    state = os.stat(stored.path)
    return state.st_dev, state.st_ino, file.path.removeprefix(stored.path)
