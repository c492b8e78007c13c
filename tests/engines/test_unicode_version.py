"""Every artifact records the Unicode version that cut its tokens; another one is refused."""

import json

import pyarrow.parquet as parquet
import pytest
from dataset_files import manifest_of
from jobs import refuse, succeed, write

from pipelines.transforms.count_tokens import UNICODE_KEY
from tokcore.text.unicode import UNICODE_VERSION

TEXT = b'the cat and the dog\nthe bird\n'
VOCABULARY = ['--vocab-size', 60, '--min-count-range', '1:9']


@pytest.fixture
def text(tmp_path):
    return write(tmp_path / 'text.txt', TEXT)


@pytest.fixture
def counts(text, tmp_path):
    succeed('count', '--text', text, '--output', tmp_path / 'counts')
    return tmp_path / 'counts'


@pytest.fixture
def vocabulary(counts, tmp_path):
    path = tmp_path / 'x.subwords'
    succeed('vocab', '--counts', counts, *VOCABULARY, '--output', path)
    return path


def encode(text, vocabulary, folder):
    return ['encode', '--text', text, '--vocab', vocabulary, '--name', 'x', '--output', folder]


def test_counts_vocabularies_and_datasets_record_it(text, counts, vocabulary, tmp_path):
    succeed(*encode(text, vocabulary, tmp_path / 'out'))
    assert manifest_of(counts)['unicode'] == UNICODE_VERSION
    schema = parquet.read_schema(counts / 'counts-00000-of-00032.parquet')
    assert schema.metadata[UNICODE_KEY.encode()].decode() == UNICODE_VERSION
    manifest = manifest_of(tmp_path, 'x.subwords.tokbeam.json')
    assert manifest['unicode'] == UNICODE_VERSION
    assert {each['unicode'] for each in manifest['inputs']} == {UNICODE_VERSION}
    [used] = manifest_of(tmp_path / 'out')['vocabularies']
    assert used['unicode'] == UNICODE_VERSION


def test_counts_of_another_version_are_refused(counts, tmp_path):
    path = counts / 'counts-00000-of-00032.parquet'
    table = parquet.read_table(path)
    parquet.write_table(table.replace_schema_metadata({UNICODE_KEY: '6.0.0'}), path)
    sentence = refuse('vocab', '--counts', path, *VOCABULARY, '--output', tmp_path / 'y')
    assert 'Unicode 6.0.0' in sentence
    assert UNICODE_VERSION in sentence


def test_a_vocabulary_of_another_version_is_refused(text, vocabulary, tmp_path):
    path = tmp_path / 'x.subwords.tokbeam.json'
    manifest = json.loads(path.read_bytes())
    manifest['vocabularies'][0]['unicode'] = '6.0.0'
    path.write_text(json.dumps(manifest))
    sentence = refuse(*encode(text, vocabulary, tmp_path / 'out'))
    assert 'Unicode 6.0.0' in sentence
    assert not (tmp_path / 'out').exists()


def test_what_records_none_is_taken_and_the_manifest_says_so(text, vocabulary, tmp_path):
    (tmp_path / 'x.subwords.tokbeam.json').unlink()
    succeed(*encode(text, vocabulary, tmp_path / 'out'))
    assert manifest_of(tmp_path / 'out')['vocabularies'][0]['unicode'] is None
    plain = write(tmp_path / 'counts.txt', b'the 3\ncat 1\n')
    succeed('vocab', '--counts', plain, *VOCABULARY, '--output', tmp_path / 'y.subwords')
    [taken] = manifest_of(tmp_path, 'y.subwords.tokbeam.json')['inputs']
    assert taken['unicode'] == 'not recorded'


@pytest.mark.parametrize(
    'runs', ['in process', pytest.param('worker processes', marks=pytest.mark.slow)]
)
def test_a_worker_with_another_version_refuses_to_work(
    text, vocabulary, tmp_path, monkeypatch, runs
):
    # The driver's version goes to the workers with the steps, and theirs is that of their Python.
    workers = ['--direct_running_mode=multi_processing', '--direct_num_workers=1']
    flags = workers if runs == 'worker processes' else []
    steps = [
        ('count_tokens', ['count', '--text', text, '--output', tmp_path / 'other']),
        ('encode_blocks', encode(text, vocabulary, tmp_path / 'out')),
    ]
    for step, command in steps[: 1 if flags else 2]:
        with monkeypatch.context() as patch:
            patch.setattr(f'pipelines.transforms.{step}.UNICODE_VERSION', '6.0.0')
            sentence = refuse(*command, *flags)
        assert 'the driver has Unicode 6.0.0 but this worker has' in sentence
