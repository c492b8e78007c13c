"""The root of a dataset: what changes it, what does not, and that another program finds the same."""

import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.stats import LineTally
from tokcore.encoding.scheme import Component, TokenRules
from tokcore.records.manifest import InputText, Manifest, OutputFile, SampleRecord, VocabularyRecord
from tokcore.records.root import merkle_root, root_hash, with_root

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


def plain_tree(leaves):
    """RFC 6962's hash by levels: pairs are joined, and a last one without a partner goes up."""
    level = [hashlib.sha256(b'\0' + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        joined = [
            hashlib.sha256(b'\1' + level[at] + level[at + 1]).digest()
            for at in range(0, len(level) - 1, 2)
        ]
        level = joined + level[len(level) - len(level) % 2 :]
    return level[0] if level else hashlib.sha256(b'').digest()


@given(st.lists(st.binary(max_size=4), max_size=40))
def test_the_tree_is_that_of_rfc_6962(leaves):
    assert merkle_root(leaves) == plain_tree(leaves)


def root_of_json(fields):
    """The root as `docs/formats.md` defines it, from the file alone."""
    leaves = [['tokbeam', 1], ['unicode', fields['unicode']]]
    leaves += [['rule', part, fields[part]] for part in ('normalizer', 'pre_tokenizer')]
    leaves += [
        ['option', name, fields['options'][name]]
        for name in sorted(fields['options'])
        if name != 'vocabularies'
    ]
    leaves += [
        ['input', *(each[key] for key in ('split', 'role', 'bytes', 'crc32c'))]
        for each in fields['inputs']
    ]
    for each in fields['vocabularies']:
        leaves.append(
            ['vocabulary', *(each.get(k) for k in ('side', 'scheme', 'bytes', 'crc32c', 'sha256'))]
        )
        leaves += [
            ['beside', each['side'], *(file.get(k) for k in ('bytes', 'crc32c', 'sha256'))]
            for file in each.get('beside', [])
        ]
    leaves += [['lines', each] for each in fields['lines'] + fields.get('datasets', [])]
    leaves += [
        ['shard', *(each[key] for key in ('name', 'rows', 'bytes', 'crc32c', 'sha256'))]
        for each in fields['files']
    ]
    texts = [json.dumps(leaf, sort_keys=True, separators=(',', ':')) for leaf in leaves]
    return plain_tree([text.encode() for text in texts]).hex()


def test_another_program_finds_the_same_from_the_manifest_alone():
    manifest = with_root(MANIFEST)
    fields = json.loads(manifest.to_json())
    assert root_of_json(fields) == fields['root'] == root_hash(MANIFEST)
    assert root_hash(Manifest.from_json(manifest.to_json(), 'm')) == fields['root']


WITHOUT_EFFECT = {
    'name of an input': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], name='b.txt.gz'),)},
    'name of a vocabulary': {'vocabularies': (dataclasses.replace(VOCABULARY, name='w'),)},
    'way to a vocabulary': {'vocabularies': (dataclasses.replace(VOCABULARY, tried=()),)},
    'licence of a vocabulary': {'vocabularies': (dataclasses.replace(VOCABULARY, licence='mit'),)},
    'names of vocabularies': {'options': {**MANIFEST.options, 'vocabularies': [['both', 'v']]}},
    'rejected lines': {'rejected': (OutputFile('rejected/train.x.jsonl', 3, '00000000', 1),)},
    'sample': {'sample': (SampleRecord.of('uniform:0.1', 'text', 10, 1),)},
}
WITH_EFFECT = {
    'seed': {'options': {**MANIFEST.options, 'seed': 1}},
    'another option': {'options': {**MANIFEST.options, 'template': 'eos'}},
    'line': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], crc32c='abcdef02'),)},
    'split': {'inputs': (dataclasses.replace(MANIFEST.inputs[0], split='dev'),)},
    'one more input': {'inputs': MANIFEST.inputs * 2},
    'vocabulary': {'vocabularies': (dataclasses.replace(VOCABULARY, sha256='b' * 64),)},
    'ids of a vocabulary': {'vocabularies': (dataclasses.replace(VOCABULARY, beside=()),)},
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
    with pytest.raises(ValueError, match='x-train-00000-of-00003'):
        root_hash(manifest)
    assert with_root(dataclasses.replace(MANIFEST, stage='count')).root is None
