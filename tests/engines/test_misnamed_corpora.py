"""Whole jobs of corpora whose names say nothing of what they are, or something else."""

import gzip
import lzma

from jobs import refuse, succeed
from packed_members import tar_of, zip_of

TEXT = b'hello\nworld\n' * 50
HOW = ['--scheme', 'byte', '--name', 'n', '--shards', 1]


REFUSED = {
    'a.tgz': (gzip.compress(tar_of([('a.txt', TEXT)])), 'a.tgz is a tar archive; name its members: '),
    'a.tar': (tar_of([('a.txt', TEXT)]), 'a.tar is a tar archive'),
    'a.taz': (lzma.compress(tar_of([('a.txt', TEXT)])), 'a.taz is a tar archive'),
    'a.zip': (zip_of([('a.txt', TEXT)]), 'a.zip is a zip archive'),
    'a.tar.Z': (b'\x1f\x9d\x90' + TEXT, 'a.tar.Z is a file of compress (.Z) and not text; unpack it: gzip'),
    'a.7z': (b'7z\xbc\xaf\x27\x1c\0\4', 'a.7z is a 7z archive'),
    'page.gz': (gzip.compress(b'<!DOCTYPE html>\n'), 'page.gz is a web page (HTML) in gzip'),
    'wide.txt': (TEXT.decode().encode('utf-16-le'), 'iconv -f UTF-16LE -t UTF-8'),
}  # fmt: skip


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


def test_fields_of_csv_in_tab_separated_columns_need_the_quoting(tmp_path):
    paths = [tmp_path / 'a.tsv', tmp_path / 'b.tsv']
    for path in paths:
        path.write_bytes(b'one\t"eins ""1"""\n')
    encode = ['encode', *HOW, '--tsv', paths[0], '--output']
    assert 'a.tsv has \'"eins ""1"""\', which looks like a field of CSV' in refuse(
        *encode, tmp_path / 'out'
    )
    for quoting in ('none', 'csv'):
        succeed(*encode, tmp_path / quoting, '--quoting', quoting)
        more = ['--tsv', paths[1], '--quoting', quoting, '--output', tmp_path / f'more {quoting}']
        succeed('update', tmp_path / quoting, *more)
