"""A run of version 0.1.0 at 6b30307 that was killed: today's goes on with what it had finished."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from earlier_revisions import run_all
from generated_text import as_tsv, english_lines, pairs_with_gaps
from jobs import succeed, write
from killed_runs import NEVER, Moment, moments_of, run_until
from leftovers import assert_finished, attempts, result_files
from new_records import all_without_new_records

CUT = ['--item-size', '10KiB', '--buffer', '16KiB']
BEAM = ['--learner', 'beam', '--min-count-range', '10:14']

FINISHED_RUNS = '.tokbeam/shuffle-*/run-*'
FINISHED_ROUNDS = '.tokbeam/learner-*/round-*/vocabulary-4'


@dataclass(frozen=True)
class SomeFiles:
    """The moment at which so many files are there."""

    folder: Path
    pattern: str
    count: int = 1

    def has_come(self, names: int, seconds: float) -> bool:
        return len(self.found()) >= self.count

    def found(self) -> list[Path]:
        return sorted(self.folder.glob(self.pattern))


@pytest.fixture(scope='module')
def commands(tmp_path_factory) -> dict[str, list[object]]:
    """Command lines, but for their output, each with enough to do to be killed at it."""
    root = tmp_path_factory.mktemp('corpus')
    pairs = write(root / 'pairs.tsv', as_tsv(pairs_with_gaps(4000, seed=6)))
    text = write(root / 'text.txt', '\n'.join(english_lines(1500, seed=6)).encode())
    words = write(root / 'words.txt', count_lines(seed=5))
    succeed('vocab', '--tsv', pairs, '--vocab-size', 1000, '--output', root / 'recorded' / 'vocab')
    # Without its record, which 6b30307 does not know all of.
    write(root / 'vocab', (root / 'recorded' / 'vocab').read_bytes())
    dataset = ['--name', 'x', '--shards', 3]
    return {
        'count': ['count', '--tsv', pairs, '--item-size', '64KiB'],
        'vocab': ['vocab', '--counts', words, '--vocab-size', 300, *BEAM],
        'encode': ['encode', '--tsv', pairs, '--vocab', root / 'vocab', *dataset, *CUT],
        'build': ['build', '--text', text, *dataset, '--vocab-size', 600, *BEAM, *CUT],
    }


def count_lines(seed: int) -> bytes:
    dice = random.Random(seed)
    syllables = ['ka', 'to', 'ing', 'st', 'er', '文', 'on', 'de', 'ma']
    words = {''.join(dice.choices(syllables, k=dice.randint(1, 5))) for _ in range(900)}
    return ''.join(f'{word} {dice.randint(1, 30)}\n' for word in sorted(words)).encode()


def output_in(folder: Path, name: str) -> Path:
    """What is given as `--output` for a command whose result is all that is in a folder."""
    return folder / 'vocab' if name == 'vocab' else folder


@pytest.fixture(scope='module')
def whole(commands, packages_of_6b30307, tmp_path_factory) -> dict[str, dict[str, bytes]]:
    """What 6b30307 makes of each command when nobody kills it."""
    folders = {name: tmp_path_factory.mktemp(name) for name in commands}
    run_all(
        packages_of_6b30307,
        [[*line, '--output', output_in(folders[name], name)] for name, line in commands.items()],
    )
    return {name: result_files(folder) for name, folder in folders.items()}


def states_of(paths: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """What changes when a file is written again."""
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in paths}


def delete_runs_of_last_item(runs: Sequence[Path]) -> None:
    """However late a kill came, something is left to do."""
    item = runs[-1].name.rpartition('-')[0]
    for path in runs:
        if path.name.startswith(f'{item}-'):
            path.unlink()


def finish(command: Sequence[object], folder: Path, expected: dict[str, bytes]) -> str:
    """Runs today's command; the result is that of 6b30307, and nothing else is left."""
    said = succeed(*command)
    made = result_files(folder)
    assert all_without_new_records(made) == all_without_new_records(expected)
    assert_finished(folder)
    assert not (folder / '.tokbeam').exists()
    return said


