"""What a corpus consists of: splits of files, work items, blocks of text, rows.

A split (train, dev, test) has files. They are cut into work items, which name byte ranges; reading
an item gives blocks of bytes, and the format turns a block into rows. All of these classes are sent
between processes, so they are frozen and hold plain values.
"""

from __future__ import annotations

import abc
import bisect
import dataclasses
import functools
import operator
import pickle
import typing
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, Literal

from tokcore.corpus.contents import TEXT
from tokcore.corpus.fields import ExtraField
from tokcore.text.rows import Side

if typing.TYPE_CHECKING:
    import numpy as np

OpenBinary = Callable[[str], BinaryIO]
"""Opens a path for reading: a seekable file of the stored bytes, not decompressed."""

OnError = Literal['stop', 'skip']
"""What a job does at a line that it cannot use."""

MAX_LINE_BYTES = 16 << 20
"""The default of `--max-line-size`. A line is held in memory together with its ids and its record, up
to 256 MiB for a line of this size, as much as the shuffle's buffer. Half would refuse documents that
are text; with twice, small machines would fail at lines that mostly are not text."""

ITEM_BYTES = 8 << 20
"""The default size of a work item. From 8 to 16 MiB on, the fixed costs of a block vanish; the smallest
such size is best, since larger ones take more memory for each thread and leave the last workers idle."""

BLOCK_BYTES = ITEM_BYTES
"""The default size of the blocks in which a compressed file is read."""

STRETCH_BYTES = 8 << 20
"""The text for which lines are counted: to read it takes milliseconds, and the counts of a terabyte are a
megabyte. It is a part of the format of `index/corpus.jsonl`, so it depends on no option."""

Newlines = list[list[int]]
"""The line feeds of some text: [stretch, count], ascending."""

OUTSIDE_SEGMENT = 'outside_segment'
"""The line has text outside of a segment."""

UNMATCHED_SEGMENT = 'unmatched_segment'
"""The segment has no counterpart on the other side."""

INVALID_UTF8, TOO_LONG = 'invalid_utf8', 'too_long'
"""Reasons to leave out a row of any format. A format may have reasons of its own."""

UNSTORABLE_TOKEN = 'unstorable_token'
"""One of its tokens cannot be an entry of the vocabulary to be learned."""

FILTER_TOO_LONG, FILTER_NO_ROW = 'filter_too_long', 'filter_no_row'
"""A filter returned a row longer than allowed, or a value that cannot be a row."""

OF_ALL_FORMATS = (INVALID_UTF8, TOO_LONG, UNSTORABLE_TOKEN, FILTER_TOO_LONG, FILTER_NO_ROW)

MISSING_COLUMN = 'missing_column'
"""The line has too few columns."""


@dataclass(frozen=True)
class CorpusFile:
    """One input file, as it was when the job was planned.

    Examples:
        >>> tokcore.CorpusFile('corpus/train.en.gz', 'train.en.gz', 9000, 'gzip').is_stream
        True
    """

    path: str  # what `OpenBinary` opens
    name: str  # relative, for manifests: the same wherever the corpus lies
    size: int  # stored bytes
    compressed: bool | str  # False, True for gzip, or a name; see `storage.Compression`

    @property
    def is_stream(self) -> bool:
        """Whether it can only be read from its beginning, not from any byte on."""
        return bool(self.compressed)


