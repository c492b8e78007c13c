"""The index of records that a build writes beside its shards: `tokbeam index` writes the same bytes."""

import json
import shutil

import google_crc32c
import pytest
from dataset_files import files_of, manifest_of
from jobs import refuse, run, succeed

from tokcore import open_dataset

TRAIN = ['d-train-00000-of-00090', 'd-train-00001-of-00090']


@pytest.fixture(scope='module')
def building(small):
    files = ['--source', small.source, '--target', small.target, '--name', 'd', '--shards', 90]
    return ['build', *files, '--scheme', 'byte', '--dev-share', '9%']


@pytest.fixture
def copy(built, tmp_path):
    return shutil.copytree(built, tmp_path / 'copy')


def without_index(folder):
    """Makes a folder as versions before had it."""
    shutil.rmtree(folder / 'index')
    fields = manifest_of(folder)
    del fields['index']
    (folder / 'tokbeam.json').write_text(json.dumps(fields))
    return folder


def indexes(folder):
    return {path.name: path.read_bytes() for path in (folder / 'index').iterdir()}


def test_each_shard_has_the_index_that_the_command_writes(built, copy):
    manifest = manifest_of(built)
    assert [each['name'] for each in manifest['index']] == [
        *(f'index/{each["name"]}' for each in manifest['files']),
        'index/corpus.jsonl',
    ]
    for listed, shard in zip(manifest['index'][:-1], manifest['files'], strict=True):
        data = (built / listed['name']).read_bytes()
        assert (listed['bytes'], listed['crc32c'], listed['rows']) == (
            len(data), f'{google_crc32c.value(data):08x}', shard['rows']
        )  # fmt: skip
    assert {each['rows'] for each in manifest['files']} >= {0, 1}
    written = indexes(built)
    assert len(written) == 92
    succeed('index', without_index(copy))
    assert indexes(copy) == written


@pytest.mark.parametrize(
    'cut', [('@item-size', 64, '--workers', 2), ('@shuffle', 'engine', '--workers', 1)], ids=str
)
def test_however_the_work_is_cut_the_folder_is_the_same(cut, building, built, tmp_path):
    succeed(*building, *cut, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(built)


def test_rows_are_read_by_their_numbers_at_once(built):
    dataset = open_dataset(built)
    for split in ('train', 'dev'):
        expected = [row['targets'].tolist() for row in dataset.examples(split)]
        assert [row['targets'].tolist() for row in dataset[split][:]] == expected


def test_a_folder_without_indexes_is_up_to_date_and_has_the_same_root(building, built, copy):
    folder = without_index(copy)
    assert 'already done' in succeed(*building, '--output', folder)
    ended = run('verify', folder)
    assert ended.status == 0
    assert manifest_of(folder)['root'] == manifest_of(built)['root']


def test_an_index_that_is_missing_or_another_is_found(building, copy):
    (copy / 'index' / TRAIN[0]).unlink()
    (copy / 'index' / TRAIN[1]).write_bytes(b'x' * 40)
    assert run('verify', copy).status == 3
    assert f'{TRAIN[0]} is missing or not of the size' in refuse(*building, '--output', copy)
    succeed('index', copy)
    assert run('verify', copy).status == 0
    assert 'already done' in succeed(*building, '--output', copy)


def test_another_result_leaves_no_index_of_the_one_before(building, copy):
    succeed(*building, '--shards', 1, '--overwrite', '--output', copy)
    assert set(indexes(copy)) == {
        *(f'd-{split}-00000-of-00001' for split in ('train', 'dev')),
        'corpus.jsonl',
    }
    succeed(*building, '--output-format', 'parquet', '--overwrite', '--output', copy)
    names = {each['name'].partition('/')[2] for each in manifest_of(copy)['index']}
    assert set(indexes(copy)) == names and len(names) == 92


@pytest.mark.parametrize('to', ['parquet', 'flat'])
def test_a_converted_folder_has_those_of_its_files(to, built, tmp_path):
    succeed('convert', built, '--to', to, '--output', tmp_path / 'out')
    made = indexes(tmp_path / 'out')
    assert made['corpus.jsonl'] == indexes(built)['corpus.jsonl']
    assert {f'index/{name}' for name in made} == {
        each['name'] for each in manifest_of(tmp_path / 'out')['index']
    }
    assert run('verify', tmp_path / 'out').status == 0
