"""Compressed files as text: whatever is damaged is refused by its byte."""

import bz2
import gzip
import io
import lzma
import random
import types
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_members import compression_by

from tokcore.corpus import storage
from tokcore.corpus.corpus import CorpusFile
from tokcore.corpus.storage import PIECE_BYTES, unpacked_pieces, unpacked_stream
from tokcore.errors import InputError


def zstd(text):
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


PACKERS = {True: gzip.compress, 'bzip2': bz2.compress, 'xz': lzma.compress, 'zstd': zstd}
KINDS = pytest.mark.parametrize('kind', PACKERS)


def pieces_of(content, kind):
    file = CorpusFile('corpus', 'corpus', len(content), kind)
    return list(unpacked_pieces(file, lambda path: io.BytesIO(content)))


def read(content, kind):
    return b''.join(pieces_of(content, kind))


@KINDS
@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=4), st.integers(0, 3))
def test_streams_one_after_another_are_one_text(kind, texts, padding):
    packed = b''.join(PACKERS[kind](text) for text in texts) + bytes(4 * padding)
    assert read(packed, kind) == b''.join(texts)


@KINDS
def test_it_is_known_by_its_first_bytes(kind):
    suffix = {True: 'gz', 'bzip2': 'bz2', 'xz': 'xz', 'zstd': 'zst'}[kind]
    for name in (f'a.{suffix}', 'a.txt'):
        for text in (b'', b'some text\n'):
            assert compression_by(PACKERS[kind](text)[:32], name) == kind
    whole = PACKERS[kind](b'x')
    for size in range(3):
        assert compression_by(whole[:size], f'a.{suffix}') == kind
        is_known = kind is True and size == 2
        assert compression_by(whole[:size], 'a.txt') is is_known


@pytest.mark.parametrize(
    'text', [b'BZh9 is how bzip2 begins\n', b'P*M\x18 text', b'(c) text', b'7zXZ']
)
def test_text_that_looks_a_little_like_it_is_text(text):
    assert compression_by(text, 'a.txt') is False


def test_skippable_frames_are_passed_over():
    frame = b'\x50\x2a\x4d\x18\x05\x00\x00\x00hello'
    for packed in (frame + zstd(b'text'), zstd(b'te') + frame + zstd(b'xt'), zstd(b'text') + frame):
        assert read(packed, 'zstd') == b'text'


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 3000, 300_000]), st.booleans()), max_size=5),
    st.booleans(),
    st.integers(1, 5000),
    st.randoms(use_true_random=False),
)
def test_zstd_of_any_blocks_is_read_in_small_pieces(frames, has_checksum, read_bytes, dice):
    """Frames of noise, which is stored as it is, and of zeros, which are a byte and its number."""
    texts = [dice.randbytes(size) if is_noise else bytes(size) for size, is_noise in frames]
    packer = zstandard.ZstdCompressor(write_checksum=has_checksum)
    packed = b''.join(map(packer.compress, [b'text', *texts]))
    file = CorpusFile('a', 'a', len(packed), 'zstd')
    stream = io.BytesIO(packed)
    reads = types.SimpleNamespace(read=lambda size: stream.read(min(size, read_bytes)))
    assert b''.join(unpacked_stream(file, reads)) == b'text' + b''.join(texts)


def test_a_few_kilobytes_of_zstd_are_not_unpacked_at_once():
    packed = zstandard.compress(bytes(64 << 20))
    assert len(packed) < 8 << 10
    pieces = unpacked_stream(CorpusFile('a', 'a', len(packed), 'zstd'), io.BytesIO(packed))
    sizes = [len(piece) for piece in pieces]
    assert sum(sizes) == 64 << 20 and max(sizes) <= PIECE_BYTES + (128 << 10)


@KINDS
def test_a_file_that_was_cut_off_anywhere_is_refused(kind):
    dice = random.Random(str(kind))
    text = bytes(dice.choices(b'abc \n', k=3000))
    packed = PACKERS[kind](text)
    twice = packed + packed
    for size in [0, 1, 5, *dice.sample(range(6, len(packed)), 30)]:
        with pytest.raises(InputError, match=r'corpus (ends at byte|has something else)'):
            read(packed[:size], kind)
        if size > 6:
            with pytest.raises(InputError, match=rf'begins at byte {len(packed)}: it was cut off'):
                read(twice[: len(packed) + size], kind)
    assert read(twice, kind) == 2 * text


@KINDS
def test_damage_is_told_with_its_place(kind):
    dice = random.Random(str(kind))
    text = bytes(dice.choices(b'abcdefgh \n', k=5000))
    packed = PACKERS[kind](text)
    refused = 0
    for _ in range(60):
        bad = bytearray(packed)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        try:
            found = read(bytes(bad), kind)
        except InputError as error:
            refused += 1
            assert 'corpus' in str(error) and 'byte' in str(error)
        else:
            assert found == text  # a bit that nobody looks at
    assert refused > 50


