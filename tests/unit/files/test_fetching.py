"""The files of a work folder: one run fetches, others wait for it and find what it made."""

import json
import logging
import os
import re
import threading
from pathlib import Path

import pytest
from web_server import Page, web_server

from pipelines.files.claims import CLAIM_NAME, Claim
from pipelines.files.fetching import AWAITED_SECONDS, FetchedFiles, fetch_all, fetched_before
from pipelines.files.transfer import web_address
from tokcore.errors import InputError


@pytest.fixture
def server():
    with web_server({'/a': Page(b'text\n'), '/b': Page(b'other\n')}) as running:
        yield running


def test_a_file_of_another_run_is_waited_for(server, tmp_path, monkeypatch):
    files, address = FetchedFiles(str(tmp_path)), web_address(f'{server.address}/a')
    folder = tmp_path / 'fetched' / address.key
    waits, fetched_files = threading.Event(), []

    class WaitHandler(logging.Handler):
        def emit(self, record):
            if re.match('waiting: .* is being written by process', record.getMessage()):
                waits.set()

    logger, handler = logging.getLogger('pipelines.files.fetching'), WaitHandler()
    monkeypatch.setattr(logger, 'handlers', [handler])
    thread = threading.Thread(target=lambda: fetched_files.append(files.fetch(address)))
    with Claim(str(folder / CLAIM_NAME), 'the file') as claim:
        claim.require()
        thread.start()
        assert waits.wait(30)
        assert server.asked == []
    thread.join()
    assert fetched_files[0].path == str(folder / 'a') and len(server.asked) == 1
    assert (folder / 'a').read_bytes() == b'text\n'
    assert sorted(path.name for path in folder.iterdir()) == ['.fetched.json', 'a']


def test_a_run_that_gets_nothing_more_is_not_waited_for_without_end(server, tmp_path):
    address = web_address(f'{server.address}/a')
    folder, now = tmp_path / 'fetched' / address.key, [0.0]

    def wait(seconds):
        now[0] += 60
        if now[0] == 600:
            (folder / '.part').write_bytes(b'more')

    files = FetchedFiles(str(tmp_path), lambda: now[0], wait)
    with Claim(str(folder / CLAIM_NAME), 'the file') as claim:
        claim.require()
        with pytest.raises(InputError, match='for 15 minutes nothing more of it has come'):
            files.fetch(address)
    assert now[0] == 600 + AWAITED_SECONDS and server.asked == []


def fetched(server, tmp_path, sha256=None):
    address = f'{server.address}/a'
    if sha256 is not None:
        address += f'#sha256={sha256}'
    return FetchedFiles(str(tmp_path)).fetch(web_address(address))


def test_a_file_that_is_there_is_taken_without_a_claim(server, tmp_path):
    """So it is in a folder that may not be written to."""
    first = fetched(server, tmp_path)
    files = FetchedFiles(str(tmp_path), wait=lambda _: pytest.fail('it waits for the claim'))
    with Claim(str(Path(first.path).parent / CLAIM_NAME), 'the file') as claim:
        claim.require()
        assert files.fetch(web_address(f'{server.address}/a')) == first


@pytest.mark.parametrize('has_time', [True, False])
def test_a_file_that_was_altered_is_fetched_again(server, tmp_path, caplog, has_time):
    """Of the same size, and even of the same time where a checksum is asked for."""
    first = fetched(server, tmp_path)
    path = Path(first.path)
    time = path.stat().st_mtime_ns
    path.write_bytes(b'tent\n')
    os.utime(path, ns=(time, time + (not has_time)))
    assert fetched(server, tmp_path, first.sha256 if has_time else None) == first
    assert path.read_bytes() == b'text\n' and len(server.asked) == 2
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert 'is not as it was fetched' in warning.getMessage()


