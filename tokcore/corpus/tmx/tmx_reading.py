"""A file of TMX as blocks of whole translation units, whatever stands between them.

A block's text begins wherever the one before ended and ends behind a unit, so that no comment, CDATA
section or tag is cut. Of a unit too long to be held nothing is, and neither of what stands outside of
units, however long. What was read of the file is told by the pieces that it came in.
"""

import codecs
from collections.abc import Iterable, Iterator

import google_crc32c
import numpy as np

from tokcore.corpus.dataset import Block, BlockText, LongLine, OpenBinary, ReadRange, WorkItem
from tokcore.corpus.long_lines import BEGINNING_BYTES
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.corpus.tmx.unit_ends import SCAN, TEXT, find_unit_ends, moves
from tokcore.corpus.tmx.well_formed import WellFormedXml
from tokcore.errors import InputError

_DEEPEST = 1000
"""Of elements within each other: TMX has a dozen; each one open costs memory."""

_LEAST_LIMIT = 1 << 20
"""Of what is held of a tag, a comment or a section whatever else may be held."""

_HEAD_BYTES = 4
_LEAST_UNIT = 5  # `<tu/>`


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
        self._long: tuple[int, bytes] | None = None  # of a unit that is not held, start and beginning
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
            item.split, item.format, item.place, (text,), self._max_line_bytes, long_units, (read,)
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
