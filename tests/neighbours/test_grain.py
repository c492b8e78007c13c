"""`dataset.grain` within grain's own pipelines, as grain 0.2.18 runs them."""

import pytest
from environments import run_script
from jobs import succeed

from pipelines.foreign_formats.array_record import OPTIONS
from tokcore import open_dataset
from tokcore.records.tfrecord import read_records


@pytest.fixture(scope='module')
def told(environment, dataset_folder):
    return run_script(environment('grain'), 'grain_batches.py', dataset_folder)


@pytest.fixture(scope='module')
def plain(dataset_folder):
    return targets(dataset_folder)


def targets(folder, **arguments):
    batches = open_dataset(folder).batches('train', tokens_per_batch=256, seed=3, **arguments)
    return [batch['targets'].tolist() for batch in batches]


def test_each_iterator_begins_at_the_first_batch(told, plain):
    assert told['alone'] == told['again'] == plain
    assert told['side by side'] == [[*plain[:2], plain[0]], [*plain[2:4], plain[1]]]


def test_labels_are_those_of_numpy(told, dataset_folder):
    asked = {'tokens_per_batch': 256, 'seed': 3, 'for_model': 'seq2seq'}
    batches = open_dataset(dataset_folder).batches('train', **asked)
    assert told['labels'] == [batch['labels'].tolist() for batch in batches]


def test_batches_are_mapped_and_prefetched(told, plain):
    doubled = [[[2 * id_ for id_ in row] for row in batch] for batch in plain]
    assert told['mapped'] == told['prefetched'] == told['by workers'] == doubled


@pytest.mark.parametrize('pipeline', ['alone', 'mixed', 'prefetched', 'by workers'])
def test_a_checkpoint_goes_on_with_the_next_batch(told, pipeline):
    rest, resumed = told['resumed'][pipeline]
    assert rest == resumed and len(rest) == 8


def test_shards_of_array_record_are_the_rows_in_their_order(environment, dataset_folder, tmp_path):
    pytest.importorskip('array_record')
    folder = tmp_path / 'converted'
    succeed('convert', dataset_folder, '--to', 'array_record', '--output', folder)
    told = run_script(environment('grain'), 'open_array_record.py', folder)
    payloads = [
        payload.hex()
        for path in sorted(dataset_folder.glob('enzh-train-*'))
        for payload in read_records(path.read_bytes(), path.name)
    ]
    assert told['read'] == told['source'] == payloads
    assert told['options'] == [OPTIONS] * 8
