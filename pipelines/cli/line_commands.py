"""`tokenize` and `detokenize`: lines on standard input to as many lines on standard output."""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from pipelines.artifacts.vocabularies import needs_no_vocabulary, read_vocabulary, scheme_of
from pipelines.cli.terminal import StandardOutput
from pipelines.files import filesystem
from pipelines.options.vocabulary import encoding_from_options
from pipelines.system_errors import system_error
from tokcore.corpus.line_rows import text_rows
from tokcore.encoding.encoder import EncodedSide, RowEncoder, unspelled_row
from tokcore.encoding.scheme import PieceWriter, Scheme
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
"""Lines are handled by the megabyte: enough that a block's fixed costs vanish, and still prompt."""

_SHOWN = 40
"""Characters of a word that an error shows; what is no id may be of any length."""


def tokenize(options: argparse.Namespace) -> int:
    """Writes the ids of each line read; a blank line gives an empty one."""
    with StandardOutput() as target:
        scheme, vocabulary = _load(options)
        asked = encoding_from_options(scheme, vars(options))
        template = NO_TEMPLATE
        if options.eos or asked.template is not None:
            template = scheme.template(vocabulary, asked.template)
        writer = scheme.piece_writer(vocabulary) if options.pieces else None
        if writer is not None and template == NO_TEMPLATE:
            tokenized = _SegmentedLines(writer)
        else:
            shown = _shown_pieces(vocabulary) if options.pieces else str
            encoder = scheme.encoder(vocabulary, asked)
            tokenized = _TokenLines(encoder, template, scheme.normalizer, shown)
        first_line = 1
        for block in _read(_blocks(_source())):
            lines = tokenized.of_block(block, first_line)
            target.write(''.join(line + '\n' for line in lines).encode('utf-8', 'surrogatepass'))
            first_line += len(lines)
    return 0


def detokenize(options: argparse.Namespace) -> int:
    """Writes the text of each line of ids or pieces read, without padding and what the template adds.

    Ids can spell what a line of text cannot hold: a line feed is written as a space, and half of a
    surrogate pair as U+FFFD.
    """
    with StandardOutput() as target:
        scheme, vocabulary = _load(options)
        writer = scheme.piece_writer(vocabulary) if options.pieces else None
        if writer is not None and not options.raw:
            for number, line in enumerate(_read(_source()), 1):
                target.write(_as_line(writer.text(_decoded(line.rstrip(b'\n'), number))))
            return 0
        template = scheme.template(
            vocabulary, encoding_from_options(scheme, vars(options)).template
        )
        read_ids = _PieceIds(vocabulary) if options.pieces else _Ids(vocabulary)
        for number, line in enumerate(_read(_source()), 1):
            ids = read_ids.of_line(line, number)
            ids = without_special_ids(ids, template, vocabulary.special_ids)
            if options.raw:
                target.write(vocabulary.decode_bytes(ids) + b'\n')
            else:
                target.write(_as_line(vocabulary.decode(ids)))
    return 0


def _load(options: argparse.Namespace) -> tuple[Scheme, Vocabulary]:
    if options.vocab is None:
        if not needs_no_vocabulary(options.scheme):
            raise InputError('give --vocab, the vocabulary file')
        scheme = scheme_of([], options.scheme, vars(options))
        return scheme, scheme.fixed
    path = filesystem.absolute(options.vocab)
    scheme = scheme_of([path], options.scheme, vars(options))
    return scheme, read_vocabulary(path, scheme).entries


def _shown_pieces(vocabulary: Vocabulary) -> Callable[[int], str]:
    """Returns what shows an id as its piece, without white space in it."""
    return [escape_piece(piece) for piece in vocabulary.pieces].__getitem__


class _SegmentedLines:
    """Lines of pieces, in a form that a scheme has for them."""

    def __init__(self, writer: PieceWriter):
        self._writer = writer

    def of_block(self, block: bytes, first_line: int) -> list[str]:
        """Returns a line for each of a block, `first_line` being the number of its first."""
        starts = _line_starts(block)
        try:
            lines = block.decode('utf-8')
        except UnicodeDecodeError as error:
            place = int(np.searchsorted(starts, error.start, side='right')) - 1
            raise _no_utf8(place + first_line, error.start - int(starts[place])) from error
        return self._writer.lines(lines.removesuffix('\n').split('\n'))


