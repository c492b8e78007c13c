"""Rejected lines belong to their result: those of several results in one folder never meet."""

import json

import pytest
from jobs import refuse, succeed, write
from leftovers import result_files

GOOD = ''.join(f'line {n} of a text\n' for n in range(40)).encode()
REASON = 'train.invalid_utf8.jsonl'


@pytest.fixture
def texts(tmp_path):
    """Texts with a bad line each, of different lengths, and one without."""
    return {
        'x': write(tmp_path / 'x', GOOD + b'\xffone\n'),
        'y': write(tmp_path / 'y', GOOD + b'\xfftwo, longer\n'),
        'clean': write(tmp_path / 'clean', GOOD),
    }


def vocab(text, output, *extra):
    skipping = ['--on-error', 'skip', '--output', output, *extra]
    return ['vocab', '--text', text, '--vocab-size', 200, *skipping]


def count(text, output, *extra):
    return ['count', '--text', text, '--on-error', 'skip', '--output', output, *extra]


@pytest.mark.parametrize('command', [vocab, pytest.param(count, marks=pytest.mark.slow)])
def test_two_results_in_one_folder(texts, tmp_path, command):
    first, second = tmp_path / 'd' / '1', tmp_path / 'd' / '2'
    assert f'1 line was left out: {first}.rejected/{REASON}' in succeed(*command(texts['x'], first))
    succeed(*command(texts['y'], second))
    for path, text in ((first, 'x'), (second, 'y')):
        [line] = (tmp_path / 'd' / f'{path.name}.rejected' / REASON).read_bytes().splitlines()
        assert json.loads(line)['offset'] == len(GOOD) and json.loads(line)['file'] == text
        assert 'already done' in succeed(*command(texts[text], path))
    whole = result_files(tmp_path / 'd')
    succeed(*command(texts['clean'], first, '--overwrite'))
    now = result_files(tmp_path / 'd')
    assert f'1.rejected/{REASON}' not in now and not (tmp_path / 'd' / '1.rejected').exists()
    assert {name: data for name, data in now.items() if name[0] == '2'} == {
        name: data for name, data in whole.items() if name[0] == '2'
    }


@pytest.mark.parametrize('command', [vocab, count])
def test_lines_that_no_result_speaks_of_are_not_replaced_unasked(texts, tmp_path, command):
    theirs = write(tmp_path / 'd' / '1.rejected' / REASON, b'theirs')
    said = refuse(*command(texts['x'], tmp_path / 'd' / '1'))
    assert str(theirs) in said and '--overwrite' in said
    assert theirs.read_bytes() == b'theirs'
    succeed(*command(texts['x'], tmp_path / 'd' / '1', '--overwrite'))
    assert theirs.read_bytes() != b'theirs'


def test_a_build_and_an_encode_keep_them_in_their_folder(texts, tmp_path):
    build = [
        'build', '--text', texts['x'], '--dev', texts['y'], '--name', 'n', '--vocab-size',
        200, '--on-error', 'skip', '--output', tmp_path / 'd',
    ]  # fmt: skip
    succeed(*build)
    manifest = json.loads((tmp_path / 'd' / 'tokbeam.json').read_text())
    names = ['rejected/dev.invalid_utf8.jsonl', f'rejected/{REASON}']
    assert sorted(each['name'] for each in manifest['rejected']) == names
    assert not list((tmp_path / 'd').glob('counts*.rejected'))
    clean = [texts['clean'] if each == texts['x'] else each for each in build]
    succeed(*clean, '--overwrite')
    assert [path.name for path in (tmp_path / 'd' / 'rejected').iterdir()] == [
        'dev.invalid_utf8.jsonl'
    ]
