"""Stores that only Beam reaches, by one in memory: no folders, links or locks."""

import contextlib
import io
import os

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

from pipelines.files import filesystem
from pipelines.files.attempts import Attempt, WorkFolder
from pipelines.files.claims import Claim
from tokcore.errors import InputError


class _Object(io.BytesIO):
    """A file that is stored when it is closed."""

    def __init__(self, path: str):
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            MemoryStore.files[self._path] = self.getvalue()
        super().close()


class MemoryStore(FileSystem):
    files: dict[str, bytes] = {}

    @classmethod
    def scheme(cls):
        return 'memory'

    def join(self, basepath, *paths):
        return '/'.join([basepath.rstrip('/'), *paths])

    def split(self, path):
        folder, _, name = path.rpartition('/')
        return folder, name

    def mkdirs(self, path):
        raise NotImplementedError

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        for path, data in self.files.items():
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(data), 7.0)

    def create(self, path, mime_type='', compression_type='auto'):
        return _Object(path)

    def open(self, path, mime_type='', compression_type='auto'):
        return io.BytesIO(self.files[path])

    def copy(self, source_file_names, destination_file_names):
        raise NotImplementedError

    def rename(self, source_file_names, destination_file_names):
        for source, destination in zip(source_file_names, destination_file_names, strict=True):
            self.files[destination] = self.files.pop(source)

    def exists(self, path):
        return path in self.files

    def size(self, path):
        return len(self.files[path])

    def last_updated(self, path):
        return 7.0

    def checksum(self, path):
        raise NotImplementedError

    def metadata(self, path):
        if path not in self.files:
            raise BeamIOError(path)
        return FileMetadata(path, len(self.files[path]), 7.0)

    def delete(self, paths):
        for path in paths:
            del self.files[path]


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(MemoryStore, 'files', {})
    return MemoryStore.files


def test_what_is_written_is_listed_read_and_deleted(store):
    for name in ('b', 'a', 'deep/c[1]'):
        filesystem.write_bytes(f'memory://x/out/{name}', name.encode())
    assert [(file.name, file.size) for file in filesystem.list_folder('memory://x/out')] == [
        ('a', 1), ('b', 1), ('deep/c[1]', 9),
    ]  # fmt: skip
    assert filesystem.names_below('memory://x/out') == ['a', 'b', 'deep/c[1]']
    assert filesystem.entries('memory://x/out') == ['a', 'b', 'deep']
    assert filesystem.read_bytes('memory://x/out/deep/c[1]') == b'deep/c[1]'
    assert filesystem.stored_size('memory://x/out/a') == 1
    assert filesystem.is_folder('memory://x/out') and not filesystem.is_folder('memory://x/out/a')
    assert filesystem.is_shared('memory://x/out') and not filesystem.is_shared('/x/out')
    paths = ['memory://x/out', 's3://x/out', '/x/out']
    assert list(map(filesystem.is_only_beams, paths)) == [True, False, False]
    assert [file.path for file in filesystem.find('memory://x/out/*')] == [
        'memory://x/out/a', 'memory://x/out/b',
    ]  # fmt: skip
    assert [file.name for file in filesystem.find('memory://x/out/deep/c[1]')] == ['c[1]']
    filesystem.delete_known('memory://x/out', 'deep/c[1]'.__eq__)
    filesystem.delete_file('memory://x/out/a')
    filesystem.delete_file('memory://x/out/a')
    assert list(store) == ['memory://x/out/b']


def test_a_writer_that_fails_leaves_nothing(store):
    with pytest.raises(KeyError), filesystem.create('memory://x/a') as stream:
        stream.write(b'half')
        raise KeyError
    assert store == {}


def test_folders_and_links_are_not_there(store):
    assert filesystem.make_folders('memory://x/out') == []
    with Claim('memory://x/out/lock', 'an output') as claim:
        assert claim.folder is None
    filesystem.delete_if_empty('memory://x/out')
    with WorkFolder('memory://x/work', 'memory://x/out').made():
        pass
    assert store == {}


def test_an_unknown_scheme_and_a_missing_file_are_told(store):
    with pytest.raises(InputError, match=r'nothing here opens nowhere:// paths'):
        filesystem.absolute('nowhere://x')
    for pattern in ('memory://x/a', 'memory://x/a*'):
        with pytest.raises(InputError, match='does not exist|no file matches'):
            filesystem.find(pattern)


def test_an_attempt_publishes_its_files_and_sweeps_those_that_were_killed(store):
    store[f'{Attempt("memory://x/out").path}/part'] = b'left'
    store['memory://x/out/mine'] = b'mine'
    with Attempt('memory://x/out') as attempt:
        filesystem.write_bytes(os.path.join(attempt.path, 'a'), b'new')
        filesystem.write_bytes(os.path.join(attempt.path, 'b'), b'not published')
        attempt.publish([('a', 'memory://x/out/a')])
    assert store == {'memory://x/out/mine': b'mine', 'memory://x/out/a': b'new'}


def test_a_claim_is_a_file_and_the_second_run_is_refused(store):
    with Claim('memory://x/out/.lock', 'memory://x/out') as claim:
        claim.check()
        refused = pytest.raises(InputError, match='is being written by process')
        with refused, contextlib.ExitStack() as stack:
            stack.enter_context(Claim('memory://x/out/.lock', 'memory://x/out'))
        store['memory://x/out/.lock'] = b'{}'
        with pytest.raises(InputError, match='was taken over by another run'):
            claim.check()
