"""A part of a compressed file that can be decoded by itself."""

from dataclasses import dataclass

MOST_INDEX_BYTES = 1 << 20
"""The largest index that is read: it lists some terabytes, and is held as a list of parts."""


@dataclass(frozen=True)
class TextPart:
    """A block of an xz file, or a frame of a zstd one.

    Attributes:
        start: of its bytes as stored.
        end: where these end.
        text_bytes: what it unpacks to, as the file's index says.
        before: what makes these bytes a whole stream, in front of them.
        behind: the same, behind them.
    """

    start: int
    end: int
    text_bytes: int
    before: bytes = b''
    behind: bytes = b''
