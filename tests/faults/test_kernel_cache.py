"""Compiled kernels are read from a folder that nobody but this user can have written to."""

import contextlib
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

import pytest
from jobs import write
from leftovers import result_files

from tokcore.kernels import cache_folder as cache

pytestmark = pytest.mark.skipif(not hasattr(os, 'geteuid'), reason='no owners on this system')


def cache_folder(umask: int = 0o022, **environment: object) -> pathlib.Path | None:
    """The folder that a process with this environment takes, None if it compiles in memory."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ('NUMBA_CACHE_DIR', 'XDG_CACHE_HOME'):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, str(value))
        stack.callback(os.umask, os.umask(umask))
        return cache._writable_cache_folder('kernels-of-a-test')[0]


def mode_of(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def shared():
    """A folder that everybody may write to, and get to."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        if any(each.stat().st_mode & 0o011 != 0o011 for each in folder.parents):
            pytest.skip('temporary folders are in a place of this user alone')
        yield folder


@pytest.mark.parametrize('variable', ['HOME', 'XDG_CACHE_HOME', 'NUMBA_CACHE_DIR'])
def test_it_is_made_for_this_user_alone_whatever_the_umask(tmp_path, variable):
    folder = cache_folder(0, **{'HOME': tmp_path, variable: tmp_path / 'new'})
    made = [folder, *(each for each in folder.parents if each.is_relative_to(tmp_path / 'new'))]
    assert {mode_of(each) for each in made} == {0o700}


def test_a_place_where_others_may_replace_it_is_not_used(shared, tmp_path):
    # The next candidate is, if there is one.
    assert cache_folder(HOME=tmp_path, NUMBA_CACHE_DIR=shared).is_relative_to(tmp_path)
    assert cache_folder(HOME='nowhere', NUMBA_CACHE_DIR=shared) is None


@pytest.mark.slow
@pytest.mark.parametrize('trouble', ['full', 'open to others'])
def test_a_job_without_a_cache_is_whole_and_one_line_says_why(tmp_path, shared, trouble):
    """A limit on the size of files in place of a full disk: nothing but kernels is as large."""
    text = write(tmp_path / 't.txt', b'a few words of text\n' * 9)
    caches = (shared if trouble == 'open to others' else tmp_path) / 'caches'
    caches.mkdir()
    if trouble == 'open to others':
        caches.chmod(0o777)
    code = (
        'import resource, sys\n'
        f'resource.setrlimit(resource.RLIMIT_FSIZE, {(9_000, 9_000) if trouble == "full" else (-1, -1)})\n'
        'from pipelines.cli.main import main\n'
        'sys.exit(main())'
    )
    line = ['encode', '--text', text, '--scheme', 'byte', '--name', 'n', '--shards', 1]
    line += ['--workers', 2, '--output']  # with one worker so small a text runs as plain Python
    environment = {
        **{name: value for name, value in os.environ.items() if name != 'NUMBA_CACHE_DIR'},
        'XDG_CACHE_HOME': str(caches),
        'HOME': str(tmp_path / 'none'),
    }
    said = []
    for output in ('out', 'again'):
        ended = subprocess.run(
            [sys.executable, '-c', code, *map(str, line), str(tmp_path / output)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr
        said.append([text for text in ended.stderr.splitlines() if 'for this run alone' in text])
    reason = 'File too large' if trouble == 'full' else 'others may write to'
    for lines in said:
        [only] = lines
        assert f'the cache at {caches}/tokbeam/kernels-by-code cannot be written ({reason}' in only
    assert result_files(tmp_path / 'out') == result_files(tmp_path / 'again')
