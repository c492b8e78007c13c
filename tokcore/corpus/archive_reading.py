"""Reads the text of a corpus file, wherever it is: plain, compressed, or a member of an archive.

One worker reads the members of an archive one after another, so that the archive is decompressed once
for all of them. A reader goes on from the last member to the next one; it starts again where an index,
the directory of a zip, or an uncompressed tar allow to begin nearer to that.
"""

from __future__ import annotations

import bisect
import codecs
import contextlib
import io
import itertools
import operator
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import BinaryIO, TypeVar

from tokcore.corpus.archives import TextOfPieces, is_zip, naming, open_zip_member, opened_zip
from tokcore.corpus.corpus import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.looks import checked_text
from tokcore.corpus.seekable import can_seek, text_from
from tokcore.corpus.storage import (
    PIECE_BYTES,
    bounded,
    open_stored,
    read_pieces,
    read_up_to,
    unpacked_pieces,
    unpacked_stream,
)
from tokcore.errors import InputError

T = TypeVar('T')

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_LEAST_JUMP = 1 << 20
"""A nearer member is reached by reading on: opening a file again takes longer than reading this much."""


def in_passes(
    elements: Sequence[T], files_of: Callable[[T], tuple[CorpusFile, ...]], pass_bytes: int
) -> list[tuple[T, ...]]:
    """Groups elements into passes; one worker reads the elements of a pass in their order.

    An element without members of archives is a pass of its own. Elements of the same archives are in
    the order of the (first) archive: in one pass if this can only be read from its beginning, else in
    passes of about `pass_bytes`, which begin at access points. Passes are in the order of the first
    of their elements.

    Args:
        elements: to be read.
        files_of: returns the files of an element that are read side by side.
        pass_bytes: the size of a pass, as the sum of the sizes of members.
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
        members = {
            number: [file for file in files_of(elements[number]) if isinstance(file, MemberFile)]
            for number in numbers
        }
        starts = {number: [file.start for file in files] for number, files in members.items()}
        size = 0
        before: list[MemberFile] | None = None
        for number in sorted(numbers, key=starts.__getitem__):
            files = members[number]
            # A new pass begins only where nothing is read twice then.
            if before is None or (
                size >= pass_bytes
                and all(
                    file.access_point not in (0, last.access_point)
                    for file, last in zip(files, before, strict=True)
                )
            ):
                passes.append([])
                size = 0
            passes[-1].append(number)
            size += sum([file.size for file in files])
            before = files
    passes.sort(key=min)
    return [tuple(elements[number] for number in numbers) for numbers in passes]


def text_pieces(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields a file's decompressed text in non-empty pieces of at most `PIECE_BYTES`.

    Several members of an archive should be read within `reading_on`; without it the archive is read
    from the member's access point.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off,
            damaged, followed by something else, not text, or unpacks to far more than its size.
    """
    if not isinstance(file, MemberFile):
        pieces: Iterator[bytes] = unpacked_pieces(file, open_binary)
        return checked_text(file, pieces) if file.compressed else pieces
    if isinstance(open_binary, _OpenArchives):
        pieces = open_binary.pieces(file)
    else:
        pieces = _by_itself(file, open_binary)
    # Members of a tar that are not compressed were all looked at when it was listed.
    return checked_text(file, pieces) if file.compressed or is_zip(file.archive) else pieces


def pieces_from(
    file: CorpusFile, offset: int, open_binary: OpenBinary, may_be_utf_16: bool
) -> Iterator[bytes]:
    """Yields a file's text in pieces from a byte on, and nothing else if `can_seek`.

    That of a file in UTF-16, if it may be, is in UTF-8. Raises InputError as `text_pieces`.
    """
    if may_be_utf_16 and text_beginning(file, open_binary, 2) in UTF_16_MARKS:
        decoded = codecs.iterdecode(text_pieces(file, open_binary), 'utf-16', 'surrogatepass')
        pieces: Iterator[bytes] = (piece.encode('utf-8', 'surrogatepass') for piece in decoded)
    elif not file.is_stream:
        pieces, offset = _stored_from(file, offset, open_binary), 0
    elif can_seek(file, open_binary):
        pieces, offset = text_from(file, offset, open_binary), 0
    else:
        pieces = text_pieces(file, open_binary)
    for piece in pieces:
        if offset < len(piece):
            yield piece[offset:]
        offset = max(0, offset - len(piece))


def text_beginning(file: CorpusFile, open_binary: OpenBinary, size: int) -> bytes:
    """Returns the first `size` bytes of a file's text, or all of it; raises InputError as `text_pieces`."""
    return next(with_whole_head(text_pieces(file, open_binary), size), b'')[:size]


