"""Verifies a dataset's folder: its manifest against itself, and every file against the manifest.

Without the corpus this proves that the folder holds the bytes that were written, that each record is
whole and has ids of the vocabulary, and that nothing is missing. Rows do not hold their order keys;
that they are the rows of the corpus, each once and in the order of the keys, is proved by making them
again (`rerun`).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from pipelines.artifacts.manifest import RUN_NAME, read_manifest
from pipelines.engines.progress import advance, stage_running, track_work
from pipelines.files import filesystem
from pipelines.jobs.recorded import recorded_corpus
from pipelines.shard_formats.formats import stored_format
from pipelines.shard_formats.shard_format import mapped_bytes
from tokcore.checked_json import WrongValue, checked
from tokcore.corpus.order_keys import is_among, mix64, shard_of
from tokcore.corpus.stretches import CORPUS_INDEX, parse_corpus_index
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError, UnreachableError
from tokcore.filters.leaving_out import AddressedFiles
from tokcore.options import recorded
from tokcore.reading.checking import (
    CheckedFile,
    Finding,
    Findings,
    Sums,
    check_bytes,
    record_fields,
)
from tokcore.reading.manifest import recorded_features, recorded_scheme
from tokcore.reading.record_index import (
    INDEX_FOLDER,
    RecordIndex,
    index_name,
    parse_index,
)
from tokcore.records.manifest import (
    FILE_OF_SPLIT,
    MANIFEST_NAME,
    ROOT_STAGES,
    SHARD_NAME,
    FileOfShard,
    Manifest,
    OutputFile,
    VocabularyRecord,
    file_of_shard,
    root_hash,
)
from tokcore.schemes import DEFAULT_SCHEME
from tokcore.text.whitespace import escape_piece

_CHECKING = 'checking'

_ROWS_AT_ONCE = 1 << 16
"""Rows of an index that are compared at once."""

_File = TypeVar('_File', OutputFile, VocabularyRecord)

_READ = re.compile(
    rf'(?:.*/)?(?:{SHARD_NAME}.*|{FILE_OF_SPLIT}|(?!tokbeam(?:\.run)?\.json$)[^/]*\.(?:json|jinja|model|tiktoken)|'
    rf'vocab\.txt|merges\.txt)|{INDEX_FOLDER}/.*',
    re.DOTALL,
)
"""Names by which tokcore, transformers or datasets take files for shards, indexes or a tokenizer's."""


@dataclass(frozen=True)
class Verified:
    """What a verification found.

    Attributes:
        folder: that was verified.
        manifest: of it; None if it could not be read.
        root: of what is there now; None if a file is missing or cannot be read.
        files: that were read.
        rows: of its shards; one with several files counts once.
        bytes: that were read.
        findings: all that is wrong, by files in the order of the manifest.
        not_covered: the names of files that the manifest does not list, and of folders with a manifest
            of their own.
    """

    folder: str
    manifest: Manifest | None
    root: str | None
    files: int
    rows: int
    bytes: int
    findings: tuple[Finding, ...]
    not_covered: tuple[str, ...] = ()


