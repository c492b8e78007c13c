"""The runs of several jobs are in one work folder, from which each job deletes its own when it ends."""

import shutil

from pipelines.shuffle.plan import FOLDER_PREFIX, PLAN_NAME, fingerprint_of, plan_json, stored_plans


def written(work, output):
    """The folder of a job's runs, and its plan."""
    content = {'output': output}
    folder = work / f'{FOLDER_PREFIX}{fingerprint_of(content).hex()}'
    folder.mkdir()
    (folder / PLAN_NAME).write_bytes(plan_json(content))
    return str(folder), content


def test_plans_that_are_deleted_while_they_are_read_are_left_out(tmp_path):
    plans = [written(tmp_path, output) for output in 'abc']
    assert sorted(stored_plans(str(tmp_path))) == sorted(plans)
    found = stored_plans(str(tmp_path))
    first = next(found)
    second, third = sorted(plan for plan in plans if plan != first)
    shutil.rmtree(second[0])
    assert list(found) == [third]
