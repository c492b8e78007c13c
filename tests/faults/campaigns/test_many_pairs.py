"""Two jobs at once: of those with one output one wins whole, and others never hinder each other.

Fifty pairs: `FUZZ_CASES=50 pytest -m fuzz tests/faults/campaigns/test_many_pairs.py`.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from forked_commands import Ended
from killed_runs import names_in
from leftovers import result_files
from stopped_runs import (
    SEED,
    Job,
    assert_finished,
    assert_manifest_holds,
    cases,
    draw_moment,
    wait_for,
    watch,
)

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

_BEING_WRITTEN = re.compile(r'is being written by process \d+ on host \S+ since \d{4}-')
_IS_ANOTHER = re.compile(r'is of a run with another')


def published(folder: Path) -> bool:
    """Whether a file has its final name."""
    return any('/.tokbeam' not in name and os.path.isfile(name) for name in names_in(folder))


def assert_one_won(folder: Path, pair: list[Job], ended: list[Ended], sentences: list) -> None:
    """Those with status 0 have the result that is there, and others were refused in a sentence."""
    winners = [job for job, end in zip(pair, ended) if end.status == 0]
    assert winners, [each.stderr for each in ended]
    for end in ended:
        if end.status != 0:
            assert end.status == 2, end.stderr
            assert len(end.complaints) == 1, end.stderr
            assert any(each.search(end.complaints[0]) for each in sentences), end.stderr
    found = result_files(folder)
    assert any(found == job.reference for job in winners), [each.stderr for each in ended]
    for path in folder.rglob('*tokbeam.json'):
        assert_manifest_holds(path)
    left = [str(path) for path in folder.rglob('.tokbeam*')]
    assert not left, left


@pytest.mark.parametrize('number', cases(usual=4))
def test_two_at_once_on_one_output(lanes, jobs, other_jobs, tmp_path, number):
    dice = random.Random(f'pair-{SEED}-{number}')
    name = list(jobs)[number % len(jobs)]
    are_equal = dice.random() < 0.5
    pair = [jobs[name], jobs[name] if are_equal else other_jobs[name]]
    dice.shuffle(pair)
    overwrites = ['--overwrite'] * (dice.random() < 0.3)
    folder = tmp_path / 'results'
    folder.mkdir()
    first = lanes[0].start(
        pair[0].command(folder, *pair[0].draw_spread(dice), *overwrites), tmp_path, seconds=90
    )
    wait_for(lanes[0], folder, draw_moment(dice, pair[0]))
    second = lanes[1].start(
        pair[1].command(folder, *pair[1].draw_spread(dice), *overwrites), tmp_path, seconds=90
    )
    held = dice.choice([None, first, second])
    if held is not None:
        # Hold one of them in its publishing, or whatever it does at that moment.
        one, other = (lanes[0], lanes[1]) if held == first else (lanes[1], lanes[0])
        if watch(one, folder, set(), lambda: published(folder)) and not one.has_ended():
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(held, signal.SIGSTOP)
                until = time.monotonic() + 10
                watch(other, folder, set(), lambda: time.monotonic() > until)
                os.kill(held, signal.SIGCONT)
    ended = [lane.end() for lane in lanes]
    assert_one_won(folder, pair, ended, [_BEING_WRITTEN, _IS_ANOTHER])
    if are_equal or overwrites:
        statuses = sorted(each.status for each in ended)
        assert statuses in ([0, 0], [0, 2])
    shutil.rmtree(folder)


@pytest.mark.parametrize('name', ['count', 'vocab', 'encode', 'build'])
@pytest.mark.parametrize('is_equal', [True, False], ids=['equal', 'different'])
@pytest.mark.parametrize('overwrites', [False, True], ids=['', 'overwrite'])
def test_begun_while_another_is_held_in_its_publishing(
    lanes, jobs, other_jobs, tmp_path, name, is_equal, overwrites
):
    job, other = jobs[name], jobs[name] if is_equal else other_jobs[name]
    folder = tmp_path / 'results'
    folder.mkdir()
    lanes[0].start(job.command(folder), tmp_path, seconds=90)
    assert watch(lanes[0], folder, set(), lambda: published(folder))
    lanes[0].send(signal.SIGSTOP)
    second = lanes[1].run(other.command(folder, *['--overwrite'] * overwrites), tmp_path)
    lanes[0].send(signal.SIGCONT)
    ended = lanes[0].end()
    # The first may have been at its end when it was held.
    sentences = [_BEING_WRITTEN, *[_IS_ANOTHER] * (not overwrites)]
    if second.status == 0 and ended.status == 0:
        assert overwrites or is_equal
        assert_finished(folder, other.reference)
    else:
        assert_one_won(folder, [job, other], [ended, second], sentences)


@pytest.mark.parametrize('number', cases(usual=2))
def test_two_outputs_with_one_work_folder(lanes, jobs, other_jobs, tmp_path, number):
    dice = random.Random(f'work-{SEED}-{number}')
    name = dice.choice(['encode', 'build', 'vocab'])
    pair = [jobs[name], dice.choice([jobs[name], other_jobs[name]])]
    folders = [tmp_path / 'one', tmp_path / 'two']
    work = tmp_path / 'work'
    for lane, job, folder in zip(lanes, pair, folders):
        folder.mkdir()
        lane.start(
            job.command(folder, '--work', work, *job.draw_spread(dice)), tmp_path, seconds=90
        )
        wait_for(lane, folder, draw_moment(dice, job))
    for lane, job, folder in zip(lanes, pair, folders):
        ended = lane.end()
        assert ended.status == 0, ended.stderr
        assert_finished(folder, job.reference)
    assert not work.exists() or list(work.rglob('*')) == []


@pytest.mark.parametrize('number', cases(usual=2))
def test_two_sizes_of_vocabulary_from_one_count_in_one_folder(lanes, jobs, tmp_path, number):
    dice = random.Random(f'sizes-{SEED}-{number}')
    job = jobs['vocab']
    folder = tmp_path / 'results'
    folder.mkdir()
    sizes = [300, 301 if dice.random() < 0.3 else dice.choice([250, 400])]
    for lane, size in zip(lanes, sizes):
        command = [*job.arguments, '--vocab-size', size, '--output', folder / f'vocab.{size}']
        lane.start(command, tmp_path, seconds=90)
        wait_for(lane, folder, draw_moment(dice, job))
    for lane in lanes:
        ended = lane.end()
        assert ended.status == 0, ended.stderr
    for size in sizes:
        assert_manifest_holds(folder / f'vocab.{size}.tokbeam.json')
        alone = tmp_path / f'alone-{size}'
        command = [*job.arguments, '--vocab-size', size, '--output', alone, '--learner', 'memory']
        assert lanes[0].run(command, tmp_path).status == 0
        assert (folder / f'vocab.{size}').read_bytes() == alone.read_bytes()
    assert not list(folder.rglob('.tokbeam*'))
