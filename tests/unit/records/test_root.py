"""The root of a dataset: what changes it, what does not, and that another program finds the same."""

import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.stats import LineTally
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.scheme import Component, TokenRules
from tokcore.records.manifest import (
    InputText,
    Manifest,
    OutputFile,
    SampleRecord,
    VocabularyRecord,
    covered,
    root_hash,
    with_root,
)

SHARDS = tuple(
    OutputFile(
        f'x-train-0000{n}-of-00003', 900, '12345678', 9, hashlib.sha256(b'%d' % n).hexdigest()
    )
    for n in range(3)
)
VOCABULARY = VocabularyRecord(
    side='both', name='v', size=300, bytes=3000, crc32c='11111111', scheme='subword',
    special_ids={'pad': 0, 'end': 1}, tried=((3, 300),), min_count=3, sha256='a' * 64,
    beside=(OutputFile('v.ids', 5, '22222222', 1),),
)  # fmt: skip
MANIFEST = Manifest(
    stage='build',
    unicode='15.0.0',
    options={'seed': 0, 'name': 'x', 'columns': (0, 1), 'scheme': 'subword'},
    inputs=(InputText('train', 'text', 'a.txt', 100, 'abcdef01'),),
    rules=TokenRules(Component('t2t-lines', {}), Component('t2t', {})),
    lines=(LineTally('train', 30, 27, 3),),
    vocabularies=(VOCABULARY,),
    files=SHARDS,
)


UNCOVERED = {
    'inputs': ['name', 'stored_bytes', 'sha256'],
    'vocabularies': ['min_count', 'tried', 'licence'],
}


def root_of_json(fields):
    """The root as `docs/formats.md` defines it, from the file alone."""
    fields = json.loads(json.dumps(fields))
    for name in ('format', 'index', 'rejected', 'sample'):
        fields.pop(name, None)
    fields['root'] = 2
    fields['options'].pop('vocabularies', None)
    for name, without in UNCOVERED.items():
        for record in fields[name]:
            for key in without:
                record.pop(key, None)
    text = json.dumps(fields, sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def test_another_program_finds_the_same_from_the_manifest_alone():
    manifest = with_root(MANIFEST)
    fields = json.loads(manifest.to_json())
    assert root_of_json(fields) == fields['root'] == root_hash(MANIFEST)
    assert root_hash(Manifest.from_json(manifest.to_json(), 'm')) == fields['root']


def of_vocabulary(**changed):
    return {'vocabularies': (dataclasses.replace(VOCABULARY, **changed),)}


WITHOUT_EFFECT = {
    'name of an input': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], name='b.txt.gz'),)},
    'how an input was fetched': {
        'inputs': (dataclasses.replace(MANIFEST.inputs[0], stored_bytes=9, sha256='a' * 64),)
    },
    'indexes': {'index': (OutputFile('index/x', 3, '00000000', 1),)},
    'way to a vocabulary': of_vocabulary(tried=(), min_count=9),
    'licence of a vocabulary': of_vocabulary(licence='mit'),
    'names of vocabularies': {'options': {**MANIFEST.options, 'vocabularies': [['both', 'v']]}},
    'rejected lines': {'rejected': (OutputFile('rejected/train.x.jsonl', 3, '00000000', 1),)},
    'sample': {'sample': (SampleRecord.of('uniform:0.1', 'text', 10, 1),)},
}
WITH_EFFECT = {
    'seed': {'options': {**MANIFEST.options, 'seed': 1}},
    'another option': {'options': {**MANIFEST.options, 'template': 'eos'}},
    'line': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], crc32c='abcdef02'),)},
    'origin of an input': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], origin='hf://a'),)},
    'origin of a vocabulary': of_vocabulary(origin='hf://a'),
    'split': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], split='dev'),)},
    'one more input': {'inputs': MANIFEST.inputs * 2},
    'stage': {'stage': 'encode'},
    'vocabulary': of_vocabulary(sha256='b' * 64),
    'ids of a vocabulary': of_vocabulary(beside=()),
    'name of a vocabulary': of_vocabulary(name='w'),
    'size of a vocabulary': of_vocabulary(size=301),
    'id of padding': of_vocabulary(special_ids={'pad': 5, 'end': 1}),
    'no id of padding': of_vocabulary(special_ids={'end': 1}),
    'options of tokens': of_vocabulary(scheme_options={'lower_case': True}),
    'side of a vocabulary': of_vocabulary(side='targets'),
    'name of a file beside': of_vocabulary(
        beside=(dataclasses.replace(VOCABULARY.beside[0], name='w'),)
    ),
    'end': {'end_of_document': (EndOfDocument('targets', 1, '<EOS>', True),)},
    'a dataset of the lines': {'lines': (), 'datasets': MANIFEST.lines},
    'type of ids': {'files': (dataclasses.replace(SHARDS[0], dtype='uint16'), *SHARDS[1:])},
    'rows left out': {'files': (dataclasses.replace(SHARDS[0], dropped=(3,)), *SHARDS[1:])},
    'unicode': {'unicode': '15.1.0'},
    'rules': {'rules': TokenRules(Component('lines', {}), Component('t2t', {}))},
    'lines': {'lines': (LineTally('train', 31, 27, 4),)},
    'bytes of text': {'lines': (dataclasses.replace(MANIFEST.lines[0], text_bytes=1),)},
    'order of shards': {'files': SHARDS[::-1]},
    'one shard less': {'files': SHARDS[:2]},
}  # fmt: skip


