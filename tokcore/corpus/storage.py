"""A file's stored bytes, and its decompressed text as a stream.

The first bytes tell the compression. gzip is inflated here member by member, bzip2 and xz are
Python's, zstd is the package zstandard. A file must end where a member or frame ends, and errors
name the byte; Beam reads a truncated gzip file without an error. Memory is bounded by the pieces,
and a file that unpacks to thousands of times its size is refused. A file that no longer has its
planned size is refused too, since its work items and its line index are about another text.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import os
import re
import typing
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import BinaryIO, Protocol

from tokcore.corpus.corpus import CorpusFile, OpenBinary
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    import zstandard

Compression = bool | str
"""False; True for gzip, as runs of earlier versions have it in their plans; else a name."""

BZIP2, XZ, ZSTD = 'bzip2', 'xz', 'zstd'

_HEAD_BYTES = 10
_MAGIC = {
    True: re.compile(rb'\x1f\x8b'),
    # What follows the level is the first block, or the end of an empty file: no text begins so.
    BZIP2: re.compile(rb'BZh[1-9](1AY&SY|\x17rE8P\x90)'),
    XZ: re.compile(rb'\xfd7zXZ\x00'),
    ZSTD: re.compile(rb'\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18'),
}
_SUFFIXES: dict[Compression, tuple[bytes, str]] = {
    True: (b'\x1f\x8b', '.gz'),
    BZIP2: (b'BZh', '.bz2'),
    XZ: (b'\xfd7zXZ\x00', '.xz'),
    ZSTD: (b'\x28\xb5\x2f\xfd', '.zst'),
}

_READ_BYTES = 4 << 10
"""At a time. What follows a stream is copied when that ends: files of many tiny streams stay linear."""

_FED_BYTES = 512
"""Of zstd at a time: a block of three bytes may unpack to 128 KiB, and all at once."""

_MOST_EMPTY_STREAMS = 100_000
"""One after the other, without any text: no tool writes such a file, and it takes time for nothing."""

_XZ_MEMORY = 1 << 30
_ZSTD_WINDOW = 1 << 27

MOST_RATIO = 10_000
"""Of the bytes of text to those stored, beyond which a file is refused; gzip does not reach it."""

_FREE_BYTES = 256 << 20
"""So much is never too much, whatever it came from."""

_LONG_RATIO = 2_000
_LONG_BYTES = 1 << 30
"""A text longer than this may be no more than `_LONG_RATIO` times what has been read so far: xz never
reaches `MOST_RATIO`, and of a large file that would be met after terabytes. Repeated lines, made for a
test, get beyond this ratio; a gigabyte of text that somebody wrote does not."""

_Failures = tuple[type[Exception], ...]

_GZIP_MAGIC = b'\x1f\x8b'

# zlib copies what follows a member, so small reads keep files of many tiny members linear; 32 KiB
# still inflate to about 100 KiB, enough to make the calls' overhead vanish.
_STORED_BYTES = 32 << 10

PIECE_BYTES = 1 << 20
"""The largest piece of text at a time: fits a processor's cache, and bounds what a tiny file that
inflates a thousandfold may hold."""


def compression_of(path: str, open_binary: OpenBinary) -> Compression:
    """Tells how a file is compressed, by bytes that no UTF-8 text begins with.

    Of a file too short to tell, only the name can say that it was cut off at once.

    Raises:
        InputError: the file cannot be opened.
    """
    with open_path(path, open_binary) as stream:
        head = read_up_to(stream, _HEAD_BYTES)
    for kind, magic in _MAGIC.items():
        if magic.match(head) and (head[:1] >= b'\x80' or kind != ZSTD or _is_zstd(path, head)):
            return kind
    for kind, (magic, suffix) in _SUFFIXES.items():
        if path.endswith(suffix) and magic.startswith(head[: len(magic)]):
            return kind
    return False


def unpacked_pieces(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the (decompressed) text of a file of its own in pieces, as `archive_reading.text_pieces`.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off,
            damaged, followed by something else, or unpacks to far more than it is.
    """
    if not file.compressed:
        return stored(file, open_binary)
    if file.compressed is True:
        return inflated(file, open_binary)
    return _bounded_by_reads(file, open_binary)


def compression_of_bytes(beginning: bytes) -> Compression:
    """Tells how bytes are compressed that begin as compressed ones do, and as no UTF-8 text does."""
    for kind, magic in _MAGIC.items():
        if magic.match(beginning) and (kind != ZSTD or _is_zstd('', beginning)):
            return kind
    return False


