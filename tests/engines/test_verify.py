"""`tokbeam verify` finds every kind of damage and names where it is; a whole folder has none."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import framed, manifest_of, records_of
from jobs import refuse, run
from written_dataset import file_entry

from tokcore.kernels.bytes import row_offsets
from tokcore.records.manifest import Manifest, root_hash

FIRST, SECOND = 'small-train-00000-of-00003', 'small-train-00001-of-00003'


@pytest.fixture
def verify(capsys):
    """Runs `verify`; returns its status and what it printed as JSON."""

    def run_verify(folder, *arguments):
        capsys.readouterr()
        ended = run('verify', folder, '--json', '--progress=none', *arguments)
        printed = capsys.readouterr().out
        assert ended.status in (0, 3), ended.said
        report = json.loads(printed)
        assert (ended.status == 3) == bool(report['findings'])
        return report

    return run_verify


@pytest.fixture(scope='module')
def builds(small, small_build, tmp_path_factory):
    """A dataset in each format."""
    folders = {'tfrecord': small_build}
    for output_format in ('parquet', 'text'):
        folder = tmp_path_factory.mktemp(output_format) / 'out'
        ended = run(
            *('build', '--tsv', small.tsv, '--name', 'small', '--shards', 3, '--scheme', 'byte'),
            *('--output-format', output_format, '--output', folder),
        )
        assert ended.status == 0, ended.said
        folders[output_format] = folder
    return folders


@pytest.fixture
def copies(builds, tmp_path):
    """Copies a dataset of a format, to be damaged."""

    def copy(output_format='tfrecord'):
        folder = tmp_path / output_format
        shutil.copytree(builds[output_format], folder)
        return folder

    return copy


def flip(path, byte):
    data = bytearray(path.read_bytes())
    data[byte] ^= 4
    path.write_bytes(data)


def of_file(report, name):
    return [each for each in report['findings'] if each['file'] == name]


@pytest.mark.parametrize(
    ('output_format', 'files_of_shard'), [('tfrecord', 1), ('parquet', 1), ('text', 2)]
)
def test_a_whole_folder_has_no_findings_and_its_root(output_format, files_of_shard, builds, verify):
    folder = builds[output_format]
    report, manifest = verify(folder), manifest_of(folder)
    assert report['findings'] == []
    assert report['root'] == report['stated_root'] == manifest['root']
    assert report['rows'] == sum(each['examples'] for each in manifest['lines'])
    assert report['bytes'] >= sum(each['bytes'] for each in manifest['files'])
    assert verify(folder, '--root', report['root'], '--workers', 3) == report
    [finding] = verify(folder, '--root', '0' * 64)['findings']
    assert '0' * 64 in finding['problem'] and report['root'] in finding['problem']


def test_a_flipped_bit_in_a_record(copies, verify):
    folder = copies()
    starts = row_offsets([len(each) for each in records_of(folder / FIRST)]).tolist()
    flip(folder / FIRST, starts[5] + 20)
    flip(folder / FIRST, starts[7] + 12)
    flip(folder / FIRST, starts[9] + 1)
    report = verify(folder)
    places = [(each['record'], each['byte']) for each in of_file(report, FIRST)]
    assert places[:3] == [(5, starts[5]), (7, starts[7]), (9, starts[9])]
    assert 'length' in of_file(report, FIRST)[2]['problem']
    assert of_file(report, SECOND) == []
    assert report['root'] != report['stated_root']


def test_a_cut_shard(copies, verify):
    folder = copies()
    records = records_of(folder / FIRST)
    os.truncate(folder / FIRST, sum(map(len, records)) - 7)
    first, whole = of_file(verify(folder), FIRST)
    last = sum(map(len, records[:-1]))
    assert (first['record'], first['byte']) == (len(records) - 1, last)
    assert f'rows {len(records) - 1} in place of {len(records)}' in whole['problem']


@pytest.mark.parametrize('output_format', ['tfrecord', 'parquet', 'text'])
def test_two_shards_swapped(output_format, copies, verify):
    folder = copies(output_format)
    ending = {'tfrecord': '', 'parquet': '.parquet', 'text': '.targets'}[output_format]
    first, second = folder / f'{FIRST}{ending}', folder / f'{SECOND}{ending}'
    first.rename(folder / 'x')
    second.rename(first)
    (folder / 'x').rename(second)
    report = verify(folder)
    for one, other in ((first, second), (second, first)):
        [finding] = of_file(report, one.name)
        assert f'states of {other.name}' in finding['problem']


@pytest.mark.parametrize('damage', ['doubled', 'missing', 'exchanged'])
def test_records_that_are_whole_and_not_those_that_were_written(damage, copies, verify):
    folder = copies()
    path = folder / FIRST
    records = records_of(path)
    rows = len(records)
    if damage == 'doubled':
        records.insert(4, records[4])
    elif damage == 'missing':
        del records[4]
    else:
        records[4], records[9] = records[9], records[4]
    path.write_bytes(b''.join(records))
    [finding] = of_file(verify(folder), FIRST)
    assert 'exchanged, doubled or taken out' in finding['problem']
    assert (f'rows {len(records)} in place of {rows}' in finding['problem']) == (
        damage != 'exchanged'
    )


def test_an_id_beyond_the_vocabulary_and_a_record_that_is_not_an_example(copies, verify):
    folder = copies()
    path = folder / FIRST
    records = records_of(path)
    ids = b'\x1a\x08\x0a\x06' + b'\x81\x80\x80\x01\x01\x01'
    entries = b''.join(
        b'\x0a' + bytes([len(entry)]) + entry
        for name in (b'inputs', b'targets')
        for entry in [b'\x0a' + bytes([len(name)]) + name + b'\x12' + bytes([len(ids)]) + ids]
    )
    records[3] = framed(b'\x0a' + bytes([len(entries)]) + entries)
    records[6] = framed(b'no example')
    path.write_bytes(b''.join(records))
    wrong, no_example, _ = of_file(verify(folder), FIRST)
    assert (wrong['record'], no_example['record']) == (3, 6)
    assert 'holds 2097153, which is not an id' in wrong['problem']


def test_many_damaged_records_are_counted_and_not_all_named(copies, verify, monkeypatch):
    monkeypatch.setattr('tokcore.reading.checking.MOST_FINDINGS', 5)
    folder = copies()
    records = records_of(folder / FIRST)
    starts = row_offsets([len(each) for each in records]).tolist()
    for start in starts[:-1]:
        flip(folder / FIRST, start + 20)
    findings = of_file(verify(folder), FIRST)
    assert len(findings) == 7
    assert f'{len(records) - 5} more of its records' in findings[5]['problem']


def test_vocabularies_exchanged(copies, verify):
    folder = copies()
    names = [each['name'] for each in manifest_of(folder)['vocabularies']]
    first, second = (folder / name for name in names)
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)
    report = verify(folder)
    assert {each['file'] for each in report['findings']} == {*names, 'tokbeam.json'}
    assert report['root'] != report['stated_root']


def edit(folder, change):
    fields = manifest_of(folder)
    change(fields)
    (folder / 'tokbeam.json').write_text(json.dumps(fields))


@pytest.mark.parametrize(
    'change',
    [
        lambda fields: fields['options'].update(seed=1),
        lambda fields: fields.update(unicode='1.1'),
        lambda fields: fields['lines'][0].update(lines=301, empty=fields['lines'][0]['empty'] + 1),
        lambda fields: fields['inputs'][0].update(crc32c='00000000'),
        lambda fields: fields['files'][1].update(crc32c='00000000'),
        lambda fields: fields['files'][1].update(sha256='0' * 64),
        lambda fields: fields['files'][1].update(rows=fields['files'][1]['rows'] + 1),
        lambda fields: fields['vocabularies'][0].update(sha256='0' * 64),
        lambda fields: fields.update(root='0' * 64),
        lambda fields: fields['files'].pop(),
        lambda fields: fields['files'].reverse(),
        lambda fields: fields['lines'][0].update(examples=1),
        lambda fields: fields.pop('inputs'),
        lambda fields: fields['files'][1].update(crc32c='x'),
        # What readers take of vocabularies, which the first version of the root did not cover.
        lambda fields: fields['vocabularies'][0]['special_ids'].update(pad=7),
        lambda fields: fields['vocabularies'][1]['special_ids'].pop('end'),
        lambda fields: fields['vocabularies'][0].update(size=fields['vocabularies'][0]['size'] + 1),
        lambda fields: fields['vocabularies'][0].update(scheme_options={'lower_case': True}),
        lambda fields: fields['vocabularies'][0].update(side='both'),
        lambda fields: fields.update(stage='encode'),
        lambda fields: fields.update(datasets=fields.pop('lines'), lines=[]),
    ],
)
def test_a_manifest_edited(change, copies, verify):
    folder = copies()
    edit(folder, change)
    assert verify(folder)['findings']


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'special_ids': {'pad': 7}}, 'states the special ids'),
        ({'size': 2000}, 'states the size'),
        ({'scheme': 'word'}, 'states the scheme'),
        ({'scheme_options': {'lower_case': True}}, 'states the options'),
    ],
)
def test_a_vocabulary_that_is_not_what_a_manifest_with_another_root_says(
    change, problem, copies, verify
):
    folder = copies()

    def forge(fields):
        fields['vocabularies'][0].update(change)
        fields['root'] = root_hash(Manifest.from_json(json.dumps(fields).encode(), 'm'))

    edit(folder, forge)
    [finding] = verify(folder)['findings']
    assert problem in finding['problem']


def test_a_vocabulary_that_is_damaged_and_listed_as_it_is(copies, verify):
    folder = copies()
    [name, _] = [each['name'] for each in manifest_of(folder)['vocabularies']]
    (folder / name).write_bytes(b'no quotes\n')
    assert 'not a vocabulary' in of_file(verify(folder), name)[0]['problem']


READ_BY_OTHERS = [
    'added_tokens.json', 'special_tokens_map.json', 'tokenizer.inputs/tokenizer_config.json',
    'chat_template.jinja', 'tokenizer.model', 'vocab.txt', 'more/small-train-00000-of-00001.parquet',
    'more/deep/small-dev-00000-of-00001', 'index/records.json', 'index/x', 'x.tokbeam.json',
]  # fmt: skip
NOT_READ = [
    'README.md', '.git/config.json', 'notes/added.md', 'more/tokbeam.json', 'tokbeam.run.json',
]  # fmt: skip


def write_files(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b'{}')


def test_files_that_the_manifest_does_not_list(copies, verify, capsys):
    folder = copies()
    already = {*verify(folder)['not_covered']}
    write_files(folder, [*READ_BY_OTHERS, *NOT_READ])
    (folder / 'link').symlink_to(folder / 'more')
    report = verify(folder)
    assert {each['file'] for each in report['findings']} == {*READ_BY_OTHERS, 'link'}
    assert already == {'counts.inputs/', 'counts.targets/'}
    assert {*report['not_covered']} == already | {'README.md', 'notes/added.md', 'more/'}
    assert run('verify', folder).status == 3
    for name in (*READ_BY_OTHERS, 'link'):
        (folder / name).unlink()
    capsys.readouterr()
    assert run('verify', folder).status == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith('not covered: README.md, ')


@pytest.mark.parametrize('field', ['rejected', 'index'])
def test_a_file_of_others_in_a_list_that_the_root_does_not_cover(field, copies, verify):
    folder = copies()
    write_files(folder, ['added_tokens.json'])
    entry = file_entry('added_tokens.json', 0, b'{}')
    edit(folder, lambda fields: fields.update({field: [*fields.get(field, []), entry]}))
    assert of_file(verify(folder), 'added_tokens.json')


def test_what_is_not_a_manifest_and_what_is_not_a_dataset(copies, verify, small_build, tmp_path):
    folder = copies()
    (folder / 'tokbeam.json').write_text('{"format": ')
    [finding] = verify(folder)['findings']
    assert finding['file'] == 'tokbeam.json' and 'Expecting value' in finding['problem']
    assert 'not a whole dataset' in refuse('verify', tmp_path)
    assert 'is of `count`' in refuse('verify', small_build / 'counts.inputs')
    (folder / 'tokbeam.json').write_text('{"format": 999, "stage": "build"}')
    assert '999' in refuse('verify', folder)


def test_a_file_missing_and_a_file_too_many(copies, verify):
    folder = copies()
    (folder / SECOND).unlink()
    shutil.copy(folder / FIRST, folder / 'small-train-00003-of-00004')
    report = verify(folder)
    assert {(each['file'], each['problem'].split(',')[0]) for each in report['findings']} == {
        (SECOND, 'it is missing'),
        ('small-train-00003-of-00004', 'the manifest does not list it'),
    }
    assert report['root'] is None


def test_indexes_of_records(copies, verify, tmp_path):
    folder = copies()
    assert run('index', folder).status == 0
    assert verify(folder)['findings'] == []
    first, second = (folder / 'index' / name for name in (FIRST, SECOND))
    shutil.copy(first, second)  # of another build of as many shards
    shutil.copy(first, folder / 'index' / 'other-train-00000-of-00001')
    data = bytearray(first.read_bytes())
    data[24 * 4] ^= 1  # the offset of the fifth record
    first.write_bytes(data)
    findings = verify(folder)['findings']
    assert {each['file'] for each in findings} == {
        f'index/{name}' for name in (FIRST, SECOND, 'other-train-00000-of-00001')
    }
    for name, problem in ((FIRST, 'it has other records than'), (SECOND, 'it is not the index of')):
        [differing] = of_file({'findings': findings}, f'index/{name}')
        assert f'{problem} {name}' in differing['problem']


def test_an_index_of_shards_that_are_not_as_stated(copies, verify):
    folder = copies()
    assert run('index', folder).status == 0
    flip(folder / FIRST, 20)
    (folder / 'index' / SECOND).write_bytes(b'no index')
    assert {each['file'] for each in verify(folder)['findings']} == {
        FIRST, f'index/{SECOND}', 'tokbeam.json'
    }  # fmt: skip


@pytest.mark.parametrize('output_format', ['tfrecord', 'parquet'])
def test_a_shard_that_cannot_be_read_has_one_finding_and_leaves_no_root(
    output_format, copies, verify
):
    folder = copies(output_format)
    [path] = folder.glob(f'{FIRST}*')
    path.unlink()
    path.mkdir()
    report = verify(folder)
    [finding] = of_file(report, path.name)
    assert 'cannot be read' in finding['problem']
    assert report['root'] is None
    assert not of_file(report, 'tokbeam.json')


def test_damage_in_parquet(copies, verify):
    folder = copies('parquet')
    path = folder / f'{FIRST}.parquet'
    whole = path.read_bytes()
    flip(path, len(whole) // 2)
    assert of_file(verify(folder), path.name)
    path.write_bytes(whole[:-9])
    first, _ = of_file(verify(folder), path.name)
    assert 'cannot be read' in first['problem']
    path.write_bytes(whole)
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(2, 1)]), path)
    [finding] = of_file(verify(folder), path.name)
    assert f'rows {len(table) + 1} in place of {len(table)}' in finding['problem']
    rows = table.to_pylist()
    rows[7]['targets'][0] = 100_000
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    first, _ = of_file(verify(folder), path.name)
    assert first['record'] == 7 and '100000' in first['problem']


def test_a_null_in_parquet_is_a_finding_of_a_rerun(copies, verify):
    folder = copies('parquet')
    path = folder / f'{FIRST}.parquet'
    rows = pq.read_table(path).to_pylist()
    rows[3]['inputs'], rows[7]['targets'][0] = None, None
    pq.write_table(pa.Table.from_pylist(rows), path)
    findings = of_file(verify(folder, '--rerun', 'all'), path.name)
    assert [each['record'] for each in findings] == [3, 7, None]


def test_damage_in_text(copies, verify):
    folder = copies('text')
    path = folder / f'{FIRST}.inputs'
    lines = path.read_bytes().splitlines(keepends=True)
    starts = row_offsets([len(each) for each in lines]).tolist()
    path.write_bytes(b''.join(lines)[:-1])
    assert [each['record'] for each in of_file(verify(folder), path.name)] == [len(lines) - 1, None]
    path.write_bytes(b''.join([*lines[:3], b'no-piece', *lines[3:]]))
    first, _ = of_file(verify(folder), path.name)
    assert (first['record'], first['byte']) == (3, starts[3])
    path.write_bytes(b''.join([lines[0], *lines]))
    [finding] = of_file(verify(folder), path.name)
    assert f'rows {len(lines) + 1} in place of {len(lines)}' in finding['problem']


def test_text_for_a_reader(small_build, copies, capsys):
    ended = run('verify', small_build)
    printed = capsys.readouterr().out.splitlines()
    assert ended.status == 0 and 'all as stated' in printed[0]
    assert printed[1] == f'root {manifest_of(small_build)["root"]}'
    folder = copies()
    flip(folder / FIRST, 20)
    assert run('verify', folder).status == 3
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f'{FIRST}, record 0, byte 0: the checksum of')
    assert 'findings' in printed[-3]
    assert refuse('verify', folder, '--root', 'x').startswith('tokbeam: argument --root')
    assert 'has no ' in refuse('verify', folder, '--runner=Flink')
