"""A dataset of a store is read as the same one in a folder, from copies that are checked."""

import os
from pathlib import Path

import pytest
from written_dataset import change_manifest, file_entry, write_dataset

from tokcore import object_stores
from tokcore.errors import InputError
from tokcore.reading import manifest
from tokcore.reading.dataset import open_dataset

obstore = pytest.importorskip('obstore')

ROWS = [{'targets': [number + 1, 1]} for number in range(9)]


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A dataset's folder and the same below `s3://bucket/d`; the store's objects can be written."""
    store = obstore.store.MemoryStore()
    monkeypatch.setattr(object_stores, 'open_store', lambda url, options, seconds: store)
    object_stores._bucket.cache_clear()
    folder = write_dataset(tmp_path / 'd', [ROWS[:5], ROWS[5:]])
    for path in folder.iterdir():
        store.put(f'd/{path.name}', path.read_bytes())
    yield folder, store
    object_stores._bucket.cache_clear()


def examples(dataset):
    return [row['targets'].tolist() for row in dataset.examples('train')]


def reads():
    return object_stores.counted_requests().get('read', 0)


def test_it_is_copied_once_and_read_as_a_folder(stored, tmp_path):
    folder, _ = stored
    before = reads()
    first = open_dataset('s3://bucket/d', cache=tmp_path / 'cache')
    assert examples(first) == examples(open_dataset(folder)) == [row['targets'] for row in ROWS]
    assert reads() == before + 3
    again = open_dataset('s3://bucket/d/', cache=tmp_path / 'cache')
    assert examples(again) == examples(first)
    assert reads() == before + 4
    assert sorted(path.name for path in (tmp_path / 'cache').glob('*/*')) == sorted(
        path.name for path in folder.iterdir()
    )


def test_indexes_that_are_listed_are_copied(stored, tmp_path):
    folder, store = stored
    open_dataset(folder).write_index()
    names = [str(path.relative_to(folder)) for path in sorted(folder.glob('index/*'))]
    entries = [file_entry(name, 0, (folder / name).read_bytes()) for name in names]
    change_manifest(folder, lambda fields: fields.update(index=entries))
    for name in [*names, 'tokbeam.json']:
        store.put(f'd/{name}', (folder / name).read_bytes())
    rows = open_dataset('s3://bucket/d', cache=tmp_path / 'cache')['train']
    assert rows[7]['targets'].tolist() == ROWS[7]['targets']
    store.put(f'd/{names[1]}', b'x' * entries[1]['bytes'])
    with pytest.raises(InputError, match=f's3://bucket/d/{names[1]} has .* make the dataset again'):
        open_dataset('s3://bucket/d', cache=tmp_path / 'other')


def test_a_changed_or_missing_shard_is_refused_and_not_kept(stored, tmp_path):
    folder, store = stored
    name = 'd-train-00001-of-00002'
    data = (folder / name).read_bytes()
    store.put(f'd/{name}', data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InputError, match=f's3://bucket/d/{name} has .* make the dataset again'):
        open_dataset('s3://bucket/d', cache=tmp_path / 'cache')
    store.delete(f'd/{name}')
    with pytest.raises(InputError, match='or not all files that it lists'):
        open_dataset('s3://bucket/d', cache=tmp_path / 'cache')
    assert not list((tmp_path / 'cache').glob(f'*/{name}'))
    assert not list((tmp_path / 'cache').glob('*/tokbeam.json'))
    assert not list((tmp_path / 'cache').glob('*/*.part'))


@pytest.fixture
def copied(stored, tmp_path):
    """The folder with the copies of a stored dataset."""
    return Path(open_dataset('s3://bucket/d', cache=tmp_path / 'cache').folder)


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize('damage', [flip_a_bit, lambda path: path.write_bytes(b'')])
def test_a_damaged_copy_is_fetched_again_and_named(copied, tmp_path, caplog, monkeypatch, damage):
    shard = copied / 'd-train-00001-of-00002'
    before = reads()
    damage(shard)
    dataset = open_dataset('s3://bucket/d', cache=tmp_path / 'cache')
    assert examples(dataset) == [row['targets'] for row in ROWS]
    assert reads() == before + 2  # the manifest, and this shard
    assert caplog.messages == [f'{shard} is a damaged copy and is fetched again']
    # A copy is compared only if it has changed since.
    os.utime(copied / 'tokbeam.json', (2e9, 2e9))
    monkeypatch.setattr(manifest, 'checksum', None)
    open_dataset('s3://bucket/d', cache=tmp_path / 'cache')


def test_damage_of_a_copy_that_nothing_shows_is_mended_by_deleting_it(copied, tmp_path):
    shard = copied / 'd-train-00000-of-00002'
    flip_a_bit(shard)
    os.utime(copied / 'tokbeam.json', (2e9, 2e9))  # as if the disk had flipped it
    dataset = open_dataset('s3://bucket/d', cache=tmp_path / 'cache')
    with pytest.raises(InputError, match=f'{shard}, record 0, .*; delete this copy and open the'):
        examples(dataset)
    shard.unlink()
    dataset = open_dataset('s3://bucket/d', cache=tmp_path / 'cache')
    assert examples(dataset) == [row['targets'] for row in ROWS]


def test_what_is_not_a_dataset_is_refused(stored, tmp_path):
    _, store = stored
    with pytest.raises(InputError, match='s3://bucket/nothing has no tokbeam.json'):
        open_dataset('s3://bucket/nothing', cache=tmp_path)
    store.put('d/tokbeam.json', b'{"files": [{"name": "../x"}]}')
    with pytest.raises(InputError, match='is not a manifest of a dataset'):
        open_dataset('s3://bucket/d', cache=tmp_path)
