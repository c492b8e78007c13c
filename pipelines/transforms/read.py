"""Reads a corpus: work items are distributed to the workers, which yield blocks of whole rows."""

import argparse
import contextlib
import dataclasses
import functools
import itertools
import logging
import os
import pickle
import sys
import typing
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import apache_beam as beam

from pipelines.engines.pool import OrderedPool, in_global_window
from pipelines.engines.progress import BYTES, COMPRESSED_BYTES, advance
from pipelines.engines.work_reports import work_reports
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.files.transfer import is_web_address
from pipelines.options.beam import text_without_secrets
from pipelines.transforms.stats import WriteStats
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.archives import (
    ArchiveLists,
    archive_and_member,
    archive_file,
    some_members,
)
from tokcore.corpus.contents import TEXT, Look, refuse
from tokcore.corpus.corpus import (
    ITEM_BYTES,
    MAX_LINE_BYTES,
    Block,
    CorpusFile,
    MemberFile,
    OpenBinary,
    Split,
    WorkItem,
)
from tokcore.corpus.formats import (
    CorpusFormat,
    corpus_format,
    format_names,
    format_reader,
    index_ranges,
    plan_items,
    read_blocks,
)
from tokcore.corpus.looks import inside
from tokcore.counts.sampling import number_blocks
from tokcore.errors import InputError
from tokcore.filters.registry import filter_list, filter_specs, try_filters
from tokcore.keywords import keyword_fields, nearest
from tokcore.options import shown

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from tokcore.keyword_types import FormatKeywords

Path = str | os.PathLike
Paths = Path | Sequence[Path]

_LOGGER = logging.getLogger(__name__)

READING = 'reading'
"""The name of this work for the progress bar, which counts the stored bytes of items."""

MOST_AHEAD = 3
"""The most blocks of text that an item may have to be read ahead. An xz block, as `xz` writes it by
default, is that large next to an item of the default size. A larger item is read as a stream."""


_LAST_LINE_BYTES = 66 << 10
"""In which most lines end that begin in a range; they are looked for 64 KiB at a time."""


class ReadCorpus(beam.PTransform):
    """Reads the files of one split as blocks of whole rows, in any format of the command.

    Files may be compressed, and may be members of archives. They are listed when this is
    constructed, and for pairs their lines are counted then. Like every root transform of Beam it
    can be applied once. The result is a PCollection of `Block`; `CountTokens` and `EncodeBlocks`
    take it, and find the corpus that it is of in its `splits`.

    Attributes:
        splits: the corpus, as `CountTokens` and `EncodeBlocks` take it.

    Examples:
        >>> pairs = pipelines.ReadCorpus('train.en', 'train.zh')
        >>> columns = pipelines.ReadCorpus('pairs.tsv', format='tsv', columns=[0, 1])
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     _ = pipeline | pairs | beam.combiners.Count.Globally() | beam.Map(print)
        1
    """

    def __init__(
        self,
        paths: Paths,
        targets: Paths = (),
        *,
        format: str | None = None,
        split: str = 'train',
        clean: str | Sequence[str] = (),
        item_bytes: int = ITEM_BYTES,
        max_line_bytes: int = MAX_LINE_BYTES,
        **options: 'Unpack[FormatKeywords]',
    ):
        """Finds the files.

        Args:
            paths: one or more paths or globs, of any filesystem that Beam knows.
            targets: for formats of two files, the files of the other side, in the same order: of
                `bitext` and `sgm` the target side, of `labelled` the labels.
            format: its name; by default `bitext` if there are targets, `tsv` if there are columns,
                and else `text`.
            split: the split's name.
            clean: filters of the rows, as `length:1:200`, in the order in which they act.
            item_bytes: the size of a work item, which one worker reads.
            max_line_bytes: a longer line is rejected.
            options: of the format, as the command has them: `fields`, `columns`, `languages`, ...

        Raises:
            InputError: a path that does not exist or cannot be read, files that do not pair, an
                unknown format, or a value that an option or a filter cannot have.
            TypeError: the format has no such option, or it has a value of another type.
        """
        super().__init__()
        if min(item_bytes, max_line_bytes) < 1:
            raise ValueError('item_bytes and max_line_bytes must be at least 1')
        declaration = _declaration(format, bool(targets), options)
        of_files = _split(split, declaration, (paths, targets), clean)
        self.splits = (dataclasses.replace(of_files, max_line_bytes=max_line_bytes),)
        self._item_bytes, self._max_line_bytes = item_bytes, max_line_bytes
        parts = index_ranges(self.splits[0], item_bytes)
        with reading_on(filesystem.open_binary, [(part.file,) for part in parts]) as open_binary:
            index = [format_reader(declaration).index(part, open_binary) for part in parts]
        self._items = plan_items(self.splits[0], index, item_bytes)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        reading = ReadBlocks(self._items, self._item_bytes, self._max_line_bytes)
        return of_splits(root | 'ReadBlocks' >> reading, self.splits)


