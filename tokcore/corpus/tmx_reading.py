"""The units of a TMX file, read by expat in one pass, and the rows of their segments.

A block holds of each of its units where it is, and its segments in the languages that are wanted, in
Arrow's stream format. The reader holds the text of the open unit only, and not of one that is too long.
Entities that would expand or be fetched are refused where they are declared.

After a unit that is not well-formed a new parser goes on where the unit ends. It first reads the start
tags of the elements that were open around the unit.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

import google_crc32c
import numpy as np
import pyarrow as pa

from tokcore.corpus.archive_reading import UTF_16_MARKS, text_pieces, with_whole_head
from tokcore.corpus.arrow_columns import array_side
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    TOO_LONG,
    Block,
    BlockText,
    CorpusFile,
    Newlines,
    OpenBinary,
    ReadRange,
    Reject,
    Rows,
    TextRange,
    WorkItem,
)
from tokcore.corpus.declarations import BROKEN_UNIT, UNDEFINED_ENTITY, Tmx
from tokcore.corpus.formats import FormatReader
from tokcore.corpus.line_reading import BEGINNING_BYTES
from tokcore.corpus.line_rows import finish_rows
from tokcore.corpus.looks import wmt_xml_error
from tokcore.corpus.stats import count_newlines, join_newlines
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.text.normalizers import find_damage
from tokcore.text.rows import Normalizer

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

_UNIT_TAG = re.compile(rb'<tu(?=[\s/>])')

_UNIT_END = re.compile(rb'</tu\s{0,32}>|<tu(?=[\s/>])|</body(?=[\s>])|</tmx(?=[\s>])')
"""Where a unit that is not well-formed ends: after its end tag, or before what cannot be in a unit."""

_LONGEST_END = 40
"""Bytes of the longest match of `_UNIT_END`, and more: a piece may end within it."""

_FIRST_STEP = 4 << 10
"""Bytes that a parser gets first after a broken unit; expat copies all that it gets, and the
next unit may be broken too."""

_CUT_OFF = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
"""Errors at the end of a file that is not whole."""

_DESCRIBED = {
    expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]: 'invalid token, as a bare & or <'
}
"""Errors of which expat says only that the text is not well-formed."""

_UNDECLARED = expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]

_UNDEFINED = object()
"""Stands for a segment that refers to an entity without a definition."""

_REJECTS = pa.struct(
    [
        ('reason', pa.string()),
        ('line', pa.large_binary()),  # of the unit, or its beginning if it is too long
        ('size', pa.int64()),  # of a unit that is too long, in bytes
        ('position', pa.int64()),  # of what is wrong
        ('number', pa.int64()),  # of the line there
        ('why', pa.string()),
    ]
)

_MOST_SEARCHED = 64
"""Pieces of a file that are searched for the languages that it has: 64 MiB take a second or two."""

_MOST_NAMED = 20
"""Languages that an error names; corpora of the United Nations have six, of the Union 24."""

_EXACT, _REGION = 2, 1
"""How well a language fits: it is the one, or a variant of it for a region."""


class TmxReader(FormatReader):
    """Reads a file as one item, as XML must be read."""

    format: Tmx
    may_be_utf_16 = True

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
        """Returns the rows; a unit with a blank segment is empty, and one may lack a language."""
        [text] = block.texts
        units = pa.ipc.open_stream(text.data).read_next_batch()
        starts, _, rejects, *segments = units.columns
        is_rejected = rejects.is_valid().to_numpy(zero_copy_only=False)
        lacks_language = np.zeros(len(starts), bool)
        sides = []
        for column in segments:
            if column.null_count:
                lacks_language |= column.is_null().to_numpy(zero_copy_only=False)
                column = column.fill_null('')
            sides.append(normalizer.apply(array_side(column.cast(pa.large_binary()))).side)
        rejected = {
            row: Reject(side=0, offset=starts[row].as_py(), **rejects[row].as_py())
            for row in np.flatnonzero(is_rejected).tolist()
        }
        line_starts = starts.to_numpy() - text.offset
        rows = finish_rows(text.offset, line_starts, None, sides, rejected)
        missing = int(np.count_nonzero(lacks_language & ~is_rejected))
        return dataclasses.replace(rows, empty=rows.empty - missing, missing_side=missing)

    def bounds_of_units(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        units = pa.ipc.open_stream(block.texts[0].data).read_next_batch()
        return units.column(0).to_numpy(), units.column(1).to_numpy()

    def explain_empty(self, files: Sequence[CorpusFile], open_binary: OpenBinary) -> str:
        """Returns which languages the files have."""
        languages: set[str] = set()
        for file in files:
            item = WorkItem('', self.format, 0, (TextRange(file, 0, file.size),))
            reader = _UnitReader(item, self.format, _LEAST_LIMIT, _LEAST_LIMIT)
            pieces = itertools.islice(text_pieces(file, open_binary), _MOST_SEARCHED)
            # The error of a file that is cut off there is not of interest.
            with contextlib.suppress(InputError):
                for _ in reader.blocks(pieces):
                    pass
            languages |= reader.languages
        named = sorted(map(shown, languages - {''}))
        if len(named) > _MOST_NAMED:
            named[_MOST_NAMED:] = [f'{len(named) - _MOST_NAMED} more']
        found = f'the languages {", ".join(named)}' if named else 'no languages'
        return f'they have {found}; check the files and --languages'


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
class _Window:
    """The text of a file from an offset on, of which only the beginning is dropped."""

    offset: int = 0
    text: bytearray = field(default_factory=bytearray)
    _counted: int = 0  # where `_newlines` line feeds are before
    _newlines: int = 0

    @property
    def end(self) -> int:
        return self.offset + len(self.text)

    def slice(self, start: int, end: int) -> bytes:
        return bytes(self.text[start - self.offset : end - self.offset])

    def drop(self, end: int) -> None:
        if end > self.offset:
            if end > self._counted:
                self.line_at(end)
            del self.text[: end - self.offset]
            self.offset = end

    def line_at(self, position: int) -> int:
        """Returns the number of the line at a position in the text, from 1."""
        first, last = sorted((self._counted, position))
        newlines = self.text.count(b'\n', first - self.offset, last - self.offset)
        self._newlines += newlines if position > self._counted else -newlines
        self._counted = position
        return self._newlines + 1


@dataclass
class _Units:
    """The units of a block, by columns."""

    starts: list[int] = field(default_factory=list)  # in the file's text
    ends: list[int] = field(default_factory=list)
    rejects: list[dict[str, Any] | None] = field(default_factory=list)  # fields of `_REJECTS`
    segments: list[Any] = field(default_factory=list)
    """A segment for each language, or None, of one unit after another."""

    def to_bytes(self, languages: int) -> bytes:
        """Returns the columns, and one for each language, in Arrow's stream format."""
        arrays = [
            pa.array(self.starts, pa.int64()),
            pa.array(self.ends, pa.int64()),
            pa.array(self.rejects, _REJECTS),
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


@dataclass(frozen=True)
class _Wrong:
    """Why a unit is rejected."""

    reason: str
    position: int  # of the error
    number: int  # of the line there
    why: str = ''  # for `BROKEN_UNIT`


class _UnendedUnit(Exception):
    """Another unit begins within a unit, at a position of the parser."""


class _UnitReader:
    """Reads the units of one file; offsets are those of the text, in UTF-8."""

    def __init__(self, item: WorkItem, form: Tmx, block_bytes: int, max_line_bytes: int):
        self.languages: set[str] = set()  # of all variants, as they are written
        self._item, self._path = item, item.ranges[0].file.path
        self._wanted = tuple(code.lower().replace('_', '-') for code in form.languages)
        self._drop_codes = form.markup == 'drop'
        self._block_bytes, self._max_line_bytes = block_bytes, max_line_bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._read = (0, 0, 0)  # offset, length and checksum of stored bytes since the last block
        self._newlines: Newlines = []  # of their text
        self._window = _Window()
        self._unit_start: int | None = None  # of the open unit
        self._long_beginning: bytes | None = None  # of the open unit, if it is not kept
        self._long_line = 0  # the number of the line where that unit begins
        self._units = _Units()  # of the next block
        self._declaration = b''  # of XML, for later parsers
        self._around: list[str] = []  # the open elements, without those in a unit
        self._parsed = 0  # the end of the text that the parser got
        self._shift = 0  # from positions of the parser to those of the text
        self._broken: _Wrong | None = None  # the unit whose end is being looked for
        self._follows_broken = False  # whether what is read is after a broken unit, before the next
        self._searched = 0  # the end of the text without the end of the broken unit

    def blocks(self, pieces: Iterable[bytes]) -> Iterator[Block]:
        whole = with_whole_head(pieces, _HEAD_BYTES)
        head = next(whole, b'')
        self._start(head)
        for piece in itertools.chain([head] if head else [], whole):
            offset, length, checksum = self._read
            self._read = offset, length + len(piece), google_crc32c.extend(checksum, piece)
            text = self._decode(piece)
            newlines = count_newlines(self._window.end, text)
            self._newlines = join_newlines(self._newlines, newlines)
            self._parse(text)
            if self._units.starts and self._window.end - self._block_start >= self._block_bytes:
                yield self._next_block()
        self._parse(self._decode(b'', is_last=True), is_last=True)
        yield self._next_block()

    def _start(self, head: bytes) -> None:
        if head.startswith(UTF_16_MARKS):
            # A lone surrogate becomes bytes that are not UTF-8, for which only its unit is rejected.
            self._decoder = codecs.getincrementaldecoder('utf-16')('surrogatepass')
        elif b'\0' in head[:_HEAD_BYTES]:
            raise InputError(
                f'{self._path} has a NUL among its first bytes: UTF-16 without its byte order mark, '
                'or not XML; convert it to UTF-8'
            )
        self._parser = self._new_parser()
        self._parser.XmlDeclHandler = self._check_declaration
        self._parser.StartDoctypeDeclHandler = self._check_document_type
        self._set_element_handlers()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(None if self._decoder is None else 'utf-8')
        parser.buffer_text = True
        # An entity without a definition is skipped then, with or without a document type.
        parser.UseForeignDTD(True)
        return parser

    def _decode(self, piece: bytes, is_last: bool = False) -> bytes:
        if self._decoder is None:
            return piece
        try:
            return self._decoder.decode(piece, is_last).encode('utf-8', 'surrogatepass')
        except UnicodeDecodeError as error:
            raise InputError(f'{self._path} is not UTF-16: {error.reason}; convert it') from None

    def _parse(self, text: bytes, is_last: bool = False) -> None:
        window = self._window
        window.text += text
        step = len(text)
        while True:
            if self._broken is not None:
                if not self._end_broken_unit(self._broken):
                    break
                step = _FIRST_STEP
            start, end = self._parsed, min(self._parsed + step, window.end)
            is_piece = (start, end) == (window.end - len(text), window.end)
            part = text if is_piece else window.slice(start, end)
            self._parsed, step = end, 2 * step
            is_end = end == window.end
            try:
                self._parser.Parse(part, is_last and is_end)
            except _UnendedUnit as error:
                self._break_unit('another unit begins within it', 0, error.args[0])
            except expat.ExpatError as error:
                what = _DESCRIBED.get(error.code, expat.ErrorString(error.code))
                self._break_unit(what, error.code, max(self._parser.ErrorByteIndex, 0))
            else:
                if is_end:
                    break
        if not is_last:
            self._limit_memory()
        elif self._broken is not None:
            raise self._not_well_formed(
                self._broken.why, self._broken.position, 'is the file whole? '
            )

    def _break_unit(self, what: str, code: int, index: int) -> None:
        """Notes what is wrong with the unit that is open, or whose start tag is being parsed.

        `index` is where the parser has found that.

        What follows a broken unit, up to the next unit, is taken for a part of it.

        Raises:
            InputError: it is not in a unit, or the file ends within it.
        """
        window = self._window
        position = index + self._shift
        if self._unit_start is None:
            self._unit_start = self._tag_around(position)
        is_in_unit = self._unit_start is not None or self._follows_broken
        if not is_in_unit or code in _CUT_OFF:
            hint = 'is the file whole? ' if code in _CUT_OFF else ''
            raise self._not_well_formed(what, position, hint)
        reason = UNDEFINED_ENTITY if code == _UNDECLARED else BROKEN_UNIT
        if find_damage(window.slice(position, position + 4)) == 0:
            if self._decoder is None:
                reason = INVALID_UTF8
            else:
                what = 'a lone surrogate'
        why = f'{what} at byte {position} of its text' if reason == BROKEN_UNIT else ''
        self._broken = _Wrong(reason, position, window.line_at(position), why)
        self._searched = position
        if self._unit_start is not None:
            # The end tag may be what is wrong, and expat names the byte after its slash.
            self._searched = max(self._unit_start + 1, position - 2)

    def _tag_around(self, position: int) -> int | None:
        """Returns where the start tag of a unit begins that a position is in; None if it is in none."""
        window = self._window
        end = position - window.offset
        start = window.text.rfind(b'<', 0, end)
        if start < 0 or not _UNIT_TAG.match(window.text, start):
            return None
        return None if _START_TAG.match(window.text, start, end) else window.offset + start

    def _end_broken_unit(self, broken: _Wrong) -> bool:
        """Goes on after a broken unit, or returns False if the text so far does not have its end."""
        window = self._window
        match = _UNIT_END.search(window.text, self._searched - window.offset)
        if match is None:
            self._searched = max(self._searched, window.end - _LONGEST_END)
            return False
        is_end_tag = match[0].startswith(b'</tu')
        end = window.offset + (match.end() if is_end_tag else match.start())
        if self._unit_start is not None:
            self._add_unit(self._unit_start, end, (), broken)
        self._follows_broken = True
        tags = ''.join(f'<{name}>' for name in self._around).encode()
        self._parser = self._new_parser()
        self._parser.Parse(self._declaration + tags, False)
        self._shift = end - len(self._declaration + tags)
        self._parsed = end
        self._broken = None
        self._set_element_handlers()
        window.drop(end)
        return True

    def _not_well_formed(self, what: str, position: int, hint: str = '') -> InputError:
        return InputError(
            f'{self._path} is not well-formed XML: {what} at line {self._window.line_at(position)}, byte '
            f'{position} of its text; {hint}mend it there, as `xmllint --noout` would show'
        )

    def _limit_memory(self) -> None:
        """Drops text that is not needed any more; the open unit is, if it is not too long."""
        window = self._window
        most = self._block_bytes + max(self._max_line_bytes, BEGINNING_BYTES)
        if self._broken is None:
            # The start of the token that expat has not seen the end of.
            parsed = max(self._parser.CurrentByteIndex + self._shift, window.offset)
        else:
            parsed = self._searched
        if window.end - parsed > max(most, _LEAST_LIMIT):
            raise InputError(
                f'{self._path}: the markup at byte {parsed} has no end within {window.end - parsed} '
                'bytes; is a comment or a quote not closed? mend it, or give a larger --max-line-size'
            )
        start = self._unit_start
        if start is not None and self._long_beginning is None:
            if window.end - start <= most:
                window.drop(start)
                return
            self._long_beginning = window.slice(start, start + BEGINNING_BYTES)
            self._long_line = window.line_at(start)
            self._parser.CharacterDataHandler = None
        window.drop(parsed)

    def _next_block(self) -> Block:
        """Returns a block of the units since the last one, of which there may be none."""
        text = BlockText(self._block_start, self._units.to_bytes(len(self._wanted)))
        read = ReadRange(0, *self._read, self._newlines)
        self._units, self._read = _Units(), (read.offset + read.length, 0, 0)
        self._newlines = []
        return Block(
            self._item.split, self._item.format, self._item.file_index, (text,),
            self._max_line_bytes, read_ranges=(read,),
        )  # fmt: skip

    @property
    def _block_start(self) -> int:
        """Where the first unit of the next block starts; if there is none, where the text in memory ends."""
        return self._units.starts[0] if self._units.starts else self._window.end

    def _set_element_handlers(self) -> None:
        """Lets expat call functions, which cost less than methods.

        The first segment of a variant counts; of variants that fit equally well, the first.
        """
        parser, languages, drop_codes = self._parser, self._wanted, self._drop_codes
        around, shift = self._around, self._shift
        depth = len(around)
        # For the open unit, by language: a segment, `_UNDEFINED` or None; how well it fits.
        segments: list[Any] = []
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
                if name == 'tu':
                    raise _UnendedUnit(parser.CurrentByteIndex)
                if codes or (drop_codes and name in _CODES):
                    codes += 1
                    parser.CharacterDataHandler = None
            elif name == 'seg' and variant is not None:
                parts, codes, has_undefined = [], 0, False
                if variant and self._long_beginning is None:
                    parser.CharacterDataHandler = parts.append
            elif self._unit_start is None:
                if name == 'tu':
                    self._unit_start = parser.CurrentByteIndex + shift
                    segments = [None] * len(languages)
                    fits = [0] * len(languages)
                else:
                    around.append(name)
            elif name == 'tuv':
                if variant is None:
                    language = attributes.get('xml:lang')
                    if language is None:
                        language = attributes.get('lang', '')
                    variant = fits_of.get(language)
                    if variant is None:
                        variant = fits_of[language] = _fits(language, languages)
                        self.languages.add(language)
            elif name == 'tu':
                raise _UnendedUnit(parser.CurrentByteIndex)

        def end_element(name: str) -> None:
            nonlocal depth, variant, parts, codes
            depth -= 1
            if parts is not None:
                if name == 'seg':
                    if variant:
                        parser.CharacterDataHandler = None
                        text = ''.join(parts).replace('\n', ' ').replace('\r', ' ')
                        for number, fit in variant:
                            if fit > fits[number]:
                                segments[number] = _UNDEFINED if has_undefined else text
                                fits[number] = fit
                    variant = parts = None
                elif codes:
                    codes -= 1
                    if variant and not codes and self._long_beginning is None:
                        parser.CharacterDataHandler = parts.append
            elif self._unit_start is None:
                around.pop()
            elif name == 'tuv':
                variant = None
            elif name == 'tu':
                self._end_unit(self._unit_start, segments)

        def skip_entity(name: str, is_parameter: bool) -> None:
            nonlocal has_undefined
            has_undefined = True

        parser.StartElementHandler = start_element
        parser.EndElementHandler = end_element
        parser.SkippedEntityHandler = skip_entity

    def _end_unit(self, start: int, segments: Sequence[Any]) -> None:
        window = self._window
        index = self._parser.CurrentByteIndex + self._shift
        end = window.offset + _tag_end(window.text, start - window.offset, index - window.offset)
        self._follows_broken = False
        wrong = None
        if self._long_beginning is not None:
            wrong = _Wrong(TOO_LONG, start, self._long_line)
        elif end - start > self._max_line_bytes:
            wrong = _Wrong(TOO_LONG, start, window.line_at(start))
        elif _UNDEFINED in segments:
            wrong = _Wrong(UNDEFINED_ENTITY, start, window.line_at(start))
        self._add_unit(start, end, segments, wrong)

    def _add_unit(
        self, start: int, end: int, segments: Sequence[Any], wrong: _Wrong | None
    ) -> None:
        units, reject = self._units, None
        if wrong is not None:
            is_long = end - start > self._max_line_bytes
            kept = min(end, start + BEGINNING_BYTES) if is_long else end
            reject = {
                'line': self._long_beginning or self._window.slice(start, kept),
                'size': end - start if is_long else None,
                **vars(wrong),
            }
            segments = [None] * len(self._wanted)
        units.starts.append(start)
        units.ends.append(end)
        units.rejects.append(reject)
        units.segments += segments
        self._unit_start = self._long_beginning = None

    def _check_depth(self, depth: int, name: str) -> None:
        if depth == 1 and name == 'dataset':
            raise wmt_xml_error(self._item.ranges[0].file)
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
        declared = '' if encoding is None or self._decoder else f' encoding="{encoding}"'
        declared += ' standalone="yes"' if standalone == 1 else ''
        self._declaration = f'<?xml version="1.0"{declared}?>'.encode()
        if encoding is None:
            return
        if encoding.lower() not in _ENCODINGS:
            raise InputError(
                f'{self._path} is declared to be {encoding[:40]}, and TMX is read as UTF-8 or UTF-16; '
                'convert it with iconv, and the declaration with it'
            )
        if self._decoder is not None and encoding.lower() != 'utf-16':
            what = expat.errors.XML_ERROR_INCORRECT_ENCODING
            raise self._not_well_formed(what, max(self._parser.ErrorByteIndex, 0))

    def _check_document_type(
        self, name: str, system: str | None, public: str | None, has_declarations: int
    ) -> None:
        if has_declarations:
            raise InputError(
                f'{self._path} has declarations in its document type, as of entities, and these are '
                'not read; remove the part in [brackets]'
            )
