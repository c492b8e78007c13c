"""The units of a TMX file, read by expat in one pass, and the rows of their segments.

A block holds of each of its units where it is, and its segments in the languages that are wanted, in
Arrow's stream format. The reader holds the text of the open unit only, and not of one that is too long.
Entities that would expand or be fetched are refused where they are declared.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

import google_crc32c
import numpy as np
import pyarrow as pa

from tokcore.corpus.archive_reading import text_pieces, with_whole_head
from tokcore.corpus.arrow_columns import array_side
from tokcore.corpus.corpus import (
    TOO_LONG,
    Block,
    BlockText,
    OpenBinary,
    ReadRange,
    Reject,
    Rows,
    WorkItem,
)
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.corpus.tmx import Tmx
from tokcore.errors import InputError
from tokcore.text.rows import Normalizer

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

_EXACT, _REGION = 2, 1
"""How well a language fits: it is the one, or a variant of it for a region."""


class TmxReader(FormatReader):
    """Reads a file as one item, as XML must be read."""

    format: Tmx

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        """Yields the blocks of a whole file.

        Raises:
            InputError: the file cannot be read, is not well-formed, or declares entities.
        """
        [text_range] = item.ranges
        pieces = text_pieces(text_range.file, open_binary)
        return _UnitReader(item, self.format, block_bytes, max_line_bytes).blocks(pieces)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        """Returns the rows; one that lacks a language, or has a blank segment, is empty."""
        [text] = block.texts
        units = pa.ipc.open_stream(text.data).read_next_batch()
        starts, sizes, reasons, texts, *segments = units.columns
        sides = [
            normalizer.apply(array_side(column.cast(pa.large_binary()))).side for column in segments
        ]
        rejected = np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False))
        is_row = np.ones(len(starts), bool)
        for side in sides:
            is_row &= side.ends > side.starts
        is_row[rejected] = False
        rows = np.flatnonzero(is_row)
        return Rows(
            tuple(side.take(rows) for side in sides),
            text.offset,
            starts.to_numpy()[rows] - text.offset,
            len(starts),
            len(starts) - len(rows) - len(rejected),
            tuple(
                _reject(*(column[row].as_py() for column in (starts, sizes, reasons, texts)))
                for row in rejected.tolist()
            ),
        )


def _reject(start: int, size: int, reason: str, text: bytes) -> Reject:
    if reason == TOO_LONG:
        return Reject(reason, 0, start, start, text, size)
    return Reject(reason, 0, start, start, text)


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


@dataclass
class _Units:
    """The units of a block, by columns."""

    starts: list[int] = field(default_factory=list)  # in the file's text
    sizes: list[int] = field(default_factory=list)  # bytes
    reasons: list[str | None] = field(default_factory=list)  # why they are rejected
    texts: list[bytes | None] = field(default_factory=list)  # what rejects keep of them
    segments: list[str | None] = field(default_factory=list)
    """A segment for each language, of one unit after another."""

    def to_bytes(self, languages: int) -> bytes:
        """Returns the columns, and one for each language, in Arrow's stream format."""
        arrays = [
            pa.array(self.starts, pa.int64()),
            pa.array(self.sizes, pa.int64()),
            pa.array(self.reasons, pa.string()),
            pa.array(self.texts, pa.large_binary()),
            *(
                pa.array(self.segments[number::languages], pa.large_string())
                for number in range(languages)
            ),
        ]
        batch = pa.RecordBatch.from_arrays(arrays, [str(number) for number in range(len(arrays))])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()


