"""`--output-format array_record`, of `build` and of `convert`; `verify` and `where` of such folders."""

import shutil
import sys

import pytest
from dataset_files import files_of, manifest_of
from jobs import refuse, succeed

from pipelines.foreign_formats import array_record
from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.records.tfrecord import read_records

library = pytest.importorskip('array_record.python.array_record_module')
FIRST, SECOND = (f'small-train-0000{number}-of-00003' for number in (0, 1))


@pytest.fixture(scope='module')
def building(small):
    files = ['--source', small.source, '--target', small.target, '--name', 'small', '--shards', 3]
    return ['build', *files, '--scheme', 'byte', '--dev-share', '9%']


@pytest.fixture(scope='module')
def converted(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp('converted') / 'out'
    succeed('convert', built, '--to', 'array_record', '--output', folder, '--workers', 2)
    return folder


def test_the_records_are_the_payloads_of_the_tfrecords(built, converted):
    for file in manifest_of(converted)['files']:
        shard = file['name'].removesuffix('.array_record')
        payloads = [*read_records((built / shard).read_bytes(), shard)]
        assert len(payloads) == file['rows']
        reader = library.ArrayRecordReader(str(converted / file['name']))
        assert reader.num_records() == len(payloads)
        assert (reader.read_all() if payloads else []) == payloads
        assert reader.writer_options_string() == array_record.OPTIONS
    assert not [path for path in converted.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    'cut', [('@item-size', 64, '--workers', 2), ('@shuffle', 'engine', '--workers', 1)], ids=str
)
def test_the_folder_is_the_one_that_a_build_makes(cut, building, converted, tmp_path):
    form = ['--output-format', 'array_record']
    succeed(*building, *form, *cut, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(converted)


def test_it_is_verified_made_again_and_traced(built, converted, printed):
    assert printed('verify', converted)[1][0]['findings'] == []
    status, [report] = printed('verify', converted, '--rerun', 'all')
    assert (status, report['findings']) == (0, [])
    assert report['rerun']['rows'] == report['rerun']['of'] > 200
    asked = ('1:3',)
    assert printed('where', converted, *asked) == printed('where', built, *asked)


def test_damage_and_exchanged_rows_are_named(built, converted, tmp_path, printed):
    folder = tmp_path / 'copy'
    shutil.copytree(converted, folder)
    path = folder / f'{FIRST}.array_record'
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    status, [report] = printed('verify', folder)
    problems = [each['problem'] for each in report['findings'] if each['file'] == path.name]
    assert status == 3 and any('CRC-32C' in problem for problem in problems)

    payloads = [*read_records((built / FIRST).read_bytes(), FIRST)]
    writer = library.ArrayRecordWriter(str(path), array_record.OPTIONS)
    for payload in (payloads[1], payloads[0], *payloads[2:-1], b'no example'):
        writer.write(payload)
    writer.close()
    for spoilt in (b'', b'x' * 200_000):
        (folder / f'{SECOND}.array_record').write_bytes(spoilt)
        findings = printed('verify', folder)[1][0]['findings']
        of_file = [each for each in findings if each['file'] == f'{SECOND}.array_record']
        assert any('it cannot be read' in each['problem'] for each in of_file)
    findings = printed('verify', folder, '--rerun', 'all')[1][0]['findings']
    records = {each['record'] for each in findings if each['file'].startswith(FIRST)}
    assert {0, 1, len(payloads) - 1} <= records


def test_readers_and_machines_without_the_library_are_told(built, converted, tmp_path, monkeypatch):
    with pytest.raises(InputError, match='holds its rows as array_record; build it with'):
        open_dataset(converted)
    monkeypatch.setitem(sys.modules, 'array_record.python', None)
    out = ['--to', 'array_record', '--output', tmp_path / 'out']
    assert "pip install 'tokbeam[array-record]'" in refuse('convert', built, *out)
    assert not (tmp_path / 'out').exists()
