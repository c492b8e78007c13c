"""Reads a corpus: work items are distributed to workers and become blocks of whole rows."""

import dataclasses
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.engines.pool import OrderedPool, in_global_window
from pipelines.engines.progress import advance
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.files.transfer import is_web_address
from pipelines.options.beam import text_without_secrets
from pipelines.transforms.stats import WriteStats
from tokcore.corpus.archive_reading import in_passes, reading_on
from tokcore.corpus.archives import ArchiveLists, archive_and_member
from tokcore.corpus.bitext import Bitext
from tokcore.corpus.corpus import (
    ITEM_BYTES,
    MAX_LINE_BYTES,
    Block,
    CorpusFile,
    OpenBinary,
    Split,
    WorkItem,
)
from tokcore.corpus.formats import index_range, index_ranges, plan_items, read_blocks
from tokcore.corpus.plain_text import PlainText
from tokcore.corpus.sampling import numbered_blocks
from tokcore.corpus.storage import compression_of
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError

READING = 'reading'
"""The work of which each item is a part, of its stored bytes."""

_GZIP_RATIO = 5
"""Of text to what is stored of it: how far a gzip file is, is a guess until its end is read."""

MOST_AHEAD = 3
"""Blocks' worth of text that a work item may have which is read ahead: a block of xz, as it is written
by default, is so large beside an item of the default size. What is larger is read as a stream."""


@dataclass(frozen=True)
class FoundFile:
    """A file of a corpus.

    Attributes:
        stored: as its filesystem lists it; of a member of an archive, size and time are those of the
            archive.
        file: as those read it that do not know where it is stored.
    """

    stored: StoredFile
    file: CorpusFile

    def named(self, name: str, sha256: str | None) -> 'FoundFile':
        """Returns it by another name, with the SHA-256 of what is stored."""
        return FoundFile(
            dataclasses.replace(self.stored, name=name, sha256=sha256),
            dataclasses.replace(self.file, name=name),
        )


def archive_lists() -> ArchiveLists:
    """Returns new lists of archives, wherever these are stored."""
    return ArchiveLists(filesystem.open_binary)


def find_files(pattern: str, archives: ArchiveLists | None = None) -> list[FoundFile]:
    """Returns the files that a path or a glob names; `a.tgz!glob` those within archives.

    Args:
        pattern: a path or a glob.
        archives: with the same ones, several calls read an archive once.

    Raises:
        InputError: there are none, or one cannot be read.
    """
    if is_web_address(pattern):
        raise InputError(
            f'{text_without_secrets(pattern)} is on the web, and nothing is fetched unless --fetch '
            'allows it; give --fetch, or fetch the file first'
        )
    named = archive_and_member(pattern)
    if named is None or filesystem.exists(pattern):
        return [FoundFile(stored, _corpus_file(stored)) for stored in filesystem.find(pattern)]
    archives = archives or archive_lists()
    paths, members = named
    return [
        FoundFile(dataclasses.replace(stored, path=member.path, name=member.name), member)
        for stored in filesystem.find(paths)
        for member in archives.find(_corpus_file(stored), members)
    ]


def _corpus_file(stored: StoredFile) -> CorpusFile:
    compressed = compression_of(stored.path, filesystem.open_binary)
    return CorpusFile(stored.path, stored.name, stored.size, compressed)


@dataclass(eq=False)
class ReadCorpus(beam.PTransform):
    """Reads the files of one split, plain or gzip, as blocks of whole lines.

    Lines of text, columns of TAB-separated lines, or pairs of lines of two files. The files are found
    when this is made; of pairs, the lines are counted then. As any transform of Beam that begins a
    pipeline, it is good for one pipeline.

    Attributes:
        paths: a path or pattern, or some; any that Beam's `FileSystems` knows.
        targets: for pairs, the files of the other side, in the same order.
        columns: for TAB-separated lines, which columns are read, from 0 on.
        split: the split's name.
        item_bytes: size of a work item, the bytes that a worker reads at a time.
        max_line_bytes: a longer line is a reject.

    Raises:
        InputError: a path that does not exist or cannot be read, or files that do not pair.
    """

    paths: str | Sequence[str]
    targets: str | Sequence[str] = ()
    columns: Sequence[int] = ()
    split: str = 'train'
    item_bytes: int = ITEM_BYTES
    max_line_bytes: int = MAX_LINE_BYTES

    def __post_init__(self):
        sources, targets = _find(self.paths), _find(self.targets)
        if targets and len(targets) != len(sources):
            raise InputError(
                f'{len(sources)} files do not pair with {len(targets)} targets; they pair in the '
                'order given, so give as many of each'
            )
        if targets and self.columns:
            raise InputError('columns are of TAB-separated lines, and pairs of files have none')
        if targets:
            split = Split(self.split, Bitext(), tuple(zip(sources, targets)))
        else:
            chosen = Tsv(tuple(self.columns)) if self.columns else PlainText()
            split = Split(self.split, chosen, tuple((each,) for each in sources))
        parts = index_ranges(split, self.item_bytes)
        with reading_on(filesystem.open_binary, [(part.file,) for part in parts]) as open_binary:
            index = [index_range(split.format, part, open_binary) for part in parts]
        self.splits = (split,)
        """What `CountTokens` and `EncodeBlocks` take as the corpus."""
        self._items = plan_items(split, index, self.item_bytes)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return root | 'ReadBlocks' >> ReadBlocks(self._items, self.item_bytes, self.max_line_bytes)


