"""Downloads and their addresses: resumed, checked, refused."""

import gzip
import random
import socket
import threading

import pytest
from web_server import Page, web_server

from pipelines.files import transfer
from pipelines.files.local import LocalFolder
from pipelines.files.transfer import Transfer, is_web_address, web_address
from tokcore.errors import InputError, OperatingSystemError

CONTENT = random.Random(1).randbytes(300_000)
OTHER = random.Random(2).randbytes(300_000)

LATER = 'Fri, 31 Dec 2999 23:59:59 GMT'

EARLIER, NEWER = 'Wed, 21 Oct 2015 07:28:00 GMT', 'Thu, 22 Oct 2015 07:28:00 GMT'

SUM = 'ab' * 32


@pytest.fixture
def server():
    with web_server({}) as running:
        yield running


def run_transfer(address, tmp_path):
    with LocalFolder.open(str(tmp_path)) as folder:
        return Transfer(web_address(address), folder, 'part').run()


def fetch(server, tmp_path, path='/a'):
    return run_transfer(server.address + path, tmp_path)


def held(tmp_path):
    return (tmp_path / 'part').read_bytes()


def leave_part(server, tmp_path, page, size):
    """Has a run give up after this many bytes."""
    page.cuts = [size, *[0] * 20]
    server.pages['/a'] = page
    with pytest.raises(OperatingSystemError, match='cannot fetch'):
        fetch(server, tmp_path)
    assert held(tmp_path) == page.content[:size]
    page.cuts = []
    server.asked.clear()


@pytest.mark.parametrize(
    'page', [Page(b''), Page(CONTENT, tells_length=False), Page(CONTENT, etag='')]
)
def test_a_server_may_say_little(server, tmp_path, page):
    server.pages['/a'] = page
    assert fetch(server, tmp_path).bytes == len(page.content)
    assert held(tmp_path) == page.content


def test_what_is_compressed_on_the_way_stays_so(server, tmp_path):
    packed = gzip.compress(CONTENT)
    server.pages['/a'] = Page(packed, headers={'Content-Encoding': 'gzip'})
    fetch(server, tmp_path)
    assert held(tmp_path) == packed
    [(_, headers)] = server.asked
    assert headers['Accept-Encoding'] == 'identity'


def test_a_cut_connection_is_gone_on_with_at_once(server, tmp_path):
    server.pages['/a'] = Page(CONTENT, cuts=[100_000, 50_000])
    fetch(server, tmp_path)
    assert held(tmp_path) == CONTENT
    assert server.ranges('/a') == [None, 'bytes=100000-', 'bytes=150000-']
    assert {headers.get('If-Range') for _, headers in server.asked} == {None, '"one"'}


RESUMED, ANEW, BOTH = ['bytes=1000-'], [None], ['bytes=1000-', None]


def careless(content=CONTENT, **page):
    """A server that passes over If-Range, and sends the rest of whatever file it has."""
    return Page(content, minds_if_range=False, **page)


@pytest.mark.parametrize(
    ('before', 'after', 'ranges'),
    [
        # A time is enough where there is no strong ETag.
        (Page(CONTENT, etag='W/"one"', modified=EARLIER), None, RESUMED),
        # By RFC 9110, 15.3.7, a part that was asked for by If-Range comes without the time.
        (Page(CONTENT, modified=EARLIER), Page(CONTENT), RESUMED),
        # Nothing sure is known of these.
        (Page(CONTENT, etag=''), None, ANEW),
        (Page(CONTENT, etag='W/"one"'), None, ANEW),
        (Page(CONTENT, etag='', modified='long ago'), None, ANEW),
        (Page(CONTENT, etag='', modified=LATER), None, ANEW),
        # Another time, with the same ETag too, and no ETag any more.
        (Page(CONTENT, etag='', modified=EARLIER), careless(OTHER, etag='', modified=NEWER), BOTH),
        (Page(CONTENT, modified=EARLIER), careless(OTHER, modified=NEWER), BOTH),
        (Page(CONTENT), careless(OTHER, etag=''), BOTH),
        # A length that no file has, or another one.
        *(
            (Page(CONTENT), Page(CONTENT, headers={'Content-Range': f'bytes 1000-2000/{total}'}), BOTH)
            for total in ('9' * 5000, '*', '10' * 9)
        ),
    ],
)  # fmt: skip
def test_a_part_is_resumed_where_it_is_surely_of_the_same_file(
    server, tmp_path, before, after, ranges
):
    leave_part(server, tmp_path, before, 1000)
    server.pages['/a'] = after or before
    fetch(server, tmp_path)
    assert held(tmp_path) == (after or before).content and server.ranges('/a') == ranges


