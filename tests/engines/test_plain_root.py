"""The root of a dataset by the Python of the page about trust, which knows nothing of tokbeam."""

import json
import shutil

import pytest
from dataset_files import manifest_of
from jobs import succeed, write
from pages import blocks_of

MOST_LINES = 40
[PROGRAM] = [block.code for block in blocks_of('docs/trust.md') if 'def root_of' in block.code]


@pytest.fixture(scope='module')
def root_of():
    names: dict = {}
    exec(compile(PROGRAM, 'docs/trust.md', 'exec'), names)
    return names['root_of']


def test_the_program_is_short_and_imports_the_standard_library_alone():
    assert len(PROGRAM.strip().splitlines()) <= MOST_LINES
    imports = {line for line in PROGRAM.splitlines() if 'import' in line}
    assert imports == {'import hashlib', 'import json', 'import os'}


@pytest.fixture(scope='module')
def learned(small, tmp_path_factory):
    """A build whose vocabulary has files of a tokenizer next to it."""
    folder = tmp_path_factory.mktemp('learned') / 'out'
    job = ['--name', 'n', '--scheme', 'bpe', '--vocab-size', 400, '--shards', 2]
    succeed('build', '--text', small.source, *job, '--output', folder)
    return folder


@pytest.mark.parametrize('output_format', [None, 'parquet', 'megatron', 'flat', 'packed'])
def test_it_computes_the_root(root_of, small_build, tmp_path, output_format):
    folder = small_build
    if output_format is not None:
        folder = tmp_path / 'out'
        more = ['--pack', 256] if output_format == 'packed' else []
        succeed('convert', small_build, '--to', output_format, *more, '--output', folder)
    assert root_of(folder) == manifest_of(folder)['root']


def test_it_computes_the_root_of_an_encode(root_of, small, learned, tmp_path):
    """With lines left out, a filter and a copied vocabulary, which has files next to it."""
    assert root_of(learned) == manifest_of(learned)['root']
    text, out = write(tmp_path / 'text', small.source.read_bytes() + b'\xff\n'), tmp_path / 'out'
    job = ['--vocab', *learned.glob('vocab.*'), '--on-error', 'skip', '--clean', 'length:9:99']
    succeed('encode', '--text', text, '--name', 'n', *job, '--shards', 2, '--output', out)
    assert root_of(out) == manifest_of(out)['root']


def test_it_computes_the_root_where_a_shard_has_no_file(root_of, tmp_path):
    text, out = write(tmp_path / 'text', b'one line\n'), tmp_path / 'out'
    job = ['--name', 'n', '--scheme', 'byte', '--shards', 5, '--output-format', 'flat']
    succeed('build', '--text', text, *job, '--output', out)
    assert root_of(out) == manifest_of(out)['root']


def of_shard(folder, manifest):
    path = folder / manifest['files'][0]['name']
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def of_vocabulary(folder, manifest):
    path = folder / manifest['vocabularies'][0]['name']
    path.write_bytes(path.read_bytes() + b'\n')


def of_tokenizer(folder, manifest):
    path = folder / manifest['vocabularies'][0]['beside'][0]['name']
    path.write_bytes(path.read_bytes() + b'\n')


def swapped(folder, manifest):
    first, second = (folder / file['name'] for file in manifest['files'][:2])
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


def seed(folder, manifest):
    manifest['options']['seed'] = 1


def checksum_of_text(folder, manifest):
    manifest['inputs'][0]['crc32c'] = '00000000'


def files_left_out(folder, manifest):
    del manifest['files'][-1]


@pytest.mark.parametrize(
    'damage',
    [of_shard, of_vocabulary, of_tokenizer, swapped, seed, checksum_of_text, files_left_out],
)
def test_it_finds_damage(root_of, learned, tmp_path, damage):
    folder = shutil.copytree(learned, tmp_path / 'out')
    manifest = manifest_of(folder)
    damage(folder, manifest)
    write(folder / 'tokbeam.json', json.dumps(manifest).encode())
    with pytest.raises(ValueError, match='has changed|is stated'):
        root_of(folder)


def test_it_finds_a_missing_file(root_of, small_build, tmp_path):
    folder = shutil.copytree(small_build, tmp_path / 'out')
    (folder / manifest_of(folder)['files'][0]['name']).unlink()
    with pytest.raises(FileNotFoundError):
        root_of(folder)


def test_what_says_nothing_of_the_data_changes_no_root(root_of, small_build, tmp_path):
    folder = shutil.copytree(small_build, tmp_path / 'out')
    manifest = manifest_of(folder)
    manifest['inputs'][0]['name'] = 'another name'
    write(folder / 'tokbeam.json', json.dumps(manifest).encode())
    assert root_of(folder) == manifest['root']
