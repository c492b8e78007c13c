"""Compressed text is told by its first bytes, read stream by stream, and strict about its end."""

import bz2
import io
import lzma
import random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.corpus.dataset import CorpusFile
from tokcore.corpus.storage import compression
from tokcore.corpus.storage.compression import compression_of
from tokcore.corpus.storage.corpus_text import text_pieces
from tokcore.corpus.storage.gzip_text import PIECE_BYTES
from tokcore.errors import InputError


def zstd(text):
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


PACKERS = {'bzip2': bz2.compress, 'xz': lzma.compress, 'zstd': zstd}
KINDS = pytest.mark.parametrize('kind', PACKERS)


def pieces_of(content, kind):
    file = CorpusFile('corpus', 'corpus', len(content), kind)
    return list(text_pieces(file, lambda path: io.BytesIO(content)))


def read(content, kind):
    return b''.join(pieces_of(content, kind))


@KINDS
@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_streams_one_after_another_are_one_text(kind, texts, padding):
    packed = b''.join(PACKERS[kind](text) for text in texts) + bytes(4 * padding)
    assert read(packed, kind) == b''.join(texts)


@KINDS
def test_it_is_told_by_its_first_bytes(kind, tmp_path):
    suffix = {'bzip2': 'bz2', 'xz': 'xz', 'zstd': 'zst'}[kind]
    for name in (f'a.{suffix}', 'a.txt'):
        path = str(tmp_path / name)
        for text in (b'', b'some text\n'):
            open(path, 'wb').write(PACKERS[kind](text))
            assert compression_of(path, lambda path: open(path, 'rb')) == kind
    whole = PACKERS[kind](b'x')
    for size in range(3):
        open(str(tmp_path / f'a.{suffix}'), 'wb').write(whole[:size])
        assert compression_of(str(tmp_path / f'a.{suffix}'), lambda path: open(path, 'rb')) == kind
        open(str(tmp_path / 'a.txt'), 'wb').write(whole[:size])
        assert compression_of(str(tmp_path / 'a.txt'), lambda path: open(path, 'rb')) is False


@pytest.mark.parametrize('text', [b'BZh9 is how bzip2 begins\n', b'P*M\x18 text', b'(c) text', b'7zXZ'])
def test_text_that_looks_a_little_like_it_is_text(tmp_path, text):
    path = tmp_path / 'a.txt'
    path.write_bytes(text)
    assert compression_of(str(path), lambda path: open(path, 'rb')) is False


def test_skippable_frames_are_passed_over():
    frame = b'\x50\x2a\x4d\x18\x05\x00\x00\x00hello'
    for packed in (frame + zstd(b'text'), zstd(b'te') + frame + zstd(b'xt'), zstd(b'text') + frame):
        assert read(packed, 'zstd') == b'text'


@KINDS
def test_a_file_that_was_cut_off_anywhere_is_refused(kind):
    dice = random.Random(kind)
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
    dice = random.Random(kind)
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
    monkeypatch.setattr(compression, '_FREE_BYTES', 1 << 20)
    monkeypatch.setattr(compression, 'MOST_RATIO', 100)
    with pytest.raises(InputError, match='unpacks to more than 100 times its .* unpack it first'):
        read(PACKERS[kind](bytes(8 << 20)), kind)


@pytest.mark.parametrize('kind', ['bzip2', 'zstd'])
def test_streams_without_text_are_few(kind):
    empty = PACKERS[kind](b'')
    assert read(empty * 1000 + PACKERS[kind](b'text'), kind) == b'text'
    with pytest.raises(InputError, match='more than 100,000 .* streams without any text before'):
        read(empty * 100_001, kind)


@pytest.mark.parametrize('kind', ['xz', 'zstd'])
def test_a_long_text_is_held_against_what_has_been_read_of_its_file(kind, monkeypatch):
    """The end of a file may be anything: what it holds is not yet text."""
    monkeypatch.setattr(compression, '_LONG_BYTES', 4 << 20)
    monkeypatch.setattr(compression, '_LONG_RATIO', 100)
    noise = random.Random(1).randbytes(1 << 20)
    assert len(read(PACKERS[kind](bytes(3 << 20) + noise), kind)) == 4 << 20
    with pytest.raises(InputError, match=r'more than 100 times its first \d+ bytes; .* unpack it'):
        read(PACKERS[kind](bytes(8 << 20) + noise), kind)
