"""A Hugging Face Hub on 127.0.0.1, with the endpoints that `huggingface_hub` asks to list and to fetch files.

The forms of its answers are those of https://huggingface.co/docs/hub/api, with pages of two entries. Files
whose names end in `.bin`, `.gz` or `.parquet` are on another path, as the Hub redirects to its store.
"""

import contextlib
import hashlib
import http.server
import json
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import huggingface_hub
import pytest

from pipelines.files import hub

# The package imports its modules when they are asked for.
assert huggingface_hub.hf_hub_download

_PAGE = 2
_STORED = ('.bin', '.gz', '.parquet')


def commit_of(number: int) -> str:
    """Returns the hash of a commit by its number."""
    return hashlib.sha1(str(number).encode()).hexdigest()


@dataclass
class Repository:
    """A repository.

    Attributes:
        commits: the files of each commit, by path; the last one is that of `main`.
        token: without which nobody may read it; none if empty.
        is_gated: whether the terms are not accepted.
        moved_to: another name, to which requests are redirected.
    """

    commits: list[dict[str, bytes]] = field(default_factory=list)
    token: str = ''
    is_gated: bool = False
    moved_to: str = ''


@dataclass
class HubServer:
    """A hub while it runs.

    Attributes:
        address: of the server, as HF_ENDPOINT has it.
        repositories: by `datasets/OWNER/NAME` and `models/OWNER/NAME`.
        asked: of each request its method and path, and the header Range.
        failures: statuses that the next requests get whose path has a part, for one after another.
        cuts: after this many bytes of a file the connection is closed, for one answer after another.
    """

    address: str
    repositories: dict[str, Repository]
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    failures: dict[str, list[int]] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)

    def paths(self, part: str, method: str = 'GET') -> list[str]:
        """Returns the paths with a part that were asked for."""
        return [path for asked, path, _ in self.asked if asked == method and part in path]


