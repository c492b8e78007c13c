"""A shard whose parts are made by several threads in any order."""

import concurrent.futures
import hashlib
import threading

import google_crc32c
import numpy as np
import pytest
from jobs import files_up_to

from pipelines.shuffle.merge_runs import OrderedShardWriter
from pipelines.transforms.stats import WrittenFile
from tokcore.errors import FullDiskError
from tokcore.kernels.sorting import SortedRows
from tokcore.reading.record_index import read_index
from tokcore.reading.shards import ShardFile

PARTS = [bytes([place]) * (1 + place) for place in range(12)]


def merged(place: int) -> SortedRows:
    """Part i has i + 1 records of a byte each."""
    return rows_of_bytes(PARTS[place])


def rows_of_bytes(records: bytes) -> SortedRows:
    data = np.frombuffer(records, np.uint8)
    rows = np.arange(len(data))
    ones = np.ones(len(data), np.uint32)
    return SortedRows.of(rows.astype(np.uint64), data, rows, ones, np.stack([ones, ones], axis=1))


def files_in(folder):
    return [path for path in folder.rglob('*') if path.is_file()]


@pytest.mark.parametrize('gathers_first', [False, True])
def test_parts_stand_in_their_order_whichever_thread_is_first(tmp_path, gathers_first):
    shard = OrderedShardWriter(str(tmp_path), 'shard', len(PARTS), gathers_first=gathers_first)
    last_is_ready = threading.Event()

    def write(place: int):
        with shard.part(place):
            if place == len(PARTS) - 1:
                last_is_ready.set()
            # The first part is made last.
            assert place or last_is_ready.wait(60)
            return shard.write(place, merged(place))

    with concurrent.futures.ThreadPoolExecutor(len(PARTS)) as pool:
        results = list(pool.map(write, range(len(PARTS))))
    whole = b''.join(PARTS)
    sums = google_crc32c.value(whole), len(whole), hashlib.sha256(whole).hexdigest()
    written = WrittenFile('shard', len(whole), *sums)
    assert results[:-1] == [[]] * (len(PARTS) - 1) and results[-1][0] == written
    shard = ShardFile(str(tmp_path / 'shard'), len(whole), len(whole), f'{sums[0]:08x}')
    index = read_index(shard)
    keys = [place for part in PARTS for place in range(len(part))]
    assert (index.keys.tolist(), index.bounds_of(7)) == (keys, (7, 8))
    assert (tmp_path / 'shard').read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ['index', 'shard']


def test_a_part_that_fails_stops_those_after_it_and_no_other(tmp_path):
    shard = OrderedShardWriter(str(tmp_path), 'shard', 4)
    third_failed = threading.Event()

    def write(place: int):
        with shard.part(place):
            if place == 2:
                third_failed.set()
                raise OSError('no such run')
            assert place or third_failed.wait(60)
            return shard.write(place, merged(place))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(write, place) for place in range(4)]
    assert calls[0].result() == calls[1].result() == []
    with pytest.raises(OSError, match='no such run'):
        calls[2].result()
    with pytest.raises(RuntimeError, match='part 2 of shard was not written'):
        calls[3].result()
    assert files_in(tmp_path) == []
    shard = OrderedShardWriter(str(tmp_path), 'shard', 3)
    with shard.part(0):
        shard.write(0, merged(0))
    assert len(files_in(tmp_path)) == 2
    with pytest.raises(OSError, match='no such run'), shard.part(1):
        raise OSError('no such run')
    assert files_in(tmp_path) == []


def test_the_error_of_an_index_that_cannot_be_written_names_it(tmp_path):
    """As on a disk that is full when the shard has just found room."""
    shard = OrderedShardWriter(str(tmp_path), 'shard', 1)
    rows = rows_of_bytes(bytes(100_000))
    complaint = rf'cannot write {tmp_path}/index/shard\S*: File too large'
    with files_up_to(200_000), pytest.raises(FullDiskError, match=complaint), shard.part(0):
        shard.write(0, rows)
    assert files_in(tmp_path) == []