@dataclass(frozen=True)
class MemberFile(CorpusFile):
    """A file in an archive; `size` and `compressed` are those of the member.

    Attributes:
        archive: the archive itself.
        start: the member's first byte in the decompressed tar; in a zip, that of its header.
        access_point: the last byte up to `start` from which the archive can be read; 0 if it can only
            be read from its beginning, as a tar.gz.
        extents: (offset, size) of the data in a sparse file of a tar, which holds only these parts,
            one after another.
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
    """A filter of rows as named in the options; `filters.registry` makes the filter.

    Attributes:
        spec: its name with its options, as `length:1:200`.
        stamp: what else its results depend on, as the version of a table; may be empty.
    """

    spec: str
    stamp: str = ''


@dataclass(frozen=True)
class KeyRange:
    """The rows of a split among those of the files that it shares with other splits.

    Attributes:
        seed: of the keys.
        low: the first key.
        end: the key after the last one, at most 2^64.
        has_others: whether lines that are not rows, empty ones and rejects, are of this split; they
            are of one, so that each line is counted once.
    """

    seed: int
    low: int
    end: int
    has_others: bool = False


@dataclass(frozen=True)
class Split:
    """The files of one split, or of one of the datasets that form a split.

    Attributes:
        name: of the split.
        format: with its options.
        files: a tuple for each file index, with one file for each of the format's roles.
        dataset: its name, if the split has several.
        first_file_index: of its files; file indexes count through all datasets of a split.
        prefixes: put before the texts of each side, instead of the job's prefixes; None for a side
            that has the job's.
        max_examples: takes only the first rows, by file index and offset; None takes all.
        end: file index and identity of the first row beyond `max_examples`, once it is known.
        key_range: which rows of the files belong to it; None: all of them.
        filters: applied to its rows in this order; `max_examples` counts the rows that they return.
        keeps_dropped: whether the rows that filters drop are written to separate files.
        left_out: the places of rows that are not used, uint64 as `row_places` returns them, ascending.
        max_line_bytes: that of `ReadCorpus`; longer lines are rejected.

    Raises:
        ValueError: another number of files than the format has roles.

    Examples:
        >>> [split] = pipelines.ReadCorpus('train.en', 'train.zh').splits
        >>> split.name, split.format.roles, [file.name for file in split.files_at(0)]
        ('train', ('source', 'target'), ['train.en', 'train.zh'])
    """

    name: str
    format: CorpusFormat
    files: tuple[tuple[CorpusFile, ...], ...]
    dataset: str = ''
    first_file_index: int = 0
    prefixes: tuple[str | None, ...] = ()
    max_examples: int | None = None
    end: tuple[int, int] | None = None
    filters: tuple[FilterSpec, ...] = ()
    keeps_dropped: bool = False
    key_range: KeyRange | None = None
    left_out: bytes = b''
    max_line_bytes: int = MAX_LINE_BYTES

    def __post_init__(self):
        for files in self.files:
            if len(files) != len(self.format.roles):
                raise ValueError(
                    f'{len(files)} files do not go with {" and ".join(self.format.roles)} of '
                    f'the format {self.format.name}'
                )

    @property
    def file_indexes(self) -> range:
        """The indexes of its files."""
        return range(self.first_file_index, self.first_file_index + len(self.files))

    def files_at(self, file_index: int) -> tuple[CorpusFile, ...]:
        """Returns the files of one index."""
        return self.files[file_index - self.first_file_index]

    def __reduce__(self):
        # Beam pickles each of its functions several times; a split may have thousands of files.
        return _unpacked_split, (self._packed,)

    @functools.cached_property
    def _packed(self) -> bytes:
        values = [getattr(self, attribute.name) for attribute in dataclasses.fields(self)]
        return zlib.compress(pickle.dumps(values), level=1)


@functools.lru_cache(maxsize=8)
def _unpacked_split(packed: bytes) -> Split:
    return Split(*pickle.loads(zlib.decompress(packed)))


def split_of(splits: Sequence[Split], name: str, file_index: int) -> Split | None:
    """Returns the split or dataset that a file belongs to; None if the corpus has no such file.

    The datasets of a split follow one another.
    """
    first = 0
    while first < len(splits):
        here = splits[first].name
        end = bisect.bisect(splits, False, first, key=lambda split: split.name != here)
        if here == name:
            starts = operator.attrgetter('first_file_index')
            after = bisect.bisect(splits, file_index, first, end, key=starts)
            split = splits[max(first, after - 1)]
            return split if file_index in split.file_indexes else None
        first = end
    return None


@dataclass(frozen=True)
class TextRange:
    """A range of one file.

    Without `lines`: the lines that *start* in bytes [start, end). With `lines`: that many lines after
    the `skip_lines`-th line feed at or after `start` (from `start` itself if 0), all of which end at
    or before `end`. A file that is a stream is one range, unless an index of its parts allows to cut
    its decompressed text; then `start` and `end` count bytes of that, and `packed_bytes` is the
    range's share of the stored ones.
    """

    file: CorpusFile
    start: int
    end: int
    skip_lines: int = 0
    lines: int | None = None
    packed_bytes: int | None = None

    @property
    def counted_lines(self) -> int:
        """The number of lines of a range that has one."""
        if self.lines is None:
            raise ValueError(f'{self.file.path}: the lines of a range were not counted')
        return self.lines

    @property
    def key(self) -> tuple[object, ...]:
        """Its fields as plain values, but for the last; True in its place if it is set."""
        values = _plain_values(self)[:-1]
        return values if self.packed_bytes is None else (*values, True)

    @property
    def stored_bytes(self) -> int:
        """The stored bytes that it reads."""
        return self.end - self.start if self.packed_bytes is None else self.packed_bytes


def _plain_values(value: Any) -> Any:
    """Returns what `astuple` returns, which copies each value: there may be thousands of members."""
    names = getattr(value, '__dataclass_fields__', None)
    if names is None:
        return value
    return tuple(
        [
            item if isinstance(item := getattr(value, name), (str, int)) else _plain_values(item)
            for name in names
        ]
    )


@dataclass(frozen=True)
class WorkItem:
    """What one worker reads at a time. Each row of a split is in exactly one item."""

    split: str
    format: CorpusFormat
    file_index: int
    ranges: tuple[TextRange, ...]  # of each of its files
    first_line: int | None = None  # 0-based, in its files, if lines are numbered

    @property
    def stored_bytes(self) -> int:
        """The stored bytes that it reads."""
        return sum([text_range.stored_bytes for text_range in self.ranges])

    @property
    def key(self) -> tuple[object, ...]:
        """All that its rows depend on, as plain values, for fingerprints.

        The key has two ranges; the second is None where there is one.
        """
        ranges = [text_range.key for text_range in self.ranges] + [None] * (2 - len(self.ranges))
        return (self.split, self.format.name, self.format.key, self.file_index, *ranges)

    @property
    def is_compressed(self) -> bool:
        """Whether a file that it reads is compressed."""
        return any(file.compressed for file in self.files)

    @property
    def files(self) -> tuple[CorpusFile, ...]:
        """The files that are read side by side."""
        return tuple([text_range.file for text_range in self.ranges])


@dataclass(frozen=True)
class LongLine:
    """A line longer than a job allows: it was read, and not kept in memory."""

    side: int  # 0 source, 1 target
    offset: int  # of its first byte in the decompressed file
    nbytes: int  # without its line feed
    length: int  # with its line feed, if it has one
    crc32c: int  # of these `length` bytes
    beginning: bytes  # its first bytes, `line_reading.BEGINNING_BYTES` at most


@dataclass(frozen=True)
class ReadRange:
    """Stored bytes that were read for a block whose data is not these bytes, as of Parquet."""

    side: int
    offset: int
    length: int
    crc32c: int
    newlines: Newlines = field(default_factory=list)


@dataclass(frozen=True)
class BlockText:
    """Bytes of one file, and the offset of the first in the decompressed file."""

    offset: int
    data: bytes = field(repr=False)  # megabytes


@dataclass(frozen=True)
class Block:
    """Whole rows of one file, or the same rows of the files that are read side by side.

    In formats of lines only a file's last line may lack its line feed. A block with `long_lines` is
    one row; the data of a side with a long line is empty. Other blocks may hold lines longer than
    `max_line_bytes` too, if they fit in the block.

    Examples:
        >>> with beam.Pipeline(runner='FnApiRunner') as pipeline:
        ...     blocks = pipeline | pipelines.ReadCorpus('train.en', 'train.zh')
        ...     _ = blocks | beam.Map(lambda block: print(block.split, block.offset, block.read_bytes))
        train 0 41973
    """

    split: str
    format: CorpusFormat
    file_index: int
    texts: tuple[BlockText, ...]  # of each of its files
    max_line_bytes: int = MAX_LINE_BYTES  # without the line feed
    long_lines: tuple[LongLine, ...] = ()
    read_ranges: tuple[ReadRange, ...] | None = None  # None: `texts` are what was read
    first_line: int | None = None  # 0-based, if lines are numbered

    @property
    def offset(self) -> int:
        """Where it begins in its (first) file; blocks are ordered by file index and offset."""
        return self.texts[0].offset

    @property
    def held_bytes(self) -> int:
        """The bytes that it holds."""
        return sum([len(text.data) for text in self.texts])

    @property
    def read_bytes(self) -> int:
        """The bytes that it was made from, with those of long lines."""
        return self.held_bytes + sum([line.length for line in self.long_lines])


class CorpusFormat(abc.ABC):
    """The declaration of a format: a frozen dataclass, whose fields are its options.

    Attributes:
        name: in the registry, in fingerprints and errors.
        what: its files, for a list in the help.
        roles: of the files that are read side by side; each role is an option of the command and a
            name in manifests. Formats may share roles.
        endings: of the names of its files, by which it is chosen among formats with the same roles.
        is_in_job_files_only: whether the command has no options for its files.
        help: of these options, in the same order.
        reader: 'module:class' of its `FormatReader`; not needed by a format that is its own reader.
        reasons: for which it leaves out rows, in addition to those of all formats.
        identity: what identifies a row in its file: `offset`, where it begins, or `row`, its number.
        takes_any_text: whether any lines are rows of it; warming up compiles kernels with such lines.
        rows_are_lines: whether the n-th line of each file, whole, is a side of the n-th row.
        has_same_lines: whether a row is on the same line of all files that are read side by side.
        content: what its files hold, of the kinds in `contents`; other files are refused.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    roles: ClassVar[tuple[str, ...]]
    help: ClassVar[tuple[str, ...]]
    reader: ClassVar[str] = ''
    reasons: ClassVar[tuple[str, ...]] = ()
    identity: ClassVar[str] = 'offset'
    takes_any_text: ClassVar[bool] = True
    rows_are_lines: ClassVar[bool] = False
    has_same_lines: ClassVar[bool] = True
    endings: ClassVar[tuple[str, ...]] = ()
    is_in_job_files_only: ClassVar[bool] = False
    content: ClassVar[str] = TEXT

    @property
    @abc.abstractmethod
    def sides(self) -> tuple[str, ...]:
        """The names of the columns of its rows: `inputs` and `targets` of pairs."""

    @property
    def forbidden_characters(self) -> str:
        """ASCII characters that no row can have, so that no filter may return them; '' by default."""
        return ''

    @property
    def extra_fields(self) -> tuple[ExtraField, ...]:
        """The fields that become features in addition to the text; none by default."""
        return ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all features of its examples, and of those that are not text the kinds."""
        return (*self.sides, *(f'{field.name}:{field.kind}' for field in self.extra_fields))

    @property
    def key(self) -> tuple[object, ...]:
        """Its options as plain values, for fingerprints."""
        return dataclasses.astuple(self)  # type: ignore[call-overload]  # a format is a dataclass

    @property
    def options(self) -> dict[str, object]:
        """Its options by name, for manifests."""
        names = (field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}

    def explain(self, reject: Reject) -> str:
        """Returns the text of an error about a row that was left out for one of its `reasons`.

        It follows the file's name, and says where the row is, what is wrong and what to do.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Reject:
    """A line that cannot be used: the reason, and where it is in the decompressed file."""

    reason: str
    side: int  # which file of a pair, 0 for one file
    offset: int  # byte offset of the line's start in that file
    position: int  # byte offset of its first byte that is not UTF-8; else `offset`
    line: bytes  # the line without its '\n'; the beginning of a line that is too long
    size: int | None = None  # of a line that is too long: its bytes without the '\n'
    why: str = ''  # text for the error; '' where the format explains the reason
    number: int | None = None  # of the line at `position`, from 1, if the reader knows it

    @property
    def excerpt(self) -> str:
        """The line, or its beginning, quoted for an error."""
        text = self.line.decode('utf-8', 'replace')
        return repr(text if len(text) <= 60 else text[:57] + '...')


