"""The files of the stores that only Beam's `FileSystems` reach, as HDFS, opened as they are stored.

There are no folders, links or locks, and a rename is a copy. Beam decompresses by a file's name, so
files are opened uncompressed here and decompressed by `tokcore.corpus.storage`.
"""

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipelines.files.local import ListedByBeam, StoredFile, StoreFiles, as_stored, attempt_name
from tokcore.errors import InputError

_BINARY = 'application/octet-stream'


class BeamFiles(ListedByBeam, StoreFiles):
    """The `Files` of stores by Beam."""

    def absolute(self, path: str) -> str:
        scheme = FileSystems.get_scheme(path)
        try:
            FileSystems.get_filesystem(path)
            if scheme == 'azfs':
                importlib.import_module('azure.storage.blob')  # Beam itself only fails without it
        except (ImportError, ValueError, BeamIOError) as error:
            remedy = {
                'file': 'give the path without file://',
                'azfs': "install Azure's: pip install 'apache-beam[azure]'",
                'hdfs': (
                    "install Hadoop's: pip install 'apache-beam[hadoop]', and give --hdfs_host, "
                    '--hdfs_port and --hdfs_user'
                ),
            }.get(scheme, 's3, gs, azfs and hdfs are known; copy the file to one of them, or here')
            raise InputError(f'{path}: nothing here opens {scheme}:// paths; {remedy}') from error
        return path

    def exists(self, path: str) -> bool:
        return FileSystems.exists(path)

    def stat(self, path: str) -> StoredFile | None:
        if not FileSystems.exists(path):
            return None
        above = path.removesuffix(FileSystems.split(path)[1])
        [file] = as_stored([FileSystems.get_filesystem(path).metadata(path)], above)
        return file

    def entries(self, folder: str) -> list[str]:
        return sorted({file.name.partition('/')[0] for file in self.list_folder(folder)})

    def open(self, path: str, size: int | None = None, ahead: int = 0) -> BinaryIO:
        return FileSystems.open(path, _BINARY, compression_type=CompressionTypes.UNCOMPRESSED)

    @contextlib.contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        temporary = FileSystems.join(FileSystems.split(path)[0], attempt_name())
        try:
            with FileSystems.create(
                temporary, _BINARY, compression_type=CompressionTypes.UNCOMPRESSED
            ) as stream:
                yield stream
            FileSystems.rename([temporary], [path])
        except BaseException:
            with contextlib.suppress(OSError):  # the first error is the one to report
                self.delete([temporary])
            raise

    def move(self, moves: Sequence[tuple[str, str]]) -> None:
        for source, destination in moves:
            FileSystems.rename([source], [destination])

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            if FileSystems.exists(path):
                FileSystems.delete([path])

    def check_writable(self, folder: str) -> None:
        """Only a write would show it."""
