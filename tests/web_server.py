"""A web server of one's own on 127.0.0.1, which answers as well or as badly as a test asks for."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Page:
    """What is at a path.

    Attributes:
        content: of the file.
        ranges: whether parts are sent to who asks for them.
        minds_if_range: whether all is sent where the file is not the one that is asked on for.
        etag: of the file; none if empty.
        modified: its time, as headers have it; none if empty.
        cuts: after this many bytes the connection is closed, for one answer after another.
        tells_length: whether the length is told.
        status: that is answered in place of the file.
        headers: more of these.
        silent: whether nothing is ever answered.
        stalls_after: this many bytes, after which nothing comes and the connection stays.
    """

    content: bytes = b''
    ranges: bool = True
    minds_if_range: bool = True
    etag: str = '"one"'
    modified: str = ''
    cuts: list[int] = field(default_factory=list)
    tells_length: bool = True
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    stalls_after: int | None = None


@dataclass
class WebServer:
    """A server while it runs.

    Attributes:
        address: before the path of each page.
        pages: by path.
        asked: of each request the path, and the headers.
    """

    address: str
    pages: dict[str, Page]
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def ranges(self, path: str) -> list[str | None]:
        """Returns what was asked for of a page, request after request; None for all of it."""
        return [headers.get('Range') for asked, headers in self.asked if asked == path]


@contextlib.contextmanager
def web_server(pages: dict[str, Page]) -> Iterator[WebServer]:
    """Serves pages while the block runs; they may be changed in it."""
    ended = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path
            running.asked.append((path, dict(self.headers)))
            page = pages.get(path, Page(status=404))
            if page.silent:
                ended.wait()
                return
            _answer(self, page)
            if page.stalls_after is not None:
                self.wfile.flush()
                ended.wait()

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that goes away is what some tests are about

    server = Server(('127.0.0.1', 0), Handler)
    running = WebServer(f'http://127.0.0.1:{server.server_address[1]}', pages)
    thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    try:
        yield running
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(handler: http.server.BaseHTTPRequestHandler, page: Page) -> None:
    if page.status != 200:
        _head(handler, page.status, {'Content-Length': '0', **page.headers})
        handler.wfile.write(page.content)
        return
    content, status = page.content, 200
    told = {'ETag': page.etag, 'Last-Modified': page.modified}
    asked = handler.headers.get('Range')
    known = handler.headers.get('If-Range')
    is_same = known in (None, page.etag, page.modified) or not page.minds_if_range
    if page.ranges and asked and is_same:
        start = int(asked.removeprefix('bytes=').removesuffix('-'))
        if start >= len(content):
            _head(handler, 416, {'Content-Range': f'bytes */{len(content)}', 'Content-Length': '0'})
            return
        status = 206
        told['Content-Range'] = f'bytes {start}-{len(content) - 1}/{len(content)}'
        content = content[start:]
    if page.tells_length:
        told['Content-Length'] = str(len(content))
    _head(handler, status, {**{name: each for name, each in told.items() if each}, **page.headers})
    handler.wfile.write(content[: page.cuts.pop(0) if page.cuts else page.stalls_after])


def _head(
    handler: http.server.BaseHTTPRequestHandler, status: int, headers: dict[str, str]
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