def with_whole_head(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yields the pieces of a text, the first with at least `size` bytes, if there are so many."""
    head = b''
    rest = iter(pieces)
    for piece in rest:
        head += piece
        if len(head) >= size:
            break
    if head:
        yield head
    yield from rest


def member_text(file: MemberFile, open_binary: OpenBinary) -> bytes:
    """Returns all text of a small member; raises InputError as `text_pieces`.

    Of thousands of members that are read in their order, each takes a third of the time of pieces.
    """
    text = None
    if isinstance(open_binary, _OpenArchives) and not file.compressed:
        text = open_binary.next_member(file)
    return b''.join(text_pieces(file, open_binary)) if text is None else text


@contextlib.contextmanager
def reading_on(
    open_binary: OpenBinary, files: Sequence[tuple[CorpusFile, ...]]
) -> Iterator[OpenBinary]:
    """Provides an `OpenBinary` that reads the members of an archive one after another.

    Args:
        open_binary: opens the archives, and all other files.
        files: that will be read, in this order, as tuples of those that are read side by side; each
            side has a reader of its own. For other members, or in another order, an archive may be
            read from its beginning for each member.
    """
    if not any(isinstance(file, MemberFile) for side_by_side in files for file in side_by_side):
        yield open_binary
        return
    archives = _OpenArchives(open_binary, list(itertools.zip_longest(*files)))
    try:
        yield archives
    finally:
        archives.close()


def _by_itself(file: MemberFile, open_binary: OpenBinary) -> Iterator[bytes]:
    with reading_on(open_binary, [(file,)]) as archives:
        assert isinstance(archives, _OpenArchives)
        yield from archives.pieces(file)


class _OpenArchives:
    """An `OpenBinary` with readers of archives, for one thread."""

    def __init__(self, open_binary: OpenBinary, sides: Sequence[Sequence[CorpusFile | None]]):
        self._open_binary = open_binary
        self._readers = [_Reader(open_binary, files) for files in sides]

    def __call__(self, path: str) -> BinaryIO:
        return self._open_binary(path)

    def pieces(self, file: MemberFile) -> Iterator[bytes]:
        """Yields the text of a member in pieces; raises InputError as `text_pieces`."""
        for reader in self._readers:
            if not reader.is_busy and (
                reader.index_of(file) is not None or reader.first_piece(file) is not None
            ):
                return reader.text(file)
        return _by_itself(file, self._open_binary)

    def next_member(self, file: MemberFile) -> bytes | None:
        """Returns the bytes of a member that comes next in its tar; None if it does not."""
        for reader in self._readers:
            data = reader.next_member(file)
            if data is not None:
                return data
        return None

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


class _Reader:
    """Reads members of archives, one archive at a time and one member after another."""

    def __init__(self, open_binary: OpenBinary, files: Iterable[CorpusFile | None]):
        self._open_binary = open_binary
        # By archive, in the order of their starts, which come first: they are looked up by these.
        self._expected: dict[str, list[tuple[int, MemberFile]]] = {}
        for file in files:
            if isinstance(file, MemberFile):
                self._expected.setdefault(file.archive.path, []).append((file.start, file))
        for of_archive in self._expected.values():
            of_archive.sort(key=operator.itemgetter(0))
        self._tar: _OpenTar | None = None
        self._zip: _OpenZip | None = None
        self._spool: BinaryIO | None = None  # a file of members that are needed later
        self._spooled: dict[MemberFile, tuple[int, int]] = {}  # (start, end) in `_spool`
        self._latest: tuple[MemberFile, bytes] | None = None  # the latest member, its first piece
        self.is_busy = False  # from the call of `text` to the end of the member

    def first_piece(self, file: MemberFile) -> bytes | None:
        """Returns a member's first piece if no more was read; a header is read before the text."""
        if self._latest is None or self._tar is None or self._latest[0] != file:
            return None
        first = self._latest[1]
        return first if self._tar.position == file.start + len(first) else None

    def next_member(self, file: MemberFile) -> bytes | None:
        """Returns the bytes of a member if no other one is expected before it in the open tar."""
        tar, of_archive = self._tar, self._expected.get(file.archive.path)
        if tar is None or not of_archive or of_archive[0][1] is not file or self.is_busy:
            return None
        if file.extents or not tar.leads_to(file):
            return None
        del of_archive[0]
        tar.skip_to(file.start)
        data = b''.join(tar.pieces(file, 0))
        self._latest = (file, data)
        return data

    def text(self, file: MemberFile) -> Iterator[bytes]:
        """Yields a member's text in small pieces."""
        self.is_busy = True
        index = self.index_of(file)
        if index is not None:
            del self._expected[file.archive.path][index]
        pieces = self._stored(file)
        if file.extents:
            pieces = _with_zeros(file, pieces)
        # A member of a zip may be compressed: its text is bounded by the size of the archive.
        pieces = bounded(file, pieces, stored_bytes=file.archive.size)
        if file.compressed:
            pieces = bounded(file, unpacked_stream(file, TextOfPieces(pieces)))
        return pieces

    def close(self) -> None:
        self._close_archive()
        if self._spool is not None:
            self._spool.close()

    def _stored(self, file: MemberFile) -> Iterator[bytes]:
        """Yields a member's bytes as the archive holds them."""
        try:
            first = self.first_piece(file)
            if first is not None and self._tar is not None:
                pieces: Iterator[bytes] = itertools.chain(
                    [first], self._tar.pieces(file, len(first))
                )
            elif self._spool is not None and file in self._spooled:
                pieces = read_pieces(self._spool, file, *self._spooled.pop(file))
            elif is_zip(file.archive):
                pieces = self._zip_pieces(file)
            else:
                pieces = self._tar_pieces(file)
            first = next(pieces, b'')
            self._latest = (file, first)
            if first:
                yield first
            yield from pieces
        finally:
            self.is_busy = False

    def index_of(self, file: MemberFile) -> int | None:
        """Returns the index of a member among those that are expected of its archive, if it is one."""
        of_archive = self._expected.get(file.archive.path, ())
        index = bisect.bisect_left(of_archive, (file.start,))
        if index == len(of_archive):
            return None
        expected = of_archive[index][1]
        # Comparing the fields of ten thousand members takes its time.
        return index if expected is file or expected == file else None

    def _zip_pieces(self, file: MemberFile) -> Iterator[bytes]:
        if self._zip is None or self._zip.archive != file.archive:
            self._close_archive()
            self._zip = _OpenZip(file.archive, self._open_binary)
        return self._zip.pieces(file)

    def _tar_pieces(self, file: MemberFile) -> Iterator[bytes]:
        tar = self._tar
        if tar is None or not tar.leads_to(file):
            self._close_archive()
            self._tar = tar = _OpenTar(file.archive, file.access_point, self._open_binary)
        for skipped in self._skipped_members(file, tar.position):
            self._write_to_spool(skipped, tar)
        tar.skip_to(file.start)
        return tar.pieces(file, 0)

    def _close_archive(self) -> None:
        for archive in (self._tar, self._zip):
            if archive is not None:
                archive.close()
        self._tar = self._zip = None

    def _skipped_members(self, file: MemberFile, position: int) -> list[MemberFile]:
        """Returns the members before a file that are needed later and have no nearer access point."""
        of_archive = self._expected.get(file.archive.path, [])
        first = bisect.bisect_left(of_archive, (position,))
        end = bisect.bisect_left(of_archive, (file.start,))
        return [
            member
            for _, member in of_archive[first:end]
            if member.access_point == 0 and member not in self._spooled
        ]

    def _write_to_spool(self, file: MemberFile, tar: _OpenTar) -> None:
        if self._spool is None:
            self._spool = tempfile.TemporaryFile()
        tar.skip_to(file.start)
        start = end = self._spool.seek(0, io.SEEK_END)
        for piece in tar.pieces(file, 0):
            self._spool.write(piece)
            end += len(piece)
        self._spooled[file] = (start, end)


class _OpenTar:
    """Reads the text of a tar from an access point on."""

    def __init__(self, archive: CorpusFile, access_point: int, open_binary: OpenBinary):
        self.archive = archive
        self.position = access_point
        self._piece, self._used = b'', 0  # the latest piece, and how much of it was returned
        if not archive.compressed:
            self._pieces = _stored_from(archive, access_point, open_binary)
        elif access_point:
            self._pieces = text_from(archive, access_point, open_binary)
        else:
            self._pieces = unpacked_pieces(archive, open_binary)

    def leads_to(self, file: MemberFile) -> bool:
        """Whether reading on comes to a member as soon as opening the archive again would."""
        is_ahead = self.archive == file.archive and self.position <= file.start
        return is_ahead and file.access_point <= self.position + _LEAST_JUMP

    def pieces(self, file: MemberFile, bytes_read: int) -> Iterator[bytes]:
        """Yields the rest of a member, of which some bytes were read."""
        size = sum(size for _, size in file.extents) if file.extents else file.size
        left = size - bytes_read
        while left:
            piece = self._next(left)
            left -= len(piece)
            yield piece

    def skip_to(self, position: int) -> None:
        ahead = position - self.position
        if 0 < ahead <= len(self._piece) - self._used:  # as for the header of a small file
            self._used += ahead
            self.position = position
        while self.position < position:
            self._next(position - self.position)

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


def _stored_from(
    file: CorpusFile, start: int, open_binary: OpenBinary
) -> Generator[bytes, None, None]:
    with open_stored(file, open_binary) as stream:
        stream.seek(start)
        while piece := stream.read(PIECE_BYTES):
            yield piece


class _OpenZip:
    """Reads the members of a zip, in any order."""

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
        # Python checks a member's checksum only.
        if size != file.size:
            raise InputError(
                f'{file.path} has {size} bytes, but {self.archive.path} records {file.size}; get it '
                'again'
            )

    def close(self) -> None:
        self._stack.close()


def _with_zeros(file: MemberFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the bytes of a sparse file, from those of its extents."""
    text = TextOfPieces(pieces)
    position = 0
    for offset, size in [*file.extents, (file.size, 0)]:
        while position < offset:
            zeros = bytes(min(PIECE_BYTES, offset - position))
            position += len(zeros)
            yield zeros
        while position < offset + size:
            piece = text.read(min(PIECE_BYTES, offset + size - position))
            if not piece:
                raise InputError(f'{file.path} has fewer bytes than its header says; get it again')
            position += len(piece)
            yield piece
