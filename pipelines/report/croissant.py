"""The passport of a dataset: its card as Croissant 1.1, which programs read.

Like the card it says what the manifest knows, and when the files of the text were last changed, which only
the record of the run knows. What nobody but the owner knows is a sentence that begins with `REPLACE`.
"""

from __future__ import annotations

import datetime
import glob
import itertools
import json
import os
from collections.abc import Iterator

from pipelines.artifacts.manifest import RUN_NAME, read_dataset_manifest, read_run, shown_key
from pipelines.artifacts.vocabularies import file_entry
from pipelines.files import filesystem
from pipelines.shard_formats.formats import stored_format
from tokcore.reading.manifest import recorded_features
from tokcore.records.manifest import MANIFEST_NAME, Manifest

_TERMS = (
    'annotation arrayShape citeAs column containedIn equivalentProperty excludes extract field fileProperty '
    'fileObject fileSet format includes isArray isLiveDataset jsonPath key md5 parentField path readLines '
    'recordSet references regex repeated replace samplingRate sdVersion separator source subField transform '
    'unArchive value'
)

_CONTEXT = {
    '@language': 'en',
    '@vocab': 'https://schema.org/',
    'sc': 'https://schema.org/',
    'dct': 'http://purl.org/dc/terms/',
    'prov': 'http://www.w3.org/ns/prov#',
    'cr': 'http://mlcommons.org/croissant/',
    'rai': 'http://mlcommons.org/croissant/RAI/',
    **{name: {'@container': '@language'} for name in ('description', 'name')},
    **{name: {'@id': f'cr:{name}', '@type': '@json'} for name in ('data', 'examples')},
    **{term: f'cr:{term}' for term in _TERMS.split()},
    'dataType': {'@id': 'cr:dataType', '@type': '@vocab'},
    'conformsTo': 'dct:conformsTo',
}
"""The names of Croissant 1.1, those that mlcroissant adds, and of W3C's ontology of provenance."""

_OF_THE_OWNER = {
    'url': 'REPLACE: the address at which the dataset is published',
    'license': 'REPLACE: the address of its licence, which the licences of the text must allow',
    'creator': {'@type': 'sc:Organization', 'name': 'REPLACE: who made the dataset'},
    'rai:dataCollection': 'REPLACE: who collected the text, where, how and when',
    'rai:dataLimitations': 'REPLACE: what the text does not cover, and what it must not be used for',
    'rai:dataBiases': 'REPLACE: what the text has too much or too little of',
    'rai:personalSensitiveInformation': 'REPLACE: which personal data the text has, and what was removed',
    'rai:dataUseCases': 'REPLACE: what the dataset is meant for',
    'rai:dataSocialImpact': 'REPLACE: what good and what harm its use may do',
    'rai:hasSyntheticData': 'REPLACE with true or false: whether a program wrote any of the text',
}

_ROOT = 'SHA-256 of the data and what made it, for `tokbeam verify`; its page on trust computes it in Python.'

_PARQUET, _BYTES = 'application/x-parquet', 'application/octet-stream'

_ENCODINGS = {'.parquet': _PARQUET, '.json': 'application/json', '.gz': 'application/gzip'}

_LAST_SECOND = 253402300800
"""After it the year 10000 begins, which no date has."""