def test_a_length_of_thousands_of_digits_is_a_sentence(server, tmp_path):
    server.pages['/a'] = Page(CONTENT, headers={'Content-Length': '9' * 5000}, tells_length=False)
    with pytest.raises(OperatingSystemError, match='a length of 5,000 digits; check the address'):
        fetch(server, tmp_path)


def test_a_redirection_is_followed_before_it_has_ended(server, tmp_path):
    to = {'Location': '/b', 'Content-Length': str(1 << 40)}
    server.pages |= {'/a': Page(b'x' * 9999, status=302, headers=to, stalls_after=9999)}
    server.pages['/b'] = Page(CONTENT)
    fetch(server, tmp_path)
    assert held(tmp_path) == CONTENT


def test_a_part_that_is_all_of_it_is_known_as_that(server, tmp_path):
    server.pages['/a'] = Page(CONTENT)
    fetch(server, tmp_path)  # and was killed before it could name it
    server.asked.clear()
    assert fetch(server, tmp_path).bytes == len(CONTENT)
    assert held(tmp_path) == CONTENT and server.ranges('/a') == [f'bytes={len(CONTENT)}-']


@pytest.mark.parametrize(
    'note', [b'', b'{', b'[]', b'{"etag": 1}', b'{"etag": "", "modified": "", "total": "x"}']
)
def test_a_damaged_note_of_the_part_is_no_matter(server, tmp_path, note):
    leave_part(server, tmp_path, Page(CONTENT), 1000)
    (tmp_path / 'part.json').write_bytes(note)
    fetch(server, tmp_path)
    assert held(tmp_path) == CONTENT


@pytest.mark.parametrize(
    ('page', 'said', 'is_ours'),
    [
        (Page(status=404), '404, Not Found; check the address', True),
        (Page(status=401), '401, Unauthorized; a name and a password', True),
        (Page(status=403), '403, Forbidden; check the address', True),
        (Page(status=429), '429, Too Many Requests; run again later', True),
        (Page(status=500), '500, Internal Server Error; run again later', False),
        (Page(status=503), '503, Service Unavailable; run again later', False),
        (Page(status=204), '204, No Content', True),
        (Page(status=299), '299, which is nothing known', True),
        (Page(status=302, headers={'Location': '/a'}), 'leads on and on', True),
        (Page(CONTENT, headers={'Content-Length': '300001'}, etag=''), 'run again', False),
        (Page(CONTENT, cuts=[0]), 'run again', False),
    ],
)  # fmt: skip
def test_what_a_server_refuses_is_a_sentence(server, tmp_path, page, said, is_ours):
    server.pages['/a'] = page
    with pytest.raises(InputError, match='^cannot fetch http://127.0.0.1:') as refused:
        fetch(server, tmp_path)
    assert said in str(refused.value)
    assert isinstance(refused.value, OperatingSystemError) != is_ours


def test_nobody_there_is_a_sentence(tmp_path):
    with socket.socket() as bound:
        bound.bind(('127.0.0.1', 0))
        address = f'http://user:hush@127.0.0.1:{bound.getsockname()[1]}/a?token=HUSH'
        with pytest.raises(OperatingSystemError, match='Connection refused; check') as refused:
            run_transfer(address, tmp_path)
    assert 'hush' not in str(refused.value).lower()
    assert list(tmp_path.iterdir()) == []


def test_silence_is_a_sentence(server, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, 'ANSWER_SECONDS', 0.05)
    server.pages['/a'] = Page(silent=True)
    with pytest.raises(OperatingSystemError, match='does not answer in time'):
        fetch(server, tmp_path)


