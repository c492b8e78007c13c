"""Whole jobs whose inputs and outputs are objects of `gs://`: the bytes are those of files."""

import pytest
from generated_text import english_lines
from google_store import TOKEN, served_google_store
from jobs import succeed, write
from object_store import Proxy

pytest.importorskip('obstore', minversion='0.12')  # earlier ones know one address alone
pytestmark = pytest.mark.slow

RECORDS = 'tokbeam.run.json'


@pytest.fixture(scope='module')
def google():
    with served_google_store() as store:
        yield store


@pytest.fixture(scope='module')
def inputs(google, tmp_path_factory):
    """Options that name a corpus as a file, and the same one as objects."""
    text = ''.join(f'{line}\n' for line in english_lines(1000, 1)).encode()
    google.put('in/t.txt', text)
    path = write(tmp_path_factory.mktemp('inputs') / 't.txt', text)
    return ['--text', path], ['--text', 'gs://corpora/in/*.txt']


def build_line(scheme):
    return ['build', '--name', 'd', '--shards', 3, '@item-size', '20KiB', '--scheme', scheme] + (
        [] if scheme == 'byte' else ['--vocab-size', 400]
    )


@pytest.fixture(scope='module')
def built(inputs, tmp_path_factory):
    """The files of `build` by scheme, made once each."""
    made = {}

    def build(scheme):
        if scheme not in made:
            folder = tmp_path_factory.mktemp(scheme) / 'out'
            succeed(*build_line(scheme), *inputs[0], '--output', folder)
            paths = [path for path in folder.rglob('*') if path.is_file()]
            made[scheme] = without_records(
                {str(path.relative_to(folder)): path.read_bytes() for path in paths}
            )
        return made[scheme]

    return build


def without_records(found):
    return {name: data for name, data in found.items() if not name.endswith(RECORDS)}


def test_a_build_gives_the_bytes_of_files(google, inputs, built, monkeypatch):
    google.use(monkeypatch)
    options = ['@shuffle=files', '--workers=2', '--work=gs://corpora/work']
    line = build_line('subword')
    said = succeed(*line, *inputs[1], *options, '--output', 'gs://corpora/subword')
    found = google.files('subword')
    assert without_records(found) == built('subword')
    assert google.files('work') == {} == google.uploads
    assert TOKEN not in said and not any(TOKEN.encode() in data for data in found.values())


def test_a_store_that_fails_now_and_then_changes_nothing(google, inputs, built, monkeypatch):
    with Proxy(google.url, fails=10, delays=25, cuts=25, seed=5).serving() as proxy:
        google.use(monkeypatch, proxy.url)
        succeed(*build_line('byte'), *inputs[1], '--output', 'gs://corpora/faulty')
        assert {'fail', 'cut'} <= set(proxy.broken)
    assert without_records(google.files('faulty')) == built('byte')
