"""A folder is this user's alone, or it is not used."""

import os
import stat

import pytest

from tokcore.kernels.cache_folder import only_owner_may_replace, private_folder, source_digest

pytestmark = pytest.mark.skipif(not hasattr(os, 'geteuid'), reason='no owners on this system')

USER, ROOT, STRANGER = os.geteuid(), 0, os.geteuid() + 1


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask_of_0():
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_folder_and_its_missing_parents_get_mode_0700(tmp_path, umask_of_0):
    path = tmp_path / 'above' / 'folder'
    assert private_folder(path) == path
    assert mode_of(path) == mode_of(path.parent) == 0o700


def test_a_folder_that_others_may_read_gets_mode_0700_and_keeps_its_files(tmp_path):
    path = tmp_path / 'folder'
    path.mkdir()
    (path / 'file').touch()
    path.chmod(0o755)
    assert private_folder(path) == path
    assert mode_of(path) == 0o700
    assert (path / 'file').exists()


def refused(path):
    with pytest.raises(PermissionError) as refusal:
        private_folder(path)
    return refusal.value.strerror


@pytest.mark.parametrize('own', [True, False])
def test_the_parent_gets_mode_0700_if_it_is_the_programs_own(tmp_path, own):
    above = tmp_path / 'above'
    above.mkdir()
    above.chmod(0o755)
    assert private_folder(above / 'folder', own_parent=own) == above / 'folder'
    assert mode_of(above) == (0o700 if own else 0o755)


def test_a_link_is_not_used_and_its_target_is_unchanged(tmp_path):
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    (elsewhere / 'file').touch()
    elsewhere.chmod(0o777)
    (tmp_path / 'folder').symlink_to(elsewhere)
    assert 'not a folder of this user' in refused(tmp_path / 'folder')
    assert mode_of(elsewhere) == 0o777
    assert (elsewhere / 'file').exists()


def test_links_in_the_path_are_followed(tmp_path):
    (tmp_path / 'elsewhere').mkdir()
    (tmp_path / 'link').symlink_to(tmp_path / 'elsewhere')
    assert private_folder(tmp_path / 'link' / 'folder') == tmp_path / 'elsewhere' / 'folder'


def test_a_file_in_its_place_is_not_used(tmp_path):
    (tmp_path / 'file').touch()
    assert 'not a folder of this user' in refused(tmp_path / 'file')
    with pytest.raises(OSError):
        private_folder(tmp_path / 'file' / 'folder')


def test_a_folder_of_another_user_is_not_used(tmp_path, monkeypatch):
    (tmp_path / 'folder').mkdir()
    monkeypatch.setattr(os, 'geteuid', lambda: STRANGER)
    assert refused(tmp_path / 'folder')


def folder(owner, mode):
    """What the system tells of a folder."""
    return os.stat_result((stat.S_IFDIR | mode, 1, 1, 2, owner, owner, 0, 0, 0, 0))


TOP = folder(ROOT, 0o755)
TMP = folder(ROOT, 0o1777)


@pytest.mark.parametrize(
    'folders',
    [
        [TOP, folder(USER, 0o755), folder(USER, 0o755)],
        [TOP, TMP, folder(USER, 0o755)],
        [TOP, TMP],
        [TOP, folder(USER, 0o700), folder(USER, 0o777)],
        [TOP, folder(USER, 0o700), folder(STRANGER, 0o777)],
        [folder(STRANGER, 0o755), folder(STRANGER, 0o755), folder(USER, 0o755)],
    ],
    ids=['own', 'sticky', 'in-sticky', 'wide-in-private', 'strange-in-private', 'other-root'],
)
def test_a_folder_that_others_cannot_rename_or_reach_is_safe(folders):
    assert only_owner_may_replace(folders)


@pytest.mark.parametrize(
    'folders',
    [
        [TOP, folder(USER, 0o777)],
        [TOP, folder(USER, 0o777), folder(USER, 0o700)],
        [TOP, folder(ROOT, 0o777), folder(USER, 0o755)],
        [TOP, folder(USER, 0o775)],
        [TOP, folder(STRANGER, 0o755)],
        [TOP, folder(STRANGER, 0o1777)],
    ],
    ids=['wide', 'private-in-wide', 'wide-of-root', 'a-group', 'strange', 'sticky-of-a-stranger'],
)
def test_a_folder_that_others_can_rename_is_not_safe(folders):
    assert not only_owner_may_replace(folders)


def test_the_digest_names_all_sources(tmp_path):
    # The wrapped function, since a process reads the sources once.
    digest = source_digest.__wrapped__
    (tmp_path / 'plain.py').write_text('one = 1\n')
    (tmp_path / 'notes.txt').write_text('one\n')
    before = digest(tmp_path)
    (tmp_path / 'notes.txt').write_text('two\n')
    assert digest(tmp_path) == before
    (tmp_path / 'plain.py').write_text('one = 2\n')
    assert digest(tmp_path) != before