@contextlib.contextmanager
def hub_server(repositories: dict[str, Repository]) -> Iterator[HubServer]:
    """Serves repositories while the block runs; they may be changed in it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _Answer(self, running).give()

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that goes away is no error

    server = Server(('127.0.0.1', 0), Handler)
    running = HubServer(f'http://127.0.0.1:{server.server_address[1]}', repositories)
    thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Answer:
    """The answer to one request."""

    def __init__(self, handler: http.server.BaseHTTPRequestHandler, hub: HubServer):
        self.handler, self.hub = handler, hub
        url = urllib.parse.urlsplit(handler.path)
        self.words = [urllib.parse.unquote(word) for word in url.path.strip('/').split('/')]
        self.query = dict(urllib.parse.parse_qsl(url.query))
        hub.asked.append((handler.command, handler.path, handler.headers.get('Range')))

    def give(self) -> None:
        for part, statuses in self.hub.failures.items():
            if part in self.handler.path and statuses:
                self.send(statuses.pop(0))
                return
        if self.words[0] == 'store':
            self.send_file(self.hub.repositories, self.words[1:])
            return
        is_api = self.words[0] == 'api'
        words = self.words[is_api:]
        kind = words.pop(0) if words[0] in ('datasets', 'models') else 'models'
        name = f'{kind}/{"/".join(words[:2])}'
        repository, rest = self.hub.repositories.get(name), words[2:]
        if repository is None:
            self.send(401)  # as the Hub says to who has no token, so that nobody learns of names
        elif repository.moved_to:
            path = self.handler.path.replace('/'.join(words[:2]), repository.moved_to)
            self.send(307, Location=path)
        elif (
            repository.token
            and self.handler.headers.get('Authorization') != f'Bearer {repository.token}'
        ):
            self.send(401, **{'X-Error-Code': 'RepoNotFound'})
        elif repository.is_gated and not is_api:
            self.send(403, **{'X-Error-Code': 'GatedRepo'})
        else:
            action, revision, *path = [*rest, 'main'] if rest else ['revision', 'main']
            commits = {commit_of(number): files for number, files in enumerate(repository.commits)}
            commit = list(commits)[-1] if revision == 'main' else revision
            if commit not in commits:
                self.send(404, **{'X-Error-Code': 'RevisionNotFound'})
            elif action == 'revision':
                self.send(200, json.dumps({'id': '/'.join(words[:2]), 'sha': commit}).encode())
            elif action == 'tree':
                self.send_tree(commits[commit], '/'.join(path[:-1]))
            else:
                self.send_place(name, commit, commits[commit], '/'.join(path[:-1]))

    def send_tree(self, files: dict[str, bytes], folder: str) -> None:
        below = f'{folder}/' if folder else ''
        entries = {}
        for path, content in files.items():
            if not path.startswith(below):
                continue
            inner, _, more = path.removeprefix(below).partition('/')
            if more:
                entries[below + inner] = {'type': 'directory', 'size': 0}
            if not more or self.query.get('recursive') in ('True', 'true'):
                entries[path] = {'type': 'file', 'size': len(content)}
        if not entries:
            self.send(404, **{'X-Error-Code': 'EntryNotFound'})
            return
        listed = [{'path': path, 'oid': '0' * 40, **entries[path]} for path in sorted(entries)]
        start = int(self.query.get('cursor', 0))
        headers = {}
        if len(listed) > start + _PAGE:
            query = urllib.parse.urlencode({**self.query, 'cursor': start + _PAGE})
            path = self.handler.path.partition('?')[0]
            headers['Link'] = f'<{self.hub.address}{path}?{query}>; rel="next"'
        self.send(200, json.dumps(listed[start : start + _PAGE]).encode(), **headers)

    def send_place(self, name: str, commit: str, files: dict[str, bytes], path: str) -> None:
        if path not in files:
            self.send(404, **{'X-Error-Code': 'EntryNotFound', 'X-Repo-Commit': commit})
            return
        etag, size = f'"{hashlib.sha1(files[path]).hexdigest()}"', str(len(files[path]))
        headers = {'X-Repo-Commit': commit, 'ETag': etag}
        if path.endswith(_STORED):
            place = urllib.parse.quote(f'/store/{name}/{commit}/{path}')
            linked = {'X-Linked-Etag': etag, 'X-Linked-Size': size}
            store = self.hub.address.replace(
                '127.0.0.1', 'localhost'
            )  # the client tells hosts apart
            self.send(302, Location=store + place, **linked, **headers)
        else:
            self.send_content(files[path], **headers)

    def send_file(self, repositories: dict[str, Repository], words: list[str]) -> None:
        repository = repositories['/'.join(words[:3])]
        commits = {commit_of(number): files for number, files in enumerate(repository.commits)}
        self.send_content(commits[words[3]]['/'.join(words[4:])])

    def send_content(self, content: bytes, **headers: str) -> None:
        asked = self.handler.headers.get('Range')
        if asked and self.handler.command == 'GET':
            start = int(asked.removeprefix('bytes=').rstrip('-'))
            headers['Content-Range'] = f'bytes {start}-{len(content) - 1}/{len(content)}'
            self.send(206, content[start:], **headers)
        else:
            self.send(200, content, **headers)

    def send(self, status: int, content: bytes = b'', **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in {'Content-Length': str(len(content)), **headers}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        if self.handler.command == 'GET':
            is_file = 'resolve' in self.words or self.words[0] == 'store'
            cut = self.hub.cuts.pop(0) if self.hub.cuts and is_file and content else None
            self.handler.wfile.write(content[:cut])


def use_hub(address: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the client of this process use a server, a new cache, and no token."""
    forget_hub()
    connect_hub(address, monkeypatch)
    constants = {
        'HF_HUB_CACHE': str(cache / 'hub'),
        'HF_ASSETS_CACHE': str(cache / 'assets'),
        'HF_TOKEN_PATH': str(cache / 'token'),
    }
    set_hub_constants(constants, monkeypatch)
    monkeypatch.delenv('HF_TOKEN', raising=False)
    monkeypatch.setattr(
        time, 'sleep', lambda seconds: None
    )  # the client waits before it asks again


def connect_hub(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the client of this process ask another server."""
    template = f'{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}'
    constants = {'ENDPOINT': address, 'HUGGINGFACE_CO_URL_TEMPLATE': template}
    set_hub_constants(constants, monkeypatch)


def set_hub_constants(values: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does what variables of the environment do before the client is imported, in all its modules."""
    for name, module in list(sys.modules.items()):
        for constant, value in values.items():
            if name.startswith('huggingface_hub.') and constant in vars(module):
                monkeypatch.setattr(module, constant, value)


def forget_hub() -> None:
    """Forgets what another process would not know."""
    hub.forget_commits()
    hub.fetch_into(None)
    hub._paths.cache_clear()
    utils = sys.modules['huggingface_hub.utils']
    (utils.reset_sessions if hasattr(utils, 'reset_sessions') else utils.close_session)()
