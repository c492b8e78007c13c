"""Which commands run as plain Python: small local inputs, where no kernels are kept."""

import os
import subprocess
import sys

import pytest

from pipelines.cli import plain_runs
from pipelines.cli.parser import parse_command
from pipelines.cli.plain_runs import MOST_BYTES, run_plain_if_small


@pytest.fixture(autouse=True)
def new_machine(monkeypatch):
    """As a process that has not imported numba, on a machine without kernels."""
    monkeypatch.delitem(sys.modules, 'numba', raising=False)
    monkeypatch.delenv('NUMBA_DISABLE_JIT', raising=False)
    monkeypatch.setattr(plain_runs, 'has_kernels', lambda: False)


def is_plain(*arguments: object) -> bool:
    options, _ = parse_command([str(each) for each in arguments])
    run_plain_if_small(options)
    chosen = os.environ.pop('NUMBA_DISABLE_JIT', None)
    assert chosen is None or options.workers == 1
    return chosen == '1'


@pytest.fixture
def small(tmp_path):
    path = tmp_path / 'small.txt'
    path.write_bytes(b'a' * (MOST_BYTES // 2))
    return path


@pytest.fixture
def count(tmp_path):
    """The command that counts what is named."""
    return lambda *named: ('count', '--text', *named, '--output', tmp_path / 'counts')


def test_only_what_is_read_counts(small, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ('count', 'word', 'counts'):  # the command, the scheme and the output
        (tmp_path / name).mkdir()
        (tmp_path / name / 'large').write_bytes(bytes(MOST_BYTES + 1))
    assert is_plain(*count(small), '--scheme', 'word')
    assert not is_plain(*count(small, 'word/large'))


def test_with_kernels_at_hand_nothing_is_plain(small, count, monkeypatch):
    monkeypatch.setattr(plain_runs, 'has_kernels', lambda: True)
    assert not is_plain(*count(small))


def test_the_user_decides(small, count, monkeypatch):
    assert not is_plain(*count(small), '--workers', 2)
    monkeypatch.setenv('NUMBA_DISABLE_JIT', '0')
    options, _ = parse_command([str(each) for each in count(small)])
    run_plain_if_small(options)
    assert os.environ['NUMBA_DISABLE_JIT'] == '0' and options.workers is None


def test_files_count_together(small, count, tmp_path):
    assert is_plain(*count(small), '--workers', 1)
    assert is_plain(*count(tmp_path / 'missing'))  # which is left to the command
    (tmp_path / 'small2.txt').write_bytes(bytes(MOST_BYTES // 2))
    assert is_plain(*count(tmp_path / '*.txt'))
    (tmp_path / 'small3.txt').write_bytes(b'a')
    assert not is_plain(*count(tmp_path / '*.txt'))
    assert not is_plain(*count(*(tmp_path / f'small{n}.txt' for n in ('', 2, 3))))


@pytest.mark.parametrize(
    'path',
    [
        *('a.gz', 'a.zst', 'a.tar.xz', 'a.parquet', 'a.zip'),  # their text may be large
        *('s3://bucket/a', 'https://example.org/a', 'hdfs://host/a', '/dev/zero'),
        *('a.tar!news/*.txt', 'a.tar.zst!news/1.txt'),
    ],
)
def test_what_has_no_size_of_text_is_not_plain(count, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    if path.startswith('a.'):
        (tmp_path / path.partition('!')[0]).write_bytes(b'a')
    assert not is_plain(*count(path))


def test_counts_with_weights_are_not_plain(small, tmp_path):
    vocab = ['vocab', '--vocab-size', 300, '--output', tmp_path / 'vocab', '--counts']
    assert is_plain(*vocab, small)
    assert not is_plain(*vocab, f'{small}=0.7')


def test_a_folder_counts_with_all_that_is_in_it(tmp_path):
    folder = tmp_path / 'dataset'
    (folder / 'index').mkdir(parents=True)
    (folder / 'manifest.json').write_bytes(bytes(9))
    assert is_plain('verify', folder)
    (folder / 'index' / 'train').write_bytes(bytes(MOST_BYTES))
    assert not is_plain('verify', folder)


def test_a_pipe_is_small_once_its_writer_has_ended():
    reading, writing = os.pipe()
    with open(reading, 'rb', buffering=0):
        with open(writing, 'wb', buffering=0) as writer:
            writer.write(b'a line\n')
            assert plain_runs._bytes_waiting(reading) == float('inf')
        assert plain_runs._bytes_waiting(reading) == 7


def test_a_file_on_standard_input_has_its_size(small):
    with open(small, 'rb') as file:
        assert plain_runs._bytes_waiting(file.fileno()) == MOST_BYTES // 2
    with open('/dev/zero', 'rb') as endless:
        assert plain_runs._bytes_waiting(endless.fileno()) == float('inf')


def test_it_is_decided_before_numba_is_imported():
    code = 'import sys, pipelines.cli.main as main; main.parse_command(["count", "--text", "a", "--output", "b"])'
    code += '; print("numba" in sys.modules)'
    ended = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert ended.stdout == 'False\n', ended.stderr
