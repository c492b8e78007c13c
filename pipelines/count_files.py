"""Reading token counts: COUNTS folders, single Parquet files, and lines of text."""

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as parquet

from pipelines import filesystem
from pipelines.counting import UNICODE_KEY
from pipelines.filesystem import StoredFile
from pipelines.manifest import MANIFEST_NAME, InputText, read_manifest
from pipelines.stages import WantedInput
from tokcore.corpus.dataset import CorpusFile
from tokcore.corpus.gzip_text import is_gzip, text_pieces
from tokcore.counts import TokenTable, merge_tables, read_counts_text
from tokcore.errors import InputError
from tokcore.unicode_tables import check_unicode

_PARQUET_MAGIC = b'PAR1'


@dataclass(frozen=True)
class CountFiles:
    """The files that `--counts` names, in the order given."""

    files: tuple[StoredFile, ...]

    def wanted_inputs(self) -> tuple[WantedInput, ...]:
        return tuple(
            WantedInput('train', 'counts', file, lambda file=file: _checksum(file))
            for file in self.files
        )


def find_counts(paths: Sequence[str]) -> CountFiles:
    """Finds count files; a folder stands for the files that its manifest lists.

    Raises:
        InputError: nothing is there, or a folder is not whole.
    """
    files: list[StoredFile] = []
    for given in paths:
        path = filesystem.absolute(given)
        if filesystem.is_folder(path):
            files += _folder_files(path)
        else:
            files += filesystem.find(given)
    return CountFiles(tuple(files))


def _folder_files(folder: str) -> list[StoredFile]:
    manifest = read_manifest(filesystem.join(folder, MANIFEST_NAME))
    if manifest is None or manifest.stage != 'count':
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
    base = filesystem.split_path(folder)[1]
    return [
        dataclasses.replace(stored[file.name], name=f'{base}/{file.name}')
        for file in manifest.files
    ]


def read_counts(counts: CountFiles) -> TokenTable:
    """Reads and adds up count files, each told by its content.

    Raises:
        InputError: a file that is neither Parquet with `token` and `count` nor lines of counts, or
            nothing but empty ones.
    """
    recorded_unicode(counts)
    table = read_counts_or_empty(counts)
    if len(table) == 0:
        raise InputError(
            f'no token in {", ".join(file.path for file in counts.files)}; there is nothing to '
            'learn from'
        )
    return table


def read_counts_or_empty(counts: CountFiles) -> TokenTable:
    """Returns the sum of count files, which may be a partition without tokens."""
    return merge_tables([_read(file) for file in counts.files])


def recorded_unicode(counts: CountFiles) -> dict[str, str | None]:
    """Returns for each file's path the Unicode version it records, None if it records none.

    Raises:
        InputError: one is not the version of this Python.
    """
    versions = {}
    for file in counts.files:
        version = None
        if _is_parquet(file.path):
            metadata = _open_parquet(file.path).schema_arrow.metadata or {}
            version = metadata.get(UNICODE_KEY.encode(), b'').decode() or None
        check_unicode(version, f'the count file {file.path}')
        versions[file.path] = version
    return versions


def _is_parquet(path: str) -> bool:
    with filesystem.open_binary(path) as stream:
        return stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _read(file: StoredFile) -> TokenTable:
    if is_gzip(file.path, filesystem.open_binary):
        stored = CorpusFile(file.path, file.name, file.size, compressed=True)
        text = b''.join(text_pieces(stored, filesystem.open_binary))
        return read_counts_text(text, file.path)
    if not _is_parquet(file.path):
        return read_counts_text(filesystem.read_bytes(file.path), file.path)
    parquet_file = _open_parquet(file.path)
    try:
        return TokenTable.from_arrow(parquet_file.read(columns=['token', 'count']))
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        raise InputError(
            f'{file.path} does not hold token counts ({error}); it needs a string column "token" '
            'and an integer column "count", undamaged'
        ) from error


def _open_parquet(path: str) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(io.BytesIO(filesystem.read_bytes(path)))
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f'{path} is a damaged Parquet file ({error}); count again, or copy it anew'
        ) from error


def _checksum(file: StoredFile) -> InputText:
    data = filesystem.read_bytes(file.path)
    version = recorded_unicode(CountFiles((file,)))[file.path]
    return InputText(
        'train',
        'counts',
        file.name,
        len(data),
        f'{google_crc32c.value(data):08x}',
        version or 'not recorded',
    )