def verify_folder(folder: str, workers: int = 1, root: str | None = None) -> Verified:
    """Verifies a folder of `tokbeam build` or `tokbeam encode`.

    Args:
        folder: an absolute path.
        workers: files that are read at once.
        root: that it must have; None: the one that its manifest states.

    Raises:
        InputError: there is no such folder, no manifest of a dataset of this version in it, or no library
            that reads its format.
    """
    path = os.path.join(folder, MANIFEST_NAME)
    try:
        manifest = read_manifest(path)
    except InputError as error:
        if error.__cause__ is None:  # of another version
            raise
        finding = Finding(MANIFEST_NAME, f'it is not a manifest ({error.__cause__!s:.200})')
        return Verified(folder, None, None, 1, 0, 0, (finding,))
    if manifest is None:
        raise InputError(
            f'{folder} has no {MANIFEST_NAME}, so it is not a whole dataset; give a folder that '
            '`tokbeam build` or `tokbeam encode` has finished'
        )
    if manifest.stage not in ROOT_STAGES:
        raise InputError(
            f'{path} is of `{manifest.stage:.60}` and not of a dataset; give a folder of `tokbeam '
            'build` or `tokbeam encode`'
        )
    stored_format(manifest).require(())
    contents = _Contents(folder, manifest)
    findings = [*_inconsistencies(manifest), *contents.check_vocabularies()]
    not_covered: dict[str, None] = {}
    unlisted, rejected = contents.unlisted_files(), {file.name for file in manifest.rejected}
    for name in unlisted:
        # A link to a folder, which stores do not have, is one of the names; what is in the folder is not.
        if _READ.fullmatch(name) or os.path.isdir(os.path.join(folder, name)):
            problem = (
                'the manifest does not list it, and tokcore, transformers or datasets would read it'
            )
            findings.append(Finding(name, problem))
        elif name not in rejected:
            top = f'{name.partition("/")[0]}/'
            not_covered[top if f'{top}{MANIFEST_NAME}' in unlisted else name] = None
    total = sum(file.bytes for file in manifest.outputs)
    with (
        stage_running('verify'),
        track_work('verify', _CHECKING, total),
        ThreadPoolExecutor(max(1, workers)) as pool,
    ):
        files = [*manifest.outputs, *contents.unlisted_indexes()]
        checked_files = zip(files, pool.map(contents.check, files), strict=True)
        by_name = {file.name: result for file, result in checked_files if result is not None}
        indexes = {file.name: file for file in manifest.index}
        for file in manifest.outputs:
            if file.name not in indexes:
                findings += _differences(file, by_name.get(file.name), manifest)
        for name in contents.index_names:
            listed, wrong = indexes.pop(name, None), contents.wrong_index(name, by_name)
            if wrong is not None:
                findings.append(Finding(name, f'{wrong}; run `tokbeam index` again'))
            elif listed:
                findings += _differences(listed, by_name.get(name), manifest)
        for name in indexes:
            findings.append(Finding(MANIFEST_NAME, f'it lists {name}, an index of no shard'))
        findings += [*contents.check_text_bytes(), *contents.check_removed()]
    present = [by_name[file.name] for file in manifest.outputs if file.name in by_name]
    found_root = _root_of(manifest, by_name)
    for stated, who in ((manifest.root, 'the manifest states'), (root, '--root asks for')):
        if stated is not None and found_root is not None and found_root != stated:
            problem = f'the root of what is there is {found_root}, and {who} {stated}'
            findings.append(Finding(MANIFEST_NAME, problem))
    return Verified(
        folder,
        manifest,
        found_root,
        len(present),
        _row_count(by_name),
        sum(result.bytes for result in present),
        tuple(findings),
        tuple(not_covered),
    )


def _row_count(by_name: Mapping[str, CheckedFile]) -> int:
    """Returns the number of rows; files of a shard, as those of two sides, have the same ones."""
    rows = collections.defaultdict[str, collections.Counter[str]](collections.Counter)
    for name, file in by_name.items():
        if shard := file_of_shard(name):
            rows[shard.split][shard.ending] += file.rows
    return sum(max(counts.values()) for counts in rows.values())


def _inconsistencies(manifest: Manifest) -> Iterator[Finding]:
    """Yields what a manifest says against itself."""

    def finding(problem: str) -> Finding:
        return Finding(MANIFEST_NAME, problem)

    rows = collections.defaultdict[str, collections.Counter[str]](collections.Counter)
    shards: collections.Counter[tuple[str, str]] = collections.Counter()
    for file in manifest.files:
        shard = file_of_shard(file.name)
        if shard is None:
            continue
        split, ending = shard.split, shard.ending
        rows[split][ending] += file.examples
        if shard.number != shards[split, ending]:
            yield finding(f'{file.name} is not the shard that comes after those before it')
        shards[split, ending] += 1
    for tally in (*manifest.lines, *manifest.datasets):
        if not tally.is_conserved:
            yield finding(
                f'its {tally.lines:,} lines of {tally.dataset or tally.split} are not as many as those '
                'that became examples, were empty or were left out'
            )
    for tally in manifest.lines:
        for ending, count in rows.get(tally.split, {'': 0}).items():
            if count != tally.examples:
                yield finding(
                    f'it has {tally.examples:,} examples of {tally.split}, and its shards '
                    f'{ending} have {count:,} rows'.replace('  ', ' ')
                )
    for split in rows.keys() - {tally.split for tally in manifest.lines}:
        yield finding(f'it has shards of {split} and no count of its lines')


