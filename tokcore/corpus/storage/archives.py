"""Members of archives, `texts.tgz!news/a.en`: listed, and read as a stream from the beginning.

tar is Python's, over any compression that files may have; zip is Python's too. Nothing is unpacked
to disk, so a member's name is never a path; each reading of a member reads a tar up to it.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import fnmatch
import io
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from tokcore.corpus.dataset import CorpusFile, OpenBinary
from tokcore.corpus.storage.compression import (
    bounded,
    compression_of,
    compression_of_bytes,
    unpacked_pieces,
    unpacked_stream,
)
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.corpus.storage.stored_file import open_stored, read_up_to
from tokcore.errors import InputError

ARCHIVE = 'archive'
"""How a member of one is said to be compressed, whatever that is compressed with."""

_NAME = re.compile(
    r'(?P<archive>.*?\.(?:tar|tgz|tbz2?|txz|tzst|tar\.(?:gz|bz2|xz|zst)|zip))!(?P<member>.+)',
    re.DOTALL | re.IGNORECASE,
)

_MOST_HEADER_BYTES = 16 << 20
"""Of a member of a tar, with its long name and whatever else there is: Python holds all of it."""

_ZIP_END_BYTES = 22
"""Of what ends a zip, without its comment."""

_FAILURES = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
    EOFError, OSError, NotImplementedError, RuntimeError, ValueError, KeyError, OverflowError,
)  # fmt: skip


def archive_and_member(path: str) -> tuple[str, str] | None:
    """Returns the archive and the member, or the pattern of members, that a path names, if any."""
    match = _NAME.fullmatch(path)
    return (match['archive'], match['member']) if match else None


def member_names(archive: CorpusFile, pattern: str, open_binary: OpenBinary) -> list[str]:
    """Returns the names of an archive's files that a pattern means, in order.

    A name that is a member's stands for that one, whatever is in it.

    Raises:
        InputError: the archive cannot be read or is damaged, has no such file, or several of one
            name, or one whose name is not UTF-8.
    """
    counts = collections.Counter(name for name, _ in _members(archive, open_binary))
    names = sorted(counts, key=lambda name: name.encode('utf-8', 'surrogateescape'))
    found = [pattern] if pattern in counts else fnmatch.filter(names, pattern)
    if not found:
        there = ', '.join(map(_told, names[:10])) or 'none'
        raise InputError(f'{archive.path} has no file {pattern!r} in it; there are {there}')
    for name in found:
        if counts[name] > 1:
            raise InputError(
                f'{archive.path} has several files {name!r} in it; pack it again with one of them'
            )
        if any('\ud800' <= each < '\ue000' for each in name):
            raise InputError(
                f'{archive.path} has a file whose name is not UTF-8, {name!a}; choose others, or '
                'pack it under another name'
            )
    return found


def _told(name: str) -> str:
    return name if name.isprintable() else repr(name)


def member_pieces(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a member in pieces; raises InputError as `corpus_text.text_pieces`."""
    path, wanted = archive_and_member(file.path)
    archive = CorpusFile(path, path, file.size, compression_of(path, open_binary))
    return bounded(file, _pieces_of(file, archive, wanted, open_binary))


def _pieces_of(
    file: CorpusFile, archive: CorpusFile, wanted: str, open_binary: OpenBinary
) -> Iterator[bytes]:
    for name, stream in _members(archive, open_binary, wanted):
        if name != wanted:
            continue
        with _named(archive):
            piece = read_up_to(stream, PIECE_BYTES)
        if kind := compression_of_bytes(piece):
            packed = dataclasses.replace(file, compressed=kind)
            yield from unpacked_stream(packed, _Rest(piece, stream, archive))
            return
        while piece:
            yield piece
            with _named(archive):
                piece = read_up_to(stream, PIECE_BYTES)
        return
    raise InputError(f'{archive.path} has no file {wanted!r} in it any more; run again')