def of_splits(elements: beam.PCollection, splits: Sequence[Split]) -> beam.PCollection:
    """Notes at a PCollection of which corpus it is, for the transforms that are applied to it."""
    elements.splits = tuple(splits)  # type: ignore[attr-defined]
    return elements


def splits_of(
    elements: beam.PCollection, asked: Sequence[Split] | None, call: str
) -> tuple[Split, ...]:
    """Returns the corpus that a call names, or else the one that is noted at a PCollection.

    Raises:
        TypeError: neither; `call` is the name of the transform.
        InputError: files of one split have the same file index, so that rows have no file of their own.
    """
    splits = getattr(elements, 'splits', None) if asked is None else asked
    if splits is None:
        raise TypeError(
            f'{call} is not applied to the output of ReadCorpus itself, which says of what corpus '
            'the blocks are; give splits=, the `splits` of each ReadCorpus, added up'
        )
    ends: dict[str, int] = {}
    for split in splits:
        if split.first_file_index < ends.get(split.name, 0):
            raise InputError(
                f'{call}: several ReadCorpus read the split {split.name}, so the rows of one would be '
                'taken for those of another; give one ReadCorpus all paths, or each another split='
            )
        ends[split.name] = split.file_indexes.stop
    return tuple(splits)


def check_sides(sides: Iterable[int], splits: Sequence[Split], call: str) -> None:
    """Raises InputError if the rows of a split do not have some of the sides."""
    for split, side in itertools.product(splits, sides):
        names = split.format.sides
        if not 0 <= side < len(names):
            raise InputError(
                f'{call} takes side {side}, and rows of {split.name} have the sides '
                f'{" and ".join(f"{number} ({name})" for number, name in enumerate(names))}; give those'
            )


def checked_output(path: Path, kind: Callable[[str], str], call: str) -> str:
    """Returns an absolute path to write to; raises InputError if it cannot be one of this kind."""
    try:
        return filesystem.absolute(kind(os.fspath(path)))
    except argparse.ArgumentTypeError as error:
        raise InputError(f'{call}: {error}') from None


def _declaration(
    name: str | None, has_targets: bool, options: Mapping[str, object]
) -> CorpusFormat:
    """Returns a format with its options, by default the one that the arguments imply."""
    if name is None:
        name = 'bitext' if has_targets else 'tsv' if 'columns' in options else 'text'
    if name not in format_names():
        raise InputError(f'there is no format {shown(str(name))}; {nearest(name, format_names())}')
    kind = corpus_format(name)
    if has_targets != (len(kind.roles) > 1):
        raise InputError(
            f'the format {name} has files of {" and ".join(kind.roles)}: give '
            f'{"targets" if len(kind.roles) > 1 else "paths only"}'
        )
    return kind(**keyword_fields(kind, options, f'the format {name}'))


