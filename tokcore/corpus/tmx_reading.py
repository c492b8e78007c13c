"""A TMX file as blocks of whole translation units, and the rows of such blocks, both by expat.

The reader checks that the file is well-formed XML, and finds where units begin and end. It holds
the units of the next block only, neither the text outside of units nor a unit that is too long. A
block is parsed once more for its segments. For that it begins with a unit, and ends before the
element that its units are in does. Entities that would expand or be fetched are refused where they
are declared.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
    WorkItem,
)
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.corpus.line_rows import long_rows
from tokcore.corpus.tmx import Tmx
from tokcore.errors import InputError
from tokcore.text.rows import Normalizer, Side

_UNDEFINED_ENTITY = 'undefined_entity'

_ROOT = 'tmx'
_CODES = frozenset({'bpt', 'ept', 'it', 'ph', 'ut'})
"""Inline elements that hold codes of a native format."""

_MOST_DEPTH = 1000
"""Elements within each other: TMX has a dozen; each open one costs memory."""

_LEAST_LIMIT = 1 << 20
"""Bytes that a tag, a comment or a section may have, whatever the other limits are."""

_HEAD_BYTES = 4
_ENCODINGS = {'utf-8', 'utf8', 'us-ascii', 'ascii', 'utf-16'}

_START_TAG = re.compile(rb'<(?:[^>"\']|"[^"]*"|\'[^\']*\')*>')

_PROLOG = b'<!DOCTYPE x SYSTEM "x"><x>'
"""Stands before the units of a block, so that undefined entities are skipped, as in the file."""

_EXACT, _REGION = 2, 1
"""How well a language fits: it is the one, or a variant of it for a region."""


class TmxReader(FormatReader):
    """Reads a file as one item, as XML must be read."""

    format: Tmx

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        return _read_units(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.format.sides), block.offset)
        [text] = block.texts
        languages = tuple(code.lower().replace('_', '-') for code in self.format.languages)
        drop_codes = self.format.markup == 'drop'
        return unit_rows(
            text.data, text.offset, languages, drop_codes, normalizer, block.max_line_bytes
        )


def _read_units(
    item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
) -> Iterator[Block]:
    """Yields the blocks of a whole file.

    Raises:
        InputError: the file cannot be read, is not well-formed, or declares entities.
    """
    [text_range] = item.ranges
    pieces = text_pieces(text_range.file, open_binary)
    return _UnitReader(item, block_bytes, max_line_bytes).blocks(pieces)


def unit_rows(
    data: bytes,
    offset: int,
    languages: tuple[str, ...],
    drop_codes: bool,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows of a block of whole units, with a side for each language.

    A unit that lacks one of the languages, or has a blank segment, is an empty row.

    Args:
        data: the text of a block from `_read_units`.
        offset: of `data` in the text of the file.
        languages: in lower case.
        drop_codes: whether to leave out codes of a native format in inline elements.
        normalizer: turns segments into text.
        max_line_bytes: a longer unit is rejected.
    """
    units = _parse_units(data, languages, drop_codes)
    starts = np.array(units.starts, np.int64)
    by_language = [units.texts[number :: len(languages)] for number in range(len(languages))]
    reasons = {
        number: _UNDEFINED_ENTITY
        for texts in by_language
        for number, text in enumerate(texts)
        if text is None
    }
    # A unit ends before the next one begins.
    most_sizes = np.diff(starts, append=len(data))
    for number in np.flatnonzero(most_sizes > max_line_bytes).tolist():
        start, end = units.bounds(data, number)
        if end - start > max_line_bytes:
            reasons[number] = TOO_LONG
    sides = [normalizer.apply(_side_of(texts)).side for texts in by_language]
    has_text = np.ones(len(starts), bool)
    for side in sides:
        has_text &= side.ends > side.starts
    has_text[list(reasons)] = False
    rows = np.flatnonzero(has_text)
    return Rows(
        tuple(side.take(rows) for side in sides),
        offset,
        starts[rows],
        len(starts),
        len(starts) - len(rows) - len(reasons),
        tuple(
            _reject(reason, offset, data, *units.bounds(data, number))
            for number, reason in sorted(reasons.items())
        ),
    )


