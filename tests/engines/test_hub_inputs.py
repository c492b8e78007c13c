"""Jobs whose inputs and vocabularies are on the Hugging Face Hub, by its real client."""

import dataclasses
from pathlib import Path

import pytest
from dataset_files import files_of, manifest_of
from hub_server import Repository, commit_of, connect_hub, forget_hub, hub_server, use_hub
from jobs import refuse, succeed, succeed_elsewhere, write

from pipelines.artifacts.manifest import read_manifest
from pipelines.cli.inputs import resolve_corpus
from pipelines.cli.parser import parse_command
from pipelines.engines.engine import Engine
from pipelines.engines.runners import Runner
from pipelines.options.job import SPLITS
from tokcore.records.manifest import root_hash

TEXTS = {
    f'data/{name}.txt': ''.join(f'the {number} words of {name}\n' for number in range(60)).encode()
    for name in 'ab'
}
VOCABULARY = '\n'.join(
    ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'the', 'words', 'of', 'a', 'b']
)
TOKENIZER = {
    'vocab.txt': f'{VOCABULARY}\n'.encode(),
    'config.json': b'{"model_type": "bert"}',
    'README.md': b'---\nlicense: mit\n---\n',
}
PATTERN = 'hf://datasets/me/texts/data/*.txt'
FIRST = f'hf://datasets/me/texts@{commit_of(0)}/data'
BUILD = ['--name', 'hub', '--shards', 2, '--scheme', 'byte']


@pytest.fixture
def server(tmp_path, monkeypatch):
    repositories = {
        'datasets/me/texts': Repository([TEXTS]),
        'models/me/model': Repository([TOKENIZER]),
    }
    with hub_server(repositories) as running:
        use_hub(running.address, tmp_path / 'cache', monkeypatch)
        yield running
    forget_hub()


def shards_of(folder):
    return {name: data for name, data in files_of(folder).items() if '-of-' in name}


def test_an_address_is_as_good_as_files_and_a_job_file_names_the_commit(
    server, tmp_path, monkeypatch, capsys
):
    paths = [write(tmp_path / Path(name).name, text) for name, text in TEXTS.items()]
    succeed('build', '--text', *paths, *BUILD, '--output', tmp_path / 'local')
    job = ['build', '--text', PATTERN, *BUILD, '--output', tmp_path / 'out']
    capsys.readouterr()
    succeed(*job, '--print-job')
    text = capsys.readouterr().out
    assert f'"{FIRST}/*.txt"' in text and server.paths('resolve') == []
    succeed(*job, '--dry-run')
    assert capsys.readouterr().out.splitlines() == [
        f'{FIRST}/{name}.txt is to be fetched' for name in 'ab'
    ]
    said = succeed(*job)
    assert f'fetched {FIRST}/a.txt and 1 more into ' in said
    assert shards_of(tmp_path / 'out') == shards_of(tmp_path / 'local')
    names = [record['name'] for record in manifest_of(tmp_path / 'out')['inputs']]
    assert names == [f'{FIRST}/a.txt', f'{FIRST}/b.txt']
    assert 'already done' in succeed(*job) and len(server.paths('resolve')) == 2

    # The branch goes on, and nothing is reached any more.
    server.repositories['datasets/me/texts'].commits.append({'data/a.txt': b'other\n'})
    connect_hub('http://127.0.0.1:9', monkeypatch)
    forget_hub()
    path = write(tmp_path / 'job.toml', text.encode())
    succeed('build', path, '--output', tmp_path / 'later')
    assert (
        files_of(tmp_path / 'later')['tokbeam.json'] == files_of(tmp_path / 'out')['tokbeam.json']
    )
    connect_hub(server.address, monkeypatch)
    forget_hub()
    said = refuse(*job)
    assert 'other input files' in said and commit_of(0) in said and commit_of(1) in said


def test_the_commit_is_part_of_the_root(server, tmp_path):
    succeed('build', '--text', PATTERN, *BUILD, '--output', tmp_path / 'out')
    succeed('verify', tmp_path / 'out')
    manifest = read_manifest(str(tmp_path / 'out' / 'tokbeam.json'))
    assert manifest.root == root_hash(manifest)
    first, *others = manifest.inputs
    assert commit_of(0) in first.origin
    other = dataclasses.replace(first, origin=first.origin.replace(commit_of(0), commit_of(1)))
    assert root_hash(dataclasses.replace(manifest, inputs=(other, *others))) != manifest.root


