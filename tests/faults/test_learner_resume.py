"""A learner on Beam that was killed goes on where it was: no finished round is made again."""

import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

import learner_runs
import pytest
from generated_text import english_lines
from killed_runs import Moment, run_until
from learner_runs import FINISHED, ROUNDS, SEARCHES, kill_after_round, learning, stop_after_round
from leftovers import attempts, result_files

pytestmark = pytest.mark.slow

LAST_ITERATION = 'vocabulary-4'
BEAM = ('--learner', 'beam')


@pytest.fixture(scope='module')
def counts(tmp_path_factory) -> Path:
    return learner_runs.write_syllables(tmp_path_factory.mktemp('counts') / 'counts.txt')


@pytest.fixture(scope='module')
def reference(lanes, counts, tmp_path_factory):
    """What the learner in memory gives for a command: the file and its manifest."""
    known: dict[tuple, dict[str, bytes]] = {}

    def learn(*options: object, size: int = 520) -> dict[str, bytes]:
        key = (*options, size)
        if key not in known:
            folder = tmp_path_factory.mktemp('memory')
            command = learning(counts, '--learner', 'memory', *options, size=size)
            learner_runs.succeed(lanes[0], command, folder)
            known[key] = result_files(folder)
        return known[key]

    return learn


@pytest.mark.parametrize('search', SEARCHES)
def test_killed_after_every_round(lanes, counts, reference, tmp_path, search):
    folder = tmp_path / 'killed'
    folder.mkdir()
    command = learning(counts, *BEAM, '--search', search)
    finished = 0
    for number in range(1, ROUNDS + 1):
        said = kill_after_round(lanes[0], command, folder, number)
        assert said.count(FINISHED) == min(finished, number)
        finished = len(finished_rounds(folder / '.tokbeam'))
        # The rounds beside an output go where it goes.
        copy = tmp_path / f'{number}'
        shutil.copytree(folder, copy)
        said = learner_runs.succeed(lanes[0], command, copy)
        if not re.search('already done|was learned by an earlier run', said):
            assert said.count(FINISHED) == finished >= number
            assert said.count(' gives ') == ROUNDS
        assert result_files(copy) == reference('--search', search)
        assert attempts(copy) == []
        assert not (copy / '.tokbeam').exists()


@pytest.mark.parametrize('names', [25, 60])
def test_killed_within_a_round(lanes, counts, reference, tmp_path, names):
    command = learning(counts, *BEAM)
    with contextlib.chdir(tmp_path):
        killed, _ = run_until(command, tmp_path, Moment(names=names))
    assert killed
    finished = finished_rounds(tmp_path / '.tokbeam')
    said = learner_runs.succeed(lanes[0], command, tmp_path)
    assert said.count(FINISHED) == len(finished)
    assert result_files(tmp_path) == reference()
    assert attempts(tmp_path) == []
    assert not (tmp_path / '.tokbeam').exists()


def finished_rounds(work: Path) -> dict[Path, int]:
    """The rounds that are done, each with what tells its file from another of that name."""
    return {path: path.stat().st_ino for path in work.glob(f'*/round-*/{LAST_ITERATION}')}


def test_in_a_work_folder_that_was_given(lanes, counts, reference, tmp_path):
    folder, work = tmp_path / 'out', tmp_path / 'work'
    folder.mkdir()
    work.mkdir()
    (work / 'thesis').write_text('')
    command = learning(counts, *BEAM, '--work', work)
    kill_after_round(lanes[0], command, folder, 1)
    before = finished_rounds(work)
    kill_after_round(lanes[0], command, folder, 2)
    now = finished_rounds(work)
    assert now.items() >= before.items()
    said = learner_runs.succeed(lanes[0], command, folder)
    assert said.count(FINISHED) == len(now) >= 2
    assert result_files(folder) == reference()
    assert [path.name for path in work.iterdir()] == ['thesis']