def _find(paths: str | Sequence[str]) -> tuple[CorpusFile, ...]:
    patterns = [paths] if isinstance(paths, str) else paths
    archives = archive_lists()
    return tuple(each.file for pattern in patterns for each in find_files(pattern, archives))


def read_counted(
    items: Sequence[WorkItem], block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields what `read_blocks` does of items, one after the other.

    A block is counted as work done when the next is asked for. Where the lines of an item are numbered,
    so are those of its blocks. An archive is read on from one item to the next.
    """
    with reading_on(filesystem.open_binary, [item.files for item in items]) as open_binary:
        for item in items:
            yield from _read_counted(item, open_binary, block_bytes, max_line_bytes)


@dataclass(eq=False)
class ReadBlocks(beam.PTransform):
    """Reads work items as blocks of whole rows.

    Only the items cross a shuffle, those of an archive that one worker has to read together; blocks are
    handed on within the worker that read them. Parts of
    compressed files are decompressed by threads, up to `workers` + 1 of them ahead: where nothing
    else holds up a worker, that does.

    Attributes:
        items: byte ranges of files, a few MB each.
        block_bytes: about how many bytes of a compressed stream make a block.
        max_line_bytes: a longer line is not held.
        workers: threads of a worker.
    """

    items: Sequence[WorkItem]
    block_bytes: int
    max_line_bytes: int = MAX_LINE_BYTES
    workers: int = 1

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        passes = in_passes(self.items, lambda item: item.files, self.block_bytes)
        return (
            root
            | CreateReshuffled(passes)  # (WorkItem, ...)
            | 'Read'
            >> beam.ParDo(_ReadFn(self.workers, self.block_bytes, self.max_line_bytes))  # Block
        )


def _read_counted(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    left = item.stored_bytes
    ratio = _GZIP_RATIO if item.is_compressed else 1
    blocks = read_blocks(item, open_binary, block_bytes, max_line_bytes)
    if item.first_line is not None:
        blocks = numbered_blocks(item, blocks)
    for block in blocks:
        yield block
        part = min(left, block.read_bytes // ratio)
        advance(READING, part)
        left -= part
    advance(READING, left)


class BlockCoder(beam.coders.Coder):
    """Blocks as pickled, but of a size that is told without it: Beam asks for that often."""

    def encode(self, value: Block) -> bytes:
        return pickle.dumps(value)

    def decode(self, encoded: bytes) -> Block:
        return pickle.loads(encoded)

    def estimate_size(self, value: Block) -> int:
        return value.held_bytes

    def to_type_hint(self) -> type:
        return Block


beam.coders.registry.register_coder(Block, BlockCoder)


class _ReadFn(beam.DoFn):
    def __init__(self, workers: int, block_bytes: int, max_line_bytes: int):
        self._workers = workers
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes

    def setup(self) -> None:
        self._calls: OrderedPool[list[Block]] = OrderedPool(self._workers)

    def process(self, items: tuple[WorkItem, ...]) -> Iterator[Block]:
        if all(map(self._is_read_ahead, items)):
            for blocks in self._calls.submit(self._blocks, items):
                yield from blocks
        else:
            yield from self._read(items)

    def finish_bundle(self) -> Iterator:
        for blocks in self._calls.drain():
            yield from map(in_global_window, blocks)

    def teardown(self) -> None:
        self._calls.close()

    def _is_read_ahead(self, item: WorkItem) -> bool:
        is_part = all(each.decompressed for each in item.ranges)
        is_small = item.stored_bytes <= MOST_AHEAD * self._block_bytes
        return self._workers > 1 and is_part and is_small

    def _blocks(self, items: tuple[WorkItem, ...]) -> list[Block]:
        return list(self._read(items))

    def _read(self, items: tuple[WorkItem, ...]) -> Iterator[Block]:
        return read_counted(items, self._block_bytes, self._max_line_bytes)


@dataclass(eq=False)
class CreateReshuffled(beam.PTransform):
    """`beam.Create` and a reshuffle, so that any worker may take any element.

    Attributes:
        plan: the elements; they are part of the pipeline's definition, so they must be small.
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
    """Calls a function for each element of a plan, on any worker, and reports what it gives.

    Attributes:
        plan: the elements.
        call: gives any number of instances of dataclasses, as `WriteStats` takes them.
        report: the file that they go to.
    """

    plan: Sequence
    call: Callable[[Any], Iterable[object]]
    report: str

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            root
            | CreateReshuffled(self.plan)
            | 'Call' >> beam.FlatMap(self.call)
            | 'Report' >> WriteStats(self.report)
        )
