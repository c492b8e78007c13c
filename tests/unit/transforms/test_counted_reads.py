"""The progress of reading: stored bytes, as they are read, however well a file is compressed."""

import bz2
import gzip
import lzma
import random

import pytest

from pipelines.engines.progress import WorkDone, listening, track_work
from pipelines.transforms.read import READING, bytes_unit, read_items
from tokcore.corpus.contents import BZIP2, XZ
from tokcore.corpus.corpus import MAX_LINE_BYTES, CorpusFile, TextRange, WorkItem
from tokcore.corpus.formats import corpus_format

PACKERS = {False: bytes, True: gzip.compress, BZIP2: bz2.compress, XZ: lzma.compress}
READ_BYTES, BLOCK_BYTES = 32 << 10, 64 << 10


@pytest.mark.parametrize('times', [1, 6])
@pytest.mark.parametrize('compressed', PACKERS)
def test_what_is_done_is_the_share_that_was_read(tmp_path, compressed, times):
    """Of text that is compressed to a half and to a tenth; bzip2 has blocks of 900 kB."""
    dice = random.Random(5)
    text = ''.join(f'{dice.getrandbits(400):x}\n' * times for _ in range(40_000 // times)).encode()
    path = tmp_path / 'text'
    path.write_bytes(PACKERS[compressed](text))
    size = path.stat().st_size
    file = CorpusFile(str(path), 'text', size, compressed)
    item = WorkItem('train', corpus_format('text')(), 0, (TextRange(file, 0, size),))
    told, read = [], 0
    with listening(told.append), track_work('encode', READING, item.stored_bytes):
        for block in read_items([item], BLOCK_BYTES, MAX_LINE_BYTES):
            read += block.read_bytes
            if compressed:
                ahead = READ_BYTES + size * (900_000 if compressed == BZIP2 else 200_000) / len(
                    text
                )
                assert told[-1].done == pytest.approx(size * read / len(text), abs=ahead)
    assert read == len(text)
    assert [type(event) for event in told] == [WorkDone] * len(told)
    assert (told[-1].done, told[-1].total) == (size, size)
    assert len(told) > (4 if compressed else 1)


@pytest.mark.parametrize(
    ('compressed', 'unit'),
    [([False, False], 'B'), ([False, 'xz'], 'B compressed'), ([True], 'B compressed')],
)
def test_the_unit_says_whether_some_files_are_compressed(compressed, unit):
    assert bytes_unit([CorpusFile('a', 'a', 9, each) for each in compressed]) == unit
