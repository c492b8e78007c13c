"""Lists the members of archives, as `texts.tgz!news/a.en`, and opens those of zips.

Python's tarfile reads tars in any compression that files may have; Python's zipfile reads zips. No
member is unpacked to a file of its name, so a name in an archive is never used as a path.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import fnmatch
import io
import itertools
import lzma
import re
import stat
import struct
import tarfile
import typing
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, BinaryIO, NamedTuple

from tokcore.corpus.contents import (
    HEAD_BYTES,
    TAR,
    ZIP,
    ZIP_ARCHIVE,
    Look,
    archive_by_name,
)
from tokcore.corpus.corpus import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.looks import Looks
from tokcore.corpus.seekable import may_have_index, part_ends
from tokcore.corpus.storage import PIECE_BYTES, open_stored, read_up_to, unpacked_pieces
from tokcore.errors import InputError

if typing.TYPE_CHECKING:
    from typing_extensions import Self

_MEMBER_MARK = re.compile(r'(?<!\[)!')
"""What stands before a member; `[!` begins a part of a pattern."""

_MOST_HEADER_BYTES = 16 << 20
"""The largest header of a member of a tar, with its long name and so on: Python holds all of it."""

_MOST_SHOWN = 10
"""The members that a sentence lists."""

_MOST_LISTED_PIECES = 64
"""The pieces of a tar, up to a megabyte each, that are read to list some members for a sentence."""

_FILE_HEADER = re.compile(
    rb'.{100}(?:[0-7]{7}\0){3}(?:[0-7]{11}\0){2}[0-7]{6}\0 0\0{100}ustar(?:\x0000|  \0)'
    rb'.{64}(?:[0-7]{7}\0|\0{8}){2}\0{167}',
    re.DOTALL,
)
"""The header of a regular file as tar programs write most of them: the name (100 bytes), mode and
owner, size (12) and time, checksum (8), and no prefix of the name."""

_ZIP_END_BYTES = 22
"""The size of the record at the end of a zip, without its comment."""

_FAILURES = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
    EOFError, OSError, NotImplementedError, RuntimeError, ValueError, KeyError, OverflowError,
)  # fmt: skip


def archive_and_member(path: str, is_file: Callable[[str], bool]) -> tuple[str, str] | None:
    """Returns the archive and the member, or the pattern of members, that a path names, if any.

    The archive is the shortest part before a `!` that is a file, as `is_file` says; what it holds does
    not matter here.
    """
    for mark in _MEMBER_MARK.finditer(path):
        archive, member = path[: mark.start()], path[mark.end() :]
        if archive and member and is_file(archive):
            return archive, member
    return None


class ArchiveLists:
    """Lists the members of archives; each archive is read once.

    Args:
        open_binary: opens them.

    Attributes:
        looks: looks at files, of which some are archives.
    """

    def __init__(self, open_binary: OpenBinary):
        self._open_binary = open_binary
        self._entries: dict[CorpusFile, list[Entry]] = {}
        self.looks = Looks(open_binary)

    def find(self, archive: CorpusFile, pattern: str) -> list[tuple[MemberFile, Look]]:
        """Returns the files of an archive that match a pattern, in the order of their names.

        The exact name of a member matches that one, even if it has wildcards.

        Raises:
            InputError: the archive cannot be read or is damaged, no file matches, two files have one
                name, or a file has a name that is not UTF-8 or cannot be unpacked here.
        """
        if archive not in self._entries:
            self._entries[archive] = (
                _zip_entries(archive, self._open_binary)
                if is_zip(archive)
                else tar_entries(archive, self._open_binary, self.looks)
            )
        entries = self._entries[archive]
        names = _matching_names(archive, [entry.name for entry in entries], pattern)
        by_name = {entry.name: entry for entry in entries}
        chosen = [by_name[name] for name in names]
        if is_zip(archive):
            looks = _zip_looks(archive, chosen, self._open_binary, self.looks)
        else:
            looks = [entry.look for entry in chosen]
        return [
            (
                MemberFile(
                    f'{archive.path}!{entry.name}',
                    f'{archive.name}!{entry.name}',
                    entry.size,
                    look.compression,
                    archive,
                    entry.start,
                    entry.access_point,
                    entry.extents,
                ),
                look,
            )
            for entry, look in zip(chosen, looks, strict=True)
        ]


def archive_file(path: str, name: str, size: int, seen: Look) -> CorpusFile | None:
    """Returns a file whose members can be read; None if its content is something else.

    The name decides if the content does not, as of an archive that was cut off.
    """
    compression, content = seen.compression, seen.content
    if content is None:
        content = archive_by_name(path)
        compression = ZIP if content == ZIP_ARCHIVE else compression
    if compression == ZIP or content == TAR:
        return CorpusFile(path, name, size, compression)
    return None


def some_members(archive: CorpusFile, open_binary: OpenBinary) -> list[str]:
    """Returns the names of the first members of an archive, for a sentence; the last may be `…`."""
    if is_zip(archive):
        names = [entry.name for entry in _zip_entries(archive, open_binary)]
    else:
        names = []
        pieces = itertools.islice(unpacked_pieces(archive, open_binary), _MOST_LISTED_PIECES)
        with contextlib.suppress(InputError):  # it ends within the pieces, or is damaged
            for entry in _tar_entries(archive, pieces, [0], Looks(open_binary)):
                names.append(entry.name)
                if len(names) > _MOST_SHOWN:
                    break
    shown = [_shown(name) for name in names[:_MOST_SHOWN]]
    return [*shown, '…'] if len(names) > _MOST_SHOWN else shown


def is_zip(archive: CorpusFile) -> bool:
    """Returns whether an archive is a zip; all others are tars."""
    return archive.compressed == ZIP


@contextlib.contextmanager
def opened_zip(archive: CorpusFile, open_binary: OpenBinary) -> Iterator[zipfile.ZipFile]:
    """Opens a zip; raises InputError if it is damaged, or if there are bytes before or after it."""
    with open_stored(archive, open_binary) as stream, contextlib.ExitStack() as stack:
        with naming(archive):
            opened = stack.enter_context(zipfile.ZipFile(stream))
            _check_ends(stream, opened, archive.size)
        yield opened


def open_zip_member(archive: CorpusFile, opened: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Opens a member of a zip.

    Raises:
        InputError: it is encrypted, packed by a method whose output cannot be bounded, or damaged.
    """
    with naming(archive):
        member = opened.getinfo(name)
        if member.flag_bits & 1:
            raise InputError(f'{archive.path}!{name} is encrypted; unpack it')
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # For other methods Python has no limit to the output of one call.
            raise InputError(
                f'{archive.path}!{name} is packed by another method than deflate; unpack it, or '
                'pack it so'
            )
        return opened.open(member)


