"""The table of refusals: what is recorded, and what a session says when the table differs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import format_table, merge_alike, parse_table, renewed

ROOT = Path(__file__).parents[2]

COMMANDS = """
import subprocess, sys
import pytest
from pipelines.cli import main as command

@pytest.fixture
def refused():
    assert command.main(['help', 'in', 'a fixture']) == 2

def test_commands(tmp_path, monkeypatch, refused):
    assert command.main(['completion', str(tmp_path / 'a')]) == 2
    assert command.main(['--version']) == 0
    monkeypatch.setattr(command, '_run', lambda *_: 1 / 0)
    assert command.main(['vocab']) == 1
    line = [sys.executable, '-m', 'pipelines', 'verify']
    assert subprocess.run(line, capture_output=True).returncode == 2

@pytest.mark.slow
def test_slow():
    assert command.main(['help', 'a', 'b']) == 2
"""

CALLS = """
import pytest
from pipelines.options.job import rejection_limit
from tokcore.bpe.files import read_json

@pytest.mark.parametrize('text', {texts})
def test_calls(text):
    if text == '3':
        pytest.skip('not here')
    with pytest.raises(Exception):
        rejection_limit(text)
    with pytest.raises(Exception):
        raise ValueError('this comes from no call of ours')

def test_reasons():
    with pytest.raises(Exception):
        read_json(b'{{', 'a.json')
"""

TABLE = """\
tests/unit/test_calls.py
  test_calls
    rejection_limit, ArgumentTypeError: '+1' is not stop, skip, a number of lines, as 100, or a share, as 0.5%
    rejection_limit, ArgumentTypeError: 'x' is not stop, skip, a number of lines, as 100, or a share, as 0.5%
  test_reasons
    read_json, InputError: a.json is not JSON ({JSONDecodeError}); give a tokenizer.json
tests/unit/test_commands.py
  test_commands
    tokbeam completion, status 2: completion is for bash, zsh, fish, not for {tmp}/a; give one of them
    tokbeam verify, status 2: the following arguments are required: DIR (see tokbeam verify --help)
    tokbeam vocab, status 1: failed: ZeroDivisionError: division by zero
"""


class Suite:
    """A small suite of its own, and its table."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.unit = folder / 'tests/unit'
        self.unit.mkdir(parents=True)
        (folder / 'pytest.ini').write_text("[pytest]\nmarkers = slow\naddopts = -q -m 'not slow'\n")
        self.table = folder / 'tests/refusals.txt'
        (self.unit / 'test_commands.py').write_text(COMMANDS)
        self.write_calls('+1', 'x')

    def write_calls(self, *texts: str) -> None:
        """Writes the module of calls, with a case for each text."""
        (self.unit / 'test_calls.py').write_text(CALLS.format(texts=texts))

    def run(self, *arguments: str) -> tuple[int, str]:
        """Runs pytest; returns its status and what it reports of the table."""
        ended = subprocess.run(
            [sys.executable, '-m', 'pytest', '-p', 'refusals', '-p', 'xdist.plugin', *arguments],
            env={
                **os.environ,
                'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1',
                'PYTHONPATH': os.pathsep.join(map(str, (ROOT, ROOT / 'tests'))),
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert 'INTERNALERROR' not in ended.stdout + ended.stderr, ended.stderr
        _, _, report = ended.stdout.partition('refusals that differ')
        return ended.returncode, report


@pytest.fixture
def suite(tmp_path):
    return Suite(tmp_path / 'suite')


@pytest.mark.slow
def test_what_differs_fails_a_session_until_the_table_is_renewed(suite):
    assert suite.run('-n', '2', '--renew-refusals') == (0, '')
    assert suite.table.read_text() == TABLE
    suite.table.write_text(TABLE + 'tests/unit/test_gone.py\n  test_gone\n    f, E: gone\n')
    suite.write_calls('+1', 'y')
    status, report = suite.run()
    assert status == 1
    assert "+ rejection_limit, ArgumentTypeError: 'y' is not" in report
    assert "- rejection_limit, ArgumentTypeError: 'x' is not" in report
    assert '- f, E: gone' in report
    assert report.count('\n    ') == 3
    assert 'pytest --renew-refusals tests/unit/test_calls.py tests/unit/test_gone.py' in report
    assert suite.run('--renew-refusals', 'tests/unit/test_calls.py') == (0, '')
    assert suite.table.read_text() == TABLE.replace("'x'", "'y'")


@pytest.mark.slow
def test_a_part_of_a_test_misses_nothing_and_may_say_something_new(suite):
    suite.table.write_text(TABLE)
    suite.write_calls('+1', 'y')
    status, report = suite.run('tests/unit/test_calls.py::test_calls[y]')
    assert status == 1 and "+ rejection_limit, ArgumentTypeError: 'y'" in report
    assert '    -' not in report
    suite.write_calls('+1', '3')  # which is skipped
    assert suite.run('tests/unit/test_calls.py') == (0, '')


def test_slow_cases_are_not_recorded(suite):
    suite.table.write_text(TABLE)
    assert suite.run('--renew-refusals', '-m', 'slow') == (0, '')
    assert suite.table.read_text() == TABLE


def test_more_than_three_alike_are_one_line():
    alike = [f"line {number} of 7 is '{number}': give another" for number in range(4)]
    assert merge_alike(alike[:3]) == set(alike[:3])
    assert merge_alike([*alike, 'line 1 is lost']) == {
        'line {…} of 7 is {…}: give another',
        'line 1 is lost',
    }
    table = {'a': merge_alike(alike)}
    assert renewed(table, {'a': {alike[2]}}, set()) == table
    new = "line 9 of 8 is 'x': give another"
    assert renewed(table, {'a': {new}}, set()) == {'a': table['a'] | {new}}
    assert renewed(table, {'a': {new}}, {'a'}) == {'a': {new}}


def test_a_table_is_read_as_it_is_written():
    table = {
        'b.py::x': {'2', '1'},
        'a.py::T::z': {'3'},
        'b.py::a': {'4'},
        'b.py::none': set(),
    }
    lines = format_table(table)
    assert lines == [
        *('a.py', '  T::z', '    3'),
        *('b.py', '  a', '    4', '  x', '    1', '    2'),
    ]
    assert parse_table('\n'.join(lines)) == {test: table[test] for test in table if table[test]}
