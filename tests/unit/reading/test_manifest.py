"""A manifest of any content is refused in a sentence before anything grows with its numbers, or is right."""

import dataclasses
import json
import os
import socket
import types
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import (
    change_manifest,
    framed,
    input_entry,
    opened,
    write_dataset,
    write_files,
)

from tokcore import open_dataset
from tokcore.encoding.hub_folders import DatasetVocabulary
from tokcore.errors import InputError
from tokcore.format_numbers import DATASET
from tokcore.reading.manifest import DatasetManifest, _Content, _Options
from tokcore.records.manifest import covered

ROWS = [{'targets': [5 + number, 1]} for number in range(6)]
SHARDS = [ROWS[:4], ROWS[4:]]


def ids_of(dataset, **arguments):
    return [row['targets'].tolist() for row in dataset.examples('train', **arguments)]


def altered(folder, alter, output_format='tfrecord'):
    """A dataset of two shards whose manifest `alter` has changed in place."""
    return change_manifest(write_dataset(folder, SHARDS, output_format=output_format), alter)


def setting(*path_and_value):
    *path, value = path_and_value

    def alter(fields):
        for each in path[:-1]:
            fields = fields[each]
        fields[path[-1]] = value

    return alter


VOCABULARY = {
    'side': 'targets', 'name': 'v', 'size': 258, 'bytes': 3, 'crc32c': '00000000',
    'scheme': 'byte', 'special_ids': {'pad': 0, 'end': 1},
}  # fmt: skip


def with_vocabulary(**changes):
    return setting('vocabularies', [{**VOCABULARY, **changes}])