@contextlib.contextmanager
def naming(archive: CorpusFile) -> Iterator[None]:
    """Raises InputError, with the archive's name, for the errors of Python's tarfile and zipfile."""
    try:
        yield
    except _FAILURES as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # from the operating system, not from decompression
        reason = ' '.join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f'{archive.path} is damaged or not an archive ({reason}); get it again'
        ) from error


class Entry(NamedTuple):
    """The attributes of a `MemberFile` that its archive records; of a zip without the look."""

    name: str
    size: int
    start: int
    access_point: int
    look: Look = Look()
    extents: tuple[tuple[int, int], ...] = ()


def _matching_names(archive: CorpusFile, members: list[str], pattern: str) -> list[str]:
    counts = collections.Counter(members)
    names = sorted(counts, key=lambda name: name.encode('utf-8', 'surrogateescape'))
    chosen = [pattern] if pattern in counts else fnmatch.filter(names, pattern)
    if not chosen:
        some = ', '.join(map(_shown, names[:10])) or 'none'
        raise InputError(f'{archive.path} has no file {pattern!r} in it; there are {some}')
    for name in chosen:
        if counts[name] > 1:
            raise InputError(
                f'{archive.path} has several files {name!r} in it; pack it again with one of them'
            )
        if not name.isascii() and any('\ud800' <= character < '\ue000' for character in name):
            raise InputError(
                f'{archive.path} has a file whose name is not UTF-8, {name!a}; choose others, or '
                'pack it under another name'
            )
    return chosen


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)


def tar_entries(archive: CorpusFile, open_binary: OpenBinary, looks: Looks) -> list[Entry]:
    """Lists a tar by reading all of it; `extents` and so on are as the headers say."""
    ends = part_ends(archive, open_binary) if may_have_index(archive) else ()
    pieces = unpacked_pieces(archive, open_binary)
    return list(_tar_entries(archive, pieces, [0, *ends[:-1]], looks))


def _tar_entries(
    archive: CorpusFile,
    pieces: Iterator[bytes],
    part_starts: Sequence[int],
    looks: Looks,
) -> Iterator[Entry]:
    text = TextOfPieces(pieces)
    with naming(archive), contextlib.ExitStack() as stack:
        with text.at_most(_MOST_HEADER_BYTES):
            file: Any = text  # it has all of a file that is needed
            tar: Any = stack.enter_context(  # some of its attributes have no types
                tarfile.open(fileobj=file, mode='r:', tarinfo=_Member, encoding='utf-8')
            )
        while True:
            sparse: Any = None
            plain = None
            if tar.firstmember is None and not tar.pax_headers and text.tell() == tar.offset:
                plain = _plain_file(text.ahead(tarfile.BLOCKSIZE))
            if plain is not None:
                name, size = plain
                start = tar.offset + tarfile.BLOCKSIZE
                tar.offset = start + -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
            else:
                with text.at_most(_MOST_HEADER_BYTES):
                    member = tar.next()
                if member is None:
                    break
                tar.members.clear()  # tarfile would keep all of them in memory
                if not member.isreg():
                    text.seek(max(text.tell(), tar.offset))
                    continue
                name, size, start = member.name, member.size, member.offset_data
                sparse = member.sparse if member.issparse() else None
            access_point = start
            if archive.compressed:
                access_point = part_starts[bisect.bisect_right(part_starts, start) - 1]
            if sparse:
                beginning = tar.extractfile(member).read(HEAD_BYTES)
            else:
                text.seek(start)
                beginning = text.read(min(HEAD_BYTES, size))
            look = looks.at_stream(name, io.BytesIO(beginning))
            yield Entry(name, size, start, access_point, look, tuple(sparse or ()))
            text.seek(max(text.tell(), tar.offset))
        while rest := text.read(PIECE_BYTES):
            if rest.strip(b'\0'):
                raise tarfile.ReadError(f'something follows its end at byte {tar.offset}')


