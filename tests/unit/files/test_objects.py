"""Objects of a store are files that are whole or not there.

By obstore's store in memory, and by its client of Google's store.
"""

import io
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google_store import served_google_store
from hypothesis import example, given
from hypothesis import strategies as st
from object_store import keep_stores_in_memory

from pipelines.files import claims, filesystem
from pipelines.files.attempts import Attempt
from pipelines.files.claims import Claim, HeldError
from pipelines.files.objects import create_if
from tokcore import object_stores
from tokcore.errors import InputError
from tokcore.object_stores import StoreOptions, counted_requests, open_store

pytest.importorskip('obstore')


@pytest.fixture(scope='module')
def google():
    with served_google_store() as store:
        yield store


@pytest.fixture(autouse=True, params=['memory', 'google'])
def stores(request, monkeypatch):
    keep_stores_in_memory(monkeypatch)
    if request.param == 'google':
        pytest.importorskip('obstore', minversion='0.12')  # earlier ones know one address alone
        google = request.getfixturevalue('google')
        google.objects.clear()
        google.use(monkeypatch)
        monkeypatch.setattr(
            object_stores,
            'open_store',
            lambda url, options, seconds: open_store('gs://corpora', options, seconds),
        )


@pytest.fixture
def requests():
    """Counts the requests since the test began, by their kind."""
    before = counted_requests()
    return lambda: {
        kind: count - before.get(kind, 0)
        for kind, count in counted_requests().items()
        if count > before.get(kind, 0)
    }


@pytest.fixture
def without_waiting(monkeypatch):
    monkeypatch.setattr(claims, '_RENEWED_EVERY', 3600)


def names(folder='gs://bucket'):
    return [file.name for file in filesystem.list_folder(folder)]


@pytest.mark.parametrize('scheme', ['s3', 'gs'])
def test_a_file_is_written_found_and_deleted(scheme):
    path = f'{scheme}://bucket/a/b.txt'
    assert filesystem.read_if_there(path) is None
    assert not filesystem.exists(path)
    filesystem.write_bytes(path, b'text')
    assert filesystem.read_bytes(path) == b'text'
    [found] = filesystem.find(path)
    assert (found.path, found.name, found.size) == (path, 'b.txt', 4)
    assert filesystem.is_folder(f'{scheme}://bucket/a')
    assert not filesystem.is_folder(path)
    filesystem.delete_file(path)
    filesystem.delete_file(path)
    assert filesystem.stored_size(path) is None


def test_a_file_is_there_only_when_it_is_whole():
    path = 'gs://bucket/a'
    with pytest.raises(KeyError), filesystem.create(path) as stream:
        stream.write(b'x' * (9 << 20))
        assert not filesystem.exists(path)
        raise KeyError
    assert names() == []
    with filesystem.create(path) as stream:
        assert stream.tell() == 0
    assert filesystem.stored_size(path) == 0
    assert filesystem.read_bytes(path) == b''


@pytest.mark.parametrize('size', [0, 1, 65_536, 65_537, object_stores.PART_BYTES, 20_000_000])
def test_any_size_comes_back(size):
    data = random.Random(size).randbytes(size)
    with filesystem.create('gs://bucket/a') as stream:
        for start in range(0, size, 3_000_001):
            stream.write(data[start : start + 3_000_001])
    assert filesystem.stored_size('gs://bucket/a') == size
    assert filesystem.read_bytes('gs://bucket/a') == data


