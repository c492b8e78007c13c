"""One run at a time works on an output; who comes second is told who is there."""

import json
import os
import platform
import subprocess
import sys

import pytest

from pipelines.files import claims
from pipelines.files.claims import Claim, LostError
from tokcore.errors import InputError

HOLD = """
import sys
from pipelines.files.claims import Claim, LostError
with Claim(sys.argv[1], 'the output'):
    print('held', flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=['lock', 'file'])
def way(request, monkeypatch):
    """A filesystem with locks, and one that has none."""
    if request.param == 'file':
        monkeypatch.setattr(claims, 'fcntl', None)
    return request.param


@pytest.fixture
def held(tmp_path):
    """A claim that another process holds."""
    path = tmp_path / 'out' / 'claim'
    process = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b'held\n'
    yield path, process
    process.communicate()


def holder_of(pid, host):
    return {'id': 'x', 'pid': pid, 'host': host, 'since': '2020-01-01 00:00:00 UTC'}


def test_nothing_is_left_of_a_claim(tmp_path, way):
    with Claim(str(tmp_path / 'a' / 'b' / 'claim'), 'the output') as claim:
        claim.check()
        assert os.listdir(tmp_path / 'a' / 'b') == ['claim']
    assert os.listdir(tmp_path) == []


def test_folders_that_hold_something_stay(tmp_path, way):
    with Claim(str(tmp_path / 'a' / 'claim'), 'the output'):
        (tmp_path / 'a' / 'result').write_text('x')
    assert os.listdir(tmp_path / 'a') == ['result']


def test_the_second_is_told_who_is_there_until_that_is_killed(held):
    path, process = held
    with pytest.raises(InputError) as refused, Claim(str(path), 'the output'):
        pass
    said = str(refused.value)
    assert 'the output is being written by' in said
    assert f'process {process.pid} on host {platform.node()} since 20' in said
    process.kill()
    process.wait()
    assert path.exists()
    with Claim(str(path), 'the output') as claim:
        claim.check()
    assert not path.exists()


@pytest.mark.parametrize('host', [platform.node(), 'elsewhere'])
def test_without_locks_no_claim_is_taken_over(tmp_path, monkeypatch, host):
    """Also not of this host: two containers may have its name, and one does not see the other's processes."""
    monkeypatch.setattr(claims, 'fcntl', None)
    path = tmp_path / 'claim'
    holder = holder_of(4_194_304, host)  # one more than Linux's greatest number of a process
    path.write_text(json.dumps(holder))
    with pytest.raises(InputError, match=f'process 4194304 on host {host} since 2020') as refused:
        with Claim(str(path), 'the output'):
            pass
    assert f'delete {path}' in str(refused.value)
    assert json.loads(path.read_text()) == holder


def test_a_claim_that_was_replaced_is_lost(tmp_path, way):
    path = tmp_path / 'claim'
    with Claim(str(path), 'the output') as claim:
        path.unlink()
        path.write_text(json.dumps(holder_of(7, 'other')))
        with pytest.raises(LostError, match='taken over by process 7 on host other'):
            claim.check()
    assert path.exists()  # the other's


@pytest.mark.parametrize('data', [b'', b'{', b'[]', b'{"pid": "x"}', b'\xff', b'null'])
def test_a_claim_that_says_nothing_is_not_a_claim(tmp_path, way, data):
    (tmp_path / 'claim').write_bytes(data)
    with Claim(str(tmp_path / 'claim'), 'the output') as claim:
        claim.check()


def test_a_link_in_its_place_is_removed_and_not_followed(tmp_path):
    (tmp_path / 'thesis').write_text('precious')
    (tmp_path / 'claim').symlink_to('thesis')
    with Claim(str(tmp_path / 'claim'), 'the output') as claim:
        claim.check()
    assert os.listdir(tmp_path) == ['thesis']
    assert (tmp_path / 'thesis').read_text() == 'precious'


def test_where_nothing_can_be_written_the_claim_says_so_when_it_is_needed(tmp_path):
    (tmp_path / 'file').write_text('x')
    with Claim(str(tmp_path / 'file' / 'claim'), 'the output') as claim:
        assert claim.is_denied
        for use in (claim.require, claim.check):
            with pytest.raises(InputError, match=f'cannot write to {tmp_path}/file'):
                use()
