"""`--output-format nanogpt` and `convert --to nanogpt`: `train.bin` and `val.bin`, as nanoGPT's loader reads them."""

import base64
import csv
import gzip
import json
import random
import re
import shutil
import struct

import numpy as np
import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import refuse, run, succeed, write

from pipelines.options.commands import known_commands

NANO = ('--output-format', 'nanogpt')
NAMES = {'train': 'train', 'dev': 'val', 'test': 'test'}
RANKS = [(base64.b64encode(bytes([number])), number) for number in range(256)]
WORDS = 'the cat sat on a mat and saw a dog, twice'.split()


@pytest.fixture(scope='module')
def encoding(tmp_path_factory):
    """A command that encodes documents, some of which have no ids, as three splits."""
    dice = random.Random(5)
    lines = [' '.join(dice.choices(WORDS, k=dice.randint(1, 9))) for _ in range(300)]
    lines[7:250:50] = ['\u200b'] * 5  # WordPiece has no token for this
    folder = tmp_path_factory.mktemp('nanogpt')
    text = write(folder / 'text.txt', ''.join(f'{line}\n' for line in lines).encode())
    vocabulary = folder / 'vocab' / 'vocab.txt'
    size = ['--vocab-size', 60, '--min-count-range', '1:100']
    succeed('vocab', '--text', text, '--scheme', 'wordpiece', *size, '--output', vocabulary)
    shares = ['--dev-share', '20%', '--test-share', '10%']
    template = ['--template', '$A']
    return ['encode', '--text', text, '--vocab', vocabulary, '--name', 'd', *shares, *template]


@pytest.fixture(scope='module')
def records(encoding, tmp_path_factory):
    """The same as TFRecords in several shards."""
    folder = tmp_path_factory.mktemp('records') / 'out'
    succeed(*encoding, '--shards', 3, '--output', folder)
    return folder


@pytest.fixture(scope='module')
def made(encoding, tmp_path_factory):
    folder = tmp_path_factory.mktemp('made') / 'out'
    said = succeed(*encoding, *NANO, '--output', folder)
    assert 'examples in 1 shard, ' in said and 'documents, each followed by [SEP] (' in said
    assert 'val.bin' not in said
    return folder


def test_the_files_are_the_rows_in_their_order_each_with_its_end(records, made):
    [end] = {end['id'] for end in manifest_of(made)['end_of_document']}
    stored = [name for name in files_of(made) if not name.startswith('index/')]
    names = {name for name in stored if name.endswith(('.bin', '.csv.gz'))}
    assert names == {f'{name}.{ending}' for name in NAMES.values() for ending in ('bin', 'csv.gz')}
    listed = {file['name']: file for file in manifest_of(made)['files']}
    assert {*listed} == names and {file['dtype'] for file in listed.values()} == {'uint16'}
    for split, name in NAMES.items():
        rows = [row['targets'] for shard in read_shards(records, split) for row in shard]
        kept = [(number, [*row, end]) for number, row in enumerate(rows) if row]
        ids = [id_ for _, row in kept for id_ in row]
        assert (made / f'{name}.bin').read_bytes() == struct.pack(f'<{len(ids)}H', *ids)
        with gzip.open(made / f'{name}.csv.gz', 'rt', newline='') as file:
            numbers = [int(row) for _, _, row, _, _ in csv.reader(file)]
        assert numbers == [number for number, _ in kept]
        dropped = listed[f'{name}.bin'].get('dropped', [])
        assert sorted([*dropped, *numbers]) == [*range(len(rows))]
    assert sum(len(file.get('dropped', [])) for file in listed.values()) == 10  # of two files each


def test_it_is_verified_made_again_and_traced(records, made, printed, tmp_path):
    converted = tmp_path / 'converted'
    converting = ['convert', records, '--to', 'nanogpt', '--workers', 3, '--output', converted]
    succeed(*converting)
    assert files_of(converted) == files_of(made)
    assert 'already done' in succeed(*converting)
    for folder in (made, converted):
        assert printed('verify', folder)[1][0]['findings'] == []
        status, [report] = printed('verify', folder, '--rerun', 'all')
        assert (status, report['findings']) == (0, [])
        assert report['rerun']['rows'] == report['rerun']['of'] == report['rows'] + 5 == 300
        for row in (0, 100):
            of_records = printed('where', records, row)[1][0]
            found = printed('where', folder, row)[1][0]
            assert found['is_stored'] and found['shard'] == 'd-train-00000-of-00001'
            assert {**of_records, 'shard': found['shard'], 'record': row} == found
    assert run('card', made).status == 0


def test_a_wrong_number_of_rows_is_found_by_a_rerun(made, printed, tmp_path):
    folder = shutil.copytree(made, tmp_path / 'changed')
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    [file] = [each for each in manifest['files'] if each['name'] == 'val.bin']
    file['rows'] += 1
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))
    findings = printed('verify', folder, '--rerun', 'all')[1][0]['findings']
    problems = [each['problem'] for each in findings if each['file'] == 'val.bin']
    assert any('the corpus gives' in problem for problem in problems)