def test_a_tokenizer_comes_from_its_repository(server, tmp_path):
    text = write(tmp_path / 'a.txt', TEXTS['data/a.txt'])
    for name, data in TOKENIZER.items():
        write(tmp_path / 'model' / name, data)
    encode = ['encode', '--text', text, '--name', 'bert', '--shards', 1, '--max-unknown', '90%']
    encode += ['--scheme', 'wordpiece']
    succeed(*encode, '--vocab', 'hf://me/model', '--output', tmp_path / 'hub')
    succeed(*encode, '--vocab', tmp_path / 'model', '--output', tmp_path / 'local')
    assert shards_of(tmp_path / 'hub') == shards_of(tmp_path / 'local')
    [of_hub] = manifest_of(tmp_path / 'hub')['vocabularies']
    [of_file] = manifest_of(tmp_path / 'local')['vocabularies']
    assert of_hub.pop('origin') == f'hf://me/model@{commit_of(0)}/vocab.txt'
    assert of_hub == of_file and of_hub['licence'] == 'mit'
    roots = [manifest_of(tmp_path / name)['root'] for name in ('hub', 'local')]
    assert roots[0] != roots[1]
    succeed('verify', tmp_path / 'hub')


def test_names_of_labels_come_from_the_hub(server, tmp_path, capsys):
    names = b'bad\ngood\n'
    server.repositories['datasets/me/texts'].commits = [{**TEXTS, 'names.txt': names}]
    labelled = ['--text', write(tmp_path / 'texts', b'a\nb\n')]
    labelled += ['--line-labels', write(tmp_path / 'labels', b'good\nbad\n'), *BUILD]
    succeed(
        'build',
        *labelled,
        '--labels',
        write(tmp_path / 'names', names),
        '--output',
        tmp_path / 'local',
    )
    job = [
        'build',
        *labelled,
        '--labels',
        'hf://datasets/me/texts/names.txt',
        '--output',
        tmp_path / 'out',
    ]
    succeed(*job)
    assert shards_of(tmp_path / 'out') == shards_of(tmp_path / 'local')
    assert manifest_of(tmp_path / 'out')['options']['labels'] == ['bad', 'good']
    capsys.readouterr()
    succeed(*job, '--print-job')
    text = capsys.readouterr().out
    assert f'"hf://datasets/me/texts@{commit_of(0)}/names.txt"' in text
    succeed('build', write(tmp_path / 'job.toml', text.encode()), '--output', tmp_path / 'again')
    assert shards_of(tmp_path / 'again') == shards_of(tmp_path / 'out')
    job[-3] = 'hf://datasets/me/texts/other.txt'
    assert 'the Hub answers 404, Not Found' in refuse(*job)


def test_for_workers_on_other_machines_files_go_to_the_work_folder(server, tmp_path):
    out, work = str(tmp_path / 'out'), f'{tmp_path}/work'
    job = ['build', '--text', PATTERN, *map(str, BUILD), '--output', out]
    for words, folder in [(job, f'{out}/.tokbeam/hub/'), ([*job, '--work', work], f'{work}/hub/')]:
        options, _ = parse_command(words)
        corpus = resolve_corpus(options, SPLITS, out, Engine(Runner('elsewhere'), (), 1))
        paths = [each.file.path for each in corpus.inputs]
        assert len(paths) == 2 and all(path.startswith(folder) for path in paths)
    assert not (tmp_path / 'cache' / 'hub').exists()


def test_nothing_is_written_to_the_hub(server, tmp_path):
    text = write(tmp_path / 'a.txt', b'a\n')
    said = refuse('build', '--text', text, *BUILD, '--output', 'hf://datasets/me/texts/out')
    assert 'is on the Hugging Face Hub, to which nothing is written' in said
    assert server.asked == []


def test_the_variables_of_the_client_hold(server, tmp_path):
    variables = {'HF_ENDPOINT': server.address, 'HF_HOME': str(tmp_path / 'home')}
    job = ['build', '--text', PATTERN, *BUILD, '--output', tmp_path / 'out']
    succeed_elsewhere(*job, **variables)
    assert (tmp_path / 'home' / 'hub' / 'datasets--me--texts').is_dir()
    succeed_elsewhere(*job, '--overwrite', **variables, HF_HUB_OFFLINE='1')
