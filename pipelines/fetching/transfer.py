"""A file by HTTP, byte for byte as it is stored: from its beginning, or on from where it was cut.

What came so far is a file of its own, and beside it stands by what the server knows that state of
its file (ETag or Last-Modified). With these the rest alone is asked for, by `Range` and `If-Range`
(RFC 9110, 13.1.5 and 14); a server that cannot do that, or has another file now, sends all of it.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime

import requests
import urllib3

from pipelines.engines.progress import advance, counted, tell
from pipelines.fetching.fetch_events import FetchResumed
from pipelines.fetching.refusals import refused_by_network, refused_by_server
from pipelines.fetching.web_addresses import WebAddress
from pipelines.files import filesystem
from pipelines.files.system_errors import telling

CONNECT_SECONDS = 30
ANSWER_SECONDS = 60
"""How long a server may be silent."""

_FETCHING = 'fetching'
_PIECE_BYTES = 256 << 10
"""What a killed run may lose, and how often it is told how far it is."""

_MOST_CUTS = 8
"""As often a connection may end within a file before a run gives up; the next one goes on."""

_CONTENT_RANGE = re.compile(r'bytes (?:(\d+)-\d+|\*)/(\d+|\*)')


@dataclass(frozen=True)
class Fetched:
    """A file that came as a whole."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class _State:
    """What the server says of its file; empty or None where it does not."""

    etag: str = ''
    modified: str = ''
    total: int | None = None

    @property
    def validator(self) -> str:
        """What `If-Range` takes: a strong ETag, or the time; empty if there is neither."""
        return self.etag if self.etag and not self.etag.startswith('W/') else self.modified


class Transfer:
    """A file on its way.

    Args:
        address: where it is.
        path: of what came so far; its state is in `PATH.json`.

    Raises:
        InputError: the server refuses it, the network does, or it cannot be written.
    """

    def __init__(self, address: WebAddress, path: str):
        self._address, self._path, self._state_path = address, path, f'{path}.json'

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
        for path in (self._path, self._state_path):
            filesystem.delete_file(path)

    def move(self, path: str) -> None:
        """Gives the file, which is whole, its name."""
        filesystem.rename(self._path, path)
        filesystem.delete_file(self._state_path)

    @contextlib.contextmanager
    def _answer(self, held: int, state: _State) -> Iterator[requests.Response]:
        headers = {'Accept-Encoding': 'identity', 'User-Agent': 'tokbeam'}
        if held:
            headers |= {'Range': f'bytes={held}-', 'If-Range': state.validator}
        seconds = (CONNECT_SECONDS, ANSWER_SECONDS)
        try:
            answer = requests.get(self._address.url, headers=headers, stream=True, timeout=seconds)
        except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise refused_by_network(self._address, error) from error
        with answer:
            yield answer

    def _take(self, answer: requests.Response, held: int, state: _State) -> tuple[_State, bool]:
        """Writes what an answer holds; returns the state now, and whether the file is whole."""
        told = _state_of(answer)
        if answer.status_code == 200:
            self._begin(told)
            self._write(answer, 0, told.total)
            return told, True
        if not held or answer.status_code not in (206, 416):
            raise refused_by_server(self._address, answer.status_code)
        start, total = _range_of(answer)
        is_same = total == state.total and told.etag in ('', state.etag)
        if answer.status_code == 206 and is_same and start == held:
            tell(FetchResumed(self._address.name, held))
            self._write(answer, held, total)
            return state, True
        if answer.status_code == 416 and is_same and total == held:
            return state, True
        self.discard()  # of another file than that of before: all of this one is asked for
        return _State(), False

    def _begin(self, state: _State) -> None:
        with telling(f'write {self._path}'), open(self._path, 'wb'):
            pass
        filesystem.write_bytes(self._state_path, json.dumps(asdict(state)).encode())

    def _write(self, answer: requests.Response, held: int, total: int | None) -> None:
        """Writes what comes behind the bytes that are there.

        Raises:
            _CutError: the connection ended before the file.
        """
        with contextlib.ExitStack() as stack:
            if total is not None:
                stack.enter_context(counted('fetch', _FETCHING, total))
                advance(_FETCHING, held)
            with telling(f'write {self._path}'), open(self._path, 'ab') as file:
                for piece in _pieces(answer):
                    file.write(piece)
                    advance(_FETCHING, len(piece))
        if total is not None and self._held() != total:
            raise _CutError(urllib3.exceptions.ProtocolError('it ends before its end'))

    def _held(self) -> int:
        return os.path.getsize(self._path) if os.path.isfile(self._path) else 0

    def _known_state(self) -> _State:
        """What was noted of the file when it was begun; nothing where that is damaged."""
        try:
            with open(self._state_path, 'rb') as file:
                fields = json.load(file)
            total = fields['total']
            return _State(str(fields['etag']), str(fields['modified']), total and int(total))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return _State()

    def _summary(self) -> Fetched:
        digest, size = hashlib.sha256(), 0
        with telling(f'read {self._path}'), open(self._path, 'rb') as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
        return Fetched(size, digest.hexdigest())


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


def _state_of(answer: requests.Response) -> _State:
    length = answer.headers.get('Content-Length', '')
    return _State(
        answer.headers.get('ETag', ''),
        _settled_time(answer),
        int(length) if length.isascii() and length.isdigit() else None,
    )


def _settled_time(answer: requests.Response) -> str:
    """When the file was changed; empty if that is not told, or in this second may happen again.

    By RFC 9110, 8.8.2.2, only a time before that of the answer tells one state from another.
    """
    modified = answer.headers.get('Last-Modified', '')
    try:
        changed, now = map(parsedate_to_datetime, (modified, answer.headers.get('Date', '')))
        return modified if changed < now else ''
    except (ValueError, TypeError):
        return ''


def _range_of(answer: requests.Response) -> tuple[int | None, int | None]:
    """Returns where a partial answer begins and how long the file is, as far as that is told."""
    found = _CONTENT_RANGE.fullmatch(answer.headers.get('Content-Range', ''))
    if found is None:
        return None, None
    start, total = found.groups()
    return start and int(start), None if total == '*' else int(total)
