"""`--on-error=skip`: bad lines are left out everywhere alike, kept, and counted."""

import base64
import itertools
import json

import pytest
from dataset_files import lines_of, manifest_of, texts_of
from jobs import succeed, write

GOOD = [(f'good line {number}', f'好的 {number}') for number in range(40)]
BAD_UTF8 = b'\xc3\x28 broken\tx'
SHORT = b'no target here'


@pytest.fixture
def tsv(tmp_path):
    lines = [f'{source}\t{target}'.encode() for source, target in GOOD]
    lines[30:30] = [SHORT + b' 2']
    lines[20:20] = [BAD_UTF8, b'', b'only source\t ']
    lines[5:5] = [SHORT]
    return write(tmp_path / 'pairs.tsv', b'\n'.join(lines) + b'\n')


def build(tsv, folder, *arguments):
    return succeed(
        'build', '--tsv', tsv, '--name', 'x', '--vocab-size', 120, '--shards', 2, '--on-error',
        'skip', '--min-count-range', '1:20', '--output', folder, *arguments,
    )  # fmt: skip


def test_they_are_kept_in_order_with_file_offset_and_line(tsv, tmp_path):
    build(tsv, tmp_path / 'out')
    data = tsv.read_bytes()
    rejected = tmp_path / 'out' / 'rejected'
    assert {path.name for path in rejected.iterdir()} == {
        'train.invalid_utf8.jsonl',
        'train.missing_column.jsonl',
    }
    short = [json.loads(line) for line in (rejected / 'train.missing_column.jsonl').open('rb')]
    assert [each['line'].encode() for each in short] == [SHORT, SHORT + b' 2']
    assert [each['offset'] for each in short] == [data.index(SHORT), data.index(SHORT + b' 2')]
    assert {each['file'] for each in short} == {'pairs.tsv'}
    [bad] = [json.loads(line) for line in (rejected / 'train.invalid_utf8.jsonl').open('rb')]
    assert base64.b64decode(bad['line_base64']) == BAD_UTF8
    assert bad['offset'] == data.index(BAD_UTF8)


def test_they_are_counted_and_all_others_are_encoded(tsv, tmp_path):
    build(tsv, tmp_path / 'out')
    lines = lines_of(tmp_path / 'out')
    texts = [*itertools.chain(*GOOD)]
    assert lines.pop('text_bytes') == len(''.join(texts).encode())
    assert lines == {
        'split': 'train', 'lines': 45, 'examples': 40, 'empty': 2,
        'invalid_utf8': 1, 'missing_column': 2,
    }  # fmt: skip
    assert sorted(texts_of(tmp_path / 'out')) == sorted(GOOD)
    counted = manifest_of(tmp_path / 'out' / 'counts.inputs')
    assert counted['lines'] == [lines]


def test_the_vocabulary_is_counted_without_them(tsv, tmp_path):
    build(tsv, tmp_path / 'all')
    clean = write(
        tmp_path / 'clean.tsv', ''.join(f'{source}\t{target}\n' for source, target in GOOD).encode()
    )
    build(clean, tmp_path / 'clean')
    for side in ('inputs', 'targets'):
        name = f'vocab.x.120.subwords.{side}'
        assert (tmp_path / 'all' / name).read_bytes() == (tmp_path / 'clean' / name).read_bytes()


def test_a_pair_with_one_bad_side_goes_as_a_whole(tmp_path):
    source = write(tmp_path / 'a.en', b'one\ntwo\nthree\n')
    target = write(tmp_path / 'a.zh', '一\n'.encode() + b'\xff\n' + '三\n'.encode())
    folder = tmp_path / 'out'
    succeed(
        'build', '--source', source, '--target', target, '--name', 'x', '--vocab-size', 60,
        '--min-count-range', '1:1', '--shards', 1, '--on-error', 'skip', '--output', folder,
    )  # fmt: skip
    assert sorted(texts_of(folder)) == [('one', '一'), ('three', '三')]
    [bad] = map(json.loads, (folder / 'rejected' / 'train.invalid_utf8.jsonl').open('rb'))
    assert (bad['file'], bad['offset']) == ('a.zh', 4)


def test_count_and_vocab_keep_them_beside_their_output(tsv, tmp_path):
    for command, output in (('count', 'a/counts'), ('vocab', 'b/x.subwords')):
        size = ['--vocab-size', 120, '--min-count-range', '1:20'] if command == 'vocab' else []
        succeed(command, '--tsv', tsv, '--on-error', 'skip', '--output', tmp_path / output, *size)
        rejected = tmp_path / f'{output}.rejected'
        assert len(list(rejected.glob('train.*.jsonl'))) == 2
