"""Google Cloud Storage on this machine: the requests of its XML interface that obstore makes, and no others.

No emulator answers these: fake-gcs-server refuses obstore's uploads, and moto has no such store. What is
not understood is refused, and so is a request without the token.
"""

import contextlib
import dataclasses
import hashlib
import http.server
import itertools
import re
import threading
import time
import urllib.parse
from email.utils import formatdate
from xml.sax.saxutils import escape

import pytest

from tokcore import object_stores

BUCKET = 'corpora'
TOKEN = 'ya29.HUSH-this_is-secret'
_LEAST_PART_BYTES = 5 << 20
"""Of all parts of an upload but the last."""

_LISTED = {'list-type', 'prefix', 'delimiter', 'max-keys', 'continuation-token'}


@contextlib.contextmanager
def served_google_store():
    """Serves a store with one empty bucket; gives it as a `GoogleStore`."""
    with GoogleStore() as store:
        thread = threading.Thread(target=store.serve_forever, daemon=True)
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()


@dataclasses.dataclass(frozen=True)
class _Object:
    data: bytes
    generation: int = 0
    modified: float = dataclasses.field(default_factory=time.time)

    @property
    def etag(self):
        return f'"{hashlib.md5(self.data).hexdigest()}"'

    @property
    def headers(self):
        return {'ETag': self.etag, 'x-goog-generation': str(self.generation)}