def _differences(
    file: OutputFile | VocabularyRecord, result: CheckedFile | None, manifest: Manifest
) -> Iterator[Finding]:
    """Yields what is wrong with a file: of its records, and as a whole."""
    if result is None:
        yield Finding(file.name, 'it is missing')
        return
    yield from result.findings
    if not result.crc32c:
        return
    differing = [
        f'{what} {actual} in place of {stated}'
        for what, actual, stated in [
            ('bytes', f'{result.bytes:,}', f'{file.bytes:,}'),
            ('CRC-32C', result.crc32c, file.crc32c),
            ('SHA-256', result.sha256, file.sha256 or result.sha256),
            *(
                [('rows', f'{result.rows:,}', f'{file.rows:,}')]
                if isinstance(file, OutputFile)
                else []
            ),
        ]
        if actual != stated
    ]
    if not differing:
        return
    clause = f'it has {", ".join(differing)}'
    twin = next(
        (
            other.name
            for other in manifest.outputs
            if other.name != file.name
            and (other.bytes, other.crc32c) == (result.bytes, result.crc32c)
            and result.bytes
        ),
        None,
    )
    if twin is not None:
        clause += f'; that is what the manifest states of {twin}'
    elif isinstance(file, OutputFile) and not result.findings and file.name in _names(manifest):
        clause += (
            '; each of its records is whole, so that some were exchanged, doubled or taken out: '
            '--rerun all names them'
        )
    yield Finding(file.name, clause)


def _names(manifest: Manifest) -> set[str]:
    return {file.name for file in manifest.files}


def _root_of(manifest: Manifest, by_name: Mapping[str, CheckedFile]) -> str | None:
    """Returns the root of the files as they are; None if some are missing or cannot be read."""
    by_name = {name: result for name, result in by_name.items() if result.crc32c}

    def as_it_is(file: _File) -> _File:
        result = by_name[file.name]
        is_hashed = file.sha256 or file.name in _names(manifest)
        changes: dict[str, Any] = {'bytes': result.bytes, 'crc32c': result.crc32c}
        if isinstance(file, OutputFile):
            changes['rows'] = result.rows
        return dataclasses.replace(file, **changes, sha256=result.sha256 if is_hashed else None)

    needed = {record.name for record in manifest.vocabularies} | _names(manifest)
    needed |= {file.name for file in manifest.removed}
    needed |= {file.name for record in manifest.vocabularies for file in record.beside}
    if not needed <= by_name.keys():
        return None
    vocabularies = tuple(
        dataclasses.replace(as_it_is(record), beside=tuple(map(as_it_is, record.beside)))
        for record in manifest.vocabularies
    )
    files = tuple(map(as_it_is, manifest.files))
    removed = tuple(map(as_it_is, manifest.removed))
    return root_hash(
        dataclasses.replace(manifest, files=files, vocabularies=vocabularies, removed=removed)
    )


