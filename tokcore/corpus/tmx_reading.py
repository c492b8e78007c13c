"""A TMX file as blocks of whole translation units, and blocks as rows.

expat checks that the stream is well-formed XML, piece by piece, and holds none of it; the first
byte that is wrong ends the job. Entities that would expand or be fetched are refused where they are
declared. A block begins where the one before ended and ends after a unit, so no comment, CDATA
section or tag is cut. A unit that is too long is not held, nor is what stands outside of units.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.parsers import expat

import google_crc32c
import numpy as np

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import (
    MAX_LINE_BYTES,
    TOO_LONG,
    Block,
    BlockText,
    LongLine,
    OpenBinary,
    ReadRange,
    Reject,
    Rows,
    Split,
    WorkItem,
)
from tokcore.corpus.formats import FormatReader, whole_file_items
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.corpus.line_rows import long_rows
from tokcore.corpus.tmx import Tmx
from tokcore.corpus.tmx_kernels import (
    SCAN,
    TEXT,
    decode_segments,
    find_unit_ends,
    list_units,
    moves,
)
from tokcore.errors import InputError
from tokcore.kernels.jit import read_only
from tokcore.text.rows import Normalizer, Side

_DEEPEST = 1000
"""Of elements within each other: TMX has a dozen; each one open costs memory."""

_LEAST_LIMIT = 1 << 20
"""Of what is held of a tag, a comment or a section whatever else may be held."""

_HEAD_BYTES = 4
_LEAST_UNIT = 5  # `<tu/>`

UNDEFINED_ENTITY = 'undefined_entity'

_ENCODINGS = {'utf-8', 'utf8', 'us-ascii', 'ascii', 'utf-16'}


class TmxReader(FormatReader):
    """Reads a file as one item, as XML must be read."""

    format: Tmx

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        return whole_file_items(split)

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        return read_units(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.format.sides), block.offset)
        [text] = block.texts
        languages = tuple(name.lower().replace('_', '-') for name in self.format.languages)
        drops_markup = self.format.markup == 'drop'
        return unit_rows(
            text.data, text.offset, languages, drops_markup, normalizer, block.max_line_bytes
        )


def read_units(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of a whole file.

    Raises:
        InputError: the file cannot be read, is not well-formed, or has declarations of entities.
    """
    [text_range] = item.ranges
    pieces = text_pieces(text_range.file, open_binary)
    return _UnitReader(item, block_bytes, max_line_bytes).blocks(pieces)


