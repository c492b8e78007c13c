"""What the system refuses a job, within Beam and outside: one sentence, and nothing half made."""

import os
import subprocess

import pytest
from command_outcome import Outcome
from generated_text import as_lines, english_lines
from jobs import limited_command, write
from leftovers import assert_nothing_made

resource = pytest.importorskip('resource')

ARGUMENTS = {
    'count': ['count'],
    'vocab': ['vocab', '--vocab-size', '900'],
    'vocab on Beam': ['vocab', '--vocab-size', '900', '--learner', 'beam'],
    'build': ['build', '--vocab-size', '900', '--name', 'x'],
}


@pytest.fixture(scope='module')
def text(tmp_path_factory):
    """Enough distinct tokens that each file of counts has some hundred bytes."""
    return write(tmp_path_factory.mktemp('text') / 'text', as_lines(english_lines(3000, seed=5)))


def run_limited(limits: dict[int, int], arguments: list[str]) -> Outcome:
    """Runs a command in a process of its own, within limits on what the system gives it."""
    ended = subprocess.run(
        limited_command(limits, *arguments),
        # Bytecode and compiled kernels are there already, or not to be written under such a limit.
        env={**os.environ, 'PYTHONDONTWRITEBYTECODE': '1'},
        capture_output=True,
        text=True,
    )
    return Outcome(ended.returncode, ended.stderr)


@pytest.fixture
def command(request, text, tmp_path):
    name = request.param
    output = tmp_path / 'out' / 'v' if name.startswith('vocab') else tmp_path / 'out'
    return [*ARGUMENTS[name], '--text', str(text), '--output', str(output)]


@pytest.mark.parametrize('command', ARGUMENTS, indirect=True)
def test_a_full_disk_while_counting(command, tmp_path):
    outcome = run_limited({resource.RLIMIT_FSIZE: 300}, command)
    outcome.assert_refused('File too large', 'limit on the size of files')
    assert_nothing_made(tmp_path / 'out')
