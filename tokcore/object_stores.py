"""Objects of S3 and of Google Cloud Storage, by obstore: whole answers, plain errors, counted requests.

A bucket's client is opened when it is first needed, once in each process. Its threads do not survive
a fork, so a process that was forked later is refused, where it would wait for ever. What an error of
the store says is not shown, as it may repeat keys: only its code is.

Requests are repeated after waits that grow and vary: those without an answer, those answered by a server's
error or by "slow down", and those whose answer was cut off. A bucket that has not answered yet, whose address
may be wrong, is asked for `RETRY_SECONDS`, and one that has for `PATIENCE_SECONDS`.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import errno
import functools
import io
import os
import random
import re
import threading
import time
import typing
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tokcore.errors import InputError, UnreachableError, missing_package

if typing.TYPE_CHECKING:
    from obstore.store import ObjectStore

_Answer = TypeVar('_Answer')

RETRY_SECONDS = 60
"""For which a request is repeated before it is an error, if the bucket has never answered."""

PATIENCE_SECONDS = 240
"""The same after a first answer. Less than a claim of an output lasts, which is renewed by such requests."""

PART_BYTES = 8 << 20
"""The size of the parts of an object that is uploaded in parts. S3 takes 10,000 parts, so an object of 80 GB."""

_MOST_COPIED = 5 << 30
"""S3 copies no larger object by one request."""

_MOST_DELETED = 1000
"""By one request of S3."""

_SCHEMES = ('s3://', 'gs://')
_BUCKET_NAME = re.compile(r'[\w.-]+')
_SIGNED = re.compile(
    r'[?&](X-(Amz|Goog)-[A-Za-z-]+|Signature|AWSAccessKeyId|GoogleAccessId)=', re.IGNORECASE
)
_CODE = re.compile(r'<Code>(\w{1,60})</Code>')
_STATUS = re.compile(r'status code: (\d{3})')

_PASSING = ('408', '429')
"""Answers to a client's mistake that are none: a request that came too slowly, and too many of them."""

_CREDENTIALS = {
    'ExpiredToken',
    'InvalidAccessKeyId',
    'InvalidToken',
    'SignatureDoesNotMatch',
    'TokenRefreshRequired',
}
_REGION = {
    'AuthorizationHeaderMalformed',
    'IllegalLocationConstraintException',
    'PermanentRedirect',
}


@dataclass(frozen=True)
class StoreOptions:
    """What Beam's `--s3_` options say; None: as the AWS variables of the environment have it."""

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    verifies: bool = True


@dataclass(frozen=True)
class Version:
    """What identifies a state of an object; Google compares generations, and S3 etags."""

    etag: str | None
    generation: str | None = None


@dataclass(frozen=True)
class StoredObject:
    """An object as its store lists it: its key, bytes, seconds since 1970, and version."""

    key: str
    size: int
    modified: float
    version: Version


def is_object(path: str) -> bool:
    """Returns whether a path is of a store that this module reaches."""
    return path.startswith(_SCHEMES)


def bucket_of(path: str, options: StoreOptions = StoreOptions()) -> tuple[Bucket, str]:
    """Returns the bucket of a path, and the key in it; opens no connection yet.

    Raises:
        InputError: the path has no bucket, or a key or password in it, which is not shown; obstore is
            not installed or does not take the options; or this process was forked from one that has
            used a store.
    """
    scheme, _, rest = path.partition('://')
    name, _, key = rest.partition('/')
    if not name:
        raise InputError(f'{path} names no bucket; give {scheme}://BUCKET/NAME')
    if not _BUCKET_NAME.fullmatch(name) or _SIGNED.search(path):
        raise InputError(
            f'a path of {scheme}:// is {scheme}://BUCKET/NAME, and one that is given has something else '
            'in it; credentials are taken from the environment'
        )
    return _bucket(os.getpid(), f'{scheme}://{name}', options), key.rstrip('/')


def counted_requests() -> dict[str, int]:
    """Returns the requests that this process has made so far, by their kind, repetitions left out."""
    with _counting:
        return dict(_requests)


def requests_since(before: Mapping[str, int]) -> dict[str, int]:
    """Returns the requests since `counted_requests` gave `before`; kinds without any are left out."""
    since = collections.Counter(counted_requests()) - collections.Counter(before)
    return dict(sorted(since.items()))


