"""What a reader takes from a dataset's folder: the manifest's shards, features and vocabularies; copies.

A manifest may be damaged or come from anywhere, so nothing in it is trusted: it is checked against
its declaration (`records.manifest`) and against the folder before any number in it is used.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import hashlib
import json
import logging
import os
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import google_crc32c

from tokcore.checked_json import Within, WrongValue, checked, fields_of, shown
from tokcore.corpus.formats import CorpusFormat, all_formats, corpus_format
from tokcore.encoding.document_ends import EndOfDocument, end_candidates, end_of_document
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import (
    NO_TEMPLATE,
    SpecialIds,
    Template,
    Vocabulary,
    template,
)
from tokcore.errors import InputError
from tokcore.format_numbers import DATASET, check_format
from tokcore.object_stores import Bucket, bucket_of
from tokcore.options import LARGEST_UINT64, NO_END, declared
from tokcore.reading.record_index import write_whole
from tokcore.reading.record_kernels import SMALLEST_RECORD
from tokcore.reading.shards import REMEDY, ShardFile, checksum, found_shard, map_file
from tokcore.records.manifest import (
    MANIFEST_NAME,
    SHARD_NAME,
    Manifest,
    OutputFile,
    VocabularyRecord,
    covered,
)
from tokcore.regular_files import read_regular
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names

_MOST_BYTES = 64 << 20
"""Bytes of a manifest: with 100,000 shards and as many inputs one has 30 MB."""

_SHARD = re.compile(rf'{SHARD_NAME}(?P<parquet>\.parquet)?')


@dataclass(frozen=True, eq=False)
class DatasetManifest:
    """A dataset's folder as its manifest describes it; a vocabulary is read when it is first needed.

    Attributes:
        folder: its path.
        scheme: the scheme of its rows, with the options that are recorded; None: it is not known.
        asked_template: what was asked to surround rows; None: the scheme's own.
        splits: the shards of each split, in order.
        vocabularies: one of both sides, or one of each; none of a scheme without vocabularies.
        features: those of its rows: inputs, targets, or both.
        ends: by feature the token that ends documents, as far as it is known; None: nothing is recorded.
        has_no_ends: whether documents are to be joined without an end.
        seed: of the order keys; None: it is not known.
    """

    folder: str
    scheme: Scheme | None
    asked_template: str | None
    splits: dict[str, tuple[ShardFile, ...]]
    vocabularies: tuple[VocabularyRecord, ...]
    features: tuple[str, ...]
    ends: Mapping[str, EndOfDocument] | None = None
    has_no_ends: bool = False
    seed: int | None = 0

    @classmethod
    def read(cls, folder: str | os.PathLike, is_copy: bool = False) -> DatasetManifest:
        """Reads the manifest of a folder, or of a copy of one in a store, and no record.

        Raises:
            InputError: there is no manifest, it is of another command or has an impossible value,
                a shard that it lists is missing or has another size, or it is being replaced.
        """
        folder = os.fspath(folder)
        path = os.path.join(folder, MANIFEST_NAME)
        try:
            data = read_regular(path, _MOST_BYTES)
            fields = json.loads(data)
            _check_stage(path, fields)
            content = checked(covered(fields), _Content)
            options = checked(content.options, _Options, 'options')
            _check_output_format(folder, options.output_format)
            _check_vocabularies(content.vocabularies)
            ends = {end.feature: end for end in content.end_of_document}
            manifest = cls(
                folder,
                recorded_scheme(path, options.scheme, content.vocabularies),
                None if options.template is None else template(options.template),
                _splits(folder, content.files, is_copy),
                content.vocabularies,
                recorded_features({text.role for text in content.inputs}, content.options),
                ends,
                options.end == NO_END,
                options.seed,
            )
            # A dataset is replaced by a folder without a manifest: these are files of this one.
            if read_regular(path, _MOST_BYTES) != data:
                raise InputError(f'{path} was replaced while it was read; open the dataset again')
            return manifest
        except FileNotFoundError as error:
            raise InputError(
                f'{folder} has no {MANIFEST_NAME}, so it is not a whole dataset; give a folder that '
                '`tokbeam build` or `tokbeam encode` has finished; if its TFRecords are of another '
                f'program, run `tokbeam index {folder}` first'
            ) from error
        except OSError as error:
            raise InputError(
                f'{path} cannot be read ({error.strerror}); give another folder'
            ) from error
        except (ValueError, RecursionError, argparse.ArgumentTypeError) as error:
            raise InputError(
                f'{path} is not a manifest of a dataset ({error!s:.200}); give a folder that '
                '`tokbeam build` or `tokbeam encode` has finished'
            ) from error

    @property
    def known_scheme(self) -> Scheme:
        """The scheme; raises InputError if it is not known."""
        if self.scheme is None:
            raise InputError(
                f'{self.folder} does not record the vocabulary of its rows; give it to '
                'open_dataset as vocabulary'
            )
        return self.scheme

    @property
    def checksums(self) -> dict[str, tuple[int, str]]:
        """By side, the size and the CRC-32C of the vocabulary."""
        return {record.side: (record.bytes, record.crc32c) for record in self.vocabularies}

    def size(self, feature: str) -> int:
        record = self._record(feature)
        size = self.vocabulary(feature).vocab_size if record is None else record.size
        end = (self.ends or {}).get(feature)
        return size if end is None else max(size, end.id + 1)

    @property
    def id_counts(self) -> dict[str, int]:
        """By feature, how many ids its vocabulary has, where that is known."""
        has_fixed = self.scheme is not None and self.scheme.fixed is not None
        known = (name for name in self.features if has_fixed or self._record(name) is not None)
        return {name: self.size(name) for name in known}

    def special_ids(self, feature: str) -> SpecialIds:
        if self.scheme is None:
            return SpecialIds()
        record = self._record(feature)
        return self.vocabulary(feature).special_ids if record is None else _special_ids(record)

    def vocabulary(self, feature: str) -> Vocabulary:
        record = self._record(feature)
        if record is None:
            fixed = self.known_scheme.fixed
            if fixed is None:
                raise InputError(f'{self.folder} has no vocabulary of {feature}')
            return fixed
        return self._read(record.side)

    def template(self, feature: str) -> Template:
        if self.scheme is None:
            return NO_TEMPLATE
        return self.scheme.template(self.vocabulary(feature), self.asked_template)

    def end_of_document(self, feature: str) -> EndOfDocument | None:
        if self.ends is not None:
            return self.ends.get(feature)
        if self.scheme is None:
            return None
        record = self._record(feature)
        path = '' if record is None else os.path.join(self.folder, record.name)
        vocabulary, template = self.vocabulary(feature), self.template(feature)
        return end_of_document(feature, vocabulary, end_candidates(vocabulary, path), template)

    def _record(self, feature: str) -> VocabularyRecord | None:
        records = {record.side: record for record in self.vocabularies}
        return records.get(feature, records.get('both'))

    @functools.cache  # noqa: B019 - at most two sides
    def _read(self, side: str) -> Vocabulary:
        record = next(entry for entry in self.vocabularies if entry.side == side)
        path = os.path.join(self.folder, record.name)
        try:
            data = read_regular(path, record.bytes)
            crc32c = f'{google_crc32c.value(data):08x}'
            is_same = (len(data), crc32c) == (record.bytes, record.crc32c)
        except (OSError, InputError):
            is_same = False
        if not is_same:
            raise InputError(
                f'{path} cannot be read, or is not the vocabulary of {record.bytes} bytes with CRC-32C '
                f'{record.crc32c} that rows were made with; open the dataset again, or make it again'
            )
        vocabulary = self.known_scheme.parse(data, path)
        has_others = getattr(vocabulary, 'has_unlisted_ids', False)
        if vocabulary.vocab_size != record.size and not (
            has_others and vocabulary.vocab_size < record.size
        ):
            raise InputError(
                f'{path} has {vocabulary.vocab_size} ids, and {MANIFEST_NAME} of '
                f'{self.folder} states {record.size}; open the dataset again, or make it again'
            )
        return vocabulary


@dataclass(frozen=True)
class _Input:
    role: str


@dataclass(frozen=True)
class _Content:
    """The fields that are read."""

    options: dict[str, object]
    inputs: tuple[_Input, ...]
    files: tuple[OutputFile, ...]
    vocabularies: tuple[VocabularyRecord, ...]
    end_of_document: tuple[EndOfDocument, ...] = ()


@dataclass(frozen=True)
class _Options:
    """The recorded options that are read."""

    scheme: str = DEFAULT_SCHEME
    template: str | None = None
    output_format: str = 'tfrecord'
    end: str | None = None
    datasets: tuple[dict[str, object], ...] = ()
    seed: typing.Annotated[int, Within(0, LARGEST_UINT64)] = 0


@dataclass(frozen=True)
class _Format:
    format: int


def _check_stage(path: str, fields: object) -> None:
    stage = fields_of(fields, Manifest, only=['stage'])['stage']
    if stage not in ('build', 'encode'):
        raise InputError(
            f'{path} is of `{stage:.60}` and not of a dataset; give a folder of `tokbeam build` or '
            '`tokbeam encode`'
        )
    number = fields_of(fields, _Format)['format']
    remedy = 'make the dataset again with this version, or read it with the one that made it'
    check_format(path, number, DATASET, remedy)


def _check_output_format(folder: str, output_format: str) -> None:
    if output_format == 'packed':
        raise InputError(
            f'{folder} holds its rows packed, for trainers that read such TFRecords themselves; open the '
            'folder of TFRecords, of which `packed` packs rows as they are read'
        )
    if output_format not in ('tfrecord', 'parquet'):
        raise InputError(
            f'{folder} holds its rows as {output_format:.60}; build it with '
            '--output-format=tfrecord or parquet to read it here'
        )


def _check_vocabularies(vocabularies: Sequence[VocabularyRecord]) -> None:
    for record in vocabularies:
        if max((id_ for id_ in _special_ids(record) if id_ is not None), default=0) >= record.size:
            raise ValueError(f'{shown(record.name)} has {record.size} ids, and a special id above')
    sides = [record.side for record in vocabularies]
    if len(set(sides)) < len(sides) or ('both' in sides and len(sides) > 1):
        raise ValueError(f'there are vocabularies of {" and ".join(sides)[:100]}')


def _special_ids(record: VocabularyRecord) -> SpecialIds:
    return SpecialIds(**{role: record.special_ids.get(role) for role in SpecialIds._fields})


def recorded_scheme(path: str, name: str, vocabularies: Sequence[VocabularyRecord]) -> Scheme:
    """Returns the scheme of a manifest at a path, with the options that its vocabularies record.

    Raises:
        InputError: this version does not know it.
        ValueError: an option has a value that it cannot have.
    """
    if name not in scheme_names():
        raise InputError(
            f'{path} names --scheme {name:.60}, which this version does not know: there are '
            f'{", ".join(scheme_names())}'
        )
    recorded = (vocabularies[0].scheme_options or {}) if vocabularies else {}
    scheme_type = type(find_scheme(name))
    fields = {option.key: option.field for option in declared(scheme_type)}
    return _with_options(
        scheme_type, {fields[key]: value for key, value in recorded.items() if key in fields}
    )


def _with_options(options_type: type, recorded: Mapping[str, object]) -> typing.Any:
    """Returns an instance of a dataclass of options, a scheme or a format, with recorded values."""
    values = fields_of(recorded, options_type, 'options')
    for option in declared(options_type):
        choices, value = option.option.kind, values.get(option.field, option.default)
        if isinstance(choices, tuple) and not option.option.many:
            if value not in (*choices, option.default):
                raise WrongValue(
                    f'options.{option.key}', shown(value), f'one of {", ".join(choices)}'
                )
    return options_type(**values)


def _splits(
    folder: str, files: Sequence[OutputFile], is_copy: bool
) -> dict[str, tuple[ShardFile, ...]]:
    """Returns the shards of each split, after checking that all are there, in order."""
    remedy = 'delete this copy and open the dataset again' if is_copy else REMEDY
    splits: dict[str, list[ShardFile]] = {}
    counts: dict[str, int] = {}
    for file in files:
        name = _SHARD.fullmatch(file.name)
        if name is None:
            continue
        shards = splits.setdefault(name['split'], [])
        count = counts.setdefault(name['split'], int(name['count']))
        if (int(name['number']), int(name['count'])) != (len(shards), count):
            raise ValueError(f'{shown(file.name)} is where shard {len(shards)} of {count} must be')
        if not name['parquet']:
            check_rows(file.name, file.rows, file.bytes)
        path = os.path.join(folder, file.name)
        shards.append(ShardFile(path, file.rows, file.bytes, file.crc32c, None, remedy))
    for split, shards in splits.items():
        if len(shards) != counts[split]:
            raise ValueError(f'{len(shards)} of the {counts[split]} shards of {split} are listed')
    again = 'make the dataset again'
    return {
        name: tuple(found_shard(shard, MANIFEST_NAME, again) for shard in shards)
        for name, shards in splits.items()
    }


def check_rows(name: str, rows: int, nbytes: int) -> None:
    """Refuses a number of TFRecords for which the file has no room, before anything counts to it.

    Raises:
        ValueError: it has none.
    """
    if rows * SMALLEST_RECORD > nbytes or (nbytes and not rows):
        raise ValueError(
            f'{shown(name)} has {nbytes} bytes, which cannot be {rows} records of '
            f'{SMALLEST_RECORD} bytes or more'
        )


def recorded_features(roles: Set[str], options: Mapping[str, object]) -> tuple[str, ...]:
    """Returns the features of rows, which the roles of inputs and the recorded options determine.

    Raises:
        ValueError: they do not determine them.
    """
    features = tuple(recorded_format(roles, options).sides)
    if not features or not set(features) <= {'inputs', 'targets'}:
        raise ValueError(f'its rows are of {" and ".join(map(str, features))[:100]}')
    return features


def recorded_format(roles: Set[str], options: Mapping[str, object]) -> CorpusFormat:
    """Returns the format of the corpus, with its recorded options; of several datasets the first's.

    Raises:
        ValueError: no role is known.
    """
    record = next(iter(checked(options, _Options, 'options').datasets), options)
    if 'format' in record:
        format_type = corpus_format(checked(record['format'], str, 'format'))
    else:
        candidates = [type_ for type_ in all_formats() if set(type_.roles) <= roles]
        if not candidates:
            raise ValueError('no input has a role that is known')
        # That with all roles; of several, that whose options are recorded.
        fields = [[option.field for option in declared(type_)] for type_ in candidates]
        fits = [
            (len(type_.roles), len(names) if {*names} <= record.keys() else -1)
            for type_, names in zip(candidates, fields, strict=True)
        ]
        format_type = candidates[fits.index(max(fits))]
    return _with_options(format_type, record)


_LOGGER = logging.getLogger(__name__)

_DIGITS = 32
_COPY = re.compile(f'[0-9a-f]{{{_DIGITS}}}')
_COPIES_AT_ONCE = 4
_RANGE_BYTES = 16 << 20


def copied_dataset(folder: str, cache: str | None = None) -> str:
    """Returns a folder of this machine with the dataset of an `s3://` or `gs://` path.

    Files are copied when a dataset is opened: processes that are forked later cannot reach a store. Each
    copy is compared with the manifest's checksum before it has its name, and is kept in a folder with the
    name of the manifest's content. A copy that has changed since is compared again, and fetched again if it
    is damaged. The folder for copies is `cache`; None: `tokbeam/datasets` in the user's cache folder.

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
    more = [file for vocabulary in fields['vocabularies'] for file in vocabulary.beside]
    return [*fields['files'], *fields.get('index', ()), *fields['vocabularies'], *more]


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
