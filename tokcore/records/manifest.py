"""The manifest of an output folder: its inputs, its options, and every file in it.

`tokbeam.json` is written last, so a folder that has one is whole. It holds nothing that differs
between two equal runs: no path, no time. This module declares what it holds, and both its writer
(`pipelines`) and its reader for training (`tokcore.reading`) go by the declaration. Neither trusts a number
in a file.

The root hash of a dataset is one number for its rows and for all that readers take from its manifest: the
SHA-256 of the manifest without what says nothing of the data. Readers see the manifest without that too,
so that they take nothing which the root does not cover. Two folders with the same root hold the same
training data. `docs/formats.md` defines it for other programs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from tokcore.checked_json import FilePath, Matches, Within, checked
from tokcore.corpus.stats import LineTally
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.hub_folders import DATASET_MANIFEST
from tokcore.encoding.scheme import TokenRules, check_line_rule
from tokcore.errors import InputError
from tokcore.format_numbers import MANIFESTS, check_format

MANIFEST_NAME = DATASET_MANIFEST

REMOVED_NAME = 'removed.txt'
"""The list of the rows that were left out, in the folder of a dataset."""

SHARD_NAME = r'[^/]+-(?P<split>train|dev|test)-(?P<number>\d{5,9})-of-(?P<count>\d{5,9})'
"""The names of shards, as a regular expression; one of `SHARD_ENDINGS` may follow."""

SHARD_ENDINGS = (
    r'\.parquet|\.packed|\.joined|\.array_record|\.inputs|\.targets|(?:\.inputs|\.targets)?\.(?:npy|csv\.gz)|'
    r'_(?:text|inputs|targets)_document\.(?:bin|idx)'
)
"""What follows the names of shards that are not TFRecords, as a regular expression."""

NAMES_OF_SPLITS = {'train': 'train', 'dev': 'val', 'test': 'test'}
"""What files are called, without their ending, that are all of a split, as in nanoGPT."""

FILE_OF_SPLIT = r'(?:train|val|test)\.(?:bin|csv\.gz)'
"""The names of these files, as a regular expression."""

_FILE_OF_SHARD = re.compile(rf'(?P<shard>{SHARD_NAME})(?P<ending>{SHARD_ENDINGS}|)')

_OPTIONAL = ('sha256', 'dtype', 'dropped', 'packed', 'cut')
"""Fields of files that may be left out."""

_RULES = ('normalizer', 'pre_tokenizer')

_PLAIN_TYPES = (str, int, types.NoneType)

_OTHER_FORMAT = (
    'make it again with this version (--overwrite replaces it), or use the version that made it'
)

ROOT_STAGES = ('build', 'encode')
"""The commands whose results have a root."""

_ROOT_VERSION = 2

_UNCOVERED: Mapping[str, frozenset[str]] = {
    '': frozenset({'format', 'root', 'index', 'rejected', 'sample'}),
    'options': frozenset({'vocabularies'}),
    'inputs': frozenset({'name', 'stored_bytes', 'sha256'}),
    'vocabularies': frozenset({'min_count', 'tried', 'licence'}),
}
"""By field of a manifest the names in it that the root does not cover; '' has the fields themselves."""

# Sizes are bounded so that their sums are numbers of 64 bits.
Count = Annotated[int, Within(0, 1 << 40)]
_Id = Annotated[int, Within(0, (1 << 31) - 1)]
Checksum = Annotated[str, Matches('[0-9a-f]{8}', 'a CRC-32C of eight hexadecimal digits')]
_Sha256 = Annotated[str, Matches('[0-9a-f]{64}', 'a SHA-256 of 64 hexadecimal digits')]
_Side = Annotated[str, Matches('inputs|targets|both', 'inputs, targets or both')]


def shard_name(dataset: str, split: str, shard: int, shards: int) -> str:
    """Returns a shard's file name as Tensor2Tensor forms it: `enzh-train-00000-of-00010`."""
    return f'{dataset}-{split}-{shard:05d}-of-{shards:05d}'


class FileOfShard(NamedTuple):
    """What the name of a file says of its shard.

    Attributes:
        shard: the name of the shard, or what stands for it: the name of the file without its ending.
        split: of the shard.
        number: of the shard in the split.
        ending: of the file.
    """

    shard: str
    split: str
    number: int
    ending: str


