"""Paths mean files first, and members of archives where there is no such file."""

import io
import tarfile
import zipfile

import pytest

from pipelines.files import filesystem
from pipelines.transforms.read import find_files
from tokcore.corpus.archive_reading import text_pieces
from tokcore.errors import InputError


@pytest.fixture
def folder(tmp_path):
    for name in ('x.zip', 'y.zip'):
        with zipfile.ZipFile(tmp_path / name, 'w') as archive:
            for member in ('b.en', 'a.en', 'a!b.en'):
                archive.writestr(member, f'{member} of {name}\n')
    with tarfile.open(tmp_path / 'z.tgz', 'w:gz') as tar:
        member = tarfile.TarInfo('news/a.en')
        member.size = 3
        tar.addfile(member, io.BytesIO(b'tar'))
    return tmp_path


def read(file):
    return b''.join(text_pieces(file, filesystem.open_binary)).decode()


def found(folder, pattern):
    """By name what each file that is found holds."""
    return {each.stored.name: read(each.file) for each in find_files(str(folder / pattern))}


def test_members_are_known_by_their_archive_and_name(folder):
    assert found(folder, 'x.zip!a!b.en') == {'x.zip!a!b.en': 'a!b.en of x.zip\n'}
    assert found(folder, 'z.tgz!news/a.en') == {'z.tgz!news/a.en': 'tar'}
    [found_file] = find_files(str(folder / 'x.zip!a.en'))
    stored, file = found_file.stored, found_file.file
    assert stored.path == file.path == str(folder / 'x.zip!a.en')
    assert stored.size == (folder / 'x.zip').stat().st_size
    assert (file.size, file.compressed) == (len('a.en of x.zip\n'), False)
    assert file.archive.path == str(folder / 'x.zip')


def test_globs_of_archives_and_of_members_go_together_in_order(folder):
    assert [*found(folder, '*.zip![ab].en')] == [
        'x.zip!a.en', 'x.zip!b.en', 'y.zip!a.en', 'y.zip!b.en',
    ]  # fmt: skip


@pytest.mark.parametrize('name', ['x.zip!a.en', 'no.zip!b.en', 'a!b.en'])
def test_a_plain_file_may_have_such_a_name(folder, name):
    (folder / name).write_text('plain\n')
    assert found(folder, name) == found(folder, '*.en') == {name: 'plain\n'}


def test_what_is_neither_is_refused(folder):
    with pytest.raises(InputError, match=r"x\.zip has no file 'c.en' in it; there are a!b"):
        find_files(str(folder / 'x.zip!c.en'))
    with pytest.raises(InputError, match=r'none\.zip'):
        find_files(str(folder / 'none.zip!c.en'))
