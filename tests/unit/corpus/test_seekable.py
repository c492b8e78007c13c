"""Compressed files with an index of their parts are cut there, and give the rows of their text."""

import dataclasses
import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_in_parts import PACKERS, xz_of_blocks, zstd_with_table
from plain.lines import NamedText, single_rows
from read_format import planned, read_files, texts_of

from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import JsonLines, PlainText, Tsv
from tokcore.corpus.formats import block_rows, plan_items
from tokcore.corpus.line_reading import starting_lines
from tokcore.corpus.seekable import part_ends, text_from
from tokcore.corpus.stats import block_checksums, join_checksums
from tokcore.errors import InputError
from tokcore.text.normalizers import UNSTRIPPED_LINES

PACKED = pytest.mark.parametrize('packer', PACKERS)
PARTS = st.lists(st.text('ab\n', max_size=30).map(str.encode), min_size=1, max_size=6)


def packed_file(packer, texts):
    kind, pack = PACKERS[packer]
    content = pack(texts)
    return CorpusFile('corpus', 'corpus', len(content), kind), lambda path: io.BytesIO(content)


def items_of(chosen, file, opened, item_bytes):
    return planned(chosen, (file,), opened, item_bytes)[1]


def rows_of(chosen, file, opened, item_bytes, block_bytes=1 << 20, longest=1 << 20):
    """The rows of a file, its rejects, and how many bytes of text were read."""
    _, blocks = read_files(chosen, (file,), opened, item_bytes, block_bytes, longest)
    rows, rejects = [], []
    for block in blocks:
        found = block_rows(block, UNSTRIPPED_LINES)
        rows += [(*each,) for each in zip(found.offsets.tolist(), texts_of(found), strict=True)]
        rejects += [(reject.offset, reject.reason) for reject in found.rejects]
    checksums = [each for block in blocks for each in block_checksums(block)]
    return rows, rejects, join_checksums(checksums).bytes


@PACKED
@given(
    PARTS, st.integers(1, 40), st.integers(1, 40), st.one_of(st.integers(1, 12), st.just(1 << 20))
)
def test_every_line_is_read_once_wherever_a_file_is_cut(
    packer, texts, item_bytes, block_bytes, longest
):
    text = b''.join(texts)
    file, opened = packed_file(packer, texts)
    rows, rejects, read = rows_of(PlainText(), file, opened, item_bytes, block_bytes, longest)
    expected = single_rows([NamedText('', text)], None, longest, normalizer=UNSTRIPPED_LINES)
    assert rows == [*zip(expected.offsets, expected.rows, strict=True)]
    assert rejects == [(each.offset, each.reason) for each in expected.rejects]
    assert read == len(text)


@PACKED
def test_there_are_as_many_items_as_parts_where_these_are_large(packer):
    texts = [b'a line\n' * 10, b'and one without an end', b' here\n' * 20, b'', b'the last\n']
    file, opened = packed_file(packer, texts)
    items = items_of(PlainText(), file, opened, 50)
    assert [item.ranges[0].start for item in items] == [0, 71, 213]
    assert items[-1].ranges[0].end == len(b''.join(texts))
    assert sum(item.stored_bytes for item in items) == file.size
    assert min(item.stored_bytes for item in items) > 0
    assert len(items_of(PlainText(), file, opened, file.size)) == 1


@PACKED
def test_formats_of_lines_are_cut_and_quoted_columns_are_not(packer):
    texts = [b'{"text": "%d"}\n' % n * 4 for n in range(9)]
    file, opened = packed_file(packer, texts)
    chosen = JsonLines(('text',))
    assert len(items_of(chosen, file, opened, 40)) == 9
    assert rows_of(chosen, file, opened, 40) == rows_of(chosen, file, opened, 1 << 20)
    texts = [b'name\ttext\n', *(b'%d\ttext %d\n' % (n, n) * 5 for n in range(9))]
    file, opened = packed_file(packer, texts)
    for quoting in ('none', 'csv'):
        chosen = Tsv(('text', 'name'), header=True, quoting=quoting)
        assert len(items_of(chosen, file, opened, 40)) == (9 if quoting == 'none' else 1)
        rows = rows_of(chosen, file, opened, 40)
        assert rows == rows_of(chosen, file, opened, 1 << 20)
        assert rows[0][0][1] == ('text 0', '0')