def _split(
    name: str,
    declaration: CorpusFormat,
    paths: tuple[Paths, Paths],
    clean: str | Sequence[str],
) -> Split:
    archives = archive_lists()
    matches = [
        [
            match
            for pattern in ([patterns] if isinstance(patterns, (str, os.PathLike)) else patterns)
            for match in find_files(os.fspath(pattern), archives, declaration.content)
        ]
        for patterns in paths[: len(declaration.roles)]
    ]
    by_role = [[match.file for match in of_role] for of_role in matches]
    sources, *others = by_role
    if not sources:
        raise InputError('ReadCorpus has no paths; give at least one')
    if others and len(others[0]) != len(sources):
        raise InputError(
            f'{len(sources)} files do not pair with {len(others[0])} targets; they pair in the '
            'order given, so give as many of each'
        )
    files = tuple(zip(*by_role, strict=True))
    for rows in in_passes(files, lambda row: row, sys.maxsize):
        with reading_on(filesystem.open_binary, rows) as open_binary:
            for row in rows:
                format_reader(declaration).check(row, open_binary)
    try:
        names = filter_list(clean if isinstance(clean, str) else ','.join(clean))
    except argparse.ArgumentTypeError as error:
        raise InputError(f'ReadCorpus: clean: {error}') from None
    filters = filter_specs(list(names))
    try_filters(filters, len(declaration.sides))
    warn_of_nuls([match for of_role in matches for match in of_role])
    return Split(name, declaration, files, filters=filters)


@dataclass(eq=False)
class ReadBlocks(beam.PTransform):
    """Reads work items as blocks of whole rows.

    Only items cross a shuffle; blocks stay in the worker that reads them. The items of an archive
    that has to be read from its beginning go to one worker together. Up to `workers` + 1 parts of
    compressed files are decompressed ahead by threads, where nothing else delays a worker.

    Attributes:
        items: byte ranges of files, a few MB each.
        block_bytes: the approximate size of a block of a compressed stream.
        max_line_bytes: a longer line is rejected, and only its beginning is kept.
        workers: threads of a worker process.

    Raises:
        ValueError: sizes or workers below 1.
    """

    items: Sequence[WorkItem]
    block_bytes: int
    max_line_bytes: int = MAX_LINE_BYTES
    workers: int = 1

    def __post_init__(self):
        if min(self.block_bytes, self.max_line_bytes, self.workers) < 1:
            raise ValueError('block_bytes, max_line_bytes and workers must be at least 1')

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        passes = in_passes(self.items, lambda item: item.files, self.block_bytes)
        reading = beam.ParDo(_ReadFn(self.workers, self.block_bytes, self.max_line_bytes))
        return (
            root
            | CreateReshuffled([_Pass(items) for items in passes])  # _Pass
            | 'Read' >> reading  # Block
        )


@dataclass(frozen=True)
class _Pass:
    """Items that one worker reads, as an element whose size Beam finds at once.

    A tuple is pickled item by item for that, and there may be thousands.
    """

    items: tuple[WorkItem, ...]


class _ReadFn(beam.DoFn):
    """Reads the items of one pass after another; reads small parts of compressed files ahead."""

    def __init__(self, workers: int, block_bytes: int, max_line_bytes: int):
        self._workers = workers
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes
        self._reports = work_reports()

    def setup(self) -> None:
        self._reports.begin()
        self._pool: OrderedPool[list[Block]] = OrderedPool(self._workers)

    def process(self, element: _Pass) -> Iterator[Block]:
        read = functools.partial(read_items, element.items, self._block_bytes, self._max_line_bytes)
        is_read_ahead = self._workers > 1 and all(
            part.packed_bytes is not None
            and part.end - part.start <= MOST_AHEAD * self._block_bytes
            for item in element.items
            for part in item.ranges
        )
        if is_read_ahead:
            for blocks in self._pool.submit(lambda: list(read())):
                yield from blocks
        else:
            yield from read()

    def finish_bundle(self) -> Iterator:
        for blocks in self._pool.drain():
            yield from map(in_global_window, blocks)

    def teardown(self) -> None:
        self._pool.close()


