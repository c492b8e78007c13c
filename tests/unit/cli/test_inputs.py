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


TAKEN = [
    ('/', ['x' * 20, 'é' * 10, '\udcff' * 20, '']),
    ('/new/' + 'x' * 20, []),
    ('/x' * 244, []),
]
REFUSED = [
    *(
        ('/', [name], 'at most 20; give a shorter --name$')
        for name in ('x' * 21, 'é' * 11, '\udcff' * 21)
    ),
    ('/new/' + 'x' * 21 + '/y', [], 'at most 20; give a shorter --output or --work'),
    ('/x' * 245, [], '490 bytes.* 488 leave room'),
]


def test_names_and_paths_up_to_the_limit_are_taken(limits):
    for folder, names in TAKEN:
        refuse_long_names(folder, names, '--name')


@pytest.mark.parametrize(('folder', 'names', 'said'), REFUSED)
def test_longer_ones_are_refused_with_what_decides_them(limits, folder, names, said):
    with pytest.raises(InputError, match=said):
        refuse_long_names(folder, ['x', *names], '--name')


def test_the_nearest_folder_that_there_is_is_asked(limits, tmp_path):
    with pytest.raises(InputError):
        refuse_long_names(str(tmp_path / 'new' / 'newer'), ['x' * 21], '--name')
    assert set(limits) == {str(tmp_path)}


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
