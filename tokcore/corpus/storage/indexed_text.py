"""The text of a compressed file from any byte on, where the file has an index of its parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import BinaryIO

from tokcore.corpus.dataset import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.storage.compression import XZ, ZSTD, is_bomb, unpacked_stream
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.corpus.storage.stored_file import open_stored, read_up_to
from tokcore.corpus.storage.text_part import TextPart
from tokcore.corpus.storage.xz_index import xz_blocks
from tokcore.corpus.storage.zstd_seek_table import zstd_frames
from tokcore.errors import InputError

_INDEXES = {XZ: xz_blocks, ZSTD: zstd_frames}


def may_have_index(file: CorpusFile) -> bool:
    """Tells whether a file may be read by an index of parts: a member of an archive never is."""
    return file.compressed in _INDEXES and not isinstance(file, MemberFile)


def part_ends(file: CorpusFile, open_binary: OpenBinary) -> tuple[int, ...]:
    """Returns where, in a file's text, each of its parts ends; nothing if it has no sound index.

    A file that unpacks to far more than it stores is given none, and refused when it is read.

    Raises:
        InputError: it cannot be read, or has changed its size.
    """
    with open_stored(file, open_binary) as stream:
        parts = _parts(file, stream)
    ends = tuple(itertools.accumulate(part.text_bytes for part in parts or ()))
    return () if not ends or is_bomb(file, ends[-1]) else ends


def text_from(file: CorpusFile, offset: int, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a file with an index, in pieces, from a byte of the text on.

    Only the part with that byte and those after it are decoded, each when it is reached.

    Raises:
        InputError: the file cannot be read, has changed, is damaged, or its index is wrong.
    """
    with open_stored(file, open_binary) as stream:
        parts = _parts(file, stream)
        if parts is None:
            raise InputError(
                f'{file.path} had an index when the job was planned, and has none any more; run '
                'again when nothing writes to it any more'
            )
        for part in parts:
            if part.text_bytes > offset:
                for piece in _part_pieces(file, stream, part):
                    if offset < len(piece):
                        yield piece[offset:]
                    offset = max(0, offset - len(piece))
            else:
                offset -= part.text_bytes


def _parts(file: CorpusFile, stream: BinaryIO) -> list[TextPart] | None:
    return _INDEXES[str(file.compressed)](stream, file.size)


def _part_pieces(file: CorpusFile, stream: BinaryIO, part: TextPart) -> Iterator[bytes]:
    size = 0
    for large in unpacked_stream(file, _PartStream(stream, part), part.start - len(part.before)):
        size += len(large)
        if size > part.text_bytes:
            break
        for start in range(0, len(large), PIECE_BYTES):
            yield large[start : start + PIECE_BYTES]
    if size != part.text_bytes:
        raise InputError(
            f'{file.path} does not unpack at byte {part.start} to the {part.text_bytes} bytes that '
            'its index tells; get the file again, or pack it again'
        )


class _PartStream:
    """A part's bytes as a whole stream, of a file in which nobody else reads meanwhile."""

    def __init__(self, stream: BinaryIO, part: TextPart):
        self._stream = stream
        self._before, self._behind = part.before, part.behind
        self._left = part.end - part.start
        stream.seek(part.start)

    def read(self, size: int) -> bytes:
        if self._before:
            data, self._before = self._before[:size], self._before[size:]
        elif self._left:
            data = read_up_to(self._stream, min(size, self._left))
            self._left = self._left - len(data) if data else 0
        else:
            data, self._behind = self._behind[:size], self._behind[size:]
        return data