def read_items(items: Sequence[WorkItem], block_bytes: int, max_line_bytes: int) -> Iterator[Block]:
    """Yields the blocks of items, one item after another, and counts them as work done.

    A block counts as done when the next one is requested, and what is read of a compressed file when it
    is read. If the lines of an item are numbered, its blocks have line numbers too. An archive stays
    open from one item to the next.
    """
    files = [item.files for item in items]
    # A store is asked at once for a range of lines with the end of its last one.
    range_bytes = max(
        (byte_range.end - byte_range.start for item in items for byte_range in item.ranges),
        default=0,
    )
    sizes: dict[str, int] = {}
    for file in itertools.chain.from_iterable(files):
        stored = file.archive if isinstance(file, MemberFile) else file
        sizes[stored.path] = stored.size
    opener = filesystem.opener(sizes, range_bytes + _LAST_LINE_BYTES)
    reads = CountedReads(opener, READING)
    if any(item.is_compressed for item in items):
        opener = reads.open_binary
    with reading_on(opener, files) as open_binary:
        for item in items:
            blocks = read_blocks(item, open_binary, block_bytes, max_line_bytes)
            if item.first_line is not None:
                blocks = number_blocks(item, blocks)
            with reads.part(item.stored_bytes):
                for block in blocks:
                    yield block
                    if not item.is_compressed:
                        reads.take(block.read_bytes)


def bytes_unit(files: Iterable[CorpusFile]) -> str:
    """Returns the unit of the stored bytes of files, for the progress bar."""
    return COMPRESSED_BYTES if any(file.compressed for file in files) else BYTES


class CountedReads:
    """Opens files, and counts the stored bytes that are read of them, perhaps as work.

    Attributes:
        bytes: those so far.
    """

    def __init__(self, open_binary: OpenBinary, work: str = ''):
        self._open_binary, self._work = open_binary, work
        self._left = self.bytes = 0

    def open_binary(self, path: str) -> BinaryIO:
        return _CountedFile(self._open_binary(path), self)  # type: ignore[return-value]

    @contextlib.contextmanager
    def part(self, size: int) -> Iterator[None]:
        """Counts what the block reads as so much of the work, all of which is done at its end."""
        self._left = size
        yield
        self.take(size)

    def take(self, size: int) -> None:
        """Counts bytes that are read."""
        self.bytes += size
        done = min(size, self._left)
        self._left -= done
        advance(self._work, done)


class _CountedFile:
    """A file of which reads are counted; all else is as the file has it."""

    def __init__(self, file: BinaryIO, reads: CountedReads):
        self._file, self._reads = file, reads

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._reads.take(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> '_CountedFile':
        return self

    def __exit__(self, *_) -> None:
        self._file.close()


class BlockCoder(beam.coders.Coder):
    """Pickles blocks, and estimates their size without that: Beam asks for the size often."""

    def encode(self, value: Block) -> bytes:
        return pickle.dumps(value)

    def decode(self, encoded: bytes) -> Block:
        return pickle.loads(encoded)

    def estimate_size(self, value: Block) -> int:
        return value.held_bytes

    def to_type_hint(self) -> type:
        return Block


beam.coders.registry.register_coder(Block, BlockCoder)


@dataclass(eq=False)
class CreateReshuffled(beam.PTransform):
    """Creates a PCollection whose elements any worker may process: `beam.Create` and a reshuffle.

    The elements are part of the pipeline's definition, so they must be small.
    """

    plan: Sequence

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        # Beam pickles and compresses what it creates several times, and by bzip2. An element that is
        # compressed already costs it little; ten thousand files of a corpus cost seconds otherwise.
        packed = [zlib.compress(pickle.dumps(element), level=1) for element in self.plan]
        return (
            root
            | 'Create' >> beam.Create(packed, reshuffle=False).with_output_types(bytes)
            | 'Reshuffle' >> beam.Reshuffle()
            | 'Unpack' >> beam.Map(_unpack).with_output_types(Any)
        )


def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


@dataclass(eq=False)
class MapToStats(beam.PTransform):
    """Calls a function for each element of a plan, on any worker, and writes the results to a file.

    The function returns any number of rows, as `WriteStats` takes them.
    """

    plan: Sequence
    function: Callable[[Any], Iterable[object]]
    path: str

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | CreateReshuffled(self.plan)
            | 'Call' >> beam.ParDo(_CallFn(self.function))
            | 'WriteStats' >> WriteStats(self.path)
        )


