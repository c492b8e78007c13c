"""A line beyond the bound is left out alike wherever the corpus is cut, and is never held."""

import base64
import gzip
import io
import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.corpus.corpus import MAX_LINE_BYTES, CorpusFile, Split
from tokcore.corpus.formats import block_rows, format_reader, index_ranges, plan_items, read_blocks
from tokcore.corpus.line_formats import Bitext, PlainText
from tokcore.corpus.stats import LineTally, add_tallies, block_stats, checksum_file, join_checksums
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES

FORMATS = {'text': PlainText(), 'tsv': Tsv((1, 0)), 'bitext': Bitext()}


def indexed(split, item_bytes, open_binary):
    return [
        format_reader(split.format).index(each, open_binary)
        for each in index_ranges(split, item_bytes)
    ]


class Corpus:
    """A split of files in memory, one for each side."""

    def __init__(self, kind, texts, zipped):
        contents = {
            f'{side}.txt': gzip.compress(text, 1) if is_zipped else text
            for side, (text, is_zipped) in enumerate(zip(texts, zipped))
        }
        files = [
            CorpusFile(path, path, len(content), is_zipped)
            for (path, content), is_zipped in zip(contents.items(), zipped)
        ]
        self.open = lambda path: io.BytesIO(contents[path])
        self.files = files
        self.split = Split('train', FORMATS[kind], (tuple(files),))

    def blocks(self, item_bytes, max_line_bytes, block_bytes=None):
        index = indexed(self.split, item_bytes, self.open)
        return [
            block
            for item in plan_items(self.split, index, item_bytes)
            for block in read_blocks(item, self.open, block_bytes or item_bytes, max_line_bytes)
        ]


def found_in(corpus, item_bytes, max_line_bytes):
    """All that is known of the lines: texts with offsets, tally, rejected lines, whole texts."""
    rows, tallies, rejected, checksums = [], [], {}, []
    for block in corpus.blocks(item_bytes, max_line_bytes):
        kept = block_rows(block, T2T_LINES)
        texts = [[side.row(index) for side in kept.sides] for index in range(len(kept))]
        rows += list(zip(kept.offsets.tolist(), texts))
        stats = block_stats(block, kept, (corpus.split,), 'skip')
        tallies.append(stats.tally)
        checksums += stats.checksums
        for lines in stats.rejected:
            rejected[lines.reason] = rejected.get(lines.reason, b'') + lines.json_lines
    sides = [
        join_checksums([each for each in checksums if each.side == side])
        for side in range(len(corpus.files))
    ]
    assert sides == [checksum_file(file, corpus.open) for file in corpus.files]
    return rows, add_tallies('train', tallies), rejected


def line_of(reject):
    """What a line of a rejected file is for, by the rules of its kind."""
    fields = json.loads(reject)
    return (fields['file'], fields['offset'], fields['bytes'])


def plain_findings(corpus, kind, texts, max_line_bytes):
    """The same from whole lines, one after another; of rejected lines only those too long."""
    lines = [[line.removesuffix(b'\n') for line in io.BytesIO(text)] for text in texts]
    rows, empty, invalid, missing, long = [], 0, 0, 0, []
    offsets = [0] * len(texts)
    for pair in zip(*lines, strict=True):
        starts = offsets
        offsets = [offset + len(line) + 1 for offset, line in zip(offsets, pair)]
        sizes = [len(line) for line in pair]
        if max(sizes) > max_line_bytes:
            side = [size > max_line_bytes for size in sizes].index(True)
            long.append((f'{side}.txt', starts[side], sizes[side]))
            continue
        try:
            cells = [line.replace(b'\r', b'').decode() for line in pair]
        except UnicodeDecodeError:
            invalid += 1
            continue
        if kind == 'tsv' and cells[0].strip():
            fields = cells[0].split('\t')
            if len(fields) < 2:
                missing += 1
                continue
            cells = [fields[1], fields[0]]
        cells = [cell.strip() for cell in cells]
        if all(cells):
            rows.append((starts[0], cells))
        else:
            empty += 1
    count = len(lines[0])
    left_out = {'invalid_utf8': invalid, 'missing_column': missing, 'too_long': len(long)}
    return rows, LineTally('train', count, len(rows), empty, left_out), long


line = st.one_of(
    st.binary(max_size=6).map(lambda line: line.replace(b'\n', b'')),
    st.sampled_from([b'', b'a\tb', b'\xff', b'x' * 9, b'x' * 40, 'é字'.encode() * 20]),
    st.integers(0, 60).map(lambda size: b'y' * size),
)


@st.composite
def corpora(draw):
    kind = draw(st.sampled_from(['text', 'tsv', 'bitext']))
    sides = 2 if kind == 'bitext' else 1
    lines = draw(st.lists(st.tuples(*[line] * sides), max_size=12))
    texts = []
    for side in range(sides):
        text = b''.join(pair[side] + b'\n' for pair in lines)
        ends_open = text and lines[-1][side] and draw(st.booleans())
        texts.append(text[:-1] if ends_open else text)
    zipped = draw(st.tuples(*[st.booleans()] * sides))
    return kind, texts, zipped


bounds = st.one_of(st.integers(1, 70), st.sampled_from([8, 9, 10]))


