"""`--output-format packed`, of `build` and of `convert`: packed rows as shards, and who reads them."""

import collections
import json
import os
import shutil

import pytest
from dataset_files import files_of, framed, manifest_of, read_shards
from jobs import refuse, run, succeed
from written_dataset import change_manifest

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.records.tfrecord import parse_features, read_records

LENGTH = 70
PACK = ['--output-format', 'packed', '--pack', LENGTH]


@pytest.fixture(scope='module')
def building(small):
    files = ['--source', small.source, '--target', small.target, '--name', 'small', '--shards', 3]
    return ['build', *files, '--scheme', 'byte', '--dev-share', '9%']


@pytest.fixture(scope='module')
def packed(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp('packed') / 'out'
    said = succeed('convert', built, '--to', 'packed', '--pack', LENGTH, '--output', folder)
    assert 'empty or too long rows left out' in said
    return folder


def pairs_in(folder, name):
    """The pairs of a packed shard, by the segments of its records."""
    pairs = []
    for record in read_records((folder / name).read_bytes(), name):
        features = parse_features(record)
        sides = []
        for side in ('inputs', 'targets'):
            segments = collections.defaultdict(list)
            for id_, number in zip(features[side], features[f'{side}_segmentation'], strict=True):
                segments[number].append(id_)
            assert len(features[side]) <= LENGTH
            sides.append(segments)
        assert sides[0].keys() == sides[1].keys()
        pairs += [(sides[0][number], sides[1][number]) for number in sides[0]]
    return pairs


def test_every_row_that_fits_is_in_its_shard_once(built, packed):
    files = {file['name']: file for file in manifest_of(packed)['files']}
    left_out = 0
    for split in ('train', 'dev'):
        for number, rows in enumerate(shards := read_shards(built, split)):
            name = f'small-{split}-{number:05d}-of-{len(shards):05d}.packed'
            fitting = {
                place: (row['inputs'], row['targets'])
                for place, row in enumerate(rows)
                if max(map(len, row.values())) <= LENGTH
            }
            assert sorted(pairs_in(packed, name)) == sorted(fitting.values())
            file = files.pop(name)
            assert file['packed'] == len(fitting) > file['rows'] > 0
            dropped = [place for place in range(len(rows)) if place not in fitting]
            assert file.get('dropped', []) == dropped
            left_out += len(dropped)
    assert left_out and not files


@pytest.mark.parametrize(
    'cut',
    [(), ('@item-size', 512, '--workers', 2), ('@shuffle', 'engine', '--workers', 1)],
    ids=str,
)
def test_the_folder_is_the_one_that_a_build_makes(cut, building, packed, tmp_path):
    succeed(*building, *PACK, *cut, '--output', tmp_path / 'out')
    assert files_of(tmp_path / 'out') == files_of(packed)


def test_rows_without_an_end_token_are_reported(small, tmp_path):
    building = ['build', '--text', small.source, '--name', 'small', '--scheme', 'bpe']
    building += ['--vocab-size', 300]
    note = "needs --template '$A <|endoftext|>' of build or encode"
    assert note in succeed(*building, *PACK, '--output', tmp_path / 'packed')
    succeed(*building, '--output', tmp_path / 'rows')
    converting = ['convert', tmp_path / 'rows', '--to', 'packed', '--pack', LENGTH]
    assert note in succeed(*converting, '--output', tmp_path / 'converted')
    template = ['--template', '$A <|endoftext|>']
    said = succeed(*building, *PACK, *template, '--output', tmp_path / 'ended')
    assert 'no end token' not in said


def test_the_same_again_is_done_and_another_length_is_refused(built, packed, tmp_path):
    folder = tmp_path / 'out'
    shutil.copytree(packed, folder)
    converting = ['convert', built, '--to', 'packed', '--output', folder]
    assert 'already done' in succeed(*converting, '--pack', LENGTH)
    assert 'another --pack: 70 there, 71 now' in refuse(*converting, '--pack', 71)
    assert files_of(folder) == files_of(packed)


def test_length_and_format_go_together(building, built, tmp_path):
    converting = ['convert', built, '--to']
    for command in (
        [*converting, 'packed'], [*converting, 'flat', '--pack', 9],
        [*building, '--pack', 9], [*building, '--output-format', 'packed'],
    ):  # fmt: skip
        assert 'packed or joined go together' in refuse(*command, '--output', tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


@pytest.fixture
def findings(capsys):
    """Verifies a folder; returns what was found of each file, joined."""

    def verify(folder, *arguments):
        capsys.readouterr()
        assert run('verify', folder, *arguments, '--json', '--progress=none').status in (0, 3)
        [report] = map(json.loads, capsys.readouterr().out.splitlines())
        problems = collections.defaultdict(str)
        for each in report['findings']:
            problems[each['file']] += each['problem']
        return problems

    return verify


def test_verify_finds_nothing_or_the_damage(packed, tmp_path, findings, capsys):
    assert findings(packed) == {}
    folder = shutil.copytree(packed, tmp_path / 'copy')
    name = 'small-train-00000-of-00003.packed'
    os.truncate(folder / name, (folder / name).stat().st_size - 1)
    assert findings(folder)[name]
    change_manifest(folder, lambda fields: fields['files'][0].update(packed=1))
    assert 'its shards .packed have' in findings(folder)['tokbeam.json']
    with pytest.raises(InputError, match='holds its rows packed, for trainers'):
        open_dataset(packed)
    succeed('card', packed)
    assert 'targets_segmentation' in capsys.readouterr().out


@pytest.fixture
def asked(capsys):
    """Runs `where` with arguments; returns the rows that it tells of."""

    def where(folder, *arguments, status=0):
        capsys.readouterr()
        assert run('where', folder, *arguments, '--json', '--progress=none').status == status
        return [*map(json.loads, capsys.readouterr().out.splitlines())]

    return where


def test_where_names_each_row_of_a_record(built, packed, small, asked):
    texts = [path.read_text().split('\n') for path in (small.source, small.target)]
    name = 'small-train-00001-of-00003.packed'
    pairs = iter(pairs_in(packed, name))
    rows = read_shards(built, 'train')
    before = len(rows[0])
    seen = []
    for record in range(3):
        found = asked(packed, f'1:{record}')
        for number, row in enumerate(found, 1):
            assert row['segments'] == [{'record': record, 'number': number, 'start': 0}]
            assert row['is_stored'] and row['record'] == record
            assert (row['ids']['inputs'], row['ids']['targets']) == next(pairs)
            assert rows[1][row['row'] - before] == row['ids']
            assert row['files'] == [str(small.source), str(small.target)]
            assert row['texts'] == [own[row['line'] - 1].strip() for own in texts]
        seen += found
    assert len(seen) > 3
    for place in (seen[-1]['row'], f'{small.source}:{seen[-1]["line"]}'):
        assert asked(packed, place) == [seen[-1]]
    long = next(n for n, row in enumerate(rows[0]) if max(map(len, row.values())) > LENGTH)
    [found] = asked(packed, long)
    assert (found['record'], found['segments'], found['is_stored']) == (None, [], True)
    assert 'there is no 999' in refuse('where', packed, '1:999')
    assert 'there is no 9' in refuse('where', packed, '9:0')


def test_records_are_made_again_and_a_changed_one_is_found(
    packed, tmp_path, asked, findings, capsys
):
    name = 'small-train-00001-of-00003.packed'
    for share in ('1%', 'all'):
        capsys.readouterr()
        succeed('verify', packed, '--rerun', share)
        said = capsys.readouterr().out
        assert 'rows of the corpus were made again' in said and 'all as stated' in said
        assert not said.startswith('0 of')
    folder = shutil.copytree(packed, tmp_path / 'copy')
    data = (folder / name).read_bytes()
    records = [*read_records(data, name)]
    other = b''.join(map(framed, [records[1], records[0], *records[2:]]))
    assert len(other) == len(data)
    (folder / name).write_bytes(other)
    problems = findings(folder, '--rerun', 'all')
    assert problems[name].count('the packed row that begins with') == 2
    assert not asked(folder, '1:0', status=3)[0]['is_stored']
    (folder / name).write_bytes(b''.join(map(framed, records[:-1])))
    assert 'is missing' in findings(folder, '--rerun', 'all')[name]


def test_a_text_is_packed_with_a_vocabulary_from_elsewhere(small, tmp_path, asked):
    text = ['--text', small.source, '--name', 'one', '--shards', 1]
    succeed(
        'vocab', '--text', small.source, '--vocab-size', 600, '--output', tmp_path / 'v.subwords'
    )
    encoding = ['encode', *text, '--vocab', tmp_path / 'v.subwords']
    succeed(*encoding, '--output', tmp_path / 'rows')
    succeed(*encoding, '--output-format', 'packed', '--pack', 16, '--output', tmp_path / 'direct')
    converting = ['convert', tmp_path / 'rows', '--to', 'packed', '--pack', 16]
    succeed(*converting, '--output', tmp_path / 'made')
    assert files_of(tmp_path / 'made') == files_of(tmp_path / 'direct')
    [rows] = read_shards(tmp_path / 'rows')
    name = 'one-train-00000-of-00001.packed'
    records = map(parse_features, read_records((tmp_path / 'made' / name).read_bytes(), name))
    ids = collections.Counter(id_ for row in rows for id_ in row['targets'])
    assert collections.Counter(id_ for record in records for id_ in record['targets']) == ids
    [number, *_] = [n for n, row in enumerate(rows) if len(row['targets']) > 16]
    [found] = asked(tmp_path / 'direct', number)
    parts = [*range(0, len(rows[number]['targets']), 16)]
    assert [part['start'] for part in found['segments']] == parts and found['is_stored']
    succeed('verify', tmp_path / 'made', '--rerun', 'all')
