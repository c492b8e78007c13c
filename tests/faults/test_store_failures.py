"""A store that fails, delays and cuts answers, runs that are killed there, and two runs at once."""

import os
import random
import re
import subprocess
import sys

import pytest
from generated_text import english_lines
from jobs import refuse, succeed, write
from object_store import Proxy, Store

from tokcore import object_stores
from tokcore.object_stores import bucket_of

pytest.importorskip('obstore')
pytestmark = pytest.mark.slow
corpora = pytest.mark.corpora

RECORDS = 'tokbeam.run.json'


@pytest.fixture(scope='module')
def line(store, tmp_path_factory):
    """A command without its output."""
    text = ''.join(f'{line}\n' for line in english_lines(800, 1)).encode()
    path = write(tmp_path_factory.mktemp('inputs') / 't.txt', text)
    options = ['--name', 'd', '--scheme', 'byte', '--shards', '2', '--item-size', '10KiB']
    return ['build', '--text', store.upload(path, 'in/t.txt'), *options]


@pytest.fixture(scope='module')
def whole(store, line):
    """The files of a run that nothing disturbs."""
    with pytest.MonkeyPatch.context() as patch:
        store.use(patch)
        succeed(*line, '--output', 's3://corpora/whole')
    return results(store, 'whole')


def results(store, prefix):
    files = store.files(prefix)
    return {name: data for name, data in files.items() if not name.endswith(RECORDS)}


def process(line, url):
    command = [sys.executable, '-m', 'pipelines', *line]
    environment = {**os.environ, **Store(url).environment()}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def test_a_store_that_fails_now_and_then_changes_nothing(store, line, whole, monkeypatch):
    with Proxy(store.url, fails=10, delays=25, cuts=25, seed=5).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        succeed(*line, '--output', 's3://corpora/faulty')
        assert {'fail', 'delay', 'cut'} <= set(proxy.broken)
    assert results(store, 'faulty') == whole


@pytest.mark.parametrize(
    'kills',
    [[12, 25, 40], pytest.param(random.Random(35).choices(range(1, 60), k=30), marks=corpora)],
    ids=len,
)
def test_a_killed_run_is_taken_up_and_leaves_nothing(store, line, whole, kills):
    line = [*line, '--output', f's3://corpora/killed{len(kills)}']
    for requests in kills:
        with Proxy(store.url).serving() as proxy:
            proxy.stops_at = requests
            running = process(line, proxy.url)
            while running.poll() is None and not proxy.reached.wait(0.1):
                pass
            running.kill()
            running.communicate()
    with Proxy(store.url).serving() as proxy:
        ended = process(line, proxy.url)
        said = ended.communicate()[1]
    assert ended.returncode == 0, said
    assert results(store, f'killed{len(kills)}') == whole


@pytest.mark.parametrize(
    'number', [0, *(pytest.param(number, marks=corpora) for number in range(1, 20))]
)
def test_of_two_runs_at_once_each_ends_well_or_is_refused(store, line, whole, number):
    line = [*line, '--output', f's3://corpora/pair{number}']
    running = [process(line, store.url) for _ in range(2)]
    said = [each.communicate()[1] for each in running]
    statuses = [each.returncode for each in running]
    assert 0 in statuses and set(statuses) <= {0, 2}, said
    for status, text in zip(statuses, said, strict=True):
        assert status == 0 or re.search('is being written by process|was taken over', text)
    assert results(store, f'pair{number}') == whole


def test_a_store_that_does_not_answer_is_one_sentence(line, monkeypatch):
    monkeypatch.setattr(object_stores, 'RETRY_SECONDS', 0.5)
    Store('http://127.0.0.1:1').use(monkeypatch)
    said = refuse(*line, '--output', 's3://corpora/none')
    assert 'gives no whole answer, after trying for up to' in said


def test_every_kind_of_request_is_repeated(store, monkeypatch):
    """Of uploads in parts only failures are: an answer of theirs that is cut off ends the job."""
    data = os.urandom(3 << 20)
    for faults in ({'fails': 4}, {'cuts': 6}):
        with Proxy(store.url, **faults, seed=1).serving() as proxy:
            Store(proxy.url).use(monkeypatch)
            bucket, key = bucket_of('s3://corpora/one')
            for _ in range(5):
                bucket.put(key, data)
                assert bucket.read(key, 5, len(data)) == data[5:]
                bucket.copy(key, f'{key}/copy')
                assert bucket.look(f'{key}/copy').size == len(data)
                assert [each.key for each in bucket.list_all(key)] == [f'{key}/copy']
                bucket.delete([key, f'{key}/copy'])
                assert not bucket.has_below(key)
            assert len(proxy.broken) > 3
