"""Downloads a file over HTTP, byte for byte as it is stored, or continues one that was interrupted.

An address may have a checksum and a member of an archive:
`https://host/t.tgz#sha256=HEX!news/a.en`; a `!` of the address itself is written `%21`. A partial file has a file beside it with the server's
ETag or Last-Modified. With these the rest is requested by `Range` and `If-Range` (RFC 9110, 13.1.5
and 14); a server that cannot do that, or has another file now, sends all of it. Errors of servers
and networks become sentences.
"""

import contextlib
import hashlib
import http.client
import json
import logging
import os
import re
import stat
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime

import requests
import urllib3

from pipelines.engines.progress import advance, track_work
from pipelines.files.local import LocalFolder
from pipelines.files.system_errors import telling
from pipelines.options.beam import HIDDEN, url_without_secrets
from tokcore.errors import InputError, OperatingSystemError
from tokcore.format_numbers import FETCHED_FILE

_LOGGER = logging.getLogger(__name__)

CONNECT_SECONDS = 30
ANSWER_SECONDS = 60
"""How long a server may be silent."""

_FETCHING = 'fetching'
_PIECE_BYTES = 32 << 10
"""What a run that ends may lose, and how often progress is counted."""

_MOST_CUTS = 8
"""As often a connection may end within a file before a run gives up; the next one goes on."""

_NUMBER = r'[0-9]{1,18}'
"""An exabyte has 19 digits; of some thousand Python makes no number."""

_CONTENT_RANGE = re.compile(rf'bytes (?:({_NUMBER})-{_NUMBER}|\*)/({_NUMBER}|\*)')

_REMEDIES = {
    401: 'a name and a password stand before the host, as https://NAME:PASSWORD@HOST/…',
    403: 'check the address, and who may read it',
    404: 'check the address',
    410: 'it was removed: find another address',
    429: 'run again later',
}
_TIMEOUTS = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
_NETWORK = 'check the address and the network, and run again'

_MOST_RECORD_BYTES = 64 << 10
"""A record is an address and a few numbers; servers and users cut addresses off at 8 KiB."""

_HASH_PIECE_BYTES = 1 << 20

_BEGINNING = re.compile(r'https?://', re.IGNORECASE)
_CHECKSUM = re.compile(r'#sha256=([0-9A-Fa-f]{64})(?=!|$)')
_WITH_MEMBER = re.compile(r'(https?://[^/?#]*(?![^/?#])[^!]*)!(.+)', re.DOTALL | re.IGNORECASE)
"""The first `!` after the host is before a member: what a file is, its address does not say."""

_ODD = re.compile(r'[^A-Za-z0-9._-]')

_MOST_NAME = 100
"""Of the bytes of a file's name, the last ones: its ending says how it is stored."""


@dataclass(frozen=True)
class WebAddress:
    """Where a file is to be fetched.

    Attributes:
        url: as it is asked for, with a name and a password if there are some.
        name: the same as it may be written down: without these, and values of secret parameters.
        member: of an archive, or a pattern of members; None for the file itself.
        sha256: that the file is to have, in lower case; None if that is not said.
    """

    url: str
    name: str
    member: str | None
    sha256: str | None

    @property
    def key(self) -> str:
        """16 hexadecimal digits that are different for each file; passwords are not part of it."""
        return hashlib.sha256(_without_user(self.url).encode()).hexdigest()[:16]

    @property
    def file_name(self) -> str:
        """The last part of its path, as a plain name that does not begin with a dot.

        Parameters of the path that are secrets are left out.
        """
        last = urllib.parse.urlsplit(self.name).path.rpartition('/')[2]
        last = ';'.join(part for part in last.split(';') if HIDDEN not in part)
        name = _ODD.sub('_', urllib.parse.unquote(last)).lstrip('.')[-_MOST_NAME:].lstrip('.')
        return name or 'file'


@dataclass(frozen=True)
class Fetched:
    """A file that came as a whole."""

    bytes: int
    modified_ns: int  # since 1970
    sha256: str


