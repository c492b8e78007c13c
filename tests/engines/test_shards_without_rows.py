"""Shards without rows as flat files and as Megatron's: the manifest lists them, and there is no file."""

import numpy as np
import pytest
from dataset_files import files_of, manifest_of
from jobs import run, succeed, write

import pipelines

FORMATS = {'flat': ('npy', 'csv.gz'), 'megatron': ('bin', 'idx')}
EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'  # SHA-256 of nothing


@pytest.fixture
def text(tmp_path):
    return ['--text', write(tmp_path / 'a.txt', b'one\ntwo\nthree\n'), '--scheme', 'byte']


@pytest.fixture
def encode(text, tmp_path):
    def encode(output_format, *options, output='out'):
        out = tmp_path / output
        named = ['--name', 'n', '--output-format', output_format, '--output', out]
        return out, succeed('encode', *text, *named, '--shards', 20, *options)

    return encode


def shards_in(folder):
    return sorted(path.name for path in folder.iterdir() if '-of-' in path.name)


@pytest.mark.parametrize('output_format', FORMATS)
def test_a_shard_without_rows_has_no_file(output_format, encode):
    out, _ = encode(output_format)
    listed = {file['name']: file for file in manifest_of(out)['files']}
    assert len(listed) == 40
    with_rows = {name for name, file in listed.items() if file['rows']}
    assert shards_in(out) == sorted(with_rows)
    assert 2 <= len(with_rows) <= 6
    for name in listed.keys() - with_rows:
        assert listed[name] | {'name': ''} == {
            'name': '', 'bytes': 0, 'crc32c': '00000000', 'sha256': EMPTY, 'rows': 0, 'dtype': 'uint16',
        }  # fmt: skip
    for name in with_rows:
        if name.endswith(FORMATS[output_format][0]):
            assert len(np.memmap(out / name, '<u2', 'r'))


@pytest.mark.parametrize('output_format', FORMATS)
def test_a_conversion_is_the_same_and_all_that_looks_at_it_goes_on(output_format, encode, tmp_path):
    out, _ = encode(output_format)
    records, _ = encode('tfrecord', output='records')
    converted = tmp_path / 'converted'
    succeed('convert', records, '--to', output_format, '--output', converted)
    assert files_of(converted) == files_of(out)
    for folder in (out, converted):
        assert run('verify', folder, '--rerun', 'all').status == 0
    assert 'already' in encode(output_format)[1]
    assert run('where', out, 1).status == 0
    assert run('card', out).status == 0
    before = files_of(out)
    succeed('index', out)
    assert files_of(out) == before


def test_the_code_on_the_card_opens_a_file_that_is_there(encode, capsys):
    for output_format in FORMATS:
        out, _ = encode(output_format, output=output_format)
        assert run('card', out).status == 0
        card = capsys.readouterr().out
        [line] = [line for line in card.splitlines() if "'n-train-" in line]
        name = line.split("'")[1]
        assert any(file.startswith(name) for file in shards_in(out))


def test_files_of_a_result_that_is_replaced_do_not_stay(encode, tmp_path):
    out, _ = encode('flat')
    write(tmp_path / 'a.txt', b'other\n')
    before = shards_in(out)
    encode('flat', '--overwrite')
    assert len(shards_in(out)) == 2 < len(before)
    encode('flat', '--overwrite')
    assert run('verify', out).status == 0


def test_a_missing_file_with_rows_is_still_found(encode):
    out, _ = encode('flat')
    path = out / shards_in(out)[0]
    path.unlink()
    ended = run('verify', out)
    assert ended.status == 3


def test_a_call_returns_files_that_are_there(tmp_path):
    path = write(tmp_path / 'a.txt', b'one\n')
    made = pipelines.encode(
        text=path, scheme='byte', name='n', shards=9, output_format='flat', output=tmp_path / 'out'
    )
    assert len(made.files) == 2
    assert all(np.fromfile(file, np.uint8).size for file in made.files)
