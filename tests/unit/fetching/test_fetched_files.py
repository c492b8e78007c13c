"""The files of a work folder: one run fetches, others wait for it and find what it made."""

import threading

import pytest
from web_server import Page, web_server

from pipelines.engines.progress import listening
from pipelines.fetching.fetch_events import FetchAwaited
from pipelines.fetching.fetched_files import FetchedFiles, fetch_all, fetched_before
from pipelines.fetching.web_addresses import web_address
from pipelines.files.claims import CLAIM_NAME, Claim
from tokcore.errors import InputError


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')


@pytest.fixture
def server():
    with web_server({'/a': Page(b'text\n'), '/b': Page(b'other\n')}) as running:
        yield running


def test_a_file_of_another_run_is_waited_for(server, tmp_path):
    files, address = FetchedFiles(str(tmp_path)), web_address(f'{server.address}/a')
    folder = tmp_path / 'fetched' / address.key
    waits, found = threading.Event(), []

    def listener(event):
        if isinstance(event, FetchAwaited):
            assert 'is being written by process' in str(event)
            waits.set()

    thread = threading.Thread(target=lambda: found.append(files.fetch(address)))
    with listening(listener):
        with Claim(str(folder / CLAIM_NAME), 'the file') as claim:
            claim.require()
            thread.start()
            assert waits.wait(30)
            assert server.asked == []
        thread.join()
    assert found[0].path == str(folder / 'a') and len(server.asked) == 1
    assert (folder / 'a').read_bytes() == b'text\n'
    assert sorted(path.name for path in folder.iterdir()) == ['.fetched.json', 'a']


def test_paths_that_are_no_addresses_are_nothing_to_it(server, tmp_path):
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
    with pytest.raises(InputError, match='no folder of this machine'):
        fetch_all(['https://h/a'], 'gs://bucket/work')
    assert fetch_all(['a.txt'], 'gs://bucket/work') == {}
