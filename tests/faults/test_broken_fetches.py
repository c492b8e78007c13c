"""Fetching that is killed, has no room, or finds something else in its place."""

import os
import random
import resource
import signal
import subprocess
import time

import pytest
from jobs import interruptible_command, limited_command, refuse, succeed
from web_server import Page, web_server

TEXT = b''.join(
    b'%d words of a text\n' % number for number in random.Random(1).sample(range(10**6), 120_000)
)
SECONDS = 60


@pytest.fixture
def server():
    with web_server({'/a.txt': Page(TEXT)}) as running:
        yield running


def count(server, tmp_path):
    given = ['--text', f'{server.address}/a.txt', '--work', tmp_path / 'work']
    return ['count', *given, '--output', tmp_path / 'counts']


def part_of(tmp_path):
    """Returns how much of a file has come, as far as it is on the disk."""
    parts = [*(tmp_path / 'work').rglob('.part')]
    return parts[0].stat().st_size if parts else 0


@pytest.mark.parametrize(
    'how', [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_killed_run_is_gone_on_with(server, tmp_path, how):
    page = server.pages['/a.txt']
    page.stalls_after = 2 << 20
    process = subprocess.Popen(
        interruptible_command(*count(server, tmp_path)),
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    end = time.monotonic() + SECONDS
    while part_of(tmp_path) < 1 << 20 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    held = part_of(tmp_path)
    os.kill(process.pid, how)
    _, said = process.communicate(timeout=SECONDS)
    assert held >= 1 << 20, said
    assert not [*tmp_path.rglob('a.txt')] and not (tmp_path / 'counts').exists()
    page.stalls_after = None
    server.asked.clear()
    assert 'going on with' in succeed(*count(server, tmp_path))
    [asked] = server.ranges('/a.txt')
    assert int(asked.removeprefix('bytes=').removesuffix('-')) >= held
    [file] = tmp_path.rglob('a.txt')
    assert file.read_bytes() == TEXT


@pytest.mark.slow
def test_without_room_it_is_a_sentence_and_goes_on_later(server, tmp_path):
    limits = {resource.RLIMIT_FSIZE: 1 << 20}
    ended = subprocess.run(
        limited_command(limits, *count(server, tmp_path)), capture_output=True, text=True
    )
    assert ended.returncode == 2
    said = ended.stderr.splitlines()[-1]
    assert 'File too large' in said and 'raise the limit on the size of files' in said
    assert 'Traceback' not in ended.stderr
    server.asked.clear()
    succeed(*count(server, tmp_path))
    assert server.ranges('/a.txt') == ['bytes=1048576-']
    [file] = tmp_path.rglob('a.txt')
    assert file.read_bytes() == TEXT


@pytest.mark.parametrize('place', ['work', 'work/fetched'])
def test_something_else_in_place_of_its_folders_is_refused(server, tmp_path, place):
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(b'mine')
    said = refuse(*count(server, tmp_path))
    assert str(tmp_path / 'work') in said and (tmp_path / place).read_bytes() == b'mine'
    assert server.asked == []


def test_a_folder_in_place_of_its_file_is_refused(server, tmp_path):
    succeed(*count(server, tmp_path))
    [file] = tmp_path.rglob('a.txt')
    file.unlink()
    file.mkdir()
    (file / 'mine').write_bytes(b'mine')
    said = refuse(*count(server, tmp_path), '--overwrite')
    assert 'a.txt' in said and (file / 'mine').read_bytes() == b'mine'