def _plain_file(header: bytes) -> tuple[str, int] | None:
    """Returns name and size of a regular file by its header; None if tarfile is to read it.

    Of small files, tarfile takes longer for the header than all else here.
    """
    if not _FILE_HEADER.fullmatch(header):
        return None
    if int(header[148:154], 8) != 256 + sum(header) - sum(header[148:156]):
        return None
    name = header[:100].partition(b'\0')[0].decode('utf-8', 'surrogateescape')
    return name, int(header[124:135], 8)


class TextOfPieces:
    """Pieces of a text as a file that goes forward only; what is passed over is not copied."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._piece, self._used = b'', 0  # the latest piece, and how much of it was passed
        self._position = 0
        self._most: int | None = None  # bytes that may still be read; None: any number

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        if position < self._position:
            raise tarfile.StreamError('a header that leads back')
        while self._position < position:
            if not self._pass(position - self._position):
                raise tarfile.ReadError('unexpected end of data')

    def ahead(self, size: int) -> bytes:
        """Returns the next bytes without passing over them; fewer where a piece ends."""
        if self._used == len(self._piece):
            self._piece, self._used = next(self._pieces, b''), 0
        return self._piece[self._used : self._used + size]

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes; fewer than `size` only at the end."""
        parts = []
        while size and (passed := self._pass(size)):
            if self._most is not None:
                self._most -= passed
                if self._most < 0:
                    raise tarfile.ReadError('a header that is far too large')
            parts.append(self._piece[self._used - passed : self._used])
            size -= passed
        return parts[0] if len(parts) == 1 else b''.join(parts)

    def _pass(self, most: int) -> int:
        """Passes over bytes of one piece; returns how many, 0 at the end."""
        if self._used == len(self._piece):
            self._piece, self._used = next(self._pieces, b''), 0
        passed = min(most, len(self._piece) - self._used)
        self._used += passed
        self._position += passed
        return passed

    @contextlib.contextmanager
    def at_most(self, size: int) -> Iterator[None]:
        """Raises tarfile.ReadError if more bytes are read within the context."""
        self._most = size
        yield
        self._most = None


class _Member(tarfile.TarInfo):
    """Raises ReadError at a damaged header, which tarfile takes for the end of the tar."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            member = super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # not in the stubs
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f'{error} at byte {tar.offset}') from error
        extents: Any = member.sparse if member.issparse() else None
        if min(member.size, *(number for extent in extents or () for number in extent), 0) < 0:
            raise tarfile.ReadError(f'a negative size in the header before byte {tar.offset}')
        return member


def _zip_entries(archive: CorpusFile, open_binary: OpenBinary) -> list[Entry]:
    with opened_zip(archive, open_binary) as opened:
        return [
            Entry(info.filename, info.file_size, info.header_offset, info.header_offset)
            for info in opened.infolist()
            # `is_dir` fails at an empty name.
            if not info.filename.endswith('/') and not stat.S_ISLNK(info.external_attr >> 16)
        ]


def _zip_looks(
    archive: CorpusFile, chosen: list[Entry], open_binary: OpenBinary, looks: Looks
) -> list[Look]:
    found = []
    with opened_zip(archive, open_binary) as opened:
        for entry in chosen:
            with open_zip_member(archive, opened, entry.name) as stream, naming(archive):
                found.append(looks.at_stream(entry.name, stream, is_packed=True))
    return found


def _check_ends(stream: BinaryIO, opened: zipfile.ZipFile, size: int) -> None:
    """Raises BadZipFile if there are bytes before or after the zip, which zipfile ignores."""
    stream.seek(max(0, size - _ZIP_END_BYTES - len(opened.comment)))
    if read_up_to(stream, 4) != b'PK\x05\x06':
        raise zipfile.BadZipFile('something follows its end')
    if min((info.header_offset for info in opened.infolist()), default=0) > 0:
        raise zipfile.BadZipFile('something precedes its first file')