def test_a_change_of_a_file_and_a_file_that_is_not_listed_are_found(made, printed, tmp_path):
    folder = shutil.copytree(made, tmp_path / 'changed')
    data = np.memmap(folder / 'val.bin', np.uint16, 'r+')
    data[3] = 60_000
    data.flush()
    status, [report] = printed('verify', folder)
    first = next(each for each in report['findings'] if each['file'] == 'val.bin')
    assert status == 3 and (first['record'], first['byte']) == (0, 6)
    folder = shutil.copytree(made, tmp_path / 'added')
    manifest = (folder / 'tokbeam.json').read_text()
    (folder / 'tokbeam.json').write_text(manifest.replace('"test.bin"', '"rest.bin"'))
    status, [report] = printed('verify', folder)
    assert status == 3 and {'test.bin', 'rest.bin'} <= {each['file'] for each in report['findings']}


def test_inspect_shows_documents_and_says_that_there_is_no_header(made, capsys):
    said = succeed('inspect', made, '--split', 'dev', '--head', 1)
    assert 'nanogpt files of uint16 without a header: 295 documents, each followed by [SEP]' in said
    shown = capsys.readouterr().out
    assert shown.startswith('dev 0\n') and '[SEP]' in shown
    said = refuse('inspect', made / 'val.bin')
    assert 'without a header, so that numpy.load does not open it; read it by numpy.memmap' in said


def test_without_a_dev_split_the_summary_says_what_nanogpt_lacks(tmp_path):
    text = write(tmp_path / 'a.txt', b'one\ntwo\n')
    building = ['build', '--text', text, '--scheme', 'byte', '--name', 'd']
    note = 'no val.bin, which nanoGPT reads too: the split dev becomes that file; '
    note += '`build` or `encode` makes it with --dev-share or --dev'
    for command in (
        [*building, *NANO, '--output', tmp_path / 'out'],
        [*building, '--shards', 2, '--output', tmp_path / 'rows'],
    ):
        assert (note in succeed(*command)) == (NANO[1] in command)
    said = succeed('convert', tmp_path / 'rows', '--to', 'nanogpt', '--output', tmp_path / 'again')
    assert note in said
    options = {option.name for option in known_commands()['encode'].options}
    assert {*re.findall('--([a-z-]+)', note)} <= options
    assert files_of(tmp_path / 'again') == files_of(tmp_path / 'out')


def test_what_nanogpt_cannot_read_is_refused_before_any_work(encoding, records, tmp_path):
    out = ['--output', tmp_path / 'refused']
    said = refuse(*encoding, *NANO, '--shards', 4, *out)
    assert 'nanogpt has one file for each split, and --shards 4 asks for more' in said
    too_many = 'nanoGPT reads ids as uint16, at most 65,536 of them, and there are '
    converting = ['convert', records, '--to', 'nanogpt']
    text = ['--text', encoding[2], '--name', 'd']
    ranks = write(tmp_path / 'bytes.tiktoken', b''.join(b'%b %d\n' % pair for pair in RANKS))
    pretrained = ['encode', *text, '--vocab', ranks, '--scheme', 'pretrained', '--pattern', 'gpt2']
    for command, size in (
        (['build', *text, '--scheme', 'bpe', '--vocab-size', 65_537, *NANO], '65,537'),
        (['build', *text, '--scheme', 'bpe', '--merges', 70_000, *NANO], '70,000'),
        ([*pretrained, '--end', 65_536, *NANO], '65,537'),
    ):
        assert too_many + size in refuse(*command, *out)
    succeed(*pretrained, '--end', 65_535, *NANO, '--output', tmp_path / 'largest')
    assert np.memmap(tmp_path / 'largest' / 'train.bin', np.uint16, 'r').max() == 65_535
    succeed(*pretrained, '--end', 65_536, '--output', tmp_path / 'wide')
    assert too_many in refuse('convert', tmp_path / 'wide', *converting[2:], *out)
    pairs = ['--source', encoding[2], '--target', encoding[2], '--scheme', 'byte', '--name', 'd']
    assert 'one stream of ids, and pairs have two' in refuse('build', *pairs, *NANO, *out)
    succeed('build', *pairs, '--shards', 1, '--output', tmp_path / 'pairs')
    assert 'pairs have two' in refuse('convert', tmp_path / 'pairs', *converting[2:], *out)
    assert not (tmp_path / 'refused').exists()


def test_the_damaged_one_of_several_shards_is_named(records, tmp_path):
    folder = shutil.copytree(records, tmp_path / 'damaged')
    path = folder / 'd-train-00001-of-00003'
    whole = path.read_bytes()
    converting = ['convert', folder, '--to', 'nanogpt', '--output', tmp_path / 'out']
    for data in (whole[:-3], whole[:20] + b'?' + whole[21:], (folder / path.name.replace('1', '2', 1)).read_bytes()):  # fmt: skip
        path.write_bytes(data)
        assert str(path) in refuse(*converting)
    assert not (tmp_path / 'out').exists()
