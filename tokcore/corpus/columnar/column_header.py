"""The first line of a file of columns, which names them."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from tokcore.corpus.dataset import CorpusFile, OpenBinary
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.errors import InputError

_MOST_BYTES = 1 << 20


def column_numbers(
    file: CorpusFile, open_binary: OpenBinary, columns: Sequence[int | str], is_quoted: bool
) -> tuple[int, ...]:
    """Returns the numbers of columns, of which some are given by name.

    Raises:
        InputError: the file cannot be read, or its header lacks a name or has it twice.
    """
    names = _header(file, open_binary, is_quoted)
    found = []
    for column in columns:
        if isinstance(column, str) and names.count(column) != 1:
            said = 'no column' if column not in names else 'several columns'
            raise InputError(
                f'{file.path} has {said} {column!r} in its header, which is {", ".join(names[:50])}; '
                'choose others with --columns'
            )
        found.append(names.index(column) if isinstance(column, str) else column)
    return tuple(found)


def _header(file: CorpusFile, open_binary: OpenBinary, is_quoted: bool) -> list[str]:
    line = b''
    for piece in text_pieces(file, open_binary):
        line += piece
        if b'\n' in piece or len(line) > _MOST_BYTES:
            break
    line = line.partition(b'\n')[0].removesuffix(b'\r').removeprefix(b'\xef\xbb\xbf')
    try:
        text = line[:_MOST_BYTES].decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f'{file.path}: the header is not UTF-8 at byte {error.start}; mend it'
        ) from error
    return _quoted_names(file, text) if is_quoted else text.split('\t')


def _quoted_names(file: CorpusFile, text: str) -> list[str]:
    # A line follows, which is read too if a quote is not closed.
    reader = csv.reader([text + '\n', ''], delimiter='\t')
    try:
        csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
        names = next(reader)
    except csv.Error as error:
        raise InputError(f'{file.path}: the header is no CSV ({error}); mend it') from error
    if reader.line_num > 1:
        raise InputError(f'{file.path}: a quote in the header is not closed in its line; mend it')
    return names
