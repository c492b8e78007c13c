"""What a signal finds in the making is undone before the process ends, and nothing is made after."""

import signal
import threading

import pytest

from tokcore import process_end
from tokcore.process_end import (
    UndoneAtEnd,
    allow_end,
    delay_end,
    has_busy_workers,
    hold_if_interrupted,
    interrupted_call,
    is_interrupted,
    keep,
    kept_work,
    temporary_folder,
    undo_all,
    undone_at_end,
)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(process_end, '_undoing', {})
    monkeypatch.setattr(process_end, 'unless_ending', threading.RLock())


def test_a_block_undoes_what_it_made_however_it_ends():
    undone = []
    with UndoneAtEnd(lambda: 1, undone.append) as made:
        assert made == 1 and not undone
    with pytest.raises(KeyError), UndoneAtEnd(lambda: 2, undone.append):
        raise KeyError
    assert undone == [1, 2] and process_end._undoing == {}


def test_something_is_undone_at_the_end_of_the_process_alone():
    undone = []
    with undone_at_end(lambda: undone.append(1)):
        assert list(undo_all(1)) == [] and undone == [1]
    assert undone == [1] and process_end._undoing == {}


def test_what_could_not_be_made_is_not_undone():
    with pytest.raises(ZeroDivisionError), UndoneAtEnd(lambda: 1 / 0, lambda _: pytest.fail()):
        pass
    assert process_end._undoing == {}


def test_the_end_undoes_the_last_first_and_all_of_it(tmp_path):
    undone = []

    def fail(_):
        undone.append('fails')
        raise OSError

    for make, undo in ((str, lambda _: undone.append('first')), (str, fail)):
        UndoneAtEnd(make, undo).__enter__()
    folder = temporary_folder(above=str(tmp_path)).__enter__()
    (tmp_path / folder / 'file').touch()
    [error] = undo_all(1)
    assert isinstance(error, OSError)
    assert undone == ['fails', 'first'] and not [*tmp_path.iterdir()]


def test_no_thread_makes_or_leaves_anything_after_the_end():
    began, left = threading.Event(), threading.Event()

    def work():
        with UndoneAtEnd(began.set, lambda _: None):
            ended.wait()
        left.set()

    ended = threading.Event()
    working = threading.Thread(target=work, daemon=True)
    working.start()
    began.wait()
    assert list(undo_all(1)) == []  # by this thread, which never gives the lock back
    ended.set()
    working.join(0.2)
    assert working.is_alive() and not left.is_set()


def interrupt_twice(worker):
    signal.raise_signal(signal.SIGINT)


def write_what_it_holds(worker):
    allow_end(worker)
    hold_if_interrupted()


@pytest.mark.parametrize('goes_on', [interrupt_twice, write_what_it_holds])
def test_an_interrupted_call_waits_for_a_worker_and_says_what_is_kept(goes_on):
    worker = object()
    with pytest.raises(KeyboardInterrupt, match='^kept: the counts; make the same call'):
        with interrupted_call():
            keep('the counts')
            delay_end(worker)
            signal.raise_signal(signal.SIGINT)
            assert is_interrupted() and has_busy_workers()
            goes_on(worker)
    assert not is_interrupted() and not has_busy_workers() and not kept_work()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupted_call_without_workers_ends_at_once():
    with pytest.raises(KeyboardInterrupt, match='^nothing is kept$'):
        with interrupted_call():
            signal.raise_signal(signal.SIGINT)
    with interrupted_call():
        assert not is_interrupted()


def test_a_handler_of_the_caller_stays():
    taken = []
    before = signal.signal(signal.SIGINT, lambda *_: taken.append(1))
    try:
        with interrupted_call():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert taken == [1] and not is_interrupted()
