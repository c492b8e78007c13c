"""A store on this machine: S3 as moto serves it, and a proxy before it that breaks requests."""

import base64
import contextlib
import dataclasses
import functools
import hashlib
import http.client
import http.server
import logging
import random
import re
import threading
import time
import urllib.parse
from pathlib import Path

import pytest

from tokcore import object_stores

KEYS = ('AKIATOKBEAMTESTS', 'HUSH/this+is=secret')
BUCKET = 'corpora'


@contextlib.contextmanager
def served_store():
    """Serves a store with one empty bucket; gives it as a `Store`."""
    server = pytest.importorskip('moto.server').ThreadedMotoServer('127.0.0.1', 0, verbose=False)
    logging.getLogger('werkzeug').setLevel(logging.ERROR)
    server.start()
    try:
        store = Store('http://{}:{}'.format(*server.get_host_and_port()))
        store.client().create_bucket(Bucket=BUCKET)
        yield store
    finally:
        server.stop()


@dataclasses.dataclass(frozen=True)
class Store:
    """A bucket, looked at by moto's own client, not by ours."""

    url: str

    def client(self):
        import boto3

        client = boto3.client(
            's3',
            endpoint_url=self.url,
            region_name='us-east-1',
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
        )
        return client

    def upload(self, path: Path, key: str):
        self.client().upload_file(str(path), BUCKET, key)
        return f's3://{BUCKET}/{key}'

    def files(self, prefix: str) -> dict[str, bytes]:
        """Returns the objects below a prefix, by their names below it."""
        client = self.client()
        pages = client.get_paginator('list_objects_v2').paginate(Bucket=BUCKET, Prefix=prefix + '/')
        keys = [each['Key'] for page in pages for each in page.get('Contents', [])]
        return {
            key[len(prefix) + 1 :]: client.get_object(Bucket=BUCKET, Key=key)['Body'].read()
            for key in keys
        }

    def download(self, prefix: str, folder: Path) -> Path:
        """Writes the objects below a prefix into a folder; returns it."""
        for name, data in self.files(prefix).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return folder

    def use(self, patch: pytest.MonkeyPatch):
        """Has this process, and those that it starts, use this store."""
        object_stores._bucket.cache_clear()
        for name, value in self.environment().items():
            patch.setenv(name, value)

    def environment(self) -> dict[str, str]:
        return {
            'AWS_ACCESS_KEY_ID': KEYS[0],
            'AWS_SECRET_ACCESS_KEY': KEYS[1],
            'AWS_REGION': 'us-east-1',
            'AWS_ENDPOINT_URL': self.url,
        }


def keep_stores_in_memory(patch: pytest.MonkeyPatch):
    """Has each bucket be one of obstore's in memory, whatever its scheme."""
    import obstore.store

    kept: dict[str, object] = {}
    patch.setattr(
        object_stores,
        'open_store',
        lambda url, options, seconds: kept.setdefault(url, obstore.store.MemoryStore()),
    )
    # Buckets of other tests, and those in memory after the test, are opened anew.
    patch.setattr(object_stores, '_bucket', functools.cache(object_stores._bucket.__wrapped__))


class Proxy(http.server.ThreadingHTTPServer):
    """Hands requests on to a store, and counts them; the faulty ones by a seed.

    Args:
        url: of the store.
        fails: of this many requests one is answered by 500 or 503 in turns.
        delays: of this many one waits for a tenth of a second.
        cuts: of this many answers one ends in its middle.
        seed: which ones.
        lists_late: whether no listing tells of what was written through the proxy.
        overwrites: whether writes on a condition become plain ones.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, url, fails=0, delays=0, cuts=0, seed=0, lists_late=False, overwrites=False):
        super().__init__(('127.0.0.1', 0), _Handler)
        self.target = urllib.parse.urlsplit(url).netloc
        self.fails, self.delays, self.cuts = fails, delays, cuts
        self._dice, self._lock = random.Random(seed), threading.Lock()
        self.log: list[tuple[str, str]] = []
        self.broken: list[str] = []
        self.lists_late, self.overwrites = lists_late, overwrites
        self.checksums: list[bool] = []  # of each upload, whether it has one and it is right
        self.reached = threading.Event()
        self.stops_at: int | None = None
        self.away_after: int | None = None  # so many requests; all later ones fail

    @property
    def url(self):
        return 'http://{}:{}'.format(*self.server_address[:2])

    def fate(self, method, path):
        """Returns what is to become of a request: None, or fail, delay or cut."""
        with self._lock:
            self.log.append((method, path))
            if self.stops_at is not None and len(self.log) >= self.stops_at:
                self.reached.set()
            if self.away_after is not None and len(self.log) > self.away_after:
                self.broken.append('fail')
                return 'fail'
            for fate, share in [('fail', self.fails), ('delay', self.delays), ('cut', self.cuts)]:
                if share and self._dice.randrange(share) == 0:
                    self.broken.append(fate)
                    return fate
        return None

    def late(self, listing: bytes) -> bytes:
        """Returns a listing without what was written through the proxy."""
        written = {path.partition('?')[0] for method, path in self.log if method == 'PUT'}
        return _LISTED.sub(
            lambda each: b'' if f'/{BUCKET}/{each[1].decode()}' in written else each[0], listing
        )

    @contextlib.contextmanager
    def serving(self):
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


_LISTED = re.compile(rb'<Contents>\s*<Key>(.*?)</Key>.*?</Contents>', re.DOTALL)
_OF_ONE_CONNECTION = {'connection', 'content-length', 'date', 'server', 'transfer-encoding'}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        """Says nothing."""

    def _hand_on(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        if self.command == 'PUT' and body:
            checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
            server.checksums.append(self.headers.get('x-amz-checksum-sha256') == checksum)
        fate = server.fate(self.command, self.path)
        if fate == 'fail':
            self.send_response(503 if len(server.broken) % 2 else 500)
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        if fate == 'delay':
            time.sleep(0.1)  # what is tried here: an answer that takes its time
        connection = http.client.HTTPConnection(server.target)
        headers = dict(self.headers)
        if server.overwrites and self.command == 'PUT':
            conditions = ('if-match', 'if-none-match')
            headers = {name: headers[name] for name in headers if name.lower() not in conditions}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if server.lists_late and 'list-type=2' in self.path:
            data = server.late(data)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        length = answer.getheader('Content-Length') if self.command == 'HEAD' else len(data)
        self.send_header('Content-Length', str(length or 0))
        self.end_headers()
        if self.command == 'HEAD':
            return
        if fate == 'cut':
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
            return
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _hand_on