def croissant(folder: str) -> str:
    """Returns the passport of the folder of a dataset, as JSON-LD.

    Raises:
        InputError: the folder does not have a dataset.
    """
    manifest = read_dataset_manifest(folder)
    rows = sum(tally.examples for tally in manifest.lines)
    text_bytes = sum(tally.text_bytes for tally in manifest.lines)
    options = {shown_key(name): value for name, value in sorted(manifest.options.items())}
    sets = [*_sets(manifest)]
    passport = {
        '@context': _CONTEXT,
        '@type': 'sc:Dataset',
        'name': str(manifest.options['name']),
        'description': f'Token ids of {rows:,} rows of text, of {text_bytes:,} bytes.',
        'conformsTo': [f'http://mlcommons.org/croissant/{name}' for name in ('1.1', 'RAI/1.0')],
        'keywords': ['text', 'tokens', 'tokbeam'],
        'identifier': {
            '@type': 'sc:PropertyValue',
            'propertyID': 'root of tokbeam',
            'value': manifest.root,
            'description': _ROOT,
        },
        **_OF_THE_OWNER,
        'rai:dataPreprocessingProtocol': [
            f'What became of the lines: {json.dumps(tally.record())}'
            for tally in manifest.datasets or manifest.lines
        ],
        'prov:wasGeneratedBy': {
            '@type': 'prov:Activity',
            'prov:label': f'tokbeam {manifest.stage}',
            'description': f'Unicode {manifest.unicode}, with the options {json.dumps(options)}',
        },
        'prov:wasDerivedFrom': list(_sources(folder, manifest)),
        'distribution': [*_files(folder, manifest), *(files for files, _ in sets)],
        'recordSet': [records for _, records in sets],
    }
    return json.dumps(passport, indent=1)


def _sources(folder: str, manifest: Manifest) -> Iterator[dict[str, object]]:
    """Yields what is known of each file of the text, as the AI Act's template asks."""
    run = read_run(os.path.join(folder, RUN_NAME))
    seen = run.inputs if run and len(run.inputs) == len(manifest.inputs) else None
    for text, (_, _, modified) in zip(manifest.inputs, seen or itertools.repeat(('', 0, 0.0))):
        source: dict[str, object] = {
            '@type': 'prov:Entity',
            'prov:label': text.name,
            'description': f'text, {text.role} of {text.split}, CRC-32C {text.crc32c}',
            'contentSize': f'{text.bytes} B',
        }
        if text.origin or '://' in text.name:
            source['url'] = text.origin or text.name
        if 0 < modified < _LAST_SECOND:
            date = datetime.datetime.fromtimestamp(int(modified), datetime.timezone.utc)
            source['dateModified'] = date.isoformat()
        yield source


def _files(folder: str, manifest: Manifest) -> Iterator[dict[str, object]]:
    own = file_entry(MANIFEST_NAME, filesystem.read_bytes(os.path.join(folder, MANIFEST_NAME)))
    stored = [file for file in manifest.outputs if file.sha256 and getattr(file, 'is_stored', True)]
    for number, file in enumerate([own, *stored]):
        licence = getattr(file, 'licence', None)  # of a vocabulary
        yield {
            '@type': 'cr:FileObject',
            '@id': f'file-{number}',  # names may have blanks, ids may not
            'name': file.name,
            **({'description': f'licence: {licence}'} if licence else {}),
            'contentUrl': file.name,
            'contentSize': f'{file.bytes} B',
            'encodingFormat': _ENCODINGS.get(os.path.splitext(file.name)[1], _BYTES),
            'sha256': file.sha256,
        }


def _sets(manifest: Manifest) -> Iterator[tuple[dict, dict]]:
    """Yields a set of files and a record set for each split, if Croissant can read the format."""
    ending, name = stored_format(manifest).hub_ending, glob.escape(str(manifest.options['name']))
    features = recorded_features({text.role for text in manifest.inputs}, manifest.options)
    if ending is None:
        return
    for split in (tally.split for tally in manifest.lines):
        fileset = {'@id': f'files-{split}'}
        includes = {'encodingFormat': _ENCODINGS[ending], 'includes': f'{name}-{split}-*{ending}'}
        fields = [
            {
                '@type': 'cr:Field',
                '@id': f'{split}/{feature}',
                'dataType': 'cr:Int32',
                'isArray': True,
                'arrayShape': '-1',
                'source': {'fileSet': fileset, 'extract': {'column': feature}},
            }
            for feature in features
        ]
        files = {'@type': 'cr:FileSet', **fileset, **includes}
        yield files, {'@type': 'cr:RecordSet', '@id': split, 'field': fields}
