"""A line that is too long is never kept in memory, and its reject has its size and its beginning."""

import base64
import gzip
import io
import json
import tracemalloc

import pytest
from read_format import became_of, read_files

from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.declarations import Bitext, PlainText, Tsv
from tokcore.corpus.formats import block_rows
from tokcore.corpus.stats import block_stats
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES

FORMATS = {'text': PlainText(), 'tsv': Tsv((1, 0)), 'bitext': Bitext()}


def stats_of(became, on_error):
    return [
        block_stats(block, block_rows(block, T2T_LINES), (became.split,), on_error)
        for block in became.blocks
    ]


def rejected_json(line, most=2000):
    found = []
    for size in (1, 1 << 20):
        became = became_of(PlainText(), b'a\n' + line + b'\n', size, size, most)
        found.append(b''.join(r.json_lines for s in stats_of(became, 'skip') for r in s.rejected))
    assert found[0] == found[1]
    return json.loads(found[0])


def test_a_rejected_line_has_its_size_and_its_beginning():
    found = rejected_json(b'ab' * 5000)
    assert found == {'file': 'corpus', 'offset': 2, 'bytes': 10_000, 'beginning': 'ab' * 500}
    # The beginning ends with a whole character.
    assert rejected_json('字'.encode() * 5000)['beginning'] == '字' * 333
    assert rejected_json('𝄞'.encode() * 5000)['beginning'] == '𝄞' * 250


@pytest.mark.parametrize('line', [b'\xff' * 5000, b'a\xe5b' + b'c' * 5000, b'abc\xe5\xad'])
def test_a_beginning_that_is_not_utf8_is_in_base64(line):
    assert base64.b64decode(rejected_json(line, 3)['beginning_base64']) == line[:1000]


@pytest.mark.parametrize('size', [1, 1 << 20])
def test_the_error_has_the_side_and_the_byte(size):
    texts = (b'a\nb\n', b'c\n' + b'd' * 300 + b'\n')
    became = became_of(Bitext(), texts, size, size, max_line_bytes=200)
    with pytest.raises(InputError, match='corpus1: the line that starts at byte 2 has 300 bytes'):
        stats_of(became, 'stop')


class Zeros(io.RawIOBase):
    """A file of one line of zero bytes, which takes no memory."""

    def __init__(self, size):
        self._size, self._position = size, 0

    def seekable(self):
        return True

    def seek(self, position, whence=0):
        self._position = position + (self._size if whence == 2 else 0)
        return self._position

    def tell(self):
        return self._position

    def read(self, size=-1):
        size = min(size, self._size - self._position)
        self._position += size
        return bytes(size)


SIZE = 200 << 20


@pytest.mark.parametrize(
    ('kind', 'zipped'),
    [
        ('text', False),
        ('tsv', True),
        ('bitext', False),
        pytest.param('bitext', True, marks=pytest.mark.slow),
    ],
)
def test_a_line_of_any_size_takes_no_more_than_a_line_that_is_allowed(kind, zipped):
    content = gzip.compress(b'x' * (1 << 20)) * (SIZE >> 20)
    size = len(content) if zipped else SIZE
    sides = len(FORMATS[kind].roles)
    files = tuple(CorpusFile(path, path, size, zipped) for path in ('0.txt', '1.txt')[:sides])
    open_binary = lambda path: io.BytesIO(content) if zipped else Zeros(SIZE)  # noqa: E731
    tracemalloc.start()
    try:
        _, [block] = read_files(FORMATS[kind], files, open_binary, 1 << 20, 1 << 20, 4 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [line.length for line in block.long_lines] == [SIZE] * sides
    assert peak < 24 << 20
