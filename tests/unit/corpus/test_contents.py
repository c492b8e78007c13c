"""Files are known by their first bytes, and text is never taken for anything else."""

import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import struct
import tarfile
import zipfile

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from packed_members import compression_by
from pyarrow import feather, orc, parquet

from tokcore.corpus.contents import (
    BZIP2,
    HEAD_BYTES,
    PARQUET,
    TAR,
    TEXT,
    XML,
    XZ,
    ZIP,
    ZSTD,
    Inside,
    Look,
    identify,
    look,
    refuse,
    refuse_but,
)
from tokcore.errors import InputError

SPACES = '\t\n\r'
characters = st.characters(codec='utf-8', exclude_categories=['Cs'])
texts = st.text(characters, max_size=200).map(
    lambda text: ''.join(each for each in text if each >= ' ' or each in SPACES)
)


def written(write):
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def tar_of(form, names=('a.txt',)):
    def write(sink):
        with tarfile.open(fileobj=sink, mode='w', format=form) as tar:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 6
                tar.addfile(member, io.BytesIO(b'hello\n'))

    return written(write)


def zip_of(*names):
    def write(sink):
        with zipfile.ZipFile(sink, 'w') as packed:
            for name in names:
                packed.writestr(name, 'hello\n')

    return written(write)


