"""Members of archives, `texts.tgz!news/a.en`: listed, and opened as streams.

tar is Python's, over any compression that files may have; zip is Python's too. Nothing is unpacked
to disk, so a member's name is never a path.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
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
from dataclasses import dataclass
from typing import BinaryIO

from tokcore.corpus.corpus import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.seekable import may_have_index, part_ends
from tokcore.corpus.storage import (
    PIECE_BYTES,
    Compression,
    compression_of_bytes,
    open_stored,
    read_up_to,
    unpacked_pieces,
)
from tokcore.errors import InputError

_NAME = re.compile(
    r'(?P<archive>.*?\.(?:tar|tgz|tbz2?|txz|tzst|tar\.(?:gz|bz2|xz|zst)|zip))!(?P<member>.+)',
    re.DOTALL | re.IGNORECASE,
)

_MOST_HEADER_BYTES = 16 << 20
"""Of a member of a tar, with its long name and whatever else there is: Python holds all of it."""

_BEGINNING_BYTES = 16
"""Of a member, which tell how it is compressed."""

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


class ArchiveLists:
    """The members of archives, each of which is read once, however often it is asked about."""

    def __init__(self, open_binary: OpenBinary):
        self._open_binary = open_binary
        self._entries: dict[CorpusFile, list[_Entry]] = {}

    def find(self, archive: CorpusFile, pattern: str) -> list[MemberFile]:
        """Returns the files of an archive that a pattern means, in the order of their names.

        A name that is a member's stands for that one, whatever is in it.

        Raises:
            InputError: the archive cannot be read or is damaged, has no such file, or several of one
                name, or one whose name is not UTF-8, or that cannot be unpacked here.
        """
        entries = self._entries.get(archive)
        if entries is None:
            listing = _zip_entries if is_zip(archive) else _tar_entries
            entries = self._entries[archive] = listing(archive, self._open_binary)
        names = _chosen_names(archive, [each.name for each in entries], pattern)
        by_name = {each.name: each for each in entries}
        chosen = [by_name[name] for name in names]
        if is_zip(archive):
            kinds = _zip_compressions(archive, chosen, self._open_binary)
        else:
            kinds = [each.compressed for each in chosen]
        return [
            MemberFile(
                f'{archive.path}!{each.name}',
                f'{archive.name}!{each.name}',
                each.size,
                kind,
                archive,
                each.start,
                each.entry,
                each.extents,
            )
            for each, kind in zip(chosen, kinds, strict=True)
        ]


def is_zip(archive: CorpusFile) -> bool:
    """Tells whether an archive is a zip, by its name; all others are tars."""
    return archive.path.lower().endswith('.zip')


@contextlib.contextmanager
def opened_zip(archive: CorpusFile, open_binary: OpenBinary) -> Iterator[zipfile.ZipFile]:
    """Opens a zip; raises InputError where it is damaged, or something stands around it."""
    with open_stored(archive, open_binary) as stream, contextlib.ExitStack() as stack:
        with naming(archive):
            opened = stack.enter_context(zipfile.ZipFile(stream))
            _check_ends(stream, opened, archive.size)
        yield opened


def open_zip_member(archive: CorpusFile, opened: zipfile.ZipFile, name: str) -> BinaryIO:
    """Opens a member of a zip.

    Raises:
        InputError: it is encrypted, packed by a method that may unpack without bound, or damaged.
    """
    with naming(archive):
        member = opened.getinfo(name)
        if member.flag_bits & 1:
            raise InputError(f'{archive.path}!{name} is encrypted; unpack it')
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # Python unpacks others without a bound of what comes out at once.
            raise InputError(
                f'{archive.path}!{name} is packed by another method than deflate; unpack it, or '
                'pack it so'
            )
        return opened.open(member)


@contextlib.contextmanager
def naming(archive: CorpusFile) -> Iterator[None]:
    """Raises InputError, with the archive's name, for what Python refuses in an archive."""
    try:
        yield
    except InputError:
        raise
    except _FAILURES as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, and not of what decompresses
        reason = ' '.join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f'{archive.path} is damaged or no archive ({reason}); get it again'
        ) from error


@dataclass(frozen=True, slots=True)
class _Entry:
    """What an archive tells of a file, as `MemberFile` has it; of a zip not how it is compressed."""

    name: str
    size: int
    start: int
    entry: int
    compressed: Compression = False
    extents: tuple[tuple[int, int], ...] = ()


