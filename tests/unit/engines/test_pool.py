"""Calls in flight: as many at once as asked for, their results in the order of submission."""

import hashlib
import threading
import weakref

import pytest
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.engines.pool import OrderedPool, in_global_window

PATIENCE_SECONDS = 30
"""How long a thread waits for another before the test fails; none waits so long if all is well."""


@pytest.fixture
def in_flight():
    """Makes `OrderedPool`, closed when the test ends."""
    made = []

    def make(workers):
        made.append(OrderedPool(workers))
        return made[-1]

    yield make
    for calls in made:
        calls.close()


def results(calls, call, inputs):
    found = []
    for each in inputs:
        found += calls.submit(call, each)
    return found + list(calls.drain())


@pytest.mark.parametrize('workers', [1, 2, 3, 8])
@pytest.mark.parametrize('count', [0, 1, 2, 7, 50])
def test_results_come_in_order_of_submission(in_flight, workers, count):
    assert results(in_flight(workers), lambda x: x * x, range(count)) == [
        x * x for x in range(count)
    ]


def test_a_call_that_ends_late_keeps_its_place_and_the_calling_thread_takes_part(in_flight):
    second_has_run = threading.Event()

    def call(number):
        if number == 0:
            assert second_has_run.wait(PATIENCE_SECONDS)
        else:
            second_has_run.set()
        return number, threading.get_ident()

    numbers, threads = zip(*results(in_flight(2), call, [0, 1]))
    assert numbers == (0, 1)
    assert threading.get_ident() in threads
    assert len(set(threads)) == 2


@pytest.mark.parametrize('workers', [2, 4])
def test_so_many_calls_run_at_once(in_flight, workers):
    # Each waits for as many as may run at once: fewer would break the barrier.
    together = threading.Barrier(workers, timeout=PATIENCE_SECONDS)
    calls = in_flight(workers)
    for _ in range(3):
        assert len(results(calls, lambda _: together.wait(), range(workers))) == workers


@pytest.mark.parametrize('workers', [1, 2, 4])
def test_no_more_calls_run_at_once(in_flight, workers):
    lock = threading.Lock()
    running, most = 0, 0
    threads = set()

    def call(_):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            threads.add(threading.get_ident())
        hashlib.sha256(bytes(1 << 16))  # without the interpreter's lock, so that others begin
        with lock:
            running -= 1

    results(in_flight(workers), call, range(200))
    assert most <= workers
    assert len(threads) <= workers


def test_what_runs_aside_holds_up_no_other_call(in_flight):
    calls = in_flight(2)
    all_have_run = threading.Event()
    aside = calls.submit_detached(all_have_run.wait, PATIENCE_SECONDS)
    assert results(calls, lambda x: x, range(20)) == list(range(20))
    all_have_run.set()
    assert aside.result()


@pytest.mark.parametrize('workers', [1, 2, 4])
def test_what_runs_aside_is_run_once_and_at_the_latest_for_its_result(in_flight, workers):
    calls = in_flight(workers)
    may_end = threading.Event()
    for _ in range(workers - 1):  # all threads but the calling one have something else to do
        calls.submit_detached(may_end.wait, PATIENCE_SECONDS)
    threads = []
    aside = calls.submit_detached(lambda: threads.append(threading.get_ident()))
    aside.result()
    may_end.set()
    calls.close()
    assert threads == [threading.get_ident()]


def test_no_result_is_kept_that_was_taken(in_flight):
    calls = in_flight(2)
    may_end = threading.Event()
    calls.submit_detached(may_end.wait, PATIENCE_SECONDS)  # the pool comes to no other call
    results = weakref.WeakSet()

    class Result:
        def __init__(self):
            results.add(self)

    taken = sum(1 for _ in range(20) for _ in calls.submit(Result))
    taken += sum(1 for _ in calls.drain())
    kept = len(results)
    may_end.set()
    assert (taken, kept) == (20, 0)


def test_an_exception_aside_surfaces_with_the_result(in_flight):
    for workers in (1, 2):
        aside = in_flight(workers).submit_detached(int, 'no number')
        with pytest.raises(ValueError, match='no number'):
            aside.result()


def test_submitting_waits_when_all_workers_are_busy(in_flight):
    calls = in_flight(2)
    may_end = threading.Event()
    started = []

    def call(number):
        started.append(number)
        assert may_end.wait(PATIENCE_SECONDS)
        return number

    assert [found for number in range(3) for found in calls.submit(call, number)] == []
    waiting = calls.submit(call, 3)
    # One more than workers is neither started nor queued before the first's result is taken.
    assert 3 not in started
    may_end.set()
    assert list(waiting) == [0]
    assert list(calls.drain()) == [1, 2, 3]
    assert sorted(started) == [0, 1, 2, 3]


@pytest.mark.parametrize('workers', [1, 3])
@pytest.mark.parametrize('bad', [0, 4, 9])
def test_an_exception_in_a_call_surfaces_after_the_results_before_it(in_flight, workers, bad):
    calls = in_flight(workers)
    found = []

    def call(number):
        if number == bad:
            raise ValueError(f'call {number}')
        return number

    with pytest.raises(ValueError, match=f'call {bad}'):
        for number in range(10):
            found += calls.submit(call, number)
        for result in calls.drain():
            found.append(result)
    assert found == list(range(bad))


def test_closing_drops_what_has_not_started(in_flight):
    calls = in_flight(2)
    assert list(calls.submit(lambda: 1)) == []
    calls.close()
    assert list(calls.drain()) == []


def test_what_a_bundle_gives_at_its_end_is_in_the_global_window():
    assert in_global_window('x') == WindowedValue(
        'x', GlobalWindow().max_timestamp(), (GlobalWindow(),)
    )
    tagged = in_global_window(TaggedOutput('stats', ('lines', 3)))
    assert tagged.tag == 'stats'
    assert tagged.value.value == ('lines', 3)
    assert tagged.value.windows == (GlobalWindow(),)
