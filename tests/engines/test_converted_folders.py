"""`tokbeam convert`: the folder that a build in the other format makes, of finished shards alone."""

import os
import shutil
import struct
import sys

import numpy as np
import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import refuse, run, succeed, write

from pipelines.foreign_formats import array_record
from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.records.tfrecord import read_records

library = pytest.importorskip('array_record.python.array_record_module')
FIRST, SECOND = 'small-train-00000-of-00003', 'small-train-00001-of-00003'
SIDES = ('inputs', 'targets')


@pytest.fixture(scope='module')
def corpus(small, tmp_path_factory):
    """The small corpus with pairs of which a side has text, and no token in BERT's sense."""
    source, target = small.source.read_bytes(), small.target.read_bytes()
    folder = tmp_path_factory.mktemp('corpus')
    silent = '\u200b\u200c\n'.encode() * 7
    return (
        write(folder / 'pairs.en', source + silent),
        write(folder / 'pairs.zh', target + b'text\n' * 7),
    )


@pytest.fixture(scope='module')
def building(corpus):
    files = ['--source', corpus[0], '--target', corpus[1], '--name', 'small', '--shards', 3]
    bert = ['--scheme', 'wordpiece', '--vocab-size', 700, '--min-count-range', '2:10000']
    return ['build', *files, *bert, '--shared-vocab', '--dev-share', '9%']


@pytest.fixture(scope='module')
def converted(built, tmp_path_factory):
    """By format what `convert` makes."""
    above = tmp_path_factory.mktemp('converted')
    for output_format in ('megatron', 'flat', 'parquet', 'array_record'):
        succeed(
            'convert',
            built,
            '--to',
            output_format,
            '--output',
            above / output_format,
            '--workers',
            2,
        )
    return above


def without_counts(folder):
    """The files of a dataset, without what else a build leaves in its folder."""
    return {name: data for name, data in files_of(folder).items() if not name.startswith('counts/')}


def kept_rows(built, split):
    """The examples of each shard that have text on both sides, with their numbers."""
    return [
        [
            (number, row)
            for number, row in enumerate(shard)
            if all(any(id_ > 3 for id_ in row[side]) for side in SIDES)
        ]
        for shard in read_shards(built, split)
    ]


@pytest.mark.parametrize(
    ('output_format', 'cut'),
    [
        ('megatron', ('@item-size', 512, '--workers', 2)),
        ('flat', ('@shuffle', 'engine', '--workers', 1)),
        ('parquet', ()),
        ('array_record', ('@item-size', 512, '--workers', 1)),
    ],
    ids=str,
)
def test_the_folder_is_the_one_that_a_build_makes(
    output_format, cut, building, converted, tmp_path
):
    out = tmp_path / 'out'
    succeed(*building, '--output-format', output_format, *cut, '--output', out)
    assert without_counts(out) == files_of(converted / output_format)


def test_some_rows_are_empty_and_the_manifest_has_them(built, converted):
    rows = {split: sum(map(len, read_shards(built, split))) for split in ('train', 'dev')}
    kept = {split: sum(map(len, kept_rows(built, split))) for split in rows}
    assert sum(rows.values()) - sum(kept.values()) == 7
    for output_format in ('megatron', 'flat'):
        manifest = manifest_of(converted / output_format)
        for tally in manifest['lines']:
            assert tally['examples'] == rows[tally['split']]
        for file in manifest['files']:
            split = 'train' if '-train-' in file['name'] else 'dev'
            number = int(file['name'].partition(f'-{split}-')[2][:5])
            shard = read_shards(built, split)[number]
            there = [number for number, _ in kept_rows(built, split)[number]]
            assert file['rows'] == len(there)
            assert file.get('dropped', []) == sorted({*range(len(shard))} - {*there})
            assert file['dtype'] == 'uint16'


