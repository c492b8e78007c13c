"""A dataset of an object store as a folder of this machine, which readers map into memory.

Its files are copied when it is opened: what is read later may be read by processes that were forked,
and those cannot reach a store. Each copy is compared with the manifest's checksum before it has its
name, and is kept: the folder has the name of the manifest's content, so that another dataset at the
same place has another one. A copy that has changed since is compared again, and fetched again if it is
damaged.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import pathlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import google_crc32c

from tokcore.checked_json import fields_of
from tokcore.errors import InputError
from tokcore.object_stores import Bucket, bucket_of
from tokcore.reading.record_index import write_whole
from tokcore.reading.shards import checksum, map_file
from tokcore.records.manifest import MANIFEST_NAME, Manifest, OutputFile, VocabularyRecord

_LOGGER = logging.getLogger(__name__)

_DIGITS = 32
_COPY = re.compile(f'[0-9a-f]{{{_DIGITS}}}')
_COPIES_AT_ONCE = 4
_RANGE_BYTES = 16 << 20

_MOST_BYTES = 64 << 20
"""Of a manifest, as of one in a folder of this machine."""


def copied_dataset(folder: str, cache: str | None = None) -> str:
    """Returns a folder of this machine with the dataset of an `s3://` or `gs://` path.

    Args:
        folder: holds `tokbeam.json`.
        cache: the folder for copies; None: `tokbeam/datasets` in the user's cache folder.

    Raises:
        InputError: it is not a whole dataset, the store does not give it, a file is not the one that the
            manifest states, or there is no room for a copy.
    """
    bucket, key = bucket_of(folder)
    try:
        data = bucket.read(f'{key}/{MANIFEST_NAME}', 0, _MOST_BYTES)
        files = _files(data)
        digest = hashlib.sha256(data).hexdigest()[:_DIGITS]
        copy = os.path.join(cache or _cache_folder(), digest)
        os.makedirs(copy, exist_ok=True)
        manifest = os.path.join(copy, MANIFEST_NAME)
        # It was written when all copies were whole.
        compared = os.stat(manifest).st_mtime_ns if os.path.exists(manifest) else 0

        def bring(file: OutputFile | VocabularyRecord) -> None:
            path = os.path.join(copy, *file.name.split('/'))
            if not _is_whole(path, file, compared):
                write_whole(path, _parts(bucket, key, file))

        with ThreadPoolExecutor(_COPIES_AT_ONCE) as pool:
            list(pool.map(bring, files))
        write_whole(manifest, [data])
    except FileNotFoundError as error:
        if error.strerror != os.strerror(errno.ENOENT):  # there is no bucket
            raise InputError(f'{folder} cannot be read: {error.strerror}') from error
        raise InputError(
            f'{folder} has no {MANIFEST_NAME}, or not all files that it lists, so it is not a whole '
            'dataset; give a folder that `tokbeam build` or `tokbeam encode` has finished'
        ) from error
    except OSError as error:
        raise InputError(
            f'{folder} cannot be copied to this machine ({error.strerror}); try again, or give a '
            'folder with room as cache'
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'{folder}/{MANIFEST_NAME} is not a manifest of a dataset ({error!s:.200}); give a folder '
            'that `tokbeam build` or `tokbeam encode` has finished'
        ) from error
    return copy


def _files(data: bytes) -> list[OutputFile | VocabularyRecord]:
    content = json.loads(data)
    fields = fields_of(content, Manifest, only=['files', 'vocabularies'])
    if 'index' in content:
        fields |= fields_of(content, Manifest, only=['index'])
    vocabularies = fields.get('vocabularies', ())
    beside = [file for vocabulary in vocabularies for file in vocabulary.beside]
    return [*fields.get('files', ()), *fields.get('index', ()), *vocabularies, *beside]


def copied_datasets() -> Iterator[tuple[pathlib.Path, list[pathlib.Path]]]:
    """Yields the folders of all copies in the user's cache folder, each with itself to be deleted."""
    above = pathlib.Path(_cache_folder())
    for folder in above.iterdir() if above.is_dir() else ():
        if _COPY.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            yield folder, [folder]


def _cache_folder() -> str:
    above = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    return os.path.join(above, 'tokbeam', 'datasets')


def _parts(bucket: Bucket, key: str, file: OutputFile | VocabularyRecord) -> Iterator[bytes]:
    """Yields the bytes of an object; raises InputError at its end if they are not those of the manifest."""
    crc32c = size = 0
    while size < file.bytes:
        end = min(size + _RANGE_BYTES, file.bytes)
        data = bucket.read(f'{key}/{file.name}', size, end)
        if not data:
            break
        yield data
        crc32c = google_crc32c.extend(crc32c, data)
        size += len(data)
    if (size, f'{crc32c:08x}') != (file.bytes, file.crc32c):
        raise InputError(
            f'{bucket.url}/{key}/{file.name} has {size} bytes with CRC-32C {crc32c:08x}, and '
            f'{MANIFEST_NAME} states {file.bytes} with {file.crc32c}; open it again if it was '
            'replaced, otherwise make the dataset again'
        )


def _is_whole(path: str, file: OutputFile | VocabularyRecord, compared: int) -> bool:
    """Whether there is a copy with the stated bytes, which are compared if it changed since that time."""
    if not os.path.exists(path):
        return False
    with contextlib.suppress(OSError, InputError):
        data, state = map_file(path)
        is_compared = state.st_ctime_ns < compared or checksum(data) == file.crc32c
        if len(data) == file.bytes and is_compared:
            return True
    _LOGGER.warning('%s is a damaged copy and is fetched again', path)
    return False