def record_file():
    def masked(data):
        crc = google_crc32c.value(data)
        return struct.pack('<I', ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack('<Q', 5)
    return length + masked(length) + b'hello' + masked(b'hello')


def database(path):
    with sqlite3.connect(path) as connection:
        connection.execute('create table texts (text)')
    return path.read_bytes()


TABLE = pa.table({'text': ['hello', 'world']})
V7 = bytearray(tar_of(tarfile.USTAR_FORMAT))
V7[257:265] = bytes(8)  # the oldest tars have no magic
V7[148:156] = b' ' * 8
V7[148:156] = b'%06o\0 ' % sum(V7[:512])

KNOWN = {
    'a tar archive': [
        tar_of(tarfile.USTAR_FORMAT), tar_of(tarfile.GNU_FORMAT), bytes(V7),
        tar_of(tarfile.PAX_FORMAT, ('é' * 150,)),
    ],
    'a zip archive': [zip_of('a.txt'), zip_of()],
    'an Office document': [zip_of('[Content_Types].xml', 'word/document.xml')],
    'a Parquet file': [
        written(lambda sink: parquet.write_table(TABLE, sink)),
        written(lambda sink: parquet.write_table(TABLE.slice(0, 0), sink)),
    ],
    'an Arrow file': [
        written(lambda sink: feather.write_feather(TABLE, sink)),
        written(lambda sink: feather.write_feather(TABLE, sink, version=1)),
        written(lambda sink: pa.ipc.new_stream(sink, TABLE.schema).close()),
    ],
    'an ORC file': [written(lambda sink: orc.write_table(TABLE, sink))],
    'NumPy arrays': [written(lambda sink: np.savez(sink, np.arange(9)))],
    'a NumPy array': [written(lambda sink: np.save(sink, np.arange(9)))],
    'a pickle of Python': [pickle.dumps(['text'], protocol) for protocol in range(2, 6)],
    'a TFRecord file': [record_file()],
    'a program': [b'\x7fELF\2\1\1' + bytes(9), b'MZ\x90\0\3\0\0\0\4', b'\xcf\xfa\xed\xfe\7'],
    'a PDF document': [b'%PDF-1.7\n%\xe2\xe3'],
    'a web page (HTML)': [
        b'<!DOCTYPE html>\n<html>', b'\xef\xbb\xbf\n<!doctype HTML PUBLIC "x">', b'<HTML lang="en">',
        b'<html>404</html>',
    ],
    'an image': [
        b'\x89PNG\r\n\x1a\n', b'\xff\xd8\xff\xe0\0', b'GIF89a\1\0\1\0', b'BM\x36\0\0\0\0\0\0\0\x36\0',
    ],
    'a 7z archive': [b'7z\xbc\xaf\x27\x1c\0\4'],
    'a rar archive': [b'Rar!\x1a\x07\1\0'],
    'a cpio archive': [b'070701' + b'0' * 104 + b'a.txt\0', b'\xc7\x71\0\0'],
    'a file of compress (.Z)': [b'\x1f\x9d\x90h\xca'],
    'an lzip file': [b'LZIP\1\x0c\0'],
    'an lzma file': [lzma.compress(b'text', lzma.FORMAT_ALONE)],
    'an lz4 file': [b'\x04\x22\x4d\x18\x64\x40'],
    'a pointer of Git LFS': [b'version https://git-lfs.github.com/spec/v1\noid sha256:0'],
}  # fmt: skip


@pytest.mark.parametrize(
    ('name', 'data'), [(name, data) for name, several in KNOWN.items() for data in several]
)
def test_what_is_not_text_is_known_and_refused_by_its_name(name, data):
    found = identify(data[:HEAD_BYTES])
    assert found is not None and found.name == name
    with pytest.raises(InputError, match='^a.txt is ') as refused:
        refuse('a.txt', look(data[:HEAD_BYTES]))
    assert name in str(refused.value) and '; ' in str(refused.value)


def test_a_database_is_known(tmp_path):
    assert 'SQLite' in identify(database(tmp_path / 'a')).name


COMPRESSED = {True: gzip.compress, BZIP2: bz2.compress, XZ: lzma.compress, ZSTD: zstandard.compress}


@pytest.mark.parametrize('kind', COMPRESSED)
def test_compressed_text_is_not_refused_and_twice_compressed_text_is(kind):
    data = COMPRESSED[kind](b'text\n')
    assert compression_by(data) == kind
    with pytest.raises(InputError, match='is compressed twice, by .* -dc a'):
        refuse('a', look(data, kind))


def test_a_name_decides_only_where_the_content_cannot():
    assert compression_by(b'', 'a.tgz') is True and compression_by(b'B', 'a.TBZ2') == BZIP2
    assert compression_by(b'text', 'a.tgz') is False and compression_by(b'', 'a.txt') is False
    assert compression_by(zip_of('a'), 'a.gz') == ZIP


@given(texts)
def test_text_is_text(text):
    data = text.encode()
    assert identify(data) is None
    assert look(data) == Look(size=len(data))
    refuse('a', look(data))


@pytest.mark.parametrize(
    'word', ['MZ', 'BM', 'ORC', 'PAR1', 'GIF89a', 'PK', 'BZh9', 'II*', 'LZIP', '7z', 'Rar!', 'Obj',
             'RIFF', 'ID3', '(µ/ý', 'qǗ', '070701', 'FEA1', 'ustar', '<p>', '{"a": 1}', '%PDF']
)  # fmt: skip
def test_text_that_begins_as_a_signature_is_text(word):
    for rest in ('', '\n', ' is a word\nand a line\n' * 20, word * 40):
        assert identify(f'{word}{rest}'.encode()) is None


@given(texts, st.data())
def test_text_with_few_nuls_is_never_utf16(text, data):
    """Of fifty bytes, one may be a NUL."""
    content = bytearray((text * 5).encode())
    for _ in range(data.draw(st.integers(0, len(content) // 50))):
        content.insert(data.draw(st.integers(0, len(content))), 0)
    assert look(bytes(content)).encoding == ''


@pytest.mark.parametrize(
    'text',
    ['hello\nworld\n', 'Да\n', 'Привет, мир\nкак дела\n', 'नमस्ते दुनिया\nकैसे हो\n', '你好\n今天天气一\n' * 3,
     'മലയാളം നല്ലത്\n' * 3, '안녕하세요 세계\n' * 3, 'かな\n漢字\n' * 3, 'Ελληνικά\n' * 3, '上海\n你好吗？这是一个测试\n' * 30]
)  # fmt: skip
@pytest.mark.parametrize('width', [16, 32])
def test_wide_text_is_known_with_a_mark_and_without(text, width):
    for order in ('LE', 'BE'):
        name = f'UTF-{width}{order}'
        assert look(text.encode(name)).encoding == name
        assert look(('\ufeff' + text).encode(name)).encoding == f'UTF-{width}'


def said(path, seen, *arguments, **others):
    with pytest.raises(InputError) as refused:
        refuse(path, seen, *arguments, **others)
    return str(refused.value)


def test_wide_text_is_refused_with_the_command_that_converts_it():
    data = 'text\n'.encode('utf-16-le')
    assert said('d/a b.txt', look(data)).endswith(
        "convert it: iconv -f UTF-16LE -t UTF-8 'd/a b.txt' > 'a b.txt.utf-8'"
    )
    assert said('a.txt.gz', look(data, True)).endswith(
        'gzip -dc a.txt.gz | iconv -f UTF-16LE -t UTF-8 > a.txt.utf-8'
    )
    in_tar, in_zip = Inside('x.tgz', False), Inside('x.zip', True)
    assert said('x.tgz!a.xz', look(data, XZ), inside=in_tar).endswith(
        'tar -xOf x.tgz a.xz | xz -dc | iconv -f UTF-16LE -t UTF-8 > a.utf-8'
    )
    assert said('x.zip!a', look(data), inside=in_zip).endswith(
        'unzip -p x.zip a | iconv -f UTF-16LE -t UTF-8 > a.utf-8'
    )
    refuse('a.tmx', look(data), XML)


def test_many_nuls_are_refused_and_few_are_counted():
    line = b'x' * 1000 + b'\n'
    assert '17 NUL bytes among the first 1,018 bytes' in said('a', look(b'\0' * 17 + line))
    refuse('a', look(b'\0' * 16 + line))
    refuse('a', look((b'\0' + line) * 17))  # one for each 1,000 bytes
    assert look(b'\0a\0' + line).nuls == 2


def test_web_pages_are_text_only_where_their_name_says_so():
    page = look(b'<!doctype html>\n<p>Gone</p>')
    assert 'a web page (HTML) and not text' in said('a.txt', page)
    assert 'a web page (HTML) in gzip' in said('a.gz', page._replace(compression=True))
    for path in ('a.html', 'd/a.HTM', 'a.xhtml.gz', 'x.tgz!a.html'):
        refuse(path, page)
    assert 'not Parquet' in said('a.html', page, PARQUET)


def test_what_parquet_cannot_be_is_refused_by_its_name():
    refuse('a', look(KNOWN['a Parquet file'][0]), PARQUET)
    assert 'give it with --parquet' in said('a', look(KNOWN['a Parquet file'][0]), TEXT)
    assert 'begins as text' in said('a', look(b'text\n'), PARQUET)
    assert 'a PDF document and not Parquet' in said('a', look(b'%PDF-1.4'), PARQUET)
    refuse('a', look(b''), PARQUET)  # its reader says so


def test_archives_are_refused_with_what_to_do():
    tar = Look(content=TAR)
    assert said('a.tgz', tar, TEXT, ['b']) == 'a.tgz is a tar archive; name its members: a.tgz!b'
    assert said('a', tar, TEXT, ['b', 'c']).endswith('name its members: a!b (it has b, c)')
    assert said('a.tgz', tar) == 'a.tgz is a tar archive; unpack it'
    inner = said('x.tar!a.tgz', tar, inside=Inside('x.tar', False))
    assert inner.startswith('x.tar!a.tgz is a tar archive within an archive; unpack x.tar')
    zipped = look(zip_of('a'), True)
    assert said('a.zip.gz', zipped).endswith(
        'a zip archive in gzip; decompress it: gzip -dc a.zip.gz'
    )


def test_files_that_are_read_whole_are_refused_by_what_they_are():
    for data, said in [
        (gzip.compress(b'a'), 'a is gzip data and not a vocabulary; decompress it: gzip -dc a'),
        (zip_of('a'), 'a is a zip archive and not a vocabulary; unpack it'),
        (b'%PDF-1.4', 'a is a PDF document and not a vocabulary; save its text'),
    ]:
        with pytest.raises(InputError) as refused:
            refuse_but('a vocabulary', 'a', data)
        assert str(refused.value).startswith(said)
    refuse_but('a vocabulary', 'a', b"'<pad>'_\n")
