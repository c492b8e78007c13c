"""TFRecords of other programs: a folder without `tokbeam.json`, which indexes of records make a dataset.

`tokbeam index` reads the files of a folder once. It writes the index of each next to it, and
`index/records.json`, which says what a manifest would say: the files, their splits, and their features.
The split of a file is in its name, as Tensor2Tensor, TensorFlow Datasets and others have it:

    translate_enzh-train-00000-of-00100    train
    lm1b-test.tfrecord-00003-of-00010      test
    valid.tfrecord                         valid
    wiki_017.tfrecords                     wiki
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import google_crc32c
import numpy as np

from tokcore.checked_json import FileName, Matches, Within, WrongValue, checked, fields_of
from tokcore.encoding.vocabulary import read_vocabulary_file
from tokcore.errors import InputError
from tokcore.format_numbers import RECORDS, check_format
from tokcore.options import LARGEST_UINT64
from tokcore.reading.manifest import DatasetManifest, check_rows
from tokcore.reading.record_index import INDEX_FOLDER, Addresses, write_index, write_whole
from tokcore.reading.shards import ShardFile, all_record_starts, checksum, found_shard, map_file
from tokcore.records.manifest import (
    MANIFEST_NAME,
    Checksum,
    Count,
    VocabularyRecord,
)
from tokcore.records.tfrecord import masked_crc32c, parse_features, stream_records
from tokcore.regular_files import open_regular, read_regular
from tokcore.schemes import find_scheme, scheme_names, schemes_of_file

_MOST_BYTES = 64 << 20
"""Bytes of `records.json`: with 100,000 files it has 15 MB."""

_LOOKED_AT = 100
"""Records from which the features are derived: an empty list does not show its type."""

_GZIP = b'\x1f\x8b'

_ENDING = re.compile(r'\.tfrec(?:ords?)?$')
_SHARD_NUMBER = re.compile(r'-(\d+)-of-(\d+)$')
_NUMBER = re.compile(r'[-_.]?\d+$')


_Name = Annotated[str, Matches('[^\ud800-\udfff]{1,200}', 'a name of up to 200 characters')]


@dataclass(frozen=True)
class IndexedFile:
    """A file of TFRecords, as it was when it was indexed."""

    name: FileName
    split: _Name
    rows: Count
    bytes: Count
    crc32c: Checksum


@dataclass(frozen=True)
class OtherRecords:
    """What `records.json` holds.

    Attributes:
        format: `RECORDS` of `format_numbers`.
        features: the lists of int64 that all of the first records have, inputs before targets.
        files: in the order of splits, and in theirs.
        seed: of the order keys in indexes; None: it is not known.
    """

    format: int
    features: tuple[_Name, ...]
    files: tuple[IndexedFile, ...]
    seed: Annotated[int, Within(0, LARGEST_UINT64)] | None = None


def is_of_others(folder: str) -> bool:
    """Whether a folder has no manifest, but TFRecords that are indexed."""
    return os.path.exists(_records_path(folder)) and not os.path.exists(
        os.path.join(folder, MANIFEST_NAME)
    )


def other_manifest(
    folder: str, vocabulary: str | os.PathLike | None, target_vocabulary: str | os.PathLike | None
) -> DatasetManifest:
    """Returns what a manifest would say of a folder for which `is_of_others` holds.

    The vocabularies are the files that rows were made with, one of both sides or one of each, if known.

    Raises:
        InputError: `records.json` is damaged, a file has changed, or a file is not a vocabulary.
    """
    path = _records_path(folder)
    records = _read(folder)
    splits: dict[str, list[ShardFile]] = collections.defaultdict(list)
    for file in records.files:
        shard = ShardFile(os.path.join(folder, file.name), file.rows, file.bytes, file.crc32c)
        splits[file.split].append(found_shard(shard, path, _again(folder)))
    if _read(folder) != records:
        raise InputError(f'{path} was replaced while it was read; open the dataset again')
    vocabularies = _vocabularies(vocabulary, target_vocabulary)
    return DatasetManifest(
        folder,
        find_scheme(vocabularies[0].scheme) if vocabularies else None,
        None,
        {name: tuple(shards) for name, shards in splits.items()},
        vocabularies,
        records.features,
        seed=records.seed,
    )


def index_of_others(path: str) -> list[str]:
    """Writes the index of each file of TFRecords of other programs, and what they are.

    Args:
        path: of a folder; or one file of a folder, in which others may have been indexed.

    Returns the names of the files that are not TFRecords.

    Raises:
        InputError: there are no TFRecords, a file is damaged, files of a split are missing, or the folder
            cannot be written to.
    """
    folder, names, known, seed = path, [], {}, None
    try:
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith('.'))
        else:
            folder, name = os.path.split(path)
            names = [name]
            if is_of_others(folder):
                before = _read(folder)
                known, seed = {file.name: file for file in before.files}, before.seed
        indexed, others = [], []
        for name in names:
            file_path = os.path.join(folder, name)
            if os.path.isdir(file_path):
                continue
            if not _has_records(file_path):
                others.append(name)
                continue
            shard = _indexed(file_path)
            known[name] = IndexedFile(name, '', shard.rows, shard.bytes, shard.crc32c)
            indexed.append(name)
        if not indexed:
            raise InputError(
                f'{path} has no {MANIFEST_NAME}, and no uncompressed TFRecords, of which an index could be '
                'made; give a folder that `tokbeam build` or `tokbeam encode` has finished, or one of '
                'TFRecords of another program'
            )
        _refuse_missing(folder, known.values())
        _write(folder, _by_split(known.values()), seed)
    except OSError as error:
        raise InputError(
            f'{path} cannot be indexed ({error.strerror}: {error.filename}); give a folder of this machine '
            'that can be written to'
        ) from error
    except WrongValue as error:
        raise InputError(
            f'{path} cannot be indexed: {error!s:.200}; rename the file or the feature'
        ) from error
    return others


def list_shards(folder: str, shards: Iterable[ShardFile], seed: int | None) -> None:
    """Adds shards whose indexes are there to what `index_of_others` writes; those without rows may be missing.

    They take the place of earlier shards of their datasets' splits.
    """
    files = [IndexedFile(shard.path, '', shard.rows, shard.bytes, shard.crc32c) for shard in shards]
    groups = {_group(file.name) for file in files}
    with _locked(folder):
        before = _read(folder) if is_of_others(folder) else OtherRecords(RECORDS, (), ())
        others = [file for file in before.files if _group(file.name) not in groups]
        is_one_seed = not others or before.seed == seed
        _write(folder, _by_split([*others, *files]), seed if is_one_seed else None)


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keeps threads and processes that list other shards of the folder waiting."""
    os.makedirs(folder, exist_ok=True)  # it is missing if no shard has rows
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems have no such locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(folder: str, files: tuple[IndexedFile, ...], seed: int | None = None) -> None:
    records = OtherRecords(RECORDS, _features(folder, files), files, seed)
    text = json.dumps(dataclasses.asdict(records), indent=1)
    checked(json.loads(text), OtherRecords)
    write_whole(_records_path(folder), [text.encode()])