def test_a_file_that_was_only_copied_is_not(server, tmp_path):
    first = fetched(server, tmp_path)
    os.utime(first.path, ns=(0, 0))
    assert fetched(server, tmp_path) == first
    assert fetched(server, tmp_path, first.sha256) == first
    assert len(server.asked) == 1


@pytest.mark.parametrize('number', [0, None])
def test_a_file_with_a_record_of_another_format_is_fetched_again(server, tmp_path, number):
    first = fetched(server, tmp_path)
    [record] = tmp_path.rglob('.fetched.json')
    fields = json.loads(record.read_bytes())
    record.write_text(json.dumps({**fields, 'format': number}))
    assert fetched(server, tmp_path) == first and len(server.asked) == 2


@pytest.mark.parametrize('name', ['.fetched.json', '.part', '.part.json'])
def test_pipes_in_place_of_its_files_are_not_waited_for(server, tmp_path, name):
    first = fetched(server, tmp_path)
    place = Path(first.path).parent / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    assert fetched(server, tmp_path) == first
    assert len(server.asked) == (2 if name == '.fetched.json' else 1)


@pytest.mark.parametrize('name', ['.fetched.json', '.part', '.part.json', 'a'])
def test_links_in_place_of_its_files_are_replaced_and_not_followed(server, tmp_path, name):
    victim = tmp_path / 'victim'
    victim.write_bytes(b'mine')
    address = web_address(f'{server.address}/a')
    folder = tmp_path / 'fetched' / address.key
    folder.mkdir(parents=True)
    (folder / name).symlink_to(victim)
    path = Path(fetched(server, tmp_path).path)
    assert victim.read_bytes() == b'mine'
    assert path.read_bytes() == b'text\n' and not path.is_symlink()
    assert sorted(each.name for each in folder.iterdir()) == ['.fetched.json', 'a']


@pytest.mark.parametrize('place', ['fetched', 'fetched/KEY'])
def test_a_link_in_place_of_a_folder_is_refused(server, tmp_path, place):
    address, work = web_address(f'{server.address}/a'), tmp_path / 'work'
    victim, link = tmp_path / 'victim', work / place.replace('KEY', address.key)
    victim.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    files = FetchedFiles(str(work))
    for use in (files.found, files.fetch):
        with pytest.raises(InputError, match='is a symbolic link, and none is followed there'):
            use(address)
    assert not [*victim.iterdir()] and server.asked == []


def test_a_work_folder_behind_a_link_is_the_users(server, tmp_path):
    (tmp_path / 'disk').mkdir()
    (tmp_path / 'work').symlink_to(tmp_path / 'disk')
    fetched(server, tmp_path / 'work')
    assert [*(tmp_path / 'disk').rglob('a')]


@pytest.mark.parametrize(
    'record', [b'[' * 9999, b'{"bytes": 1e999}', b'{"bytes": %s}' % (b'9' * 9999), b' ' * 9999999]
)
def test_a_damaged_record_means_that_it_is_fetched_again(server, tmp_path, record):
    first = fetched(server, tmp_path)
    [place] = tmp_path.rglob('.fetched.json')
    place.write_bytes(record)
    assert fetched(server, tmp_path) == first and len(server.asked) == 2


def test_paths_that_are_not_addresses_are_nothing_to_it(server, tmp_path):
    first, second = f'{server.address}/a', f'{server.address}/b'
    paths = ['a.txt', first, 'gs://b/c', first, second]
    work = str(tmp_path)
    there, missing = fetched_before(paths, work)
    assert there == {} and len(missing) == 2
    found = fetch_all(paths, work)
    assert list(found) == [first, second]
    assert fetched_before(paths, work) == (found, [])
    assert [path for path, _ in server.asked] == ['/a', '/b']


def test_a_folder_of_another_machine_is_refused():
    with pytest.raises(InputError, match='not a folder of this machine'):
        fetch_all(['https://h/a'], 'gs://bucket/work')
    assert fetch_all(['a.txt'], 'gs://bucket/work') == {}
