"""Names and paths that a filesystem cannot hold are known before anything is made."""

import os

import pytest

from pipelines.cli.inputs import refuse_long_names
from tokcore.errors import InputError

pytestmark = pytest.mark.skipif(not hasattr(os, 'pathconf'), reason='the system tells no limits')


@pytest.fixture
def limits(monkeypatch):
    """A filesystem with names of 20 bytes and paths of 1,000."""
    asked = []

    def pathconf(path, name):
        asked.append(path)
        return {'PC_NAME_MAX': 20, 'PC_PATH_MAX': 1000}[name]

    monkeypatch.setattr(os, 'pathconf', pathconf)
    return asked


def test_names_up_to_the_limit_are_taken(limits):
    refuse_long_names('/', ['x' * 20, 'é' * 10, '\udcff' * 20, ''], '--name')


@pytest.mark.parametrize('name', ['x' * 21, 'é' * 11, '\udcff' * 21])
def test_a_longer_one_is_refused_with_what_decides_it(limits, name):
    with pytest.raises(InputError, match='2[0-9] bytes.*at most 20; give a shorter --name$'):
        refuse_long_names('/', ['x', name], '--name')


def test_folders_that_are_to_be_made_count_too(limits):
    refuse_long_names('/new/' + 'x' * 20, [], '--name')
    with pytest.raises(InputError, match='at most 20; give a shorter --output or --work'):
        refuse_long_names('/new/' + 'x' * 21 + '/y', [], '--name')


def test_the_nearest_folder_that_there_is_is_asked(limits, tmp_path):
    with pytest.raises(InputError):
        refuse_long_names(str(tmp_path / 'new' / 'newer'), ['x' * 21], '--name')
    assert set(limits) == {str(tmp_path)}


def test_a_path_leaves_room_for_what_lies_below_it(limits):
    refuse_long_names('/x' * 244, [], '--name')
    with pytest.raises(InputError, match='490 bytes.* 488 leave room'):
        refuse_long_names('/x' * 245, [], '--name')


@pytest.mark.parametrize('answer', [OSError(22, 'Invalid argument'), -1])
def test_where_the_system_does_not_tell_the_usual_limits_hold(monkeypatch, answer):
    def pathconf(path, name):
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os, 'pathconf', pathconf)
    refuse_long_names('/', ['x' * 255], '--name')
    with pytest.raises(InputError, match='at most 255'):
        refuse_long_names('/', ['x' * 256], '--name')


def test_this_filesystem_holds_what_is_let_through(tmp_path):
    longest = os.pathconf(tmp_path, 'PC_NAME_MAX')
    refuse_long_names(str(tmp_path), ['x' * longest], '--name')
    (tmp_path / ('x' * longest)).touch()
    with pytest.raises(InputError):
        refuse_long_names(str(tmp_path), ['x' * (longest + 1)], '--name')
