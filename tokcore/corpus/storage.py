"""A file's stored bytes, and its decompressed text as a stream.

The first bytes show the compression. gzip, bzip2 and xz are decompressed by Python, stream by stream, and
zstd by the package zstandard. A file must end where a stream ends, and errors name the byte; Beam reads a
truncated gzip file without an error. Memory is bounded by the size of the
pieces, and a file that unpacks to thousands of times its size is refused. So is a file that no longer
has the size it was planned with, since its work items and line index are those of another text.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import os
import typing
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import BinaryIO, Protocol

from tokcore.corpus.contents import BZIP2, XZ, compression_name
from tokcore.corpus.corpus import CorpusFile, OpenBinary
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    import zstandard

FIRST_BYTES = 32
"""More than any compression needs to be known."""

_READ_BYTES = 4 << 10
"""The bytes read first of a stream. What follows a stream is copied when that ends; with small reads,
the time for a file of many tiny streams stays linear."""

_MOST_READ_BYTES = 32 << 10
"""The bytes read at a time of a long stream, at which the overhead of the calls vanishes."""

_ZSTD_BLOCKS = 8
"""The blocks decompressed at a time: each may unpack to 128 KiB, so that a piece has `PIECE_BYTES`, and
to read on takes no longer than with larger pieces."""

_ZSTD_INPUT_BYTES = 512
"""The bytes decompressed at a time where blocks are not counted: one of three bytes may unpack to
128 KiB."""

_ZSTD_HEADER_BYTES = 18
"""The most that the header of a frame takes."""

_MOST_EMPTY_STREAMS = 100_000
"""The limit for streams without text, one after another: no tool writes such a file, and reading it
takes time for nothing."""

_XZ_MEMORY = 1 << 30
_ZSTD_WINDOW = 1 << 27

_LIKELY_RATIO = 5
"""gzip compresses text three- to fourfold; a little more is a safe guess of the text's size."""

MOST_RATIO = 10_000
"""The ratio of text to stored bytes beyond which a file is refused; gzip cannot reach it."""

_FREE_BYTES = 256 << 20
"""A text of at most this size is allowed at any ratio."""

_LONG_RATIO = 2_000
_LONG_BYTES = 1 << 30
"""A longer text may have at most `_LONG_RATIO` times the bytes read so far. xz cannot reach `MOST_RATIO`,
and a large file would reach it only after terabytes. Lines repeated for a test exceed this ratio; a
gigabyte of text that somebody wrote does not."""

_Failures = tuple[type[Exception], ...]

PIECE_BYTES = 1 << 20
"""The largest piece of text: it fits in a processor's cache, and bounds the memory for a tiny file that
unpacks to a thousand times its size."""


class Readable(Protocol):
    """The part of a binary file that decompression needs."""

    def read(self, size: int, /) -> bytes: ...


def unpacked_pieces(file: CorpusFile, open_binary: OpenBinary) -> Generator[bytes, None, None]:
    """Yields the decompressed text of a file, not of a member of an archive, in pieces.

    `archive_reading.text_pieces` does so for both.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off,
            damaged, followed by something else, or unpacks to far more than its size.
    """
    with open_stored(file, open_binary) as stream:
        if not file.compressed:
            while piece := stream.read(PIECE_BYTES):
                yield piece
        else:
            yield from bounded(file, unpacked_stream(file, stream), stream.tell)


def likely_text_bytes(files: Iterable[CorpusFile]) -> int:
    """Returns about how many bytes of text files hold."""
    return sum(file.size * (_LIKELY_RATIO if file.compressed else 1) for file in files)


def bounded(
    file: CorpusFile,
    pieces: Iterator[bytes],
    read_bytes: Callable[[], int] | None = None,
    stored_bytes: int | None = None,
) -> Iterator[bytes]:
    """Yields pieces of at most `PIECE_BYTES`; raises InputError if they are too much for their file.

    `stored_bytes` is the size of what is stored, that of the file by default. `read_bytes` returns how
    much of it has been read for the pieces; all of it by default.
    """
    stored = file.size if stored_bytes is None else stored_bytes
    size = 0
    for piece in pieces:
        size += len(piece)
        if limit := exceeded_limit(stored, size, read_bytes() if read_bytes else stored):
            raise InputError(
                f'{file.path} unpacks to more than {limit}; if that is right, unpack it first'
            )
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]


