"""What worker processes report: the driver adds it up, and takes no harm from anything else."""

import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
from object_store import keep_stores_in_memory

from pipelines.engines import progress
from pipelines.engines import work_reports as module
from pipelines.engines.progress import advance, listening, track_work
from pipelines.engines.work_reports import WorkReports, reports_read, work_reports, workers_report
from tokcore.kernels.jit import IS_DISABLED, before_compiling, kernel
from tokcore.object_stores import counted_requests, requests_since

WORKER = """
import sys
from pipelines.engines.progress import advance, set_total
from pipelines.engines.work_reports import WorkReports

WorkReports(sys.argv[1]).begin()
advance('reading', 3)
advance('merging', 4)
set_total('merging', 40)
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


def report(folder, *amounts):
    """Reports as a process does that has done so much."""
    writer = module._Writer(str(folder))
    for amount in amounts:
        writer.advance('reading', amount)
    writer.advance('merging', 4)
    writer.set_total('merging', 40)


def amounts(events, work):
    return [(each.done, each.total) for each in events if each.work == work]


def test_the_work_of_processes_is_added_up(told, tmp_path):
    with track_work('count', 'reading', 20), track_work('count', 'merging', None, 'examples'):
        with reports_read(str(tmp_path)):
            folder = work_reports().folder
            subprocess.run([sys.executable, '-c', WORKER, folder], check=True)
            report(folder, 4, 5)
            module._Reader(folder).look()
            assert amounts(told, 'reading')[-1] == (12, 20)
            assert amounts(told, 'merging')[-1] == (8, 40)
        assert not workers_report() and work_reports() == WorkReports()
    done = [each.done for each in told if each.work == 'reading']
    assert done == sorted(done)


def test_on_a_store_a_report_is_an_object(told, monkeypatch):
    pytest.importorskip('obstore')
    keep_stores_in_memory(monkeypatch)
    monkeypatch.setattr(module, '_STORE_SECONDS', 3600)
    before = counted_requests()
    with track_work('count', 'reading', 20), track_work('count', 'merging', None, 'examples'):
        with reports_read('gs://bucket/attempt'):
            folder = work_reports().folder
            report(folder, 3, 4)
            report(folder, 5)
            assert requests_since(before) == {'put': 6}
            module._Reader(folder).look()
            assert requests_since(before) == {'list': 1, 'put': 6, 'read': 2}
            assert amounts(told, 'reading')[-1] == (12, 20)
            assert amounts(told, 'merging')[-1] == (8, 40)


def test_when_a_pipeline_has_ended_well_all_is_done(told, tmp_path):
    """Also where the last report told less, or bundles that ran twice more."""
    with track_work('count', 'reading', 10), track_work('count', 'merging', None, 'examples'):
        with reports_read(str(tmp_path)):
            for _ in range(3):
                report(work_reports().folder, 5)
    assert amounts(told, 'reading')[-1] == (10, 10)
    assert amounts(told, 'merging')[-1] == (40, 40)


def test_when_a_pipeline_has_failed_no_more_is_done_than_told(told, tmp_path):
    with track_work('count', 'reading', 10), pytest.raises(KeyError), reports_read(str(tmp_path)):
        report(work_reports().folder, 5)
        raise KeyError
    assert amounts(told, 'reading')[-1] in [(0, 10), (5, 10)]


@pytest.mark.parametrize(('took', 'most'), [(0.0, 21), (0.1, 6)])
def test_reports_take_half_a_percent_of_the_time(monkeypatch, took, most):
    """In 100 seconds, on a store whose answers take no time or a tenth of a second."""
    clock, written = [0.0], []

    def write(path, data):
        clock[0] += took
        written.append(data)

    monkeypatch.setattr(module, 'time', SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(module.filesystem, 'write_bytes', write)
    writer = module._Writer('gs://bucket/progress')
    while clock[0] < 100:
        writer.advance('reading', 1)
        clock[0] += 0.01
    assert 5 <= len(written) <= most


@pytest.mark.parametrize(
    'data', [
        b'', b'{', b'[1]', b'{}', b'{"done": {"reading": "9"}, "totals": {}}', b'\xff', b'[' * 9999,
        b'{"done": {"reading": 9}, "totals": {}, "compiles": ["x"]}',
    ]
)  # fmt: skip
def test_what_is_not_a_report_counts_nothing(told, tmp_path, data):
    (tmp_path / 'progress').mkdir()
    (tmp_path / 'progress' / 'x').write_bytes(data)
    (tmp_path / 'progress' / 'folder').mkdir()
    with track_work('count', 'reading', 10), reports_read(str(tmp_path)):
        report(work_reports().folder, 1)
        module._Reader(work_reports().folder).look()
        assert amounts(told, 'reading')[-1] == (1, 10)


@kernel
def twice(number):
    return 2 * number


@pytest.mark.skipif(IS_DISABLED, reason='nothing is compiled')
def test_a_worker_that_compiles_a_kernel_says_so_once(told, tmp_path, monkeypatch, caplog):
    caplog.set_level('INFO')
    monkeypatch.setattr(twice._cache, '_folder', tmp_path / 'empty')
    monkeypatch.setattr(module, '_writers', {})
    WorkReports(str(tmp_path / 'progress')).begin()
    try:
        assert twice(3) == 6 and twice(4.5) == 9
    finally:
        before_compiling.clear()
    reader = module._Reader(str(tmp_path / 'progress'))
    reader.look()
    reader.look()
    said = [message for message in caplog.messages if 'compile kernels' in message]
    assert said == [f'workers on {platform.node()} compile kernels, once for that machine']


def test_a_folder_that_cannot_be_written_to_ends_no_work(tmp_path):
    (tmp_path / 'file').write_bytes(b'')
    report(tmp_path / 'file' / 'progress', 1)


def test_work_of_the_driver_itself_is_counted_there(told, tmp_path):
    with track_work('count', 'reading', 10), reports_read(str(tmp_path)):
        work_reports().begin()
        advance('reading', 4)
    assert amounts(told, 'reading') == [(0, 10), (4, 10)]
    assert not (tmp_path / 'progress').exists()


@pytest.mark.parametrize('folder', [None, 'hdfs://host/x'])
def test_a_pipeline_without_a_folder_has_no_reports(folder):
    with reports_read(folder):
        assert work_reports() == WorkReports()
        work_reports().begin()