def file_of_shard(name: str) -> FileOfShard | None:
    """Returns what a file's name says of its shard; None if it is not a file of one.

    >>> file_of_shard('enzh-train-00003-of-00010.npy')
    FileOfShard(shard='enzh-train-00003-of-00010', split='train', number=3, ending='.npy')
    >>> file_of_shard('val.bin')
    FileOfShard(shard='val', split='dev', number=0, ending='.bin')
    """
    if match := _FILE_OF_SHARD.fullmatch(name):
        return FileOfShard(match['shard'], match['split'], int(match['number']), match['ending'])
    if re.fullmatch(FILE_OF_SPLIT, name):
        shard, dot, ending = name.partition('.')
        split = next(split for split, name in NAMES_OF_SPLITS.items() if name == shard)
        return FileOfShard(shard, split, 0, dot + ending)
    return None


@dataclass(frozen=True)
class InputText:
    """One input file; its size and CRC-32C are those of its decompressed text."""

    split: str
    role: str  # one of its format's, or 'counts'
    name: str
    bytes: int
    crc32c: str
    unicode: str = ''  # of a count file: the version it records, or 'not recorded'
    rules: TokenRules | None = None  # of a count file: those that it records
    stored_bytes: int | None = None  # of a file that was fetched, whose name is its URL
    sha256: str | None = None  # of the same bytes
    origin: str | None = None  # of a file of the Hugging Face Hub: its address with the commit


@dataclass(frozen=True)
class OutputFile:
    """A file in the folder; `rows` are the examples of a shard or the tokens of a count table."""

    name: FilePath
    bytes: Count
    crc32c: Checksum
    rows: Count
    sha256: _Sha256 | None = None  # of a shard, or of a file next to a vocabulary
    dtype: str | None = None  # of ids that are stored one after another, as numpy names it
    dropped: tuple[
        Count, ...
    ] = ()  # rows of the shard that the file leaves out: empty, or too long
    packed: Count | None = None  # rows of the shard that are in `rows` packed ones
    cut: Count | None = None  # rows of the shard that were cut to the length of joined ones

    @property
    def examples(self) -> int:
        """The rows of the shard, also those that were packed or left out."""
        return (self.rows if self.packed is None else self.packed) + len(self.dropped)

    @property
    def is_stored(self) -> bool:
        """Whether there is a file: a shard of ids one after another has none if it has no rows."""
        return self.rows > 0 or self.dtype is None


@dataclass(frozen=True)
class VocabularyRecord:
    """A vocabulary, and how it was learned.

    `min_count` is None if no search was needed, or the file is a copy of one that existed;
    `special_ids` has an id or None for each role of `SpecialIds`.
    """

    side: _Side
    name: FilePath
    size: Annotated[int, Within(1, 1 << 31)]
    bytes: Count
    crc32c: Checksum
    scheme: str
    special_ids: dict[str, _Id | None]
    unicode: str | None = None  # of the Python whose tables cut its tokens, None if not recorded
    rules: TokenRules | None = None  # by which its tokens are found
    min_count: int | None = None
    tried: tuple[tuple[int, int], ...] = ()  # (min_count, size)
    scheme_options: dict[str, object] | None = None  # None if the scheme has none
    beside: tuple[OutputFile, ...] = ()  # of its ids, of its tokenizer folder
    sha256: _Sha256 | None = None
    licence: str | None = None  # as the README.md next to a copied file stated it
    origin: str | None = None  # of a copy from the Hugging Face Hub: its address with the commit


@dataclass(frozen=True)
class SampleRecord:
    """The sample from which a vocabulary was counted, if it was not the whole corpus."""

    how: str  # as the option has it: `t2t:100000000`, `uniform:0.1`
    side: str  # of the corpus that is counted
    lines: int  # of the side's files; of a uniform sample, those with text on every side
    taken: int  # of these
    fraction: float

    @classmethod
    def of(cls, how: str, side: str, lines: int, taken: int) -> SampleRecord:
        """Returns the record of a sample; `taken` of `lines` are in it."""
        return cls(how, side, lines, taken, round(taken / lines, 6) if lines else 0.0)