@pytest.mark.parametrize('what', WITHOUT_EFFECT)
def test_what_changes_no_row_has_no_effect(what):
    assert root_hash(dataclasses.replace(MANIFEST, **WITHOUT_EFFECT[what])) == root_hash(MANIFEST)


@pytest.mark.parametrize('what', WITH_EFFECT)
def test_what_rows_depend_on_has_an_effect(what):
    assert root_hash(dataclasses.replace(MANIFEST, **WITH_EFFECT[what])) != root_hash(MANIFEST)


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers())


@given(st.dictionaries(st.text(max_size=5), _VALUES, max_size=4), st.text(max_size=5), _VALUES)
def test_every_option_counts_whatever_its_value(options, name, value):
    def root(of):
        return root_hash(dataclasses.replace(MANIFEST, options=of))

    changed = {**options, name: value}
    kept = {key: each for key, each in options.items() if key != 'vocabularies'}
    kept_changed = {key: each for key, each in changed.items() if key != 'vocabularies'}
    same = json.dumps(kept, sort_keys=True) == json.dumps(kept_changed, sort_keys=True)
    assert (root(options) == root(changed)) == same
    assert root(dict(reversed(options.items()))) == root(options)


@given(st.integers(0, 2), st.sampled_from(['bytes', 'rows']), st.integers(1, 1000))
def test_every_shard_counts(number, field, more):
    shards = list(SHARDS)
    shards[number] = dataclasses.replace(
        shards[number], **{field: getattr(shards[number], field) + more}
    )
    changed = dataclasses.replace(MANIFEST, files=tuple(shards))
    assert root_hash(changed) != root_hash(MANIFEST)


def test_without_checksums_there_is_no_root():
    shards = (dataclasses.replace(SHARDS[0], sha256=None), *SHARDS[1:])
    manifest = dataclasses.replace(MANIFEST, files=shards)
    assert with_root(manifest).root is None
    assert with_root(dataclasses.replace(MANIFEST, stage='count')).root is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(['name', 'tried', 'root', 'x']), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(['root', 'inputs', 'vocabularies', 'x']), JSON))
def test_what_is_covered_of_any_json_is_in_it(fields):
    part = covered(fields)
    assert part == {name: part[name] for name in fields if name != 'root'}
    assert part.get('x') == fields.get('x')
    assert covered(part) == part
