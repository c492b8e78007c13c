"""What a corpus consists of, and the pieces in which it is worked on.

A split (train, dev, test) has files; its files are cut into work items, of which nothing but places
and sizes is known; reading an item gives blocks of whole lines. All of these cross process borders,
so they are frozen and hold plain values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Literal, get_args

OpenBinary = Callable[[str], BinaryIO]
"""Opens a path for reading: a seekable file of the bytes as they are stored, not decompressed."""

Kind = Literal['bitext', 'tsv', 'text']
KINDS: tuple[Kind, ...] = get_args(Kind)

OnError = Literal['stop', 'skip']
"""What happens where a line cannot be used."""

MAX_LINE_BYTES = 16 << 20
"""The longest line that is read, if nothing else is asked for. A line is held as a whole with its
ids and its record: at this size in up to 256 MiB, as much as the shuffle's buffer. Half would
refuse documents that are text; twice would make small machines fail at what is mostly none."""


@dataclass(frozen=True)
class CorpusFile:
    """One input file as the planner found it."""

    path: str  # what `OpenBinary` opens
    name: str  # relative, for manifests: the same wherever the corpus lies
    size: int  # bytes as stored
    compressed: bool  # gzip, told by its content (`gzip_text.is_gzip`)


@dataclass(frozen=True)
class Split:
    """The files of one split. A file's place is its position in `sources`.

    Raises:
      ValueError: for an unknown kind, target files that do not pair with the source files, or
        columns that do not go with the kind.
    """

    name: str
    kind: Kind
    sources: tuple[CorpusFile, ...]
    targets: tuple[CorpusFile, ...] = ()  # bitext: one for each source file
    columns: tuple[int, ...] = ()  # tsv: 0-based

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f'kind {self.kind!r} is none of {", ".join(KINDS)}')
        if len(self.targets) != (len(self.sources) if self.kind == 'bitext' else 0):
            raise ValueError(
                f'{len(self.targets)} target files do not go with {len(self.sources)} source '
                f'files of kind {self.kind}'
            )
        if bool(self.columns) != (self.kind == 'tsv'):
            raise ValueError(f'columns {self.columns} do not go with kind {self.kind}')


@dataclass(frozen=True)
class TextRange:
    """A piece of one file.

    Without `lines`: the lines that *start* in bytes [start, end); a gzip file is always whole.
    With `lines`: that many lines, after the `skip_lines`-th line feed at or after `start` (from
    `start` itself if 0); all of them end at or before `end`.
    """

    file: CorpusFile
    start: int
    end: int
    skip_lines: int = 0
    lines: int | None = None


@dataclass(frozen=True)
class WorkItem:
    """What one worker reads at a time. The items of a split hold each of its lines once."""

    split: str
    kind: Kind
    columns: tuple[int, ...]
    place: int
    source: TextRange
    target: TextRange | None = None


@dataclass(frozen=True)
class LongLine:
    """A line longer than a job takes, which was read over and not kept."""

    side: int  # 0 source, 1 target
    offset: int  # of its first byte in the decompressed file
    bytes: int  # without its line feed
    length: int  # of what was read for it: its line feed included, if it has one
    crc32c: int  # of what was read for it
    beginning: bytes  # its first bytes, `long_lines.BEGINNING_BYTES` at most


@dataclass(frozen=True)
class Block:
    """Whole lines of one file, or the same lines of both files of a pair.

    `offset` and `target_offset` are the places of the first byte in the decompressed files. Only a
    file's last line may lack its line feed. A block with `long_lines` is one line, or one pair of
    lines: those in `long_lines` are not in `data` and `target`. Others may hold lines beyond
    `max_line_bytes` too, where a block has room for these.
    """

    split: str
    kind: Kind
    columns: tuple[int, ...]
    place: int
    offset: int
    data: bytes
    target_offset: int = 0
    target: bytes | None = None
    max_line_bytes: int = MAX_LINE_BYTES  # without the line feed
    long_lines: tuple[LongLine, ...] = ()

    @property
    def read_bytes(self) -> int:
        """The bytes of text that it was made of, those of long lines among them."""
        held = len(self.data) + len(self.target or b'')
        return held + sum(line.length for line in self.long_lines)