@dataclass(frozen=True)
class _State:
    """What the server says of its file; empty or None where it does not.

    Attributes:
        etag: the header.
        modified: the header Last-Modified.
        is_settled: whether that time is past, so that the file cannot change again at it.
        total: bytes.
    """

    etag: str = ''
    modified: str = ''
    is_settled: bool = False
    total: int | None = None

    @property
    def validator(self) -> str:
        """What `If-Range` takes: a strong ETag, or a settled time; empty if there is neither."""
        if self.etag and not self.etag.startswith('W/'):
            return self.etag
        return self.modified if self.is_settled else ''

    def allows(self, answered: '_State', total: int | None) -> bool:
        """Tells whether an answer may be about the same state of the file.

        Args:
            answered: its ETag and Last-Modified; what is missing is passed over.
            total: the length of the file, by its Content-Range.
        """
        return (
            total == self.total
            and answered.etag in ('', self.etag)
            and answered.modified in ('', self.modified)
        )


class Transfer:
    """A file on its way.

    Args:
        address: where it is.
        folder: where it goes.
        name: of what came so far; its state is in `NAME.json`.

    Raises:
        InputError: the server or the network refuses it, or it cannot be written.
    """

    def __init__(self, address: WebAddress, folder: LocalFolder, name: str):
        self._address, self._folder = address, folder
        self._name, self._state_name = name, f'{name}.json'
        self._writing = f'write {os.path.join(folder.path, name)}'

    def run(self) -> Fetched:
        """Fetches what is missing."""
        state, cuts = self._known_state(), 0
        while True:
            held = self._held() if state.validator else 0
            try:
                with self._answer(held, state) as answer:
                    state, is_whole = self._take(answer, held, state)
                if is_whole:
                    return self._summary()
            except _CutError as cut:
                cuts += 1
                state = self._known_state()
                if cuts > _MOST_CUTS or not state.validator or self._held() <= held:
                    raise refused_by_network(self._address, cut.error) from cut.error

    def discard(self) -> None:
        """Deletes what came, and what is known of it."""
        with telling(self._writing):
            for name in (self._name, self._state_name):
                self._folder.delete(name)

    def move(self, name: str) -> None:
        """Gives the file, which is whole, its name."""
        with telling(f'write {os.path.join(self._folder.path, name)}'):
            self._folder.replace(self._name, name)
            self._folder.delete(self._state_name)

    @contextlib.contextmanager
    def _answer(self, held: int, state: _State) -> Iterator[requests.Response]:
        headers = {'Accept-Encoding': 'identity', 'User-Agent': 'tokbeam'}
        if held:
            headers |= {'Range': f'bytes={held}-', 'If-Range': state.validator}
        seconds = (CONNECT_SECONDS, ANSWER_SECONDS)
        with requests.Session() as session:
            # To go on to another address, requests would read the whole body of a redirection.
            session.hooks['response'].append(_leave_redirection)
            try:
                answer = session.get(
                    self._address.url, headers=headers, stream=True, timeout=seconds
                )
            except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
                raise refused_by_network(self._address, error) from error
            with answer:
                yield answer

    def _take(self, answer: requests.Response, held: int, state: _State) -> tuple[_State, bool]:
        """Writes what an answer holds; returns the state now, and whether the file is whole."""
        modified = answer.headers.get('Last-Modified', '')
        # Without the length, which a part of the file does not have.
        answered = _State(answer.headers.get('ETag', ''), modified, _is_settled(modified, answer))
        if answer.status_code == 200:
            answered = replace(answered, total=self._length(answer))
            self._begin(answered)
            self._write(answer, 0, answered.total)
            return answered, True
        if not held or answer.status_code not in (206, 416):
            raise refused_by_server(self._address, answer.status_code)
        start, total = _range_of(answer)
        is_same = state.allows(answered, total)
        # A part comes with the ETag that all of the file has (RFC 9110, 15.3.7).
        is_same_part = is_same and answered.etag == state.etag
        if answer.status_code == 206 and is_same_part and start == held:
            _LOGGER.info('going on with %s after %d bytes', self._address.name, held)
            self._write(answer, held, total)
            return state, True
        if answer.status_code == 416 and is_same and total == held:
            return state, True
        self.discard()  # of another file than that of before: all of this one is asked for
        return _State(), False

    def _length(self, answer: requests.Response) -> int | None:
        length = answer.headers.get('Content-Length', '')
        if not length.isascii() or not length.isdigit():
            return None
        if not re.fullmatch(_NUMBER, length):
            raise OperatingSystemError(
                f'cannot fetch {self._address.name}: the server tells a length of {len(length):,} '
                'digits; check the address'
            )
        return int(length)

    def _begin(self, state: _State) -> None:
        self.discard()
        with telling(self._writing):
            os.close(self._folder.open_file(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            with self._folder.create(self._state_name) as file:
                file.write(json.dumps({'format': FETCHED_FILE, **asdict(state)}).encode())

    def _write(self, answer: requests.Response, held: int, total: int | None) -> None:
        """Writes what comes after the bytes that are there.

        Raises:
            _CutError: the connection ended before the file.
        """
        with contextlib.ExitStack() as stack:
            if total is not None:
                stack.enter_context(track_work('fetch', _FETCHING, total))
                advance(_FETCHING, held)
            flags = os.O_WRONLY | os.O_APPEND
            with (
                telling(self._writing),
                os.fdopen(self._folder.open_file(self._name, flags), 'ab') as file,
            ):
                for piece in _pieces(answer):
                    file.write(piece)
                    advance(_FETCHING, len(piece))
        if total is not None and self._held() != total:
            raise _CutError(urllib3.exceptions.ProtocolError('it ends before its end'))

    def _held(self) -> int:
        state = regular_state(self._folder, self._name)
        return 0 if state is None else state.st_size

    def _known_state(self) -> _State:
        """What was noted of the file when it was begun; nothing where that is damaged."""
        noted = read_record(self._folder, self._state_name)
        etag, modified, total = noted.get('etag'), noted.get('modified'), noted.get('total')
        if not isinstance(etag, str) or not isinstance(modified, str):
            return _State()
        if not isinstance(total, int | None):
            return _State()
        return _State(etag, modified, noted.get('is_settled') is True, total)

    def _summary(self) -> Fetched:
        with telling(f'read {os.path.join(self._folder.path, self._name)}'):
            sha256 = sha256_of(self._folder, self._name)
            state = self._folder.state(self._name)
        if state is None:
            raise InputError(f'{self._name} in {self._folder.path} was deleted; run again')
        return Fetched(state.st_size, state.st_mtime_ns, sha256)


def _leave_redirection(response: requests.Response, **_: object) -> None:
    if response.is_redirect:
        response.close()


class _CutError(Exception):
    """A connection that ended before its answer did."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


def _pieces(answer: requests.Response) -> Iterator[bytes]:
    """Yields the answer's bytes as they are sent; raises `_CutError`."""
    pieces = answer.raw.stream(_PIECE_BYTES, decode_content=False)
    while True:
        try:
            piece = next(pieces, None)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _CutError(error) from error
        if piece is None:
            return
        yield piece


def _is_settled(modified: str, answer: requests.Response) -> bool:
    """Tells whether a file cannot be changed once more in the second in which it was changed.

    By RFC 9110, 8.8.2.2, only a time before that of the answer distinguishes one state from another.
    """
    try:
        changed, now = map(parsedate_to_datetime, (modified, answer.headers.get('Date', '')))
        return changed < now
    except (ValueError, TypeError, OverflowError):
        return False


def _range_of(answer: requests.Response) -> tuple[int | None, int | None]:
    """Returns where a partial answer begins and how long the file is, as far as the answer says so."""
    match = _CONTENT_RANGE.fullmatch(answer.headers.get('Content-Range', ''))
    if match is None:
        return None, None
    start, total = match.groups()
    return int(start) if start else None, None if total == '*' else int(total)


def refused_by_server(address: WebAddress, status: int) -> InputError:
    """Returns what is said of an answer without the file; from 500 on the server is to blame."""
    phrase = http.client.responses.get(status, 'which is nothing known')
    kind, remedy = InputError, _REMEDIES.get(status, 'check the address')
    if address.member is not None:
        remedy += f' (the member is {address.member!r}; write a "!" of the address itself as %21)'
    if status >= 500:
        kind, remedy = OperatingSystemError, 'run again later'
    return kind(f'cannot fetch {address.name}: the server answers {status}, {phrase}; {remedy}')


def refused_by_network(address: WebAddress, error: Exception) -> InputError:
    """Returns what is said where no whole answer came.

    `error` is of requests or of urllib3, whose messages may hold a password.
    """
    if isinstance(error, requests.exceptions.TooManyRedirects):
        return InputError(
            f'cannot fetch {address.name}: it leads on and on to other addresses; check it'
        )
    return OperatingSystemError(f'cannot fetch {address.name}: {network_reason(error)}; {_NETWORK}')


def network_reason(error: BaseException) -> str:
    """Returns what the system said, in all that one error after another was made of."""
    causes = _all_causes(error)
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            return cause.strerror
    # A refused connection is a kind of timeout to urllib3: what the system says comes first.
    if any(isinstance(cause, _TIMEOUTS) for cause in causes):
        return 'the server does not answer in time'
    return type(error).__name__


def _all_causes(error: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and not any(cause is known for known in causes):
            causes.append(cause)
            waiting += [
                getattr(cause, 'reason', None),
                *cause.args,
                cause.__cause__,
                cause.__context__,
            ]
    return causes


def regular_state(folder: LocalFolder, name: str) -> os.stat_result | None:
    """Returns the size and times of a regular file; None if it is missing."""
    state = folder.state(name)
    return state if state is not None and stat.S_ISREG(state.st_mode) else None


def read_record(folder: LocalFolder, name: str) -> Mapping[str, object]:
    """Returns the fields of a file of JSON; none where it is missing, damaged or of another format."""
    data = folder.read(name, _MOST_RECORD_BYTES + 1) or b''
    try:
        fields = json.loads(data) if len(data) <= _MOST_RECORD_BYTES else None
    except (ValueError, RecursionError):
        return {}
    if isinstance(fields, dict) and fields.get('format') == FETCHED_FILE:
        return fields
    return {}


def sha256_of(folder: LocalFolder, name: str) -> str:
    """Returns the SHA-256 of a regular file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with os.fdopen(folder.open_file(name, os.O_RDONLY), 'rb') as file:
        while piece := file.read(_HASH_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def is_web_address(path: str) -> bool:
    """Tells whether a path is one that has to be fetched."""
    return bool(_BEGINNING.match(path))


def web_address(path: str) -> WebAddress:
    """Returns what an address says.

    Raises:
        InputError: it cannot be fetched, or has something else after `#`.
    """
    match = _CHECKSUM.search(path)
    rest = path if match is None else path[: match.start()] + path[match.end() :]
    with_member = _WITH_MEMBER.fullmatch(rest)
    url, member = with_member.groups() if with_member else (rest, None)
    shown = url_without_secrets(path.partition('#')[0])  # what follows may be a secret itself
    if '#' in url or '#sha256=' in (member or ''):
        raise InputError(
            f'{shown}#…: what follows # is to be sha256= and 64 hexadecimal digits; mend it, or '
            'leave it out'
        )
    try:
        parts = urllib.parse.urlsplit(url)
        # Reading the port raises if it is not a number.
        if not parts.hostname or parts.port == 0 or not url.isprintable() or ' ' in url:
            raise ValueError
    except ValueError:  # its message may hold a password
        raise InputError(
            f'{shown} is not the address of a file on the web (there is no host, or a port or character '
            'that cannot be); mend it'
        ) from None
    name = url_without_secrets(_without_user(url))
    return WebAddress(url, name, member, match[1].lower() if match else None)


def _without_user(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition('@')[2], fragment='').geturl()