@PACKED
def test_text_is_read_from_any_byte_on(packer):
    texts = [b'abc', b'', b'defg', b'h']
    file, opened = packed_file(packer, texts)
    for offset in range(10):
        assert b''.join(text_from(file, offset, opened)) == b'abcdefgh'[offset:]


def test_parts_before_are_not_decoded():
    first, last = xz_of_blocks([b'one\n' * 99]), xz_of_blocks([b'two\n' * 99])
    damaged = first[:30] + b'\xff\xff\xff' + first[33:] + last
    file = CorpusFile('corpus', 'corpus', len(damaged), 'xz')
    assert b''.join(text_from(file, 396, lambda path: io.BytesIO(damaged))) == b'two\n' * 99
    with pytest.raises(InputError, match='corpus is damaged within .* begins at byte'):
        list(text_from(file, 395, lambda path: io.BytesIO(damaged)))


@pytest.mark.parametrize('pack', [xz_of_blocks, zstd_with_table])
def test_an_index_that_is_none_leaves_the_file_whole(pack):
    kind = 'xz' if pack is xz_of_blocks else 'zstd'
    content = pack([b'text\n' * 30, b'more\n' * 30])
    bodies = 0
    for place in range(len(content)):
        for changed in (content[:place], content[:place] + b'\x5a' + content[place + 1 :]):
            if changed == content:
                continue
            file = CorpusFile('corpus', 'corpus', len(changed), kind)
            ends = part_ends(file, lambda path, changed=changed: io.BytesIO(changed))
            # What is changed within a part is for its decoder to find.
            bodies += ends == (150, 300)
            if ends not in ((), (150, 300)):
                with pytest.raises(InputError):
                    b''.join(text_from(file, 0, lambda path, changed=changed: io.BytesIO(changed)))
    assert bodies >= 40


def test_what_the_index_tells_must_be_so():
    frames = zstd_with_table([b'some text\n', b'more\n'])
    for text_bytes, offset in ((9, 0), (11, 0)):
        wrong = frames.replace(struct.pack('<I', 10), struct.pack('<I', text_bytes))
        file = CorpusFile('corpus', 'corpus', len(wrong), 'zstd')
        with pytest.raises(InputError, match='does not unpack at byte 0 to the .* its index says'):
            list(text_from(file, offset, lambda path, wrong=wrong: io.BytesIO(wrong)))


def test_an_index_that_has_gone_is_told():
    file, _ = packed_file('frames of zstd', [b'text', b'text'])
    other = bytes(file.size)
    with pytest.raises(InputError, match='had an index when the job was planned'):
        list(text_from(file, 0, lambda path: io.BytesIO(other)))


def test_an_index_of_a_bomb_is_not_used():
    content = zstd_with_table([b'text\n'])
    content = content.replace(struct.pack('<I', 5), struct.pack('<I', 1 << 31))
    file = CorpusFile('corpus', 'corpus', len(content), 'zstd')
    assert part_ends(file, lambda path: io.BytesIO(content)) == ()


def test_indexes_of_other_files_are_refused():
    file, opened = packed_file('blocks of xz', [b'text\n' * 9, b'more\n' * 9])
    with pytest.raises(ValueError):
        plan_items(Split('train', PlainText(), ((file,),)), (), 10)
    plain = dataclasses.replace(file, compressed=False)
    with pytest.raises(ValueError):
        plan_items(Split('train', PlainText(), ((plain,),)), [(10, 20)], 10)


@given(st.text('a\n', max_size=20).map(str.encode), st.data())
def test_lines_that_start_in_a_range(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    sizes = st.integers(1, 5)
    pieces, place = [], max(0, start - 1)
    while place < len(text):
        size = data.draw(sizes)
        pieces.append(text[place : place + size])
        place += size
    begins = [n for n in range(start, end) if n == 0 or text[n - 1 : n] == b'\n']
    wanted = b''.join(text[n:].split(b'\n')[0] + b'\n' * (b'\n' in text[n:]) for n in begins)
    found = list(starting_lines(pieces, start, end)) if start < end else []
    assert b''.join(piece for _, piece in found) == wanted
    assert [place for place, _ in found[:1]] == begins[:1]
    assert all(piece for _, piece in found)