class _UnitReader:
    """Reads the units of one file; offsets are those of the text, in UTF-8."""

    def __init__(self, item: WorkItem, form: Tmx, block_bytes: int, max_line_bytes: int):
        self._item, self._path = item, item.ranges[0].file.path
        self._languages = tuple(code.lower().replace('_', '-') for code in form.languages)
        self._drop_codes = form.markup == 'drop'
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._read = (0, 0, 0)  # offset, length and checksum of stored bytes since the last block
        self._held = _Held()
        self._unit_start: int | None = None  # of the open unit
        self._long_beginning: bytes | None = None  # of the open unit, if it is not held
        self._units = _Units()  # of the next block

    def blocks(self, pieces: Iterable[bytes]) -> Iterator[Block]:
        is_first = True
        for piece in with_whole_head(pieces, _HEAD_BYTES):
            if is_first:
                self._start(piece)
                is_first = False
            offset, length, checksum = self._read
            self._read = offset, length + len(piece), google_crc32c.extend(checksum, piece)
            self._parse(self._decode(piece))
            if self._units.starts and self._held.end - self._block_start >= self._block_bytes:
                yield self._next_block()
        if is_first:
            self._start(b'')
        self._parse(self._decode(b'', is_last=True), is_last=True)
        yield self._next_block()

    def _start(self, head: bytes) -> None:
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._decoder = codecs.getincrementaldecoder('utf-16')()
        elif b'\0' in head[:_HEAD_BYTES]:
            raise InputError(
                f'{self._path} has a NUL among its first bytes: UTF-16 without its byte order mark, '
                'or not XML; convert it to UTF-8'
            )
        self._parser = expat.ParserCreate(None if self._decoder is None else 'utf-8')
        self._parser.buffer_text = True
        self._parser.XmlDeclHandler = self._check_declaration
        self._parser.StartDoctypeDeclHandler = self._check_document_type
        self._set_element_handlers()

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
        """Drops text that is not needed any more; the open unit is, if it is not too long."""
        held, most = self._held, self._block_bytes + self._max_line_bytes
        # The start of the token that expat has not seen the end of.
        parsed = max(self._parser.CurrentByteIndex, held.offset)
        if held.end - parsed > max(most, _LEAST_LIMIT):
            raise InputError(
                f'{self._path}: the markup at byte {parsed} has no end within {held.end - parsed} '
                'bytes; is a comment or a quote not closed? mend it, or give a larger --max-line-size'
            )
        start = self._unit_start
        if start is not None and self._long_beginning is None:
            if held.end - start <= most:
                held.drop(start)
                return
            self._long_beginning = held.slice(start, start + BEGINNING_BYTES)
            self._parser.CharacterDataHandler = None
        held.drop(parsed)

    def _next_block(self) -> Block:
        """Returns a block of the units since the last one, of which there may be none."""
        text = BlockText(self._block_start, self._units.to_bytes(len(self._languages)))
        read = ReadRange(0, *self._read)
        self._units, self._read = _Units(), (read.offset + read.length, 0, 0)
        return Block(
            self._item.split, self._item.format, self._item.file_index, (text,),
            self._max_line_bytes, read_ranges=(read,),
        )  # fmt: skip

    @property
    def _block_start(self) -> int:
        """Where the first unit of the next block starts; if there is none, where the held text ends."""
        return self._units.starts[0] if self._units.starts else self._held.end

    def _set_element_handlers(self) -> None:
        """Lets expat call functions, which cost less than methods.

        Of a variant the first segment counts; of variants that fit equally well, the first.
        """
        parser, languages, drop_codes = self._parser, self._languages, self._drop_codes
        depth = 0
        # Of the open unit, by language: a segment, or None for one with an unknown entity; how well it fits.
        segments: list[str | None] = []
        fits: list[int] = []
        fits_of: dict[str, Sequence[tuple[int, int]]] = {}  # by language
        # What the open variant fits, until it has a segment.
        variant: Sequence[tuple[int, int]] | None = None
        parts: list[str] | None = None  # of the open segment
        codes = 0  # open elements from the outermost code on
        has_undefined = False

        def start_element(name: str, attributes: dict[str, str]) -> None:
            nonlocal depth, segments, fits, variant, parts, codes, has_undefined
            depth += 1
            if not 1 < depth <= _MOST_DEPTH:
                self._check_depth(depth, name)
            if parts is not None:
                if codes or (drop_codes and name in _CODES):
                    codes += 1
                    parser.CharacterDataHandler = None
            elif name == 'seg':
                if variant is not None:
                    parts, codes, has_undefined = [], 0, False
                    if variant and self._long_beginning is None:
                        parser.CharacterDataHandler = parts.append
            elif name == 'tuv':
                if variant is None and self._unit_start is not None:
                    language = attributes.get('xml:lang')
                    if language is None:
                        language = attributes.get('lang', '')
                    variant = fits_of.get(language)
                    if variant is None:
                        variant = fits_of[language] = _fits(language, languages)
            elif name == 'tu' and self._unit_start is None:
                self._unit_start = parser.CurrentByteIndex
                segments = [''] * len(languages)
                fits = [0] * len(languages)

        def end_element(name: str) -> None:
            nonlocal depth, variant, parts, codes
            depth -= 1
            if parts is not None and name != 'tu':
                if name == 'seg':
                    if variant:
                        parser.CharacterDataHandler = None
                        text = ''.join(parts).replace('\n', ' ').replace('\r', ' ')
                        for number, fit in variant:
                            if fit > fits[number]:
                                segments[number] = None if has_undefined else text
                                fits[number] = fit
                    variant = parts = None
                elif codes:
                    codes -= 1
                    if variant and not codes and self._long_beginning is None:
                        parser.CharacterDataHandler = parts.append
            elif name == 'tuv':
                variant = None
            elif name == 'tu' and self._unit_start is not None:
                variant = parts = None
                parser.CharacterDataHandler = None
                self._end_unit(self._unit_start, segments)

        def skip_entity(name: str, is_parameter: bool) -> None:
            nonlocal has_undefined
            has_undefined = True

        parser.StartElementHandler = start_element
        parser.EndElementHandler = end_element
        parser.SkippedEntityHandler = skip_entity

    def _end_unit(self, start: int, segments: Sequence[str | None]) -> None:
        held = self._held
        index = self._parser.CurrentByteIndex
        end = held.offset + _tag_end(held.text, start - held.offset, index - held.offset)
        reason = text = None
        if end - start > self._max_line_bytes:
            reason = TOO_LONG
            text = self._long_beginning or held.slice(start, min(end, start + BEGINNING_BYTES))
        elif None in segments:
            reason, text = _UNDEFINED_ENTITY, held.slice(start, end)
        units = self._units
        units.starts.append(start)
        units.sizes.append(end - start)
        units.reasons.append(reason)
        units.texts.append(text)
        units.segments += segments
        self._unit_start = self._long_beginning = None

    def _check_depth(self, depth: int, name: str) -> None:
        if depth == 1 and name != _ROOT:
            raise InputError(
                f'{self._path} is XML of <{name[:40]}> and not of <{_ROOT}>; give another format'
            )
        if depth > _MOST_DEPTH:
            raise InputError(
                f'{self._path} has over {_MOST_DEPTH} elements within each other at byte '
                f'{self._parser.CurrentByteIndex}; TMX has a dozen: mend it'
            )

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
