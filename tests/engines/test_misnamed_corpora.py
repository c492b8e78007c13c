"""Whole jobs of corpora whose names say nothing of what they are, or something else."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import zstandard
from dataset_files import files_of
from jobs import refuse, succeed

TEXT = b'hello\nworld\n' * 50
HOW = ['--scheme', 'byte', '--name', 'n', '--shards', 1]


def tarred(data):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode='w') as packed:
        member = tarfile.TarInfo('a.txt')
        member.size = len(data)
        packed.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def zipped(data):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, 'w', zipfile.ZIP_DEFLATED) as packed:
        packed.writestr('a.txt', data)
    return sink.getvalue()


READ = {
    'plain.tgz': (TEXT, ''),
    'gz.txt': (gzip.compress(TEXT), ''),
    'bz2.gz': (bz2.compress(TEXT), ''),
    'xz': (lzma.compress(TEXT), ''),
    'zst.zip': (zstandard.compress(TEXT), ''),
    'tar.gz': (tarred(TEXT), '!a.txt'),
    'tgz': (gzip.compress(tarred(TEXT)), '!a.txt'),
    'zip.tar.Z': (zipped(TEXT), '!a.txt'),
}
REFUSED = {
    'a.tgz': (gzip.compress(tarred(TEXT)), 'a.tgz is a tar archive; name its members: '),
    'a.tar': (tarred(TEXT), 'a.tar is a tar archive'),
    'a.taz': (lzma.compress(tarred(TEXT)), 'a.taz is a tar archive'),
    'a.zip': (zipped(TEXT), 'a.zip is a zip archive'),
    'a.tar.Z': (b'\x1f\x9d\x90' + TEXT, 'a.tar.Z is a file of compress (.Z) and not text; unpack it: gzip'),
    'a.7z': (b'7z\xbc\xaf\x27\x1c\0\4', 'a.7z is a 7z archive'),
    'page.gz': (gzip.compress(b'<!DOCTYPE html>\n'), 'page.gz is a web page (HTML) in gzip'),
    'wide.txt': (TEXT.decode().encode('utf-16-le'), 'iconv -f UTF-16LE -t UTF-8'),
}  # fmt: skip


def test_the_rows_are_those_of_the_text_whatever_its_file_is_called(tmp_path):
    expected = None
    for name, (data, member) in READ.items():
        (tmp_path / 'in').mkdir(exist_ok=True)
        (tmp_path / 'in' / name).write_bytes(data)
        output = tmp_path / 'out' / name
        succeed('encode', '--text', f'{tmp_path}/in/{name}{member}', *HOW, '--output', output)
        shards = {each: data for each, data in files_of(output).items() if 'train' in each}
        expected = expected or shards
        assert shards == expected and shards


def test_what_is_not_text_stops_a_job_also_where_bad_lines_are_skipped(tmp_path):
    for name, (data, said) in REFUSED.items():
        (tmp_path / name).write_bytes(data)
        for words in (['--text'], ['--columns', '0', '--tsv']):
            sentence = refuse(
                'encode', *HOW, '--on-error', 'skip', '--output', tmp_path / 'out', *words,
                tmp_path / name,
            )  # fmt: skip
            assert said in sentence
    assert 'is a tar archive; name its members' in refuse(
        'encode', *HOW, '--output', tmp_path / 'out', '--text', f'{tmp_path}/*.t*'
    )
    assert not (tmp_path / 'out').exists()
