"""Every input format, and archives, whose files are objects of S3: the bytes are those of files."""

import shutil
from pathlib import Path

import pytest
from dataset_files import files_of, lines_of
from jobs import succeed, write
from object_store import Proxy, Store
from test_every_format import BUILD, FORMATS, PAIRS, lines

pytest.importorskip('obstore')
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def environment(store, monkeypatch):
    store.use(monkeypatch)


def words(entry, role_to_path, other_paths):
    words = []
    for role, path in role_to_path.items():
        words += ['--' + role.replace('_', '-'), path]
    for name, value in entry.options.items():
        if isinstance(value, Path):
            value = other_paths[value.name]
        words += ['--' + name, ','.join(map(str, value)) if isinstance(value, list) else value]
    return words


def inputs_of(store, name, folder, pairs=PAIRS):
    """Options that name pairs in a format as files, and the same ones as objects."""
    entry = FORMATS[name]
    local, stored, others, stored_others = {}, {}, {}, {}
    for role, content in entry.store(pairs).items():
        local[role] = write(folder / f'in.{role}', content)
        stored[role] = store.upload(local[role], f'{name}/in.{role}')
    for other, content in entry.other_files.items():
        others[other] = write(folder / other, content)
        stored_others[other] = store.upload(others[other], f'{name}/{other}')
    return words(entry, local, others), words(entry, stored, stored_others)


def options_of(scheme):
    return [*BUILD[:-1], 400 if scheme == 'bpe' else 90, '--scheme', scheme]


@pytest.mark.corpora
@pytest.mark.parametrize(
    ('scheme', 'name', 'shuffle', 'learner', 'workers'),
    [
        ('subword', 'tsv', 'files', 'memory', 1),
        ('subword', 'tmx', 'engine', 'beam', 2),
        ('subword', 'parquet', 'files', 'memory', 2),
        ('wordpiece', 'bitext', 'engine', 'memory', 1),
        ('wordpiece', 'jsonl', 'files', 'memory', 2),
        ('wordpiece', 'parquet', 'engine', 'memory', 2),
        ('bpe', 'tsv', 'files', 'memory', 2),
        ('bpe', 'sgm', 'engine', 'memory', 1),
        ('bpe', 'parquet', 'files', 'memory', 1),
    ],
)
def test_a_store_with_faults(store, tmp_path, monkeypatch, scheme, name, shuffle, learner, workers):
    """One request in 20 fails, one in 50 takes its time, one answer in 100 is cut off."""
    options = [*options_of(scheme), '@item-size', '1KiB']
    local, stored = inputs_of(store, name, tmp_path, 10 * PAIRS)
    succeed('build', *local, *options, '--output', tmp_path / 'out')
    options += ['@shuffle', shuffle, '--learner', learner, '--workers', workers]
    key = f'faults/{scheme}-{name}'
    with Proxy(store.url, fails=20, delays=50, cuts=100, seed=35).serving() as proxy:
        Store(proxy.url).use(monkeypatch)
        succeed('build', *stored, *options, '--output', f's3://corpora/{key}')
        assert len(proxy.log) > 200
        assert 'fail' in proxy.broken and len(proxy.broken) > 6
    there = store.download(key, tmp_path / 'stored')
    assert files_of(there) == files_of(tmp_path / 'out')


def test_members_of_archives(store, tmp_path):
    for name in ('a', 'b'):
        write(tmp_path / 'in' / f'{name}.txt', lines(f'{name} {source}' for source, _ in PAIRS))
    given, stored = [], []
    for kind, ending in [('gztar', '.tar.gz'), ('tar', '.tar'), ('zip', '.zip')]:
        path = Path(shutil.make_archive(tmp_path / 'archive', kind, tmp_path / 'in'))
        assert path.name.endswith(ending)
        given.append(f'{path}!*.txt')
        stored.append(f'{store.upload(path, path.name)}!*.txt')
    for paths, output in [(given, tmp_path / 'out'), (stored, 's3://corpora/members')]:
        texts = [word for path in paths for word in ('--text', path)]
        succeed('build', *texts, *BUILD, '--output', output)
    assert lines_of(tmp_path / 'out')['examples'] == 6 * len(PAIRS)
    there = store.download('members', tmp_path / 'stored')
    assert files_of(there) == files_of(tmp_path / 'out')
