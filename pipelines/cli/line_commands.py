"""`tokenize` and `detokenize`: lines on standard input to as many lines on standard output."""

import argparse
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader

import numpy as np

from pipelines.artifacts.vocabularies import (
    needs_no_vocabulary,
    read_vocabulary,
    scheme_of,
    warn_of_missing_tokens,
)
from pipelines.cli.terminal import StandardOutput
from pipelines.files.system_errors import system_error
from pipelines.files.vocabulary_files import vocabulary_path
from pipelines.options.vocabulary import encoding_from_options
from tokcore.corpus.line_rows import text_rows
from tokcore.encoding.encoder import EncodedSide, Encoder, first_row_without_ids
from tokcore.encoding.scheme import EncodingOptions, PieceWriter, Scheme
from tokcore.encoding.vocabulary import (
    NO_TEMPLATE,
    Template,
    Vocabulary,
    without_special_ids,
)
from tokcore.errors import InputError
from tokcore.text.rows import Normalizer, Side
from tokcore.text.whitespace import escape_piece, unescape_piece

_BLOCK_BYTES = 1 << 20
"""Lines are encoded by the megabyte: the fixed costs of a block vanish, and output is still prompt."""

_SHOWN = 40
"""Characters of a word in an error; a word that is not an id may have any length."""


def tokenize(options: argparse.Namespace) -> int:
    """Writes a line of ids, or of pieces, for each line read; a blank line gives an empty one.

    Lines are those of files: '\\n' or '\\r\\n' ends one, and a byte order mark before the first is no text.
    """
    with StandardOutput() as target:
        job = _line_job(options)
        scheme, vocabulary, encoding = job.scheme, job.vocabulary, job.encoding
        template = NO_TEMPLATE
        if encoding.template is not None:
            template = scheme.template(vocabulary, encoding.template)
            warn_of_missing_tokens(scheme, vocabulary.id_of, encoding, options.vocab)
        writer = job.piece_writer()
        lines: _SegmentedLines | _TokenLines
        if writer is not None and template == NO_TEMPLATE:
            lines = _SegmentedLines(writer)
        else:
            show = _shown_pieces(vocabulary) if job.pieces else str
            encoder = scheme.encoder(vocabulary, encoding)
            lines = _TokenLines(encoder, template, scheme.normalizer, show)
        first_line, offset = 1, 0
        for block in _read(_blocks(_source())):
            output = lines.of_block(block, offset, first_line)
            target.write(''.join(line + '\n' for line in output).encode('utf-8', 'surrogatepass'))
            first_line += len(output)
            offset += len(block)
    return 0


def detokenize(options: argparse.Namespace) -> int:
    """Writes the text of each line of ids or pieces, without padding and the ids of the template.

    Ids can spell what a line of text cannot hold: a line feed is written as a space, and half of a
    surrogate pair as U+FFFD.
    """
    with StandardOutput() as target:
        job = _line_job(options)
        vocabulary, writer = job.vocabulary, job.piece_writer()
        if writer is not None and not options.raw:
            for number, line in enumerate(_read(_source()), 1):
                target.write(_as_line(writer.text(_decoded(line, number))))
            return 0
        template = job.scheme.template(vocabulary, job.encoding.template)
        read_ids = _PieceIds(vocabulary) if job.pieces else _Ids(vocabulary)
        for number, line in enumerate(_read(_source()), 1):
            ids = without_special_ids(
                read_ids.of_line(line, number), template, vocabulary.special_ids
            )
            if options.raw:
                target.write(vocabulary.decode_bytes(ids) + b'\n')
            else:
                target.write(_as_line(vocabulary.decode(ids)))
    return 0


@dataclass(frozen=True)
class _LineJob:
    """What lines are read and written with.

    Attributes:
        scheme: of the vocabulary.
        vocabulary: the entries.
        encoding: how text becomes ids.
        pieces: whether lines hold pieces instead of ids.
    """

    scheme: Scheme
    vocabulary: Vocabulary
    encoding: EncodingOptions
    pieces: bool

    def piece_writer(self) -> PieceWriter | None:
        """Returns what writes lines of pieces, if lines hold these and the scheme has a form for it."""
        return self.scheme.piece_writer(self.vocabulary, self.encoding) if self.pieces else None


def _line_job(options: argparse.Namespace) -> _LineJob:
    if options.vocab is None:
        if not needs_no_vocabulary(options.scheme):
            raise InputError('give --vocab, the vocabulary file')
        scheme = scheme_of([], options.scheme, vars(options))
        vocabulary = scheme.fixed
        assert vocabulary is not None
    else:
        path = vocabulary_path(options.vocab)
        scheme = scheme_of([path], options.scheme, vars(options))
        vocabulary = read_vocabulary(path, scheme).entries
    encoding = encoding_from_options(scheme, vars(options))
    return _LineJob(scheme, vocabulary, encoding, options.pieces)


def _shown_pieces(vocabulary: Vocabulary) -> Callable[[int], str]:
    """Returns a function that shows an id as its piece, without white space."""
    return [escape_piece(piece) for piece in vocabulary.pieces].__getitem__


class _SegmentedLines:
    """Encodes lines to pieces in a scheme's own form for them."""

    def __init__(self, writer: PieceWriter):
        self._writer = writer

    def of_block(self, block: bytes, offset: int, first_line: int) -> list[str]:
        """Returns a line for each line of a block, which begins at a byte and a number of a line."""
        starts = _line_starts(block)
        try:
            lines = block.decode('utf-8')
        except UnicodeDecodeError as error:
            index = int(np.searchsorted(starts, error.start, side='right')) - 1
            raise _not_utf8(index + first_line, error.start - int(starts[index])) from error
        if not offset:
            lines = lines.removeprefix('\ufeff')
        return self._writer.lines(lines.replace('\r\n', '\n').removesuffix('\n').split('\n'))


