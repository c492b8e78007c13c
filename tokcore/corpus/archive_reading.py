"""The text of a corpus file, wherever it is: plain, compressed, or a member of an archive.

Members of one archive are read one after another by one worker, so that the archive is decompressed
once for all of them. A reader goes on from the last member to the next one that is asked for; it
begins anew where an index, a zip's directory or a plain tar allow to begin nearer to it.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import io
import itertools
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, TypeVar

from tokcore.corpus.archives import PieceReader, is_zip, naming, open_zip_member, opened_zip
from tokcore.corpus.corpus import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.seekable import text_from
from tokcore.corpus.storage import (
    PIECE_BYTES,
    bounded,
    open_stored,
    read_up_to,
    unpacked_pieces,
    unpacked_stream,
)
from tokcore.errors import InputError

T = TypeVar('T')

_LEAST_JUMP = 1 << 20
"""A nearer member is reached by reading on: opening a file again costs more than a megabyte."""


def in_passes(
    elements: Sequence[T], files_of: Callable[[T], tuple[CorpusFile, ...]], pass_bytes: int
) -> list[tuple[T, ...]]:
    """Puts elements together that one worker is to read in one pass, in this order.

    An element without members of archives is a pass of its own. Those of the same archives come in
    the order in which the (first) archive has them, all in one pass where it can only be entered at
    its beginning. Else passes of about `pass_bytes` begin where the archives can be entered. A pass
    stands where the first of its elements did.

    Args:
        elements: to be read.
        files_of: tells what is read of an element, side by side.
        pass_bytes: of the members' own sizes.
    """
    together: dict[tuple[object, ...], list[int]] = {}
    for number, element in enumerate(elements):
        archives = [
            file.archive.path if isinstance(file, MemberFile) else None
            for file in files_of(element)
        ]
        key = tuple(archives) if any(archives) else (number,)
        together.setdefault(key, []).append(number)
    passes: list[list[int]] = []
    for numbers in together.values():
        passes += _cut(
            numbers, [_members(files_of(elements[each])) for each in numbers], pass_bytes
        )
    passes.sort(key=min)
    return [tuple(elements[number] for number in each) for each in passes]


def _members(files: tuple[CorpusFile, ...]) -> list[MemberFile]:
    return [file for file in files if isinstance(file, MemberFile)]


def _cut(
    numbers: Sequence[int], members: Sequence[list[MemberFile]], pass_bytes: int
) -> list[list[int]]:
    order = sorted(
        zip(numbers, members, strict=True), key=lambda each: [file.start for file in each[1]]
    )
    passes: list[list[int]] = []
    size = 0
    before: list[int] = []
    for number, files in order:
        entries = [file.access_point for file in files]
        may_begin = all(entry not in (0, last) for entry, last in zip(entries, before))
        if not passes or (size >= pass_bytes and may_begin):
            passes.append([])
            size = 0
        passes[-1].append(number)
        size += sum(file.size for file in files)
        before = entries
    return passes


def text_pieces(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields a file's (decompressed) text in non-empty pieces of at most `PIECE_BYTES`.

    Of members of archives see `reading_on`.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off,
            damaged, followed by something else, or unpacks to far more than it is.
    """
    if isinstance(file, MemberFile):
        return member_pieces(file, open_binary)
    return unpacked_pieces(file, open_binary)


@contextlib.contextmanager
def reading_on(
    open_binary: OpenBinary, files: Sequence[tuple[CorpusFile, ...]]
) -> Iterator[OpenBinary]:
    """Gives an `OpenBinary` with which archives are read on from member to member.

    Args:
        open_binary: opens the archives, and all other files.
        files: that will be read, in this order, as tuples of those that are read side by side; each
            side has a reader of its own. Another order, and other members, may take the reading of
            an archive from its beginning for each of them.
    """
    if not any(isinstance(each, MemberFile) for together in files for each in together):
        yield open_binary
        return
    archives = OpenArchives(open_binary, list(itertools.zip_longest(*files)))
    try:
        yield archives
    finally:
        archives.close()


