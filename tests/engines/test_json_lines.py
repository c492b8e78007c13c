"""JSON lines that cannot be used, texts with line feeds in them, and compressed corpora."""

import json

import pytest
from dataset_files import lines_of, read_shards
from jobs import refuse, succeed, write

DATASET = ['--name', 'small', '--shards', 3, '--vocab-size', 900]
FIELDS = ['--fields', 'pair.en,pair.z\\.h']


@pytest.fixture(scope='module')
def objects(small):
    """Objects with the texts inside another, and fields that nobody asks for."""
    rows = [
        {'id': number, 'pair': {'en': source, 'z.h': target}}
        for number, (source, target) in enumerate(small.pairs)
    ]
    lines = [json.dumps(row, ensure_ascii=row['id'] % 2 > 0) for row in rows]
    return ''.join(f'{line}\n' for line in lines).encode()


BAD = {
    'invalid_json': b'{"pair": \n',
    'missing_field': b'{"pair": {"en": "x"}}\n',
    'not_a_string': b'{"pair": {"en": "x", "z.h": null}}\n',
    'lone_surrogate': b'{"pair": {"en": "\\ud800", "z.h": "y"}}\n',
    'invalid_utf8': b'{"pair": {"en": "\xff", "z.h": "y"}}\n',
}


@pytest.mark.parametrize('reason', BAD)
def test_an_object_that_cannot_be_used_stops_the_job(objects, tmp_path, reason):
    bad = write(tmp_path / 'bad.jsonl', objects + BAD[reason])
    said = refuse('count', '--jsonl', bad, *FIELDS, '--output', tmp_path / 'out')
    assert f'{bad}' in said and f'byte {len(objects)}' in said


def test_objects_that_cannot_be_used_are_kept_aside_by_reason(objects, tmp_path):
    bad = write(tmp_path / 'bad.jsonl', b''.join(BAD.values()) + objects)
    command = ['build', '--jsonl', bad, *FIELDS, *DATASET, '--output', tmp_path / 'out']
    succeed(*command, '--on-error', 'skip')
    tally = lines_of(tmp_path / 'out')
    assert tally['lines'] == tally['examples'] + tally['empty'] + len(BAD)
    for reason in BAD:
        assert tally[reason] == 1
        rejected = tmp_path / 'out' / 'rejected' / f'train.{reason}.jsonl'
        assert len(rejected.read_text().splitlines()) == 1


def test_one_field_is_a_text_and_may_hold_line_feeds(tmp_path, filter_lines):
    texts = ['two\nlines', 'one line', '', 'é']
    path = write(
        tmp_path / 'a.jsonl', ''.join(json.dumps({'text': each}) + '\n' for each in texts).encode()
    )
    asked = ['--name', 'docs', '--shards', 1, '--scheme', 'bpe', '--vocab-size', 260]
    succeed('build', '--jsonl', path, *asked, '--output', tmp_path / 'out')
    [rows] = read_shards(tmp_path / 'out')
    ids = ''.join(' '.join(map(str, row['targets'])) + '\n' for row in rows).encode()
    said = filter_lines(ids, 'detokenize', '--vocab', tmp_path / 'out' / 'vocab.docs.260.bpe.json')
    assert sorted(said.decode().splitlines()) == ['one line', 'two lines', 'é']
    assert lines_of(tmp_path / 'out')['empty'] == 1