@given(
    st.integers(0, 300_000),
    st.lists(
        st.tuples(st.sampled_from(['seek', 'end', 'on']), st.integers(0, 310_000)), max_size=12
    ),
)
@example(0, [('seek', 10), ('on', 5)])
def test_reads_and_seeks_are_those_of_a_file(size, steps):
    data = random.Random(size).randbytes(size)
    filesystem.write_bytes('gs://bucket/a', data)
    expected, actual = io.BytesIO(data), filesystem.open_binary('gs://bucket/a')
    for step, number in steps:
        if step == 'seek':
            assert actual.seek(number) == expected.seek(number)
        elif step == 'end':
            back = -min(number, size)
            assert actual.seek(back, io.SEEK_END) == expected.seek(back, io.SEEK_END)
        assert actual.read(number // 3) == expected.read(number // 3)
        assert actual.tell() == expected.tell()
    assert actual.read() == expected.read()


def test_a_range_takes_two_requests_and_a_small_file_one(requests):
    filesystem.write_bytes('gs://bucket/small', b'x' * 1000)
    filesystem.write_bytes('gs://bucket/large', b'x' * (10 << 20))
    before = requests().get('read', 0)
    assert len(filesystem.read_bytes('gs://bucket/small')) == 1000
    assert requests()['read'] == before + 1
    with filesystem.open_binary('gs://bucket/large') as stream:
        stream.seek(0, io.SEEK_END)
        stream.seek(1 << 20)
        assert len(stream.read(8 << 20)) == 8 << 20
    assert requests()['read'] == before + 3


def test_of_a_parquet_file_only_what_is_asked_for_is_read(monkeypatch, requests):
    rows, path = 8 * 25_000, 'gs://bucket/a.parquet'
    numbers = np.random.default_rng(1).integers(1 << 60, size=(2, rows))
    with filesystem.create(path) as stream:
        pq.write_table(pa.table({'a': numbers[0], 'b': numbers[1]}), stream, row_group_size=25_000)
    fetched, read = [], object_stores.Bucket.read_with_state

    def counted(*arguments):
        data, state = read(*arguments)
        fetched.append(len(data))
        return data, state

    monkeypatch.setattr(object_stores.Bucket, 'read_with_state', counted)
    before = requests().get('read', 0)
    with filesystem.open_binary(path, filesystem.stored_size(path)) as stream:
        group = pq.ParquetFile(stream).read_row_group(5, ['b'])
    assert group['b'].to_numpy().tolist() == numbers[1, 125_000:150_000].tolist()
    assert requests()['read'] - before == len(fetched) <= 4
    assert sum(fetched) < filesystem.stored_size(path) / 5


def test_a_file_that_is_replaced_while_it_is_read_is_refused():
    filesystem.write_bytes('gs://bucket/a', b'x' * 100_000)
    with filesystem.open_binary('gs://bucket/a') as stream:
        stream.read(10)
        filesystem.write_bytes('gs://bucket/a', b'y' * 100_000)
        with pytest.raises(InputError, match='a was replaced while it was read'):
            stream.read()


def test_globs_are_those_of_a_folder():
    for name in ['a/1.txt', 'a/2.txt', 'a/b/3.txt', 'a-/0.txt', 'ab/4.txt', 'a/x[1].txt', 'ü?.txt']:
        filesystem.write_bytes(f's3://bucket/{name}', b'')

    def found(pattern):
        return [file.name for file in filesystem.find(f's3://bucket/{pattern}')]

    assert found('a/*.txt') == ['1.txt', '2.txt', 'x[1].txt']
    assert found('a/**.txt') == ['1.txt', '2.txt', 'b/3.txt', 'x[1].txt']
    assert found('*/*.txt')[:2] == ['a-/0.txt', 'a/1.txt']
    assert found('a/x[1].txt') == ['x[1].txt']
    assert found('ü?.txt') == ['ü?.txt']
    assert filesystem.entries('s3://bucket') == ['a', 'a-', 'ab', 'ü?.txt']
    assert filesystem.entries('s3://bucket/a') == ['1.txt', '2.txt', 'b', 'x[1].txt']
    for pattern, reason in [('b/*', 'no file matches'), ('b', 'does not exist')]:
        with pytest.raises(InputError, match=reason):
            found(pattern)


@pytest.mark.parametrize('path', ['s3://', 's3://bucket/a//b', 's3://bucket/a/../b'])
def test_a_name_that_no_store_has_is_refused(path):
    with pytest.raises(InputError, match='names no bucket|not a name that stores can have'):
        filesystem.find(path)


def test_many_files_are_looked_at_moved_and_deleted_at_once(requests):
    paths = [f's3://bucket/a/{number}' for number in range(40)]
    for path in paths:
        filesystem.write_bytes(path, path.encode())
    assert requests() == {'put': 40}
    sizes = filesystem.stored_sizes([*paths, 's3://bucket/a/none'])
    assert sizes == [*(len(path) for path in paths), None]
    moves = [(path, path.replace('/a/', '/b/')) for path in paths]
    filesystem.files_of(paths[0]).move(moves)
    assert filesystem.entries('s3://bucket') == ['b']
    assert filesystem.read_bytes('s3://bucket/b/7') == b's3://bucket/a/7'
    filesystem.delete_known('s3://bucket/b', lambda name: name != '3')
    assert names('s3://bucket') == ['b/3']
    assert requests() == {'put': 40, 'list': 4, 'copy': 40, 'delete': 2, 'read': 1}


def test_what_is_deleted_may_be_gone():
    paths = [f'gs://bucket/a/{number:02}' for number in range(40)]
    for path in paths[1::2]:
        filesystem.write_bytes(path, b'')
    filesystem.files_of(paths[0]).delete(paths)
    assert names() == []


def test_an_attempt_publishes_and_leaves_nothing():
    with Attempt('gs://bucket/out') as attempt:
        for name in 'ab':
            filesystem.write_bytes(f'{attempt.path}/{name}', name.encode())
        filesystem.write_bytes(f'{attempt.path}/report', b'')
        attempt.publish([(name, f'gs://bucket/out/{name}') for name in 'ab'])
    assert names('gs://bucket/out') == ['a', 'b']


def test_what_a_killed_attempt_left_is_swept_and_no_other():
    killed = Attempt('gs://bucket/out').__enter__()
    filesystem.write_bytes(f'{killed.path}/shard', b'')
    other = f'{Attempt("gs://bucket/out", ["vocab"]).path}/vocab'
    filesystem.write_bytes(other, b'')
    foreign = f'gs://bucket/out/.tokbeam-attempt-{"0" * 32}/mine'
    filesystem.write_bytes(foreign, b'')
    with Attempt('gs://bucket/out'):
        pass
    kept = {file.path for file in filesystem.list_folder('gs://bucket/out')}
    assert kept == {foreign, other}


def test_one_of_two_holds_a_claim(without_waiting):
    with Claim('gs://bucket/lock', 'out') as claim:
        claim.check()
        with pytest.raises(HeldError, match='out is being written by process .* 5 minutes'):
            with Claim('gs://bucket/lock', 'out'):
                pass
        claim.check()
    assert names() == []


OTHER = json.dumps(
    {
        'id': 'o',
        'pid': 1,
        'host': 'elsewhere',
        'system': '',
        'began': 0,
        'since': 'then',
        'renewals': 1,
    }
).encode()


def test_a_lease_that_has_ended_is_taken_over(without_waiting, monkeypatch):
    filesystem.write_bytes('gs://bucket/lock', OTHER)
    with pytest.raises(HeldError, match='process 1 on host elsewhere'):
        Claim('gs://bucket/lock', 'out').__enter__()
    monkeypatch.setattr(claims, 'LEASE_SECONDS', -1)
    with Claim('gs://bucket/lock', 'out') as claim:
        claim.check()
        filesystem.write_bytes('gs://bucket/lock', OTHER)  # somebody else did so as well
        with pytest.raises(InputError, match='out was taken over by process 1 on host elsewhere'):
            claim.check()
    assert filesystem.read_bytes('gs://bucket/lock') == OTHER


def test_a_lease_is_never_taken_because_its_process_is_not_seen_here(without_waiting):
    """Two containers may have one name of a host, and each sees its own processes alone."""
    ended = Claim('gs://bucket/lock', 'out').__enter__()
    holder = json.loads(filesystem.read_bytes('gs://bucket/lock'))
    ended.__exit__()
    other = json.dumps({**holder, 'id': 'o', 'pid': 4_194_304}).encode()
    filesystem.write_bytes('gs://bucket/lock', other)
    with pytest.raises(HeldError, match='process 4194304 .* wait 5 minutes'):
        Claim('gs://bucket/lock', 'out').__enter__()
    assert filesystem.read_bytes('gs://bucket/lock') == other


def test_a_lease_is_renewed_with_other_bytes(monkeypatch):
    monkeypatch.setattr(claims, '_RENEWED_EVERY', 0.001)
    with Claim('gs://bucket/lock', 'out') as claim:
        first = filesystem.read_bytes('gs://bucket/lock')
        while filesystem.read_bytes('gs://bucket/lock') == first:
            pass
        claim.check()
    assert names() == []


def test_a_store_that_overwrites_what_it_was_to_create_is_refused(without_waiting, monkeypatch):
    def create(bucket, key, data, expected=None):
        bucket.put(key, data)
        return 'etag'

    monkeypatch.setattr(object_stores.Bucket, 'create', create)
    monkeypatch.setattr(claims, '_checked_stores', set())
    with pytest.raises(InputError, match='could write one output at once; give another store'):
        Claim('gs://bucket/lock', 'out').__enter__()
    assert names() == []


def test_without_leases_a_file_tells_of_the_run_that_writes(without_waiting, monkeypatch):
    monkeypatch.setattr(claims, 'is_object', lambda path: False)  # as of what only Beam reaches
    with Claim('gs://bucket/lock', 'out') as claim:
        claim.check()
        assert names() == ['lock']
        with pytest.raises(
            HeldError, match='is being written by process .* delete gs://bucket/lock'
        ):
            Claim('gs://bucket/lock', 'out').__enter__()
        filesystem.delete_file('gs://bucket/lock')
        with pytest.raises(InputError, match='was taken over by another run'):
            claim.check()
    assert names() == []


def test_a_write_on_condition():
    version = create_if('gs://bucket/a', b'1')
    assert version is not None
    assert create_if('gs://bucket/a', b'2') is None
    assert create_if('gs://bucket/a', b'3', version) is not None
    assert create_if('gs://bucket/a', b'4', version) is None
    assert filesystem.read_bytes('gs://bucket/a') == b'3'


def test_keys_are_not_in_what_options_show():
    options = StoreOptions(access_key_id='HUSH', secret_access_key='HUSH', session_token='HUSH')
    assert 'HUSH' not in repr(options)


@pytest.mark.parametrize(
    'endpoint', ['h', 'http//h', 'ftp://h', 'http://', 'http://h:0', 'http://AKIA:HUSH/is@h']
)
def test_an_address_that_would_end_the_process_is_refused(endpoint):
    with pytest.raises(InputError, match='is not the address of a store') as refused:
        open_store('s3://bucket', StoreOptions(endpoint=endpoint), 1)
    assert 'HUSH' not in str(refused.value)


@pytest.mark.parametrize(
    'path',
    [
        's3://AKIA:HUSH@b/x',
        'gs://HUSH@b',
        's3://b/x?X-Amz-Signature=HUSH',
        's3://b/x?a&Signature=HUSH',
    ],
)
def test_a_path_with_a_secret_is_refused_without_it(path):
    with pytest.raises(InputError, match='credentials are taken from the environment') as refused:
        filesystem.find(path)
    assert 'HUSH' not in str(refused.value)


def test_an_object_of_known_size_is_opened_without_a_request(requests):
    filesystem.write_bytes('gs://bucket/a', b'abc')
    with filesystem.open_binary('gs://bucket/a', 3) as stream:
        assert stream.seek(-2, io.SEEK_END) == 1
        assert stream.read() == b'bc'
    assert requests() == {'put': 1, 'read': 1}
    filesystem.write_bytes('gs://bucket/large', b'x' * 300_000)
    before = requests()['read']
    with filesystem.open_binary('gs://bucket/large', 300_000, 150_000) as stream:
        for start, size in [(100_000, 10), (200_000, 50_000), (100_010, 149_990)]:
            stream.seek(start)
            assert len(stream.read(size)) == size
    assert requests()['read'] == before + 1
    for size in (2, 70_000):
        with filesystem.open_binary('gs://bucket/a', size) as stream:
            stream.seek(size - 1)
            with pytest.raises(InputError, match=f'has 3 bytes but had {size} before'):
                stream.read()
    with filesystem.open_binary('gs://bucket/none', 3) as stream:
        with pytest.raises(FileNotFoundError):
            stream.read(1)
