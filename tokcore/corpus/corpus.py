"""What a corpus consists of, and the pieces in which it is read.

A split (train, dev, test) has files; its files are cut into work items, of which only places and
sizes are known; reading an item gives blocks, and a format makes rows of a block. All of these
cross process borders, so they are frozen and hold plain values.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import BinaryIO, Literal, Protocol

from tokcore.text.rows import Side

if typing.TYPE_CHECKING:
    import numpy as np

OpenBinary = Callable[[str], BinaryIO]
"""Opens a path for reading: a seekable file of the bytes as they are stored, not decompressed."""

OnError = Literal['stop', 'skip']
"""What happens where a line cannot be used."""

MAX_LINE_BYTES = 16 << 20
"""The longest line that is read, if nothing else is asked for. A line is held as a whole with its
ids and its record: at this size in up to 256 MiB, as much as the shuffle's buffer. Half would
refuse documents that are text; twice would make small machines fail at what is mostly none."""

OUTSIDE_SEGMENT = 'outside_segment'
"""The line has text, and that in no segment."""

INVALID_UTF8, TOO_LONG = 'invalid_utf8', 'too_long'
"""Why a row of any format may be left out. A format may have reasons of its own."""

UNSTORABLE_TOKEN = 'unstorable_token'
"""A token of it cannot be an entry of the vocabulary that is to be learned."""

FILTER_TOO_LONG, FILTER_NO_ROW = 'filter_too_long', 'filter_no_row'
"""A filter made more of it than a row may have, or what cannot be a row."""

OF_ALL_FORMATS = (INVALID_UTF8, TOO_LONG, UNSTORABLE_TOKEN, FILTER_TOO_LONG, FILTER_NO_ROW)

MISSING_COLUMN = 'missing_column'
"""That of formats with columns."""


@dataclass(frozen=True)
class CorpusFile:
    """One input file as the planner found it."""

    path: str  # what `OpenBinary` opens
    name: str  # relative, for manifests: the same wherever the corpus lies
    size: int  # bytes as stored
    compressed: bool | str  # False, True for gzip, or a name; see `storage.compression`

    @property
    def is_stream(self) -> bool:
        """Whether it is read from its beginning to its end, and not from any byte on."""
        return bool(self.compressed)


@dataclass(frozen=True)
class MemberFile(CorpusFile):
    """A file in an archive. Its size, and whether it is compressed, are its own.

    Attributes:
        archive: the archive as it is stored.
        start: where the member begins: a byte of the tar's text, or of a zip the byte of its header.
        entry: the last byte up to `start` from which the archive can be read: 0 where that is its
            beginning alone, as of a tar.gz.
        extents: of a sparse file in a tar, (offset, size) of the bytes that are not zeros; these
            stand in the tar one after the other.
    """

    archive: CorpusFile
    start: int
    access_point: int
    extents: tuple[tuple[int, int], ...] = ()

    @property
    def is_stream(self) -> bool:
        return True


@dataclass(frozen=True)
class FilterSpec:
    """A filter of rows as it was asked for; `filters.registry` makes it.

    Attributes:
        spec: its name with its options, as `length:1:200`.
        stamp: what its results depend on beside these; empty if it is nothing.
    """

    spec: str
    stamp: str = ''


@dataclass(frozen=True)
class Split:
    """The files of one split, or of one dataset of those that make a split.

    Attributes:
        name: of the split.
        format: with its options.
        files: by place; of each place one for each of the format's roles.
        dataset: its name, where a split has several.
        first_place: of its files: places count through all datasets of a split.
        prefixes: put before the texts of each side; None, or none: what is put before all others.
        max_examples: as many of its rows are taken, the first by place and offset; None: all.
        end: place and identity of the first row that is not taken any more, once it is known.
        filters: what its rows go through, in this order; `max_examples` are of those that come out.
        keeps_dropped: whether what filters drop is kept beside the result.

    Raises:
        ValueError: places with another number of files than the format has.
    """

    name: str
    format: Format
    files: tuple[tuple[CorpusFile, ...], ...]
    dataset: str = ''
    first_file_index: int = 0
    prefixes: tuple[str | None, ...] = ()
    max_examples: int | None = None
    end: tuple[int, int] | None = None
    filters: tuple[FilterSpec, ...] = ()
    keeps_dropped: bool = False

    def __post_init__(self):
        for files in self.files:
            if len(files) != len(self.format.roles):
                raise ValueError(
                    f'{len(files)} files do not go with {" and ".join(self.format.roles)} of '
                    f'the format {self.format.name}'
                )

    @property
    def file_indexes(self) -> range:
        """The places of its files."""
        return range(self.first_file_index, self.first_file_index + len(self.files))

    def files_at(self, file_index: int) -> tuple[CorpusFile, ...]:
        """Returns the files of one of its places."""
        return self.files[file_index - self.first_file_index]


def split_of(splits: Sequence[Split], name: str, file_index: int) -> Split | None:
    """Returns the dataset that has a place in a split, of a whole corpus; None if none has."""
    found = (each for each in splits if each.name == name and file_index in each.file_indexes)
    return next(found, None)


@dataclass(frozen=True)
class TextRange:
    """A piece of one file.

    Without `lines`: the lines that *start* in bytes [start, end). With `lines`: that many lines, after
    the `skip_lines`-th line feed at or after `start` (from `start` itself if 0); all of them end at or
    before `end`. A file that is a stream is always whole, unless it is cut by an index: then the bytes
    are those of its text.
    """

    file: CorpusFile
    start: int
    end: int
    skip_lines: int = 0
    lines: int | None = None
    decompressed: bool = False  # whether start and end count what is decompressed

    @property
    def key(self) -> tuple[object, ...]:
        """All of it as plain values; `of_text` if it is so, since plans of old know none."""
        values = astuple(self)
        return values if self.decompressed else values[:-1]


@dataclass(frozen=True)
class WorkItem:
    """What one worker reads at a time. The items of a split hold each of its rows once."""

    split: str
    format: Format
    file_index: int
    ranges: tuple[TextRange, ...]  # of each file of that place
    first_line: int | None = None  # its number in its files, from 0, where lines are numbered

    @property
    def stored_bytes(self) -> int:
        """The bytes of its ranges, as stored, or of text where they are ranges of that."""
        return sum(each.end - each.start for each in self.ranges)

    @property
    def key(self) -> tuple[object, ...]:
        """All that its rows depend on, as plain values: fingerprints are made of it.

        Where there is one range, a second one is None.
        """
        ranges = [each.key for each in self.ranges] + [None] * (2 - len(self.ranges))
        return (self.split, self.format.name, self.format.key, self.file_index, *ranges)

    @property
    def is_compressed(self) -> bool:
        """Whether one of its files is compressed, and its bytes are those that are stored."""
        return any(each.file.compressed and not each.decompressed for each in self.ranges)

    @property
    def files(self) -> tuple[CorpusFile, ...]:
        """The files of its place."""
        return tuple(each.file for each in self.ranges)


@dataclass(frozen=True)
class LongLine:
    """A line longer than a job takes, which was read over and not kept."""

    side: int  # 0 source, 1 target
    offset: int  # of its first byte in the decompressed file
    bytes: int  # without its line feed
    length: int  # of what was read for it: its line feed included, if it has one
    crc32c: int  # of what was read for it
    beginning: bytes  # its first bytes, `line_reading.BEGINNING_BYTES` at most


@dataclass(frozen=True)
class ReadRange:
    """Stored bytes of a file that were read for a block which does not hold them as they are."""

    side: int
    offset: int
    length: int
    crc32c: int


@dataclass(frozen=True)
class BlockText:
    """Bytes of one file, and the place of the first of them in the decompressed file."""

    offset: int
    data: bytes


@dataclass(frozen=True)
class Block:
    """Whole rows of one file, or the same rows of all files of a place.

    In formats of lines only a file's last line may lack its line feed. A block with `line_reading` is
    one row: those in `line_reading` are not in `texts`, whose data is empty then. Others may hold
    lines beyond `max_line_bytes` too, where a block has room for these.
    """

    split: str
    format: Format
    file_index: int
    texts: tuple[BlockText, ...]  # of each file of that place
    max_line_bytes: int = MAX_LINE_BYTES  # without the line feed
    long_lines: tuple[LongLine, ...] = ()
    read_ranges: tuple[ReadRange, ...] | None = None  # None: what is in `texts`
    first_line: int | None = None  # its number, if its item has one

    @property
    def offset(self) -> int:
        """Where it begins in its (first) file; with `place` it orders the blocks of a split."""
        return self.texts[0].offset

    @property
    def held_bytes(self) -> int:
        """The bytes of text in it."""
        return sum(len(text.data) for text in self.texts)

    @property
    def read_bytes(self) -> int:
        """The bytes of text that it was made of, those of long lines among them."""
        return self.held_bytes + sum(line.length for line in self.long_lines)


class Format(Protocol):
    """What is to be known here of a `formats.corpus_format.CorpusFormat`, which all of them are."""

    name: str
    roles: tuple[str, ...]
    identity: str

    @property
    def key(self) -> tuple[object, ...]: ...

    @property
    def forbidden_characters(self) -> str: ...


@dataclass(frozen=True)
class Reject:
    """A line that cannot be used: why, and where it stands in its decompressed file."""

    reason: str
    side: int  # which file of a pair, 0 for one file
    offset: int  # byte offset of the line's start in that file
    position: int  # byte offset of the first byte there that is not UTF-8; else `offset`
    line: bytes  # the line as it was read, without its '\n'; of one too long, its beginning
    size: int | None = None  # bytes of the line, without its '\n', if it is too long
    why: str = ''  # what an error says of it behind its place; '' where format and reason tell it


@dataclass(frozen=True)
class ExtraFeature:
    """What goes along with each of some rows.

    Attributes:
        name: of the feature.
        values: int64[rows], float32[rows], or a side of bytes.
    """

    name: str
    values: np.ndarray | Side

    def select(self, rows: np.ndarray | slice) -> ExtraFeature:
        """Returns it for some of the rows."""
        if isinstance(self.values, Side):
            side = self.values
            return ExtraFeature(self.name, side.take(rows))
        return ExtraFeature(self.name, self.values[rows])


@dataclass(frozen=True)
class DroppedRow:
    """A row that a filter dropped.

    Attributes:
        filter: its name.
        offset: of the row's line in the (source) file.
        texts: of each side, as the filter was given them; of an empty piece, as it made them.
    """

    filter: str
    offset: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """What a block's lines (or pairs of lines) became.

    `lines + added == rows + empty + len(rejects) + beyond + not_sampled + those filtered`
    """

    sides: tuple[Side, ...]
    offset: int  # of the block in the (source) file
    line_starts: np.ndarray  # int64[rows], ascending: where the row's line begins in that block
    lines: int
    empty: int
    rejects: tuple[Reject, ...]  # in the order of the lines
    beyond_max_examples: int = 0  # rows and rejects behind the last that is taken of a dataset
    extra_features: tuple[ExtraFeature, ...] = ()  # of the same rows
    not_sampled: int = 0  # rows outside a sample for the vocabulary
    filtered: Mapping[str, int] = field(default_factory=dict)  # by filter, rows that it dropped
    added: int = 0  # rows that came of others, beside the first of each
    dropped: tuple[DroppedRow, ...] = ()  # of those filtered, if they are kept; in their order
    assigned_identities: np.ndarray | None = (
        None  # int64[rows], ascending: identities where pieces have any
    )

    def __len__(self) -> int:
        return len(self.line_starts)

    def select(self, chosen: np.ndarray | slice) -> Rows:
        """Returns those of the rows that are chosen, with all else that is told of the block."""
        return dataclasses.replace(
            self,
            sides=tuple(each.take(chosen) for each in self.sides),
            line_starts=self.line_starts[chosen],
            extra_features=tuple(each.select(chosen) for each in self.extra_features),
            assigned_identities=None
            if self.assigned_identities is None
            else self.assigned_identities[chosen],
        )

    @property
    def offsets(self) -> np.ndarray:
        """Where the row's line begins in the (source) file: int64[rows], ascending.

        Those that came of one line are at one place.
        """
        return self.line_starts + self.offset

    @property
    def identities(self) -> np.ndarray:
        """What no other row of the file has: int64[rows], ascending. Order keys are made of it."""
        return self.offsets if self.assigned_identities is None else self.assigned_identities
