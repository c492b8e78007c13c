"""What a dataset's manifest tells its readers."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokcore.corpus.formats.registry import all_formats, corpus_format
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.special_ids import SpecialIds
from tokcore.errors import InputError
from tokcore.options.option_fields import declared
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names

MANIFEST_NAME = 'tokbeam.json'

_READ_HERE = ('tfrecord', 'parquet')

_SHARD = re.compile(r'.+-(?P<split>train|dev|test)-(?P<number>\d{5,})-of-\d{5,}(\.parquet)?', re.DOTALL)


@dataclass(frozen=True)
class ShardFile:
    """A shard: its path, examples, and size in bytes."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class VocabularyFile:
    """A vocabulary as the manifest has it.

    Attributes:
        side: `inputs`, `targets` or `both`.
        path: in the folder; None where it was given from elsewhere.
        size: how many ids there are.
        bytes, crc32c: of the file; the checksum in hexadecimal.
        special_ids: which ids have a role.
        options: those of the scheme that it was made with.
    """

    side: str
    name: str
    path: str | None
    size: int
    bytes: int
    crc32c: str
    special_ids: SpecialIds
    options: dict[str, object]


@dataclass(frozen=True)
class FolderManifest:
    """A dataset's folder as its manifest describes it.

    Attributes:
        folder: the path.
        scheme_name: by which its rows were made.
        template: that was asked for around rows; None: the scheme's own.
        splits: the shards of each split, in order.
        vocabularies: none of a scheme without vocabularies.
        sides: the features that texts became: inputs, targets, or both.
    """

    folder: str
    scheme_name: str
    template: str | None
    splits: dict[str, tuple[ShardFile, ...]]
    vocabularies: tuple[VocabularyFile, ...]
    sides: tuple[str, ...]

    @classmethod
    def read(cls, folder: str | os.PathLike) -> FolderManifest:
        """Reads a folder's manifest, and no record.

        Raises:
            InputError: there is none, it is of another kind of result, or a shard that it lists is
                not there in its size.
        """
        folder = os.fspath(folder)
        path = os.path.join(folder, MANIFEST_NAME)
        try:
            with open(path, 'rb') as file:
                fields = json.loads(file.read())
            found = cls._of_fields(folder, path, fields)
        except FileNotFoundError as error:
            raise InputError(
                f'{folder} has no {MANIFEST_NAME}, so it is no whole dataset; give a folder that '
                '`tokbeam build` or `tokbeam encode` has finished'
            ) from error
        except OSError as error:
            raise InputError(f'{path} cannot be read ({error.strerror}); give another folder') from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f'{path} is no manifest of a dataset ({error!r:.100}); give a folder that `tokbeam '
                'build` or `tokbeam encode` has finished'
            ) from error
        for shard in (shard for shards in found.splits.values() for shard in shards):
            _check_size(shard)
        return found

    @classmethod
    def _of_fields(cls, folder: str, path: str, fields: dict) -> FolderManifest:
        if fields['stage'] not in ('build', 'encode'):
            raise InputError(
                f'{path} is of `{fields["stage"]}` and not of a dataset; give a folder of `tokbeam '
                'build` or `tokbeam encode`'
            )
        options = fields['options']
        output = options.get('output_format', 'tfrecord')
        if output not in _READ_HERE:
            raise InputError(
                f'{folder} holds its rows as {output}; build it with --output-format=tfrecord or '
                'parquet to read it here'
            )
        splits: dict[str, list[ShardFile]] = {}
        for each in fields['files']:
            found = _SHARD.fullmatch(each['name'])
            if found:
                splits.setdefault(found['split'], []).append(
                    ShardFile(os.path.join(folder, each['name']), each['rows'], each['bytes'])
                )
        given = fields['vocabularies_used']
        vocabularies = tuple(
            VocabularyFile(
                each['side'],
                each['name'],
                None if given else os.path.join(folder, each['name']),
                each['size'],
                each['bytes'],
                each['crc32c'],
                SpecialIds(**(each.get('special_ids') or {'pad': 0, 'end': 1})),
                each.get('scheme_options') or {},
            )
            for each in given or fields['vocabularies']
        )
        scheme = options.get('scheme', DEFAULT_SCHEME)
        if scheme not in scheme_names():
            raise InputError(
                f'{path} tells of --scheme {scheme}, which this version does not know: there are '
                f'{", ".join(scheme_names())}'
            )
        return cls(
            folder,
            scheme,
            options.get('template'),
            {name: tuple(shards) for name, shards in splits.items()},
            vocabularies,
            _sides(fields['inputs'], options),
        )

    def scheme(self, options: dict[str, object]) -> Scheme:
        """Returns the scheme with the options that are recorded of a vocabulary, or of the rows."""
        usual = find_scheme(self.scheme_name)
        names = {each.key: each.field for each in declared(type(usual))}
        values = {names[key]: value for key, value in options.items() if key in names}
        return type(usual)(**values)


def _check_size(shard: ShardFile) -> None:
    try:
        size = os.path.getsize(shard.path)
    except OSError:
        size = None
    if size != shard.bytes:
        raise InputError(
            f'{shard.path} is missing or not of the {shard.bytes} bytes that {MANIFEST_NAME} '
            'states; make the dataset again'
        )


def _sides(inputs: Sequence[Mapping[str, object]], options: Mapping[str, object]) -> tuple[str, ...]:
    """Returns what the texts of rows became, by the format and its options as they are recorded."""
    roles = {each['role'] for each in inputs}
    record = next(iter(options.get('datasets', ())), options)
    kind = next(each for each in all_formats() if roles & set(each.roles))
    if 'format' in record:
        kind = corpus_format(record['format'])
    known = {each.name for each in dataclasses.fields(kind)}
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name in known
    }
    return kind(**given).sides