@pytest.mark.parametrize(
    'data',
    [b'', b'{', b'[' * 100_000, b'{"stage":' * 100_000, b'null', b'[]', b'3', b'"build"', b'\xff\xfe',
     b'{"stage": "build"}', b'{"stage": 5}', b'{"stage": "encode", "options": [], "files": []}',
     b'{"stage": "encode", "rows": ' + b'1' * 5000 + b'}'],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_other_files_than_manifests_are_refused(tmp_path, data):
    (tmp_path / 'tokbeam.json').write_bytes(data)
    with pytest.raises(InputError, match='is not a manifest of a dataset'):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    'alter',
    [
        *[setting('files', 0, 'rows', wrong) for wrong in
          ('4', 1.5, None, True, [], -1, 0, 10**12, 10**19, 10**30)],
        *[setting('files', 0, 'bytes', wrong) for wrong in ('4', 1.5, None, -1, 10**30)],
        *[setting('files', 0, 'crc32c', wrong) for wrong in (5, None, '', 'ABCDEF00', '123')],
        *[setting('files', 0, 'name', wrong) for wrong in
          (None, 5, '', '.', '..', 'a\0b', '/etc/passwd', '../d-train-00000-of-00002',
           'sub/d-train-00000-of-00002', '\ud800-train-00000-of-00002')],
        *[setting('files', wrong) for wrong in (None, {}, 'files', [None], [[]], [{}])],
        *[setting('options', wrong) for wrong in (None, [], 5)],
        *[setting('options', 'scheme', wrong) for wrong in (None, 5, 'none', ['byte'])],
        *[setting('options', 'template', wrong) for wrong in (['$A'], 5, '', '$A $A', 'x' * 10**6)],
        *[setting('options', 'datasets', wrong) for wrong in (5, 'x', [5], [[]], [{'format': 'none'}],
                                                              [{'format': []}])],
        *[setting('options', 'output_format', wrong) for wrong in (None, 5, 'arrow')],
        *[setting('inputs', wrong) for wrong in
          (None, [], {}, [5], [{}], [input_entry('none')], [input_entry(None)], [input_entry([])])],
        *[setting('format', wrong) for wrong in (0, 1, DATASET + 1, True, 10**5000 // 3**9000, '1', None)],
        *[setting('vocabularies', wrong) for wrong in (None, 'x', {}, [5], [{}], [[]])],
        with_vocabulary(size=0), with_vocabulary(size=10**12), with_vocabulary(size='258'),
        with_vocabulary(side='neither'), with_vocabulary(name='/dev/zero'), with_vocabulary(name='../v'),
        with_vocabulary(name='a\0'), with_vocabulary(special_ids={'pad': 10**12}),
        with_vocabulary(special_ids={'pad': 258}), with_vocabulary(special_ids={'pad': -1}),
        with_vocabulary(special_ids={'pad': 'x'}), with_vocabulary(special_ids=[0, 1]),
        with_vocabulary(scheme_options=[]), with_vocabulary(scheme_options='x'),
        setting('vocabularies', [VOCABULARY, VOCABULARY]),
        setting('vocabularies', [VOCABULARY, {**VOCABULARY, 'side': 'both'}]),
        lambda fields: fields['files'].append(fields['files'][0]),
        lambda fields: fields['files'].pop(),
        lambda fields: fields['files'].reverse(),
        lambda fields: fields.pop('inputs'),
        lambda fields: fields['files'][0].pop('rows'),
    ],
)  # fmt: skip
def test_impossible_values_are_refused_on_opening(tmp_path, alter):
    with pytest.raises(InputError, match=str(tmp_path)):
        open_dataset(altered(tmp_path / 'd', alter))


@pytest.mark.parametrize('scheme_options', [{'split': 5}, {'split': ['space']}, {'split': 'none'}])
def test_options_of_a_scheme_are_those_it_takes(tmp_path, scheme_options):
    folder = altered(tmp_path / 'd', setting('options', 'scheme', 'word'))
    change_manifest(folder, with_vocabulary(scheme_options=scheme_options))
    with pytest.raises(InputError, match=r'options\.split is'):
        open_dataset(folder)


@pytest.mark.parametrize('record', [{'columns': 5}, {'columns': ['a', None]}, {'columns': []},
                                    {'columns': [0, 1, 2]}, {'columns': [-1]}, {'label': 5},
                                    {'quoting': 'some'}, {'keep_tabs': 'x'}], ids=str)  # fmt: skip
def test_options_of_a_format_are_those_it_takes(tmp_path, record):
    folder = altered(tmp_path / 'd', setting('inputs', [input_entry('tsv')]))
    change_manifest(folder, lambda fields: fields['options'].update(record))
    with pytest.raises(InputError, match=r'tokbeam\.json is not a manifest'):
        open_dataset(folder)


@pytest.mark.parametrize('rows', [0, 1, 5, 7, 2**20, 10**12])
@pytest.mark.parametrize('on_error', ['stop', 'skip'])
def test_other_rows_than_there_are_in_parquet(tmp_path, rows, on_error):
    """`batches` of 10**12 rows listed windows until no memory was left."""
    alter = setting('files', 0, 'rows', rows)
    dataset = open_dataset(altered(tmp_path / 'd', alter, 'parquet'))
    for read in (lambda: ids_of(dataset, on_error=on_error),
                 lambda: [*dataset.batches('train', tokens_per_batch=9, on_error=on_error)]):  # fmt: skip
        with pytest.raises(InputError, match=f'has 4 rows, and the manifest states {rows}'):
            read()


@pytest.mark.parametrize('epochs', [None, 10**15])
@pytest.mark.parametrize(
    'arguments',
    [{'max_length': 1}, {'drop_remainder': True, 'num_readers': 9}, {'drop_remainder': True}],
    ids=str,
)
def test_epochs_without_a_batch_come_to_an_end(tmp_path, epochs, arguments):
    dataset = opened(tmp_path / 'd', SHARDS)
    with pytest.raises(InputError, match='no batch came of 100 epochs of train'):
        next(dataset.batches('train', tokens_per_batch=500, epochs=epochs, **arguments))
    assert [*dataset.batches('train', tokens_per_batch=500, epochs=2, **arguments)] == []


def test_absurd_options_take_no_memory(tmp_path):
    dataset = opened(tmp_path / 'd', SHARDS)
    batches = dataset.batches('train', tokens_per_batch=2**31 - 1, max_length=2**62)
    assert sum(len(batch['targets']) for batch in batches) == 6


def make(kind, path):
    path.unlink(missing_ok=True)
    if kind == 'fifo':
        os.mkfifo(path)
    elif kind == 'folder':
        path.mkdir()
    elif kind == 'socket':
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is short
        try:
            socket.socket(socket.AF_UNIX).bind(path.name)
        finally:
            os.chdir(here)
    else:
        path.symlink_to(kind)


SPECIAL = ['fifo', 'socket', 'folder', '/dev/zero', '/dev/null', 'loop']


@pytest.mark.parametrize('kind', SPECIAL)
@pytest.mark.parametrize(
    ('place', 'said'),
    [
        ('tokbeam.json', r'tokbeam\.json'),
        ('d-train-00001-of-00002', 'is missing, or is not a file of'),
        ('d-train-00001-of-00002.parquet', 'is missing, or is not a file of'),
        ('words', 'words'),
    ],
)
def test_files_are_regular(tmp_path, kind, place, said):
    output_format = 'parquet' if 'parquet' in place else 'tfrecord'
    folder = write_dataset(tmp_path, [ROWS, []], output_format=output_format)
    if place == 'words':
        change_manifest(folder, setting('options', 'scheme', 'word'))
        change_manifest(folder, with_vocabulary(name='words', bytes=0, crc32c='00000000'))
    make(place if kind == 'loop' else kind, folder / place)
    with pytest.raises(InputError, match=said):
        open_dataset(folder).vocabulary()


def test_a_manifest_has_a_size_that_is_read(tmp_path):
    write_dataset(tmp_path, SHARDS)
    with open(tmp_path / 'tokbeam.json', 'r+b') as file:
        file.truncate(1 << 40)  # no byte of which is stored
    with pytest.raises(InputError, match='too many for what it should be'):
        open_dataset(tmp_path)


def test_names_are_escaped_in_errors(tmp_path):
    name = '\x1b]0;pwned\a-train-00000-of-00001'
    write_files(tmp_path, [(name, 6, framed(ROWS)[0])])
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=r'/\\x1b\]0;pwned\\x07-train') as caught:
        open_dataset(tmp_path)
    assert str(caught.value).isprintable()


def test_a_link_to_a_shard_is_read(tmp_path):
    folder = write_dataset(tmp_path / 'd', SHARDS)
    shard = min(folder.glob('d-train-*'))
    shard.rename(tmp_path / 'elsewhere')
    shard.symlink_to(tmp_path / 'elsewhere')
    assert ids_of(open_dataset(folder)) == [row['targets'] for row in ROWS]


def test_numpys_numbers_are_accepted(tmp_path):
    dataset = opened(tmp_path, SHARDS)
    arguments = {'tokens_per_batch': np.int64(8), 'shuffle': np.bool_(False), 'pad': np.int32(0)}
    state = json.loads(json.dumps(dataset.batches('train', **arguments).state()))
    assert state['arguments'] == {'split': 'train', **arguments}


def declared(kind):
    """A value of JSON with each field that a type declares, for readers or writers of manifests."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated or origin in (typing.Union, types.UnionType):
        return declared(arguments[0])
    if origin is tuple:
        return [declared(arguments[0])]
    if origin is dict:
        return {'x': 1}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {field.name: declared(hints[field.name]) for field in dataclasses.fields(kind)}
    return 1


def test_the_root_covers_every_field_that_readers_take():
    fields = declared(_Content)
    fields['options'] = declared(_Options)
    [vocabulary] = fields['vocabularies']
    [part] = covered(fields)['vocabularies']
    # Readers have these three from nowhere: they see the manifest without them.
    assert vocabulary.keys() - part.keys() == {'min_count', 'tried', 'licence'}
    assert covered(fields) == {**fields, 'vocabularies': [part]}
    assert vocabulary.keys() >= declared(DatasetVocabulary).keys() <= part.keys()


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
UNCOVERED = ['root', 'index', 'rejected', 'sample']


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(UNCOVERED, JSON)),
    st.fixed_dictionaries({}, optional=dict.fromkeys(['name', 'stored_bytes', 'sha256'], JSON)),
    st.fixed_dictionaries({}, optional=dict.fromkeys(['min_count', 'tried', 'licence'], JSON)),
    JSON,
)
def test_what_the_root_does_not_cover_changes_nothing_for_readers(
    folder_with_vocabulary, above, of_input, of_vocabulary, given_vocabularies
):
    folder, before = folder_with_vocabulary
    path = folder / 'tokbeam.json'
    original = path.read_text()

    def change(fields):
        fields |= above
        fields['options']['vocabularies'] = given_vocabularies
        fields['inputs'][0] |= of_input
        fields['vocabularies'][0] |= of_vocabulary

    try:
        change_manifest(folder, change)
        assert vars(DatasetManifest.read(folder)) == before
    finally:
        path.write_text(original)


@pytest.fixture(scope='module')
def folder_with_vocabulary(tmp_path_factory):
    """A dataset with a vocabulary, and what readers take from its manifest."""
    folder = altered(tmp_path_factory.mktemp('covered') / 'd', with_vocabulary(side='both'))
    return folder, vars(DatasetManifest.read(folder))
