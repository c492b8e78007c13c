"""`tokenize` and `detokenize`: lines on standard input to as many lines on standard output."""

import argparse
import functools
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader

import numpy as np

from pipelines.artifacts.vocabularies import (
    needs_no_vocabulary,
    read_vocabulary,
    scheme_of,
    warn_of_missing_tokens,
)
from pipelines.cli.terminal import standard_output
from pipelines.files.system_errors import system_error
from pipelines.files.vocabulary_files import vocabulary_path
from pipelines.options.vocabulary import encoding_from_options
from tokcore.corpus.line_rows import text_rows
from tokcore.encoding.encoder import Encoder, first_row_without_ids
from tokcore.encoding.scheme import EncodingOptions, PieceWriter, Scheme
from tokcore.encoding.vocabulary import (
    NO_TEMPLATE,
    Template,
    Vocabulary,
    without_special_ids,
)
from tokcore.errors import InputError
from tokcore.text.rows import Normalizer
from tokcore.text.whitespace import escape_piece, unescape_piece

_BLOCK_BYTES = 1 << 20
"""Lines are encoded by the megabyte: the fixed costs of a block vanish, and output is still prompt."""

_SHOWN = 40
"""Characters of a word in an error; a word that is not an id may have any length."""


def tokenize(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Writes a line of ids, or of pieces, for each line read; a blank line gives an empty one.

    Lines are those of files: '\\n' or '\\r\\n' ends one, and a byte order mark before the first is no text.
    """
    with standard_output() as write:
        scheme, vocabulary, encoding = _vocabulary_of(options)
        template = NO_TEMPLATE
        if encoding.template is not None:
            template = scheme.template(vocabulary, encoding.template)
            warn_of_missing_tokens(scheme, vocabulary.id_of, encoding, options.vocab)
        writer = scheme.piece_writer(vocabulary, encoding) if options.pieces else None
        lines_of: Callable[[bytes, int, int], list[str]]
        if writer is not None and template == NO_TEMPLATE:
            lines_of = functools.partial(_segmented_lines, writer)
        else:
            show: Callable[[int], str] = str
            if options.pieces:
                show = [escape_piece(piece) for piece in vocabulary.pieces].__getitem__
            encoder = scheme.encoder(vocabulary, encoding)
            lines_of = functools.partial(_token_lines, encoder, template, scheme.normalizer, show)
        first_line, offset = 1, 0
        for block in _read(_blocks(_source())):
            output = lines_of(block, offset, first_line)
            write(''.join(line + '\n' for line in output).encode('utf-8', 'surrogatepass'))
            first_line += len(output)
            offset += len(block)
    return 0


def detokenize(options: argparse.Namespace, beam_flags: Sequence[str]) -> int:
    """Writes the text of each line of ids or pieces, without padding and the ids of the template.

    Ids can spell what a line of text cannot hold: a line feed is written as a space, and half of a
    surrogate pair as U+FFFD.
    """
    with standard_output() as write:
        scheme, vocabulary, encoding = _vocabulary_of(options)
        writer = scheme.piece_writer(vocabulary, encoding) if options.pieces else None
        template = scheme.template(vocabulary, encoding.template)
        pieces = vocabulary.pieces if options.pieces else ()
        id_of_piece = {piece: id_ for id_, piece in enumerate(pieces)}
        for number, line in enumerate(_read(_source()), 1):
            if writer is not None:
                write(_as_line(writer.text(_decoded(line, number))))
                continue
            if options.pieces:
                ids = _ids_of_pieces(_decoded(line, number), number, id_of_piece)
            else:
                ids = [_checked_id(word, number, vocabulary.vocab_size) for word in line.split()]
            ids = without_special_ids(ids, template, vocabulary.special_ids)
            write(_as_line(vocabulary.decode(ids)))
    return 0


def _vocabulary_of(options: argparse.Namespace) -> tuple[Scheme, Vocabulary, EncodingOptions]:
    if options.vocab is not None:
        path = vocabulary_path(options.vocab)
        scheme = scheme_of([path], options.scheme, vars(options))
        vocabulary = read_vocabulary(path, scheme).entries
    elif needs_no_vocabulary(options.scheme):
        scheme = scheme_of([], options.scheme, vars(options))
        vocabulary = typing.cast(Vocabulary, scheme.fixed)
    else:
        raise InputError('give --vocab, the vocabulary file')
    return scheme, vocabulary, encoding_from_options(scheme, vars(options))


def _segmented_lines(writer: PieceWriter, block: bytes, offset: int, first_line: int) -> list[str]:
    """Returns a line of pieces, in the scheme's form for them, for each line of a block.

    The block begins at a byte of the input and at a line, by its number.
    """
    try:
        text = block.decode('utf-8')
    except UnicodeDecodeError as error:
        line = block.count(b'\n', 0, error.start) + first_line
        raise _not_utf8(line, error.start - (block.rfind(b'\n', 0, error.start) + 1)) from error
    if not offset:
        text = text.removeprefix('\ufeff')
    return writer.lines(text.replace('\r\n', '\n').removesuffix('\n').split('\n'))


def _token_lines(
    encoder: Encoder,
    template: Template,
    normalizer: Normalizer,
    show: Callable[[int], str],
    block: bytes,
    offset: int,
    first_line: int,
) -> list[str]:
    """Returns a line of ids, each as `show` returns it, for each line of a block.

    Raises:
        InputError: a line is not UTF-8, or the vocabulary cannot spell it.
    """
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord('\n')) + 1
    starts = offset + np.append(0, ends[ends < len(block)])
    rows = text_rows(block, offset, normalizer)
    if rows.rejects:
        line = int(np.searchsorted(starts, rows.rejects[0].offset)) + first_line
        raise _not_utf8(line, rows.rejects[0].position - rows.rejects[0].offset)
    indexes = np.searchsorted(starts, rows.offsets)
    try:
        encoded = encoder.encode_side(rows.sides[0], '', *template)
    except ValueError as error:
        failed = first_row_without_ids(encoder, rows.sides[0])
        if failed is None:
            raise
        row, message = failed
        raise InputError(f'standard input, line {indexes[row] + first_line}: {message}') from error
    lines = [' '.join(map(show, template.before + template.after))] * len(starts)
    ids, offsets = encoded.ids.tolist(), encoded.offsets.tolist()
    for row, index in enumerate(indexes.tolist()):
        lines[index] = ' '.join(map(show, ids[offsets[row] : offsets[row + 1]]))
    return lines


def _not_utf8(line: int, position: int) -> InputError:
    return InputError(
        f'standard input, line {line}: invalid UTF-8 at byte {position} of the line; '
        'convert the text to UTF-8'
    )


def _decoded(line: bytes, number: int) -> str:
    """Returns the text of a line, without the line's end."""
    try:
        text = line.decode('utf-8')
        return text.removesuffix('\n').removesuffix('\r') if text.endswith('\n') else text
    except UnicodeDecodeError as error:
        raise _not_utf8(number, error.start) from error


def _ids_of_pieces(text: str, line: int, id_of_piece: Mapping[str, int]) -> list[int]:
    ids = []
    for word in filter(None, text.split(' ')):
        piece = unescape_piece(word)
        if piece not in id_of_piece:
            raise InputError(
                f'standard input, line {line}: {piece[:_SHOWN]!r} is not a piece of the '
                'vocabulary; give the vocabulary that made these lines'
            )
        ids.append(id_of_piece[piece])
    return ids


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
