"""Sizes that the headers of a tar claim: no loop follows a number that is not true."""

import io
import tarfile

import pytest

from tokcore.corpus.archive_reading import text_pieces
from tokcore.corpus.archives import ArchiveLists
from tokcore.corpus.corpus import CorpusFile
from tokcore.errors import InputError


@pytest.mark.parametrize(
    ('size', 'rest'),
    [(-1, bytes(1024)), (1 << 60, b'one line\n' * 1024)],
    ids=['negative', 'far beyond the end'],
)
def test_a_member_of_an_impossible_size_is_an_error_that_names_the_archive(tmp_path, size, rest):
    # Sizes that octal digits cannot hold are stored in base 256.
    member = tarfile.TarInfo('a.txt')
    member.size = size
    path = tmp_path / 'texts.tar'
    path.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + rest)
    archive = CorpusFile(str(path), path.name, path.stat().st_size, False)

    def open_binary(name):
        return io.BytesIO(path.read_bytes())

    with pytest.raises(InputError, match='texts.tar is damaged'):
        [(file, _)] = ArchiveLists(open_binary).find(archive, '*')
        list(text_pieces(file, open_binary))
