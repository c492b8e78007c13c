"""Progress events of a running job: which listener gets which, and how work is counted."""

import contextlib
import threading

import pytest

from pipelines.engines.progress import (
    StageBegan,
    StageEnded,
    WorkDone,
    advance,
    listening,
    set_total,
    stage_running,
    track_work,
)


@pytest.fixture
def events():
    """All events of a test, in order."""
    received = []
    with listening(received.append):
        yield received


def amounts(events):
    return [(event.done, event.total) for event in events]


def test_a_stage_that_fails_has_ended(events):
    with pytest.raises(OSError), stage_running('count'):
        raise OSError
    assert events == [StageBegan('count'), StageEnded('count')]


def test_work_goes_from_0_to_its_total(events):
    with track_work('count', 'reading', 10):
        advance('reading', 4)
        advance('reading', 0)
        advance('reading', 6)
    assert events[0] == WorkDone('count', 'reading', 0, 10, 'B')
    assert amounts(events) == [(0, 10), (4, 10), (10, 10)]


def test_of_very_many_small_parts_not_each_is_told(events):
    with track_work('count', 'reading', 100_000):
        for _ in range(100_000):
            advance('reading', 1)
    assert amounts(events) == [(done, 100_000) for done in [*range(0, 100_000, 25), 100_000]]


def test_the_total_may_be_set_later(events):
    with track_work('shuffle', 'merging', None, 'examples'):
        assert not events
        set_total('merging', 3)
        advance('merging', 3)
    assert amounts(events) == [(0, 3), (3, 3)]


def test_work_that_is_not_tracked_sends_no_event(events):
    advance('reading', 4)
    set_total('reading', 4)
    with track_work('count', 'reading', 1):
        advance('merging', 1)
    advance('reading', 1)
    assert amounts(events) == [(0, 1)]


def test_threads_lose_no_work_and_send_it_in_order(events):
    def work():
        for _ in range(500):
            advance('reading', 3)

    threads = [threading.Thread(target=work) for _ in range(8)]
    with track_work('count', 'reading', 12_000):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [event.done for event in events] == list(range(0, 12_001, 3))


def test_work_that_overlaps_other_work_of_its_name_ends_alone():
    first, second = (track_work(stage, 'reading', 10) for stage in ('count', 'encode'))
    events = []
    with listening(events.append), contextlib.ExitStack() as rest:
        with first:
            rest.enter_context(second)
        advance('reading', 10)
    assert events[-1] == WorkDone('encode', 'reading', 10, 10, 'B')
