"""Line feeds counted in chunks, in any units, tell where each line begins."""

import gzip
import io
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.formats import index_ranges
from tokcore.corpus.line_formats import Bitext, PlainText
from tokcore.corpus.line_index import count_lines, index_items, join_counts
from tokcore.corpus.line_reading import after_newlines
from tokcore.corpus.tsv import Tsv
from tokcore.errors import InputError

texts = st.lists(st.sampled_from([b'a', b'\n', b'\r\n', b'\xff', b'bcdefgh' * 5])).map(b''.join)


def bitext(source, target, zipped=(False, False)):
    """A split of one pair that lies in memory, and what opens it."""
    contents = {
        path: gzip.compress(text) if compressed else text
        for path, text, compressed in zip(('s', 't'), (source, target), zipped, strict=True)
    }
    files = [
        CorpusFile(path, path, len(contents[path]), compressed)
        for path, compressed in zip(('s', 't'), zipped, strict=True)
    ]
    split = Split('train', Bitext(), (tuple(files),))
    return split, lambda path: io.BytesIO(contents[path])


def index(text, item_bytes, unit_bytes, zipped=False):
    split, open_binary = bitext(text, b'', (zipped, False))
    counts = [count_lines(part, open_binary) for part in index_items(split, item_bytes, unit_bytes)]
    return join_counts(split.files[0][0], reversed(counts))


@given(texts, st.integers(1, 200), st.integers(1, 300), st.booleans())
def test_an_index_counts_lines_and_bytes(text, item_bytes, unit_bytes, zipped):
    found = index(text, item_bytes, unit_bytes, zipped)
    assert found.lines == len(list(io.BytesIO(text)))
    assert found.text_bytes == len(text)


@given(texts, st.integers(1, 200), st.integers(1, 300))
def test_each_line_begins_in_its_chunk_after_the_line_feeds_counted_before(
    text, item_bytes, unit_bytes
):
    found = index(text, item_bytes, unit_bytes)
    lengths = [len(line) for line in io.BytesIO(text)]
    for line, start in enumerate(itertools.accumulate(lengths, initial=0)):
        if line == found.lines:
            break
        chunk = found.chunk_of(line)
        chunk_start = found.start_of(chunk)
        skip = line - int(found.newlines_before[chunk])
        assert after_newlines(text, skip, chunk_start) == start
        assert start <= found.start_of(chunk + 1)


@given(texts, st.integers(0, 20), st.integers(0, 40))
def test_after_newlines_counts_from_a_place(text, count, start):
    places = [place + 1 for place in range(start, len(text)) if text[place] == ord('\n')]
    expected = start if count == 0 else places[count - 1] if count <= len(places) else None
    assert after_newlines(text, count, start) == expected


def test_after_newlines_goes_through_large_data():
    data = (b'x' * 99_999 + b'\n') * 40
    assert after_newlines(data, 37) == 3_700_000
    assert after_newlines(data, 30, 650_000) == 3_600_000
    assert after_newlines(data, 41) is None


def test_units_are_whole_chunks_and_tile_the_file():
    split, _ = bitext(bytes(1000), b'')
    parts = index_items(split, item_bytes=160, unit_bytes=300)
    assert [(part.start, part.end) for part in parts] == [
        (0, 300), (300, 600), (600, 900), (900, 1000)
    ]  # fmt: skip
    assert {part.chunk_bytes for part in parts} == {10}


def test_a_unit_is_8_to_16_mib_by_default():
    file = CorpusFile('s', 's', 100 << 20, False)
    split = Split('train', Bitext(), ((file, file),))
    for item_bytes in (64, 1 << 20, 12 << 20):
        sizes = {part.end - part.start for part in index_items(split, item_bytes)[:5]}
        assert all(7 << 20 < size <= 16 << 20 for size in sizes)


def test_only_bitext_is_indexed():
    file = CorpusFile('s', 's', 100, False)
    for other in (PlainText(), Tsv()):
        assert not index_ranges(Split('train', other, ((file,),)), 64)


def test_gzip_is_one_range_and_is_checked():
    split, open_binary = bitext(b'a\n' * 500, b'', (True, True))
    source, target = index_items(split, 16, 16)
    assert count_lines(source, open_binary).newlines.tolist() == [500]
    assert count_lines(target, open_binary).text_bytes == 0
    with pytest.raises(InputError, match='cut off'):
        content = open_binary('s').read()[:-1]
        changed = CorpusFile('s', 's', len(content), True)
        changed_split = Split('x', Bitext(), ((changed, split.files[0][1]),))
        (part, _) = index_items(changed_split, 16)
        count_lines(part, lambda path: io.BytesIO(content))


def test_counts_that_do_not_cover_the_file_are_a_programmers_mistake():
    split, open_binary = bitext(b'a\n' * 500, b'')
    counts = [count_lines(part, open_binary) for part in index_items(split, 16, 100)]
    for wrong in (counts[1:], counts[:-1], counts + counts[-1:], counts[:2] + counts[3:]):
        with pytest.raises(ValueError, match='line counts of s'):
            join_counts(split.files[0][0], wrong)


def test_ranges_and_counts_cross_process_borders():
    split, open_binary = bitext(b'a\nb', b'')
    (part,) = index_items(split, 16)
    count = pickle.loads(pickle.dumps(count_lines(pickle.loads(pickle.dumps(part)), open_binary)))
    assert (count.range, count.newlines.tolist(), count.ends_with_newline) == (
        part, [0, 1, 0], False
    )  # fmt: skip