def _members(
    archive: CorpusFile, open_binary: OpenBinary, wanted: str | None = None
) -> Iterator[tuple[str, BinaryIO]]:
    """Yields the files of an archive, the one that is wanted with its bytes.

    These are good until the next one is asked for.
    """
    if archive.path.lower().endswith('.zip'):
        yield from _zip_members(archive, open_binary, wanted)
        return
    reader = _PieceReader(unpacked_pieces(archive, open_binary))
    stream = io.BufferedReader(reader, PIECE_BYTES)
    with contextlib.ExitStack() as stack:
        with _named(archive), reader.at_most(_MOST_HEADER_BYTES):
            tar = stack.enter_context(
                tarfile.open(fileobj=stream, mode='r|', tarinfo=_Member, encoding='utf-8')
            )
        while True:
            with _named(archive):
                with reader.at_most(_MOST_HEADER_BYTES):
                    member = tar.next()
                found = tar.extractfile(member) if member is not None and member.isreg() else None
            if member is None:
                break
            if found is not None:
                yield member.name, found
            tar.members.clear()  # which holds all of them otherwise, however many there are
            with _named(archive):
                if tar.fileobj.tell() < tar.offset:
                    tar.fileobj.seek(tar.offset - 1)  # so that `next` reads a header alone
        with _named(archive):
            while rest := tar.fileobj.read(PIECE_BYTES):
                if rest.strip(b'\0'):
                    raise tarfile.ReadError(f'something follows its end at byte {tar.offset}')


class _Member(tarfile.TarInfo):
    """A member of a tar, which ends where it says so: Python takes any wrong header for its end."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> tarfile.TarInfo:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f'{error} at byte {tar.offset}') from error


def _zip_members(
    archive: CorpusFile, open_binary: OpenBinary, wanted: str | None
) -> Iterator[tuple[str, BinaryIO]]:
    with open_stored(archive, open_binary) as stream, contextlib.ExitStack() as stack:
        with _named(archive):
            opened = stack.enter_context(zipfile.ZipFile(stream))
            _check_ends(stream, opened, archive.size)
        for member in opened.infolist():
            # A name may be empty, which `is_dir` does not expect.
            if member.filename.endswith('/') or stat.S_ISLNK(member.external_attr >> 16):
                continue
            found = io.BytesIO()
            if member.filename == wanted:
                if member.flag_bits & 1:
                    raise InputError(f'{archive.path}!{wanted} is encrypted; unpack it')
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    # Python unpacks others without a bound of what comes out at once.
                    raise InputError(
                        f'{archive.path}!{wanted} is packed by another method than deflate; unpack '
                        'it, or pack it so'
                    )
                with _named(archive):
                    found = stack.enter_context(opened.open(member))
            yield member.filename, found


def _check_ends(stream: BinaryIO, opened: zipfile.ZipFile, size: int) -> None:
    """Raises BadZipFile where something stands before or behind a zip, which Python passes over."""
    stream.seek(max(0, size - _ZIP_END_BYTES - len(opened.comment)))
    if read_up_to(stream, 4) != b'PK\x05\x06':
        raise zipfile.BadZipFile('something follows its end')
    if min((each.header_offset for each in opened.infolist()), default=0) > 0:
        raise zipfile.BadZipFile('something stands before its first file')


@contextlib.contextmanager
def _named(archive: CorpusFile) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _FAILURES as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, and not of what decompresses
        reason = ' '.join(str(error).split())[:200] or type(error).__name__
        raise InputError(f'{archive.path} is damaged or no archive ({reason}); get it again') from error


class _Rest:
    """The bytes of a member of which the first piece has been read."""

    def __init__(self, piece: bytes, stream: BinaryIO, archive: CorpusFile):
        self._piece, self._stream, self._archive = piece, stream, archive

    def read(self, size: int) -> bytes:
        if self._piece:
            found, self._piece = self._piece[:size], self._piece[size:]
            return found
        with _named(self._archive):
            return self._stream.read(size)


class _PieceReader(io.RawIOBase):
    """A stream of pieces of bytes as a file that can only be read on."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._left = b''
        self._most: int | None = None  # bytes that may still be read; None: any number

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        self._left = self._left or next(self._pieces, b'')
        taken = self._left[: len(buffer)]
        buffer[: len(taken)] = taken
        self._left = self._left[len(taken) :]
        if self._most is not None:
            self._most -= len(taken)
            if self._most < 0:
                raise tarfile.ReadError('a header that is far too large')
        return len(taken)

    @contextlib.contextmanager
    def at_most(self, size: int) -> Iterator[None]:
        """Raises tarfile.ReadError where more is read within."""
        self._most = size
        yield
        self._most = None
