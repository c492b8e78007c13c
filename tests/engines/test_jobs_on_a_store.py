"""Whole jobs whose inputs and outputs are objects of S3, as moto serves it: the bytes are those of files."""

import collections
import json
import os
import re
import resource
import subprocess
import sys
import time

import pytest
from generated_text import english_lines
from jobs import limited_command, refuse, succeed, write
from object_store import KEYS, Proxy, Store

from pipelines.engines.progress import WorkDone, listening
from tokcore import object_stores
from tokcore.corpus.corpus import ITEM_BYTES
from tokcore.object_stores import PART_BYTES, bucket_of, counted_requests, requests_since
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
        ('subword', ['@shuffle=files', '--workers=2']),
        ('bpe', ['@shuffle=files', '--workers=1', '--work=s3://corpora/work']),
        ('wordpiece', ['@shuffle=engine', '--workers=1']),
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


def test_each_step_reads_and_writes_objects(store, inputs, built):
    """A job file, counts and vocabularies are objects too; what is made is what `build` makes."""
    job = b"""
        [[train]]
        format = "bitext"
        paths = { source = "s.txt", target = "t*.gz" }
    """
    store.client().put_object(Bucket='corpora', Key='in/job.toml', Body=job)
    place, job = 's3://corpora/steps', 's3://corpora/in/job.toml'
    vocabularies = []
    for side in ('inputs', 'targets'):
        counts, vocabulary = f'{place}/counts.{side}', f'{place}/vocab.d.400.subwords.{side}'
        succeed('count', job, '--side', side, '--output', counts)
        succeed('vocab', '--counts', counts, '--vocab-size', 400, '--output', vocabulary)
        vocabularies.append(vocabulary)
    succeed(
        'encode',
        job,
        '--vocab',
        *vocabularies,
        '--name',
        'd',
        '--shards',
        3,
        '--output',
        f'{place}/out',
    )
    found = {name.removeprefix('out/'): data for name, data in store.files('steps').items()}
    expected = {name: data for name, data in built('subword').items() if name != 'tokbeam.json'}
    assert expected.items() <= found.items()
    succeed('verify', f'{place}/out')
    copies = {name: data for name, data in found.items() if name.startswith('tokenizer.')}
    assert copies == {
        f'tokenizer.{side}/vocab.d.400.subwords.{side}': found[f'vocab.d.400.subwords.{side}']
        for side in ('inputs', 'targets')
    }
    again = ['--vocab', f'{place}/out', '--name', 'd', '--shards', 3, '--output', f'{place}/again']
    succeed('encode', job, *again)
    assert without_records(store.files('steps/again')) == without_records(store.files('steps/out'))


def test_a_dataset_on_a_store_is_read_for_training(store, inputs, built, tmp_path):
    succeed('build', *inputs[1], *OPTIONS, '--output', 's3://corpora/read')
    dataset = open_dataset('s3://corpora/read', cache=tmp_path)
    rows = [row['targets'].tolist() for row in dataset.examples('train')]
    assert len(rows) == dataset.splits['train'].examples > 0
    assert dataset['train'][-1]['targets'].tolist() == rows[-1]


def test_worker_processes_tell_how_far_they_are(store, inputs, tmp_path, monkeypatch):
    job = ['--name', 'd', '--scheme', 'byte', '--shards', 3]
    flags = ['--direct_running_mode=multi_processing', '--direct_num_workers=1']
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
    succeed('count', '--text', inputs[1][1], '--output', 's3://corpora/few', '@item-size=20KiB')
    found = store.files('few')
    record, manifest = json.loads(found[RECORDS]), json.loads(found['tokbeam.json'])
    items = manifest['inputs'][0]['bytes'] // 20_480 + 1
    requests = record['requests']
    assert requests['put'] + requests.get('copy', 0) <= 3 * len(manifest['files'])
    assert requests['read'] <= 3 * items + 10
    assert sum(requests.get(kind, 0) for kind in ('look', 'list', 'delete')) <= 20


def test_a_build_takes_three_requests_for_each_range_and_each_run(store, inputs):
    text = ['--text', inputs[1][1], '--name', 'd', '--scheme', 'byte', '--shards', 2]
    work = ['--work', 's3://corpora/few-work', '@shuffle', 'files']
    items, requests = [], []
    for size in (20_480, 5_120):
        output = f'few-build{size}'
        succeed('build', *text, *work, '@item-size', size, '--output', f's3://corpora/{output}')
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


