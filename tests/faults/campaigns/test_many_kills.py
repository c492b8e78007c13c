"""SIGKILL at drawn moments: no half file under a final name, and a rerun gives the same bytes.

A hundred of them: `FUZZ_CASES=100 pytest -m fuzz tests/faults/campaigns/test_many_kills.py`.
"""

import random
import shutil
import signal

import pytest
from forked_commands import Lane
from leftovers import result_files
from stopped_runs import (
    SEED,
    assert_finished,
    assert_whole,
    cases,
    draw_moment,
    run,
    wait_for,
)

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


@pytest.mark.parametrize('number', cases(usual=4))
def test_killed_at_a_drawn_moment(lane: Lane, jobs, tmp_path, number):
    dice = random.Random(f'kill-{SEED}-{number}')
    job = jobs[list(jobs)[number % len(jobs)]]
    folder = tmp_path / 'results'
    folder.mkdir()
    # A third of them is killed once more, or twice.
    for _ in range(dice.choice([1, 1, 1, 1, 2, 3])):
        lane.start(job.command(folder, *job.draw_spread(dice)), tmp_path)
        if wait_for(lane, folder, draw_moment(dice, job)):
            lane.send(signal.SIGKILL)
        ended = lane.end()
        assert ended.status in (0, -signal.SIGKILL), ended.stderr
        assert_whole(folder, job.reference)
    run(lane, job.command(folder, *job.draw_spread(dice)), tmp_path)
    assert_finished(folder, job.reference)
    shutil.rmtree(folder)


@pytest.mark.parametrize('number', cases(usual=2))
def test_killed_while_it_replaces_another_result(lane: Lane, jobs, tmp_path, number):
    dice = random.Random(f'replace-{SEED}-{number}')
    job = jobs[dice.choice(['count', 'encode'])]
    folder = tmp_path / 'results'
    folder.mkdir()
    other = ['--side', 'inputs'] if job is jobs['count'] else ['--seed', '1', '--shards', '6']
    run(lane, job.command(folder, *other), tmp_path)
    before = result_files(folder)
    assert before != job.reference
    lane.start(job.command(folder, '--overwrite', *job.draw_spread(dice)), tmp_path)
    if wait_for(lane, folder, draw_moment(dice, job)):
        lane.send(signal.SIGKILL)
    lane.end()
    assert_whole(folder, job.reference, before)
    run(lane, job.command(folder, '--overwrite', *job.draw_spread(dice)), tmp_path)
    assert_finished(folder, job.reference)
    shutil.rmtree(folder)
