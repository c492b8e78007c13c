"""Attempts, which only their own run deletes."""

import contextlib
import os

import pytest
from attempts import attempt_at

from pipelines.files import filesystem
from tokcore.errors import InputError

HEX = '0123456789abcdef' * 2


def names_below(folder):
    """All entries of a folder, at any depth."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*'))


def make_files(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def publish(attempt, *names):
    folder = os.path.dirname(attempt.path)
    attempt.publish([(name, os.path.join(folder, name)) for name in names])


class Interrupted(BaseException):
    """As from a signal: not an `Exception`."""


def test_an_attempt_is_hidden_and_swept(tmp_path):
    folder = tmp_path / 'out'
    with attempt_at(folder) as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'part'), b'x')
        [name] = os.listdir(folder)
        assert name.startswith('.tokbeam-attempt-')
    assert names_below(folder) == []


@pytest.mark.parametrize('error', [ValueError, Interrupted])
def test_an_attempt_is_swept_on_failure(tmp_path, error):
    folder = tmp_path / 'out'
    with pytest.raises(error), attempt_at(folder) as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'deep/part'), b'x')
        raise error('stop')
    assert names_below(folder) == []


def test_an_attempt_publishes_what_is_named_and_nothing_else(tmp_path):
    make_files(tmp_path, 'a')
    with attempt_at(tmp_path) as attempt:
        for name in 'abc':
            filesystem.write_bytes(os.path.join(attempt.path, name), b'new')
        publish(attempt, 'a', 'b')
    assert names_below(tmp_path) == ['a', 'b']
    assert (tmp_path / 'a').read_bytes() == b'new'


def test_an_attempt_sweeps_those_that_were_killed(tmp_path):
    left = attempt_at(tmp_path).__enter__()
    filesystem.write_bytes(os.path.join(left.path, 'deep/part'), b'x')
    make_files(tmp_path, 'mine', '.mine')
    with attempt_at(tmp_path):
        assert not filesystem.exists(left.path)
    assert names_below(tmp_path) == ['.mine', 'mine']


@contextlib.contextmanager
def killed_after(calls, names):
    """Lets so many calls of these functions of `os` happen, and nothing after them."""
    done = []

    def stopping(call):
        def stop_or_call(*arguments, **options):
            if len(done) >= calls:
                raise Interrupted
            done.append(call)
            return call(*arguments, **options)

        return stop_or_call

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Interrupted):
        for name in names:
            patch.setattr(os, name, stopping(getattr(os, name)))
        yield


@pytest.mark.parametrize('calls', range(1, 4))
def test_one_killed_while_it_began_is_swept(tmp_path, calls):
    with killed_after(calls, ['mkdir', 'open', 'fdopen', 'replace', 'unlink', 'rmdir']):
        attempt_at(tmp_path).__enter__()
    with attempt_at(tmp_path):
        pass
    assert names_below(tmp_path) == []


@pytest.mark.parametrize('calls', range(1, 8))
def test_one_killed_while_it_was_swept_is_swept(tmp_path, calls):
    left = attempt_at(tmp_path).__enter__()
    for name in ('part', 'deep/part', 'deep/deeper/part'):
        filesystem.write_bytes(os.path.join(left.path, name), b'x')
    with killed_after(calls, ['unlink', 'remove', 'rmdir', 'rename', 'replace']):
        left.__exit__()
    with attempt_at(tmp_path):
        pass
    assert names_below(tmp_path) == []


@pytest.mark.parametrize(
    'name',
    [
        f'.tokbeam-attempt-run-{HEX}/thesis',
        f'.tokbeam-attempt-{HEX}/part',
        '.tokbeam-attempt-mine/probe',
        '.tokbeam-attempt-z-train-00000-of-00002',
        f'.tokbeam-attempt-tokbeam.json-{HEX}',
    ],
)
def test_what_only_looks_like_an_attempt_is_left_alone(tmp_path, name):
    make_files(tmp_path, name)
    before = names_below(tmp_path)
    with attempt_at(tmp_path):
        pass
    assert names_below(tmp_path) == before


def test_a_link_of_such_a_name_is_removed_and_not_followed(tmp_path):
    make_files(tmp_path, 'docs/thesis', 'out/mine')
    os.symlink('../docs', attempt_at(tmp_path / 'out').path)
    with attempt_at(tmp_path / 'out'):
        pass
    assert names_below(tmp_path) == ['docs', 'docs/thesis', 'out', 'out/mine']


def test_nothing_is_published_through_a_link(tmp_path):
    make_files(tmp_path, 'docs/thesis')
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'rejected').symlink_to('../docs')
    with attempt_at(tmp_path / 'out') as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'rejected/thesis'), b'x')
        with pytest.raises(InputError, match='symbolic link'):
            publish(attempt, 'rejected/thesis')
    assert (tmp_path / 'docs/thesis').read_text() == 'docs/thesis'


def test_files_go_next_to_a_folder_that_a_link_leads_to(tmp_path):
    make_files(tmp_path, 'disk/counts/mine', 'here/mine')
    folder = tmp_path / 'here' / 'counts'
    folder.symlink_to('../disk/counts')
    with attempt_at(folder) as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'rejected/a'), b'x')
        attempt.publish([('rejected/a', str(tmp_path / 'here' / 'counts.rejected' / 'a'))])
    assert (tmp_path / 'here' / 'counts.rejected' / 'a').read_bytes() == b'x'


def test_nothing_goes_next_to_a_folder_that_was_replaced(tmp_path):
    folder = tmp_path / 'counts'
    with attempt_at(folder) as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'a'), b'x')
        folder.rename(tmp_path / 'moved')
        folder.mkdir()
        with pytest.raises(InputError, match='counts was moved or replaced'):
            attempt.publish([('a', str(tmp_path / 'counts.rejected' / 'a'))])
    assert not (tmp_path / 'counts.rejected').exists()


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path):
    (tmp_path / 'a').mkdir()
    with attempt_at(tmp_path) as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'a'), b'x')
        with pytest.raises(InputError, match='is a folder'):
            publish(attempt, 'a')


def test_attempts_at_different_files_of_a_folder_leave_each_other_alone(tmp_path):
    with attempt_at(tmp_path, ['a']) as first, attempt_at(tmp_path, ['b']) as second:
        for attempt, name in [(first, 'a'), (second, 'b')]:
            filesystem.write_bytes(os.path.join(attempt.path, name), b'x')
        # Nor does one at a file whose name only looks alike.
        with attempt_at(tmp_path, ['a.b']):
            assert filesystem.exists(first.path)
        publish(first, 'a')
        publish(second, 'b')
    assert names_below(tmp_path) == ['a', 'b']
