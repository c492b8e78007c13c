"""Whole jobs whose inputs and outputs are objects of S3, as moto serves it: the bytes are those of files."""

import collections
import json
import time

import pytest
from generated_text import english_lines
from jobs import refuse, succeed, write
from object_store import KEYS, Proxy, Store

from pipelines.engines.progress import WorkDone, listening
from tokcore.reading.dataset import open_dataset

pytest.importorskip('obstore')
pytestmark = pytest.mark.slow

OPTIONS = ['--name', 'd', '--vocab-size', 400, '--shards', 3]
RECORDS = 'tokbeam.run.json'


@pytest.fixture(autouse=True)
def environment(store, monkeypatch):
    store.use(monkeypatch)


@pytest.fixture(scope='module')
def inputs(store, tmp_path_factory):
    """Options that name pairs as files, and the same ones as objects; the targets are compressed."""
    folder = tmp_path_factory.mktemp('inputs')
    local, stored = [], []
    sources, targets = english_lines(1500, 1), english_lines(1500, 2)
    for option, name, lines in [('--source', 's.txt', sources), ('--target', 't.txt.gz', targets)]:
        path = write(folder / name, ''.join(f'{line}\n' for line in lines).encode())
        local += [option, path]
        stored += [option, store.upload(path, f'in/{name}').replace('.txt', '*')]
    return local, stored


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob('*')
        if path.is_file()
    }


def without_records(found):
    """Files without what is remembered of a run, which tells paths and times."""
    return {name: data for name, data in found.items() if not name.endswith(RECORDS)}


@pytest.fixture(scope='module')
def built(inputs, tmp_path_factory):
    """The files of `build` by scheme, made once each."""
    made = {}

    def build(scheme):
        if scheme not in made:
            folder = tmp_path_factory.mktemp(scheme) / 'out'
            succeed('build', *inputs[0], *OPTIONS, '--scheme', scheme, '--output', folder)
            made[scheme] = without_records(files(folder))
        return made[scheme]

    return build


@pytest.mark.parametrize(
    ('scheme', 'options'),
    [
        ('subword', ['--shuffle=files', '--workers=2']),
        ('bpe', ['--shuffle=files', '--workers=1', '--work=s3://corpora/work']),
        ('wordpiece', ['--shuffle=engine', '--workers=1']),
    ],
)
def test_a_build_gives_the_bytes_of_files(store, inputs, built, scheme, options):
    name = f'{scheme}{options[0][-5:]}'
    said = succeed(
        'build',
        *inputs[1],
        *OPTIONS,
        *options,
        '--scheme',
        scheme,
        '--output',
        f's3://corpora/{name}',
    )
    found = store.files(name)
    assert without_records(found) == built(scheme)
    assert store.files('work') == {}
    for key in KEYS:
        assert key not in said
        assert not any(key.encode() in data for data in found.values())


def test_a_second_run_does_nothing_and_another_replaces_nothing_unasked(store, inputs, built):
    line = ['build', *inputs[1], *OPTIONS, '--output', 's3://corpora/again']
    succeed(*line)
    before = store.files('again')
    assert 'already done' in succeed(*line)
    after = store.files('again')
    assert without_records(after) == without_records(before) == built('subword')
    assert '--overwrite' in refuse(*line, '--seed', 7)
    assert store.files('again') == after
    succeed(*line, '--seed', 7, '--overwrite')
    assert store.files('again')['tokbeam.json'] != before['tokbeam.json']
    assert set(store.files('again')) == set(before)


def test_a_dataset_on_a_store_is_read_for_training(store, inputs, built, tmp_path):
    succeed('build', *inputs[1], *OPTIONS, '--output', 's3://corpora/read')
    dataset = open_dataset('s3://corpora/read', cache=tmp_path)
    rows = [row['targets'].tolist() for row in dataset.examples('train')]
    assert len(rows) == dataset.splits['train'].examples > 0
    assert dataset['train'][-1]['targets'].tolist() == rows[-1]


def test_worker_processes_tell_how_far_they_are(store, inputs, tmp_path, monkeypatch):
    job = ['--name', 'd', '--scheme', 'byte', '--shards', 3]
    flags = ['--direct_running_mode=multi_processing', '--direct_num_workers=2']
    events = []
    with Proxy(store.url).serving() as proxy, listening(events.append):
        Store(proxy.url).use(monkeypatch)
        began = time.monotonic()
        succeed('build', *inputs[1], *job, '--output', 's3://corpora/told', *flags)
        seconds = time.monotonic() - began
    last = {(each.stage, each.work): each for each in events if isinstance(each, WorkDone)}
    assert {('encode', 'reading'), ('write shards', 'merging')} <= last.keys()
    assert all(each.done == each.total > 0 for each in last.values())
    puts = collections.Counter(
        path for method, path in proxy.log if method == 'PUT' and '/progress/' in path
    )
    # One as each of two works begins, one with what there is in all, and one every five seconds.
    assert 0 < max(puts.values()) <= 3 + seconds / 5
    succeed('build', *inputs[0], *job, '--output', tmp_path / 'out')
    assert without_records(store.files('told')) == without_records(files(tmp_path / 'out'))


def test_a_count_takes_few_requests(store, inputs):
    succeed('count', '--text', inputs[1][1], '--output', 's3://corpora/few', '--item-size=20KiB')
    found = store.files('few')
    record, manifest = json.loads(found[RECORDS]), json.loads(found['tokbeam.json'])
    items = manifest['inputs'][0]['bytes'] // 20_480 + 1
    requests = record['requests']
    assert requests['put'] + requests.get('copy', 0) <= 3 * len(manifest['files'])
    assert requests['read'] <= 3 * items + 10
    assert sum(requests.get(kind, 0) for kind in ('look', 'list', 'delete')) <= 20


def test_a_build_takes_three_requests_for_each_range_and_each_run(store, inputs):
    text = ['--text', inputs[1][1], '--name', 'd', '--scheme', 'byte', '--shards', 2]
    work = ['--work', 's3://corpora/few-work', '--shuffle', 'files']
    items, requests = [], []
    for size in (20_480, 5_120):
        output = f'few-build{size}'
        succeed('build', *text, *work, '--item-size', size, '--output', f's3://corpora/{output}')
        found = store.files(output)
        [read] = json.loads(found['tokbeam.json'])['inputs']
        items.append(-(-read['bytes'] // size))
        requests.append(sum(json.loads(found[RECORDS])['requests'].values()))
    ranges_and_runs = [2 * number for number in items]
    assert requests[0] <= 3 * ranges_and_runs[0] + 60
    assert requests[1] - requests[0] <= 3 * (ranges_and_runs[1] - ranges_and_runs[0])


@pytest.mark.parametrize(
    ('line', 'reason'),
    [
        (['--text', 's3://no-such-bucket/a*', '--output', 'o'], 'there is no bucket s3://no-such'),
        (['--text', 's3://corpora/none', '--output', 'o'], 's3://corpora/none does not exist'),
        (['--text', 'IN', '--output', 's3://no-such-bucket/o'], 'there is no bucket s3://no-such'),
    ],
)
def test_what_is_wrong_is_told_before_any_work(inputs, tmp_path, monkeypatch, line, reason):
    monkeypatch.chdir(tmp_path)
    said = refuse('count', *(str(inputs[0][1]) if each == 'IN' else each for each in line))
    assert reason in said
    assert not (tmp_path / 'o').exists()