def _read(folder: str) -> OtherRecords:
    path = _records_path(folder)
    try:
        content = json.loads(read_regular(path, _MOST_BYTES))
        number = fields_of(content, OtherRecords, only=['format'])['format']
        check_format(path, number, RECORDS, _again(folder))
        records = checked(content, OtherRecords)
        for file in records.files:
            check_rows(file.name, file.rows, file.bytes)
    except OSError as error:
        raise InputError(f'{path} cannot be read ({error.strerror}); {_again(folder)}') from error
    except (WrongValue, ValueError, RecursionError) as error:
        raise InputError(
            f'{path} does not say what TFRecords there are ({error!s:.200}); {_again(folder)}'
        ) from error
    return records


def _records_path(folder: str) -> str:
    return os.path.join(folder, INDEX_FOLDER, 'records.json')


def _again(folder: str) -> str:
    return f'run `tokbeam index {folder}` again'


def _has_records(path: str) -> bool:
    """Whether a file is one of TFRecords, by its first bytes, or by its name if it has none."""
    if os.path.exists(path) and not os.path.isfile(path):
        return False
    name = os.path.basename(path)
    is_named = bool(_ENDING.search(name) or _SHARD_NUMBER.search(_ENDING.sub('', name)))
    with open_regular(path) as file:
        head = file.read(12)
    if head[:2] == _GZIP and is_named:
        raise InputError(f'{path} is compressed, so its records cannot be found at once; unpack it')
    if len(head) < 12:
        return is_named and not head
    return head[8:] == masked_crc32c(head[:8]).to_bytes(4, 'little')


def _indexed(path: str) -> ShardFile:
    """Writes the index of a file; returns the file."""
    data, _ = map_file(path)
    starts = np.concatenate([np.empty(0, np.int64), *all_record_starts(data, path)])
    shard = ShardFile(path, len(starts), len(data), checksum(data))
    lengths, sizes = np.diff(starts, append=len(data)), np.empty((len(starts), 0), np.uint32)
    write_index(shard, 0, [Addresses(lengths, None, sizes)])
    return shard