@dataclass(frozen=True)
class ExtraFeature:
    """A feature of examples in addition to their text, as a label: one value for each row.

    Attributes:
        name: of the feature.
        values: int64[rows], float32[rows], or a side of bytes.
    """

    name: str
    values: np.ndarray | Side

    def select(self, rows: np.ndarray | slice) -> ExtraFeature:
        """Returns the values of some of the rows."""
        if isinstance(self.values, Side):
            return ExtraFeature(self.name, self.values.take(rows))
        return ExtraFeature(self.name, self.values[rows])


@dataclass(frozen=True)
class DroppedRow:
    """A row that a filter dropped.

    Attributes:
        filter: its name.
        offset: of the row's line in the (source) file.
        texts: of each side, as the filter received them; of an empty row that it returned, that row.
    """

    filter: str
    offset: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """The rows of a block, and what became of its other lines (or pairs of lines).

    lines + added == rows + empty + missing_side + len(rejects) + beyond_max_examples + not_sampled
    + filtered + removed
    """

    sides: tuple[Side, ...]
    offset: int  # of the block in the (source) file
    line_starts: np.ndarray  # int64[rows], ascending: where the row's line begins in the block
    lines: int
    empty: int
    rejects: tuple[Reject, ...]  # in the order of the lines
    beyond_max_examples: int = 0  # rows and rejects after the last one that `max_examples` takes
    extra_features: tuple[ExtraFeature, ...] = ()  # of the same rows
    not_sampled: int = 0  # rows outside a sample for the vocabulary
    filtered: Mapping[str, int] = field(default_factory=dict)  # rows that each filter dropped
    added: int = 0  # rows that filters returned for one row, not counting the first of each
    dropped: tuple[
        DroppedRow, ...
    ] = ()  # the rows that filters dropped, if they are kept, in order
    assigned_identities: np.ndarray | None = None  # int64[rows], ascending: where rows were split
    file_indexes: np.ndarray | None = None  # int64[rows], ascending: of a batch of blocks
    missing_side: int = 0  # rows that have no text for a side, as units without a language
    removed: int = 0  # rows that were left out by their addresses

    def __len__(self) -> int:
        return len(self.line_starts)

    def select(self, rows: np.ndarray | slice) -> Rows:
        """Returns the rows with these numbers (or mask or slice); all other fields stay."""
        return dataclasses.replace(
            self,
            sides=tuple(side.take(rows) for side in self.sides),
            line_starts=self.line_starts[rows],
            extra_features=tuple(feature.select(rows) for feature in self.extra_features),
            assigned_identities=None
            if self.assigned_identities is None
            else self.assigned_identities[rows],
            file_indexes=None if self.file_indexes is None else self.file_indexes[rows],
        )

    @property
    def text_bytes(self) -> int:
        """The bytes of UTF-8 of all sides' text."""
        return int(self.text_sizes.sum())

    @property
    def text_sizes(self) -> np.ndarray:
        """The bytes of UTF-8 of the text of each row, of all sides: int64[rows]."""
        return functools.reduce(operator.add, (side.ends - side.starts for side in self.sides))

    @property
    def offsets(self) -> np.ndarray:
        """Where the row's line begins in the (source) file: int64[rows], ascending in each file.

        Rows that a filter made from one line have the same offset.
        """
        return self.line_starts + self.offset

    @property
    def identities(self) -> np.ndarray:
        """A number for each row, unique and ascending in its file: int64[rows]. Order keys hash it."""
        return self.offsets if self.assigned_identities is None else self.assigned_identities


