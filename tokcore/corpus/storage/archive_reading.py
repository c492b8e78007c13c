"""Members of archives read one after another, so that an archive is decompressed once for all of them.

Where a member begins is known (`archives`). A reader goes on from the last member to the next one that
is asked for; it begins anew where an index, a zip's directory or a plain tar allow to begin nearer to it.
Members come in the order of their places in the corpus or in that of the archive. Those that are asked
for in another order than the archive's, and are passed over, are kept in a temporary file without a
name until it is their turn: that costs the disk their text, once, but no second reading.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import io
import itertools
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from tokcore.corpus.dataset import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.storage.archives import is_zip, naming, open_zip_member, opened_zip
from tokcore.corpus.storage.compression import bounded, unpacked_pieces, unpacked_stream
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.corpus.storage.indexed_text import text_from
from tokcore.corpus.storage.piece_reader import PieceReader
from tokcore.corpus.storage.stored_file import open_stored, read_up_to
from tokcore.errors import InputError

_LEAST_JUMP = 1 << 20
"""A nearer member is reached by reading on: opening a file again costs more than a megabyte."""


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
    """Yields the text of a member in pieces; raises InputError as `corpus_text.text_pieces`.

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
        """Yields the text of a member in pieces; raises InputError as `corpus_text.text_pieces`."""
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
        self._begun: tuple[MemberFile, bytes] | None = None  # the latest member, and its first piece
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
            and file.entry <= tar.position + _LEAST_JUMP
        )
        if not is_ahead:
            self._close_archive()
            self._open = tar = _OpenTar(file.archive, file.entry, self._open_binary)
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
            each for each in of_archive[first:end] if each.entry == 0 and each not in self._kept
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
        with open_zip_member(self.archive, self._zip, name) as stream:
            while True:
                with naming(self.archive):
                    piece = read_up_to(stream, PIECE_BYTES)
                if not piece:
                    return
                yield piece

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
