"""Whatever fails on a store: no key, token or password is told, kept in a file, or stored.

Secrets and failures are drawn for each place of a secret: FUZZ_SEED chooses others, and FUZZ_CASES more.
"""

import contextlib
import http.server
import json
import os
import random
import string
import tempfile
import threading
import urllib.parse

import pytest
from jobs import run, write

from tokcore import object_stores

pytest.importorskip('obstore')
pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

MARK = 'HUSH'
SEED, CASES = int(os.environ.get('FUZZ_SEED', '35')), int(os.environ.get('FUZZ_CASES', '2'))


class _Tattler(http.server.BaseHTTPRequestHandler):
    """Answers every request by an error that repeats all of it, as S3 does for a wrong signature."""

    status = 403
    code = 'SignatureDoesNotMatch'

    def log_message(self, *_):
        """Says nothing."""

    def _answer(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        if not self.status:
            self.connection.close()
            return
        told = f'<Error><Code>{self.code}</Code><Message>{self.path}\n{self.headers}</Message></Error>'.encode()  # fmt: skip
        self.send_response(self.status)
        self.send_header('Content-Length', str(len(told)))
        self.send_header('Location', f'http://127.0.0.1:1{self.path}')
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(told)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _answer


@contextlib.contextmanager
def tattler(status, code=_Tattler.code):
    handler = type('Handler', (_Tattler,), {'status': status, 'code': code})
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield 'http://{}:{}'.format(*server.server_address[:2])
        server.shutdown()
        thread.join()


def drawn_secret(dice):
    letters = string.ascii_letters + string.digits + '/+=_-.~'
    return MARK + ''.join(dice.choices(letters, k=dice.randrange(4, 60))) + MARK


def with_user(url, secret):
    return url.replace('://', f'://AKIA:{urllib.parse.quote(secret, safe="")}@')


PLACES = {
    'key': lambda secret, url, folder: ({'AWS_SECRET_ACCESS_KEY': secret}, [], 's3://corpora'),
    'id': lambda secret, url, folder: ({'AWS_ACCESS_KEY_ID': secret}, [], 's3://corpora'),
    'session': lambda secret, url, folder: ({'AWS_SESSION_TOKEN': secret}, [], 's3://corpora'),
    'profile': lambda secret, url, folder: (
        {
            'AWS_SHARED_CREDENTIALS_FILE': write(
                folder / 'credentials',
                f'[p]\naws_access_key_id = AKIA\naws_secret_access_key = {secret}\n'.encode(),
            ),
            'AWS_PROFILE': 'p',
            'AWS_ACCESS_KEY_ID': None,
            'AWS_SECRET_ACCESS_KEY': None,
        },
        [],
        's3://corpora',
    ),
    'options': lambda secret, url, folder: (
        {},
        [
            *('--s3_access_key_id', 'AKIA', f'--s3_secret_access_key={secret}'),
            *('--s3_session_token', secret),
        ],
        's3://corpora',
    ),
    'endpoint': lambda secret, url, folder: (
        {'AWS_ENDPOINT_URL': with_user(url, secret)},
        [],
        's3://corpora',
    ),
    'no endpoint': lambda secret, url, folder: (
        {'AWS_ENDPOINT_URL': f'http//AKIA:{secret}@h'},
        [],
        's3://corpora',
    ),
    'endpoint option': lambda secret, url, folder: (
        {},
        ['--s3_endpoint_url', with_user(url, secret)],
        's3://corpora',
    ),
    'address': lambda secret, url, folder: ({}, [], f's3://AKIA:{secret}@corpora'),
    'quoted address': lambda secret, url, folder: ({}, [], with_user('s3://corpora', secret)),
    'google token': lambda secret, url, folder: (
        {'GOOGLE_BASE_URL': url, 'GOOGLE_BEARER_TOKEN': secret},
        [],
        'gs://corpora',
    ),
    'google key': lambda secret, url, folder: (
        {'GOOGLE_SERVICE_ACCOUNT_KEY': json.dumps({'private_key': secret, 'gcs_base_url': url})},
        [],
        'gs://corpora',
    ),
}
"""For each place of a secret: variables of the environment, options, and the path of a bucket."""

FAILURES = ['none', 'no bucket', 'crash', 0, 301, 400, 401, 403, 404, 412, 503]
"""Numbers are what a server answers; 0: it closes the connection."""


@pytest.mark.parametrize('place', PLACES)
def test_a_secret_is_told_nowhere(store, tmp_path, monkeypatch, place):
    text = store.upload(write(tmp_path / 't.txt', b'a few words\n'), 'in/t.txt')
    monkeypatch.setattr(object_stores, 'RETRY_SECONDS', 0.2)
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'temporary'))
    (tmp_path / 'temporary').mkdir()
    monkeypatch.chdir(tmp_path)
    dice = random.Random(f'{SEED} {place}')
    for failure in dice.sample(FAILURES, min(CASES, len(FAILURES))):
        secret = drawn_secret(dice)
        with failing(failure, store) as url, pytest.MonkeyPatch.context() as patch:
            given, options, bucket = PLACES[place](secret, url, tmp_path)
            for name, value in (store.environment() | {'AWS_ENDPOINT_URL': url} | given).items():
                patch.delenv(name, raising=False)
                if value is not None:
                    patch.setenv(name, str(value))
            object_stores._bucket.cache_clear()
            bucket = 's3://nobody' if failure == 'no bucket' else bucket
            key = f'{place}-{failure}'.replace(' ', '-')
            for words in (
                ['--text', f'{bucket}/in/t.txt', '--output', tmp_path / key],
                ['--text', tmp_path / 't.txt', '--output', f'{bucket}/{key}'],
                ['--text', f'{text}?X-Amz-Signature={secret}', '--output', tmp_path / f'{key}-x'],
            ):
                ended = run('count', *words, *options)
                assert ended.status in (0, 1, 2) and MARK not in ended.said, (failure, ended.said)
        kept = [
            path for path in tmp_path.rglob('*') if path.is_file() and path.name != 'credentials'
        ]
        for data in [path.read_bytes() for path in kept] + [*store.files(key).values()]:
            assert MARK.encode() not in data


@contextlib.contextmanager
def failing(failure, store):
    """Gives the address of a store that fails."""
    with contextlib.ExitStack() as stack:
        if isinstance(failure, int):
            yield stack.enter_context(tattler(failure))
            return
        if failure == 'crash':
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(object_stores, '_stored', lambda meta: {}[meta['path']])
        yield store.url


def test_the_places_and_failures_are_what_they_say(store, tmp_path, monkeypatch):
    """Else the test above could pass since nothing works, or nothing fails."""
    write(tmp_path / 't.txt', b'a few words\n')
    store.use(monkeypatch)
    assert run('count', '--text', tmp_path / 't.txt', '--output', 's3://corpora/works').status == 0
    with tattler(403) as url:
        monkeypatch.setenv('AWS_ENDPOINT_URL', url)
        object_stores._bucket.cache_clear()
        ended = run('count', '--text', tmp_path / 't.txt', '--output', 's3://corpora/fails')
        assert ended.status == 2 and 'does not take the credentials (403' in ended.said
