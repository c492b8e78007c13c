"""A gzip file is read to its last byte or refused with the place where it breaks."""

import gzip
import io
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.corpus.dataset import CorpusFile
from tokcore.corpus.storage import gzip_text
from tokcore.corpus.storage.compression import compression_of
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.errors import InputError


def stored(content, compressed=True):
    """A file that lies in memory, and what opens it."""
    file = CorpusFile('dir/corpus', 'corpus', len(content), compressed)
    return file, lambda path: io.BytesIO(content)


def read(content, compressed=True):
    return b''.join(text_pieces(*stored(content, compressed)))


members = st.lists(st.binary(max_size=60), min_size=1, max_size=5)


@settings(deadline=None)
@given(members, st.integers(0, 70))
def test_members_and_zero_padding_are_read_as_one_text(texts, padding):
    content = b''.join(gzip.compress(text) for text in texts) + bytes(padding)
    assert read(content) == b''.join(texts)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_plain_files_are_read_as_they_are(text):
    assert read(text, compressed=False) == text


@settings(deadline=None, max_examples=25)
@given(members)
def test_a_file_cut_off_anywhere_inside_a_member_is_refused(texts):
    packed = [gzip.compress(text) for text in texts]
    content = b''.join(packed)
    # A file that ends where a member ends is whole: nothing in the format says otherwise.
    whole = {sum(map(len, packed[:count])) for count in range(1, len(packed) + 1)}
    for size in set(range(len(content))) - whole:
        with pytest.raises(InputError, match=r'dir/corpus .*byte \d+.*get the file again'):
            read(content[:size])


@settings(deadline=None, max_examples=25)
@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_changed_bit_is_refused_or_harmless(text, data):
    content = bytearray(gzip.compress(text, mtime=0))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        # The header's time and the bits that fill a last byte say nothing about the text.
        assert read(bytes(content)) == text
        assert place < len(content) - 8  # checksum and length
    except InputError as error:
        assert 'dir/corpus' in str(error)


def test_a_wrong_checksum_names_the_member():
    first, second = gzip.compress(b'one\n'), bytearray(gzip.compress(b'two\n'))
    second[-8] ^= 1
    with pytest.raises(InputError, match=f'damaged .*member that begins at byte {len(first)}'):
        read(first + bytes(second))


def test_a_cut_off_file_names_the_place_and_the_member():
    first, second = gzip.compress(b'one\n'), gzip.compress(b'two\n')
    content = first + second[:-3]
    places = f'ends at byte {len(content)}, inside the .* that begins at byte {len(first)}:'
    with pytest.raises(InputError, match=places):
        read(content)


@pytest.mark.parametrize('garbage', [b'x', b'xyz', b'\x1f', b'\x1fx', b'\0\0x', b'text\n' * 9])
def test_garbage_after_a_member_names_its_place(garbage):
    content = gzip.compress(b'text\n')
    place = len(content) + len(garbage) - len(garbage.lstrip(b'\0'))
    with pytest.raises(InputError, match=f'something else than gzip data at byte {place},'):
        read(content + garbage)


@pytest.mark.parametrize('member_bytes', [1, 1000, 40_000])
def test_members_may_cross_the_reads_anywhere(member_bytes):
    text = bytes(range(256)) * 800
    texts = [text[at : at + member_bytes] for at in range(0, 50 * member_bytes, member_bytes)]
    content = b''.join(gzip.compress(part, compresslevel=0) for part in texts)
    assert read(content) == b''.join(texts)


def test_pieces_are_bounded_even_of_a_file_that_inflates_a_thousandfold():
    text = bytes(5 * gzip_text.PIECE_BYTES + 17)
    pieces = list(text_pieces(*stored(gzip.compress(text))))
    assert b''.join(pieces) == text
    assert max(map(len, pieces)) <= gzip_text.PIECE_BYTES


@pytest.mark.parametrize(
    'path, content, expected',
    [
        ('a.gz', gzip.compress(b'', mtime=0), True),
        ('a.txt', gzip.compress(b'text', mtime=0), True),
        ('a.gz', b'plain text', False),
        ('a.gz', b'\x1f\x8b', True),
        ('a.gz', b'\x1f', True),
        ('a.gz', b'', True),
        ('a.txt', b'\x1f', False),
        ('a.txt', b'', False),
        ('a.gz', b'x', False),
    ],
)
def test_gzip_is_told_by_content_and_by_name_only_if_the_file_is_too_short(
    path, content, expected
):
    assert compression_of(path, lambda path: io.BytesIO(content)) is expected


def test_a_file_that_is_missing_is_named(tmp_path):
    path = str(tmp_path / 'missing')
    with pytest.raises(InputError, match='missing cannot be read .No such file'):
        compression_of(path, lambda path: open(path, 'rb'))
    with pytest.raises(InputError, match='missing cannot be read'):
        list(text_pieces(CorpusFile(path, 'missing', 1, False), lambda path: open(path, 'rb')))


@pytest.mark.parametrize('compressed', [False, True])
def test_a_file_that_changed_its_size_is_refused(compressed):
    content = gzip.compress(b'text\n')
    file, _ = stored(content, compressed)
    with pytest.raises(InputError, match=f'has {len(content) + 1} bytes but had {len(content)}'):
        list(text_pieces(file, lambda path: io.BytesIO(content + b'\0')))


def test_a_file_that_fails_while_it_is_read_is_named():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, 'Input/output error')

    file, _ = stored(b'text', compressed=False)
    with pytest.raises(InputError, match=r'dir/corpus cannot be read \(Input/output error\)'):
        list(text_pieces(file, lambda path: Broken(b'text')))


def test_files_that_hand_out_a_byte_at_a_time_are_read_whole():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 1))

    content = gzip.compress(b'one\n') + bytes(2) + gzip.compress(b'two\n')
    file, _ = stored(content)
    assert b''.join(text_pieces(file, lambda path: Slow(content))) == b'one\ntwo\n'


def test_streams_with_another_wrapper_than_gzip_are_refused():
    with pytest.raises(InputError, match='damaged .*after byte 0'):
        read(zlib.compress(b'text'))
