"""A damaged file of a learner's rounds never gives another vocabulary: it is told and made anew."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import learner_runs
import pytest
from learner_runs import kill_after_round, learning
from leftovers import result_files

pytestmark = pytest.mark.slow

BEAM = ('--learner', 'beam')


@pytest.fixture(scope='module')
def counts(tmp_path_factory) -> Path:
    return learner_runs.write_syllables(tmp_path_factory.mktemp('counts') / 'counts.txt')


@pytest.fixture(scope='module')
def killed(lane, counts, tmp_path_factory) -> Path:
    """What is left when two of four rounds are finished: min-counts 12 and 8, not 10 and 11."""
    folder = tmp_path_factory.mktemp('killed')
    kill_after_round(lane, learning(counts, *BEAM), folder, 2)
    return folder


@pytest.fixture(scope='module')
def reference(lane, counts, tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp('memory')
    learner_runs.succeed(lane, learning(counts, '--learner', 'memory'), folder)
    return result_files(folder)


# What a kill before the second round, or within its second iteration, leaves of the state above.
BEFORE_SECOND = ['round-8']
WITHIN_SECOND = ['round-8/vocabulary-2', 'round-8/vocabulary-3', 'round-8/vocabulary-4']


@pytest.mark.parametrize(
    ('name', 'unmade'),
    [
        ('survey.json', []),
        ('round-12/vocabulary-4', []),
        ('round-8/sizes.json', []),
        ('round-8/groups/group-00000', []),
        ('round-8/vocabulary-1', WITHIN_SECOND),
        ('round-8/frequent', WITHIN_SECOND),
        ('first-00000.json', BEFORE_SECOND),
        ('first/group-00000', BEFORE_SECOND),
    ],
)
def test_damage_is_told_and_then_made_anew(lane, counts, killed, reference, tmp_path, name, unmade):
    rounds = restore(killed, tmp_path, unmade)
    flip_bit(rounds / name, random.Random(name))
    command = learning(counts, *BEAM)
    ended = learner_runs.run(lane, command, tmp_path)
    ended.assert_refused(name, 'is damaged; run again, and it is made anew')
    assert list(tmp_path.iterdir()) == []
    learner_runs.succeed(lane, command, tmp_path)
    assert result_files(tmp_path) == reference


def test_what_is_written_anew_or_not_read_again_may_be_damaged(
    lane, counts, killed, reference, tmp_path
):
    rounds = restore(killed, tmp_path, [])
    for name in [
        'search.json', 'reserved.json', 'first/group-00000', 'first-00000.json', 'round-8/frequent',
        'round-8/vocabulary-1', 'round-12/groups/group-00000',
    ]:  # fmt: skip
        flip_bit(rounds / name, random.Random(name))
    learner_runs.succeed(lane, learning(counts, *BEAM), tmp_path)
    assert result_files(tmp_path) == reference
    assert not (tmp_path / '.tokbeam').exists()


def restore(killed: Path, folder: Path, unmade: Sequence[str]) -> Path:
    """Copies what a killed run left, without some files, and returns the learner's folder."""
    shutil.copytree(killed, folder, dirs_exist_ok=True)
    [rounds] = (folder / '.tokbeam').glob('learner-????????????????')
    # Also what was made if the kill came late.
    for name in [*unmade, 'round-10', 'round-11']:
        path = rounds / name
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    return rounds


def flip_bit(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
