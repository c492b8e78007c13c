"""A list that another process made of an archive is the one that would be made here, or there is none."""

import gzip
import io
import os
import tarfile

import pytest

from pipelines.files import listed_archives
from pipelines.files.listed_archives import begin_lists, begun_list
from tokcore.corpus.archives import tar_entries
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.looks import Looks

PIPE_BYTES = 1 << 16  # what a pipe holds before its writer waits


@pytest.fixture(autouse=True)
def _small_archives_too(monkeypatch):
    monkeypatch.setattr(listed_archives, '_LEAST_BYTES', 1)
    monkeypatch.setattr(listed_archives, '_begun', {})


def archive_of(path, members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w') as tar:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    path.write_bytes(gzip.compress(packed.getvalue()))
    return CorpusFile(str(path), path.name, path.stat().st_size, True)


def opened(path):
    return open(path, 'rb')


@pytest.mark.parametrize('is_relative', [False, True])
def test_it_is_the_list_that_is_made_here(tmp_path, monkeypatch, is_relative):
    monkeypatch.chdir(tmp_path)
    members = [('b.en', b'second\n'), ('a.en.gz', gzip.compress(b'first\n')), ('三', b'')]
    archive = archive_of(tmp_path / 'some.tar.gz', members)
    given = 'some.tar.gz' if is_relative else archive.path
    begin_lists(['other', 'no.tar!a', f'{given}!*'])
    assert begun_list(archive) == tar_entries(archive, opened, Looks(opened))
    assert begun_list(archive) is None  # a second list would be of later


def test_one_archive_is_listed_at_a_time(tmp_path):
    first, second = (archive_of(tmp_path / f'{n}.tar.gz', [('a', b'b')]) for n in (1, 2))
    begin_lists([f'{first.path}!a', f'{second.path}!a'])
    assert [bool(begun_list(each)) for each in (first, second)] == [True, False]


def test_none_is_begun_of_a_small_archive_or_a_zip(tmp_path, monkeypatch):
    archive = archive_of(tmp_path / 'a.tar.gz', [('a', b'b')])
    (tmp_path / 'a.zip').write_bytes(b'PK\3\4')
    monkeypatch.setattr(listed_archives, '_LEAST_BYTES', archive.size + 1)
    begin_lists([f'{archive.path}!a', f'{tmp_path}/a.zip!a'])
    assert not listed_archives._begun


@pytest.mark.parametrize('change', [lambda path: os.utime(path, (1, 1)), os.remove])
def test_there_is_none_of_an_archive_that_has_changed_since(tmp_path, change):
    archive = archive_of(tmp_path / 'a.tar.gz', [('a', b'b')])
    begin_lists([f'{archive.path}!a'])
    listed_archives._begun[archive.path].wait()
    change(archive.path)
    assert begun_list(archive) is None


def test_there_is_none_of_a_damaged_archive(tmp_path):
    path = tmp_path / 'a.tar'
    path.write_bytes(b'no tar')
    begin_lists([f'{path}!a'])
    assert begun_list(CorpusFile(str(path), path.name, 6, False)) is None


def test_its_process_ends_with_the_one_that_wants_it(tmp_path):
    archive = archive_of(
        tmp_path / 'a.tar.gz', [(f'{n:090}', b'') for n in range(PIPE_BYTES // 90)]
    )
    begin_lists([f'{archive.path}!*'])
    process = listed_archives._begun[archive.path]
    assert process.stdout.read(1)  # it has more to tell than the pipe holds
    process.stdin.close()  # as the system does when this process ends
    assert process.wait() == 1