def unpacked_stream(file: CorpusFile, stream: BinaryIO, begin: int = 0) -> Iterator[bytes]:
    """Yields the text of a compressed file from its bytes, whatever these come from.

    It is as strict as `unpacked_pieces`, but sets no bound to the text. Other than of gzip, the first
    byte may be any of the file's.
    """
    if file.compressed is True:
        return inflated_stream(file, stream)
    return _unpacked(file, stream, begin)


def is_bomb(file: CorpusFile, text_bytes: int) -> bool:
    """Tells whether so much text is far too much for what a file stores."""
    return _too_much(file, text_bytes, file.size) is not None


def bounded(
    file: CorpusFile, pieces: Iterator[bytes], read_bytes: Callable[[], int] | None = None
) -> Iterator[bytes]:
    """Yields small pieces of a file's; raises InputError if they are far more than it stores.

    `read_bytes` tells how much of it has been read for them; without, all of it counts.
    """
    size = 0
    for piece in pieces:
        size += len(piece)
        if said := _too_much(file, size, read_bytes() if read_bytes else file.size):
            raise InputError(
                f'{file.path} unpacks to more than {said}; if that is right, unpack it first'
            )
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]


def _is_zstd(path: str, head: bytes) -> bool:
    # A skippable frame is all ASCII: the name must say so too.
    return head.startswith(b'\x28\xb5\x2f\xfd') or path.endswith('.zst')


def _bounded_by_reads(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    with open_stored(file, open_binary) as stream:
        counted = _CountedStream(stream)
        yield from bounded(file, _unpacked(file, counted), lambda: counted.bytes)


class _CountedStream:
    """Counts the bytes that are read of a stream."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self.bytes = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.bytes += len(data)
        return data


def _too_much(file: CorpusFile, text_bytes: int, read_bytes: int) -> str | None:
    """Says of what so much text is far too much; None if it is not."""
    if text_bytes > max(_FREE_BYTES, MOST_RATIO * file.size):
        return f'{MOST_RATIO:,} times its {file.size} bytes'
    if text_bytes > max(_LONG_BYTES, _LONG_RATIO * read_bytes):
        return f'{_LONG_RATIO:,} times its first {read_bytes} bytes'
    return None


class _Decoder(Protocol):
    """One stream or frame, as `bz2` and `lzma` have them."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _ZstdFrame:
    """A frame of zstd; data is fed by little, which bounds what comes out at once."""

    needs_input = True

    def __init__(self, decompressor: zstandard.ZstdDecompressor):
        self._frame = decompressor.decompressobj()
        self._left = b''

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._left

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        fed, self._left = (self._left + data)[:_FED_BYTES], (self._left + data)[_FED_BYTES:]
        found = self._frame.decompress(fed)
        self.needs_input = not self._left
        return found


def _kind(name: str) -> tuple[Callable[[], _Decoder], _Failures, bytes]:
    """Returns what decodes a stream, what that raises, and what begins one."""
    if name == BZIP2:
        return bz2.BZ2Decompressor, (OSError, ValueError), b'BZh'
    if name == XZ:
        return (
            lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY),
            (lzma.LZMAError,),
            b'\xfd7zXZ\x00',
        )
    import zstandard

    # One for all frames of a file: to make one takes longer than to decode a small frame.
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    return lambda: _ZstdFrame(decompressor), (zstandard.ZstdError,), b''


def _unpacked(file: CorpusFile, stream: BinaryIO, begin: int = 0) -> Iterator[bytes]:
    make, failures, magic = _kind(str(file.compressed))
    begun, pending = 0, b''  # how many streams have, and what of this one is not decoded yet
    empty = 0  # the latest streams that have no text
    position = begin  # of the first byte in `pending`
    while True:
        pending = pending or read_up_to(stream, _READ_BYTES)
        if begun and pending:
            padding = len(pending) - len(pending.lstrip(b'\0'))
            position, pending = position + padding, pending[padding:]
            if not pending:
                continue
        if not pending:
            if not begun:
                raise _cut_off(file, begin, begin)
            return
        pending += _rest_of_magic(stream, pending, magic)
        if not pending.startswith(magic):
            raise InputError(
                f'{file.path} has something else than {file.compressed} data at byte '
                f'{position}, after its last stream; remove what was appended, or get the file '
                'again'
            )
        decoder, start = make(), position
        position, pending, has_text = yield from _one_stream(
            file, stream, decoder, failures, (start, position, pending)
        )
        begun += 1
        empty = 0 if has_text else empty + 1
        if empty > _MOST_EMPTY_STREAMS:
            raise InputError(
                f'{file.path} has more than {_MOST_EMPTY_STREAMS:,} {file.compressed} streams without '
                f'any text before byte {position}, one after the other; pack it again'
            )