class _TokenLines:
    """Encodes lines to ids, or to what shows them."""

    def __init__(
        self,
        encoder: Encoder,
        template: Template,
        normalizer: Normalizer,
        shown: Callable[[int], str],
    ):
        self._encoder, self._template, self._normalizer = encoder, template, normalizer
        self._shown = shown

    def of_block(self, block: bytes, offset: int, first_line: int) -> list[str]:
        """Returns a line for each line of a block, which begins at a byte and a number of a line."""
        starts = offset + _line_starts(block)
        rows = text_rows(block, offset, self._normalizer)
        if rows.rejects:
            line = int(np.searchsorted(starts, rows.rejects[0].offset)) + first_line
            raise _not_utf8(line, rows.rejects[0].position - rows.rejects[0].offset)
        indexes = np.searchsorted(starts, rows.offsets)
        encoded = _encode(self._encoder, rows.sides[0], self._template, indexes + first_line)
        surrounding = self._template.before + self._template.after
        lines = [' '.join(map(self._shown, surrounding))] * len(starts)
        ids, offsets = encoded.ids.tolist(), encoded.offsets.tolist()
        for row, index in enumerate(indexes.tolist()):
            lines[index] = ' '.join(map(self._shown, ids[offsets[row] : offsets[row + 1]]))
        return lines


def _not_utf8(line: int, position: int) -> InputError:
    return InputError(
        f'standard input, line {line}: invalid UTF-8 at byte {position} of the line; '
        'convert the text to UTF-8'
    )


def _encode(encoder: Encoder, side: Side, template: Template, lines: np.ndarray) -> EncodedSide:
    """Returns the ids of the rows; `lines` are their line numbers.

    Raises:
        InputError: the vocabulary cannot spell a row.
    """
    try:
        return encoder.encode_side(side, '', *template)
    except ValueError as error:
        failed = first_row_without_ids(encoder, side)
        if failed is None:
            raise
        row, message = failed
        raise InputError(f'standard input, line {lines[row]}: {message}') from error


def _decoded(line: bytes, number: int) -> str:
    """Returns the text of a line, without the line's end."""
    try:
        text = line.decode('utf-8')
        return text.removesuffix('\n').removesuffix('\r') if text.endswith('\n') else text
    except UnicodeDecodeError as error:
        raise _not_utf8(number, error.start) from error


class _PieceIds:
    """Reads ids from lines of pieces."""

    def __init__(self, vocabulary: Vocabulary):
        self._ids = {piece: id_ for id_, piece in enumerate(vocabulary.pieces)}

    def of_line(self, line: bytes, number: int) -> list[int]:
        """Raises InputError for a word that is not a piece; `number` is that of the line."""
        ids = []
        for word in _decoded(line, number).split(' '):
            piece = unescape_piece(word)
            if word and piece not in self._ids:
                raise InputError(
                    f'standard input, line {number}: {piece[:_SHOWN]!r} is not a piece of the '
                    'vocabulary; give the vocabulary that made these lines'
                )
            ids += [self._ids[piece]] if word else []
        return ids


class _Ids:
    """Reads ids from lines of ids."""

    def __init__(self, vocabulary: Vocabulary):
        self._size = vocabulary.vocab_size

    def of_line(self, line: bytes, number: int) -> list[int]:
        """Raises InputError for a word that is not an id; `number` is that of the line."""
        return [_checked_id(word, number, self._size) for word in line.split()]


def _checked_id(word: bytes, line: int, size: int) -> int:
    # Python refuses to parse thousands of digits.
    digits = word if len(word) < _SHOWN else word.lstrip(b'0') or b'0'
    if digits.isdigit() and len(digits) < _SHOWN and (number := int(digits)) < size:
        return number
    shown = word.decode('utf-8', 'replace')
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'
    if not word.isdigit():
        raise InputError(
            f'standard input, line {line}: {shown!r} is not an id; '
            'lines must hold decimal ids between spaces'
        )
    raise InputError(
        f'standard input, line {line}: id {shown} is not in the vocabulary of {size} '
        'entries; give the vocabulary that encoded this text'
    )


def _as_line(text: str) -> bytes:
    text = text.replace('\n', ' ')
    try:
        return text.encode() + b'\n'
    except UnicodeEncodeError:
        # UTF-16 joins the halves of a pair; a half without the other is replaced.
        joined = text.encode('utf-16-le', 'surrogatepass').decode('utf-16-le', 'replace')
        return joined.encode() + b'\n'


def _source() -> BufferedReader:
    if sys.stdin is None:
        raise InputError('standard input is closed; give the lines on it')
    return typing.cast(BufferedReader, sys.stdin.buffer)


def _read(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields what is read from standard input; an `OSError` there is a user error."""
    try:
        yield from chunks
    except OSError as error:
        raise system_error(error, 'read standard input') from error


def _blocks(stream: BufferedReader) -> Iterator[bytes]:
    """Yields whole lines by the megabyte."""
    incomplete: list[bytes] = []
    while chunk := stream.read1(_BLOCK_BYTES):
        cut = chunk.rfind(b'\n') + 1
        if not cut:
            incomplete.append(chunk)
            continue
        yield b''.join([*incomplete, chunk[:cut]])
        incomplete = [chunk[cut:]] if cut < len(chunk) else []
    if incomplete:
        yield b''.join(incomplete)


def _line_starts(block: bytes) -> np.ndarray:
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord('\n')) + 1
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    return starts[:-1] if starts[-1] == len(block) else starts
