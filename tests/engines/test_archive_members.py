"""Members of archives give the bytes of the same files in a folder, and an archive is read once for all."""

import gzip
import io
import json
import lzma
import random
import shutil
from collections import namedtuple

import pytest
import zstandard
from dataset_files import files_of, lines_of
from jobs import refuse, succeed
from packed_in_parts import xz_of_blocks, zstd_with_table
from packed_members import tar_of, zip_of

from pipelines.engines import runners
from pipelines.files import filesystem

WORDS = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', '你好', '世界', 'theta']
MEMBERS = 40


def lines(dice, count):
    return ''.join(' '.join(dice.choices(WORDS, k=dice.randint(1, 9))) + '\n' for _ in range(count))


def drawn_members():
    """(name, bytes) in an order that is not that of the names."""
    dice = random.Random(7)
    members = {}
    for number in range(MEMBERS):
        count = dice.randint(0, 60)
        members[f'news/{number}.en'] = lines(dice, count).encode()
        members[f'news/{number}.zh'] = lines(dice, count).encode()
        rows = zip(lines(dice, 9).splitlines(), lines(dice, 9).splitlines(), strict=True)
        table = ['left\tright', *('\t'.join(row) for row in rows)]
        members[f'tables/{number}.tsv'] = '\n'.join(table).encode()
        objects = [json.dumps({'text': line}) + '\n' for line in lines(dice, 9).splitlines()]
        members[f'objects/{number}.jsonl'] = ''.join(objects).encode()
    for number, pack in enumerate([gzip.compress, lzma.compress, zstandard.compress] * 2):
        members[f'packed/{number}.en'] = pack(lines(dice, 50).encode())
    members['empty.en'] = b''
    order = list(members.items())
    dice.shuffle(order)
    return order


def in_parts(data):
    return [data[start : start + 20_000] for start in range(0, len(data), 20_000)]


PACKERS = {
    'plain.tar': tar_of,
    'one.tgz': lambda members: gzip.compress(tar_of(members)),
    'one.tar.zst': lambda members: zstandard.compress(tar_of(members)),
    'parts.tar.zst': lambda members: zstd_with_table(in_parts(tar_of(members))),
    'parts.tar.xz': lambda members: xz_of_blocks(in_parts(tar_of(members))),
    'some.zip': zip_of,
}

ASKED = {
    'text': ['--text', '{}news/*.en', '{}packed/*'],
    'some of them': ['--text', '{}news/1*.en', '{}empty.en', '{}news/2.zh'],
    'bitext': ['--source', '{}news/*.en', '--target', '{}news/*.zh'],
    'bitext turned round': [
        '--source', '{}news/*.en', '{}news/*.zh', '--target', '{}news/*.zh', '{}news/*.en',
    ],
    'named columns': ['--tsv', '{}tables/*', '--columns', 'right,left'],
    'quoted columns': ['--tsv', '{}tables/*', '--quoting', 'csv'],
    'json lines': ['--jsonl', '{}objects/*'],
    'two splits': ['--text', '{}news/*.en', '--dev', '{}news/*.zh'],
}  # fmt: skip


@pytest.fixture(scope='module')
def stored(tmp_path_factory):
    """A folder with the members as files in `files/`, and archives of them."""
    folder = tmp_path_factory.mktemp('archives')
    members = drawn_members()
    for name, data in members:
        path = folder / 'files' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name, pack in PACKERS.items():
        (folder / name).write_bytes(pack(members))
    return folder


def encode(asked, begin, output, *how):
    given = [word.format(begin) for word in asked]
    succeed('encode', '--scheme', 'byte', '--name', 'some', '--shards', 3, *given, *how,
            '--output', output)  # fmt: skip
    files = files_of(output).items()
    # Manifests name the inputs, which are called otherwise.
    return {name: data for name, data in files if not name.endswith('tokbeam.json')}


@pytest.fixture(scope='module')
def of_files(stored, tmp_path_factory):
    """What the members are encoded to as files of a folder."""
    made = {}

    def encoded(what):
        if what not in made:
            output = tmp_path_factory.mktemp('of-files')
            made[what] = encode(ASKED[what], f'{stored}/files/', output), lines_of(output)
        return made[what]

    return encoded


@pytest.mark.parametrize(
    ('what', 'archive'),
    [
        ('text', 'one.tar.zst'),
        ('bitext', 'some.zip'),
        ('quoted columns', 'parts.tar.zst'),
        ('json lines', 'plain.tar'),
        ('two splits', 'some.zip'),
        pytest.param('some of them', 'parts.tar.zst', marks=pytest.mark.slow),
        pytest.param('bitext turned round', 'one.tar.zst', marks=pytest.mark.slow),
        pytest.param('named columns', 'plain.tar', marks=pytest.mark.slow),
    ],
)
def test_members_give_the_bytes_of_files(stored, of_files, tmp_path, what, archive):
    made = encode(ASKED[what], f'{stored}/{archive}!', tmp_path, '@item-size', '9KiB')
    assert (made, lines_of(tmp_path)) == of_files(what)


