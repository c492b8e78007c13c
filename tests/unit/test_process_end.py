"""What a signal finds in the making is undone before the process ends, and nothing is made after."""

import threading

import pytest

from tokcore import process_end
from tokcore.process_end import UndoneAtEnd, temporary_folder, undo_all, undone_at_end


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
