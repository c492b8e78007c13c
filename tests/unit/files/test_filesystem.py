"""Files are found in an order that no listing changes, and appear only when they are whole."""

import errno
import os
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.files import filesystem
from pipelines.files.filesystem import delete_empty_folders, delete_known, make_folders
from tokcore.errors import FullDiskError, InputError


def names_below(folder):
    """All entries of a folder, at any depth."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*'))


def make_files(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def found(pattern):
    return [file.name for file in filesystem.find(str(pattern))]


def test_a_path_is_found_with_its_size_and_time(tmp_path):
    path = tmp_path / 'a.txt'
    path.write_bytes(b'12345')
    os.utime(path, (1_000_000_000, 1_000_000_000))
    [file] = filesystem.find(str(path))
    assert (file.path, file.name, file.size) == (str(path), 'a.txt', 5)
    assert file.modified == 1_000_000_000


# No backslash: Beam's wildcards match none, on any system.
name_characters = st.characters(exclude_categories=['Cs', 'Cc'], exclude_characters='/*?[]\\')
file_names = st.text(name_characters, min_size=1, max_size=8)


@given(st.sets(file_names, min_size=1, max_size=8))
@example({'a', 'B', 'é', '中', '\U0001f600', '\uffee', 'a b', 'a-b', 'a.b'})
def test_a_glob_is_sorted_by_the_names_bytes(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp('glob')
    make_files(folder, *(f'{name}.txt' for name in names))
    expected = sorted((f'{name}.txt' for name in names), key=lambda name: name.encode())
    assert found(folder / '*.txt') == expected


def test_a_glob_over_folders_is_sorted_by_relative_paths(tmp_path):
    make_files(tmp_path, 'b/1.txt', 'a/2.txt', 'a-/0.txt', 'a/10.txt', 'c.txt')
    # '-' stands before '/', so the folder 'a-' comes before 'a'.
    assert found(tmp_path / '*' / '*.txt') == ['a-/0.txt', 'a/10.txt', 'a/2.txt', 'b/1.txt']


def test_one_star_stops_at_a_folder_and_two_do_not(tmp_path):
    make_files(tmp_path, 'x.txt', 'a/x.txt', 'a/b/x.txt')
    assert found(tmp_path / '*.txt') == ['x.txt']
    assert found(tmp_path / '**.txt') == ['a/b/x.txt', 'a/x.txt', 'x.txt']


@pytest.mark.parametrize('name', ['part[1].txt', 'what?.txt', 'a*b.txt', '[abc]'])
def test_a_file_whose_name_holds_a_wildcard_is_found_by_that_name(tmp_path, name):
    make_files(tmp_path, name, 'part1.txt', 'whats.txt', 'aab.txt', 'a')
    assert found(tmp_path / name) == [name]


def test_a_folder_whose_name_holds_a_bracket(tmp_path):
    make_files(tmp_path, 'run[1]/a.txt', 'run[1]/b.txt', 'run1/c.txt')
    folder = str(tmp_path / 'run[1]')
    assert found(f'{folder}/a.txt') == ['a.txt']
    assert [file.name for file in filesystem.list_folder(folder)] == ['a.txt', 'b.txt']
    filesystem.write_bytes(f'{folder}/d.txt', b'd')
    assert filesystem.read_bytes(f'{folder}/d.txt') == b'd'
    filesystem.delete_file(f'{folder}/d.txt')
    assert names_below(tmp_path) == ['run1', 'run1/c.txt', 'run[1]', 'run[1]/a.txt', 'run[1]/b.txt']


@pytest.mark.parametrize(
    ('pattern', 'reason'),
    [
        ('missing.txt', 'does not exist'),
        ('folder', 'is a folder'),
        ('*.missing', 'no file matches'),
        ('missing/*.txt', 'no file matches'),
        ('folder/', 'folder'),
    ],
)
def test_what_is_not_there_is_named_as_it_was_given(tmp_path, monkeypatch, pattern, reason):
    (tmp_path / 'folder').mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        filesystem.find(pattern)
    assert pattern in str(refused.value)
    assert reason in str(refused.value)


def test_gzip_is_opened_as_it_is_stored(tmp_path):
    path = tmp_path / 'a.txt.gz'
    path.write_bytes(b'not gzip at all')
    with filesystem.open_binary(str(path)) as stream:
        stream.seek(4)
        assert stream.read() == b'gzip at all'


def test_listing_a_folder_goes_to_any_depth(tmp_path):
    make_files(tmp_path, 'b', 'a/c', 'a/b/d')
    files = filesystem.list_folder(str(tmp_path))
    assert [file.name for file in files] == ['a/b/d', 'a/c', 'b']
    assert filesystem.list_folder(str(tmp_path / 'missing')) == []


class Interrupted(BaseException):
    """As from a signal: not an `Exception`."""


@pytest.mark.parametrize('error', [ValueError, Interrupted])
def test_creating_leaves_nothing_on_failure(tmp_path, error):
    with pytest.raises(error), filesystem.create(str(tmp_path / 'file')) as stream:
        stream.write(b'half')
        raise error('stop')
    assert names_below(tmp_path) == []


@pytest.mark.parametrize(
    ('number', 'kind'),
    [(errno.ENOSPC, FullDiskError), (errno.EFBIG, FullDiskError), (errno.EIO, InputError)],
)
def test_what_the_system_refuses_is_a_sentence_with_the_path(tmp_path, number, kind):
    path = tmp_path / 'file'
    with pytest.raises(kind, match=os.strerror(number)) as refused:
        with filesystem.create(str(path)) as stream:
            stream.write(b'half')
            raise OSError(number, os.strerror(number))
    assert str(path) in str(refused.value)
    assert names_below(tmp_path) == []


def test_a_large_write_reaches_the_system_in_pieces(tmp_path):
    data = os.urandom((5 << 19) + 1)
    with filesystem.create(str(tmp_path / 'a')) as stream:
        assert stream.raw.write(data) == 1 << 20
        assert stream.write(memoryview(data)[1 << 20 :]) == len(data) - (1 << 20)
    assert (tmp_path / 'a').read_bytes() == data


def test_creating_leaves_the_old_file_on_failure(tmp_path):
    (tmp_path / 'file').write_bytes(b'old')
    with pytest.raises(ValueError), filesystem.create(str(tmp_path / 'file')) as stream:
        stream.write(b'new')
        raise ValueError('stop')
    assert names_below(tmp_path) == ['file']
    assert (tmp_path / 'file').read_bytes() == b'old'


def test_creating_where_a_folder_is_leaves_nothing(tmp_path):
    (tmp_path / 'file').mkdir()
    with pytest.raises(InputError, match='Is a directory'):
        filesystem.write_bytes(str(tmp_path / 'file'), b'new')
    assert names_below(tmp_path) == ['file']


def test_reading_what_is_not_there(tmp_path):
    with pytest.raises(InputError, match='missing'):
        filesystem.read_bytes(str(tmp_path / 'missing'))
    assert filesystem.stored_size(str(tmp_path / 'missing')) is None
    assert not filesystem.exists(str(tmp_path / 'missing'))


@pytest.mark.parametrize(
    ('path', 'remedy'),
    [
        ('foo://x/y', 'foo://'),
        ('https://example.org/a', 'https://'),
        ('file:///tmp/a', 'without file://'),
        ('azfs://account/container/a', "pip install 'apache-beam[azure]'"),
        ('hdfs://folder/a', "pip install 'apache-beam[hadoop]', and give --hdfs_host"),
    ],
)
def test_a_path_of_a_filesystem_that_is_not_here(monkeypatch, path, remedy):
    monkeypatch.setitem(sys.modules, 'azure.storage.blob', None)
    for use in (filesystem.absolute, filesystem.find):
        with pytest.raises(InputError) as refused:
            use(path)
        assert path in str(refused.value) and remedy in str(refused.value)


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    for read in (filesystem.read_bytes, filesystem.open_binary, filesystem.find):
        with pytest.raises(InputError, match='pipe is not a regular file'):
            read(str(tmp_path / 'pipe'))
    make_files(tmp_path, 'a')
    with pytest.raises(InputError, match='pipe is not a regular file'):
        filesystem.find(str(tmp_path / '*'))


def test_what_is_known_is_deleted_and_no_link_is_followed(tmp_path):
    folder, elsewhere = tmp_path / 'folder', tmp_path / 'elsewhere'
    make_files(elsewhere, 'run-1', 'deep/run-2')
    make_files(folder, 'run-1', 'mine', 'a/run-2', 'b/mine', 'b/run-3')
    (folder / 'run-4').symlink_to(elsewhere)
    (folder / 'c').symlink_to(elsewhere)
    (folder / 'run-5').mkdir()
    delete_known(str(folder), lambda name: name.rpartition('/')[2].startswith('run-'))
    assert names_below(folder) == ['b', 'b/mine', 'c', 'mine']
    assert names_below(elsewhere) == ['deep', 'deep/run-2', 'run-1']


def test_a_link_in_the_place_of_a_folder_is_all_that_is_deleted(tmp_path):
    make_files(tmp_path, 'elsewhere/run-1')
    (tmp_path / 'folder').symlink_to(tmp_path / 'elsewhere')
    delete_known(str(tmp_path / 'folder'), lambda name: True)
    assert names_below(tmp_path) == ['elsewhere', 'elsewhere/run-1']


def test_folders_made_are_deleted_only_if_empty(tmp_path):
    made = make_folders(str(tmp_path / 'a/b/c'))
    assert made == [str(tmp_path / name) for name in ('a/b/c', 'a/b', 'a')]
    make_files(tmp_path, 'a/mine')
    delete_empty_folders(made)
    assert names_below(tmp_path) == ['a', 'a/mine']