def _side_of(texts: Sequence[str | None]) -> Side:
    """Returns rows with a line feed before and after each."""
    encoded = [(text or '').encode() for text in texts]
    sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
    ends = np.cumsum(sizes + 1)
    return Side(np.frombuffer(b'\n'.join((b'', *encoded, b'')), np.uint8), ends - sizes, ends)


def _reject(reason: str, offset: int, data: bytes, start: int, end: int) -> Reject:
    unit_offset = offset + start
    if reason == TOO_LONG:
        beginning = data[start : start + BEGINNING_BYTES]
        return Reject(reason, 0, unit_offset, unit_offset, beginning, end - start)
    return Reject(reason, 0, unit_offset, unit_offset, data[start:end])


@dataclass
class _Units:
    """The units of a block."""

    starts: list[int]
    ends: list[int]  # as expat reports them
    texts: list[str | None]
    """Of each unit a segment for each language, one after another: '' if there is none, None if it
    refers to an undefined entity."""

    def bounds(self, data: bytes, number: int) -> tuple[int, int]:
        """Returns where a unit starts and ends in the block."""
        start = self.starts[number]
        return start, _tag_end(data, start, self.ends[number])


def _parse_units(data: bytes, languages: tuple[str, ...], drop_codes: bool) -> _Units:
    """Returns the units of a block, each with the best segment for each language.

    Of a variant the first segment counts; of variants that fit equally well, the first.
    """
    parser = expat.ParserCreate('utf-8')
    parser.buffer_text = True
    units = _Units([], [], [])
    starts, texts, count = units.starts, units.texts, len(languages)
    fits: list[int] = []  # how well the last `count` texts fit
    fits_of: dict[str, Sequence[tuple[int, int]]] = {}  # by language
    in_unit = has_undefined = False
    variant: Sequence[tuple[int, int]] | None = None  # fits of the open one, until it has a segment
    parts: list[str] | None = None  # of the open segment
    codes = 0  # open elements from the outermost code on

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal fits, in_unit, has_undefined, variant, parts, codes
        if parts is not None:
            if codes or (drop_codes and name in _CODES):
                codes += 1
                parser.CharacterDataHandler = None
        elif name == 'seg':
            if variant is not None:
                parts, codes, has_undefined = [], 0, False
                if variant:
                    parser.CharacterDataHandler = parts.append
        elif name == 'tuv':
            if in_unit and variant is None:
                language = attributes.get('xml:lang')
                if language is None:
                    language = attributes.get('lang', '')
                variant = fits_of.get(language)
                if variant is None:
                    variant = fits_of[language] = _fits(language, languages)
        elif name == 'tu' and not in_unit:
            starts.append(parser.CurrentByteIndex - len(_PROLOG))
            texts.extend([''] * count)
            fits = [0] * count
            in_unit = True

    def end_element(name: str) -> None:
        nonlocal in_unit, variant, parts, codes
        if parts is not None and name != 'tu':
            if name == 'seg':
                if variant:
                    parser.CharacterDataHandler = None
                    text = ''.join(parts).replace('\n', ' ').replace('\r', ' ')
                    for number, fit in variant:
                        if fit > fits[number]:
                            texts[number - count] = None if has_undefined else text
                            fits[number] = fit
                variant = parts = None
            elif codes:
                codes -= 1
                if variant and not codes:
                    parser.CharacterDataHandler = parts.append
        elif name == 'tuv':
            variant = None
        elif name == 'tu' and in_unit:
            units.ends.append(parser.CurrentByteIndex - len(_PROLOG))
            in_unit, variant, parts = False, None, None
            parser.CharacterDataHandler = None

    def skip_entity(name: str, is_parameter: bool) -> None:
        nonlocal has_undefined
        has_undefined = True

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.SkippedEntityHandler = skip_entity
    parser.Parse(_PROLOG, False)
    parser.Parse(data, False)  # not the last piece: the elements around the units stay open
    return units


