"""The files of `s3://` and `gs://`: objects that are there when they are whole.

There are no folders, links or locks. What is moved is copied within the store, and then deleted. An
attempt is published so, rather than written to its final keys: an earlier result stays whole until then,
and nothing that runs on after its claim was lost, as a worker cut off from its driver, reaches them.
"""

from __future__ import annotations

import contextlib
import functools
import re
import typing
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import BinaryIO

from pipelines.files.local import StoredFile, StoreFiles
from tokcore.object_stores import (
    Bucket,
    ObjectReader,
    StoredObject,
    StoreOptions,
    Version,
    bucket_of,
)

if typing.TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

_COPIES_AT_ONCE = 16

_MOST_LOOKS = 3
"""Files of one folder that are looked at one by one; of more the folder is listed."""


class ObjectFiles(StoreFiles):
    """The `Files` of object stores."""

    def absolute(self, path: str) -> str:
        _bucket(path)
        return path.rstrip('/')

    def exists(self, path: str) -> bool:
        return self.stat(path) is not None

    def is_folder(self, path: str) -> bool:
        bucket, key = _bucket(path)
        return not self.exists(path) and bucket.has_below(key)

    def stat(self, path: str) -> StoredFile | None:
        bucket, key = _bucket(path)
        stored = bucket.look(key) if key else None
        return None if stored is None else _file(bucket, stored, key.rpartition('/')[0])

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        sizes: dict[str, int] = {}
        folders: dict[str, list[str]] = {}
        for path in paths:
            folders.setdefault(path.rpartition('/')[0], []).append(path)
        for folder, wanted in folders.items():
            if len(wanted) > _MOST_LOOKS:
                bucket, prefix = _bucket(folder)
                files = [
                    _file(bucket, stored, prefix) for stored in bucket.list_one_level(prefix)[1]
                ]
            else:
                files = [file for path in wanted if (file := self.stat(path))]
            sizes |= {file.path: file.size for file in files}
        return [sizes.get(path) for path in paths]

    def match(self, pattern: str, above: str) -> list[StoredFile]:
        from apache_beam.io.filesystem import FileSystem

        matches = re.compile(FileSystem.translate_pattern(pattern)).match
        return [file for file in self.list_folder(above) if matches(file.path)]

    def list_folder(self, folder: str) -> list[StoredFile]:
        bucket, prefix = _bucket(folder)
        files = [_file(bucket, stored, prefix) for stored in bucket.list_all(prefix)]
        return sorted(files, key=lambda file: file.name.encode())

    def entries(self, folder: str) -> list[str]:
        bucket, prefix = _bucket(folder)
        prefixes, objects = bucket.list_one_level(prefix)
        keys = {*prefixes, *(stored.key for stored in objects)}
        return sorted(key.rpartition('/')[2] for key in keys)

    def open(self, path: str, size: int | None = None, ahead: int = 0) -> BinaryIO:
        return ObjectReader(*_bucket(path), size, ahead)  # type: ignore[return-value]  # reads as one

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        bucket, key = _bucket(path)
        return bucket.writer(key)

    def move(self, moves: Sequence[tuple[str, str]]) -> None:
        def copy(move: tuple[str, str]) -> None:
            (bucket, key), (_, new_key) = map(_bucket, move)
            bucket.copy(key, new_key)

        with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            list(pool.map(copy, moves))
        self.delete([source for source, _ in moves])

    def delete(self, paths: Sequence[str]) -> None:
        keys: dict[Bucket, list[str]] = {}
        for bucket, key in map(_bucket, paths):
            keys.setdefault(bucket, []).append(key)
        for bucket, own in keys.items():
            bucket.delete(own)

    def check_writable(self, folder: str) -> None:
        # Only a write shows it.
        bucket, key = _bucket(f'{folder}/.tokbeam-writable')
        bucket.put(key, b'')
        bucket.delete([key])


def create_if(path: str, data: bytes, expected: Version | None = None) -> Version | None:
    """Writes an object if it is missing, or if it still has the version `expected`.

    Returns its version; None if it was not written. Raises OSError with `errno.ENOTSUP` if the store
    has no such request.
    """
    bucket, key = _bucket(path)
    return bucket.create(key, data, expected)


def read_version(path: str) -> tuple[bytes, StoredObject] | None:
    """Returns a small object and its version; None if it is missing."""
    bucket, key = _bucket(path)
    with contextlib.suppress(FileNotFoundError):
        return bucket.read_with_state(key, 0, 1 << 16)
    return None


def delete_object(path: str) -> None:
    """Deletes an object if it is there, and what a killed run left in `store_time`."""
    bucket, key = _bucket(path)
    bucket.delete([key, f'{key}-time'])


def store_time(path: str) -> float:
    """Returns the time by the clock of a store, to the second; writes an object next to a path."""
    bucket, key = _bucket(f'{path}-time')
    bucket.put(key, b'')
    stored = bucket.look(key)
    bucket.delete([key])
    return stored.modified if stored else 0


def _bucket(path: str) -> tuple[Bucket, str]:
    return bucket_of(path, _options())


def _options() -> StoreOptions:
    """Returns the store's options among those that Beam has in this process, driver or worker."""
    from apache_beam.io.filesystems import FileSystems

    given = FileSystems._pipeline_options
    return StoreOptions() if given is None else _store_options(given)


@functools.lru_cache(maxsize=1)  # every path asks for them, and a process has but one
def _store_options(options: PipelineOptions) -> StoreOptions:
    from apache_beam.options.pipeline_options import S3Options

    given = options.view_as(S3Options)
    return StoreOptions(
        endpoint=given.s3_endpoint_url,
        region=given.s3_region_name,
        access_key_id=given.s3_access_key_id,
        secret_access_key=given.s3_secret_access_key,
        session_token=given.s3_session_token,
        verifies=str(given.s3_verify).lower() != 'false',
    )


def _file(bucket: Bucket, stored: StoredObject, prefix: str) -> StoredFile:
    name = stored.key[len(prefix) + 1 :] if prefix else stored.key
    return StoredFile(f'{bucket.url}/{stored.key}', name, stored.size, stored.modified)