class Bucket:
    """A bucket, or a store's container by any other name.

    Methods raise OSError, as a filesystem would: FileNotFoundError, PermissionError, or one that names
    what the store answered; UnreachableError if it does not answer; and InputError where a key is
    impossible, or the bucket in another region.

    Args:
        url: `SCHEME://NAME`.
        open_for: returns its client that repeats a request for some seconds.
    """

    def __init__(self, url: str, open_for: Callable[[int], ObjectStore]):
        self.url = url
        self._open_for, self._seconds = open_for, RETRY_SECONDS
        self._store = open_for(RETRY_SECONDS)

    def look(self, key: str) -> StoredObject | None:
        """Returns an object, or None if there is none. One request."""
        _count('look')
        try:
            return _stored(self._asked(key, lambda: self._obstore.head(self._store, key)))
        except FileNotFoundError:
            return None

    def read(self, key: str, start: int, end: int, etag: str | None = None) -> bytes:
        """Returns bytes [start, end) of an object, fewer only where it ends. One request.

        Raises:
            InputError: it is not the version `etag` any more.
        """
        return self.read_with_state(key, start, end, etag)[0]

    def read_with_state(
        self, key: str, start: int, end: int, etag: str | None = None
    ) -> tuple[bytes, StoredObject]:
        """Returns what `read` does, and the object that it is of. An empty one takes two requests."""
        _count('read')
        options: dict[str, object] = {'range': (start, end)}
        if etag is not None:
            options['if_match'] = etag

        def get() -> tuple[bytes, StoredObject]:
            result = self._obstore.get(self._store, key, options=options)
            state, data = _stored(result.meta), result.bytes().to_bytes()
            if len(data) != max(0, min(end, state.size) - start):
                raise TimeoutError(f'{len(data)} bytes came of {end - start}')
            return data, state

        try:
            return self._asked(key, get)
        except _EmptyRangeError:
            stored = self.look(key)
            if stored is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
            return b'', stored

    def put(self, key: str, data: bytes) -> None:
        """Writes a whole object. One request; see `writer` for large ones."""
        _count('put')
        self._asked(key, lambda: self._obstore.put(self._store, key, data, use_multipart=False))

    def create(self, key: str, data: bytes, expected: Version | None = None) -> Version | None:
        """Writes an object if there is none, or if it still has the version `expected`.

        Returns its version; None if it was not written, or if only the answer got lost that it was.

        Raises:
            OSError: with `errno.ENOTSUP`, the store has no such request.
        """
        _count('put')
        mode: object = 'create'
        if expected is not None:
            version = {'e_tag': expected.etag, 'version': expected.generation}
            mode = {name: value for name, value in version.items() if value is not None}
        exceptions = self._obstore.exceptions

        def put() -> Version | None:
            try:
                return _version(
                    self._obstore.put(self._store, key, data, mode=mode, use_multipart=False)
                )
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return None

        try:
            return self._asked(key, put)
        except FileNotFoundError:
            if expected is None:
                raise
            return None

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[typing.BinaryIO]:
        """Writes an object of any size, in parts if it is large; it is there only when it is whole."""
        with self._plain_errors(key):
            stream = self._obstore.open_writer(
                self._store, key, buffer_size=PART_BYTES, max_concurrency=2
            )
        counting = _Writer(self, key, stream)
        try:
            yield counting  # type: ignore[misc]  # of a BinaryIO all that writing needs
        except BaseException as error:
            # Leaves no parts that are paid for.
            with contextlib.suppress(Exception):
                stream.__exit__(type(error), error, None)
            raise
        with self._plain_errors(key):
            stream.close()
        parts = -(-counting.size // PART_BYTES)
        _count('put', 1 if counting.size < PART_BYTES else parts + 2)

    def list_all(self, prefix: str) -> list[StoredObject]:
        """Returns all objects below a prefix, which is a folder's name. A request for each 1,000."""

        def listed() -> list[StoredObject]:
            pages = self._obstore.list(self._store, prefix or None, chunk_size=1000)
            return [_stored(meta) for page in pages for meta in page]

        objects = self._asked(prefix, listed)
        _count('list', max(1, -(-len(objects) // 1000)))
        return objects

    def has_below(self, prefix: str) -> bool:
        """Returns whether there is an object below a prefix. One request."""
        _count('list')

        def first() -> Sequence[object]:
            return next(iter(self._obstore.list(self._store, prefix or None, chunk_size=1)), ())

        return bool(self._asked(prefix, first))

    def list_one_level(self, prefix: str) -> tuple[list[str], list[StoredObject]]:
        """Returns the prefixes that are one level below a prefix, and the objects there."""
        listed = self._asked(
            prefix, lambda: self._obstore.list_with_delimiter(self._store, prefix or None)
        )
        prefixes, objects = listed['common_prefixes'], listed['objects']
        _count('list', max(1, -(-(len(prefixes) + len(objects)) // 1000)))
        return list(prefixes), list(map(_stored, objects))

    def copy(self, key: str, new_key: str) -> None:
        """Copies an object within the store. One request, but of objects that are too large for it."""
        _count('copy')
        try:
            self._asked(key, lambda: self._obstore.copy(self._store, key, new_key))
            return
        except OSError:
            stored = self.look(key)
            if stored is None or stored.size <= _MOST_COPIED:
                raise
        with self.writer(new_key) as stream:
            for start in range(0, stored.size, PART_BYTES):
                stream.write(self.read(key, start, start + PART_BYTES, stored.version.etag))

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects; those that are not there are fine. On S3 a request for each 1,000."""
        if not keys:
            return
        _count('delete', -(-len(keys) // (1 if self.url.startswith('gs:') else _MOST_DELETED)))
        try:
            self._asked(keys[0], lambda: self._obstore.delete(self._store, list(keys)))
        except FileNotFoundError:
            # Google's store says so, and obstore then leaves out those that would have followed.
            for key in keys if len(keys) > 1 else ():
                self.delete([key])

    @property
    def _obstore(self):
        import obstore
        import obstore.exceptions

        return obstore

    def _asked(self, key: str, ask: Callable[[], _Answer]) -> _Answer:
        """Returns an answer; asks again where it was cut off, which obstore does not always do."""
        began, longest = time.monotonic(), 0.2
        while True:
            try:
                with self._plain_errors(key):
                    answer = ask()
            except UnreachableError:
                wait = random.uniform(0, longest)
                if time.monotonic() + wait > began + self._seconds:
                    raise
            except FileNotFoundError:
                self._be_patient()
                raise
            else:
                self._be_patient()
                return answer
            time.sleep(wait)
            longest = min(2 * longest, 10)

    def _be_patient(self) -> None:
        """The bucket has answered, so it is there: a later silence may pass."""
        if self._seconds != PATIENCE_SECONDS:
            self._store, self._seconds = self._open_for(PATIENCE_SECONDS), PATIENCE_SECONDS

    @contextlib.contextmanager
    def _plain_errors(self, key: str) -> Iterator[None]:
        """Raises what obstore raises in a block as an OSError, or as an InputError."""
        exceptions = self._obstore.exceptions
        try:
            yield
        except FileNotFoundError as error:
            code = _found(_CODE, error)
            if code == 'NoSuchBucket':
                raise self._no_bucket() from None
            if code == 'NoSuchUpload':
                raise UnreachableError(
                    f'{self.url}/{key} cannot be written: the store has lost an upload, or its answer got '
                    'lost; run again'
                ) from None
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
        except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
            raise InputError(
                f'{self.url}/{key} was replaced while it was read; run again when nothing writes to '
                'it any more'
            ) from None
        except (exceptions.BaseError, PermissionError, TimeoutError) as error:
            raise self._plain_error(error, key) from None
        except ValueError as error:
            raise InputError(
                f'{self.url}/{key} is not a name that stores can have ({str(error)[:200]}); give another'
            ) from None

    def _no_bucket(self) -> OSError:
        return FileNotFoundError(errno.ENOENT, f'there is no bucket {self.url}')

    def _plain_error(self, error: Exception, key: str) -> OSError | InputError:
        code, status = _found(_CODE, error), _found(_STATUS, error)
        what = ' '.join(filter(None, [status, code]))
        if status == '416' or 'Invalid range' in str(error).partition('\n')[0]:
            return _EmptyRangeError(errno.EINVAL, what)
        if code == 'NoSuchBucket':
            return self._no_bucket()
        if code in _CREDENTIALS or status == '401':
            return PermissionError(
                errno.EACCES, f'{self.url} does not take the credentials ({what})'
            )
        if code in _REGION or status == '301' or 'Received redirect without LOCATION' in str(error):
            return InputError(f'{self.url} is in another region ({what}); set AWS_REGION to that')
        if status == '403' or isinstance(error, PermissionError):
            return PermissionError(errno.EACCES, f'{self.url} refuses it ({what or "denied"})')
        if status == '400' and not code:
            # All that S3 says to a HEAD, whose answer has no body.
            return InputError(
                f'{self.url} does not take the request ({what}); check that AWS_REGION is where the '
                'bucket is, and the credentials'
            )
        if code == 'NotImplemented' or status == '501':
            return OSError(errno.ENOTSUP, f'{self.url} cannot do it ({what})')
        if status in _PASSING or status.startswith('5'):
            return UnreachableError(
                f'{self.url}/{key} cannot be reached: the store answers {what}, and that has not passed in '
                f'up to {self._seconds} s; run again when it does better'
            )
        if status:
            return OSError(getattr(errno, 'EREMOTEIO', errno.EIO), f'{self.url} answers {what}')
        if 'redentials' in str(error) or 'oken' in str(error):
            return PermissionError(errno.EACCES, f'there are no credentials for {self.url}')
        return UnreachableError(
            f'{self.url}/{key} cannot be reached: the store gives no whole answer, after trying for up to '
            f'{self._seconds} s; check the network, and run again'
        )


class ObjectReader(io.RawIOBase):
    """An object as a file for reading. It takes one request to open, and one more for each long read.

    A small object is read at once. Of a larger one, small reads that follow each other are made of
    ever longer ranges, and a read that is longer than these is a range by itself.

    Args:
        bucket: that it is in.
        key: of it.
        size: in bytes, if it is known: then it takes no request to open it.
        ahead: the bytes that are likely to be read from the first place on, if it is not opened by a
            request: the first one gets as many, at most 16 MiB.

    Raises:
        InputError: by a read, if the object was replaced, or is not of the size given.
        OSError: by a read, if it is missing, where a size is given.
    """

    _HEAD_BYTES = 64 << 10
    _MOST_AHEAD = 16 << 20

    def __init__(self, bucket: Bucket, key: str, size: int | None = None, ahead: int = 0):
        super().__init__()
        self._bucket, self._key = bucket, key
        self._start = self._place = 0  # of the buffered bytes; of the next byte to read
        self._ahead = min(max(ahead, self._HEAD_BYTES), self._MOST_AHEAD)
        self._etag: str | None = None
        self._has_fetched = size is None
        if size is not None:
            self._buffered, self._size = b'', size
            return
        self._buffered, state = bucket.read_with_state(key, 0, self._HEAD_BYTES)
        self._size, self._etag = state.size, state.version.etag

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._place = base + offset
        return self._place

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = self._size
        end = min(self._place + size, self._size)
        if end <= self._place:
            return b''
        buffered_end = self._start + len(self._buffered)
        if self._start <= self._place and end <= buffered_end:
            data = self._buffered[self._place - self._start : end - self._start]
        else:
            data = b''
            if not self._has_fetched:
                self._has_fetched = True
            elif self._start <= self._place <= buffered_end:
                # It goes on from what is buffered, so more is likely to follow.
                data = self._buffered[self._place - self._start :]
                self._ahead = min(4 * self._ahead, self._MOST_AHEAD)
            else:
                self._ahead = self._HEAD_BYTES
            data += self._fetch(self._place + len(data), end)
        self._place += len(data)
        return data

    def readinto(self, buffer, /) -> int:
        view = memoryview(buffer).cast('B')
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self.read()

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def _fetch(self, start: int, end: int) -> bytes:
        """Returns bytes [start, end); keeps those after them that came along."""
        last = min(max(end, start + self._ahead), self._size)
        fetched, state = self._bucket.read_with_state(self._key, start, last, self._etag)
        if state.size != self._size:
            raise InputError(
                f'{self._bucket.url}/{self._key} has {state.size} bytes but had {self._size} before; '
                'run again when nothing writes to it any more'
            )
        self._etag = state.version.etag
        if last == end:
            self._start, self._buffered = end, b''
            return fetched
        self._start, self._buffered = start, fetched
        return fetched[: end - start]


class _Writer(io.RawIOBase):
    """A stream to an object, with plain errors, which counts its bytes."""

    def __init__(self, bucket: Bucket, key: str, stream):
        super().__init__()
        self._bucket, self._key, self._stream = bucket, key, stream
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data, /) -> int:
        view = memoryview(data).cast('B')
        with self._bucket._plain_errors(self._key):
            self._stream.write(view)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        return self.size


class _EmptyRangeError(OSError):
    """A range of an object begins where that has ended."""


_requests: collections.Counter[str] = collections.Counter()
_counting = threading.Lock()


def _count(kind: str, requests: int = 1) -> None:
    with _counting:
        _requests[kind] += requests


def _stored(meta: Mapping[str, typing.Any]) -> StoredObject:
    return StoredObject(
        meta['path'], meta['size'], meta['last_modified'].timestamp(), _version(meta)
    )


def _version(meta: Mapping[str, typing.Any]) -> Version:
    return Version(meta['e_tag'], meta['version'])


def _found(pattern: re.Pattern[str], error: Exception) -> str:
    match = pattern.search(str(error))
    return match[1] if match else ''


_users: list[int] = []


@functools.cache
def _bucket(process: int, url: str, options: StoreOptions) -> Bucket:
    if _users and process not in _users:
        raise InputError(
            f'{url} cannot be reached from a process that was forked from one which has used a '
            'store; start it by spawning (multiprocessing_context="spawn")'
        )
    try:
        bucket = Bucket(url, functools.partial(open_store, url, options))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition('.')[0] != 'obstore':
            raise
        raise missing_package(url, 's3') from None
    except Exception as error:
        # Obstore's errors repeat what they do not take, which may be a key.
        if isinstance(error, InputError):
            raise
        raise InputError(
            f'{url} cannot be opened: an address or a key for it, from the environment (AWS_… or '
            'GOOGLE_…) or from --s3_…, is not what it should be; mend it'
        ) from None
    _users.append(process)
    return bucket


def open_store(url: str, options: StoreOptions, retry_seconds: int) -> ObjectStore:
    """Returns obstore's client of a bucket; no request is made yet."""
    import obstore.store

    seconds = datetime.timedelta(seconds=1)
    retries: typing.Any = {
        'max_retries': 1000,  # the time alone limits them
        'retry_timeout': retry_seconds * seconds,
        'backoff': {'init_backoff': seconds / 10, 'max_backoff': 10 * seconds, 'base': 2},
    }
    client: typing.Any = {
        'connect_timeout': 10 * seconds,
        'timeout': RETRY_SECONDS * seconds,
    }
    if url.startswith('gs://'):
        client['allow_http'] = True  # of an emulator: Google's own address has https
        return obstore.store.GCSStore(url[5:], client_options=client, retry_config=retries)
    config: typing.Any = {'checksum_algorithm': 'SHA256'}
    environment = os.environ
    endpoint = (
        options.endpoint
        or environment.get('AWS_ENDPOINT_URL_S3')
        or environment.get('AWS_ENDPOINT_URL')
    )
    if endpoint:
        _check_address(endpoint)
        config['endpoint'] = endpoint
        client['allow_http'] = True
    region = (
        options.region or environment.get('AWS_REGION') or environment.get('AWS_DEFAULT_REGION')
    )
    if region or endpoint:
        config['region'] = region or 'us-east-1'
    if not options.verifies:
        client['allow_invalid_certificates'] = True
    provider = None
    if options.access_key_id:
        config['access_key_id'] = options.access_key_id
        config['secret_access_key'] = options.secret_access_key
        if options.session_token:
            config['session_token'] = options.session_token
    elif 'AWS_ACCESS_KEY_ID' not in environment and _has_profile():
        provider = _profile_credentials(url)
    return obstore.store.S3Store(
        url[5:],
        config=config,
        client_options=client,
        retry_config=retries,
        credential_provider=provider,
    )


def _check_address(endpoint: str) -> None:
    """Refuses an address that would end obstore, and the process with it; it may hold a password."""
    try:
        parts = urllib.parse.urlsplit(endpoint)
        if parts.scheme in ('http', 'https') and parts.hostname and parts.port != 0:
            return
    except ValueError:  # of the port
        pass
    raise InputError(
        'AWS_ENDPOINT_URL, or --s3_endpoint_url, is not the address of a store; give '
        'https://HOST or http://HOST:PORT'
    )


def _has_profile() -> bool:
    default = os.path.join(os.path.expanduser('~'), '.aws', 'credentials')
    file = os.environ.get('AWS_SHARED_CREDENTIALS_FILE', default)
    return 'AWS_PROFILE' in os.environ or os.path.exists(file)


def _profile_credentials(url: str):
    """Returns what asks boto3 for the credentials of a profile."""
    try:
        import boto3
    except ModuleNotFoundError:
        raise InputError(
            f'{url}: only boto3 reads profiles of AWS; get it by pip install boto3, or set '
            'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
        ) from None
    session = boto3.Session()

    def credentials() -> dict[str, object]:
        frozen = session.get_credentials().get_frozen_credentials()
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)
        return {
            'access_key_id': frozen.access_key,
            'secret_access_key': frozen.secret_key,
            'token': frozen.token,
            'expires_at': soon,
        }

    return credentials