def _rest_of_magic(stream: BinaryIO, pending: bytes, magic: bytes) -> bytes:
    missing = len(magic) - len(pending)
    return read_up_to(stream, missing) if missing > 0 else b''


def _one_stream(
    file: CorpusFile,
    stream: BinaryIO,
    decoder: _Decoder,
    failures: _Failures,
    place: tuple[int, int, bytes],
) -> Generator[bytes, None, tuple[int, bytes, bool]]:
    """Yields the text of one stream.

    Returns the place behind it, what was read of the rest, and whether it has any text.
    """
    start, position, pending = place
    has_text = False
    while not decoder.eof:
        if not pending and getattr(decoder, 'needs_input', True):
            pending = read_up_to(stream, _READ_BYTES)
            if not pending:
                raise _cut_off(file, position, start)
        try:
            piece = decoder.decompress(pending, PIECE_BYTES)
        except failures as error:
            raise InputError(
                f'{file.path} is damaged within {len(pending) or _READ_BYTES} bytes after byte '
                f'{position}, in the {file.compressed} stream that begins at byte {start} '
                f'({error}); get the file again'
            ) from error
        position, pending = position + len(pending), b''
        if piece:
            has_text = True
            yield piece
    unused = decoder.unused_data
    return position - len(unused), unused, has_text


def _cut_off(file: CorpusFile, position: int, start: int) -> InputError:
    return InputError(
        f'{file.path} ends at byte {position}, inside the {file.compressed} stream that begins at '
        f'byte {start}: it was cut off; get the file again'
    )


def stored(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a plain file; raises InputError as `archive_reading.text_pieces`."""
    with open_stored(file, open_binary) as stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece


def inflated(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a gzip file; raises InputError as `archive_reading.text_pieces`."""
    with open_stored(file, open_binary) as stream:
        yield from inflated_stream(file, stream)


def inflated_stream(file: CorpusFile, stream: BinaryIO) -> Iterator[bytes]:
    """Yields the same from the bytes of a gzip file, whatever these come from."""
    position = 0  # of the first byte in `pending`
    pending = b''
    member_start = 0
    member = zlib.decompressobj(wbits=31)  # None between members
    while True:
        if not pending:
            pending = read_up_to(stream, _STORED_BYTES)
            if not pending:
                break
        if member is None:
            # Tapes and disk images pad a file with zero bytes, and `gzip` accepts that.
            padding = len(pending) - len(pending.lstrip(b'\0'))
            position += padding
            pending = pending[padding:]
            if not pending:
                continue
            if len(pending) < len(_GZIP_MAGIC):
                pending += read_up_to(stream, len(_GZIP_MAGIC) - len(pending))
            if pending[:2] != _GZIP_MAGIC:
                raise InputError(
                    f'{file.path} has something else than gzip data at byte {position}, after '
                    'its last gzip member; remove what was appended, or get the file again'
                )
            member = zlib.decompressobj(wbits=31)
            member_start = position
        try:
            piece = member.decompress(pending, PIECE_BYTES)
        except zlib.error as error:
            raise InputError(
                f'{file.path} is damaged within {len(pending)} bytes after byte {position}, in '
                f'the gzip member that begins at byte {member_start} ({error}); get the file '
                'again'
            ) from error
        rest = member.unused_data if member.eof else member.unconsumed_tail
        position += len(pending) - len(rest)
        pending = rest
        if member.eof:
            member = None
        if piece:
            yield piece
    if member is not None:
        raise InputError(
            f'{file.path} ends at byte {position}, inside the gzip member that begins at byte '
            f'{member_start}: it was cut off; get the file again'
        )


@contextlib.contextmanager
def open_path(path: str, open_binary: OpenBinary) -> Iterator[BinaryIO]:
    """Opens a path as it is stored; an `OSError` on opening or reading is an `InputError`."""
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
    """Opens a corpus file as it is stored, at its beginning.

    Raises:
      InputError: if it cannot be opened or read, or no longer has the size it was planned with.
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


def read_up_to(stream: BinaryIO, size: int) -> bytes:
    """Reads `size` bytes, or fewer only at the end of the file: remote files may read short."""
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
      InputError: if the file ends before.
    """
    stream.seek(start)
    data = read_up_to(stream, end - start)
    if len(data) < end - start:
        raise InputError(
            f'{file.path} ends at byte {start + len(data)} but had {file.size} bytes when the job '
            'was planned; run again when nothing writes to it any more'
        )
    return data
