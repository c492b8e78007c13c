"""The card of a dataset: a `README.md` with the YAML header that dataset hubs read.

All of it follows from the manifest and those of the counts; its owner adds the licence to the header.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence

from pipelines.artifacts.manifest import read_dataset_manifest, read_manifest, shown_key
from pipelines.options.job import STREAM_FORMATS
from pipelines.shard_formats.formats import stored_format
from pipelines.shard_formats.shard_format import what_ends
from tokcore.corpus.stats import LineTally
from tokcore.format_numbers import MANIFESTS
from tokcore.records.manifest import MANIFEST_NAME, Manifest, VocabularyRecord, file_of_shard

_SIZES = (
    (1_000, 'n<1K'), (10_000, '1K<n<10K'), (100_000, '10K<n<100K'), (1_000_000, '100K<n<1M'),
    (10_000_000, '1M<n<10M'), (100_000_000, '10M<n<100M'), (1_000_000_000, '100M<n<1B'),
    (10_000_000_000, '1B<n<10B'), (100_000_000_000, '10B<n<100B'), (1 << 63, 'n>100B'),
)  # fmt: skip
"""The size categories of the Hugging Face Hub."""

_SPLIT_NAMES = {'dev': 'validation'}
"""Splits that hubs call otherwise."""


def dataset_card(folder: str) -> str:
    """Returns the card of the folder of a dataset; raises InputError if there is none in it."""
    manifest = read_dataset_manifest(folder)
    name = str(manifest.options['name'])
    body = _body(folder, name, manifest)
    return '\n'.join([*_header(name, manifest), *body, ''])


def _header(name: str, manifest: Manifest) -> Iterator[str]:
    """The YAML; strings are JSON's, which YAML also is."""
    rows = sum(tally.examples for tally in manifest.lines)
    yield '---'
    yield f'pretty_name: {json.dumps(name)}'
    yield 'size_categories:'
    yield f'- {json.dumps(next(size for bound, size in _SIZES if rows < bound))}'
    yield 'tags:'
    yield from ('- tokbeam', '- tokenized')
    ending = stored_format(manifest).hub_ending
    if ending is not None:
        yield from ('configs:', '- config_name: default', '  data_files:')
        for tally in manifest.lines:
            yield f'  - split: {_SPLIT_NAMES.get(tally.split, tally.split)}'
            yield f'    path: {json.dumps(f"{name}-{tally.split}-*{ending}")}'
    yield '---'


def _body(folder: str, name: str, manifest: Manifest) -> Iterator[str]:
    options = manifest.options
    yield from ('', f'# {_plain(name)}', '')
    if manifest.root is not None:
        yield from (f'Root: `{manifest.root}`. Whoever has this root has the same data;', '')
        yield from ('```bash', 'tokbeam verify .', '```', '', 'computes it again.', '')
    yield from ('## Rows', '')
    yield from _table(
        (
            'split', 'lines read', 'examples', 'bytes of text', 'ids of text', 'empty', 'left out',
            'shards', 'bytes',
        ),
        [_split_row(tally, manifest) for tally in manifest.lines],
    )  # fmt: skip
    is_joined = options.get('output_format') in STREAM_FORMATS
    if is_joined or manifest.end_of_document:
        where = '' if is_joined else ' where rows are joined'
        yield from ('', f'Documents are {_plain(what_ends(manifest))}{where}.')
    yield from ('', '## Text', '')
    yield from _table(
        ('split', 'role', 'file', 'bytes', 'CRC-32C'),
        [(i.split, i.role, i.name, f'{i.bytes:,}', i.crc32c) for i in manifest.inputs],
    )
    records = manifest.vocabularies
    if records:
        yield from ('', '## Vocabulary', '')
        yield from _table(
            ('side', 'file', 'scheme', 'entries', 'tokens counted', 'SHA-256'),
            [
                (
                    r.side,
                    r.name,
                    r.scheme,
                    f'{r.size:,}',
                    _tokens(folder, r, manifest),
                    r.sha256 or '',
                )
                for r in records
            ],
        )
        yield ''
        yield from (_licence(r, manifest) for r in records)
    yield from ('', '## How it was made', '')
    yield from _table(
        ('option', 'value'),
        [
            ('command', f'tokbeam {manifest.stage}'),
            ('version of the format', str(MANIFESTS[manifest.stage])),
            ('version of Unicode', manifest.unicode),
            *((shown_key(key), json.dumps(value)) for key, value in sorted(options.items())),
        ],
    )
    yield from ('', '## How it is read', '', '```python')
    yield from stored_format(manifest).reading_code(manifest)
    yield '```'


def _tokens(folder: str, record: VocabularyRecord, manifest: Manifest) -> str:
    """The running tokens that a vocabulary was learned from, where their counts are in the folder."""
    name = f'counts.{record.side}' if len(manifest.vocabularies) > 1 else 'counts'
    counts = read_manifest(os.path.join(folder, name, MANIFEST_NAME))
    return _known(None if counts is None else counts.tokens)


def _licence(record: VocabularyRecord, manifest: Manifest) -> str:
    """What is known of the licence of a vocabulary, and where from."""
    name = _plain(record.name)
    if manifest.stage == 'build':
        return f'{name} was learned from this text, and has its licence.'
    if record.licence is not None:
        return f'The licence of {name} is {_plain(record.licence)}, as its README.md stated.'
    return f'The licence of {name} is not stated in a README.md next to it.'


def _known(number: int | None) -> str:
    return '–' if number is None else f'{number:,}'


def _split_row(tally: LineTally, manifest: Manifest) -> tuple[str, ...]:
    files, shards = [], set()
    for file in manifest.files:
        shard = file_of_shard(file.name)
        if shard and shard.split == tally.split:
            files.append(file)
            shards.add(shard.shard)  # which may have several files
    elsewhere = tally.lines + tally.added - tally.examples - tally.empty
    return (
        tally.split,
        f'{tally.lines:,}',
        f'{tally.examples:,}',
        f'{tally.text_bytes:,}',
        _known(tally.ids),
        f'{tally.empty:,}',
        f'{elsewhere:,}',
        f'{len(shards):,}',
        f'{sum(file.bytes for file in files):,}',
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f'| {" | ".join(head)} |'
    yield f'|{" --- |" * len(head)}'
    for row in rows:
        yield f'| {" | ".join(_plain(text) for text in row)} |'


def _plain(text: str) -> str:
    """Text on a line or in a cell of a table, of which no character is markup."""
    return re.sub(r'([\\`*_{}\[\]<>|])', r'\\\1', ' '.join(text.split()))
