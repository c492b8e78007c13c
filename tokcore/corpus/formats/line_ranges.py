"""Lines of a plain file by where they are: it is read once it is known where they begin and end.

Both ends are looked for first, so that lines are read once, never copied, and those that are too
long never held.
"""

from collections.abc import Iterator
from typing import BinaryIO

from tokcore.corpus.dataset import CorpusFile, LongLine, OpenBinary, TextRange
from tokcore.corpus.long_lines import long_line
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.corpus.storage.stored_file import open_stored, read_range
from tokcore.errors import InputError

_LINE_BYTES = 64 << 10
"""What is read at a time to find where a line ends."""


def read_starting_lines(
    text_range: TextRange, open_binary: OpenBinary, max_line_bytes: int
) -> list[tuple[int, bytes | LongLine]]:
    """Returns the lines that start in a range, with their offset; nothing if there are none.

    Where the last of them crosses the range's end and is longer than `max_line_bytes`, it comes by
    itself.

    Raises:
      InputError: if the file cannot be read, or has changed its size.
    """
    file, start, end = text_range.file, text_range.start, text_range.end
    with open_stored(file, open_binary) as stream:
        # A line starts at `start` if the byte before it is a line feed.
        first = _after_newlines(stream, file, start - 1, end) if start else 0
        if first is None or first == end:
            return []
        feed = _after_newlines(stream, file, end - 1, file.size)
        until = feed or file.size
        last = until
        if until - first > max_line_bytes:
            last = _last_line(stream, file, first, end - 1)
            if until - last - (feed is not None) <= max_line_bytes:
                last = until
        found = []
        if first < last:
            found.append((first, read_range(stream, file, first, last)))
        if last < until:
            found.append((last, long_line(0, last, _pieces(stream, file, last, until))))
    return found


def read_counted_lines(
    side: int, text_range: TextRange, open_binary: OpenBinary, max_line_bytes: int
) -> tuple[int, bytes | LongLine]:
    """Returns a range's lines, as many as it says, with the offset of the first.

    More than one are no more than a work item; one of more than `max_line_bytes` is read over.

    Raises:
      InputError: if the file cannot be read, or no longer has these lines.
    """
    from tokcore.corpus.formats.line_index import after_newlines

    file, lines = text_range.file, text_range.lines
    with open_stored(file, open_binary) as stream:
        if lines == 1 and text_range.end - text_range.start > max_line_bytes:
            line = _read_line(stream, side, text_range, max_line_bytes)
            if line is not None:
                return line
        else:
            data = read_range(stream, file, text_range.start, text_range.end)
            first = after_newlines(data, text_range.skip_lines)
            if first is not None:
                end = after_newlines(data, lines, first)
                if end is None and text_range.end == file.size:
                    # The file's last line may lack its line feed.
                    last = after_newlines(data, lines - 1, first)
                    if last is not None and last < len(data):
                        end = len(data)
                if end is not None:
                    return text_range.start + first, data[first:end]
    raise InputError(
        f'{file.path} no longer has the {lines} lines after byte {text_range.start} that it had '
        'when its lines were counted; run again when nothing writes to it any more'
    )


def _read_line(
    stream: BinaryIO, side: int, text_range: TextRange, max_line_bytes: int
) -> tuple[int, bytes | LongLine] | None:
    """A range's only line with its offset; None if it is not there."""
    file, end = text_range.file, text_range.end
    first = _after_newlines(stream, file, text_range.start, end, text_range.skip_lines)
    if first is None:
        return None
    feed = _after_newlines(stream, file, first, end)
    # The file's last line may lack its line feed.
    if feed is None and (end < file.size or first == file.size):
        return None
    until = feed or file.size
    if until - first - (feed is not None) <= max_line_bytes:
        return first, read_range(stream, file, first, until)
    return first, long_line(side, first, _pieces(stream, file, first, until))


def _after_newlines(
    stream: BinaryIO, file: CorpusFile, start: int, end: int, count: int = 1
) -> int | None:
    """The place behind the `count`-th line feed of bytes [start, end) of a file, None if fewer."""
    from tokcore.corpus.formats.line_index import after_newlines

    if not count:
        return start
    for place in range(start, end, _LINE_BYTES):
        piece = read_range(stream, file, place, min(place + _LINE_BYTES, end))
        found = after_newlines(piece, count)
        if found is not None:
            return place + found
        count -= piece.count(b'\n')
    return None


def _last_line(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> int:
    """The place behind the last line feed of bytes [start, end) of a file, or `start`."""
    for place in range(end, start, -_LINE_BYTES):
        piece_start = max(start, place - _LINE_BYTES)
        piece = read_range(stream, file, piece_start, place)
        if b'\n' in piece:
            return piece_start + piece.rindex(b'\n') + 1
    return start


def _pieces(stream: BinaryIO, file: CorpusFile, start: int, end: int) -> Iterator[bytes]:
    for place in range(start, end, PIECE_BYTES):
        yield read_range(stream, file, place, min(place + PIECE_BYTES, end))
