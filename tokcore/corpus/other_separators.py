"""Files whose columns something else than tabs separates, given as tab-separated columns."""

from __future__ import annotations

import csv
import logging

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.corpus import CorpusFile, OpenBinary
from tokcore.corpus.shell_commands import converting_command
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError

_LOGGER = logging.getLogger(__name__)

_BEGINNING_BYTES = 64 << 10
"""Of a file: some hundred lines, in all of which a sentence does not have the same number of commas."""

_SEPARATORS = {',': 'commas', ';': 'semicolons'}

_CONVERTING = (
    "import csv, sys; csv.writer(sys.stdout, 'excel-tab', lineterminator='\\n')"
    ".writerows(csv.reader(sys.stdin, delimiter='{}'))"
)
"""Writes quoted fields, where a text has quotes, tabs or line feeds."""


def check_separator(declared: Tsv, file: CorpusFile, open_binary: OpenBinary) -> None:
    """Looks at the beginning of a file, before any work.

    A file is refused if a column that is read needs a tab, its first line has none, and commas or
    semicolons separate its records into the same number of fields, or its header into the names. If
    only column 0 is read, lines without a tab may be texts with commas, so that this gives a warning.

    Raises:
        InputError: it is refused; the message has a command that makes tabs of its separators.
    """
    beginning, is_whole = _beginning(file, open_binary)
    text = beginning.decode('utf-8', 'replace').removeprefix('\ufeff')
    first = text.partition('\n')[0].rstrip('\r')
    if not text.strip() or '\t' in first or declared.all_columns == [first]:
        return
    separator = next(
        (each for each in _SEPARATORS if _separates(each, text, is_whole, declared)), ''
    )
    if declared.all_columns != [0]:
        if separator:
            command, made = converting_command(file, _CONVERTING.format(separator))
            raise InputError(
                f'{file.path} has columns separated by {_SEPARATORS[separator]}, and --tsv takes tabs; '
                f'give --tsv {made} --quoting csv, made first: {command}'
            )
    elif '\t' not in text:
        question = f'; do {_SEPARATORS[separator]} separate its columns?' if separator else ''
        _LOGGER.warning(
            '%s has no tab in its first %d bytes, so that a row is a whole line%s',
            file.path, len(beginning), question,
        )  # fmt: skip


def _beginning(file: CorpusFile, open_binary: OpenBinary) -> tuple[bytes, bool]:
    """Returns the beginning of a file's text, and whether that is all of it."""
    beginning = b''
    for piece in text_pieces(file, open_binary):
        beginning += piece
        if len(beginning) > _BEGINNING_BYTES:
            return beginning[:_BEGINNING_BYTES], False
    return beginning, True


def _separates(separator: str, text: str, is_whole: bool, declared: Tsv) -> bool:
    try:
        records = [record for record in csv.reader(text.split('\n'), delimiter=separator) if record]
    except csv.Error:
        return False
    names = {column for column in declared.all_columns if isinstance(column, str)}
    if declared.header and names and len(records[0]) > 1 and names <= {*records[0]}:
        return True
    # The last record may be cut off.
    numbers = {len(record) for record in (records if is_whole else records[:-1])}
    return len(numbers) == 1 and numbers != {1}
