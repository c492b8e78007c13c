"""What worker processes report: the driver adds it up, and takes no harm from what is no report."""

import subprocess
import sys

import pytest

from pipelines.engines import progress
from pipelines.engines.progress import advance, listening, track_work
from pipelines.engines.work_reports import WorkReports, reports_read, work_reports, workers_report

WORKER = """
import sys
from pipelines.engines.progress import advance, set_total
from pipelines.engines.work_reports import WorkReports

reports = WorkReports(sys.argv[1])
reports.begin()
for amount in map(int, sys.argv[2:]):
    advance('reading', amount)
set_total('merging', 40)
advance('merging', 4)
reports.tell()
"""


@pytest.fixture
def told():
    events = []
    with listening(events.append):
        yield events


@pytest.fixture(autouse=True)
def counted_here():
    """Work of this process goes nowhere after a test."""
    yield
    progress._elsewhere.clear()


def work_in_a_process(folder, *amounts):
    subprocess.run([sys.executable, '-c', WORKER, folder, *map(str, amounts)], check=True)


def amounts(events, work):
    return [(each.done, each.total) for each in events if each.work == work]


def test_the_work_of_processes_is_added_up(told, tmp_path):
    with track_work('count', 'reading', 20), track_work('count', 'merging', None, 'examples'):
        with reports_read(str(tmp_path)):
            folder = work_reports().folder
            work_in_a_process(folder, 3, 4)
            work_in_a_process(folder, 5)
        assert not workers_report() and work_reports() == WorkReports()
    assert amounts(told, 'reading')[-1] == (12, 20)
    assert amounts(told, 'merging')[-1] == (8, 40)
    done = [each.done for each in told if each.work == 'reading']
    assert done == sorted(done)


def test_what_is_done_twice_is_no_more_than_all(told, tmp_path):
    with track_work('count', 'reading', 10), reports_read(str(tmp_path)):
        for _ in range(3):
            work_in_a_process(work_reports().folder, 5)
    assert amounts(told, 'reading')[-1] == (10, 10)


@pytest.mark.parametrize(
    'data', [b'', b'{', b'[1]', b'{}', b'{"done": {"reading": "9"}, "totals": {}}', b'\xff', b'[' * 9999]
)  # fmt: skip
def test_what_is_no_report_counts_nothing(told, tmp_path, data):
    (tmp_path / 'progress').mkdir()
    (tmp_path / 'progress' / 'x').write_bytes(data)
    (tmp_path / 'progress' / 'folder').mkdir()
    with track_work('count', 'reading', 10), reports_read(str(tmp_path)):
        work_in_a_process(work_reports().folder, 1)
    assert amounts(told, 'reading')[-1] == (1, 10)


def test_a_folder_that_cannot_be_written_to_ends_no_work(tmp_path):
    (tmp_path / 'file').write_bytes(b'')
    work_in_a_process(tmp_path / 'file' / 'progress', 1)


def test_work_of_the_driver_itself_is_counted_there(told, tmp_path):
    with track_work('count', 'reading', 10), reports_read(str(tmp_path)):
        work_reports().begin()
        advance('reading', 4)
        work_reports().tell()
    assert amounts(told, 'reading') == [(0, 10), (4, 10)]
    assert not (tmp_path / 'progress').exists()


def test_a_pipeline_without_a_folder_has_no_reports():
    for folder in (None, 's3://bucket/x'):
        with reports_read(folder):
            assert work_reports() == WorkReports()
            work_reports().begin()
            work_reports().tell()