def member_pieces(file: MemberFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a member in pieces; raises InputError as `text_pieces`.

    Without `reading_on` the archive is read up to the member, from where that can be entered.
    """
    if isinstance(open_binary, OpenArchives):
        return open_binary.pieces(file)
    return _by_itself(file, open_binary)


def _by_itself(file: MemberFile, open_binary: OpenBinary) -> Iterator[bytes]:
    with reading_on(open_binary, [(file,)]) as archives:
        yield from member_pieces(file, archives)


class OpenArchives:
    """An `OpenBinary` with readers of archives, for one thread."""

    def __init__(self, open_binary: OpenBinary, sides: Sequence[Sequence[CorpusFile | None]]):
        self._open_binary = open_binary
        self._readers = [_Reader(open_binary, files) for files in sides]

    def __call__(self, path: str) -> BinaryIO:
        return self._open_binary(path)

    def pieces(self, file: MemberFile) -> Iterator[bytes]:
        """Yields the text of a member in pieces; raises InputError as `text_pieces`."""
        for reader in self._readers:
            if not reader.is_busy and (reader.expects(file) or reader.has_just_begun(file)):
                return reader.text(file)
        return _by_itself(file, self._open_binary)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


class _Reader:
    """Reads members of archives, one archive at a time and one member after another."""

    def __init__(self, open_binary: OpenBinary, files: Iterable[CorpusFile | None]):
        self._open_binary = open_binary
        self._expected: dict[str, list[MemberFile]] = {}  # by archive, in the order of their starts
        for file in files:
            if isinstance(file, MemberFile):
                self._expected.setdefault(file.archive.path, []).append(file)
        for of_archive in self._expected.values():
            of_archive.sort(key=_start)
        self._open: _OpenTar | _OpenZip | None = None
        self._kept: dict[MemberFile, tuple[int, int]] = {}  # (offset, size) in `_spool`
        self._spool: BinaryIO | None = None
        self._begun: tuple[MemberFile, bytes] | None = (
            None  # the latest member, and its first piece
        )
        self.is_busy = False  # while a member is read, from when it is asked for

    def expects(self, file: MemberFile) -> bool:
        of_archive = self._expected.get(file.archive.path, [])
        place = bisect.bisect_left(of_archive, file.start, key=_start)
        return place < len(of_archive) and of_archive[place] == file

    def has_just_begun(self, file: MemberFile) -> bool:
        """Whether no more than the first piece of a member was read: a header is, before the text."""
        if self._begun is None or self._begun[0] != file or not isinstance(self._open, _OpenTar):
            return False
        return self._open.position == file.start + len(self._begun[1])

    def text(self, file: MemberFile) -> Iterator[bytes]:
        """Yields a member's text in small pieces."""
        self.is_busy = True
        self._forget(file)
        pieces = self._stored(file)
        if file.extents:
            pieces = _with_zeros(file, pieces)
        # The archive's own size bounds what a member of a zip unpacks to.
        pieces = bounded(dataclasses.replace(file, size=file.archive.size), pieces)
        if file.compressed:
            stream = io.BufferedReader(PieceReader(pieces), PIECE_BYTES)
            pieces = bounded(file, unpacked_stream(file, stream))
        return pieces

    def close(self) -> None:
        self._close_archive()
        if self._spool is not None:
            self._spool.close()

    def _stored(self, file: MemberFile) -> Iterator[bytes]:
        """Yields what the archive holds of a member, one piece after another."""
        try:
            if self.has_just_begun(file):
                first = self._begun[1]
                pieces = itertools.chain([first], self._open.pieces(file, len(first)))
            elif file in self._kept:
                pieces = self._kept_pieces(*self._kept.pop(file))
            else:
                pieces = self._reached(file)
            first = next(pieces, b'')
            self._begun = (file, first)
            if first:
                yield first
            yield from pieces
        finally:
            self.is_busy = False

    def _forget(self, file: MemberFile) -> None:
        """Expects a member once less."""
        if self.expects(file):
            of_archive = self._expected[file.archive.path]
            del of_archive[bisect.bisect_left(of_archive, file.start, key=_start)]

    def _reached(self, file: MemberFile) -> Iterator[bytes]:
        if is_zip(file.archive):
            if not isinstance(self._open, _OpenZip) or self._open.archive != file.archive:
                self._close_archive()
                self._open = _OpenZip(file.archive, self._open_binary)
            return self._open.pieces(file)
        tar = self._open
        is_ahead = (
            isinstance(tar, _OpenTar)
            and tar.archive == file.archive
            and tar.position <= file.start
            and file.access_point <= tar.position + _LEAST_JUMP
        )
        if not is_ahead:
            self._close_archive()
            self._open = tar = _OpenTar(file.archive, file.access_point, self._open_binary)
        for each in self._passed_over(file, tar.position):
            self._keep(each, tar)
        tar.skip_to(file.start)
        return tar.pieces(file, 0)

    def _close_archive(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _passed_over(self, file: MemberFile, position: int) -> list[MemberFile]:
        """The members up to a file that are asked for later, and cannot be entered nearer."""
        of_archive = self._expected.get(file.archive.path, [])
        first = bisect.bisect_left(of_archive, position, key=_start)
        end = bisect.bisect_left(of_archive, file.start, key=_start)
        return [
            each
            for each in of_archive[first:end]
            if each.access_point == 0 and each not in self._kept
        ]

    def _keep(self, file: MemberFile, tar: _OpenTar) -> None:
        if self._spool is None:
            self._spool = tempfile.TemporaryFile()
        tar.skip_to(file.start)
        offset = size = self._spool.seek(0, io.SEEK_END)
        for piece in tar.pieces(file, 0):
            self._spool.write(piece)
            size += len(piece)
        self._kept[file] = (offset, size - offset)

    def _kept_pieces(self, offset: int, size: int) -> Iterator[bytes]:
        for place in range(offset, offset + size, PIECE_BYTES):
            self._spool.seek(place)
            yield read_up_to(self._spool, min(PIECE_BYTES, offset + size - place))


def _start(file: MemberFile) -> int:
    return file.start


class _OpenTar:
    """The text of a tar, read on from a byte where it can be entered."""

    def __init__(self, archive: CorpusFile, entry: int, open_binary: OpenBinary):
        self.archive = archive
        self.position = entry
        self._piece, self._used = b'', 0  # the latest piece, and how much of it was given
        if not archive.compressed:
            self._pieces = _stored_from(archive, entry, open_binary)
        elif entry:
            self._pieces = text_from(archive, entry, open_binary)
        else:
            self._pieces = unpacked_pieces(archive, open_binary)

    def pieces(self, file: MemberFile, already: int) -> Iterator[bytes]:
        """Yields what follows of a member, of which so many bytes were read."""
        size = sum(size for _, size in file.extents) if file.extents else file.size
        left = size - already
        while left:
            piece = self._next(left)
            left -= len(piece)
            yield piece

    def skip_to(self, place: int) -> None:
        while self.position < place:
            self._next(place - self.position)

    def close(self) -> None:
        self._pieces.close()

    def _next(self, most: int) -> bytes:
        if self._used == len(self._piece):
            self._piece, self._used = next(self._pieces, b''), 0
        if not self._piece:
            raise InputError(
                f'{self.archive.path} ends at byte {self.position} of its text, and had more when the '
                'job was planned; run again when nothing writes to it any more'
            )
        piece = self._piece[self._used : self._used + most]
        self._used += len(piece)
        self.position += len(piece)
        return piece


def _stored_from(file: CorpusFile, start: int, open_binary: OpenBinary) -> Iterator[bytes]:
    with open_stored(file, open_binary) as stream:
        stream.seek(start)
        while piece := stream.read(PIECE_BYTES):
            yield piece


class _OpenZip:
    """A zip, whose members are read in any order."""

    def __init__(self, archive: CorpusFile, open_binary: OpenBinary):
        self.archive = archive
        self._stack = contextlib.ExitStack()
        self._zip: zipfile.ZipFile = self._stack.enter_context(opened_zip(archive, open_binary))

    def pieces(self, file: MemberFile) -> Iterator[bytes]:
        name = file.path[len(self.archive.path) + 1 :]
        size = 0
        with open_zip_member(self.archive, self._zip, name) as stream:
            while True:
                with naming(self.archive):
                    piece = read_up_to(stream, PIECE_BYTES)
                if not piece:
                    break
                size += len(piece)
                yield piece
        # Python holds a member against its checksum alone.
        if size != file.size:
            raise InputError(
                f'{file.path} has {size} bytes, but {self.archive.path} tells of {file.size}; get it '
                'again'
            )

    def close(self) -> None:
        self._stack.close()


def _with_zeros(file: MemberFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The text of a sparse file, from the bytes of it that are not zeros."""
    stream = io.BufferedReader(PieceReader(pieces), PIECE_BYTES)
    place = 0
    for offset, size in [*file.extents, (file.size, 0)]:
        while place < offset:
            zeros = bytes(min(PIECE_BYTES, offset - place))
            place += len(zeros)
            yield zeros
        while place < offset + size:
            piece = read_up_to(stream, min(PIECE_BYTES, offset + size - place))
            if not piece:
                raise InputError(f'{file.path} has fewer bytes than its header tells; get it again')
            place += len(piece)
            yield piece