def test_keys_come_from_options_or_a_profile(store, tmp_path, monkeypatch):
    pytest.importorskip('boto3')
    address, (key, secret) = store.url, KEYS
    for name in store.environment():
        monkeypatch.delenv(name)
    text = ['--text', write(tmp_path / 't.txt', b'a few words\n')]
    profile = f'[p]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n'.encode()
    with monkeypatch.context() as patch:
        file = write(tmp_path / 'credentials', profile)
        patch.setenv('AWS_SHARED_CREDENTIALS_FILE', str(file))
        patch.setenv('AWS_PROFILE', 'p')
        patch.setenv('AWS_ENDPOINT_URL', address)
        succeed('count', *text, '--output', 's3://corpora/keys/0')
    flags = ['--s3_endpoint_url', address, '--s3_access_key_id', key]
    flags += ['--s3_secret_access_key', secret]
    succeed('count', *text, '--output', 's3://corpora/keys/1', *flags)
    found = store.files('keys')
    assert found['0/tokbeam.json'] == found['1/tokbeam.json']


def test_a_dry_run_reads_with_the_options_of_the_store(store, tmp_path, monkeypatch):
    for name in store.environment():
        monkeypatch.delenv(name)
    object_stores._bucket.cache_clear()
    text = store.upload(write(tmp_path / 't.txt', b'a few words\n'), 'dry/t.txt')
    encode = ['encode', '--scheme', 'byte', '--text', text, '--name', 'd', '--dry-run']
    encode += ['--s3_endpoint_url', store.url, '--s3_access_key_id', KEYS[0]]
    succeed(*encode, '--s3_secret_access_key', KEYS[1], '--output', tmp_path / 'out')


def test_requests_are_counted_as_the_store_gets_them(store, monkeypatch):
    data = os.urandom(2 * PART_BYTES + 1)
    with Proxy(store.url).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        bucket, key = bucket_of('s3://corpora/counted')
        before = counted_requests()
        for size in (0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, len(data)):
            with bucket.writer(f'{key}/{size}') as stream:
                stream.write(data[:size])
        bucket.copy(f'{key}/1', f'{key}/2')
        assert len(bucket.list_all(key)) == len(bucket.list_one_level(key)[1]) == 7
        assert bucket.read(f'{key}/1', 0, 9) == data[:1]
        assert bucket.look(f'{key}/none') is None
        bucket.delete([each.key for each in bucket.list_all(key)])
    assert sum(requests_since(before).values()) == len(proxy.log)
    assert len(proxy.checksums) > 6 and all(proxy.checksums)


def test_words_of_rounds_are_on_this_machine_and_that_is_told(store, inputs, tmp_path):
    learn = ['vocab', '--text', inputs[1][1], '--scheme', 'bpe', '--merges', 50]
    succeed(*learn, '--output', tmp_path / 'memory')
    # So much is the process itself.
    said = succeed(*learn, '--memory', '350MiB', '--output', 's3://corpora/rounds/vocab')
    assert re.search('words are in files of this machine, in .*tokbeam-words-.*, of at most', said)
    assert store.files('rounds')['vocab'] == (tmp_path / 'memory').read_bytes()


MOST_FILE_BYTES = 1 << 20
MORE_MEMORY = 200_000_000

MEASURING = """
import os, sys
pid = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, used = os.wait4(pid, 0)
print(used.ru_maxrss << 10)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_bytes(arguments, environment):
    """Returns the most memory that a process has held; its parent has little, of which it has a copy."""
    command = [sys.executable, '-c', MEASURING, *arguments]
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return int(ended.stdout)


@pytest.mark.corpora
def test_a_large_build_takes_no_disk_little_more_memory_and_few_requests(store, tmp_path):
    """100 MB of text; no file of this machine may exceed 1 MiB, and none is left."""
    lines, shards = english_lines(20_000, 3), 10
    text = ''.join(f'{line}\n' for line in lines).encode()
    text *= -(-100_000_000 // len(text))
    path = write(tmp_path / 'large.txt', text)
    key = store.upload(path, 'in/large.txt')
    options = ['--name', 'd', '--vocab-size', 2000, '--shards', shards, '--memory', '2GiB']
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    peaks = []
    with Proxy(store.url).serving() as proxy:
        environment = {**os.environ, **Store(proxy.url).environment(), 'TMPDIR': str(temporary)}
        for limits, place, output in [
            ({}, path, tmp_path / 'out'),
            ({resource.RLIMIT_FSIZE: MOST_FILE_BYTES}, key, 's3://corpora/large'),
        ]:
            line = ['build', '--text', place, *options, '--output', output]
            peaks.append(peak_bytes(limited_command(limits, *line)[1:], environment))
    assert without_records(store.files('large')) == without_records(files(tmp_path / 'out'))
    assert not [*temporary.rglob('*')]
    assert peaks[1] <= peaks[0] + MORE_MEMORY
    written = {path.partition('?')[0] for method, path in proxy.log if method == 'PUT'}
    parts = sum('partNumber' in path for _, path in proxy.log)
    runs = sum(bool(re.search(r'/run-\d+-\d+$', path)) for path in written)
    ranges = 2 * -(-len(text) // ITEM_BYTES)
    assert runs > 1 and parts > 10
    assert len(proxy.log) - parts <= 3 * (ranges + len(written)) + 2 * runs * shards + 60
