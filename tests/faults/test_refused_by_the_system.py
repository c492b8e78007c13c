"""What the system refuses a job, within Beam and outside: one sentence, and nothing half made."""

import pytest
from command_outcome import Outcome
from generated_text import as_lines, english_lines
from jobs import files_up_to, run, succeed, write
from leftovers import assert_nothing_made

pytest.importorskip('resource')

ARGUMENTS = {
    'count': ['count'],
    'vocab': ['vocab', '--vocab-size', '900'],
    'vocab on Beam': ['vocab', '--vocab-size', '900', '--learner', 'beam'],
    'build': ['build', '--vocab-size', '900', '--name', 'x'],
}


@pytest.fixture(scope='module')
def text(tmp_path_factory):
    """Enough distinct tokens that each file of counts has some hundred bytes."""
    folder = tmp_path_factory.mktemp('text')
    path = write(folder / 'text', as_lines(english_lines(3000, seed=5)))
    # Compiled kernels cannot be kept within the limit: they are there then.
    succeed(*ARGUMENTS['build'], '--text', path, '--output', folder / 'out')
    return path


@pytest.fixture
def command(request, text, tmp_path):
    name = request.param
    output = tmp_path / 'out' / 'v' if name.startswith('vocab') else tmp_path / 'out'
    return [*ARGUMENTS[name], '--text', str(text), '--output', str(output)]


@pytest.mark.parametrize('command', ARGUMENTS, indirect=True)
def test_a_full_disk_while_counting(command, tmp_path):
    with files_up_to(300):
        ended = run(*command)
    Outcome(ended.status, ended.said).assert_refused('File too large', 'limit on the size of files')
    assert_nothing_made(tmp_path / 'out')
