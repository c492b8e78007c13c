"""Reading token counts: COUNTS folders, single Parquet files, and lines of text."""

import dataclasses
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines.artifacts.count_batches import refuse_unstorable
from pipelines.artifacts.manifest import MANIFEST_NAME, InputText, OutputFile, read_manifest
from pipelines.artifacts.stage_output import InputState
from pipelines.files import filesystem
from pipelines.files.filesystem import StoredFile
from pipelines.files.trial_reading import column_names, no_counts, read_on_trial
from pipelines.transforms.count_tokens import UNICODE_KEY
from tokcore.corpus.dataset import MAX_LINE_BYTES, CorpusFile, LongLine
from tokcore.corpus.formats.whole_lines import whole_lines
from tokcore.corpus.storage.gzip_text import is_gzip, text_pieces
from tokcore.corpus.storage.stored_file import open_path
from tokcore.counts.merging import TokenTable, merge_tables, read_counts_text
from tokcore.errors import InputError
from tokcore.text.unicode_tables import check_unicode

_PARQUET_MAGIC = b'PAR1'
_ENCRYPTED_MAGIC = b'PARE'

_TEXT_BYTES = 4 << 20
"""Of counts as text that are read at once. A line takes 33 bytes beside its text, even a blank one;
so that is some 140 MB at most, whatever a gzip file unpacks to."""

_BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class CountFiles:
    """The files that `--counts` names, in the order given."""

    files: tuple[StoredFile, ...]

    def wanted_inputs(self) -> tuple[InputState, ...]:
        return tuple(
            InputState('train', 'counts', file, lambda file=file: _checksum(file))
            for file in self.files
        )


def find_counts(paths: Sequence[str]) -> CountFiles:
    """Finds count files; a folder stands for the files that its manifest lists.

    What a manifest lists is compared with its checksums here, before anything else reads it. Of
    other Parquet files nothing is known, so those of this machine are read on trial.

    Raises:
        InputError: nothing is there, or a folder or a file is not whole.
    """
    files: list[StoredFile] = []
    unknown: list[StoredFile] = []
    for given in paths:
        path = filesystem.absolute(given)
        if filesystem.is_folder(path):
            files += _folder_files(path)
        else:
            found = filesystem.find(given)
            files += found
            unknown += found
    read_on_trial(
        [
            (file.path, file.size)
            for file in unknown
            if filesystem.is_local(file.path) and _is_parquet(file.path)
        ]
    )
    return CountFiles(tuple(files))


def _folder_files(folder: str) -> list[StoredFile]:
    manifest = read_manifest(filesystem.join(folder, MANIFEST_NAME))
    if manifest is None or manifest.stage != 'count' or not manifest.files:
        raise InputError(
            f'{folder} has no {MANIFEST_NAME} of a finished count; run `tokbeam count` to its end '
            'or give the files themselves'
        )
    stored = {file.name: file for file in filesystem.list_folder(folder)}
    for file in manifest.files:
        if file.name not in stored or stored[file.name].size != file.bytes:
            raise InputError(
                f'{folder}/{file.name} is missing or not of the size that {MANIFEST_NAME} states; '
                'count again with --overwrite'
            )
    for file in manifest.files:
        _compare(stored[file.name].path, file)
    base = filesystem.split_path(folder)[1]
    return [
        dataclasses.replace(stored[file.name], name=f'{base}/{file.name}')
        for file in manifest.files
    ]


def _compare(path: str, stated: OutputFile) -> None:
    checksum = google_crc32c.Checksum()
    with open_path(path, filesystem.open_binary) as stream:
        while piece := stream.read(_BYTES_AT_ONCE):
            checksum.update(piece)
    found = checksum.digest().hex()
    if found != stated.crc32c:
        raise InputError(
            f'{path} has CRC-32C {found}, but {MANIFEST_NAME} states {stated.crc32c}: it was '
            'changed or damaged; count again with --overwrite'
        )


