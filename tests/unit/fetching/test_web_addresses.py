"""What an address says: a file, a member of it, a checksum; and what of it is secret."""

import pytest

from pipelines.fetching.web_addresses import is_web_address, web_address
from tokcore.errors import InputError

SUM = 'ab' * 32


@pytest.mark.parametrize(
    ('path', 'url', 'member', 'sha256'),
    [
        ('https://h/a.txt', 'https://h/a.txt', None, None),
        (f'https://h/a.txt#sha256={SUM.upper()}', 'https://h/a.txt', None, SUM),
        ('https://h/a.tgz!d/b', 'https://h/a.tgz', 'd/b', None),
        (f'https://h/a.tgz#sha256={SUM}!d/*', 'https://h/a.tgz', 'd/*', SUM),
        (f'https://h/a.tgz!d/b#sha256={SUM}', 'https://h/a.tgz', 'd/b', SUM),
        ('https://h/a.tgz!d/b#1', 'https://h/a.tgz', 'd/b#1', None),
        ('https://h/a!b', 'https://h/a!b', None, None),
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


def test_passwords_are_never_in_what_is_written_down():
    given = 'https://user:hush@h/a.txt?sig=HUSH&part=2'
    found = web_address(given)
    assert found.url == given
    assert found.name == 'https://h/a.txt?sig=***&part=2'
    with pytest.raises(InputError) as refused:
        web_address(f'{given}#nothing')
    assert 'hush' not in str(refused.value).lower()


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
        ('https://h/get?file=a.tar.xz!b', 'get.tar.xz'),
    ],
)
def test_its_file_has_a_plain_name(path, name):
    assert web_address(path).file_name == name
