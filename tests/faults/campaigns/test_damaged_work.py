"""What a killed run left is damaged before the rerun: made anew, or each told once and then made anew.

As many as wanted: `FUZZ_CASES=100 pytest -m fuzz tests/faults/campaigns/test_damaged_work.py`.
"""

import random
import shutil
import signal
from pathlib import Path

import pytest
from disturbances import change_file
from stopped_runs import SEED, assert_finished, assert_whole, cases, draw_moment, run, wait_for

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

_CUT = ['@item-size', '10KiB', '@buffer', '16KiB', '@shuffle', 'files']


@pytest.mark.parametrize('number', cases(usual=3))
def test_a_rerun_over_damaged_work(lane, jobs, tmp_path, number):
    dice = random.Random(f'damaged-{SEED}-{number}')
    name = ['encode', 'vocab', 'build'][number % 3]
    job = jobs[name]
    folder = tmp_path / 'results'
    folder.mkdir()
    cut = _CUT if name != 'vocab' else []
    lane.start(job.command(folder, *cut), tmp_path)
    if wait_for(lane, folder, draw_moment(dice, job)):
        lane.send(signal.SIGKILL)
    lane.end()
    left = [path for path in work_files(folder) if path.is_file()]
    damaged = dice.sample(left, min(len(left), dice.choice([1, 1, 3])))
    for path in damaged:
        change_file(dice, path)
    for _ in damaged:
        again = lane.run(job.command(folder, *cut), tmp_path)
        assert again.status in (0, 2), again.stderr
        assert again.status == 0 or len(again.complaints) == 1, again.stderr
        assert_whole(folder, job.reference)
    run(lane, job.command(folder, *cut), tmp_path)
    assert_finished(folder, job.reference)
    shutil.rmtree(folder)


def work_files(folder: Path) -> list[Path]:
    """Returns what is below the folder for work that a killed run left."""
    return sorted((folder / '.tokbeam').rglob('*')) + sorted(folder.glob('*/.tokbeam/**/*'))
