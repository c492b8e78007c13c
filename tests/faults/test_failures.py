"""What is not a mistake of the user's is a failure: one line, status 1, and its traceback in a file."""

import errno
import os
import re
import stat

import pytest
from jobs import run

ARGUMENTS = ['count', '--text', 'a', '--output', 'o', '--s3_secret_access_key=HUSH']


@pytest.fixture
def ends_with(monkeypatch, tmp_path):
    """Runs a command that meets an exception."""
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))

    def run_into(error):
        def meet(*_):
            raise error

        monkeypatch.setattr('pipelines.cli.commands.run_command', meet)
        return run(*ARGUMENTS)

    return run_into


def test_a_failure_keeps_its_traceback_in_a_file(ends_with, tmp_path):
    ended = ends_with(RuntimeError('lines were\nlost'))
    assert ended.status == 1
    [line] = ended.said.splitlines()
    [path] = re.findall(r'its traceback is in (.*)', line)
    assert line.startswith('tokbeam: failed: RuntimeError: lines were lost; ')
    [kept] = tmp_path.iterdir()
    assert str(kept) == path
    text = kept.read_text()
    assert text.startswith("tokbeam 'count' '--text' 'a'")
    assert 'Traceback' in text and 'in meet' in text and 'lost' in text
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert 'HUSH' not in text + ended.said


def test_no_secret_is_kept_with_a_traceback(ends_with, tmp_path):
    ends_with(RuntimeError('refused: HUSH, with --password=QUIET in s3://me:SILENT@there'))
    [kept] = tmp_path.iterdir()
    text = kept.read_text()
    assert 'RuntimeError: refused: ***, with --password=*** in s3://***@there' in text
    assert not any(secret in text for secret in ('HUSH', 'QUIET', 'SILENT'))


def test_where_no_file_can_be_written_the_traceback_is_shown(ends_with, tmp_path, monkeypatch):
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path / 'missing'))
    ended = ends_with(RuntimeError('lines were lost'))
    assert ended.status == 1
    assert 'Traceback' in ended.said
    assert ended.said.splitlines()[-1].startswith('tokbeam: failed: RuntimeError: lines were lost')


@pytest.mark.parametrize(
    'error',
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), '/some/file'),
        PermissionError(errno.EACCES, os.strerror(errno.EACCES), '/some/file'),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_machine_refuses_is_a_sentence(ends_with, tmp_path, error):
    ended = ends_with(error)
    assert ended.status == 2
    [line] = ended.said.splitlines()
    assert line.startswith('tokbeam: cannot ')
    assert list(tmp_path.iterdir()) == []


def test_a_sentence_is_one_line_that_any_terminal_can_show(ends_with):
    from tokcore.errors import InputError

    ended = ends_with(InputError('x\udcff\x1b[31m\ny cannot be read'))
    assert ended.status == 2
    assert ended.said == 'tokbeam: x\\udcff\\x1b[31m y cannot be read\n'