class _Contents:
    """Checks the files of a folder, each by what it holds; threads can share it.

    It is the `StoredDataset` that a format asks.
    """

    def __init__(self, folder: str, manifest: Manifest):
        self._folder, self._manifest = folder, manifest
        self._shards = _names(manifest)
        self._indexes = {file.name for file in manifest.index}
        first_files: dict[str, tuple[FileOfShard, OutputFile]] = {}
        for file in manifest.files:
            if shard := file_of_shard(file.name):
                first_files.setdefault(shard.shard, (shard, file))
        self._indexed = {index_name(each[1].name): each for each in first_files.values()}
        self._shard_counts = collections.Counter(shard.split for shard, _ in first_files.values())
        self._with_keys: list[tuple[FileOfShard, OutputFile, RecordIndex]] = []
        self.index_names = [*self._indexed, CORPUS_INDEX]

    def check(self, file: OutputFile | VocabularyRecord) -> CheckedFile | None:
        """Returns what a file holds; None if it is missing. One that cannot be read has no checksum."""
        path = os.path.join(self._folder, file.name)
        if not filesystem.exists(path):
            is_whole = isinstance(file, OutputFile) and not file.is_stored
            return Sums().checked(0, Findings(file.name)) if is_whole else None
        count_bytes = functools.partial(advance, _CHECKING)
        try:
            with filesystem.open_binary(path) as stream:
                if file.name in self._shards and isinstance(file, OutputFile):
                    return stored_format(self._manifest).check(stream, file, self, count_bytes)
                result = check_bytes(stream, file.name, count_bytes)
        except UnreachableError:  # that is no error of the file
            raise
        except InputError as error:
            finding = Finding(file.name, f'it cannot be read ({error!s:.300})')
            return CheckedFile(0, 0, '', '', (finding,))
        if file.name in self._indexes and isinstance(file, OutputFile):
            return dataclasses.replace(result, rows=file.rows)  # those of its shard
        return result

    def unlisted_indexes(self) -> list[OutputFile]:
        """Returns the indexes that may be there and of which the manifest says nothing."""
        names = [name for name in self.index_names if name not in self._indexes]
        return [OutputFile(name, 0, '0' * 8, 0) for name in names]

    def unlisted_files(self) -> dict[str, None]:
        """Returns the names of files that the root does not cover and that are not compared with others.

        Nobody reads hidden files, so they are left out.
        """
        known = {MANIFEST_NAME, RUN_NAME, *self.index_names, *self._shards}
        known |= {file.name for file in self._manifest.removed}
        for record in self._manifest.vocabularies:
            known |= {record.name, *(file.name for file in record.beside)}
        names = filesystem.names_below(self._folder)
        return {name: None for name in names if name not in known and '/.' not in f'/{name}'}

    def check_vocabularies(self) -> Iterator[Finding]:
        """Yields what the manifest says of vocabularies and their files do not."""
        scheme = self._scheme
        if scheme is None:
            yield Finding(MANIFEST_NAME, 'no scheme has the name or the options that it states')
            return
        options = json.loads(json.dumps(recorded(scheme)))  # with lists, as the manifest has
        for record in self._manifest.vocabularies:
            try:
                vocabulary = self._vocabulary(scheme, record.side)
            except InputError as error:
                yield Finding(
                    record.name, f'it is not a vocabulary of the dataset ({error!s:.300})'
                )
                continue
            size = vocabulary.vocab_size
            if getattr(vocabulary, 'has_unlisted_ids', False):
                size = max(size, record.size)
            for what, stated, actual in (
                ('the size', record.size, size),
                ('the special ids', record.special_ids, vocabulary.special_ids._asdict()),
                ('the scheme', record.scheme, scheme.name),
                ('the options', record.scheme_options or {}, options),
                ('the rules', record.rules or scheme.rules, scheme.rules),
            ):
                if stated != actual:
                    problem = f'it states {what} {stated!s:.200} of {record.name}, which has {actual!s:.200}'
                    yield Finding(MANIFEST_NAME, problem)

    def wrong_index(self, name: str, by_name: Mapping[str, CheckedFile]) -> str | None:
        """Returns what is wrong with an index, if it is there."""
        if name not in by_name:
            return None
        if name == CORPUS_INDEX:
            lines = parse_corpus_index(self.content(name) or b'') or ()
            return None if len(lines) == len(self._manifest.inputs) else 'it is damaged'
        shard, file = self._indexed[name]
        result = by_name.get(file.name)
        index = parse_index(mapped_bytes(os.path.join(self._folder, name)))
        if index is None or index.shard != (file.examples, file.bytes, int(file.crc32c, 16)):
            return f'it is not the index of {file.name}'
        if result is not None and (result.crc32c, result.findings) == (file.crc32c, ()):
            if index.has_offsets and result.records_sha256 != _records_sha256(index):
                return f'it has other records than {file.name}'
        if index.has_keys:
            numbers = shard_of(index.keys, self._shard_counts[shard.split])
            if np.any(numbers != shard.number) or np.any(index.keys[1:] <= index.keys[:-1]):
                return 'its order keys are not those of such a shard'
            self._with_keys.append((shard, file, index))
        return None

    def check_text_bytes(self) -> Iterator[Finding]:
        """Yields where the indexes have other text than the manifest counts."""
        for tally in self._manifest.lines:
            sizes = [
                int(np.sum(index.text_bytes, dtype=np.int64))
                for shard, _, index in self._with_keys
                if shard.split == tally.split
            ]
            are_all = len(sizes) == self._shard_counts[tally.split]
            if are_all and tally.text_bytes != sum(sizes):
                yield Finding(
                    MANIFEST_NAME,
                    f'it states {tally.text_bytes:,} bytes of text of {tally.split}, and the indexes of its '
                    f'shards have {sum(sizes):,}',
                )

    def check_removed(self) -> Iterator[Finding]:
        """Yields what is left of the rows that the list of removed ones has."""
        for file in self._manifest.removed:
            counted = sum(tally.removed for tally in self._manifest.lines)
            if counted != file.rows:
                problem = f'it counts {counted:,} removed rows, and {file.name} has {file.rows:,}'
                yield Finding(MANIFEST_NAME, problem)
            try:
                files = AddressedFiles(recorded_corpus(self._manifest).splits)
                places = files.places(files.read(self.content(file.name) or b'', file.name))
            except (InputError, ValueError) as error:
                yield Finding(file.name, f'it is no list of rows of this dataset ({error!s:.200})')
                continue
            seed = checked(self._manifest.options.get('seed'), int, 'seed')
            removed = {split: np.sort(mix64(own, seed)) for split, own in places.items()}
            for shard, indexed, index in self._with_keys:
                are_there = is_among(removed.get(shard.split, np.empty(0)), index.keys)
                if rows := np.count_nonzero(are_there):
                    problem = f'{rows:,} of its rows are in {file.name}, which leaves them out'
                    yield Finding(indexed.name, problem)

    def content(self, name: str) -> bytes | None:
        path = os.path.join(self._folder, name)
        return filesystem.read_bytes(path) if filesystem.exists(path) else None

    @functools.cached_property
    def _scheme(self) -> Scheme | None:
        name = self._manifest.options.get('scheme', DEFAULT_SCHEME)
        path = os.path.join(self._folder, MANIFEST_NAME)
        try:
            return recorded_scheme(path, checked(name, str, 'scheme'), self._manifest.vocabularies)
        except (ValueError, InputError):  # `check_vocabularies` reports it
            return None

    @functools.cached_property
    def id_counts(self) -> dict[str, int | None]:
        try:
            roles = {text.role for text in self._manifest.inputs}
            features = recorded_features(roles, self._manifest.options)
        except (ValueError, WrongValue):
            return {}
        sizes = {record.side: record.size for record in self._manifest.vocabularies}
        fixed = self._scheme.fixed.vocab_size if self._scheme and self._scheme.fixed else None
        counts = {name: sizes.get(name, sizes.get('both', fixed)) for name in features}
        return {name: n and max(n, 1 + self.ends.get(name, -1)) for name, n in counts.items()}

    @property
    def ends(self) -> dict[str, int]:
        return {end.feature: end.id for end in self._manifest.end_of_document}

    @functools.lru_cache  # noqa: B019 - two sides
    def _vocabulary(self, scheme: Scheme, side: str) -> Vocabulary:
        """Returns the vocabulary of a side; raises InputError if its file is not one."""
        record = next(record for record in self._manifest.vocabularies if record.side == side)
        path = os.path.join(self._folder, record.name)
        return scheme.parse(filesystem.read_bytes(path), path, filesystem.read_if_there)

    @functools.lru_cache  # noqa: B019 - two sides
    def pieces(self, feature: str) -> frozenset[bytes] | None:
        scheme, sides = self._scheme, {record.side for record in self._manifest.vocabularies}
        if scheme is None:
            return None
        side = feature if feature in sides else 'both'
        try:
            vocabulary = self._vocabulary(scheme, side) if side in sides else scheme.fixed
        except InputError:  # `check_vocabularies` reports it
            return None
        if vocabulary is None:
            return None
        escapes = scheme.piece_writer(vocabulary) is None
        texts = map(escape_piece, vocabulary.pieces) if escapes else vocabulary.pieces
        return frozenset(text.encode('utf-8', 'surrogatepass') for text in texts)


def _records_sha256(index: RecordIndex) -> str:
    """Returns the SHA-256 of what an index says of records, as `check_records` finds it."""
    sha256 = hashlib.sha256()
    for first in range(0, len(index), _ROWS_AT_ONCE):
        rows = np.arange(first, min(first + _ROWS_AT_ONCE, len(index)))
        sha256.update(record_fields(index.bounds(rows)[0], index.lengths[rows]))
    return sha256.hexdigest()


def as_json(verified: Verified, more: Mapping[str, object] | None = None) -> str:
    """Returns a verification as a line of JSON."""
    fields = {
        'folder': verified.folder,
        'files': verified.files,
        'rows': verified.rows,
        'bytes': verified.bytes,
        'root': verified.root,
        'stated_root': verified.manifest.root if verified.manifest else None,
        'findings': [dataclasses.asdict(finding) for finding in verified.findings],
        'not_covered': verified.not_covered,
        **(more or {}),
    }
    return json.dumps(fields, ensure_ascii=False)
