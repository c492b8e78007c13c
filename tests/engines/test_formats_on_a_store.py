"""Every input format, and archives, whose files are objects of S3: the bytes are those of files."""

import shutil
from pathlib import Path

import pytest
from dataset_files import files_of, lines_of
from jobs import succeed, write
from test_every_format import BUILD, FORMATS, PAIRS, lines

pytest.importorskip('obstore')
pytestmark = pytest.mark.slow

SCHEMES = ('subword', 'wordpiece', 'bpe')


@pytest.fixture(autouse=True)
def environment(store, monkeypatch):
    store.use(monkeypatch)


def download(store, key, folder: Path) -> Path:
    for name, data in store.files(key).items():
        write(folder / name, data)
    return folder


def words(entry, role_to_path, other_paths):
    words = []
    for role, path in role_to_path.items():
        words += ['--' + role.replace('_', '-'), path]
    for name, value in entry.options.items():
        if isinstance(value, Path):
            value = other_paths[value.name]
        words += ['--' + name, ','.join(map(str, value)) if isinstance(value, list) else value]
    return words


@pytest.mark.parametrize('number, name', [*enumerate(FORMATS)])
def test_a_format(store, tmp_path, number, name):
    entry, scheme = FORMATS[name], SCHEMES[number % 3]
    options = [*BUILD[:-1], 400 if scheme == 'bpe' else 90, '--scheme', scheme]
    local, stored, others, stored_others = {}, {}, {}, {}
    for role, content in entry.store(PAIRS).items():
        local[role] = write(tmp_path / f'in.{role}', content)
        stored[role] = store.upload(local[role], f'{name}/in.{role}')
    for other, content in entry.other_files.items():
        others[other] = write(tmp_path / other, content)
        stored_others[other] = store.upload(others[other], f'{name}/{other}')
    succeed('build', *words(entry, local, others), *options, '--output', tmp_path / 'out')
    output = f's3://corpora/{name}-out'
    succeed('build', *words(entry, stored, stored_others), *options, '--output', output)
    there = download(store, f'{name}-out', tmp_path / 'stored')
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
    there = download(store, 'members', tmp_path / 'stored')
    assert files_of(there) == files_of(tmp_path / 'out')
