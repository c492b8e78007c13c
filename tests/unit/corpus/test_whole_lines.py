"""A text in any pieces is cut into the same blocks, and a line that is too long is never held."""

import itertools
import tracemalloc

import google_crc32c
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.corpus.dataset import LongLine
from tokcore.corpus.formats.whole_lines import whole_lines
from tokcore.corpus.long_lines import BEGINNING_BYTES, LongLineReader, is_longer, long_line

pieces_of_text = st.lists(st.text('a\n').map(str.encode))
sizes = st.integers(1, 12)


@settings(deadline=None)
@given(pieces_of_text, sizes)
def test_whole_lines_are_as_few_as_fill_a_block(pieces, block_bytes):
    blocks = list(whole_lines(pieces, block_bytes))
    assert b''.join(blocks) == b''.join(pieces)
    for block in blocks[:-1]:
        assert block.endswith(b'\n')
    for block in blocks:
        lines = block.splitlines(keepends=True)
        assert sum(map(len, lines[:-1])) < block_bytes
    for block in blocks[:-1]:
        assert len(block) >= block_bytes


def plain_blocks(text, block_bytes, max_line_bytes):
    """The lines of a text, put into a block until it is full; what fills it may come alone."""
    blocks, held, offset = [], b'', 0
    for line in text.splitlines(keepends=True):
        if len(held) + len(line) < block_bytes:
            held += line
            continue
        if len(line.removesuffix(b'\n')) > max_line_bytes:
            blocks += [held] if held else []
            start = offset + len(held)
            size = len(line.removesuffix(b'\n'))
            crc32c = google_crc32c.value(line)
            blocks.append(LongLine(1, start, size, len(line), crc32c, line[: min(size, 1000)]))
        else:
            blocks.append(held + line)
        offset += len(held) + len(line)
        held = b''
    return blocks + ([held] if held else [])


@settings(deadline=None)
@given(pieces_of_text, sizes, sizes)
@example([b'aaaa'], 4, 3)
@example([b'a\naaa', b'a\n', b'a'], 4, 3)
@example([b'aaaa\n'], 9, 3)
def test_a_line_that_fills_a_block_and_is_too_long_comes_alone(pieces, block_bytes, max_line_bytes):
    text = b''.join(pieces)
    found = list(whole_lines(pieces, block_bytes, max_line_bytes, side=1))
    assert found == plain_blocks(text, block_bytes, max_line_bytes)


def test_a_long_line_is_read_over_and_not_held():
    piece = b'x' * 100_000
    tracemalloc.start()
    try:
        [line] = whole_lines(itertools.repeat(piece, 500), 100, 200_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert line.bytes == 50_000_000
    assert peak < 2_000_000


def test_a_block_has_at_least_a_byte():
    with pytest.raises(ValueError, match='block_bytes'):
        whole_lines([], 0)


@given(st.binary(max_size=40).map(lambda line: line.replace(b'\n', b'')), st.booleans(), sizes)
def test_what_is_kept_of_a_long_line_says_all_but_its_bytes(line, is_ended, step):
    text = line + b'\n' * is_ended
    pieces = [text[start : start + step] for start in range(0, len(text), step)]
    kept = long_line(1, 70, pieces)
    assert kept == LongLine(1, 70, len(line), len(text), google_crc32c.value(text), line)


def test_a_long_line_is_known_by_its_beginning():
    kept = long_line(0, 0, [b'ab' * 400, b'cd' * 400, b'\n'])
    assert kept.beginning == b'ab' * 400 + b'cd' * 100
    assert len(kept.beginning) == BEGINNING_BYTES


def test_a_line_ends_within_a_piece():
    reader = LongLineReader(0, 0)
    assert reader.take(b'ab', 0) == 2 and not reader.is_ended
    assert reader.take(b'b\nc\n', 0) == 2 and reader.is_ended


@pytest.mark.parametrize('line, expected', [(b'abc', False), (b'abc\n', False), (b'abcd', True)])
def test_the_line_feed_does_not_count(line, expected):
    assert is_longer(line, 3) is expected