class _TokenLines:
    """Lines of ids, or of what shows them."""

    def __init__(
        self,
        encoder: RowEncoder,
        template: Template,
        normalizer: Normalizer,
        shown: Callable[[int], str],
    ):
        self._encoder, self._template, self._normalizer = encoder, template, normalizer
        self._shown = shown

    def of_block(self, block: bytes, first_line: int) -> list[str]:
        """Returns a line for each of a block, `first_line` being the number of its first."""
        starts = _line_starts(block)
        rows = text_rows(block, 0, self._normalizer)
        if rows.rejects:
            line = int(np.searchsorted(starts, rows.rejects[0].offset)) + first_line
            raise _no_utf8(line, rows.rejects[0].position - rows.rejects[0].offset)
        places = np.searchsorted(starts, rows.offsets)
        encoded = _encode(self._encoder, rows.sides[0], self._template, places + first_line)
        surrounding = self._template.before + self._template.after
        lines = [' '.join(map(self._shown, surrounding))] * len(starts)
        ids, offsets = encoded.ids.tolist(), encoded.offsets.tolist()
        for row, place in enumerate(places.tolist()):
            lines[place] = ' '.join(map(self._shown, ids[offsets[row] : offsets[row + 1]]))
        return lines


def _no_utf8(line: int, place: int) -> InputError:
    return InputError(
        f'standard input, line {line}: invalid UTF-8 at byte {place} of the line; '
        'convert the text to UTF-8'
    )


def _encode(encoder: RowEncoder, side: Side, template: Template, lines: np.ndarray) -> EncodedSide:
    """Returns the rows' ids; `lines` are the numbers of the rows' lines.

    Raises:
        InputError: the vocabulary cannot spell a row.
    """
    try:
        return encoder.encode_side(side, '', *template)
    except ValueError as error:
        found = unspelled_row(encoder, side)
        if found is None:
            raise
        row, said = found
        raise InputError(f'standard input, line {lines[row]}: {said}') from error


def _decoded(line: bytes, number: int) -> str:
    try:
        return line.decode('utf-8')
    except UnicodeDecodeError as error:
        raise _no_utf8(number, error.start) from error


class _PieceIds:
    """Ids of lines of pieces."""

    def __init__(self, vocabulary: Vocabulary):
        self._ids = {piece: id_ for id_, piece in enumerate(vocabulary.pieces)}

    def of_line(self, line: bytes, number: int) -> list[int]:
        """Raises InputError for a word that is no piece; `number` is the line's."""
        ids = []
        for word in _decoded(line, number).strip('\r\n').split(' '):
            piece = unescape_piece(word)
            if word and piece not in self._ids:
                raise InputError(
                    f'standard input, line {number}: {piece[:_SHOWN]!r} is no piece of the '
                    'vocabulary; give the vocabulary that made these lines'
                )
            ids += [self._ids[piece]] if word else []
        return ids


class _Ids:
    """Ids of lines of them."""

    def __init__(self, vocabulary: Vocabulary):
        self._size = vocabulary.vocab_size

    def of_line(self, line: bytes, number: int) -> list[int]:
        """Raises InputError for a word that is no id; `number` is the line's."""
        return [_checked_id(word, number, self._size) for word in line.split()]


def _checked_id(word: bytes, line: int, size: int) -> int:
    # Python does not make a number of some thousand digits.
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
        # UTF-16 joins the halves of a pair, and what stays alone is replaced.
        joined = text.encode('utf-16-le', 'surrogatepass').decode('utf-16-le', 'replace')
        return joined.encode() + b'\n'


def _source() -> BinaryIO:
    if sys.stdin is None:
        raise InputError('standard input is closed; give the lines on it')
    return sys.stdin.buffer


def _read(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields what is read of standard input; an `OSError` there is the user's mistake."""
    try:
        yield from pieces
    except OSError as error:
        raise system_error(error, 'read standard input') from error


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yields whole lines by the megabyte."""
    waiting: list[bytes] = []
    while piece := stream.read1(_BLOCK_BYTES):
        cut = piece.rfind(b'\n') + 1
        if not cut:
            waiting.append(piece)
            continue
        yield b''.join([*waiting, piece[:cut]])
        waiting = [piece[cut:]] if cut < len(piece) else []
    if waiting:
        yield b''.join(waiting)


def _line_starts(block: bytes) -> np.ndarray:
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord('\n')) + 1
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    return starts[:-1] if starts[-1] == len(block) else starts