def _grouped(files: Iterable[IndexedFile]) -> dict[str, list[IndexedFile]]:
    """Returns files by what the names of their split have in common, in the order of their numbers."""
    groups: dict[str, list[IndexedFile]] = collections.defaultdict(list)
    for file in sorted(files, key=lambda file: (_number_and_count(file.name)[0], file.name)):
        groups[_group(file.name)].append(file)
    return groups


def _refuse_missing(folder: str, files: Iterable[IndexedFile]) -> None:
    """Raises InputError if a shard of a split is missing."""
    for group, members in _grouped(files).items():
        numbers, counts = zip(*(_number_and_count(file.name) for file in members))
        if max(counts) >= 0 and [*numbers] != [*range(max(counts))]:
            raise InputError(
                f'{folder} has not all shards of {group}, but {", ".join(file.name for file in members):.200}; '
                'bring the others, and run `tokbeam index` again'
            )


def _by_split(files: Iterable[IndexedFile]) -> tuple[IndexedFile, ...]:
    """Returns files with their splits, in order."""
    groups = _grouped(files)
    splits = collections.Counter(_split(group) for group in groups)
    shards: list[IndexedFile] = []
    for group, members in groups.items():
        split = _split(group)
        # Two datasets in a folder have splits of the same name.
        name = split if splits[split] == 1 else group
        shards += [dataclasses.replace(file, split=name) for file in members]
    return tuple(sorted(shards, key=lambda file: file.split))


def _group(name: str) -> str:
    """Returns what the names of all files of a split have in common."""
    plain = _SHARD_NUMBER.sub('', _ENDING.sub('', name))
    if plain == _ENDING.sub('', name):
        plain = _NUMBER.sub('', plain)
    return _ENDING.sub('', plain) or 'train'


def _number_and_count(name: str) -> tuple[int, int]:
    """Returns a shard's number and how many there are by its name, where zeros may be left out; else -1."""
    number = _SHARD_NUMBER.search(_ENDING.sub('', name))
    return (int(number[1]), int(number[2])) if number else (-1, -1)


def _split(group: str) -> str:
    return group.rpartition('-')[2] or group


def _features(folder: str, files: Sequence[IndexedFile]) -> tuple[str, ...]:
    """Returns the features that the first records all have as numbers."""
    file = next((file for file in files if file.rows), None)
    if file is None:
        return ()
    kinds: collections.Counter[str] = collections.Counter()
    path, count = os.path.join(folder, file.name), 0
    with open_regular(path) as stream:
        for record in stream_records(stream, path):
            if count == _LOOKED_AT:
                break
            count += 1
            with contextlib.suppress(ValueError):
                values = parse_features(record)
                kinds.update(
                    name for name, ids in values.items() if all(isinstance(id_, int) for id_ in ids)
                )
    names = [name for name in kinds if kinds[name] == count]
    return tuple(sorted(names, key=lambda name: (name not in ('inputs', 'targets'), name)))


def _vocabularies(
    vocabulary: str | os.PathLike | None, target_vocabulary: str | os.PathLike | None
) -> tuple[VocabularyRecord, ...]:
    if vocabulary is None:
        if target_vocabulary is not None:
            raise InputError(
                'target_vocabulary goes with vocabulary, that of the inputs; give both'
            )
        return ()
    if target_vocabulary is None:
        return (_vocabulary_record(os.fspath(vocabulary), 'both'),)
    records = (
        _vocabulary_record(os.fspath(vocabulary), 'inputs'),
        _vocabulary_record(os.fspath(target_vocabulary), 'targets'),
    )
    if records[0].scheme != records[1].scheme:
        raise InputError(
            f'{os.fspath(vocabulary)} is of --scheme {records[0].scheme}, and '
            f'{os.fspath(target_vocabulary)} of {records[1].scheme}; give vocabularies of one scheme'
        )
    return records


def _vocabulary_record(path: str, side: str) -> VocabularyRecord:
    data = read_vocabulary_file(path)
    fitting = schemes_of_file(data)
    if len(fitting) != 1:
        raise InputError(
            f'the form of {path} does not show the scheme of its vocabulary, one of '
            f'{", ".join(scheme_names())}; leave it out, and give batches pad='
        )
    [scheme] = fitting
    entries = find_scheme(scheme).parse(data, path)
    return VocabularyRecord(
        side=side,
        name=os.path.abspath(path),
        size=entries.vocab_size,
        bytes=len(data),
        crc32c=f'{google_crc32c.value(data):08x}',
        scheme=scheme,
        special_ids=entries.special_ids._asdict(),
    )
