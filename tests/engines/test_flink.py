"""The main job on Flink's mini-cluster, with worker processes: every byte as from the local run.

Needs Java and Maven, and on a machine's first run some minutes to fetch Beam's Flink runner.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import warnings

import pytest
import tokenizer_files
from dataset_files import manifest_of, read_shards, shards_and_vocabularies
from deadlines import succeed_within
from generated_text import as_bitext, chinese_lines, english_lines
from jobs import succeed, write
from sizes import command_of
from worker_processes import BOOT, DEPLOY_FLINK, worker_environment

pytestmark = pytest.mark.slow

PREPARE_SECONDS = 1800
BUILD_SECONDS = 900
LINES = 34_000
CHINESE_EVERY = 20


@pytest.fixture(scope='module')
def job_server_jar():
    """The job server that `deploy/flink/prepare` makes; skips, loudly, where it cannot be made."""
    missing = [name for name in ('java', 'mvn') if shutil.which(name) is None]
    if missing:
        _skip(f'{" and ".join(missing)} not on the PATH')
    prepared = subprocess.run(
        [sys.executable, DEPLOY_FLINK / 'prepare'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PREPARE_SECONDS,
    )
    if prepared.returncode != 0:
        if os.environ.get('CI') == 'true':
            pytest.fail(prepared.stderr)
        _skip(prepared.stderr.strip().splitlines()[-1])
    return prepared.stdout.strip()


def _skip(reason: str):
    warnings.warn(f'NOTHING WAS TESTED ON FLINK: {reason}', stacklevel=2)
    pytest.skip(reason)


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    """Two aligned files of some 5 MB together, with a Chinese line here and there."""
    targets = english_lines(LINES, seed=2)
    targets[::CHINESE_EVERY] = chinese_lines(len(targets[::CHINESE_EVERY]), seed=3)
    pairs = list(itertools.zip_longest(english_lines(LINES, seed=1), targets))
    folder = tmp_path_factory.mktemp('corpus')
    source, target = as_bitext(pairs)
    assert len(source) + len(target) > 4_500_000
    return ['--source', write(folder / 'a.en', source), '--target', write(folder / 'a.zh', target)]


def on_flink(job_server_jar, arguments, folder, log, **environment):
    """Runs a build on Flink, into a folder; returns what it said."""
    command = [
        *command_of(*arguments, '--output', folder, '@item-size', '512KiB'),
        '--runner=FlinkRunner',
        '--flink_master=[local]',
        f'--flink_job_server_jar={job_server_jar}',
        '--parallelism=2',
        '--environment_type=PROCESS',
        f'--environment_options=process_command={BOOT}',
    ]
    return succeed_within(BUILD_SECONDS, command, log, {**worker_environment(), **environment})


def test_build_gives_the_same_bytes(job_server_jar, corpus, tmp_path):
    arguments = [
        *('build', *corpus, '--name', 'small', '--shards', 3, '--shared-vocab'),
        *('--vocab-size', 4000, '--min-count-range', '23:23'),
    ]
    local, flink = tmp_path / 'local', tmp_path / 'flink'
    succeed(*arguments, '--output', local)
    on_flink(job_server_jar, [*arguments, '--learner', 'beam'], flink, tmp_path / 'log')
    assert shards_and_vocabularies(flink) == shards_and_vocabularies(local)
    read_shards(flink)
    assert manifest_of(flink)['root'] == manifest_of(local)['root']


@pytest.mark.corpora
@pytest.mark.parametrize(
    ('learner', 'lines', 'asked'),
    [
        ('memory', LINES, ['--vocab-size', 2000]),
        # Each round of a learner on Beam is some jobs, which take seconds to begin.
        ('beam', 500, ['--shared-vocab', '--vocab-size', 800, '--min-count-range', '5:6']),
    ],
)
def test_a_store_gives_the_same_bytes(
    job_server_jar, corpus, store, tmp_path, learner, lines, asked
):
    """Inputs, output and the work folder are objects of S3."""
    pytest.importorskip('obstore')
    arguments = ['build', '--name', 'small', '--shards', 3, *asked]
    local, key = tmp_path / 'local', f'flink-{learner}'
    here, stored = [], []
    for option, path in zip(corpus[::2], corpus[1::2], strict=True):
        kept = path.read_bytes().splitlines(keepends=True)[:lines]
        here += [option, write(tmp_path / path.name, b''.join(kept))]
        stored += [option, store.upload(here[-1], f'{key}-in/{path.name}')]
    succeed(*arguments, *here, '--output', local)
    arguments += [*stored, '--learner', learner, '--work', f's3://corpora/{key}-work']
    arguments += ['--progress', 'json']
    output = f's3://corpora/{key}'
    said = on_flink(job_server_jar, arguments, output, tmp_path / 'log', **store.environment())
    there = store.download(key, tmp_path / 'stored')
    assert shards_and_vocabularies(there) == shards_and_vocabularies(local)
    assert manifest_of(there)['root'] == manifest_of(local)['root']
    assert store.files(f'{key}-work') == {}
    if learner == 'memory':  # else it is over before it can be told
        events = [json.loads(line) for line in said.splitlines() if line.startswith('{')]
        works = [each for each in events if each['event'] == 'work']
        assert {each['work'] for each in works if 0 < each['done'] < each['total']}


# Each of them takes as long as all the rest here.
SCHEMES = [
    pytest.param(
        'wordpiece', ('--vocab-size', 2000), (), id='wordpiece',
        marks=pytest.mark.corpora,
    ),
    pytest.param(
        'bpe', ('--vocab-size', 1000), ('--learner', 'beam'), id='bpe',
        marks=pytest.mark.corpora,
    ),
    pytest.param(
        'bpe', ('--preset', 'subword-nmt', '--merges', 500), ('--learner', 'beam'), id='codes',
        marks=pytest.mark.corpora,
    ),
    pytest.param(
        'unigram', ('--vocab-size', 2000), ('--learner', 'beam'), id='unigram',
        marks=pytest.mark.corpora,
    ),
    pytest.param('word', ('--vocab-size', 2000), (), id='word', marks=pytest.mark.corpora),
    pytest.param(
        'byte', ('--output-format', 'packed', '--pack', 128), (), id='packed rows',
        marks=pytest.mark.corpora,
    ),
]  # fmt: skip


@pytest.mark.parametrize(('scheme', 'asked', 'there'), SCHEMES)
def test_other_schemes_give_the_same_bytes(job_server_jar, corpus, tmp_path, scheme, asked, there):
    arguments = ['build', *corpus[:2], '--name', 'small', '--scheme', scheme, *asked]
    arguments[1] = '--text'
    local, flink = tmp_path / 'local', tmp_path / 'flink'
    succeed(*arguments, '--output', local)
    on_flink(job_server_jar, [*arguments, *there], flink, tmp_path / 'log')
    assert shards_and_vocabularies(flink) == shards_and_vocabularies(local)
    if 'packed' not in asked:
        read_shards(flink)


@pytest.mark.corpora  # as long as those above
@pytest.mark.files
@pytest.mark.parametrize('model', ['llama3', 'gemma3'])
def test_files_of_models_give_the_same_bytes(job_server_jar, corpus, tmp_path, model):
    try:
        file = tokenizer_files.fetched(tokenizer_files.TOKENIZER_JSON[model])
    except LookupError as error:
        pytest.skip(str(error))
    vocabulary = write(tmp_path / 'tokenizer.json', file)
    arguments = ['encode', *corpus, '--name', 'small', '--shards', 3, '--vocab', vocabulary]
    local, flink = tmp_path / 'local', tmp_path / 'flink'
    succeed(*arguments, '--output', local)
    on_flink(job_server_jar, arguments, flink, tmp_path / 'log')
    assert shards_and_vocabularies(flink) == shards_and_vocabularies(local)
    assert manifest_of(flink)['root'] == manifest_of(local)['root']
    read_shards(flink)