class _UnitReader:
    def __init__(self, item: WorkItem, block_bytes: int, max_line_bytes: int):
        self._item, self._path = item, item.ranges[0].file.path
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes
        self._xml = WellFormedXml(self._path, 'tmx')
        self._decoder: codecs.IncrementalDecoder | None = None
        self._scan = np.zeros(1, SCAN)
        self._held = bytearray()  # text from `_offset` on
        self._offset = 0
        self._behind_units = 0  # in `_held`
        self._long: tuple[int, bytes] | None = (
            None  # of a unit that is not held, start and beginning
        )
        self._read = (0, 0, 0)  # offset, length and checksum of what no block tells of

    def blocks(self, pieces: Iterable[bytes]) -> Iterator[Block]:
        for number, piece in enumerate(_with_head(pieces)):
            if not number:
                self._decoder = self._decoder_of(piece)
            self._xml.take(piece)
            offset, length, checksum = self._read
            self._read = offset, length + len(piece), google_crc32c.extend(checksum, piece)
            yield from self._take(self._decoded(piece))
        self._xml.end()
        yield self._block(self._behind_units)

    def _decoder_of(self, head: bytes) -> codecs.IncrementalDecoder | None:
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return codecs.getincrementaldecoder('utf-16')()
        if b'\0' in head[:_HEAD_BYTES]:
            raise InputError(
                f'{self._path} has a NUL among its first bytes: UTF-16 without its byte order mark, '
                'or no XML; convert it to UTF-8'
            )
        return None

    def _decoded(self, piece: bytes) -> bytes:
        if self._decoder is None:
            return piece
        try:
            return self._decoder.decode(piece).encode()
        except UnicodeDecodeError as error:
            raise InputError(f'{self._path} is not UTF-16: {error.reason}; convert it') from None

    def _take(self, text: bytes) -> Iterator[Block]:
        begin = self._offset + len(self._held)
        ends = np.empty(len(text) // _LEAST_UNIT + 1, np.int64)
        count = find_unit_ends(np.frombuffer(text, np.uint8), begin, moves(), self._scan, ends)
        self._check_markup(begin + len(text))
        if self._long is not None:
            if not count:
                self._offset += len(text)
                return
            yield self._long_unit(begin + int(ends[0]))
            text = text[int(ends[0]) :]
            ends, count = ends[1:] - ends[0], count - 1
        before = len(self._held)
        self._held += text
        if count:
            self._behind_units = before + int(ends[count - 1])
        if self._behind_units >= self._block_bytes:
            yield self._block(self._behind_units)
        if len(self._held) - self._behind_units > self._block_bytes + self._max_line_bytes:
            if self._behind_units:
                yield self._block(self._behind_units)
            self._let_go()

    def _check_markup(self, end: int) -> None:
        scan = self._scan[0]
        length = end - int(scan['tag_start'])
        most = max(self._block_bytes + self._max_line_bytes, _LEAST_LIMIT)
        if scan['state'] != TEXT and length > most:
            raise InputError(
                f'{self._path}: the markup at byte {scan["tag_start"]} has no end within {length} '
                'bytes; is a comment or a quote not closed? mend it, or give a larger --max-line-size'
            )
        if scan['deepest'] > _DEEPEST:
            raise InputError(
                f'{self._path} has over {_DEEPEST} elements within each other before byte {end}; TMX '
                'has a dozen: mend it'
            )

    def _let_go(self) -> None:
        """Gives up text that is in no unit, and the unit that is open if it is too long."""
        scan = self._scan[0]
        end = self._offset + len(self._held)
        needed = end if scan['state'] == TEXT else int(scan['tag_start'])
        if scan['in_unit']:
            needed = int(scan['unit_start'])
            if end - needed > self._max_line_bytes:
                first = needed - self._offset
                self._long = needed, bytes(self._held[first : first + BEGINNING_BYTES])
                needed = end
        del self._held[: needed - self._offset]
        self._offset = needed

    def _block(self, size: int) -> Block:
        text = BlockText(self._offset, bytes(self._held[:size]))
        del self._held[:size]
        self._offset += size
        self._behind_units = 0
        return self._with(text, ())

    def _long_unit(self, end: int) -> Block:
        start, beginning = self._long
        # What was read is told by `read`, so there is no checksum here.
        unit = LongLine(0, start, end - start, end - start, 0, beginning)
        self._long = None
        self._offset = end
        return self._with(BlockText(start, b''), (unit,))

    def _with(self, text: BlockText, long_units: tuple[LongLine, ...]) -> Block:
        read = ReadRange(0, *self._read)
        self._read = (read.offset + read.length, 0, 0)
        item = self._item
        return Block(
            item.split,
            item.format,
            item.file_index,
            (text,),
            self._max_line_bytes,
            long_units,
            (read,),
        )


def _with_head(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, of which the first has as many bytes as tell an encoding."""
    head = b''
    rest = iter(pieces)
    for piece in rest:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    if head:
        yield head
    yield from rest


def unit_rows(
    data: bytes,
    offset: int,
    languages: tuple[str, ...],
    drops_codes: bool,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block of whole units, with a side for each language.

    A unit without one of the languages, or with a blank segment, is empty.

    Args:
        data: of a block as `tmx_reading` makes them.
        offset: of it in the file's text.
        languages: wanted ones, in lower case.
        drops_codes: whether what inline elements hold of a native format is left out.
        normalizer: what makes text of segments.
        max_line_bytes: a longer unit is a reject.
    """
    text = np.frombuffer(data, np.uint8)
    packed = np.zeros((len(languages), max(map(len, languages))), np.uint8)
    for number, each in enumerate(languages):
        packed[number, : len(each)] = np.frombuffer(each.encode(), np.uint8)
    sizes = np.array([*map(len, languages)], np.int64)
    most = len(data) // _LEAST_UNIT + 1  # what is not written costs no memory
    units = np.empty((most, 2), np.int64)
    segments = np.empty((most, len(languages), 2), np.int64)
    count = list_units(text, read_only(packed), read_only(sizes), units, segments)
    units, segments = units[:count], segments[:count]
    # How well a variant fits is in the lowest bits.
    segments[:, :, 0] >>= 3
    too_long = np.flatnonzero(units[:, 1] - units[:, 0] > max_line_bytes)
    segments[too_long] = -1
    is_kept = np.ones(count, bool)
    bad = dict.fromkeys(too_long.tolist(), TOO_LONG)
    sides = []
    for number in range(len(languages)):
        given, undefined = _texts(text, np.ascontiguousarray(segments[:, number]), drops_codes)
        bad |= dict.fromkeys(np.flatnonzero(undefined >= 0).tolist(), UNDEFINED_ENTITY)
        side = normalizer.apply(given).side
        sides.append(side)
        is_kept &= side.ends > side.starts
    is_kept[list(bad)] = False
    kept = np.flatnonzero(is_kept)
    return Rows(
        tuple(each.take(kept) for each in sides),
        offset,
        units[kept, 0],
        count,
        count - len(kept) - len(bad),
        tuple(
            _reject(reason, offset, data, *units[row].tolist())
            for row, reason in sorted(bad.items())
        ),
    )


def _texts(text: np.ndarray, segments: np.ndarray, drops_codes: bool) -> tuple[Side, np.ndarray]:
    count = len(segments)
    found = np.empty(count + int((segments[:, 1] - segments[:, 0]).sum()), np.uint8)
    starts, ends, undefined = (np.empty(count, np.int64) for _ in range(3))
    decode_segments(text, segments, drops_codes, found, starts, ends, undefined)
    return Side(*map(read_only, (found, starts, ends))), undefined


def _reject(reason: str, offset: int, data: bytes, start: int, end: int) -> Reject:
    at = offset + start
    if reason == TOO_LONG:
        return Reject(reason, 0, at, at, data[start : start + BEGINNING_BYTES], end - start)
    return Reject(reason, 0, at, at, data[start:end])


class WellFormedXml:
    """Takes the pieces of one file, whose outermost element is `root`; `path` is for errors."""

    def __init__(self, path: str, root: str):
        self._path, self._root = path, root
        self._parser = expat.ParserCreate()
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._document_type
        self._parser.StartElementHandler = self._outermost

    def take(self, piece: bytes) -> None:
        """Raises InputError where the XML is not well-formed, or not to be read."""
        self._parse(piece, False)

    def end(self) -> None:
        """Raises InputError if the XML is not whole."""
        self._parse(b'', True)

    def _parse(self, piece: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            hint = 'is the file whole? ' if is_last else ''
            raise InputError(
                f'{self._path} is no well-formed XML: {what} at byte {self._place} of its text; '
                f'{hint}mend it there, as `xmllint --noout` would show'
            ) from None

    @property
    def _place(self) -> int:
        return max(self._parser.ErrorByteIndex, 0)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise InputError(
                f'{self._path} is declared to be {encoding[:40]}, and TMX is read as UTF-8 or UTF-16; '
                'convert it with iconv, and the declaration with it'
            )

    def _outermost(self, name: str, attributes: dict[str, str]) -> None:
        # A call for each element would take longer than all else.
        self._parser.StartElementHandler = None
        if name != self._root:
            raise InputError(
                f'{self._path} is XML of <{name[:40]}> and not of <{self._root}>; give another format'
            )

    def _document_type(
        self, name: str, system: str | None, public: str | None, has_declarations: int
    ) -> None:
        if has_declarations:
            raise InputError(
                f'{self._path} has declarations in its document type, as of entities, and these are '
                'not read; take out what stands there in [brackets]'
            )
