"""The vocabularies of a dataset: those in its folder, or given, which must be the ones it was made with."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

import google_crc32c

from tokcore.encoding.scheme import Scheme
from tokcore.encoding.special_ids import SpecialIds, Vocabulary, read_vocabulary_file
from tokcore.encoding.templates import Template
from tokcore.errors import InputError
from tokcore.reading.folder_manifest import MANIFEST_NAME, FolderManifest, VocabularyFile


@dataclass(frozen=True, eq=False)
class OpenedVocabularies:
    """Vocabularies by feature, read when they are first asked for.

    Attributes:
        manifest: of the folder.
        paths: by the manifest's sides; a side lacks where nobody gave a path.
    """

    manifest: FolderManifest
    paths: dict[str, str]

    @classmethod
    def of(
        cls,
        manifest: FolderManifest,
        vocabulary: str | os.PathLike | None,
        target_vocabulary: str | os.PathLike | None,
    ) -> OpenedVocabularies:
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
            for feature in self.manifest.sides
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