def test_manifests_tell_each_member_with_its_own_checksum(stored, tmp_path):
    inputs = []
    for begin in ('files/', 'one.tgz!'):
        encode(ASKED['text'], f'{stored}/{begin}', tmp_path / begin[:3])
        manifest = json.loads((tmp_path / begin[:3] / 'tokbeam.json').read_bytes())
        inputs.append([(each['bytes'], each['crc32c']) for each in manifest['inputs']])
    assert inputs[0] == inputs[1]
    assert len(inputs[0]) == MEMBERS + 6


@pytest.fixture
def sizes_read(monkeypatch):
    """The sizes of all reads of `.zst` files."""
    sizes, original = [], filesystem.open_binary

    class CountedFile(io.FileIO):
        def read(self, size=-1):
            data = super().read(size)
            sizes.append(len(data))
            return data

    def opened(path, *_):
        return CountedFile(path) if path.endswith('.zst') else original(path)

    monkeypatch.setattr(filesystem, 'open_binary', opened)
    return sizes


@pytest.fixture(scope='module')
def many(tmp_path_factory):
    """A tar.zst of 120 pairs of members, which is a megabyte."""
    dice = random.Random(3)
    members = []
    for number in range(120):
        text = ''.join(f'{dice.getrandbits(120):x}\n' for _ in range(150)).encode()
        members += [(f'a/{number}.en', text), (f'a/{number}.zh', text[::-1].strip() + b'\n')]
    dice.shuffle(members)
    path = tmp_path_factory.mktemp('many') / 'many.tar.zst'
    path.write_bytes(zstandard.compress(tar_of(members)))
    return path


@pytest.mark.parametrize(
    ('job', 'readings'),
    [
        (['count', '--text', '{}!a/*.en'], 2),  # to list the members, and for their text
        (['count', '--text', '{}!a/*.en', '{}!a/1.zh', '--vocab-sample', 't2t:1MB'], 3),
        # To list them, to count the lines of both sides, and two readers side by side.
        (['count', '--source', '{}!a/*.en', '--target', '{}!a/*.zh'], 4),
        # To list them, for a sample, which here is nearly all, and for their text.
        (['encode', '--scheme', 'byte', '--name', 'n', '--text', '{}!a/*'], 3),
        # To list them, for their first blocks, and for a sample.
        (['encode', '--scheme', 'byte', '--name', 'n', '--text', '{}!a/*', '--dry-run'], 3),
    ],
    ids=lambda given: ' '.join(given[:2]) if isinstance(given, list) else str(given),
)
def test_an_archive_is_read_once_for_all_of_its_members(many, tmp_path, sizes_read, job, readings):
    succeed(*(word.format(many) for word in job), '--output', tmp_path / 'out')
    assert 0 < sum(sizes_read) < (readings + 0.5) * many.stat().st_size


def large_tar(path):
    members = [(f'news/{number}.txt', b'hello world of the line\n' * 1700) for number in range(100)]
    path.write_bytes(tar_of(members))
    return path


def test_a_disk_needs_room_for_the_members_and_not_for_an_archive_each(tmp_path, monkeypatch):
    path = large_tar(tmp_path / 'r.tar')
    usage = namedtuple('usage', 'total used free')
    free = 20 * path.stat().st_size
    monkeypatch.setattr(shutil, 'disk_usage', lambda folder: usage(free, 0, free))
    asked = ['encode', '--scheme', 'byte', '--name', 'n', '--text', f'{path}!news/*.txt']
    succeed(*asked, '--output', tmp_path / 'out')


def test_the_runners_own_shuffle_is_asked_for_the_members_sizes(tmp_path, monkeypatch):
    path = large_tar(tmp_path / 'r.tar')
    monkeypatch.setattr(runners, 'available_bytes', lambda: 20 * path.stat().st_size)
    asked = ['encode', '--scheme', 'byte', '--name', 'n', '--text', f'{path}!news/*.txt']
    succeed(*asked, '@shuffle', 'engine', '--output', tmp_path / 'out')


def test_rows_of_parquet_are_not_read_from_an_archive(tmp_path):
    (tmp_path / 'a.zip').write_bytes(zip_of([('a.parquet', b'PAR1\x15\4')]))
    said = refuse('encode', '--scheme', 'byte', '--name', 'n', '--parquet',
                  f'{tmp_path}/a.zip!a.parquet', '--fields', 'a', '--output', tmp_path / 'out')  # fmt: skip
    assert 'a.zip!a.parquet is compressed as a whole' in said
