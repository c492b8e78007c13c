"""`tokbeam cache` lists and deletes the caches of tokbeam, and nothing that is not one."""

import pathlib

import pytest

from pipelines.cli.main import main
from tokcore.bpe import parsed_files
from tokcore.kernels import jit

DIGEST = '0123456789abcdef'

CACHED = {
    'kernels-by-code/compiled-counting-0123': 10,
    'kernels-by-code/tokcore.one-0123.nbc': 2 << 20,
    'kernels-by-code/of_others_0123/one.nbi': 30,
    f'vocabularies/{DIGEST * 4}-{DIGEST}': 3 << 20,
    'vocabularies/.part-k1ll3d': 5,
    f'datasets/{DIGEST * 2}/tokbeam.json': 100,
    f'datasets/{DIGEST * 2}/vocab/one': 200,
}
STRANGERS = [
    'kernels-of-mine/one', 'vocabularies/mine.txt',
    f'vocabularies/{DIGEST}/one', 'datasets/mine/one', f'datasets/{DIGEST * 2}.tar', 'mine',
]  # fmt: skip


@pytest.fixture
def caches(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    above = tmp_path / 'tokbeam'
    for name, size in {**CACHED, **dict.fromkeys(STRANGERS, 1)}.items():
        path = above / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    linked = tmp_path / 'linked'
    linked.mkdir()
    (linked / 'mine').touch()
    for link in (f'datasets/{"f" * 32}', 'kernels-by-code/link'):
        (above / link).symlink_to(linked)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setattr(jit, 'CACHE_FOLDER', above / 'kernels-by-code')
    monkeypatch.setattr(parsed_files, '_folder', lambda: above / 'vocabularies')
    return above


def files(above: pathlib.Path) -> set[str]:
    return {path.relative_to(above).as_posix() for path in above.rglob('*') if path.is_file()}


def test_it_lists_each_cache_with_its_size(caches, capsys):
    assert main(['cache']) == 0
    found = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(kind, files, ' '.join(rest)) for _, kind, files, _, *rest in found] == [
        ('kernels', '4', f'2.0 MiB {caches}/kernels-by-code'),
        ('vocabularies', '2', f'3.0 MiB {caches}/vocabularies'),
        ('datasets', '2', f'300 B {caches}/datasets/{DIGEST * 2}'),
    ]
    assert files(caches) == {*CACHED, *STRANGERS}


@pytest.mark.parametrize('kind', ['kernels', 'vocabularies', 'datasets', 'all'])
def test_it_deletes_what_it_lists_and_nothing_else(caches, capsys, kind):
    assert main(['cache', '--delete', kind]) == 0
    kinds = {line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert kinds == ({'kernels', 'vocabularies', 'datasets'} if kind == 'all' else {kind})
    deleted = {name for name in CACHED if kind == 'all' or name.startswith(kind)}
    assert files(caches) == {*CACHED, *STRANGERS} - deleted
    assert (caches.parent / 'linked' / 'mine').exists()
    # Processes that run go on to write there.
    assert (caches / 'kernels-by-code').is_dir()


def test_nothing_cached_is_said_of_each_kind(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setattr(jit, 'CACHE_FOLDER', None)
    monkeypatch.setattr(parsed_files, '_folder', lambda: None)
    assert main(['cache', '--delete', 'all']) == 0
    kinds = ('kernels', 'vocabularies', 'datasets')
    assert capsys.readouterr().out.splitlines() == [f'no {kind} are cached' for kind in kinds]


def test_another_kind_is_refused(caches, capsys):
    assert main(['cache', '--delete', 'counts']) == 2
    assert 'not one of kernels, vocabularies, datasets, all' in capsys.readouterr().err
    assert main(['cache', str(caches)]) == 2
    assert files(caches) == {*CACHED, *STRANGERS}
