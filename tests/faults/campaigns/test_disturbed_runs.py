"""Files that change, vanish or are replaced under a running job: a sentence, or a whole result.

As many as wanted: `FUZZ_CASES=100 pytest -m fuzz tests/faults/campaigns/test_disturbed_runs.py`.
"""

import random
import shutil
from pathlib import Path

import pytest
from disturbances import change_file, disturb_folder
from stopped_runs import (
    SEED,
    assert_finished,
    assert_manifest_holds,
    cases,
    draw_moment,
    run,
    wait_for,
)

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


@pytest.mark.parametrize('number', cases(usual=4))
def test_files_of_the_job_are_disturbed(lane, jobs, tmp_path, number):
    dice = random.Random(f'disturbed-{SEED}-{number}')
    job = jobs[list(jobs)[number % len(jobs)]]
    folder, victim = tmp_path / 'results', tmp_path / 'victim'
    folder.mkdir()
    victim.mkdir()
    (victim / 'precious').write_text('precious\n')
    lane.start(job.command(folder, *job.draw_spread(dice)), tmp_path)
    for _ in range(dice.choice([1, 1, 2])):
        if wait_for(lane, folder, draw_moment(dice, job)):
            disturb_folder(dice, folder, victim)
    ended = lane.end()
    assert ended.status in (0, 2), ended.stderr
    assert ended.status == 0 or len(ended.complaints) == 1, ended.stderr
    # Who plants a link in an attempt under way may have its files, and loses nothing.
    assert (victim / 'precious').read_text() == 'precious\n'
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize('number', cases(usual=4))
def test_the_input_is_disturbed(lane, jobs, tmp_path, number):
    dice = random.Random(f'input-{SEED}-{number}')
    name = list(jobs)[number % len(jobs)]
    job = jobs[name]
    folder = tmp_path / 'results'
    folder.mkdir()
    arguments = list(job.arguments)
    inputs = {}
    for place, word in enumerate(arguments):
        if isinstance(word, Path):
            arguments[place] = inputs.setdefault(word, tmp_path / word.name)
            # A vocabulary's manifest is beside it.
            for path in word.parent.glob(f'{word.name}*'):
                shutil.copy2(path, tmp_path / path.name)
    command = [*arguments, '--output', folder / job.output]
    lane.start([*command, *job.draw_spread(dice)], tmp_path)
    if wait_for(lane, folder, draw_moment(dice, job)):
        change_file(dice, dice.choice(list(inputs.values())))
    ended = lane.end()
    assert ended.status in (0, 2), ended.stderr
    assert ended.status == 0 or len(ended.complaints) == 1, ended.stderr
    for path in folder.rglob('*tokbeam.json'):
        if '.tokbeam' not in str(path.relative_to(folder).parent):
            assert_manifest_holds(path)
    for original, path in inputs.items():
        shutil.copy2(original, path)
    run(lane, [*command, '--overwrite'], tmp_path)
    assert_finished(folder, job.reference)
    shutil.rmtree(folder)