def test_an_encode_with_some_runs(commands, whole, packages_of_6b30307, tmp_path, monkeypatch):
    folder = tmp_path / 'out'
    command = [*commands['encode'], '--output', folder]
    moment = SomeFiles(folder, FINISHED_RUNS, 12)
    assert run_until(command, folder, moment, packages_of_6b30307)[0]
    assert len(moment.found()) >= 12
    delete_runs_of_last_item(moment.found())
    before = states_of(moment.found())
    assert before
    with monkeypatch.context() as patch:
        patch.setattr('pipelines.shuffle.merge_runs.sweep_shuffles', lambda *_: None)
        succeed(*command)
    after = states_of(moment.found())
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    assert 'already done' in finish(command, folder, whole['encode'])


def test_an_encode_killed_while_it_deletes_its_runs(commands, whole, packages_of_6b30307, tmp_path):
    """The plan may be gone before the runs; each tells whose it is."""
    folder = tmp_path / 'out'
    command = [*commands['encode'], '--output', folder]
    moment = SomeFiles(folder, FINISHED_RUNS, 12)
    assert run_until(command, folder, moment, packages_of_6b30307)[0]
    [plan] = folder.glob('.tokbeam/shuffle-*/plan.json')
    plan.unlink()
    for path in plan.parent.glob('.tokbeam-attempt-*'):
        path.unlink()
    assert len(moment.found()) >= 12
    assert 'already done' not in finish(command, folder, whole['encode'])
    assert 'already done' in succeed(*command)


def test_a_file_that_is_no_run_keeps_a_folder_without_a_plan(commands, tmp_path):
    folder = tmp_path / 'out'
    other = write(folder / '.tokbeam' / f'shuffle-{"0" * 32}' / 'run-000000-0000', b'precious')
    succeed(*commands['encode'], '--output', folder)
    assert other.read_bytes() == b'precious'


def test_a_learner_with_some_rounds(commands, whole, packages_of_6b30307, tmp_path):
    command = [*commands['vocab'], '--output', tmp_path / 'vocab']
    moment = SomeFiles(tmp_path, FINISHED_ROUNDS, 2)
    assert run_until(command, tmp_path, moment, packages_of_6b30307)[0]
    finished = len(moment.found())
    said = finish(command, tmp_path, whole['vocab'])
    assert said.count('was finished by an earlier run') == finished >= 2


@pytest.mark.parametrize('pattern', ['.tokbeam-attempt-*', '.tokbeam-attempt-*/counts-*'])
def test_a_count_in_its_attempt(commands, whole, packages_of_6b30307, tmp_path, pattern):
    folder = tmp_path / 'out'
    command = [*commands['count'], '--output', folder]
    run_until(command, folder, SomeFiles(folder, pattern), packages_of_6b30307)
    finish(command, folder, whole['count'])


@pytest.mark.parametrize(
    'pattern, count, taken_up',
    [
        ('counts/.tokbeam-attempt-*', 1, ''),
        ('counts/tokbeam.json', 1, 'count: already done'),
        (FINISHED_ROUNDS, 1, 'was finished by an earlier run'),
        (FINISHED_RUNS, 3, 'was finished by an earlier run'),
        ('tokbeam.run.json', 1, ''),
    ],
    ids=['counting', 'counted', 'learning', 'encoding', 'publishing'],
)
def test_a_build_in_each_stage(
    commands, whole, packages_of_6b30307, tmp_path, pattern, count, taken_up
):
    folder = tmp_path / 'out'
    command = [*commands['build'], '--output', folder]
    if pattern == 'tokbeam.run.json':
        command += ['--learner', 'memory']  # with rounds the moment after that is another matter
    moment = SomeFiles(folder, pattern, count)
    killed, _ = run_until(command, folder, moment, packages_of_6b30307)
    said = finish(command, folder, whole['build'])
    if killed:
        assert taken_up in said


@pytest.mark.corpora
@pytest.mark.parametrize('name', ['count', 'vocab', 'encode', 'build'])
def test_killed_at_many_moments(commands, whole, packages_of_6b30307, tmp_path, name):
    """Some fifteen minutes: whatever 6b30307 can leave, today's knows as its own."""

    def run(folder: Path, moment: Moment) -> tuple:
        folder.mkdir()
        command = [*commands[name], '--output', output_in(folder, name)]
        return command, *run_until(command, folder, moment, packages_of_6b30307)

    *_, measured = run(tmp_path / 'measured', NEVER)
    left = 0
    for number, moment in enumerate(moments_of(measured, 12, seed=9)):
        folder = tmp_path / str(number)
        command, *_ = run(folder, moment)
        left += bool(attempts(folder))
        finish(command, folder, whole[name])
    assert left > 2