def read_counts(counts: CountFiles) -> TokenTable:
    """Reads and adds up count files, each told by its content.

    Raises:
        InputError: a file that is neither Parquet with `token` and `count` nor lines of counts, or
            nothing but empty ones.
    """
    recorded_unicode(counts)
    table = read_counts_or_empty(counts)
    if len(table) == 0:
        raise InputError(f'no token in {_names(counts)}; there is nothing to learn from')
    return table


def read_counts_or_empty(counts: CountFiles) -> TokenTable:
    """Returns the sum of count files, which may be a partition without tokens."""
    try:
        return merge_tables(map(_read, counts.files))
    except OverflowError as error:
        raise InputError(f'{error}; divide the counts in {_names(counts)}') from error


def _names(counts: CountFiles) -> str:
    return ', '.join(file.path for file in counts.files)


def recorded_unicode(counts: CountFiles) -> dict[str, str | None]:
    """Returns for each file's path the Unicode version it records, None if it records none.

    Raises:
        InputError: one is not the version of this Python.
    """
    versions = {}
    for file in counts.files:
        version = None
        if _is_parquet(file.path):
            with open_path(file.path, filesystem.open_binary) as stream:
                version = _recorded(file.path, _open_parquet(file.path, stream))
        check_unicode(version, f'the count file {file.path}')
        versions[file.path] = version
    return versions


def _is_parquet(path: str) -> bool:
    """Tells a Parquet file by its first bytes. Raises InputError if its footer is encrypted."""
    with open_path(path, filesystem.open_binary) as stream:
        magic = stream.read(len(_PARQUET_MAGIC))
    if magic == _ENCRYPTED_MAGIC:
        raise InputError(f'{path} is an encrypted Parquet file; decrypt it first')
    return magic == _PARQUET_MAGIC


def _read(file: StoredFile) -> TokenTable:
    if _is_parquet(file.path):
        table = _read_parquet(file.path)
    else:
        table = _read_text(file)
    refuse_unstorable(file.path, table.data, table.offsets)
    return table


def _read_parquet(path: str) -> TokenTable:
    parquet_file = _open_parquet(path, io.BytesIO(filesystem.read_bytes(path)))
    try:
        return TokenTable.from_arrow(parquet_file.read(columns=['token', 'count']))
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise no_counts(path, error) from error
    except OverflowError as error:
        raise OverflowError(f'{path}: {error}') from error


def _open_parquet(path: str, stream: BinaryIO) -> parquet.ParquetFile:
    try:
        parquet_file = parquet.ParquetFile(stream)
        column_names(parquet_file)
        return parquet_file
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise no_counts(path, error) from error


def _recorded(path: str, parquet_file: parquet.ParquetFile) -> str | None:
    metadata = parquet_file.schema_arrow.metadata or {}
    try:
        return metadata.get(UNICODE_KEY.encode(), b'').decode() or None
    except UnicodeDecodeError as error:
        raise no_counts(path, f'{UNICODE_KEY} in its metadata: {error}') from error


def _read_text(file: StoredFile) -> TokenTable:
    compressed = is_gzip(file.path, filesystem.open_binary)
    stored = CorpusFile(file.path, file.name, file.size, compressed)
    return merge_tables(_text_tables(stored))


def _text_tables(file: CorpusFile) -> Iterator[TokenTable]:
    lines = 0
    for block in whole_lines(text_pieces(file, filesystem.open_binary), _TEXT_BYTES):
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


def _checksum(file: StoredFile) -> InputText:
    data = filesystem.read_bytes(file.path)
    version = None
    if _is_parquet(file.path):
        version = _recorded(file.path, _open_parquet(file.path, io.BytesIO(data)))
        check_unicode(version, f'the count file {file.path}')
    return InputText(
        'train',
        'counts',
        file.name,
        len(data),
        f'{google_crc32c.value(data):08x}',
        version or 'not recorded',
    )
