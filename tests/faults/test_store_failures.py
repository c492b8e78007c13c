"""A store that fails, delays and cuts answers, runs that are killed there, and two runs at once."""

import os
import random
import re
import subprocess
import threading

import pytest
from generated_text import english_lines
from jobs import refuse, run, succeed, write
from learner_runs import FINISHED, learning, write_syllables
from object_store import Proxy, Store
from sizes import program_of, sizes_apart
from test_secrets_of_stores import tattler

from pipelines.files import claims
from tokcore import object_stores
from tokcore.errors import UnreachableError
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
    options = ['--name', 'd', '--scheme', 'byte', '--shards', '2', '@item-size', '10KiB']
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


AFTER_FIVE_MINUTES = (
    'import sys\n'
    'from pipelines.files import claims\n'
    'claims.LEASE_SECONDS = -1\n'
    'from pipelines.cli.main import main\n'
    'sys.exit(main())'
)
"""A command to which the lease of a run that was killed just now has ended."""


def process(line, url, code=AFTER_FIVE_MINUTES):
    words, sizes = sizes_apart(line)
    command = [*program_of(code, sizes), *words]
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


def test_rounds_on_beam_go_on_where_a_kill_ended_them(store, tmp_path, monkeypatch):
    counts = write_syllables(tmp_path / 'counts.txt')
    stored, work = store.upload(counts, 'in/counts.txt'), 's3://corpora/rounds-work'
    line = learning(
        stored, '--learner', 'beam', '--work', work, '--output', 's3://corpora/rounds/v'
    )
    running = process(map(str, line), store.url)
    assert any(': round 2: ' in said for said in running.stderr)
    running.kill()
    running.communicate()
    assert store.files('rounds-work')
    store.use(monkeypatch)
    assert 'wait 5 minutes' in refuse(*line)
    monkeypatch.setattr(claims, 'LEASE_SECONDS', -1)
    assert succeed(*line).count(FINISHED) >= 2
    succeed(*learning(counts, '--output', tmp_path / 'v'))
    assert store.files('rounds')['v'] == (tmp_path / 'v').read_bytes()
    assert store.files('rounds-work') == {}


@pytest.mark.parametrize(
    'number', [0, *(pytest.param(number, marks=corpora) for number in range(1, 20))]
)
def test_of_two_runs_at_once_each_ends_well_or_is_refused(store, line, whole, number):
    line = [*line, '--output', f's3://corpora/pair{number}']
    code = 'import sys; from pipelines.cli.main import main; sys.exit(main())'
    running = [process(line, store.url, code) for _ in range(2)]
    said = [each.communicate()[1] for each in running]
    statuses = [each.returncode for each in running]
    assert 0 in statuses and set(statuses) <= {0, 2}, said
    for status, text in zip(statuses, said, strict=True):
        assert status == 0 or re.search('is being written by process|was taken over', text)
    assert results(store, f'pair{number}') == whole


def test_a_store_that_overwrites_whatever_it_is_asked_is_refused(store, line, monkeypatch):
    line = [*line, '--output', 's3://corpora/overwrites']
    with Proxy(store.url, overwrites=True).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        monkeypatch.setattr(claims, '_checked_stores', set())
        assert 'give another store' in refuse(*line)
        assert results(store, 'overwrites') == {}


def test_a_listing_that_comes_late_changes_no_byte(store, line, monkeypatch):
    command = [*line, '--shards', 5, '--output']
    with Proxy(store.url, lists_late=True).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        succeed(*command, 's3://corpora/late')
        assert 'already done' in succeed(*command, 's3://corpora/late')
    store.use(monkeypatch)
    succeed(*command, 's3://corpora/in-time')
    late = results(store, 'late').items()  # what no listing tells of is not deleted
    late = {name: data for name, data in late if not name.startswith('.tokbeam')}
    assert late == results(store, 'in-time')


def test_a_store_that_does_not_answer_is_one_sentence(line, monkeypatch):
    monkeypatch.setattr(object_stores, 'RETRY_SECONDS', 0.5)
    Store('http://127.0.0.1:1').use(monkeypatch)
    said = refuse(*line, '--output', 's3://corpora/none')
    assert 'gives no whole answer, after trying for up to' in said


def test_a_store_that_has_answered_is_waited_for_longer(store, monkeypatch):
    monkeypatch.setattr(object_stores, 'RETRY_SECONDS', 0.3)
    store.client().put_object(Bucket='corpora', Key='away', Body=b'0123')
    with Proxy(store.url, fails=1).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        bucket, key = bucket_of('s3://corpora/away')
        with pytest.raises(
            UnreachableError, match='s3://corpora/away .* passed in up to 0.3 s; run'
        ):
            bucket.read(key, 0, 4)
        proxy.fails = 0
        assert bucket.read(key, 0, 4) == b'0123'
        proxy.fails, refused = 1, len(proxy.broken)
        back = threading.Timer(1, setattr, [proxy, 'fails', 0])
        back.start()
        assert bucket.read(key, 1, 3) == b'12'
        assert len(proxy.broken) > refused
        back.join()


def test_a_store_that_stays_away_ends_a_job_with_a_sentence_about_it(store, line, monkeypatch):
    """Whoever notices it first."""
    monkeypatch.setattr(object_stores, 'RETRY_SECONDS', 0.3)
    monkeypatch.setattr(object_stores, 'PATIENCE_SECONDS', 0.6)
    with Proxy(store.url).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        for requests in (12, 25, 40):
            monkeypatch.setattr(proxy, 'away_after', len(proxy.log) + requests)
            said = refuse(*line, '--output', f's3://corpora/away{requests}')
            assert re.search('cannot be reached: the store answers 50[03], and', said), said
            assert 'has not passed in up to 0.6 s; run again' in said
            assert 'check the path' not in said
            monkeypatch.setattr(proxy, 'away_after', None)


@pytest.mark.parametrize('place', ['--text', '--output'])
@pytest.mark.parametrize(
    ('status', 'code', 'reason'),
    [
        (403, 'InvalidAccessKeyId', 'refuses it|does not take the credentials'),
        (400, 'AuthorizationHeaderMalformed', 'AWS_REGION'),
    ],
)
def test_wrong_keys_and_regions_are_told_before_any_work(
    tmp_path, monkeypatch, place, status, code, reason
):
    path = write(tmp_path / 't.txt', b'a few words\n')
    places = {'--text': path, '--output': tmp_path / 'out', place: 's3://corpora/x'}
    with tattler(status, code) as url:
        Store(url).use(monkeypatch)
        ended = run('count', *(word for pair in places.items() for word in pair))
    assert ended.status == 2
    [sentence] = ended.said.splitlines()
    assert 's3://corpora' in sentence and re.search(reason, sentence)
    assert [*tmp_path.iterdir()] == [path]


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


def test_a_store_that_goes_away_is_no_finding_of_verify(store, line, whole, monkeypatch):
    monkeypatch.setattr(object_stores, 'RETRY_SECONDS', 0.3)
    monkeypatch.setattr(object_stores, 'PATIENCE_SECONDS', 0.3)
    with Proxy(store.url).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        assert run('verify', 's3://corpora/whole').status == 0
        requests = len(proxy.log)
        for share in (0.3, 0.6, 0.9):
            proxy.away_after = len(proxy.log) + int(share * requests)
            ended = run('verify', 's3://corpora/whole')
            assert ended.status == 2 and 'cannot be reached' in ended.said, ended
            proxy.away_after = None
