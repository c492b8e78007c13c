"""Lines by the counts of stretches: as counted in the whole text, wherever it is cut."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_in_parts import xz_of_blocks

from tokcore.corpus import stats, stretches
from tokcore.corpus.archive_reading import pieces_from
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.stats import count_newlines, join_newlines
from tokcore.corpus.stretches import TextLines, corpus_index, parse_corpus_index

STRETCH = 5

PARTS = st.lists(st.text('ab\n', max_size=9).map(str.encode), max_size=8)


@pytest.fixture(scope='module', autouse=True)
def stretches_are_small():
    with pytest.MonkeyPatch.context() as patch:
        for module in (stats, stretches):
            patch.setattr(module, 'STRETCH_BYTES', STRETCH)
        patch.setattr(stretches, 'pieces_from', small_pieces)
        yield


def small_pieces(*arguments):
    for piece in pieces_from(*arguments):
        yield from (piece[at : at + 3] for at in range(0, len(piece), 3))


def counted(text):
    return [text[at : at + STRETCH].count(b'\n') for at in range(0, len(text), STRETCH)]


def lines_of(text, pack=bytes, compressed=False):
    """The lines of a file."""
    content = pack(text)
    file = CorpusFile('a', 'a', len(content), compressed)
    return TextLines(file, counted(text), lambda path: io.BytesIO(content))


@given(PARTS)
def test_the_counts_do_not_depend_on_where_a_text_is_cut(parts):
    found, at = [], 0
    for part in parts:
        found, at = join_newlines(found, count_newlines(at, part)), at + len(part)
    assert found == [[*each] for each in enumerate(counted(b''.join(parts)))]


@pytest.mark.parametrize('kind', ['plain', 'gz', 'xz'])
@given(PARTS)
def test_lines_by_bytes_and_bytes_by_lines(kind, parts):
    import gzip

    text = b''.join(parts)
    packers = {'plain': (bytes, False), 'gz': (gzip.compress, True)}
    packers['xz'] = lambda data: xz_of_blocks(parts), 'xz'
    lines = lines_of(text, *packers[kind])
    offsets = np.arange(len(text) + 1)
    assert lines.numbers(offsets).tolist() == [text.count(b'\n', 0, at) for at in offsets]
    for at in offsets.tolist():
        assert lines.numbers(np.array([at])).tolist() == [text.count(b'\n', 0, at)]
    bounds, at = [], 0
    for line in text.splitlines(keepends=True):
        bounds.append((at, at + len(line)))
        at += len(line)
    assert [lines.bounds(number) for number in range(len(bounds))] == bounds
    assert lines.bounds(len(bounds)) is lines.bounds(-1) is None


def test_the_counts_are_read_as_they_were_written():
    counts = [(1, 0, 3), None, ()]
    data = corpus_index(counts)
    assert parse_corpus_index(data) == counts
    for wrong in (b'', data[:-1], data[1:], data.replace(b'3', b'4', 1), corpus_index([])[1:]):
        assert parse_corpus_index(wrong) is None
    assert parse_corpus_index(corpus_index([(-1,)])) is None