def _fits(language: str, codes: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Returns which of some codes in lower case a language fits, as it is written, and how well."""
    if not language.isascii():
        language = language.encode('ascii', 'replace').decode()
    language = language.lower().replace('_', '-')
    return tuple(
        (number, _EXACT if language == code else _REGION)
        for number, code in enumerate(codes)
        if language == code or language.startswith(f'{code}-')
    )


def _tag_end(text: bytes | bytearray, start: int, index: int) -> int:
    """Returns where a unit ends that starts at `start`; expat reports its end at `index`.

    That is where its end tag starts, or, if the unit is an empty-element tag, where that ends.
    """
    if text[index - 2 : index] == b'/>':
        tag = _START_TAG.match(text, start)
        if tag is not None and tag.end() == index:
            return index
    return text.index(b'>', index) + 1


@dataclass
class _Held:
    """The text of a file from an offset on, of which only the beginning is dropped."""

    offset: int = 0
    text: bytearray = field(default_factory=bytearray)

    @property
    def end(self) -> int:
        return self.offset + len(self.text)

    def slice(self, start: int, end: int) -> bytes:
        return bytes(self.text[start - self.offset : end - self.offset])

    def drop(self, end: int) -> None:
        if end > self.offset:
            del self.text[: end - self.offset]
            self.offset = end


class _UnitReader:
    """Cuts the text of one file into blocks; offsets are those of the text, in UTF-8."""

    def __init__(self, item: WorkItem, block_bytes: int, max_line_bytes: int):
        self._item, self._path = item, item.ranges[0].file.path
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._read = (0, 0, 0)  # offset, length and checksum of stored bytes since the last block
        self._held = _Held()
        self._depth = 0
        self._unit_start: int | None = None  # of the open unit
        self._long_beginning: bytes | None = None  # of the open unit, if it is not held
        self._block_start = 0  # of the whole units of the next block
        self._block_depth: int | None = None  # of these units; None: there are none yet
        self._last_unit = (0, 0)  # of these: its start, and its end as expat reports it
        self._is_parent_closed = False  # the element that these units are in has ended
        self._ready: list[tuple[BlockText, tuple[LongLine, ...]]] = []

    def blocks(self, pieces: Iterable[bytes]) -> Iterator[Block]:
        is_first = True
        for piece in _with_whole_head(pieces):
            if is_first:
                self._start(piece)
                is_first = False
            offset, length, checksum = self._read
            self._read = offset, length + len(piece), google_crc32c.extend(checksum, piece)
            self._parse(self._decode(piece))
            yield from self._ready_blocks()
        if is_first:
            self._start(b'')
        self._parse(self._decode(b'', is_last=True), is_last=True)
        self._close_block(always=True)
        yield from self._ready_blocks()

    def _start(self, head: bytes) -> None:
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._decoder = codecs.getincrementaldecoder('utf-16')()
        elif b'\0' in head[:_HEAD_BYTES]:
            raise InputError(
                f'{self._path} has a NUL among its first bytes: UTF-16 without its byte order mark, '
                'or not XML; convert it to UTF-8'
            )
        self._parser = expat.ParserCreate(None if self._decoder is None else 'utf-8')
        self._parser.ordered_attributes = True  # lists cost less
        self._parser.XmlDeclHandler = self._check_declaration
        self._parser.StartDoctypeDeclHandler = self._check_document_type
        self._parser.StartElementHandler = self._start_element
        self._parser.EndElementHandler = self._end_element

    def _decode(self, piece: bytes, is_last: bool = False) -> bytes:
        if self._decoder is None:
            return piece
        try:
            return self._decoder.decode(piece, is_last).encode()
        except UnicodeDecodeError as error:
            raise InputError(f'{self._path} is not UTF-16: {error.reason}; convert it') from None

    def _parse(self, text: bytes, is_last: bool = False) -> None:
        self._held.text += text
        try:
            self._parser.Parse(text, is_last)
        except expat.ExpatError as error:
            hint = 'is the file whole? ' if is_last else ''
            raise self._not_well_formed(expat.ErrorString(error.code), hint) from None
        if not is_last:
            self._limit_memory()

    def _not_well_formed(self, what: str, hint: str = '') -> InputError:
        return InputError(
            f'{self._path} is not well-formed XML: {what} at byte '
            f'{max(self._parser.ErrorByteIndex, 0)} of its text; {hint}mend it there, as '
            '`xmllint --noout` would show'
        )

    def _limit_memory(self) -> None:
        """Closes the block if it is large enough, and drops text that is not needed any more."""
        held, most = self._held, self._block_bytes + self._max_line_bytes
        # The start of the token that expat has not seen the end of.
        parsed = max(self._parser.CurrentByteIndex, held.offset)
        if held.end - parsed > max(most, _LEAST_LIMIT):
            raise InputError(
                f'{self._path}: the markup at byte {parsed} has no end within {held.end - parsed} '
                'bytes; is a comment or a quote not closed? mend it, or give a larger --max-line-size'
            )
        has_units = self._block_depth is not None
        if has_units and self._units_end() - self._block_start >= self._block_bytes:
            self._close_block()
        start = self._unit_start
        if start is not None and self._long_beginning is None and held.end - start > most:
            self._close_block()
            self._long_beginning = held.slice(start, start + BEGINNING_BYTES)
        if self._block_depth is not None:
            held.drop(self._block_start)
        elif start is not None and self._long_beginning is None:
            held.drop(start)
        else:
            held.drop(parsed)

    def _close_block(self, always: bool = False) -> None:
        """Makes a block of the whole units since the last one, if there are any."""
        if self._block_depth is not None:
            data = self._held.slice(self._block_start, self._units_end())
            self._ready.append((BlockText(self._block_start, data), ()))
        elif always:
            self._ready.append((BlockText(self._held.end, b''), ()))
        self._block_depth = None
        self._is_parent_closed = False

    def _units_end(self) -> int:
        """Returns where the last of the whole units ends; there must be one."""
        held, (start, index) = self._held, self._last_unit
        return held.offset + _tag_end(held.text, start - held.offset, index - held.offset)

    def _ready_blocks(self) -> Iterator[Block]:
        for text, long_units in self._ready:
            read = ReadRange(0, *self._read)
            self._read = (read.offset + read.length, 0, 0)
            yield Block(
                self._item.split,
                self._item.format,
                self._item.file_index,
                (text,),
                self._max_line_bytes,
                long_units,
                (read,),
            )
        self._ready.clear()

    def _start_element(self, name: str, attributes: list[str]) -> None:
        self._depth = depth = self._depth + 1
        if depth == 1 and name != _ROOT:
            raise InputError(
                f'{self._path} is XML of <{name[:40]}> and not of <{_ROOT}>; give another format'
            )
        if name == 'tu' and self._unit_start is None:
            self._unit_start = self._parser.CurrentByteIndex
            if self._is_parent_closed:
                self._close_block()
        if depth > _MOST_DEPTH:
            raise InputError(
                f'{self._path} has over {_MOST_DEPTH} elements within each other at byte '
                f'{self._parser.CurrentByteIndex}; TMX has a dozen: mend it'
            )

    def _end_element(self, name: str) -> None:
        self._depth -= 1
        if self._unit_start is not None:
            if name == 'tu':
                self._end_unit(self._unit_start)
                self._unit_start = None
        elif self._block_depth is not None and self._depth < self._block_depth:
            self._is_parent_closed = True

    def _end_unit(self, start: int) -> None:
        index = self._parser.CurrentByteIndex
        if self._long_beginning is not None:
            held = self._held
            size = held.offset + held.text.index(b'>', index - held.offset) + 1 - start
            # `read` has the checksum of what was read.
            unit = LongLine(0, start, size, size, 0, self._long_beginning)
            self._ready.append((BlockText(start, b''), (unit,)))
            self._long_beginning = None
            return
        if self._block_depth is None:
            self._block_start, self._block_depth = start, self._depth
        self._last_unit = start, index

    def _check_declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is None:
            return
        if encoding.lower() not in _ENCODINGS:
            raise InputError(
                f'{self._path} is declared to be {encoding[:40]}, and TMX is read as UTF-8 or UTF-16; '
                'convert it with iconv, and the declaration with it'
            )
        if self._decoder is not None and encoding.lower() != 'utf-16':
            raise self._not_well_formed(expat.errors.XML_ERROR_INCORRECT_ENCODING)

    def _check_document_type(
        self, name: str, system: str | None, public: str | None, has_declarations: int
    ) -> None:
        if has_declarations:
            raise InputError(
                f'{self._path} has declarations in its document type, as of entities, and these are '
                'not read; remove the part in [brackets]'
            )


def _with_whole_head(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the pieces, the first with the bytes that show the encoding, if there are so many."""
    head = b''
    rest = iter(pieces)
    for piece in rest:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    if head:
        yield head
    yield from rest