def test_other_counts_take_up_nothing(lanes, counts, tmp_path):
    for name in ('one', 'two', 'three'):
        (tmp_path / name).mkdir()
    work = tmp_path / 'work'
    kill_after_round(lanes[0], learning(counts, *BEAM, '--work', work), tmp_path / 'one', 1)
    kept = finished_rounds(work)
    other = tmp_path / 'other.txt'
    other.write_bytes(counts.read_bytes() + b'another 3\n')
    command = learning(other, *BEAM, '--work', work)
    assert FINISHED not in learner_runs.succeed(lanes[0], command, tmp_path / 'two')
    learner_runs.succeed(lanes[0], learning(other, '--learner', 'memory'), tmp_path / 'three')
    assert result_files(tmp_path / 'two') == result_files(tmp_path / 'three')
    assert finished_rounds(work) == kept


def test_two_sizes_at_once_from_the_same_counts(lanes, counts, reference, tmp_path):
    held, other = learning(counts, *BEAM), learning(counts, *BEAM, size=500)
    other[other.index('vocab', 1)] = 'other'
    process, saying, _ = stop_after_round(lanes[0], held, tmp_path, 1, signal.SIGSTOP)
    learner_runs.succeed(lanes[1], other, tmp_path)
    os.killpg(process, signal.SIGCONT)
    said = saying.read()
    assert lanes[0].end().status == 0, said
    assert (tmp_path / 'vocab').read_bytes() == reference()['vocab']
    assert (tmp_path / 'other').read_bytes() == reference(size=500)['vocab']
    ends = ('', '.tokbeam.json', '.tokbeam.run.json')
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        name + end for name in ('other', 'vocab') for end in ends
    ]


def test_killed_when_its_output_was_whole(lanes, counts, reference, tmp_path):
    command = learning(counts, *BEAM)
    kill_after_round(lanes[0], command, tmp_path, ROUNDS - 1)
    shutil.copytree(tmp_path / '.tokbeam', tmp_path / 'aside')
    learner_runs.succeed(lanes[0], command, tmp_path)
    (tmp_path / 'aside').rename(tmp_path / '.tokbeam')
    assert 'already done' in learner_runs.succeed(lanes[0], command, tmp_path)
    assert not (tmp_path / '.tokbeam').exists()
    assert result_files(tmp_path) == reference()


def test_merges_are_not_made_again_after_a_kill(lanes, counts, tmp_path):
    made = 'merges were made by an earlier run'
    learn = ['vocab', '--counts', counts, '--scheme', 'bpe', '--preset', 'subword-nmt']
    learn += ['--merges', 300, '--output', 'vocab']
    memory, killed = tmp_path / 'memory', tmp_path / 'killed'
    for folder in (memory, killed):
        folder.mkdir()
    learner_runs.succeed(lanes[0], learn, memory)
    for number in range(2):
        said = kill_after_round(lanes[0], [*learn, *BEAM], killed, 1)
        assert (made in said) == (number > 0)
    assert made in learner_runs.succeed(lanes[0], [*learn, *BEAM], killed)
    assert result_files(killed) == result_files(memory)
    assert attempts(killed) == []
    assert not (killed / '.tokbeam').exists()


@pytest.mark.parametrize('rounds', [(1, 1, 2), (3, 2)], ids=str)
def test_pieces_are_not_pruned_again_after_a_kill(lanes, tmp_path, rounds):
    finished = 'rounds were finished by an earlier run'
    text = tmp_path / 'text'
    text.write_text('\n'.join(english_lines(300, seed=3)))
    learn = ['vocab', '--text', text, '--scheme', 'unigram', '--vocab-size', 400]
    learn += ['--output', 'vocab', '--shrinking-factor', '0.6']
    memory, killed = tmp_path / 'memory', tmp_path / 'killed'
    for folder in (memory, killed):
        folder.mkdir()
    learner_runs.succeed(lanes[0], learn, memory)
    number = 0
    for more in rounds:
        said = kill_after_round(lanes[0], [*learn, *BEAM], killed, number + more)
        assert (finished in said) == (number > 0)
        assert all(f': round {done}: ' not in said for done in range(1, number))
        number += more
    assert finished in learner_runs.succeed(lanes[0], [*learn, *BEAM], killed)
    assert result_files(killed) == result_files(memory)
    assert attempts(killed) == []
    assert not (killed / '.tokbeam').exists()
