"""The manifest that ends a stage: its inputs, its options, its outputs.

`tokbeam.json` holds nothing that differs between two equal runs, so equal manifests mean equal
bytes. What does differ (paths, file times, timings) goes to `tokbeam.run.json`, which is only ever
used to avoid reading an unchanged input again.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.files import filesystem
from tokcore.corpus.stats import LineTally
from tokcore.encoding.scheme import Component, TokenRules
from tokcore.errors import InputError
from tokcore.schemes import DEFAULT_SCHEME, find_scheme

FORMAT = 1
MANIFEST_NAME = 'tokbeam.json'
RUN_NAME = 'tokbeam.run.json'

_FIELDS = ('normalizer', 'pre_tokenizer')


@dataclass(frozen=True)
class InputText:
    """One file of the corpus; size and CRC-32C are over its decompressed text."""

    split: str
    role: str  # one of its format's, or 'counts'
    name: str
    bytes: int
    crc32c: str
    unicode: str = ''  # of a count file: the version it records, or 'not recorded'
    rules: TokenRules | None = None  # of a count file: those it records
    stored_bytes: int | None = None  # of one that was fetched, whose name is its address
    sha256: str | None = None  # of the same bytes


@dataclass(frozen=True)
class OutputFile:
    """A file of the output folder; `rows` are examples of a shard or tokens of a count table."""

    name: str
    bytes: int
    crc32c: str
    rows: int

    @classmethod
    def of(cls, written: 'Written') -> 'OutputFile':
        """Returns the entry of a file that a worker wrote."""
        return cls(written.name, written.bytes, f'{written.crc32c:08x}', written.rows)


@dataclass(frozen=True)
class VocabularyRecord:
    """A vocabulary and how it was found.

    `min_count` is None for one that was given, or that no search has found; `special_ids` has an id
    or None for each role of `SpecialIds`.
    """

    side: str  # 'inputs', 'targets', or 'both'
    name: str
    size: int
    bytes: int
    crc32c: str
    unicode: str | None = None  # of the Python whose tables cut its tokens, None if not recorded
    min_count: int | None = None
    tried: tuple[tuple[int, int], ...] = ()  # (min_count, size)
    scheme: str | None = None  # None before there were others than subword
    rules: TokenRules | None = None  # by which its tokens are found, None if not recorded
    special_ids: dict[str, int | None] | None = None
    scheme_options: dict[str, object] | None = None  # None if the scheme has none
    beside: tuple[OutputFile, ...] = ()  # files that it needs beside its own, as that of its ids


@dataclass(frozen=True)
class SampleRecord:
    """What a vocabulary was counted from, where that is not all there is."""

    how: str  # as it was asked for: `t2t:100000000`, `uniform:0.1`
    side: str  # which is counted of the corpus
    lines: int  # of the side's files; of a uniform sample, those with text on every side
    taken: int  # of these
    fraction: float

    @classmethod
    def of(cls, how: str, side: str, lines: int, taken: int) -> 'SampleRecord':
        """Returns the record of so many taken of so many."""
        return cls(how, side, lines, taken, round(taken / lines, 6) if lines else 0.0)


@dataclass(frozen=True)
class Manifest:
    stage: str
    unicode: str
    options: dict[str, object]
    inputs: tuple[InputText, ...]
    lines: tuple[LineTally, ...] = ()
    tokens: int | None = None  # running tokens counted
    vocabularies: tuple[VocabularyRecord, ...] = ()
    vocabularies_used: tuple[VocabularyRecord, ...] = ()  # given, and so in another folder
    files: tuple[OutputFile, ...] = ()
    rejected: tuple[OutputFile, ...] = ()  # rows are lines
    rules: TokenRules | None = None  # by which tokens were found, None if not recorded
    format: int = FORMAT
    datasets: tuple[LineTally, ...] = ()  # the lines of each dataset that has a name
    sample: tuple[SampleRecord, ...] = ()  # what vocabularies were counted from, if not from all

    @property
    def outputs(self) -> tuple[OutputFile | VocabularyRecord, ...]:
        """All files that the stage gave a final name."""
        beside = tuple(file for each in self.vocabularies for file in each.beside)
        return self.vocabularies + beside + self.files + self.rejected

    def to_json(self) -> bytes:
        fields = dataclasses.asdict(self)
        fields['lines'] = [lines.record() for lines in self.lines]
        fields['datasets'] = [lines.record() for lines in self.datasets]
        for name in ('datasets', 'sample'):
            if not fields[name]:
                del fields[name]
        rules_to_json(fields)
        for each in fields['inputs']:
            rules_to_json(each)
            for name in ('stored_bytes', 'sha256'):
                if each[name] is None:
                    del each[name]
        for each in (*fields['vocabularies'], *fields['vocabularies_used']):
            rules_to_json(each)
            for name in ('scheme', 'special_ids', 'scheme_options'):
                if each[name] is None:
                    del each[name]
            if not each['beside']:
                del each['beside']
        return _json(fields)

    @classmethod
    def from_json(cls, data: bytes, path: str) -> 'Manifest':
        """Raises InputError if the bytes are no manifest of this format."""
        try:
            fields = json.loads(data)
            if not isinstance(fields, dict):
                raise TypeError('no JSON object')
            if fields['format'] != FORMAT:
                raise InputError(
                    f'{path} has manifest format {fields["format"]}, this version reads {FORMAT}; '
                    'use another output or --overwrite'
                )
            manifest = _checked(
                cls(
                    **{
                        **rules_from_json(fields),
                        **{name: _records(kind, fields[name]) for name, kind in _RECORDS.items()},
                        'datasets': _records(LineTally, fields.get('datasets', [])),
                        'sample': _records(SampleRecord, fields.get('sample', [])),
                    }
                )
            )
            for each in manifest.outputs:
                if not is_plain_name(each.name):
                    raise ValueError(f'{each.name!r} is no name below its folder')
            return manifest
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f'{path} is not a manifest of tokbeam ({_reason(error)}); use another output or '
                '--overwrite'
            ) from error


@dataclass(frozen=True)
class RunRecord:
    """What a run saw, wrote and took: `inputs` in the manifest's order.

    It is written before the first file gets its final name, so `files` also tells what a killed run
    may have left.
    """

    inputs: tuple[tuple[str, int, float], ...]  # (path, stored size, modified)
    files: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    runner: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        return _json(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, data: bytes) -> 'RunRecord | None':
        """Returns None for bytes that are no such record: it is only a short cut."""
        try:
            fields = json.loads(data)
            return cls(
                inputs=tuple((str(p), int(s), float(m)) for p, s, m in fields['inputs']),
                files=tuple(map(str, fields['files'])),
                seconds=dict(fields['seconds']),
                runner=tuple(fields['runner']),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def read_manifest(path: str) -> Manifest | None:
    """Returns the manifest at a path, or None if there is no file."""
    if not filesystem.exists(path):
        return None
    return Manifest.from_json(filesystem.read_bytes(path), path)


def read_run(path: str) -> RunRecord | None:
    if not filesystem.exists(path):
        return None
    return RunRecord.from_json(filesystem.read_bytes(path))


class Written(typing.Protocol):
    """A file as its writer tells of it."""

    name: str
    bytes: int
    crc32c: int
    rows: int


_RECORDS = {
    'inputs': InputText,
    'lines': LineTally,
    'files': OutputFile,
    'rejected': OutputFile,
    'vocabularies': VocabularyRecord,
    'vocabularies_used': VocabularyRecord,
}


def is_plain_name(name: str) -> bool:
    """Tells whether a name leads to a file below a folder, or below one of its folders."""
    parts = name.split('/')
    return len(parts) <= 2 and '\0' not in name and not {'', '.', '..'} & set(parts)


def _records(kind: type, fields: object) -> tuple:
    if not isinstance(fields, list):
        raise TypeError(f'{kind.__name__} records are no list')
    found = []
    for each in fields:
        if kind in (InputText, VocabularyRecord):
            each = rules_from_json(each)
        if kind is VocabularyRecord:
            tried = tuple((int(count), int(size)) for count, size in each['tried'])
            beside = _records(OutputFile, each.get('beside', []))
            each = {**each, 'tried': tried, 'beside': beside}
        made = LineTally.of_record(each) if kind is LineTally else kind(**each)
        found.append(_checked(made))
    return tuple(found)


def _checked(record: object) -> object:
    """Raises TypeError if a field is not of its type: what JSON says may be anything."""
    hints = typing.get_type_hints(type(record))
    for each in dataclasses.fields(record):
        hint = hints[each.name]
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        kinds = [
            typing.get_origin(kind) or kind
            for kind in (typing.get_args(hint) if is_union else [hint])
        ]
        if not isinstance(getattr(record, each.name), tuple(kinds)):
            raise TypeError(f'{each.name} is not of the type {hint}')
    return record


def _reason(error: Exception) -> str:
    text = ' '.join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + '...'


def _json(fields: dict) -> bytes:
    try:
        text = json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False)
        return f'{text}\n'.encode()
    except UnicodeEncodeError:
        # A file's name need not be UTF-8; JSON can hold its bytes only as escapes.
        return f'{json.dumps(fields, indent=1, sort_keys=True)}\n'.encode()


def earlier_rules() -> TokenRules:
    """Returns the rules of what this tool made before it recorded any."""
    return find_scheme(DEFAULT_SCHEME).rules


def rules_to_json(fields: dict[str, object]) -> None:
    """Replaces `rules` by `normalizer` and `pre_tokenizer` for JSON; by nothing if it is None."""
    rules = fields.pop('rules')
    if rules is not None:
        fields |= {name: rules[name] for name in _FIELDS}


def rules_from_json(fields: Mapping[str, object]) -> dict[str, object]:
    """Returns fields of JSON with `rules` again in place of the two; None where there are none.

    Raises:
        TypeError, KeyError: they are no such records.
    """
    fields = dict(fields)
    found = [fields.pop(name, None) for name in _FIELDS]
    rules = None if found == [None, None] else TokenRules(*map(Component.from_record, found))
    return {**fields, 'rules': rules}
