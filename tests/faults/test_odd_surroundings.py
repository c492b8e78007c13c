"""Names that are not ASCII, streams and locales that are, and an interpreter without docstrings."""

import os
import subprocess

import pytest
from dataset_files import files_of
from jobs import run, succeed, write
from sizes import command_of

from pipelines.cli.job_file import tomllib

pytestmark = pytest.mark.slow

TEXT = b''.join(b'%d words of a text\n' % number for number in range(200))
ASCII = {'LC_ALL': 'C', 'PYTHONUTF8': '0', 'PYTHONCOERCECLOCALE': '0'}


def run_in(environment, *arguments):
    """Runs a command line in a process of its own; returns its status, stdout and stderr."""
    ended = subprocess.run(
        command_of(*arguments),
        env={**os.environ, **environment},
        capture_output=True,
    )
    return ended.returncode, ended.stdout, ended.stderr.decode()


def job_of(tmp_path, output):
    write(tmp_path / 'ü.txt', TEXT)
    job = tmp_path / 'job.toml'
    job.write_text(
        '[[train]]\nformat = "text"\npaths = "ü.txt"\n[vocabulary]\nvocab_size = 60\n'
        f'[output]\nname = "n"\noutput = "{output}"\n',
        encoding='utf-8',
    )
    return job


def test_paths_of_a_job_file_are_utf8_in_any_locale(tmp_path):
    status, _, said = run_in(ASCII, 'build', job_of(tmp_path, 'ö'))
    assert status == 0, said
    assert (tmp_path / 'ö' / 'tokbeam.json').exists()


def test_a_job_file_is_printed_where_stdout_is_ascii(tmp_path):
    job = job_of(tmp_path, 'ö')
    status, printed, said = run_in(ASCII, 'build', job, '--print-job')
    assert status == 0, said
    assert printed.isascii()
    [train] = tomllib.loads(printed.decode())['train']
    assert train['paths'] == [str(tmp_path / 'ü.txt')]
    status, here, _ = run_in({'PYTHONIOENCODING': 'ascii'}, 'build', job, '--print-job')
    assert (status, here) == (0, printed)


def test_paths_move_no_cursor_on_the_terminal(tmp_path, capsys):
    job = job_of(tmp_path, r'o\u001b]0;pwned\u0007')
    said = succeed('build', job)
    assert '\x1b' not in said and r'o\x1b]0;pwned\x07' in said
    said = succeed('build', job, '--overwrite', '--dry-run')
    printed = capsys.readouterr().out
    assert '\x1b' not in printed + said and r'o\x1b]0;pwned\x07' in printed
    assert '\x1b' not in run('build', job, '--shards', 3).said


@pytest.mark.parametrize(
    'kernels',
    [
        pytest.param({'NUMBA_DISABLE_JIT': '1'}, id='plain'),
        # Other bytecode: all are compiled again, which takes a minute.
        pytest.param({}, id='compiled', marks=pytest.mark.corpora),
    ],
)
def test_a_build_needs_no_docstrings(tmp_path, kernels):
    path = write(tmp_path / 'a.txt', TEXT)
    without = {'PYTHONOPTIMIZE': '2', **kernels}
    given = ['build', '--text', path, '--scheme', 'word', '--vocab-size', 60, '--name', 'n']
    succeed(*given, '--output', tmp_path / 'with')
    status, _, said = run_in(without, *given, '--output', tmp_path / 'without')
    assert status == 0, said
    assert files_of(tmp_path / 'without') == files_of(tmp_path / 'with')