@given(corpora(), st.integers(1, 80), bounds)
@example(('text', [b'xxxx'], (False,)), 1, 3)
@example(('text', [b'a\n' + b'x' * 40 + b'\nb'], (True,)), 4, 39)
@example(('bitext', [b'x' * 40 + b'\nb\n', b'y\nz'], (False, False)), 2, 10)
@example(('bitext', [b'x' * 40 + b'\nb\n', b'y' * 30 + b'\nz'], (False, True)), 35, 29)
@example(('bitext', [b'y' * 12 + b'\n', b'x' * 40 + b'\n'], (True, False)), 20, 10)
def test_lines_are_left_out_alike_wherever_they_are_cut(drawn, item_bytes, bound):
    kind, texts, zipped = drawn
    corpus = Corpus(kind, texts, zipped)
    expected_rows, expected_tally, expected_long = plain_findings(corpus, kind, texts, bound)
    rows, tally, rejected = found_in(corpus, item_bytes, bound)
    assert (rows, tally) == (expected_rows, expected_tally)
    long = rejected.get('too_long', b'').splitlines()
    assert [line_of(each) for each in long] == expected_long
    # All lines in one block, which has room for any of them: the same bytes.
    whole = found_in(Corpus(kind, texts, (False,) * len(texts)), 1 << 20, bound)
    assert (rows, tally, rejected) == whole


@given(corpora(), st.integers(1, 80))
def test_blocks_are_what_they_were_where_no_line_is_too_long(drawn, item_bytes):
    kind, texts, zipped = drawn
    corpus = Corpus(kind, texts, zipped)
    blocks = corpus.blocks(item_bytes, 100)
    assert [block.texts for block in blocks] == [
        block.texts for block in corpus.blocks(item_bytes, MAX_LINE_BYTES)
    ]
    assert not any(block.long_lines for block in blocks)


def rejected_json(line, bound=2000):
    corpus = Corpus('text', [b'a\n' + line + b'\n'], (False,))
    _, tally, rejected = found_in(corpus, 1 << 20, bound)
    assert tally.left_out == {'too_long': 1}
    streamed = found_in(corpus, 7, bound)[2]
    assert streamed == rejected
    return json.loads(rejected['too_long'])


def test_a_rejected_line_has_its_size_and_its_beginning():
    found = rejected_json(b'ab' * 5000)
    assert found == {'file': '0.txt', 'offset': 2, 'bytes': 10_000, 'beginning': 'ab' * 500}


def test_the_beginning_ends_with_a_whole_character():
    assert rejected_json('字'.encode() * 5000)['beginning'] == '字' * 333
    assert rejected_json('𝄞'.encode() * 5000)['beginning'] == '𝄞' * 250


@pytest.mark.parametrize('line', [b'\xff' * 5000, b'a\xe5b' + b'c' * 5000])
def test_a_beginning_that_is_not_utf8_is_in_base64(line):
    assert base64.b64decode(rejected_json(line)['beginning_base64']) == line[:1000]


def test_a_short_line_that_ends_within_a_character_was_not_cut_by_us():
    assert base64.b64decode(rejected_json(b'abc\xe5\xad', 3)['beginning_base64']) == b'abc\xe5\xad'


@pytest.mark.parametrize('item_bytes', [1, 1 << 20])
def test_the_sentence_tells_place_size_bound_and_both_remedies(item_bytes):
    corpus = Corpus('bitext', [b'a\nb\n', b'c\n' + b'd' * 300 + b'\n'], (False, False))
    with pytest.raises(InputError) as refused:
        for block in corpus.blocks(item_bytes, 200):
            block_stats(block, block_rows(block, T2T_LINES), (corpus.split,), 'stop')
    assert str(refused.value) == (
        '1.txt: the line that starts at byte 2 has 300 bytes, more than the 200 of '
        '--max-line-size; give a larger --max-line-size, or leave such lines out with '
        '--on-error=skip'
    )


class Zeros(io.RawIOBase):
    """A file of one line of zero bytes, of which none is held."""

    def __init__(self, size):
        self._size, self._place = size, 0

    def seekable(self):
        return True

    def seek(self, place, whence=0):
        self._place = place + (self._size if whence == 2 else 0)
        return self._place

    def tell(self):
        return self._place

    def read(self, size=-1):
        size = min(size, self._size - self._place)
        self._place += size
        return bytes(size)


def members(size):
    """A gzip file of one line, a megabyte a member."""
    return gzip.compress(b'x' * (1 << 20)) * (size >> 20)


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
    content = members(SIZE)
    size = len(content) if zipped else SIZE
    files = [CorpusFile(path, path, size, zipped) for path in ('0.txt', '1.txt')]
    open_binary = lambda path: io.BytesIO(content) if zipped else Zeros(SIZE)  # noqa: E731
    sides = len(FORMATS[kind].roles)
    split = Split('train', FORMATS[kind], (tuple(files[:sides]),))
    tracemalloc.start()
    try:
        index = indexed(split, 1 << 20, open_binary)
        blocks = [
            block
            for item in plan_items(split, index, 1 << 20)
            for block in read_blocks(item, open_binary, 1 << 20, 4 << 20)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    [block] = blocks
    assert [line.length for line in block.long_lines] == [SIZE] * sides
    assert peak < 24 << 20
