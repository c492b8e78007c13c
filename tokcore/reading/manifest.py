"""What a dataset's manifest tells its readers, and the vocabularies that it was made with.

Vocabularies are those in the folder, or given, and then they must be the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import re
import stat
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import google_crc32c

from tokcore.corpus.formats import all_formats, corpus_format
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import (
    SpecialIds,
    Template,
    Vocabulary,
    read_vocabulary_file,
    template,
)
from tokcore.errors import InputError
from tokcore.options import declared
from tokcore.reading.declared_json import Matches, Within, WrongValue, checked, fields_of, shown
from tokcore.reading.record_kernels import LARGEST_ID, SMALLEST_RECORD
from tokcore.reading.shards import ShardFile
from tokcore.regular_files import read_regular
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names

MANIFEST_NAME = 'tokbeam.json'
MANIFEST_FORMAT = 1
"""As `pipelines.artifacts.manifest` writes it."""

_MOST_BYTES = 64 << 20
"""Of a manifest: one of 100,000 shards and as many inputs has 30 MB."""

_SHARD = re.compile(
    r'.+-(?P<split>train|dev|test)-(?P<number>\d{5,9})-of-(?P<count>\d{5,9})(?P<parquet>\.parquet)?',
    re.DOTALL,
)

_SIDES = ('inputs', 'targets')

# What is read of a manifest. Sizes are bounded so that sums of them are numbers of 64 bits.

_Count = Annotated[int, Within(0, 1 << 40)]
_Id = Annotated[int, Within(0, LARGEST_ID)]
_Checksum = Annotated[str, Matches('[0-9a-f]{8}', 'a CRC-32C of eight hexadecimal digits')]
_Name = Annotated[
    str,
    Matches('(?!\\.{1,2}$)[^/\0\ud800-\udc7f\udd00-\udfff]+', 'the name of a file in the folder'),
]


@dataclass(frozen=True, eq=False)
class DatasetVocabularies:
    """Vocabularies by feature, read when they are first asked for.

    Attributes:
        manifest: of the folder.
        paths: by the manifest's sides; a side lacks where nobody gave a path.
    """

    manifest: DatasetManifest
    paths: dict[str, str]

    @classmethod
    def of(
        cls,
        manifest: DatasetManifest,
        vocabulary: str | os.PathLike | None,
        target_vocabulary: str | os.PathLike | None,
    ) -> DatasetVocabularies:
        """Returns those in the folder, or those given.

        Raises:
            InputError: one given is not that of the manifest, or there is no such side.
        """
        paths = {each.side: each.path for each in manifest.vocabularies if each.path is not None}
        given = {'vocabulary': vocabulary, 'target_vocabulary': target_vocabulary}
        sides = {each.side: each for each in manifest.vocabularies}
        for argument, path in given.items():
            if path is None:
                continue
            side = _side(sides, argument)
            if side is None:
                raise InputError(
                    f'{manifest.folder} was made with {_listed(sides)}; leave {argument} out'
                )
            paths[side] = os.fspath(path)
            _check(sides[side], paths[side], argument)
        return cls(manifest, paths)

    @property
    def scheme(self) -> Scheme:
        return self.manifest.scheme

    def _file(self, feature: str) -> VocabularyFile | None:
        sides = {each.side: each for each in self.manifest.vocabularies}
        return sides.get(feature, sides.get('both'))

    def size(self, feature: str) -> int:
        file = self._file(feature)
        return self.vocabulary(feature).vocab_size if file is None else file.size

    @property
    def id_counts(self) -> dict[str, int]:
        """Returns how many ids rows may have, by feature, of those whose vocabulary is known."""
        return {
            feature: self.size(feature)
            for feature in self.manifest.features
            if self._file(feature) is not None or self.scheme.fixed is not None
        }

    def special_ids(self, feature: str) -> SpecialIds:
        file = self._file(feature)
        return self.vocabulary(feature).special_ids if file is None else file.special_ids

    def vocabulary(self, feature: str) -> Vocabulary:
        file = self._file(feature)
        if file is None:
            if self.scheme.fixed is None:
                raise InputError(f'{self.manifest.folder} has no vocabulary of {feature}')
            return self.scheme.fixed
        return self._read(file.side)

    @functools.cache  # noqa: B019 - as many as there are sides
    def _read(self, side: str) -> Vocabulary:
        file = next(each for each in self.manifest.vocabularies if each.side == side)
        argument = 'target_vocabulary' if side == 'targets' and self._two else 'vocabulary'
        path = self.paths.get(side)
        if path is None:
            raise InputError(
                f'the vocabulary {file.name} is not in {self.manifest.folder}; give its path to '
                f'open_dataset as {argument}'
            )
        found = self.scheme.parse(_check(file, path, argument), path)
        if found.vocab_size != file.size:
            raise InputError(
                f'{path} has {found.vocab_size} ids, and {MANIFEST_NAME} of {self.manifest.folder} '
                f'tells of {file.size}; make the dataset again'
            )
        return found

    @property
    def _two(self) -> bool:
        return len(self.manifest.vocabularies) > 1

    def template(self, feature: str) -> Template:
        return self.scheme.template(self.vocabulary(feature), self.manifest.template)


def _side(sides: dict[str, VocabularyFile], argument: str) -> str | None:
    wanted = ('both', 'inputs') if argument == 'vocabulary' else ('targets',)
    # A dataset without inputs may have been encoded with one of the targets.
    if argument == 'vocabulary' and list(sides) == ['targets']:
        return 'targets'
    return next((each for each in wanted if each in sides), None)


def _listed(sides: dict[str, VocabularyFile]) -> str:
    names = [f'{each.name} ({side})' for side, each in sides.items()]
    return 'the vocabulary ' + ' and '.join(names) if names else 'no vocabulary file'


def _check(file: VocabularyFile, path: str, argument: str) -> bytes:
    """Returns what a file holds, if it is the one that the manifest tells of."""
    try:
        size = os.path.getsize(path)
    except (OSError, ValueError):
        size = file.bytes  # reading says what is wrong
    if size != file.bytes:
        raise InputError(
            f'{path} has {size} bytes, and the rows were made with {file.name} of {file.bytes} bytes; '
            f'give that one as {argument}'
        )
    data = read_vocabulary_file(path)
    crc32c = f'{google_crc32c.value(data):08x}'
    if crc32c != file.crc32c:
        raise InputError(
            f'{path} has CRC-32C {crc32c}, and the rows were made with {file.name} whose is '
            f'{file.crc32c}; give that one as {argument}'
        )
    return data


@dataclass(frozen=True)
class DatasetManifest:
    """A dataset's folder as its manifest describes it.

    Attributes:
        folder: the path.
        scheme: by which its rows were made, with the options that are recorded.
        template: that was asked for around rows; None: the scheme's own.
        splits: the shards of each split, in order.
        vocabularies: none of a scheme without vocabularies.
        features: those of its rows: inputs, targets, or both.
    """

    folder: str
    scheme: Scheme
    template: str | None
    splits: dict[str, tuple[ShardFile, ...]]
    vocabularies: tuple[VocabularyFile, ...]
    features: tuple[str, ...]

    @classmethod
    def read(cls, folder: str | os.PathLike) -> DatasetManifest:
        """Reads a folder's manifest, and no record.

        Raises:
            InputError: there is none, it is of another kind of result or says what cannot be, or a
                shard that it lists is not there in its size.
        """
        folder = os.fspath(folder)
        path = os.path.join(folder, MANIFEST_NAME)
        try:
            fields = json.loads(read_regular(path, _MOST_BYTES))
            _check_kind(path, fields)
            manifest = checked(fields, _Manifest)
            options = checked(manifest.options, _Options, 'options')
            _check_output_format(folder, options.output_format)
            found = cls(
                folder,
                _scheme(path, options.scheme, manifest),
                None if options.template is None else template(options.template),
                _splits(folder, manifest.files),
                _vocabularies(folder, manifest),
                _features(manifest, options),
            )
        except FileNotFoundError as error:
            raise InputError(
                f'{folder} has no {MANIFEST_NAME}, so it is no whole dataset; give a folder that '
                '`tokbeam build` or `tokbeam encode` has finished'
            ) from error
        except OSError as error:
            raise InputError(
                f'{path} cannot be read ({error.strerror}); give another folder'
            ) from error
        except (ValueError, RecursionError, argparse.ArgumentTypeError) as error:
            raise InputError(
                f'{path} is no manifest of a dataset ({error!s:.200}); give a folder that `tokbeam '
                'build` or `tokbeam encode` has finished'
            ) from error
        for shard in (shard for shards in found.splits.values() for shard in shards):
            _check_size(shard)
        return found


@dataclass(frozen=True)
class VocabularyFile:
    """A vocabulary as the manifest has it.

    Attributes:
        side: `inputs`, `targets` or `both`.
        path: in the folder; None where it was given from elsewhere.
        size: how many ids there are.
        bytes, crc32c: of the file; the checksum in hexadecimal.
        special_ids: which ids have a role.
    """

    side: str
    name: str
    path: str | None
    size: int
    bytes: int
    crc32c: str
    special_ids: SpecialIds


@dataclass(frozen=True)
class _Stage:
    stage: str


@dataclass(frozen=True)
class _Format:
    format: int


@dataclass(frozen=True)
class _Input:
    role: str


@dataclass(frozen=True)
class _File:
    name: _Name
    rows: _Count
    bytes: _Count
    crc32c: _Checksum


@dataclass(frozen=True)
class _Roles:
    pad: _Id | None = None
    begin: _Id | None = None
    end: _Id | None = None
    unknown: _Id | None = None


@dataclass(frozen=True)
class _Vocabulary:
    side: Literal['inputs', 'targets', 'both']
    name: _Name
    size: Annotated[int, Within(1, LARGEST_ID + 1)]
    bytes: _Count
    crc32c: _Checksum
    special_ids: _Roles | None = None
    scheme_options: dict[str, object] | None = None


@dataclass(frozen=True)
class _Manifest:
    options: dict[str, object]
    inputs: tuple[_Input, ...]
    files: tuple[_File, ...]
    vocabularies: tuple[_Vocabulary, ...]
    vocabularies_used: tuple[_Vocabulary, ...]


@dataclass(frozen=True)
class _Options:
    scheme: str = DEFAULT_SCHEME
    template: str | None = None
    output_format: str = 'tfrecord'
    datasets: tuple[dict[str, object], ...] = field(default=())


def _check_kind(path: str, fields: object) -> None:
    stage = checked(fields, _Stage).stage
    if stage not in ('build', 'encode'):
        raise InputError(
            f'{path} is of `{stage:.60}` and not of a dataset; give a folder of `tokbeam build` or '
            '`tokbeam encode`'
        )
    found = checked(fields, _Format).format
    if found != MANIFEST_FORMAT:
        raise InputError(
            f'{path} has manifest format {shown(found)}, this version reads {MANIFEST_FORMAT}; make '
            'the dataset again with this version, or read it with the one that made it'
        )


def _check_output_format(folder: str, output_format: str) -> None:
    if output_format not in ('tfrecord', 'parquet'):
        raise InputError(
            f'{folder} holds its rows as {output_format:.60}; build it with '
            '--output-format=tfrecord or parquet to read it here'
        )


def _scheme(path: str, name: str, manifest: _Manifest) -> Scheme:
    if name not in scheme_names():
        raise InputError(
            f'{path} tells of --scheme {name:.60}, which this version does not know: there are '
            f'{", ".join(scheme_names())}'
        )
    records = manifest.vocabularies_used or manifest.vocabularies
    recorded = (records[0].scheme_options or {}) if records else {}
    kind = type(find_scheme(name))
    names = {each.key: each.field for each in declared(kind)}
    return _with_options(
        kind, {names[key]: value for key, value in recorded.items() if key in names}
    )


def _with_options(kind: type, recorded: Mapping[str, object]) -> typing.Any:
    """Returns an instance of a dataclass of options, a scheme or a format, as they are recorded."""
    values = fields_of(recorded, kind, 'options')
    for each in declared(kind):
        words, value = each.option.kind, values.get(each.field, each.default)
        if (
            isinstance(words, tuple)
            and not each.option.many
            and value not in (*words, each.default)
        ):
            raise WrongValue(f'options.{each.key}', shown(value), f'one of {", ".join(words)}')
    return kind(**values)


def _splits(folder: str, files: Sequence[_File]) -> dict[str, tuple[ShardFile, ...]]:
    """Returns the shards of each split: of each all there are, once, in the order of their numbers."""
    splits: dict[str, list[ShardFile]] = {}
    counts: dict[str, int] = {}
    for each in files:
        name = _SHARD.fullmatch(each.name)
        if name is None:
            continue
        shards = splits.setdefault(name['split'], [])
        count = counts.setdefault(name['split'], int(name['count']))
        if (int(name['number']), int(name['count'])) != (len(shards), count):
            raise ValueError(f'{shown(each.name)} is where shard {len(shards)} of {count} must be')
        if not name['parquet']:
            _check_rows(each)
        path = os.path.join(folder, each.name)
        shards.append(ShardFile(path, each.rows, each.bytes, each.crc32c))
    for split, shards in splits.items():
        if len(shards) != counts[split]:
            raise ValueError(f'{len(shards)} of the {counts[split]} shards of {split} are there')
    return {name: tuple(shards) for name, shards in splits.items()}


def _check_rows(file: _File) -> None:
    """Refuses TFRecords that their file has no room for: nothing may be counted up to a false number."""
    if file.rows * SMALLEST_RECORD > file.bytes or (file.bytes and not file.rows):
        raise ValueError(
            f'{shown(file.name)} has {file.bytes} bytes, which cannot be {file.rows} records of '
            f'{SMALLEST_RECORD} bytes or more'
        )


def _check_size(shard: ShardFile) -> None:
    try:
        state = os.stat(shard.path)
    except (OSError, ValueError):  # the latter for a name that cannot be one here
        state = None
    if state is None or state.st_size != shard.bytes or not stat.S_ISREG(state.st_mode):
        raise InputError(
            f'{shard.path} is missing or no file of the {shard.bytes} bytes that {MANIFEST_NAME} '
            'states; make the dataset again'
        )


def _vocabularies(folder: str, manifest: _Manifest) -> tuple[VocabularyFile, ...]:
    given = manifest.vocabularies_used
    found = []
    for each in given or manifest.vocabularies:
        # Version 0.1.0 recorded no roles, and knew subwords alone.
        roles = _Roles(pad=0, end=1) if each.special_ids is None else each.special_ids
        special_ids = SpecialIds(**dataclasses.asdict(roles))
        if max((id_ for id_ in special_ids if id_ is not None), default=0) >= each.size:
            raise ValueError(f'{shown(each.name)} has {each.size} ids and roles of others')
        path = None if given else os.path.join(folder, each.name)
        found.append(
            VocabularyFile(
                each.side, each.name, path, each.size, each.bytes, each.crc32c, special_ids
            )
        )
    sides = [each.side for each in found]
    if len(set(sides)) < len(sides) or ('both' in sides and len(sides) > 1):
        raise ValueError(f'there are vocabularies of {" and ".join(sides)[:100]}')
    return tuple(found)


def _features(manifest: _Manifest, options: _Options) -> tuple[str, ...]:
    """Returns what the texts of rows became, by the format and its options as they are recorded."""
    record = next(iter(options.datasets), manifest.options)
    if 'format' in record:
        kind = corpus_format(checked(record['format'], str, 'format'))
    else:
        roles = {each.role for each in manifest.inputs}
        kinds = [each for each in all_formats() if roles & set(each.roles)]
        if not kinds:
            raise ValueError('none of its inputs has a role that is known')
        kind = kinds[0]
    sides = _with_options(kind, record).sides
    if not sides or not set(sides) <= set(_SIDES):
        raise ValueError(f'its rows are of {" and ".join(map(str, sides))[:100]}')
    return tuple(sides)
