"""Files that would fill memory or disk, or that are not what they seem: a sentence, and little memory."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import pytest
import zstandard
from hostile_counts import count

pytestmark = pytest.mark.slow


def write_zeros(path, packer, size):
    with packer(path) as file:
        for _ in range(size >> 20):
            file.write(b'a' * ((1 << 20) - 1) + b'\n')


BOMBS = {
    'bz2': lambda path: bz2.open(path, 'wb'),
    'xz': lambda path: lzma.open(path, 'wb', preset=0),
    'zst': lambda path: zstandard.open(path, 'wb'),
}


@pytest.mark.parametrize('kind', ['bz2', 'zst'])
def test_a_file_that_unpacks_to_ten_thousand_times_its_size(lane, tmp_path, kind):
    """300 MiB of equal lines."""
    write_zeros(tmp_path / f'bomb.{kind}', BOMBS[kind], 300 << 20)
    assert (tmp_path / f'bomb.{kind}').stat().st_size * 10_000 < 300 << 20
    ended = count(lane, tmp_path, '--text', f'bomb.{kind}')
    assert f'bomb.{kind} unpacks to more than 10,000 times its' in ended.complaints[0]


@pytest.mark.parametrize('kind', ['gz', *BOMBS])
def test_a_line_that_unpacks_to_far_more_than_a_line_may_have(lane, tmp_path, kind):
    pack = {'gz': lambda path: gzip.open(path, 'wb', 1)} | BOMBS
    with pack[kind](tmp_path / f'line.{kind}') as file:
        for _ in range(100):
            file.write(b'a' * (1 << 20))
    ended = count(lane, tmp_path, '--text', f'line.{kind}')
    assert f'line.{kind}' in ended.complaints[0]
    assert '--max-line-size' in ended.complaints[0]


def test_a_zip_of_one_long_line(lane, tmp_path):
    with zipfile.ZipFile(tmp_path / 'bomb.zip', 'w', zipfile.ZIP_DEFLATED) as packed:
        with packed.open('in', 'w') as file:
            for _ in range(200):
                file.write(bytes(1 << 20))
    ended = count(lane, tmp_path, '--text', 'bomb.zip!in')
    assert 'bomb.zip!in' in ended.complaints[0]


def test_a_tar_whose_header_tells_of_more_than_there_is(lane, tmp_path):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode='w') as tar:
        info = tarfile.TarInfo('in')
        info.size = 5
        tar.addfile(info, io.BytesIO(b'text\n'))
    data = bytearray(sink.getvalue())
    data[124:136] = b'77777777777\0'
    data[148:156] = b' ' * 8
    data[148:156] = b'%06o\0 ' % sum(data[:512])
    (tmp_path / 'lying.tar').write_bytes(data)
    ended = count(lane, tmp_path, '--text', 'lying.tar!in')
    assert 'lying.tar' in ended.complaints[0]


@pytest.mark.parametrize('quoting', [[], ['--quoting', 'csv']], ids=str)
def test_a_line_of_a_hundred_megabytes(lane, tmp_path, quoting):
    """It is left out as too long, whatever else is in it, and never held as a whole."""
    for name, begin, end in (('a.jsonl', b'{"text": "', b'"}\n'), ('a.tsv', b'a\t', b'\n')):
        with open(tmp_path / name, 'wb') as file:
            file.write(begin)
            for _ in range(100):
                file.write(b'word ' * 200_000)
            file.write(end)
            file.write(b'{"text": "a row"}\n' if name == 'a.jsonl' else b'a\ta row\n')
    if not quoting:
        count(lane, tmp_path, '--jsonl', 'a.jsonl', '--on-error=skip', statuses=(0,))
        manifest = json.loads((tmp_path / 'counts' / 'tokbeam.json').read_bytes())
        assert manifest['lines'][0]['too_long'] == manifest['lines'][0]['examples'] == 1
        ended = count(lane, tmp_path, '--jsonl', 'a.jsonl', '--overwrite')
        assert 'a.jsonl' in ended.complaints[0] and '--max-line-size' in ended.complaints[0]
        return
    ended = count(lane, tmp_path, '--tsv', 'a.tsv', '--columns', '0,1', *quoting, '--on-error=skip')
    assert 'a.tsv' in ended.complaints[0]


def test_json_of_any_depth(lane, tmp_path):
    deep = b'{"n": ' + b'[' * 10_000 + b']' * 10_000 + b', "text": "deep"}\n'
    deeper = b'{"text": ' + b'{"text": ' * 100_000 + b'"x"' + b'}' * 100_001 + b'\n'
    (tmp_path / 'a.jsonl').write_bytes(deep + deeper + b'{"text": "a row"}\n')
    count(lane, tmp_path, '--jsonl', 'a.jsonl', '--on-error=skip', statuses=(0,))
    [lines] = json.loads((tmp_path / 'counts' / 'tokbeam.json').read_bytes())['lines']
    assert lines['lines'] == 3
    assert lines['examples'] + lines.get('invalid_json', 0) + lines.get('not_a_string', 0) == 3