class GoogleStore(http.server.ThreadingHTTPServer):
    """The objects of a bucket, and the parts of those that are not whole yet."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(('127.0.0.1', 0), _Handler)
        self.url = 'http://{}:{}'.format(*self.server_address[:2])
        self.objects: dict[str, _Object] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock, self.numbers = threading.Lock(), itertools.count(1)

    def environment(self, url=None):
        return {'GOOGLE_BASE_URL': url or self.url, 'GOOGLE_BEARER_TOKEN': TOKEN}

    def use(self, patch: pytest.MonkeyPatch, url=None):
        """Has this process, and those that it starts, use this store, by its own address or another."""
        object_stores._bucket.cache_clear()
        for name, value in self.environment(url).items():
            patch.setenv(name, value)

    def put(self, key, data):
        self.objects[key] = _Object(data, next(self.numbers))
        return self.objects[key]

    def files(self, prefix):
        """Returns the objects below a prefix, by their names below it."""
        below = prefix + '/'
        found = list(self.objects.items())
        return {key[len(below) :]: each.data for key, each in found if key.startswith(below)}


class _RefusalError(Exception):
    """An answer without what was asked for: its status and code."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: GoogleStore

    def log_message(self, *_):
        """Says nothing."""

    def _answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
        _, bucket, *keys = map(urllib.parse.unquote, address.path.split('/'))
        try:
            if self.headers.get('Authorization') != f'Bearer {TOKEN}':
                raise _RefusalError(401, 'AuthenticationRequired')
            if bucket != BUCKET:
                raise _RefusalError(404, 'NoSuchBucket')
            with self.server.lock:
                status, headers, data = self._act(keys, query, body)
        except _RefusalError as refusal:
            status, code = refusal.args
            headers, data = {}, f'<Error><Code>{code}</Code></Error>'.encode()
        self.send_response(status)
        for name, value in ({'Content-Length': str(len(data))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

    def _act(self, keys, query, body):
        """Does what a request asks for; returns the status, headers and body of its answer."""
        match self.command, keys, sorted(query):
            case 'GET', [], _ if query.get('list-type') == '2' and query.keys() <= _LISTED:
                return 200, {}, _xml('ListBucketResult', self._listed(query))
            case 'GET' | 'HEAD', [key], []:
                return self._read(self._object(key))
            case 'PUT', [key], []:
                return 200, self._put(key, body).headers, b''
            case 'DELETE', [key], []:
                self._object(key)
                del self.server.objects[key]
                return 204, {}, b''
            case 'POST', [_], ['uploads']:
                upload = f'upload-{next(self.server.numbers)}'
                self.server.uploads[upload] = {}
                return (
                    200,
                    {},
                    _xml('InitiateMultipartUploadResult', f'<UploadId>{upload}</UploadId>'),
                )
            case 'PUT', [_], ['partNumber', 'uploadId']:
                self._parts(query)[int(query['partNumber'])] = body
                return 200, {'ETag': _Object(body).etag}, b''
            case 'POST', [key], ['uploadId']:
                stored = self.server.put(key, _joined(self._parts(query), body.decode()))
                del self.server.uploads[query['uploadId']]
                etag = f'<ETag>{stored.etag}</ETag>'
                return 200, stored.headers, _xml('CompleteMultipartUploadResult', etag)
            case 'DELETE', [_], ['uploadId']:
                self._parts(query)
                del self.server.uploads[query['uploadId']]
                return 204, {}, b''
        raise _RefusalError(400, 'InvalidArgument')

    def _object(self, key):
        if key not in self.server.objects:
            raise _RefusalError(404, 'NoSuchKey')
        return self.server.objects[key]

    def _parts(self, query):
        if query['uploadId'] not in self.server.uploads:
            raise _RefusalError(404, 'NoSuchUpload')
        return self.server.uploads[query['uploadId']]

    def _listed(self, query):
        prefix, delimiter = query.get('prefix', ''), query.get('delimiter')
        most = min(int(query.get('max-keys', 1000)), 1000)
        entries = {}
        for key, stored in sorted(self.server.objects.items()):
            below, border, _ = key[len(prefix) :].partition(delimiter or '\0')
            name = prefix + below + border
            if key.startswith(prefix) and name > query.get('continuation-token', ''):
                entries[name] = _contents(name, None if border else stored)
        token = ''
        if len(entries) > most:
            token = escape(list(entries)[most - 1])
            token = f'<NextContinuationToken>{token}</NextContinuationToken>'
        return ''.join(list(entries.values())[:most]) + token

    def _read(self, stored):
        if self.headers.get('If-Match', stored.etag) != stored.etag:
            raise _RefusalError(412, 'PreconditionFailed')
        headers = stored.headers | {'Last-Modified': formatdate(stored.modified, usegmt=True)}
        size, asked = len(stored.data), self.headers.get('Range')
        if asked is None:
            return 200, {**headers, 'Content-Length': str(size)}, stored.data
        start, end = map(int, re.fullmatch(r'bytes=(\d+)-(\d+)', asked).groups())
        if start >= size:
            raise _RefusalError(416, 'InvalidRange')
        data = stored.data[start : end + 1]
        return (
            206,
            {**headers, 'Content-Range': f'bytes {start}-{start + len(data) - 1}/{size}'},
            data,
        )

    def _put(self, key, body):
        expected, there = (
            self.headers.get('x-goog-if-generation-match'),
            self.server.objects.get(key),
        )
        if expected is not None and int(expected) != (there.generation if there else 0):
            raise _RefusalError(412, 'PreconditionFailed')
        source = self.headers.get('x-goog-copy-source')
        if source is not None:
            bucket, source_key = map(urllib.parse.unquote, source.split('/'))
            assert bucket == BUCKET
            body = self._object(source_key).data
        return self.server.put(key, body)


def _joined(parts, asked):
    """Returns an object of parts, if they are the ones asked for."""
    pattern = r'<Part><ETag>(.*?)</ETag><PartNumber>(\d+)</PartNumber></Part>'
    told = [(int(number), etag) for etag, number in re.findall(pattern, asked)]
    data = [parts[number] for number in sorted(parts)]
    if told != [(number, _Object(part).etag) for number, part in enumerate(data, 1)]:
        raise _RefusalError(400, 'InvalidPart')
    if any(len(part) < _LEAST_PART_BYTES for part in data[:-1]):
        raise _RefusalError(400, 'EntityTooSmall')
    return b''.join(data)


def _contents(name, stored):
    if stored is None:
        return f'<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>'
    modified = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(stored.modified))
    return (
        f'<Contents><Key>{escape(name)}</Key><Size>{len(stored.data)}</Size>'
        f'<LastModified>{modified}</LastModified><ETag>{stored.etag}</ETag></Contents>'
    )


def _xml(name, inner):
    return f'<{name}>{inner}</{name}>'.encode()