@dataclass(frozen=True)
class RowLimits:
    """What a row of a block can be.

    Attributes:
        most_bytes: the most that may be made from one row, on each side.
        forbidden_characters: ASCII characters that no row of the format can have.
    """

    most_bytes: int = MAX_LINE_BYTES
    forbidden_characters: str = ''


@dataclass(frozen=True)
class UnfitRow:
    """A row from which a filter made something that cannot be a row: it is rejected, not dropped.

    Attributes:
        row: its number among the rows that the filter received.
        reason: the reason that it is counted under.
        why: the end of an error message that begins with where the row is.
    """

    row: int
    reason: str
    why: str


@dataclass(frozen=True)
class Filtered:
    """The result of a filter.

    Attributes:
        sides: the texts of the output rows, as many sides as there were.
        rows: int64[output rows], not descending: the input row that each was made from. A row whose
            number is absent was dropped; one whose number is repeated became several.
        is_kept: bool[output rows]. False: the filter itself discarded this output row. None: it
            discarded whole input rows only.
        unfit: rows that are rejected, in order; they have no output rows.
    """

    sides: tuple[Side, ...]
    rows: np.ndarray
    is_kept: np.ndarray | None = None
    unfit: tuple[UnfitRow, ...] = ()


class RowFilter(abc.ABC):
    """A filter with its options, a frozen dataclass.

    Attributes:
        name: the name in options, under which dropped rows are counted.
        makes_several: whether a row may become several.
        drops_rows: whether it drops rows; otherwise it only converts text.
    """

    name: str
    makes_several: ClassVar[bool] = False
    drops_rows: ClassVar[bool] = True

    @property
    def stamp(self) -> str:
        """What results depend on besides the options, in short; empty if nothing."""
        return ''

    def with_limits(self, limits: RowLimits) -> RowFilter:
        """Returns this filter for rows with these limits; only a filter of the user can exceed them."""
        return self

    @abc.abstractmethod
    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Filters rows of valid UTF-8 text, of one side or two, without changing its input.

        Raises:
            InputError: the filter is not for rows of so many sides.
        """
