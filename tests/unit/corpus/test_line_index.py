"""Line feeds counted in chunks, in any units, show where each line begins."""

import gzip
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.bitext_reading import count_lines, index_items, join_counts, range_pieces
from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import Bitext
from tokcore.corpus.stretches import after_newlines
from tokcore.errors import InputError

texts = st.lists(st.sampled_from([b'a', b'\n', b'\r\n', b'\xff', b'bcdefgh' * 5])).map(b''.join)


def counted(text, item_bytes, unit_bytes, zipped=False):
    """A file, and the count of each of its ranges."""
    content = gzip.compress(text) if zipped else text
    file = CorpusFile('s', 's', len(content), zipped)
    split = Split('train', Bitext(), ((file, CorpusFile('t', 't', 0, False)),))
    parts = index_items(split, item_bytes, unit_bytes)
    return file, [
        (part, count_lines(part, range_pieces(part, lambda path: io.BytesIO(content))))
        for part in parts
    ]


@given(texts, st.integers(1, 200), st.integers(1, 300), st.booleans())
def test_each_line_begins_in_its_chunk_after_the_line_feeds_counted_before(
    text, item_bytes, unit_bytes, zipped
):
    file, counts = counted(text, item_bytes, unit_bytes, zipped)
    found = join_counts(file, reversed(counts))
    lengths = [len(line) for line in io.BytesIO(text)]
    assert found.lines == len(lengths)
    assert sum(text_bytes for _, (_, text_bytes, _) in counts) == len(text)
    for line, start in enumerate(itertools.accumulate(lengths, initial=0)):
        if zipped or line == found.lines:
            break
        chunk = found.chunk_of(line)
        skip = line - int(found.newlines_before[chunk])
        assert after_newlines(text, skip, found.start_of(chunk)) == start
        assert start <= found.start_of(chunk + 1)


@given(texts, st.integers(0, 20), st.integers(0, 40))
def test_after_newlines_counts_from_a_position(text, count, start):
    ends = [at + 1 for at in range(start, len(text)) if text[at] == ord('\n')]
    expected = start if count == 0 else ends[count - 1] if count <= len(ends) else None
    assert after_newlines(text, count, start) == expected


def test_after_newlines_goes_through_large_data():
    data = (b'x' * 99_999 + b'\n') * 40
    assert after_newlines(data, 37) == 3_700_000
    assert after_newlines(data, 30, 650_000) == 3_600_000
    assert after_newlines(data, 41) is None


def test_units_are_whole_chunks_and_tile_the_file():
    parts = [part for part, _ in counted(bytes(1000), item_bytes=160, unit_bytes=300)[1]]
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


def test_gzip_is_one_range_and_is_checked():
    _, [(part, count)] = counted(b'a\n' * 500, 16, 16, zipped=True)
    assert count == ([500], 1000, True)
    with pytest.raises(InputError):
        count_lines(part, range_pieces(part, lambda path: io.BytesIO(b'\x1f\x8b')))


def test_counts_that_do_not_cover_the_file_are_a_programmers_mistake():
    file, counts = counted(b'a\n' * 500, 16, 100)
    for wrong in (counts[1:], counts[:-1], counts + counts[-1:], counts[:2] + counts[3:]):
        with pytest.raises(ValueError, match='line counts of s'):
            join_counts(file, wrong)
