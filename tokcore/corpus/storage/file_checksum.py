"""The checksum of a whole file, by reading it."""

import google_crc32c

from tokcore.corpus.dataset import CorpusFile, OpenBinary
from tokcore.corpus.range_checksums import TextSummary
from tokcore.corpus.storage.corpus_text import text_pieces


def checksum_file(file: CorpusFile, open_binary: OpenBinary) -> TextSummary:
    """Returns the summary of a file by reading it from beginning to end.

    Raises:
      InputError: as `text_pieces`.
    """
    length = crc = 0
    for piece in text_pieces(file, open_binary):
        crc = google_crc32c.extend(crc, piece)
        length += len(piece)
    return TextSummary(length, crc)
