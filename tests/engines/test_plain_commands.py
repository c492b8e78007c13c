"""The first commands on a new machine: plain Python makes the bytes that compiled kernels make."""

import os
import pathlib
import subprocess

import pytest
from dataset_files import files_of
from jobs import succeed
from sizes import command_of

import pipelines

SAMPLE = pathlib.Path(pipelines.__file__).parent / 'sample'
PAIRS = ['--source', SAMPLE / 'train.en', '--target', SAMPLE / 'train.zh']

SIZES = {
    'subword': ['--vocab-size', 1300, '--shared-vocab'],
    'bpe': ['--vocab-size', 400],
    'wordpiece': ['--vocab-size', 900],
    'word': ['--vocab-size', 500],
    'byte': [],
}


@pytest.fixture
def on_new_machine(tmp_path):
    """Runs a command in a process that finds no kernels; returns what it wrote to stdout and stderr."""
    environment = {**os.environ, 'XDG_CACHE_HOME': str(tmp_path / 'cache')}
    for name in ('NUMBA_CACHE_DIR', 'NUMBA_DISABLE_JIT'):
        environment.pop(name, None)

    def run(*arguments, text=''):
        command = command_of(*arguments)
        ended = subprocess.run(command, env=environment, input=text, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert 'compil' not in ended.stderr and 'Warning' not in ended.stderr
        assert not [*tmp_path.glob('cache/tokbeam/kernels-by-code/*.nbc')]
        return ended.stdout, ended.stderr

    return run


@pytest.mark.parametrize(
    'scheme',
    [
        scheme if scheme == 'word' else pytest.param(scheme, marks=pytest.mark.slow)
        for scheme in SIZES
    ],
)
def test_a_build_is_the_same(on_new_machine, tmp_path, scheme):
    given = ['build', *PAIRS, '--scheme', scheme, *SIZES[scheme], '--name', 'n', '--shards', 2]
    on_new_machine(*given, '--output', tmp_path / 'plain')
    succeed(*given, '--output', tmp_path / 'compiled')
    assert files_of(tmp_path / 'plain') == files_of(tmp_path / 'compiled')
    on_new_machine('verify', tmp_path / 'plain')


def test_a_line_is_tokenized_and_back(on_new_machine, tmp_path):
    succeed('build', *PAIRS, *SIZES['subword'], '--name', 'n', '--output', tmp_path / 'out')
    vocabulary = next((tmp_path / 'out').glob('vocab.*'))
    ids, _ = on_new_machine('tokenize', '--vocab', vocabulary, text='It is a test.\n')
    assert on_new_machine('detokenize', '--vocab', vocabulary, text=ids)[0] == 'It is a test.\n'
