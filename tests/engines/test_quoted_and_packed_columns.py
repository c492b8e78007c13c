"""The same texts give the same vocabularies and examples, quoted, compressed or in archives."""

import bz2
import csv
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
import zstandard
from dataset_files import files_of, lines_of, read_shards, shards_and_vocabularies
from jobs import succeed, write

pytestmark = pytest.mark.slow

DATASET = ['--name', 'small', '--shards', 3, '--vocab-size', 900]
"""As of `small_build`."""


def as_quoted(pairs):
    written = io.StringIO(newline='')
    writer = csv.writer(written, delimiter='\t', lineterminator='\r\n', quoting=csv.QUOTE_ALL)
    writer.writerow(['id', 'tar\tget', 'source'])
    writer.writerows((number, target, source) for number, (source, target) in enumerate(pairs))
    return written.getvalue().encode()


def examples(folder):
    """All examples of a dataset; its counts are conserved, or reading them fails."""
    return sorted((row['inputs'], row['targets']) for shard in read_shards(folder) for row in shard)


def vocabularies(folder):
    return {path.name: path.read_bytes() for path in folder.glob('vocab.*')}


def test_quoted_columns_give_what_plain_columns_give_however_they_are_cut(
    small, small_build, tmp_path
):
    quoted = write(tmp_path / 'quoted.tsv', as_quoted(small.pairs))
    given = ['--tsv', quoted, '--quoting', 'csv', '--columns', 'source,tar\tget']
    cuts = {'one': ['--workers', 1], 'two': ['@item-size', 64, '--workers', 2]}
    for name, cut in cuts.items():
        succeed('build', *given, *DATASET, *cut, '--output', tmp_path / name)
    folder = tmp_path / 'one'
    assert vocabularies(folder) == vocabularies(small_build)
    assert examples(folder) == examples(small_build)
    assert lines_of(folder) == lines_of(small_build)
    assert files_of(folder) == files_of(tmp_path / 'two')


def in_tar(text):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w:gz') as tar:
        member = tarfile.TarInfo('a/pairs.tsv')
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def in_zip(text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('a/pairs.tsv', text)
    return packed.getvalue()


PACKERS = {
    'tsv': bytes,
    'tsv.bin': gzip.compress,
    'tsv.bz2': bz2.compress,
    'tsv.xz': lzma.compress,
    'tsv.zst': zstandard.ZstdCompressor().compress,
    'tgz!a/*.tsv': in_tar,
    'zip!a/pairs.tsv': in_zip,
}


@pytest.mark.parametrize('stored', PACKERS)
def test_every_way_to_store_a_file_gives_the_same_bytes(small, small_build, tmp_path, stored):
    ending, mark, member = stored.partition('!')
    path = tmp_path / f'pairs.{ending}'
    path.write_bytes(PACKERS[stored](small.tsv.read_bytes()))
    folder = tmp_path / 'out'
    succeed(
        'build', '--tsv', f'{path}{mark}{member}', *DATASET, '@item-size', 300, '--output', folder
    )
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(small_build)
    assert lines_of(folder) == lines_of(small_build)
    assert examples(folder) == examples(small_build)