def exceeded_limit(stored_bytes: int, text_bytes: int, read_bytes: int) -> str | None:
    """Returns the limit that a text exceeds, in words; None if it exceeds none."""
    if text_bytes > max(_FREE_BYTES, MOST_RATIO * stored_bytes):
        return f'{MOST_RATIO:,} times its {stored_bytes} bytes'
    if text_bytes > max(_LONG_BYTES, _LONG_RATIO * read_bytes):
        return f'{_LONG_RATIO:,} times its first {read_bytes} bytes'
    return None


class _Decompressor(Protocol):
    """A decompressor of one stream or frame, as in `bz2` and `lzma`."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipMember:
    """A decompressor of one member of gzip."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._member.decompress(self._member.unconsumed_tail + data, max_length)


class _ZstdFrame:
    """A decompressor of one frame of zstd, with inputs of few blocks, which bound its outputs."""

    def __init__(self, decompressor: zstandard.ZstdDecompressor):
        self._frame = decompressor.decompressobj()
        self._left = b''  # input that is not decompressed yet
        self._blocks: _ZstdBlocks | None = None
        self._has_begun = False

    @property
    def needs_input(self) -> bool:
        return not self._left

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._left

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        data = self._left + data
        if not self._has_begun:
            self._has_begun = True
            self._blocks = _ZstdBlocks.of(data)
        size = _ZSTD_INPUT_BYTES
        if self._blocks is not None:
            size = self._blocks.take(data) or size
        self._left = data[size:]
        return self._frame.decompress(data[:size])


class _ZstdBlocks:
    """Follows the blocks of a frame by their headers (RFC 8878, section 3.1.1)."""

    def __init__(self, header_bytes: int):
        self._before = header_bytes  # bytes before the next header of a block
        self._header = b''  # the first bytes of that header, which the last input ended with
        self._is_over = False

    @classmethod
    def of(cls, beginning: bytes) -> _ZstdBlocks | None:
        """Returns the blocks of a frame by its beginning; None if they cannot be followed."""
        import zstandard

        if len(beginning) < _ZSTD_HEADER_BYTES or beginning[:4] != b'\x28\xb5\x2f\xfd':
            return None
        try:
            return cls(zstandard.frame_header_size(beginning))
        except zstandard.ZstdError:
            return None

    def take(self, data: bytes) -> int:
        """Returns how much of the next bytes may be decompressed at once; 0 if no block is left."""
        for _ in range(_ZSTD_BLOCKS):
            if self._is_over or self._before >= len(data):
                break
            part = data[self._before : self._before + 3 - len(self._header)]
            self._header += part
            self._before += len(part)
            if len(self._header) < 3:
                break
            header = int.from_bytes(self._header, 'little')
            self._header = b''
            self._is_over = bool(header & 1)
            # A block of one byte, repeated, stores that byte alone.
            self._before += 1 if header >> 1 & 3 == 1 else header >> 3
        taken = min(self._before, len(data))
        self._before -= taken
        return taken


def _decompressors(name: str) -> tuple[Callable[[], _Decompressor], _Failures, bytes]:
    """Returns the constructor of a decompressor, its exceptions, and the first bytes of a stream."""
    if name == 'gzip':
        return _GzipMember, (zlib.error,), b'\x1f\x8b'
    if name == BZIP2:
        return bz2.BZ2Decompressor, (OSError, ValueError), b'BZh'
    if name == XZ:
        return (
            lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY),
            (lzma.LZMAError,),
            b'\xfd7zXZ\x00',
        )
    import zstandard

    # One for all frames of a file: constructing it takes longer than decompressing a small frame.
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    return lambda: _ZstdFrame(decompressor), (zstandard.ZstdError,), b''


