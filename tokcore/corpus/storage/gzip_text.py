"""The text of a file as a stream: plain, or gzip that is decompressed here.

Beam's own decompression reads a cut-off gzip file short without an error, so files are opened as
they are stored and inflated member by member; a file must end where a member ends. Memory is
bounded by the pieces, whatever the compression ratio.
"""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from tokcore.corpus.dataset import CorpusFile, OpenBinary
from tokcore.corpus.storage.stored_file import open_stored, read_up_to
from tokcore.errors import InputError

_MAGIC = b'\x1f\x8b'

# zlib copies what follows a member, so small reads keep files of many tiny members linear; 32 KiB
# still inflate to about 100 KiB, enough to make the calls' overhead vanish.
_STORED_BYTES = 32 << 10

PIECE_BYTES = 1 << 20
"""The largest piece of text at a time: fits a processor's cache, and bounds what a tiny file that
inflates a thousandfold may hold."""


def stored(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a plain file; raises InputError as `corpus_text.text_pieces`."""
    with open_stored(file, open_binary) as stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece


def inflated(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields the text of a gzip file; raises InputError as `corpus_text.text_pieces`."""
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
            if len(pending) < len(_MAGIC):
                pending += read_up_to(stream, len(_MAGIC) - len(pending))
            if pending[:2] != _MAGIC:
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
