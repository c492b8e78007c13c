"""The formats by name, and what one consists of.

A format is a declaration and a reader. The declaration (`declarations.py`) is a frozen dataclass of
the options, with names, sides and reasons. `--help` imports it, so it imports neither numpy nor
kernels, and it is sent to other processes with each split, work item and block. The reader (such as
`tsv_reading.py`) cuts files into work items, reads blocks and makes rows of them; `format_reader`
imports it when the first file is read. A format that needs nothing heavy may be both in one class.

To add a format, name its declaration in `_FORMATS`, or call `register` before the command begins;
`tests/engines/paragraphs_format` is a whole example. The command then has an option for each role.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import importlib
import re
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tokcore.corpus.corpus import (
    BLOCK_BYTES,
    ITEM_BYTES,
    MAX_LINE_BYTES,
    OF_ALL_FORMATS,
    Block,
    CorpusFile,
    CorpusFormat,
    OpenBinary,
    Rows,
    Split,
    TextRange,
    WorkItem,
)
from tokcore.text.rows import Normalizer

if typing.TYPE_CHECKING:
    import numpy as np

    from tokcore.corpus.stretches import FileLines

_FORMATS = {
    'bitext': 'tokcore.corpus.declarations:Bitext',
    'tsv': 'tokcore.corpus.declarations:Tsv',
    'jsonl': 'tokcore.corpus.declarations:JsonLines',
    'parquet': 'tokcore.corpus.declarations:Parquet',
    'sgm': 'tokcore.corpus.declarations:Sgm',
    'tmx': 'tokcore.corpus.declarations:Tmx',
    'tmx-lines': 'tokcore.corpus.declarations:TmxLines',
    'labelled': 'tokcore.corpus.declarations:Labelled',
    'text': 'tokcore.corpus.declarations:PlainText',
}
"""The module and class of each declaration, in the order of the help."""

_AFTER_ENDING = r'(\.(gz|bz2|xz|zst))?(#sha256=[0-9A-Fa-f]{64})?$'


class FormatReader(abc.ABC):
    """Checks, cuts and reads the files of a format, and makes rows of their blocks.

    Attributes:
        may_be_utf_16: whether files in UTF-16 are read too; offsets of their rows are those in UTF-8.
    """

    may_be_utf_16 = False

    def __init__(self, format: CorpusFormat):
        self.format: Any = format

    @property
    def rows_are_of_lines(self) -> bool:
        """Whether a row depends on its line of one file alone, wherever that is; no by default.

        Then the lines of several small files may be made rows together.
        """
        return False

    def check(  # noqa: B027
        self,
        files: tuple[CorpusFile, ...],
        open_binary: OpenBinary,
        stated: Collection[str] | None = None,
    ) -> None:
        """Checks files that are read side by side, before any work; does nothing by default.

        Args:
            files: a file for each role.
            open_binary: opens files.
            stated: options of the format that the user states, by their fields; None: it is not known.

        Raises:
            InputError: their beginning or end shows that they are not of this format.
        """

    def index_ranges(self, split: Split, item_bytes: int) -> Sequence[Any]:
        """Returns the ranges that must be indexed before a split can be cut; none by default.

        They can be pickled. Each has a `file`, and `stored_bytes`, how much of it is read.
        """
        return ()

    def index(self, part: Any, open_binary: OpenBinary) -> tuple[Any, ...]:
        """Reads one of `index_ranges`; returns its index, of values that JSON can hold.

        Raises:
            InputError: the file cannot be read, or is damaged.
        """
        raise NotImplementedError

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        """Cuts a split into items of about `item_bytes`, in the order of files and rows.

        By default each file is an item, for formats whose files cannot be cut. `index` has the
        result of `index` for each of `index_ranges`.

        Raises:
            InputError: files that are read side by side do not match.
        """
        return [
            WorkItem(split.name, split.format, file_index, (TextRange(file, 0, file.size),))
            for file_index, (file,) in zip(split.file_indexes, split.files, strict=True)
        ]

    def beginning(self, item: WorkItem, size: int) -> WorkItem:
        """Returns an item of about the first `size` bytes of another; by default all of it."""
        return item

    @abc.abstractmethod
    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        """Yields an item's blocks in the order of rows; see `read_blocks`."""

    def first_block(
        self,
        split: Split,
        file_index: int,
        open_binary: OpenBinary,
        block_bytes: int,
        max_line_bytes: int,
    ) -> Block | None:
        """Returns the first block of a file, read without an index; None if there is none.

        Raises InputError as `read_blocks`.
        """
        ranges = tuple(
            TextRange(file, 0, file.size if file.is_stream else min(file.size, block_bytes))
            for file in split.files_at(file_index)
        )
        item = WorkItem(split.name, split.format, file_index, ranges)
        return next(iter(self.read(item, open_binary, block_bytes, max_line_bytes)), None)

    def explain_empty(self, files: Sequence[CorpusFile], open_binary: OpenBinary) -> str:
        """Returns the end of an error about files without any row: what they have, and what to do."""
        return 'check the files and the columns'

    def items_at(self, whole: WorkItem, offsets: np.ndarray, lines: FileLines) -> list[WorkItem]:
        """Returns items that have rows of a file and few others; of text, their lines are numbered.

        By default all of the file is read, for formats where rows depend on what is before them.

        Args:
            whole: the item of all of the file, or of the files that are read side by side.
            offsets: int64[n], ascending: where rows begin, or their numbers.
            lines: of each of the files.
        """
        return [dataclasses.replace(whole, first_line=0)]

    def bounds_of_units(self, block: Block) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the offsets of what may be rows of several lines, and where each ends: int64[n] each.

        None if each row is on one line of its (first) file.
        """
        return None

    @abc.abstractmethod
    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns a block's rows.

        The normalizer gets the bytes of each row as they are in the file, valid text or not.
        """


