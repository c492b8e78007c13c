"""The passport of a dataset: Croissant that mlcroissant accepts and reads, and what only the owner knows."""

import datetime
import hashlib
import json
import os
import shutil

import pytest
from dataset_files import manifest_of
from jobs import refuse, run, succeed, write

from tokcore import open_dataset

OF_THE_OWNER = {
    'url', 'license', 'creator', 'rai:dataCollection', 'rai:dataLimitations', 'rai:dataBiases',
    'rai:personalSensitiveInformation', 'rai:dataUseCases', 'rai:dataSocialImpact',
    'rai:hasSyntheticData',
}  # fmt: skip
MINIMAL_RAI = {
    'rai:dataLimitations', 'rai:dataBiases', 'rai:personalSensitiveInformation', 'rai:dataUseCases',
    'rai:dataSocialImpact', 'rai:hasSyntheticData', 'prov:wasDerivedFrom', 'prov:wasGeneratedBy',
}  # fmt: skip
MISSING = {'citeAs', 'datePublished', 'version'}
"""What mlcroissant recommends, and only the owner knows."""


@pytest.fixture
def passport(capsys):
    def printed(folder) -> str:
        capsys.readouterr()
        ended = run('card', folder, '--croissant')
        assert ended.status == 0, ended.said
        return capsys.readouterr().out

    return printed


@pytest.fixture(scope='module')
def parquet(small, tmp_path_factory):
    """A dataset whose name has a blank and a bracket, with two splits; its text was last changed in 2001."""
    folder = tmp_path_factory.mktemp('parquet')
    text = shutil.copy(small.tsv, folder / 'pairs.tsv')
    os.utime(text, (10**9, 10**9))
    job = ['--name', 'a [b]', '--scheme', 'byte', '--shards', 2, '--dev-share', '10%']
    succeed(
        'build', '--tsv', text, *job, '--output-format', 'parquet', '--output', folder / 'out'
    )  # fmt: skip
    return folder / 'out'


@pytest.mark.parametrize('output_format', ['parquet', 'tfrecord', 'megatron'])
def test_mlcroissant_accepts_it(passport, parquet, small_build, tmp_path, output_format):
    mlcroissant = pytest.importorskip('mlcroissant')
    folder = {'parquet': parquet, 'tfrecord': small_build}.get(output_format)
    if folder is None:
        folder = tmp_path / 'out'
        succeed('convert', small_build, '--to', output_format, '--output', folder)
    path = write(tmp_path / 'passport.jsonld', passport(folder).encode())
    metadata = mlcroissant.Dataset(path).metadata
    assert not metadata.ctx.issues.errors
    assert len(metadata.ctx.issues.warnings) == len(MISSING)
    assert all(any(name in said for name in MISSING) for said in metadata.ctx.issues.warnings)
    assert str(metadata.ctx.conforms_to.value).endswith('croissant/1.1')
    assert {len(each) for each in (metadata.data_biases, metadata.data_limitations)} == {1}
    assert [each.id for each in metadata.record_sets] == (
        ['train', 'dev'] if output_format == 'parquet' else []
    )


def test_mlcroissant_reads_the_rows_that_we_read(passport, parquet, tmp_path):
    mlcroissant = pytest.importorskip('mlcroissant')
    folder = shutil.copytree(parquet, tmp_path / 'out')
    write(folder / 'croissant.jsonld', passport(folder).encode())
    croissant = mlcroissant.Dataset(folder / 'croissant.jsonld')
    dataset = open_dataset(folder)
    for split in ('train', 'dev'):
        ours = [
            (row['inputs'].tolist(), row['targets'].tolist()) for row in dataset.examples(split)
        ]
        theirs = [
            tuple([*map(int, record[f'{split}/{name}'])] for name in ('inputs', 'targets'))
            for record in croissant.records(split)
        ]
        assert sorted(ours) == sorted(theirs) != []  # files come in the order of the folder


@pytest.mark.parametrize('name', ['parquet', 'small_build'])
def test_files_have_the_sizes_and_sums_of_what_is_there(passport, request, name):
    folder = request.getfixturevalue(name)
    listed = json.loads(passport(folder))['distribution']
    files = [each for each in listed if each['@type'] == 'cr:FileObject']
    assert len({each['@id'] for each in files}) == len(files)
    for each in files:
        data = (folder / each['contentUrl']).read_bytes()
        assert each['contentSize'] == f'{len(data)} B'
        assert each['sha256'] == hashlib.sha256(data).hexdigest()
    manifest = manifest_of(folder)
    indexes = [each for each in manifest['index'] if 'sha256' in each]
    names = {each['name'] for each in (*manifest['files'], *manifest['vocabularies'], *indexes)}
    assert {each['name'] for each in files} == names | {'tokbeam.json'}


def test_it_has_the_root_the_sources_and_the_fields_of_neurips(passport, parquet):
    fields, manifest = json.loads(passport(parquet)), manifest_of(parquet)
    assert fields['identifier']['value'] == manifest['root']
    assert fields.keys() >= MINIMAL_RAI
    sources = fields['prov:wasDerivedFrom']
    assert len(sources) == len(manifest['inputs']) > 0
    for source, text in zip(sources, manifest['inputs']):
        assert source['prov:label'] == text['name']
        assert source['contentSize'] == f'{text["bytes"]} B'
        assert text['crc32c'] in source['description']
        changed = datetime.datetime.fromisoformat(source['dateModified'])
        assert changed.timestamp() == 10**9


def test_what_only_the_owner_knows_is_marked_and_nothing_else(passport, parquet):
    fields = json.loads(passport(parquet))
    marked = {name for name, value in fields.items() if 'REPLACE' in json.dumps(value)}
    assert marked == OF_THE_OWNER
    assert 'datePublished' not in fields


def test_without_the_record_of_the_run_there_are_no_dates(passport, parquet, tmp_path):
    folder = shutil.copytree(parquet, tmp_path / 'out')
    dated = passport(folder)
    (folder / 'tokbeam.run.json').unlink()
    undated = passport(folder)
    assert 'dateModified' in dated and 'dateModified' not in undated
    assert len(json.loads(undated)['prov:wasDerivedFrom']) == len(manifest_of(folder)['inputs'])


@pytest.mark.parametrize('modified', [float('inf'), float('nan'), -1.0, 1e300])
def test_a_date_that_is_none_is_left_out(passport, parquet, tmp_path, modified):
    folder = shutil.copytree(parquet, tmp_path / 'out')
    record = json.loads((folder / 'tokbeam.run.json').read_bytes())
    record['inputs'] = [[path, size, modified] for path, size, _ in record['inputs']]
    write(folder / 'tokbeam.run.json', json.dumps(record).encode())
    assert 'dateModified' not in passport(folder)


def test_no_path_of_this_machine_is_in_it(passport, parquet):
    assert str(parquet.parent) not in passport(parquet)


def test_verify_takes_a_folder_with_its_passport(passport, parquet, tmp_path):
    folder = shutil.copytree(parquet, tmp_path / 'out')
    write(folder / 'croissant.jsonld', passport(folder).encode())
    succeed('verify', folder)


def test_only_datasets_have_one(tmp_path):
    assert 'not a whole dataset' in refuse('card', tmp_path, '--croissant')
