"""Files of the Hugging Face Hub, fetched by its real client from a server on this machine."""

import errno
import gzip
import os
import sys

import huggingface_hub
import pytest
from hub_server import (
    Repository,
    commit_of,
    connect_hub,
    forget_hub,
    hub_server,
    set_hub_constants,
    use_hub,
)

from pipelines.files import filesystem
from pipelines.files.hub import address_in_cache, fetch_into, forget_commits, to_be_fetched
from pipelines.files.vocabulary_files import vocabulary_path
from tokcore.errors import InputError

FILES = {
    'data/b.txt': b'b\n',
    'data/a.txt': b'a\n',
    'data/c.txt.gz': gzip.compress(b'c\n'),
    'data/deep/d.txt': b'd\n',
    'data/e!f.txt': b'e\n',
    'README.md': b'read me\n',
}
TOKENIZER = {
    'tokenizer.json': b'{}',
    'vocab.txt': b'a\n',
    'tokenizer_config.json': b'{"tokenizer_class": "BertTokenizer"}',
    'weights.bin': b'many',
}
NOWHERE = 'http://127.0.0.1:9'
FIRST = f'hf://datasets/me/texts@{commit_of(0)}'


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server that the client takes for the Hub, with a cache and no token."""
    repositories = {
        'datasets/me/texts': Repository([FILES]),
        'models/me/model': Repository([TOKENIZER]),
    }
    with hub_server(repositories) as running:
        use_hub(running.address, tmp_path / 'cache', monkeypatch)
        yield running
    forget_hub()


def read(pattern):
    return {file.name: filesystem.read_bytes(file.path) for file in filesystem.find(pattern)}


def refusal(path):
    with pytest.raises(InputError) as caught:
        filesystem.find(path)
    return str(caught.value)


def test_a_pattern_names_files_by_the_commit_in_the_order_of_their_names(server):
    found = read('hf://datasets/me/texts/data/*.txt*')
    names = ['a.txt', 'b.txt', 'c.txt.gz', 'e!f.txt']
    assert list(found) == [f'{FIRST}/data/{name}' for name in names]
    assert list(found.values()) == [FILES[f'data/{name}'] for name in names]
    assert set(read('hf://datasets/me/texts@main/**.txt')) == {
        f'{FIRST}/{path}' for path in FILES if path.endswith('.txt')
    }
    assert read(f'{FIRST}/data/e!f.txt') == {f'{FIRST}/data/e!f.txt': b'e\n'}


def test_a_revision_is_resolved_once_and_a_file_is_fetched_once(server):
    for _ in range(2):
        assert read('hf://datasets/me/texts/data/a.txt') == {f'{FIRST}/data/a.txt': b'a\n'}
    changed = {**FILES, 'data/a.txt': b'other\n'}
    server.repositories['datasets/me/texts'].commits.append(changed)
    assert read('hf://datasets/me/texts/data/a.txt') == {f'{FIRST}/data/a.txt': b'a\n'}
    assert len(server.paths('revision')) == 1 and len(server.paths('a.txt')) == 1
    forget_commits()
    [(name, content)] = read('hf://datasets/me/texts/data/a.txt').items()
    assert (name, content) == (f'hf://datasets/me/texts@{commit_of(1)}/data/a.txt', b'other\n')
    assert read(f'{FIRST}/data/a.txt') == {f'{FIRST}/data/a.txt': b'a\n'}


def test_a_repository_that_moved_is_followed(server):
    server.repositories['datasets/you/words'] = Repository(moved_to='me/texts')
    found = read('hf://datasets/you/words/data/*.gz')
    assert list(found.values()) == [FILES['data/c.txt.gz']]


def test_without_a_network_the_same_files_are_found(server, monkeypatch, caplog):
    patterns = 'hf://datasets/me/texts/data/*.txt', 'hf://datasets/me/texts/data/c.txt.gz'
    before = [read(pattern) for pattern in patterns]
    forget_hub()
    connect_hub(NOWHERE, monkeypatch)
    assert [read(pattern) for pattern in patterns] == before
    assert f'{commit_of(0)} was its commit the last time, and is taken' in caplog.text
    assert [
        read(pattern.replace('texts', f'texts@{commit_of(0)}')) for pattern in patterns
    ] == before


def test_a_folder_for_lists_is_made_only_for_a_list_and_need_not_be(server, tmp_path, caplog):
    pattern, assets = 'hf://datasets/me/texts/data/*.gz', tmp_path / 'cache' / 'assets'
    server.failures['tree'] = [401]
    assert 'the Hub answers 401' in refusal(pattern)
    assert not assets.exists()
    assets.write_text('no folder')
    assert list(read(pattern).values()) == [FILES['data/c.txt.gz']]
    assert 'cannot be written for runs without a network' in caplog.text


def test_without_a_network_what_is_not_known_is_refused(server, monkeypatch):
    read('hf://datasets/me/texts/data/a.txt')
    forget_hub()
    connect_hub(NOWHERE, monkeypatch)
    # The pattern would match the file that is there, and who knows what else.
    assert refusal(f'{FIRST}/data/*.t*').startswith(
        f'cannot fetch {FIRST}/data: Connection refused, and it is not in '
    )
    assert 'Connection refused' in refusal(f'{FIRST}/data/b.txt')
    assert 'Connection refused' in refusal('hf://datasets/me/others/a.txt')
    set_hub_constants({'HF_HUB_OFFLINE': True}, monkeypatch)
    forget_hub()
    assert 'HF_HUB_OFFLINE is set' in refusal('hf://datasets/me/others/a.txt')


@pytest.mark.parametrize(
    'status, part, what',
    [
        (401, 'revision', 'the Hub answers 401, Unauthorized; check the address, or log in'),
        (403, 'revision', 'the Hub answers 403, Forbidden; accept the terms'),
        (
            404,
            'revision',
            'the Hub answers 404, Not Found; check the owner, the name and the revision',
        ),
        (429, 'revision', 'the Hub answers 429, Too Many Requests; run again later'),
        (500, 'revision', 'the Hub answers 500, Internal Server Error; run again later'),
        (401, 'tree', 'the Hub answers 401, Unauthorized; check the address, or log in'),
        (429, 'tree', 'the Hub answers 429, Too Many Requests; run again later'),
        (401, 'resolve', 'the Hub answers 401, Unauthorized; check the address, or log in'),
        (429, 'resolve', 'the Hub answers 429, Too Many Requests; run again later'),
        (
            404,
            'store',
            'the Hub answers 404, Not Found; check the owner, the name and the revision',
        ),
        (503, 'store', 'the Hub answers 503, Service Unavailable; run again later'),
    ],
)
def test_a_refused_request_is_a_sentence_with_the_address(server, status, part, what):
    server.failures[part] = [status] * 30
    path = 'hf://datasets/me/texts/data/c.txt.gz'
    said = refusal(path)
    assert said.startswith('cannot fetch hf://datasets/me/texts') and what in said
    server.failures.clear()
    assert list(read(path).values()) == [FILES['data/c.txt.gz']]


def test_a_page_that_is_refused_once_is_asked_for_again(server):
    server.failures['cursor=2'] = [429]
    assert len(read('hf://datasets/me/texts/data/*.txt')) == 3


@pytest.mark.parametrize(
    'path, what',
    [
        ('hf://datasets/me/texts/data/x.txt', 'does not exist; give an existing file or a glob'),
        ('hf://datasets/me/texts/x/*.txt', 'no file matches'),
        ('hf://datasets/me/texts/data', 'does not exist; give an existing file or a glob'),
        ('hf://datasets/me/texts', 'does not exist; give an existing file or a glob'),
        ('hf://datasets/me/nothing/a.txt', 'the Hub answers 401, Unauthorized'),
        ('hf://datasets/me/texts@v9/data/a.txt', 'the Hub answers 404, Not Found'),
        (f'hf://datasets/me/texts@{commit_of(9)}', 'the Hub answers 404, Not Found'),
        ('hf://datasets/me/texts@~parquet/a.txt', 'give the revision as @refs/convert/parquet'),
        ('hf://datasets/me', 'is not an address of the Hub; give hf://datasets/OWNER/NAME/PATH'),
        ('hf://', 'is not an address of the Hub'),
        ('hf://datasets/me/texts/data/../../x', 'is not an address of the Hub'),
        ('hf://datasets/me/te--xts/a.txt', 'is not an address of the Hub: Cannot have -- or ..'),
    ],
)
def test_what_is_not_there_is_refused(server, path, what):
    said = refusal(path)
    assert path in said and what in said


def test_a_token_is_used_where_there_is_one(server, monkeypatch):
    server.repositories['datasets/me/texts'].token = 'hf_mine'
    assert 'log in (hf auth login, or HF_TOKEN)' in refusal('hf://datasets/me/texts/data/a.txt')
    monkeypatch.setenv('HF_TOKEN', 'hf_mine')
    assert list(read('hf://datasets/me/texts/data/a.txt').values()) == [b'a\n']


def test_a_gated_repository_says_what_to_do(server):
    server.repositories['datasets/me/texts'].is_gated = True
    assert 'accept the terms' in refusal('hf://datasets/me/texts/data/a.txt')


@pytest.mark.parametrize('name', ['a.txt', 'c.txt.gz'])
def test_a_file_that_was_cut_off_is_gone_on_with(server, name):
    content = bytes(range(250)) * 44_000
    server.repositories['datasets/me/texts'].commits = [{f'data/{name}': content}]
    server.cuts = [10_900_000]  # the client writes ten mebibytes at a time
    path = f'hf://datasets/me/texts/data/{name}'
    try:
        found = read(path)
    except InputError as error:  # the client below 1 goes on in the next run only
        assert str(error).startswith(f'cannot fetch {FIRST}/data/{name}: ')
        found = read(path)
    assert list(found.values()) == [content]
    assert 'bytes=10485760-' in [asked for _, _, asked in server.asked]


def test_a_full_disk_is_a_sentence(server, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(huggingface_hub, 'hf_hub_download', full)
    said = refusal('hf://datasets/me/texts/data/a.txt')
    assert said == (
        f'cannot fetch {FIRST}/data/a.txt: No space left on device; make room, and run again'
    )


def test_without_the_package_it_is_named(server, monkeypatch):
    monkeypatch.setitem(sys.modules, 'huggingface_hub.hf_api', None)
    assert "run `pip install '.[hf]'`" in refusal('hf://datasets/me/texts/data/a.txt')


def test_names_that_lead_out_of_a_repository_are_passed_over(server):
    server.repositories['datasets/me/texts'].commits = [{**FILES, 'data/../../x.txt': b'x\n'}]
    assert set(read('hf://datasets/me/texts/**.txt')) == {
        f'{FIRST}/{path}' for path in FILES if path.endswith('.txt')
    }


def test_files_go_to_a_folder_that_workers_reach(server, tmp_path):
    fetch_into(str(tmp_path / 'work' / 'hub'))
    [file] = filesystem.find('hf://datasets/me/texts/data/a.txt')
    assert file.path.startswith(f'{tmp_path}/work/hub/')
    fetch_into('gs://bucket/work/hub')
    assert 'give such a folder by --work' in refusal('hf://datasets/me/texts/data/a.txt')


def test_what_is_to_be_fetched_is_known_before(server):
    pattern = 'hf://datasets/me/texts/data/[ab].txt'
    named = [f'{FIRST}/data/a.txt', f'{FIRST}/data/b.txt']
    assert to_be_fetched(pattern) == named and server.paths('resolve') == []
    read('hf://datasets/me/texts/data/a.txt')
    assert to_be_fetched(pattern) == named[1:]
    assert to_be_fetched('hf://datasets/me/texts/data/c.txt.gz!x') == [f'{FIRST}/data/c.txt.gz']


def test_the_tokenizer_of_a_repository_comes_with_its_configuration(server):
    path = vocabulary_path('hf://me/model')
    address = f'hf://me/model@{commit_of(0)}'
    assert address_in_cache(path) == f'{address}/tokenizer.json'
    assert sorted(os.listdir(os.path.dirname(path))) == ['tokenizer.json', 'tokenizer_config.json']
    assert address_in_cache(vocabulary_path(f'{address}/vocab.txt')) == f'{address}/vocab.txt'
    assert 'weights.bin' not in os.listdir(os.path.dirname(path))


def test_a_repository_without_a_tokenizer_is_refused_by_its_address(server):
    server.repositories['models/me/model'].commits = [{'weights.bin': b''}]
    with pytest.raises(InputError, match='hf://me/model@.* holds no tokenizer.json'):
        vocabulary_path('hf://me/model')


def test_a_tokenizer_that_another_library_fetched_is_found_without_a_network(server, monkeypatch):
    for name in ('tokenizer.json', 'tokenizer_config.json'):
        huggingface_hub.hf_hub_download('me/model', name)
    connect_hub(NOWHERE, monkeypatch)
    path = vocabulary_path('hf://me/model')
    assert address_in_cache(path) == f'hf://me/model@{commit_of(0)}/tokenizer.json'


@pytest.mark.parametrize(
    'path', ['/c/models--a--b/blobs/x', 'a.txt', f'/snapshots/{commit_of(0)}/a']
)
def test_other_files_have_no_address(path):
    assert address_in_cache(path) is None