class _CallFn(beam.DoFn):
    """Calls a function that may count work."""

    def __init__(self, function: Callable[[Any], Iterable[object]]):
        self._function, self._reports = function, work_reports()

    def setup(self) -> None:
        self._reports.begin()

    def process(self, element: Any) -> Iterable[object]:
        return self._function(element)


@dataclass(frozen=True)
class MatchedFile:
    """A file of the corpus that a path or a glob matches.

    Attributes:
        stored: the file as its filesystem lists it; for a member of an archive, with the size and
            the time of the archive.
        file: the file as the readers of formats know it, wherever it is stored.
        look: what its beginning shows.
    """

    stored: StoredFile
    file: CorpusFile
    look: Look = Look()

    def named(self, name: str, sha256: str | None) -> 'MatchedFile':
        """Returns the file with another name, and with the SHA-256 of what is stored."""
        return MatchedFile(
            dataclasses.replace(self.stored, name=name, sha256=sha256),
            dataclasses.replace(self.file, name=name),
            self.look,
        )


def find_files(
    pattern: str, archives: ArchiveLists | None = None, content: str = TEXT
) -> list[MatchedFile]:
    """Returns the files that a path or a glob matches; `a.tgz!glob` matches members of archives.

    `content` is what the format reads, `CorpusFormat.content`.

    Raises:
        InputError: there are none, or one cannot be read, or is of another content.
    """
    if is_web_address(pattern):
        raise InputError(
            f'{text_without_secrets(pattern)} is on the web, and only the command and its calls fetch '
            'files; fetch it first'
        )
    archives = archives or archive_lists()
    named = None
    if '!' in pattern and not filesystem.exists(pattern):
        named = archive_and_member(
            pattern,
            lambda path: not filesystem.has_folder_at(path) and bool(filesystem.find_any(path)),
        )
    path, members = named or (pattern, None)
    return files_at(path, members, archives, content)


def files_at(
    pattern: str, members: str | None, archives: ArchiveLists, content: str
) -> list[MatchedFile]:
    """Returns what `find_files` does for a pattern of files, or a pattern of members of archives."""
    return [
        match
        for stored in filesystem.find(pattern)
        for match in (
            [_plain_file(stored, archives, content)]
            if members is None
            else _members(stored, members, archives, content)
        )
    ]


def _plain_file(stored: StoredFile, archives: ArchiveLists, content: str) -> MatchedFile:
    seen = archives.looks.at(stored.path)
    members: list[str] = []
    if seen.content is not None:
        archive = archive_file(stored.path, stored.name, stored.size, seen)
        members = some_members(archive, filesystem.open_binary) if archive is not None else []
    refuse(stored.path, seen, content, members)
    file = CorpusFile(stored.path, stored.name, stored.size, seen.compression)
    return MatchedFile(stored, file, seen)


def _members(
    stored: StoredFile, members: str, archives: ArchiveLists, content: str
) -> list[MatchedFile]:
    seen = archives.looks.at(stored.path, is_needed=True)
    archive = archive_file(stored.path, stored.name, stored.size, seen)
    if archive is None:
        refuse(stored.path, seen)
        raise InputError(
            f'{stored.path} is text and not an archive, so it has no member {members!r}; give the file '
            'itself'
        )
    found = []
    for member, look in archives.find(archive, members):
        refuse(member.path, look, content, inside=inside(member))
        of_member = dataclasses.replace(stored, path=member.path, name=member.name)
        found.append(MatchedFile(of_member, member, look))
    return found


def warn_of_nuls(files: Sequence[MatchedFile]) -> None:
    """Logs a warning if texts have NUL bytes, as some crawls do: few enough to be text."""
    with_nuls = [each for each in files if each.look.nuls and not each.look.encoding]
    if with_nuls:
        first, *others = with_nuls
        _LOGGER.warning(
            '%s has NUL bytes, %d among the first %d bytes of its text%s; they stay in its rows',
            first.file.path,
            first.look.nuls,
            first.look.size,
            f', and {len(others):,} more files have some' if others else '',
        )


def archive_lists() -> ArchiveLists:
    """Returns empty lists of archives, which are read from any filesystem that Beam knows."""
    return ArchiveLists(filesystem.open_binary)
