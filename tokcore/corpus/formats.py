"""The formats by name, and what one is: how files are cut, read as blocks, and given as rows.

To add one (`tests/engines/paragraphs_format` is a whole example):

1. A module with a frozen dataclass that is a `CorpusFormat`. Its fields are the format's options;
   an instance goes with every split, work item and block, and so crosses process borders. For its
   help the command imports the module: what is heavy (kernels: anything that imports numba) is
   imported in the method that needs it.
2. Its name and where it is, as one line of `_ORIGINS` or by a call of `register` before the command
   begins.

The command then has an option for each of its `roles`. For files of lines, `line_reading` plans and
reads, and `line_rows` makes rows.
"""

import abc
import dataclasses
import functools
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    OF_ALL_FORMATS,
    Block,
    CorpusFile,
    OpenBinary,
    Reject,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.corpus.fields import ExtraField
from tokcore.corpus.line_reading import (
    BLOCK_BYTES,
    ITEM_BYTES,
    PartIndex,
    byte_ranges,
    part_indexes,
    read_lines,
)
from tokcore.text.rows import Normalizer

_ORIGINS = {
    'bitext': 'tokcore.corpus.bitext:Bitext',
    'tsv': 'tokcore.corpus.tsv:Tsv',
    'jsonl': 'tokcore.corpus.jsonl:JsonLines',
    'parquet': 'tokcore.corpus.parquet:Parquet',
    'sgm': 'tokcore.corpus.sgm:Sgm',
    'tmx': 'tokcore.corpus.tmx:Tmx',
    'tmx-lines': 'tokcore.corpus.tmx_lines:TmxLines',
    'labelled': 'tokcore.corpus.labelled:Labelled',
    'text': 'tokcore.corpus.formats:Lines',
}
"""By name, in the order of the help: the module, and the class in it."""