def unpacked_stream(file: CorpusFile, stream: Readable, begin: int = 0) -> Iterator[bytes]:
    """Yields the text of a compressed file, whose bytes come from any stream.

    Checks as `unpacked_pieces`, but sets no limit to the text. `begin` is the position in the file of
    the stream's first byte, for errors.
    """
    name = compression_name(file.compressed)
    make, failures, magic = _decompressors(name)
    streams, pending = 0, b''  # the streams so far, and the bytes read but not decompressed
    empty = 0  # the number of latest streams without text
    position = begin  # of the first byte in `pending`
    while True:
        pending = pending or read_up_to(stream, _READ_BYTES)
        if streams and pending:
            padding = len(pending) - len(pending.lstrip(b'\0'))
            position, pending = position + padding, pending[padding:]
            if not pending:
                continue
        if not pending:
            if not streams:
                raise _cut_off(file, begin, begin)
            return
        if len(pending) < len(magic):
            pending += read_up_to(stream, len(magic) - len(pending))
        if streams and not pending.startswith(magic):
            raise InputError(
                f'{file.path} has something else than {name} data at byte {position}, after its last '
                'stream; remove what was appended, or get the file again'
            )
        position, pending, has_text = yield from _one_stream(
            file, stream, make(), failures, position, pending
        )
        streams += 1
        empty = 0 if has_text else empty + 1
        if empty > _MOST_EMPTY_STREAMS:
            raise InputError(
                f'{file.path} has more than {_MOST_EMPTY_STREAMS:,} {name} streams without '
                f'any text before byte {position}, one after the other; pack it again'
            )


def _one_stream(
    file: CorpusFile,
    stream: Readable,
    decompressor: _Decompressor,
    failures: _Failures,
    start: int,
    pending: bytes,
) -> Generator[bytes, None, tuple[int, bytes, bool]]:
    """Yields the text of the stream that begins at `start`, with the bytes of `pending`.

    Returns the position after it, the bytes read from there on, and whether it has any text.
    """
    position = latest = start  # of the next bytes, and of the latest ones
    has_text = False
    size = _READ_BYTES
    while not decompressor.eof:
        if not pending and decompressor.needs_input:
            pending = read_up_to(stream, size)
            size = min(2 * size, _MOST_READ_BYTES)
            if not pending:
                raise _cut_off(file, position, start)
        if pending:
            latest, position = position, position + len(pending)
        try:
            piece = decompressor.decompress(pending, PIECE_BYTES)
        except failures as error:
            raise InputError(
                f'{file.path} is damaged within {position - latest} bytes after byte {latest}, in the '
                f'{compression_name(file.compressed)} stream that begins at byte {start} ({error}); get '
                'the file again'
            ) from error
        pending = b''
        if piece:
            has_text = True
            yield piece
    unused = decompressor.unused_data
    return position - len(unused), unused, has_text


def _cut_off(file: CorpusFile, position: int, start: int) -> InputError:
    return InputError(
        f'{file.path} ends at byte {position}, inside the {compression_name(file.compressed)} stream that '
        f'begins at byte {start}: it was cut off; get the file again'
    )


@contextlib.contextmanager
def open_path(path: str, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    """Opens a path; raises InputError for an `OSError` in opening it, or within the context."""
    try:
        with open_binary(path) as stream:
            yield stream
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise InputError(
            f'{path} cannot be read ({reason}); check the path and the permissions'
        ) from error


@contextlib.contextmanager
def open_stored(file: CorpusFile, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    """Opens the stored bytes of a corpus file, at their beginning.

    Raises:
        InputError: it cannot be opened or read, or no longer has the size it was planned with.
    """
    with open_path(file.path, open_binary) as stream:
        stream.seek(0, os.SEEK_END)
        size = stream.tell()
        if size != file.size:
            raise InputError(
                f'{file.path} has {size} bytes but had {file.size} when the job was planned; '
                'run again when nothing writes to it any more'
            )
        stream.seek(0)
        yield stream


def read_up_to(stream: Readable, size: int) -> bytes:
    """Reads `size` bytes, or fewer only at the end of the file; a remote file may return fewer."""
    data = stream.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]
    missing = size - len(data)
    while missing and (data := stream.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b''.join(parts)


def read_range(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> bytes:
    """Reads bytes [start, end) of a corpus file, all of them.

    Raises:
        InputError: the file ends before.
    """
    stream.seek(start)
    data = read_up_to(stream, end - start)
    if len(data) < end - start:
        raise InputError(
            f'{file.path} ends at byte {start + len(data)} but had {file.size} bytes when the job '
            'was planned; run again when nothing writes to it any more'
        )
    return data


def read_pieces(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> Iterator[bytes]:
    """Yields bytes [start, end) of a corpus file in pieces; raises InputError as `read_range`."""
    for first in range(start, end, PIECE_BYTES):
        yield read_range(stream, file, first, min(first + PIECE_BYTES, end))
