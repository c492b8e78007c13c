"""A reader gives the rows of the dataset that it opened, or says that this was replaced."""

import os
import pickle
import shutil

import google_crc32c
import numpy as np
import pytest
from written_dataset import change_manifest, write_dataset, write_order

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading import shards

REPLACED = 'was replaced, changed or deleted after the dataset was opened; open it again'
SHARDS, ROWS = 6, 5


def rows_from(first):
    """Rows that another dataset has with other ids: each file has as many bytes in both."""
    return [
        [[first + (shard + 3 * row + k) % 50 for k in range(row + 1)] for row in range(ROWS)]
        for shard in range(SHARDS)
    ]


def written(folder, first, output_format):
    shards = [[{'targets': row} for row in shard] for shard in rows_from(first)]
    write_dataset(folder, shards, output_format=output_format)
    write_order(folder, np.arange(SHARDS * ROWS)[::-1])
    return folder


@pytest.fixture(params=['tfrecord', 'parquet'])
def ours(request, tmp_path):
    return written(tmp_path / 'ours', 10, request.param)


@pytest.fixture
def theirs(ours, tmp_path):
    output_format = 'parquet' if [*ours.glob('*.parquet')] else 'tfrecord'
    return written(tmp_path / 'theirs', 70, output_format)


def replace(folder, other):
    """As a command publishes: a folder has no manifest until all files are those of one dataset."""
    (folder / 'tokbeam.json').unlink(missing_ok=True)
    for path in sorted(other.rglob('*')):
        if path.is_file() and path.name != 'tokbeam.json':
            put(folder / path.relative_to(other), path)
    put(folder / 'tokbeam.json', other / 'tokbeam.json')


def put(path, source):
    path.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, path.with_name('part'))
    os.replace(path.with_name('part'), path)


def in_batches(batches):
    for batch in batches:
        for row, length in zip(batch['targets'], batch['targets_length'], strict=True):
            yield row[:length].tolist()


def listed(rows):
    return (row['targets'].tolist() for row in rows)


def by_grain(dataset):
    pytest.importorskip('grain')
    return in_batches(iter(dataset.grain('train', tokens_per_batch=5)))


def by_number(dataset):
    rows = dataset['train']
    return listed(rows[number] for number in range(len(rows)))


def records(dataset):
    from tokcore.records.tfrecord import parse_example

    rows = dataset['train']
    return (parse_example(rows.record(number))['targets'] for number in range(len(rows)))


WAYS = {
    'examples': lambda dataset: listed(dataset.examples('train')),
    'batches': lambda dataset: in_batches(dataset.batches('train', tokens_per_batch=5)),
    'grain': by_grain,
    'by number': by_number,
    'slice': lambda dataset: listed(
        row for first in range(0, 30, 3) for row in dataset['train'][first : first + 3]
    ),
    'records': records,
    'pickled rows': lambda dataset: listed(iter(pickle.loads(pickle.dumps(dataset['train'])))),
}
"""Others are read in `faults/replaced_under_readers.py`."""


def read_until_refused(rows, known):
    """Reads all rows, each of which must be known; raises what refuses the next one."""
    count = 0
    for row in rows:
        assert row in known
        count += 1
    return count


def known_rows(first):
    return [row for shard in rows_from(first) for row in shard]


@pytest.mark.parametrize('way', WAYS)
def test_a_replaced_dataset_is_refused_before_its_first_row(ours, theirs, way):
    if way == 'records' and [*ours.glob('*.parquet')]:
        pytest.skip('Parquet has no records')
    rows = WAYS[way](open_dataset(ours))
    assert next(rows) in known_rows(10)
    replace(ours, theirs)
    with pytest.raises(InputError, match=f'{ours}/d-train-.* {REPLACED}'):
        read_until_refused(rows, known_rows(10))
    assert read_until_refused(WAYS[way](open_dataset(ours)), known_rows(70)) >= SHARDS * ROWS


@pytest.mark.parametrize('way', ['examples', 'batches', 'by number'])
def test_a_dataset_that_is_there_again_is_read_on(ours, theirs, tmp_path, way):
    shutil.copytree(ours, tmp_path / 'kept')
    rows = WAYS[way](open_dataset(ours))
    found = [next(rows)]
    replace(ours, theirs)
    replace(ours, tmp_path / 'kept')
    for path in ours.glob('d-train-*'):
        path.chmod(0o400)
        os.utime(path, (1, 1))
    assert sorted([*found, *rows]) == sorted(known_rows(10))


@pytest.mark.parametrize('way', [name for name in WAYS if name != 'records'])
def test_files_that_are_gone_or_cut_off_are_refused(ours, way):
    rows = WAYS[way](open_dataset(ours))
    next(rows)
    for number, path in enumerate(sorted(ours.glob('d-train-*'))):
        if number % 2:
            path.unlink()
        else:
            put(path, path)  # those that are mapped stay as they are
            os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(InputError, match=f'{ours}/d-train-.* {REPLACED}'):
        read_until_refused(rows, known_rows(10))


WORDS = b'<unk>\n<s>\n</s>\na\nb\n'


@pytest.mark.parametrize(
    'other',
    [None, WORDS.replace(b'a', b'c'), WORDS + b'c\n', WORDS[:-2]],
    ids=['deleted', 'as long', 'longer', 'shorter'],
)
def test_a_vocabulary_that_is_replaced_is_refused(ours, other):
    record = {
        'side': 'targets', 'name': 'words', 'size': 5, 'scheme': 'word', 'special_ids': {'end': 2},
        'bytes': len(WORDS), 'crc32c': f'{google_crc32c.value(WORDS):08x}',
    }  # fmt: skip
    (ours / 'words').write_bytes(WORDS)
    change_manifest(ours, lambda fields: fields.update(vocabularies=[record], end_of_document=[]))
    change_manifest(ours, lambda fields: fields['options'].update(scheme='word'))
    before, dataset = open_dataset(ours), open_dataset(ours)
    assert before.vocabulary().vocab_size == 5
    (ours / 'words').write_bytes(other or b'')
    if other is None:
        (ours / 'words').unlink()
    with pytest.raises(InputError, match=f'{ours}/words .*; open the dataset again'):
        dataset.vocabulary()
    assert before.vocabulary().vocab_size == 5


def test_a_state_goes_on_only_with_its_dataset(ours, theirs):
    dataset = open_dataset(ours)
    batches = dataset.batches('train', tokens_per_batch=5, shuffle=False)
    next(batches)
    state = batches.state()
    assert [*in_batches(dataset.from_state(state))]
    replace(ours, theirs)
    with pytest.raises(InputError, match=REPLACED):
        dataset.from_state(state)
    with pytest.raises(InputError, match='the state is of other shards'):
        open_dataset(ours).from_state(state)


def test_a_dataset_that_is_replaced_while_it_is_opened(ours, theirs, monkeypatch):
    states = iter([lambda: replace(ours, theirs)])
    plain = shards._file_state

    def file_state(state):
        next(states, lambda: None)()
        return plain(state)

    monkeypatch.setattr(shards, '_file_state', file_state)
    with pytest.raises(InputError, match='tokbeam.json was replaced while it was read'):
        open_dataset(ours)
    assert sorted(listed(open_dataset(ours).examples('train'))) == sorted(known_rows(70))