class CorpusFormat(abc.ABC):
    """A format with its options.

    Attributes:
        name: by which registry, fingerprints and errors know it.
        what: its files, as a list in the help tells them.
        roles: of the files that belong together at each place, one or several: an option each, and
            what manifests call such a file.
        help: of these options, in the same order.
        reasons: for which it leaves out rows, beside those of all formats.
        identity: what a row is known by: `offset`, where it begins, or `row`, its number.
        takes_any_text: whether any lines are rows of it: such a format is compiled with some.
        rows_are_lines: whether the n-th line of each of its files is a side of the n-th row, whole.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    roles: ClassVar[tuple[str, ...]]
    help: ClassVar[tuple[str, ...]]
    reasons: ClassVar[tuple[str, ...]] = ()
    identity: ClassVar[str] = 'offset'
    takes_any_text: ClassVar[bool] = True
    rows_are_lines: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def sides(self) -> tuple[str, ...]:
        """The names of the columns of its rows: `inputs` and `targets` of pairs."""

    @property
    def forbidden_characters(self) -> str:
        """Characters of ASCII that no row can have, so that no filter can make such; none by default."""
        return ''

    @property
    def extra_fields(self) -> tuple[ExtraField, ...]:
        """The fields that go along with the text; none by default."""
        return ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all that its examples hold."""
        return (*self.sides, *(each.name for each in self.extra_fields))

    @property
    def key(self) -> tuple[object, ...]:
        """Its options as plain values, for fingerprints."""
        return dataclasses.astuple(self)

    @property
    def options(self) -> dict[str, object]:
        """Its options by name, for manifests."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def check(self, files: tuple[CorpusFile, ...], open_binary: OpenBinary) -> None:
        """Looks at the files of a place before any work; nothing by default.

        Raises:
            InputError: they are none of this format, as far as their beginning or end tells.
        """

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[Any]:
        """Returns what has to be read before a split can be planned, in parts that can be pickled.

        Each has the `file` that is read, and `stored_bytes`, how much of it. Nothing by default.
        """
        return ()

    def index(self, part: Any, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Reads one of `index_ranges`; returns what `plan` is to know of it, as JSON can hold it.

        Raises:
            InputError: the file cannot be read, or is damaged.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        """Cuts a split into items of about so many bytes, in the order of places and rows.

        `index` is what `index` returned, one for each of `index_ranges`.

        Raises:
            InputError: the files do not go together.
        """

    @abc.abstractmethod
    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        """Yields an item's blocks in the order of rows, as `read_blocks` says."""

    def first_block(
        self,
        split: Split,
        place: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        """Returns the first block of a place, read without an index; None if there is none.

        Raises InputError as `read_blocks` does.
        """
        ranges = tuple(
            TextRange(file, 0, file.size if file.is_stream else min(file.size, block_bytes))
            for file in split.files_at(place)
        )
        item = WorkItem(split.name, self, place, ranges)
        return next(iter(self.read(item, open_binary, block_bytes, max_line_bytes)), None)

    @abc.abstractmethod
    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns a block's rows, each with what it is known by: where it begins, or its number.

        The normalizer is given the bytes of rows as they were read, whatever is in them.
        """

    def explain(self, reject: Reject) -> str:
        """Returns what an error says of a row left out for one of its own `reasons`.

        It follows the file's name, and tells the place, what is wrong and what helps.
        """
        raise NotImplementedError


class LinesOfOneFile(CorpusFormat):
    """A format whose rows are lines of one file each, wherever it is cut."""

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[PartIndex]:
        return part_indexes(split, item_bytes)

    def index(self, part: PartIndex, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Returns where a compressed file can be cut, in bytes of its text."""
        return part.cuts(open_binary)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        return byte_ranges(split, item_bytes, index)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        return read_lines(item, open_binary, block_bytes, max_line_bytes)


@dataclass(frozen=True)
class Lines(LinesOfOneFile):
    """Rows of one side."""

    name = 'text'
    what = 'plain lines'
    roles = ('text',)
    help = ('text without a source side',)
    sides = ('targets',)
    forbidden_characters = '\n'
    rows_are_lines = True

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.line_rows import long_rows, text_rows

        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        [text] = block.texts
        return text_rows(text.data, text.offset, normalizer, block.max_line_bytes)


def format_names() -> tuple[str, ...]:
    """Returns the names of all formats."""
    return tuple(_ORIGINS)


def corpus_format(name: str) -> type[CorpusFormat]:
    """Returns a format: called with its options it gives what a `Split` takes.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in _ORIGINS:
        raise ValueError(f'format {name!r} is none of {", ".join(_ORIGINS)}')
    return _loaded(_ORIGINS[name])


def all_formats() -> tuple[type[CorpusFormat], ...]:
    """Returns all formats."""
    return tuple(map(corpus_format, _ORIGINS))


def all_reasons() -> tuple[str, ...]:
    """Returns for which reasons lines may be left out, in alphabetical order."""
    of_formats = {reason for each in all_formats() for reason in each.reasons}
    return tuple(sorted({*OF_ALL_FORMATS, *of_formats}))


def register(name: str, origin: str) -> None:
    """Adds a format, `register('paragraphs', 'package.module:Paragraphs')`.

    It holds for this process; in those of other workers its module must be importable.
    """
    _ORIGINS[name] = origin


@functools.cache
def _loaded(origin: str) -> type[CorpusFormat]:
    module, _, attribute = origin.partition(':')
    return getattr(importlib.import_module(module), attribute)


def index_ranges(split: Split, item_bytes: int) -> Sequence[Any]:
    """Returns what has to be read before a split can be planned.

    Raises:
        ValueError: `item_bytes` is below 1.
    """
    if item_bytes < 1:
        raise ValueError(f'item_bytes must be at least 1, not {item_bytes}')
    return split.format.index_ranges(split, item_bytes)


def plan_items(
    split: Split, index: Sequence[tuple[Any, ...]] = (), item_bytes: int = ITEM_BYTES
) -> list[WorkItem]:
    """Cuts a split into work items, in the order of places and rows.

    Args:
        split: the files.
        index: what is known of each of `index_ranges`, with the same `item_bytes`.
        item_bytes: each file's share of an item is of no more bytes, unless it is one row.

    Raises:
        InputError: files that belong together have different numbers of lines.
        ValueError: `item_bytes` is below 1, or the index is not that of the split's files.
    """
    if item_bytes < 1:
        raise ValueError(f'item_bytes must be at least 1, not {item_bytes}')
    return split.format.plan(split, index, item_bytes)


def read_blocks(
    item: WorkItem,
    open_binary: OpenBinary,
    block_bytes: int = BLOCK_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Block]:
    """Yields a work item's blocks in the order of rows.

    The blocks of all items hold every byte of a file once, whatever the items' size. A plain item
    is one block, or none if no row starts in it. A gzip file gives blocks of as few rows as reach
    `block_bytes` (for a pair: on one side or the other). A line of more than `max_line_bytes` bytes
    that a block has no room for is a block of its own and not held; to find others is for
    `block_rows`.

    Raises:
        InputError: a file cannot be read, has changed since it was planned, is a gzip file cut off
            or damaged, or has another number of lines than the other file of its pair.
        ValueError: `block_bytes` or `max_line_bytes` is below 1.
    """
    if min(block_bytes, max_line_bytes) < 1:
        raise ValueError(
            'block_bytes and max_line_bytes must be at least 1, not '
            f'{block_bytes} and {max_line_bytes}'
        )
    return item.format.read(item, open_binary, block_bytes, max_line_bytes)


def block_rows(block: Block, normalizer: Normalizer) -> Rows:
    """Returns a block's rows: by its format, as text by the normalizer."""
    return block.format.rows(block, normalizer)