def _chosen_names(archive: CorpusFile, there: list[str], pattern: str) -> list[str]:
    counts = collections.Counter(there)
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
        if any('\ud800' <= each < '\ue000' for each in name):
            raise InputError(
                f'{archive.path} has a file whose name is not UTF-8, {name!a}; choose others, or '
                'pack it under another name'
            )
    return chosen


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _tar_entries(archive: CorpusFile, open_binary: OpenBinary) -> list[_Entry]:
    """Reads a whole tar. `extents` and the like are as the headers tell them."""
    ends = part_ends(archive, open_binary) if may_have_index(archive) else ()
    part_starts = [0, *ends[:-1]]
    entries = []
    reader = PieceReader(unpacked_pieces(archive, open_binary))
    stream = io.BufferedReader(reader, PIECE_BYTES)
    with contextlib.ExitStack() as stack:
        with naming(archive), reader.at_most(_MOST_HEADER_BYTES):
            tar = stack.enter_context(
                tarfile.open(fileobj=stream, mode='r|', tarinfo=_Member, encoding='utf-8')
            )
        while True:
            with naming(archive):
                with reader.at_most(_MOST_HEADER_BYTES):
                    member = tar.next()
                if member is None:
                    break
                if member.isreg():
                    start = member.offset_data
                    if not archive.compressed:
                        entry = start
                    else:
                        entry = part_starts[bisect.bisect_right(part_starts, start) - 1]
                    beginning = tar.extractfile(member).read(_BEGINNING_BYTES)
                    extents = tuple(member.sparse or ()) if member.issparse() else ()
                    entries.append(
                        _Entry(
                            member.name,
                            member.size,
                            start,
                            entry,
                            compression_of_bytes(beginning),
                            extents,
                        )
                    )
                tar.members.clear()  # which holds all of them otherwise, however many there are
                if tar.fileobj.tell() < tar.offset:
                    tar.fileobj.seek(tar.offset - 1)  # so that `next` reads a header alone
        with naming(archive):
            while rest := tar.fileobj.read(PIECE_BYTES):
                if rest.strip(b'\0'):
                    raise tarfile.ReadError(f'something follows its end at byte {tar.offset}')
    return entries


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


def _zip_entries(archive: CorpusFile, open_binary: OpenBinary) -> list[_Entry]:
    with opened_zip(archive, open_binary) as opened:
        return [
            _Entry(each.filename, each.file_size, each.header_offset, each.header_offset)
            for each in opened.infolist()
            # A name may be empty, which `is_dir` does not expect.
            if not each.filename.endswith('/') and not stat.S_ISLNK(each.external_attr >> 16)
        ]


def _zip_compressions(
    archive: CorpusFile, chosen: list[_Entry], open_binary: OpenBinary
) -> list[Compression]:
    with opened_zip(archive, open_binary) as opened:
        kinds = []
        for each in chosen:
            with open_zip_member(archive, opened, each.name) as stream, naming(archive):
                kinds.append(compression_of_bytes(stream.read(_BEGINNING_BYTES)))
        return kinds


def _check_ends(stream: BinaryIO, opened: zipfile.ZipFile, size: int) -> None:
    """Raises BadZipFile where something stands before or behind a zip, which Python passes over."""
    stream.seek(max(0, size - _ZIP_END_BYTES - len(opened.comment)))
    if read_up_to(stream, 4) != b'PK\x05\x06':
        raise zipfile.BadZipFile('something follows its end')
    if min((each.header_offset for each in opened.infolist()), default=0) > 0:
        raise zipfile.BadZipFile('something stands before its first file')


class PieceReader(io.RawIOBase):
    """Pieces of bytes, none of them empty, as a file."""

    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._left = memoryview(b'')
        self._most: int | None = None  # bytes that may still be read; None: any number

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        if not self._left:
            self._left = memoryview(next(self._pieces, b''))
        size = min(len(self._left), len(buffer))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        if self._most is not None:
            self._most -= size
            if self._most < 0:
                raise tarfile.ReadError('a header that is far too large')
        return size

    @contextlib.contextmanager
    def at_most(self, size: int) -> Iterator[None]:
        """Raises tarfile.ReadError where more is read within."""
        self._most = size
        yield
        self._most = None