def format_names() -> tuple[str, ...]:
    """Returns the names of all formats."""
    return tuple(_FORMATS)


def corpus_format(name: str) -> type[CorpusFormat]:
    """Returns the declaration of a format; an instance, made of its options, is for a `Split`.

    Raises:
        ValueError: there is no such format.
    """
    if name not in _FORMATS:
        raise ValueError(f'format {name!r} is not one of {", ".join(_FORMATS)}')
    return _import(_FORMATS[name])


def all_formats() -> tuple[type[CorpusFormat], ...]:
    """Returns the declarations of all formats."""
    return tuple(map(corpus_format, _FORMATS))


def format_of_files(paths: Mapping[str, Sequence[str]]) -> type[CorpusFormat] | None:
    """Returns the format whose files are named by role; None if no format has these roles.

    >>> format_of_files({'source': ['a.en'], 'target': ['a.de']}).name
    'bitext'
    >>> format_of_files({'source': ['dev.tgz!a.en.sgm'], 'target': ['a.de.sgm.gz']}).name
    'sgm'
    """
    kinds = [
        kind
        for kind in all_formats()
        if set(kind.roles) == set(paths) and not kind.is_in_job_files_only
    ]
    names = [re.sub(_AFTER_ENDING, '', path) for of_role in paths.values() for path in of_role]
    for kind in kinds:
        if kind.endings and any(name.endswith(kind.endings) for name in names):
            return kind
    return next((kind for kind in kinds if not kind.endings), None)


def all_reasons() -> tuple[str, ...]:
    """Returns all reasons for which lines may be left out, in alphabetical order."""
    of_formats = {reason for declaration in all_formats() for reason in declaration.reasons}
    return tuple(sorted({*OF_ALL_FORMATS, *of_formats}))


def register(name: str, origin: str) -> None:
    """Adds a format to this process: `register('paragraphs', 'package.module:Paragraphs')`.

    Other workers must be able to import the module.
    """
    _FORMATS[name] = origin


def format_reader(declaration: CorpusFormat) -> FormatReader:
    """Returns the reader of a format, whose module is imported at the first call."""
    if isinstance(declaration, CorpusFormat) and declaration.reader:
        return _import(declaration.reader)(declaration)
    assert isinstance(declaration, FormatReader)
    return declaration


@functools.cache
def _import(origin: str) -> Any:
    module, _, attribute = origin.partition(':')
    return getattr(importlib.import_module(module), attribute)


def index_ranges(split: Split, item_bytes: int) -> Sequence[Any]:
    """Returns the ranges that must be indexed before a split can be cut; many splits have none.

    Raises:
        ValueError: `item_bytes` is below 1.
    """
    if item_bytes < 1:
        raise ValueError(f'item_bytes must be at least 1, not {item_bytes}')
    return format_reader(split.format).index_ranges(split, item_bytes)


def plan_items(
    split: Split, index: Sequence[tuple[Any, ...]] = (), item_bytes: int = ITEM_BYTES
) -> list[WorkItem]:
    """Cuts a split into work items, in the order of files and rows.

    Args:
        split: the files.
        index: the index of each of `index_ranges`, made with the same `item_bytes`.
        item_bytes: no file's range in an item is longer, unless it is a single row.

    Raises:
        InputError: files that are read side by side have different numbers of lines.
        ValueError: `item_bytes` is below 1, or the index is not that of the split's files.
    """
    if item_bytes < 1:
        raise ValueError(f'item_bytes must be at least 1, not {item_bytes}')
    return format_reader(split.format).plan(split, index, item_bytes)


def read_blocks(
    item: WorkItem,
    open_binary: OpenBinary,
    block_bytes: int = BLOCK_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Block]:
    """Yields a work item's blocks in the order of rows.

    The blocks of all items hold each byte of a file once, whatever the size of the items. An item
    of an uncompressed file is one block, or none if no row starts in it. A compressed file is cut
    into blocks of as few rows as reach `block_bytes` (on either side of a pair). A line of more than
    `max_line_bytes` bytes that does not fit in a block is a block of its own, without the line's
    bytes; `block_rows` finds the others.

    Raises:
        InputError: a file cannot be read, has changed since the job was planned, is compressed and
            cut off or damaged, or has another number of lines than the other file of its pair.
        ValueError: `block_bytes` or `max_line_bytes` is below 1.
    """
    if min(block_bytes, max_line_bytes) < 1:
        raise ValueError(
            'block_bytes and max_line_bytes must be at least 1, not '
            f'{block_bytes} and {max_line_bytes}'
        )
    return format_reader(item.format).read(item, open_binary, block_bytes, max_line_bytes)


def block_rows(block: Block, normalizer: Normalizer) -> Rows:
    """Returns a block's rows, as its format finds them and the normalizer makes text of them."""
    return format_reader(block.format).rows(block, normalizer)
