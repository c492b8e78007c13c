"""The same texts give the same vocabularies and examples, whatever they are stored as."""

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from dataset_files import files_of, lines_of, read_shards, shards_and_vocabularies
from jobs import succeed, write

pytestmark = pytest.mark.slow

ASKED = ['--name', 'small', '--shards', 3, '--vocab-size', 900]
"""As of `small_build`."""


def as_quoted(pairs):
    written = io.StringIO(newline='')
    writer = csv.writer(written, delimiter='\t', lineterminator='\r\n', quoting=csv.QUOTE_ALL)
    writer.writerow(['id', 'tar\tget', 'source'])
    writer.writerows((number, target, source) for number, (source, target) in enumerate(pairs))
    return written.getvalue().encode()


def as_json_lines(pairs):
    objects = [{'pair': {'en': source, 'zh': target}} for source, target in pairs]
    return ''.join(json.dumps(each) + '\n' for each in objects).encode()


def as_parquet(pairs):
    inside = [{'en': source, 'zh': target} for source, target in pairs]
    written = io.BytesIO()
    pq.write_table(pa.table({'pair': inside}), written, row_group_size=40, compression='zstd')
    return written.getvalue()


@pytest.fixture(scope='module')
def inputs(small, tmp_path_factory):
    """By format the options that read the small corpus in it."""
    folder = tmp_path_factory.mktemp('inputs')
    quoted = write(folder / 'quoted.tsv', as_quoted(small.pairs))
    objects = write(folder / 'pairs.jsonl', as_json_lines(small.pairs))
    table = write(folder / 'pairs.parquet', as_parquet(small.pairs))
    fields = ['--fields', 'pair.en,pair.zh']
    return {
        'bitext': ['--source', small.source, '--target', small.target],
        'quoted': ['--tsv', quoted, '--header', '--quoting', 'csv', '--columns', 'source,tar\tget'],
        'jsonl': ['--jsonl', objects, *fields],
        'parquet': ['--parquet', table, *fields],
    }


def examples(folder):
    """All examples of a dataset; its counts are conserved, or reading them fails."""
    return sorted((row['inputs'], row['targets']) for shard in read_shards(folder) for row in shard)


def vocabularies(folder):
    return {path.name: path.read_bytes() for path in folder.glob('vocab.*')}


@pytest.mark.parametrize('chosen', ['bitext', 'quoted', 'jsonl', 'parquet'])
def test_every_format_gives_what_columns_give(inputs, small, small_build, tmp_path, chosen):
    folder = tmp_path / 'out'
    succeed('build', *inputs[chosen], *ASKED, '--item-size', '1KiB', '--output', folder)
    assert len(vocabularies(folder)) == 2
    assert vocabularies(folder) == vocabularies(small_build)
    assert examples(folder) == examples(small_build)
    assert lines_of(folder) == lines_of(small_build)
    assert lines_of(folder)['lines'] == len(small.pairs)


@pytest.mark.parametrize('chosen', ['quoted', 'parquet'])
def test_bytes_do_not_depend_on_the_size_of_items_nor_on_workers(inputs, tmp_path, chosen):
    made = []
    for cut in (['--item-size', '1GiB', '--workers', 1], ['--item-size', 64, '--workers', 2]):
        folder = tmp_path / f'{len(made)}'
        succeed('build', *inputs[chosen], *ASKED, *cut, '--output', folder)
        made.append(files_of(folder))
    assert made[0] == made[1]


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
    given = f'{path}{mark}{member}'
    folder = tmp_path / 'out'
    succeed('build', '--tsv', given, *ASKED, '--item-size', 300, '--output', folder)
    assert shards_and_vocabularies(folder) == shards_and_vocabularies(small_build)
    assert lines_of(folder) == lines_of(small_build)
    assert examples(folder) == examples(small_build)
