"""A learner on Beam killed at any moment goes on where it was: no finished round is made again."""

import random
from pathlib import Path

import pytest

from jobs import succeed
from killed_runs import NEVER, Measured, Moment, run_until
from leftovers import attempts, result_files

FINISHED = 'was finished by an earlier run'
LAST_ITERATION = 'vocabulary-4'


def arguments(counts: Path, folder: Path, *extra: object) -> list[object]:
    return [
        'vocab', '--counts', counts, '--vocab-size', 300, '--min-count-range', '2:20',
        '--output', folder / 'vocab', *extra,
    ]  # fmt: skip


@pytest.fixture(scope='module')
def counts(tmp_path_factory) -> Path:
    dice = random.Random(5)
    syllables = ['ka', 'to', 'ing', 'st', 'er', '文', 'on', 'de', 'ma']
    words = {''.join(dice.choices(syllables, k=dice.randint(1, 5))) for _ in range(900)}
    path = tmp_path_factory.mktemp('counts') / 'counts.txt'
    path.write_text(''.join(f'{word} {dice.randint(1, 30)}\n' for word in sorted(words)))
    return path


@pytest.fixture(scope='module')
def reference(counts, tmp_path_factory) -> dict[str, bytes]:
    """What the learner in memory gives: the file and its manifest."""
    folder = tmp_path_factory.mktemp('memory')
    succeed(*arguments(counts, folder, '--learner', 'memory'))
    return result_files(folder)


@pytest.fixture(scope='module')
def measured(counts, tmp_path_factory) -> Measured:
    folder = tmp_path_factory.mktemp('measured')
    killed, seen = run_until(arguments(counts, folder, '--learner', 'beam'), folder, NEVER)
    assert not killed
    return seen


def finished_rounds(work: Path) -> dict[Path, int]:
    """The rounds that are done, each with what tells its file from another of that name."""
    return {path: path.stat().st_ino for path in work.glob(f'*/round-*/{LAST_ITERATION}')}


def test_killed_at_any_moment(counts, reference, measured, tmp_path):
    dice = random.Random(2)
    for number, share in enumerate([0.3, 0.8]):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = arguments(counts, folder, '--learner', 'beam')
        names = max(1, round(measured.names * share * dice.uniform(0.9, 1)))
        run_until(command, folder, Moment(names=names))
        finished = finished_rounds(folder / '.tokbeam')
        said = succeed(*command)
        if 'already done' not in said:
            assert said.count(FINISHED) == len(finished)
        assert result_files(folder) == reference
        assert attempts(folder) == []
        assert not (folder / '.tokbeam').exists()


def test_killed_again_and_again_it_repeats_no_finished_round(
    counts, reference, measured, tmp_path
):
    folder, work = tmp_path / 'out', tmp_path / 'work'
    folder.mkdir()
    work.mkdir()
    command = arguments(counts, folder, '--learner', 'beam', '--work', work)
    finished: dict[Path, int] = {}
    # Each run gets a little further into what is left to do.
    for _ in range(2):
        run_until(command, work, Moment(names=measured.names // 3))
        now = finished_rounds(work)
        assert now.items() >= finished.items()
        finished = now
    assert finished
    said = succeed(*command)
    assert said.count(FINISHED) == len(finished)
    assert result_files(folder) == reference
    assert list(work.rglob('*')) == []


def test_other_counts_take_up_nothing(counts, tmp_path):
    work = tmp_path / 'work'
    command = arguments(counts, tmp_path / 'one', '--learner', 'beam', '--work', work)
    (tmp_path / 'one').mkdir()
    work.mkdir()
    while not finished_rounds(work):
        killed, _ = run_until(command, work, Moment(names=40))
        assert killed
    other = tmp_path / 'other.txt'
    other.write_bytes(counts.read_bytes() + b'another 3\n')
    said = succeed(
        *arguments(other, tmp_path / 'two', '--learner', 'beam', '--work', work)
    )
    assert FINISHED not in said
    succeed(*arguments(other, tmp_path / 'three', '--learner', 'memory'))
    assert result_files(tmp_path / 'two') == result_files(tmp_path / 'three')
    assert finished_rounds(work)