def test_what_answers_nothing_of_http_is_a_sentence(tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(9999)
                connection.sendall(b'220 ready\r\n')

        thread = threading.Thread(target=answer)
        thread.start()
        address = f'http://127.0.0.1:{listening.getsockname()[1]}/a'
        with pytest.raises(OperatingSystemError, match='cannot fetch'):
            run_transfer(address, tmp_path)
        thread.join()


def test_a_password_goes_to_the_server_alone(server, tmp_path):
    server.pages['/a'] = Page(CONTENT)
    address = server.address.replace('://', '://me:hush@') + '/a'
    run_transfer(address, tmp_path)
    [(_, headers)] = server.asked
    assert headers['Authorization'].startswith('Basic ')
    assert 'hush' not in (tmp_path / 'part.json').read_text()


@pytest.mark.parametrize(
    ('path', 'url', 'member', 'sha256'),
    [
        ('https://h/a.txt', 'https://h/a.txt', None, None),
        (f'https://h/a.txt#sha256={SUM.upper()}', 'https://h/a.txt', None, SUM),
        ('https://h/a.tgz!d/b', 'https://h/a.tgz', 'd/b', None),
        (f'https://h/a.tgz#sha256={SUM}!d/*', 'https://h/a.tgz', 'd/*', SUM),
        (f'https://h/a.tgz!d/b#sha256={SUM}', 'https://h/a.tgz', 'd/b', SUM),
        ('https://h/a.tgz!d/b#1', 'https://h/a.tgz', 'd/b#1', None),
        ('https://h/a!b', 'https://h/a', 'b', None),
        ('https://h/a%21b', 'https://h/a%21b', None, None),
        ('https://h/a.tgz?x=1&y!b!c', 'https://h/a.tgz?x=1&y', 'b!c', None),
        ('https://n:p!w@h/a.tgz!b', 'https://n:p!w@h/a.tgz', 'b', None),
        ('https://h/get?file=a.zip!b', 'https://h/get?file=a.zip', 'b', None),
        ('HTTP://h:8080/a', 'HTTP://h:8080/a', None, None),
    ],
)
def test_an_address_in_its_parts(path, url, member, sha256):
    assert is_web_address(path)
    found = web_address(path)
    assert (found.url, found.member, found.sha256) == (url, member, sha256)


@pytest.mark.parametrize('path', ['a.txt', '/a/http://b', 'gs://b/a', 'file:///a', 'httpd/a'])
def test_other_paths_are_none(path):
    assert not is_web_address(path)


@pytest.mark.parametrize(
    'path',
    [
        'https://h/a#top', 'https://h/a#sha256=abc', f'https://h/a#sha256={SUM}0', 'https://',
        'https:///a', 'https://h:x/a', 'https://h/a b', 'https://h/a\n',
        f'https://h/a.zip!b#sha256={SUM}0', 'http://[1::/a',
    ],
)  # fmt: skip
def test_what_cannot_be_fetched_is_refused(path):
    with pytest.raises(InputError, match='mend it'):
        web_address(path)


@pytest.mark.parametrize(
    ('path', 'name', 'file_name'),
    [
        ('http://h/good;token=HUSH', 'http://h/good;token=***', 'good'),
        ('http://h/a.gz;token=HUSH;v=1', 'http://h/a.gz;token=***;v=1', 'a.gz_v_1'),
        ('http://h/good%3Btoken%3DHUSH', 'http://h/***', 'file'),
        ('http://h/token=HUSH/a.tgz', 'http://h/token=***/a.tgz', 'a.tgz'),
        ('http://HUSH@h/a', 'http://h/a', 'a'),
        ('http://h/a?%74oken=HUSH', 'http://h/a?%74oken=***', 'a'),
        ('http://h/a?b=1&sig=HU%26HUSH', 'http://h/a?b=1&sig=***', 'a'),
        ('http://h/a?to=http%3A%2F%2Fh%2F%3Fsig%3DHUSH', 'http://h/a?to=***', 'a'),
        (
            'http://h/a?X-Amz-Credential=HUSH%2Fus&X-Amz-Date=1&X-Amz-Signature=HUSH',
            'http://h/a?X-Amz-Credential=***&X-Amz-Date=1&X-Amz-Signature=***',
            'a',
        ),
    ],
)
def test_secrets_of_no_part_are_in_what_is_written_down(path, name, file_name):
    found = web_address(path)
    assert (found.url, found.name, found.file_name) == (path, name, file_name)


@pytest.mark.parametrize('path', ['http://me:hu/HUSH@h/a', 'http://h/a#HUSH'])
def test_nor_in_what_is_refused(path):
    with pytest.raises(InputError) as refused:
        web_address(path)
    assert 'hush' not in str(refused.value).lower()


def test_a_file_is_known_by_all_of_its_address_but_the_user():
    keys = {
        web_address(each).key
        for each in ('https://h/a', 'https://u:p@h/a', f'https://h/a#sha256={SUM}')
    }
    assert len(keys) == 1
    assert web_address('https://h/a?key=1').key != web_address('https://h/a?key=2').key
    assert web_address('https://h/a').key != web_address('http://h/a').key


@pytest.mark.parametrize(
    ('path', 'name'),
    [
        ('https://h/d/a.txt.gz?x=1', 'a.txt.gz'),
        ('https://h', 'file'),
        ('https://h/d/', 'file'),
        ('https://h/..', 'file'),
        ('https://h/.part', 'part'),
        ('https://h/%2e%2e%2f%2e%2e%2fpasswd', '_.._passwd'),
        ('https://h/a%20b%C3%A9.gz', 'a_b_.gz'),
        (f'https://h/{"x" * 300}.tar.gz!m', 'x' * 93 + '.tar.gz'),
        ('https://h/get?file=a.tar.xz!b', 'get'),
    ],
)
def test_its_file_has_a_plain_name(path, name):
    assert web_address(path).file_name == name