@KINDS
def test_damage_in_a_later_stream_names_the_stream(kind):
    first, second = PACKERS[kind](b'one\n'), bytearray(PACKERS[kind](b'two\n' * 99))
    second[len(second) // 2] ^= 0xFF
    with pytest.raises(InputError, match=f'begins at byte {len(first)} '):
        read(first + bytes(second), kind)


@KINDS
def test_what_is_appended_is_refused(kind):
    packed = PACKERS[kind](b'text')
    with pytest.raises(InputError, match='something else than|is damaged'):
        read(packed + b'more', kind)


@KINDS
def test_pieces_are_bounded(kind):
    text = bytes(3 * PIECE_BYTES + 17)
    assert max(map(len, pieces_of(PACKERS[kind](text), kind))) <= PIECE_BYTES


@KINDS
def test_a_file_that_unpacks_to_far_too_much_is_refused(kind, monkeypatch):
    monkeypatch.setattr(storage, '_FREE_BYTES', 1 << 20)
    monkeypatch.setattr(storage, 'MOST_RATIO', 100)
    with pytest.raises(InputError, match='unpacks to more than 100 times its .* unpack it first'):
        read(PACKERS[kind](bytes(8 << 20)), kind)


@pytest.mark.parametrize('kind', [True, 'bzip2', 'zstd'])
def test_streams_without_text_are_few(kind):
    empty = PACKERS[kind](b'')
    assert read(empty * 1000 + PACKERS[kind](b'text'), kind) == b'text'
    with pytest.raises(InputError, match='more than 100,000 .* streams without any text before'):
        read(empty * 100_001, kind)


@pytest.mark.parametrize('kind', ['xz', 'zstd'])
def test_a_long_text_is_held_against_what_has_been_read_of_its_file(kind, monkeypatch):
    """The end of a file may be anything: what it holds is not yet text."""
    monkeypatch.setattr(storage, '_LONG_BYTES', 4 << 20)
    monkeypatch.setattr(storage, '_LONG_RATIO', 100)
    noise = random.Random(1).randbytes(1 << 20)
    assert len(read(PACKERS[kind](bytes(3 << 20) + noise), kind)) == 4 << 20
    with pytest.raises(InputError, match=r'more than 100 times its first \d+ bytes; .* unpack it'):
        read(PACKERS[kind](bytes(8 << 20) + noise), kind)


def stored(content, compressed=True):
    """A file that lies in memory, and what opens it."""
    file = CorpusFile('dir/corpus', 'corpus', len(content), compressed)
    return file, lambda path: io.BytesIO(content)


def read_gzip(content, compressed=True):
    return b''.join(unpacked_pieces(*stored(content, compressed)))


@given(st.binary(max_size=200))
def test_plain_files_are_read_as_they_are(text):
    assert read_gzip(text, compressed=False) == text


@settings(max_examples=25)
@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_changed_bit_is_refused_or_harmless(text, data):
    content = bytearray(gzip.compress(text, mtime=0))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        # The header's time and the bits that fill a last byte say nothing about the text.
        assert read_gzip(bytes(content)) == text
        assert place < len(content) - 8  # checksum and length
    except InputError as error:
        assert 'dir/corpus' in str(error)


@pytest.mark.parametrize('garbage', [b'x', b'xyz', b'\x1f', b'\x1fx', b'\0\0x', b'text\n' * 9])
def test_garbage_after_a_member_names_its_place(garbage):
    content = gzip.compress(b'text\n')
    place = len(content) + len(garbage) - len(garbage.lstrip(b'\0'))
    with pytest.raises(InputError, match=f'something else than gzip data at byte {place},'):
        read_gzip(content + garbage)


@pytest.mark.parametrize('member_bytes', [1, 1000, 40_000])
def test_members_may_cross_the_reads_anywhere(member_bytes):
    text = bytes(range(256)) * 800
    texts = [text[at : at + member_bytes] for at in range(0, 50 * member_bytes, member_bytes)]
    content = b''.join(gzip.compress(part, compresslevel=0) for part in texts)
    assert read_gzip(content) == b''.join(texts)


@pytest.mark.parametrize(
    'path, content, expected',
    [
        ('a.gz', b'plain text', False),
        ('a.gz', b'\x1f\x8b', True),
        ('a.gz', b'\x1f', True),
        ('a.gz', b'', True),
        ('a.txt', b'\x1f', False),
        ('a.txt', b'', False),
        ('a.gz', b'x', False),
    ],
)
def test_gzip_is_told_by_content_and_by_name_only_if_the_file_is_too_short(path, content, expected):
    assert compression_by(content, path) is expected


def test_a_file_that_is_missing_is_named(tmp_path):
    path = str(tmp_path / 'missing')
    with pytest.raises(InputError, match='missing cannot be read .No such file'):
        list(unpacked_pieces(CorpusFile(path, 'missing', 1, False), lambda path: open(path, 'rb')))


@pytest.mark.parametrize('compressed', [False, True])
def test_a_file_that_changed_its_size_is_refused(compressed):
    content = gzip.compress(b'text\n')
    file, _ = stored(content, compressed)
    with pytest.raises(InputError, match=f'has {len(content) + 1} bytes but had {len(content)}'):
        list(unpacked_pieces(file, lambda path: io.BytesIO(content + b'\0')))


def test_a_file_that_fails_while_it_is_read_is_named():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError(5, 'Input/output error')

    file, _ = stored(b'text', compressed=False)
    with pytest.raises(InputError, match=r'dir/corpus cannot be read \(Input/output error\)'):
        list(unpacked_pieces(file, lambda path: Broken(b'text')))


def test_files_that_hand_out_a_byte_at_a_time_are_read_whole():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 1))

    content = gzip.compress(b'one\n') + bytes(2) + gzip.compress(b'two\n')
    file, _ = stored(content)
    assert b''.join(unpacked_pieces(file, lambda path: Slow(content))) == b'one\ntwo\n'


def test_streams_with_another_wrapper_than_gzip_are_refused():
    with pytest.raises(InputError, match='damaged .*after byte 0'):
        read_gzip(zlib.compress(b'text'))
