"""The text of a file, wherever it is: plain, compressed, or a member of an archive."""

from collections.abc import Iterator

from tokcore.corpus.dataset import CorpusFile, MemberFile, OpenBinary
from tokcore.corpus.storage.archive_reading import member_pieces
from tokcore.corpus.storage.compression import unpacked_pieces


def text_pieces(file: CorpusFile, open_binary: OpenBinary) -> Iterator[bytes]:
    """Yields a file's (decompressed) text in non-empty pieces of at most `PIECE_BYTES`.

    Of members of archives see `archive_reading.reading_on`.

    Raises:
        InputError: the file cannot be read, has changed its size, or is compressed and cut off,
            damaged, followed by something else, or unpacks to far more than it is.
    """
    if isinstance(file, MemberFile):
        return member_pieces(file, open_binary)
    return unpacked_pieces(file, open_binary)