@dataclass(frozen=True)
class Manifest:
    """All that the file holds; a field that is None or empty may be left out of the JSON."""

    stage: str
    unicode: str
    options: dict[str, object]
    inputs: tuple[InputText, ...]
    rules: TokenRules  # by which tokens were found
    lines: tuple[LineTally, ...] = ()
    tokens: int | None = None  # running tokens counted
    vocabularies: tuple[VocabularyRecord, ...] = ()
    files: tuple[OutputFile, ...] = ()
    index: tuple[OutputFile, ...] = ()  # of records: a file for each shard of TFRecords
    rejected: tuple[OutputFile, ...] = ()  # rows are lines
    datasets: tuple[LineTally, ...] = ()  # the lines of each dataset that has a name
    removed: tuple[OutputFile, ...] = ()  # the list of rows that were left out, if there is one
    sample: tuple[SampleRecord, ...] = ()  # what vocabularies were counted from, if not from all
    end_of_document: tuple[EndOfDocument, ...] = ()  # of each feature, as far as it is known
    root: _Sha256 | None = None  # of a dataset: see `root`; None in manifests of earlier versions

    @property
    def outputs(self) -> tuple[OutputFile | VocabularyRecord, ...]:
        """All files in the folder that the stage wrote."""
        beside = tuple(file for vocabulary in self.vocabularies for file in vocabulary.beside)
        return self.vocabularies + beside + self.files + self.index + self.removed + self.rejected

    def to_json(self) -> bytes:
        """Returns the bytes of the file."""
        return json_bytes(self.record())

    def record(self) -> dict[str, Any]:
        """Returns the fields of the file, as JSON has them."""
        fields = {**_plain(self), 'format': MANIFESTS[self.stage]}
        for name in ('lines', 'datasets'):
            fields[name] = [tally.record() for tally in getattr(self, name)]
        _omit_unset(fields, 'datasets', 'sample', 'end_of_document', 'root', 'index', 'removed')
        _rules_to_json(fields)
        for record in fields['inputs']:
            _rules_to_json(record)
            _omit_unset(record, 'stored_bytes', 'sha256', 'origin')
        for record in fields['vocabularies']:
            _rules_to_json(record)
            for file in record['beside']:
                _omit_unset(file, *_OPTIONAL)
            _omit_unset(record, 'scheme_options', 'beside', 'sha256', 'licence', 'origin')
        for name in ('files', 'index', 'removed', 'rejected'):
            for record in fields.get(name, ()):
                _omit_unset(record, *_OPTIONAL)
        return fields

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Manifest:
        """Raises InputError, naming `path`, if the bytes are not a manifest of this version."""
        try:
            fields = json.loads(data)
            if not isinstance(fields, dict):
                raise TypeError('not a JSON object')
            check_format(path, fields.pop('format'), MANIFESTS[fields['stage']], _OTHER_FORMAT)
            for record in (fields, *fields['inputs'], *fields['vocabularies']):
                rules = {name: record.pop(name) for name in _RULES if name in record}
                if rules:
                    record['rules'] = rules
            for name in ('lines', 'datasets'):
                fields[name] = [vars(LineTally.of_record(tally)) for tally in fields.get(name, [])]
            manifest = checked(fields, cls, is_whole=True)
            check_line_rule(manifest.rules, path, _OTHER_FORMAT)
            return manifest
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = ' '.join(str(error).split()) or type(error).__name__
            raise InputError(
                f'{path} is not a manifest of tokbeam ({reason:.200}); use another output or --overwrite'
            ) from error


def _plain(value: Any) -> Any:
    """Returns what `asdict` returns, which copies each value: there may be thousands of inputs."""
    if isinstance(value, (tuple, list)):
        return [_plain(element) for element in value]
    names = getattr(value, '__dataclass_fields__', None)
    if names is None:
        return value
    return {
        name: item if isinstance(item := getattr(value, name), _PLAIN_TYPES) else _plain(item)
        for name in names
    }


def _omit_unset(fields: dict[str, Any], *names: str) -> None:
    """Removes those of these fields that are None or empty lists."""
    for name in names:
        if fields[name] is None or fields[name] in ([], ()):
            del fields[name]


def json_bytes(fields: dict[str, Any]) -> bytes:
    """Returns JSON for people: a field a line, sorted, UTF-8 where names allow."""
    try:
        text = json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False)
        return f'{text}\n'.encode()
    except UnicodeEncodeError:
        # A file name need not be UTF-8; JSON can hold its bytes as escapes only.
        return f'{json.dumps(fields, indent=1, sort_keys=True)}\n'.encode()


def _rules_to_json(fields: dict[str, Any]) -> None:
    """Replaces `rules` by its two fields `normalizer` and `pre_tokenizer`; removes None."""
    rules = fields.pop('rules')
    if rules is not None:
        fields |= {name: rules[name] for name in _RULES}


def with_root(manifest: Manifest) -> Manifest:
    """Returns the manifest with its root, if it is of a dataset whose files all have a SHA-256."""
    if manifest.stage not in ROOT_STAGES or not all(file.sha256 for file in manifest.files):
        return manifest
    return dataclasses.replace(manifest, root=root_hash(manifest))


def root_hash(manifest: Manifest) -> str:
    """Returns the root of a dataset as 64 hexadecimal digits; `Manifest.root` is not looked at."""
    fields = covered(manifest.record()) | {'root': _ROOT_VERSION}
    text = json.dumps(fields, sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def covered(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the root covers of the JSON of a manifest, which may have any values."""
    return {
        name: _without(value, _UNCOVERED.get(name, frozenset()))
        for name, value in fields.items()
        if name not in _UNCOVERED['']
    }


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if name not in names}
    return value