def test_megatron_has_the_rows_of_the_records(built, converted):
    folder = converted / 'megatron'
    for number, rows in enumerate(kept_rows(built, 'train')):
        for side in SIDES:
            prefix = folder / f'small-train-{number:05d}-of-00003_{side}_document'
            ids = np.memmap(f'{prefix}.bin', '<u2', 'r')
            index = prefix.with_suffix('.idx').read_bytes()
            magic, version, code, count, documents = struct.unpack_from('<9sQBQQ', index)
            assert (magic, version, code) == (b'MMIDIDX\0\0', 1, 8)
            assert (count, documents) == (len(rows), len(rows) + 1)
            lengths = np.frombuffer(index, '<i4', count, 34)
            pointers = np.frombuffer(index, '<i8', count, 34 + 4 * count)
            found = [
                ids[pointer // 2 : pointer // 2 + length].tolist()
                for pointer, length in zip(pointers.tolist(), lengths.tolist(), strict=True)
            ]
            assert found == [row[side] for _, row in rows]
            assert len(index) == 34 + 12 * count + 8 * documents
            assert np.frombuffer(index, '<i8', documents, 34 + 12 * count).tolist() == [
                *range(documents)
            ]


@pytest.mark.parametrize('output_format', ['megatron', 'flat', 'array_record'])
def test_a_converted_folder_is_verified_made_again_and_traced(
    output_format, built, converted, printed
):
    folder = converted / output_format
    assert printed('verify', folder)[1][0]['findings'] == []
    status, [report] = printed('verify', folder, '--rerun', 'all')
    assert (status, report['findings']) == (0, [])
    assert report['rerun']['rows'] == report['rerun']['of'] > 200
    # A row counts once, though each side has two files; empty ones are in none.
    dropped = sum(tally['examples'] for tally in manifest_of(folder)['lines']) - report['rows']
    assert report['rows'] + dropped == report['rerun']['of']
    assert (0 < dropped < 20) == (output_format != 'array_record')
    [empty] = {
        number
        for file in manifest_of(folder)['files'][:1]
        for number in file.get('dropped', [0])[:1]
    }
    for record in (empty, empty + 1):
        asked = (f'0:{record}',)
        assert printed('where', folder, *asked) == printed('where', built, *asked)


def test_the_same_again_is_done_and_another_is_refused(built, converted, tmp_path):
    folder = tmp_path / 'out'
    shutil.copytree(converted / 'flat', folder)
    converting = ['convert', built, '--output', folder]
    before = files_of(folder)
    assert 'already done' in succeed(*converting, '--to', 'flat')
    assert files_of(folder) == before
    said = refuse(*converting, '--to', 'megatron')
    assert 'another --output-format: flat there, megatron now' in said
    succeed(*converting, '--to', 'megatron', '--overwrite')
    assert files_of(folder) == files_of(converted / 'megatron')


def test_what_convert_refuses(built, converted, tmp_path):
    out = ['--to', 'flat', '--output', tmp_path / 'out']
    assert 'is not a whole dataset' in refuse('convert', tmp_path, *out)
    assert 'holds its rows as flat' in refuse('convert', converted / 'flat', *out)
    assert 'is read by this run' in refuse(
        'convert', built, '--to', 'flat', '--output', built, '--overwrite'
    )
    text = write(
        tmp_path / 'a.jsonl', b'{"text": "one", "score": 1}\n{"text": "two", "score": 2}\n'
    )
    succeed(
        *('build', '--jsonl', text, '--fields', 'text', '--keep', 'score:int', '--scheme', 'byte'),
        *('--name', 'd', '--shards', 1, '--output', tmp_path / 'kept'),
    )
    assert 'rows with score beside the text' in refuse('convert', tmp_path / 'kept', *out)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('damage', ['flip', 'cut', 'missing', 'exchanged'])
def test_a_damaged_shard_is_named_and_nothing_is_made(damage, built, tmp_path):
    folder = tmp_path / 'damaged'
    shutil.copytree(built, folder)
    path = folder / FIRST
    data = bytearray(path.read_bytes())
    if damage == 'flip':
        data[20] ^= 1
        path.write_bytes(data)
    elif damage == 'cut':
        os.truncate(path, len(data) - 3)
    elif damage == 'missing':
        path.unlink()
    else:
        path.write_bytes((folder / SECOND).read_bytes())
    said = refuse('convert', folder, '--to', 'megatron', '--output', tmp_path / 'out')
    assert str(path) in said
    assert not (tmp_path / 'out').exists()


@pytest.fixture
def copied(converted, tmp_path):
    def copy(output_format):
        return shutil.copytree(converted / output_format, tmp_path / output_format)

    return copy


ENDINGS = {'megatron': ('_inputs_document.bin', '_inputs_document.idx'), 'flat': ('.inputs.npy', '.inputs.csv.gz')}  # fmt: skip


@pytest.mark.parametrize('output_format', ENDINGS)
def test_verify_names_what_was_changed(output_format, copied, printed):
    folder, endings = copied(output_format), ENDINGS[output_format]
    ids, beside = (folder / f'{FIRST}{ending}' for ending in endings)
    manifest = folder / 'tokbeam.json'
    wide = {'megatron': 'int32', 'flat': 'uint32'}[output_format]
    wrong = np.fromfile(ids, '<u2')
    wrong[3] = 60_000
    for path, data, problems in (
        (
            ids,
            ids.read_bytes()[:-3],
            ['ends within an id of 2 bytes', 'one of the two was cut off'],
        ),
        (ids, wrong.tobytes(), ['60000 is not an id of the']),
        (beside, (folder / f'{SECOND}{endings[1]}').read_bytes(), ['is of another shard']),
        (
            manifest,
            manifest.read_bytes().replace(b'uint16', wide.encode()),
            [f'states {wide}, and'],
        ),
        (manifest, manifest.read_bytes().replace(b'uint16', b'complex'), ['not state the dtype']),
    ):
        before = path.read_bytes()
        path.write_bytes(data)
        status, [report] = printed('verify', folder)
        found = [each for each in report['findings'] if each['file'] == ids.name]
        said = ' '.join(each['problem'] for each in found)
        assert status == 3 and all(problem in said for problem in problems), said
        if data == wrong.tobytes():
            assert (found[0]['record'], found[0]['byte']) == (0, 6)
        path.write_bytes(before)


def test_a_text_of_one_side_is_converted_with_a_vocabulary_from_elsewhere(small, built, tmp_path):
    [vocabulary] = built.glob('vocab.*')
    text = ['--text', small.source, '--vocab', vocabulary, '--name', 'one', '--shards', 1]
    succeed('encode', *text, '--output', tmp_path / 'one')
    for output_format in ('megatron', 'flat'):
        made, direct = tmp_path / output_format, tmp_path / f'direct-{output_format}'
        succeed('convert', tmp_path / 'one', '--to', output_format, '--output', made)
        succeed('encode', *text, '--output-format', output_format, '--output', direct)
        assert files_of(made) == files_of(direct)
        assert run('verify', made, '--rerun', 'all').status == 0
    assert (tmp_path / 'megatron' / 'one-train-00000-of-00001_text_document.bin').exists()
    assert (tmp_path / 'flat' / 'one-train-00000-of-00001.npy').exists()


def test_array_records_are_the_payloads_of_the_tfrecords(built, converted):
    for file in manifest_of(converted / 'array_record')['files']:
        shard = file['name'].removesuffix('.array_record')
        payloads = [*read_records((built / shard).read_bytes(), shard)]
        assert len(payloads) == file['rows']
        reader = library.ArrayRecordReader(str(converted / 'array_record' / file['name']))
        assert reader.num_records() == len(payloads)
        assert (reader.read_all() if payloads else []) == payloads
        assert reader.writer_options_string() == array_record.OPTIONS
    folders = [path.name for path in (converted / 'array_record').iterdir() if path.is_dir()]
    assert folders == ['index']


def test_damage_and_exchanged_rows_of_array_records_are_named(built, converted, tmp_path, printed):
    folder = tmp_path / 'copy'
    shutil.copytree(converted / 'array_record', folder)
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


def test_readers_refuse_array_records_and_so_do_machines_without_the_library(
    built, converted, tmp_path, monkeypatch
):
    with pytest.raises(InputError, match='holds its rows as array_record; build it with'):
        open_dataset(converted / 'array_record')
    monkeypatch.setitem(sys.modules, 'array_record.python', None)
    out = ['--to', 'array_record', '--output', tmp_path / 'out']
    assert "pip install '.[array-record]'" in refuse('convert', built, *out)
    assert "pip install '.[array-record]'" in refuse('verify', converted / 'array_record')
    assert not (tmp_path / 'out').exists()
