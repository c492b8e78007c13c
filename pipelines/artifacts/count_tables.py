"""Count files as one table: partitions put together, other files added up."""

import dataclasses
import re
from collections.abc import Iterator

from pipelines.artifacts.count_batches import (
    COUNT_COLUMNS,
    refuse_unstorable,
    refusing_no_counts,
)
from pipelines.artifacts.count_files import CountFiles, check_recorded, open_parquet
from pipelines.files.filesystem import StoredFile
from tokcore.corpus.dataset import MAX_LINE_BYTES, CorpusFile, LongLine, OpenBinary
from tokcore.corpus.formats.whole_lines import whole_lines
from tokcore.corpus.storage.compression import compression_of
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.corpus.storage.stored_file import open_path
from tokcore.counts.merging import concatenate_tables, is_partition, merge_tables
from tokcore.counts.text_format import read_counts_text
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

_TEXT_BYTES = 4 << 20
"""Of counts as text that are read at once. A line takes 33 bytes beside its text, even a blank one;
so that is some 140 MB at most, whatever a gzip file unpacks to."""


def read_counts(counts: CountFiles, unstorable: str = '') -> TokenTable:
    """Reads and adds up count files, each told by its content.

    Args:
        counts: the files.
        unstorable: characters of ASCII that no token may have.

    Raises:
        InputError: a file that is neither Parquet with `token` and `count` nor lines of counts, a
            token with a character that is not allowed, or nothing but empty files.
    """
    table = read_counts_or_empty(counts, unstorable)
    if len(table) == 0:
        raise InputError(f'no token in {_names(counts)}; there is nothing to learn from')
    return table


def read_counts_or_empty(counts: CountFiles, unstorable: str = '') -> TokenTable:
    """Returns the sum of count files, which may be a partition without tokens."""
    check_recorded(counts)
    try:
        if counts.partitions:
            # Sorted, and with no token in common: nothing is to be added up.
            tables = [_read(counts, file, unstorable, is_sorted=True) for file in counts.files]
            if all(is_partition(*each, counts.partitions) for each in enumerate(tables)):
                return concatenate_tables(tables)
            return merge_tables(tables)
        table = merge_tables(_read(counts, file, unstorable) for file in counts.files)
        is_text = not any(counts.look(file).is_parquet for file in counts.files)
        return dataclasses.replace(table, is_ordered=is_text)
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {_names(counts)}') from error


def _names(counts: CountFiles) -> str:
    return ', '.join(file.path for file in counts.files)


def _read(
    counts: CountFiles, file: StoredFile, unstorable: str, is_sorted: bool = False
) -> TokenTable:
    if counts.look(file).is_parquet:
        table = _read_parquet(file.path, counts.opened, is_sorted)
    else:
        table = _read_text(file, counts.opened)
    counts.let_go(file)
    refuse_unstorable(file.path, table.data, table.offsets, unstorable)
    return table


def _read_parquet(path: str, open_binary: OpenBinary, is_sorted: bool) -> TokenTable:
    with open_path(path, open_binary) as stream:
        parquet_file = open_parquet(path, stream)
        try:
            with refusing_no_counts(path):
                rows = parquet_file.read(columns=COUNT_COLUMNS)
                return TokenTable.from_arrow(rows, is_sorted=is_sorted)
        except OverflowError as error:
            raise OverflowError(f'{path}: {error}') from error


def _read_text(file: StoredFile, open_binary: OpenBinary) -> TokenTable:
    compressed = compression_of(file.path, open_binary)
    stored = CorpusFile(file.path, file.name, file.size, compressed)
    return merge_tables(_text_tables(stored, open_binary))


def _text_tables(file: CorpusFile, open_binary: OpenBinary) -> Iterator[TokenTable]:
    lines = 0
    for block in whole_lines(text_pieces(file, open_binary), _TEXT_BYTES):
        if isinstance(block, LongLine):
            raise InputError(
                f'{file.path}: the line at byte {block.offset} of its text has {block.bytes} '
                f'bytes, more than {MAX_LINE_BYTES}, which is no token with its count; take it out'
            )
        try:
            yield read_counts_text(block, file.path)
        except InputError as error:
            raise _with_line(error, file.path, lines) from error
        lines += block.count(b'\n')


def _with_line(error: InputError, path: str, lines: int) -> InputError:
    """Returns an error of a block of text with the line's number in the file."""
    found = re.match(r': line (\d+)(?= )', str(error).removeprefix(path))
    if found is None:
        return error
    rest = str(error)[len(path) + found.end() :]
    return InputError(f'{path}: line {lines + int(found[1])}{rest}')
