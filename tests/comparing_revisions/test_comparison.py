"""What differs is found and told from what has only moved; and against 6b30307 nothing differs."""

import json
from pathlib import Path

import pytest
from jobs import write

from .__main__ import main
from .comparison import ADDED, DIFFERENT, EQUAL, MISSING, MOVED, compare_results

CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'


def states(before: dict[str, bytes], now: dict[str, bytes], command: str, root: Path) -> dict:
    for name, files in [('before', before), ('now', now)]:
        (root / name).mkdir()
        for file, data in files.items():
            write(root / name / file, data)
    compared = compare_results(root / 'before', root / 'now', command)
    assert len({each.name for each in compared}) == len(compared)
    return {each.name: each.state for each in compared}


def manifest(*rejected: str) -> bytes:
    fields = {'options': {'é': 1}, 'rejected': [{'name': name, 'bytes': 3} for name in rejected]}
    return f'{json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=False)}\n'.encode()


def test_every_difference_is_found(tmp_path):
    before = {'a': b'1', 'b/c': b'22', 'cut': b'333', 'tokbeam.run.json': b'1', 'gone': b''}
    now = {'a': b'1', 'b/c': b'23', 'cut': b'33', 'tokbeam.run.json': b'2', '.tokbeam-x': b''}
    assert states(before, now, 'encode', tmp_path) == {
        'a': EQUAL, 'b/c': DIFFERENT, 'cut': DIFFERENT, 'gone': MISSING, '.tokbeam-x': ADDED,
    }  # fmt: skip


def test_rejected_lines_of_a_count_or_a_vocabulary_have_moved(tmp_path):
    name = 'train.invalid_utf8.jsonl'
    for number, (command, output) in enumerate([('count', 'counts'), ('vocab', 'vocab')]):
        before = {f'rejected/{name}': b'x', f'rejected/other.{name}': b'y'}
        now = {f'{output}.rejected/{name}': b'x', f'{output}.rejected/other.{name}': b'z'}
        (tmp_path / command).mkdir()
        assert states(before, now, command, tmp_path / command) == {
            f'rejected/{name}': MOVED, f'rejected/other.{name}': DIFFERENT,
        }  # fmt: skip


def test_those_of_a_dataset_have_not(tmp_path):
    before = {'data/rejected/train.x.jsonl': b'x', 'rejected/train.x.jsonl': b'x'}
    now = {'data/rejected/train.x.jsonl': b'x', 'data.rejected/train.x.jsonl': b'x'}
    assert states(before, now, 'encode', tmp_path) == {
        'data/rejected/train.x.jsonl': EQUAL,
        'rejected/train.x.jsonl': MISSING,
        'data.rejected/train.x.jsonl': ADDED,
    }


@pytest.mark.parametrize(
    'now, state',
    [
        (manifest('vocab.rejected/a.jsonl', 'vocab.rejected/b.jsonl'), MOVED),
        (manifest('rejected/a.jsonl', 'rejected/b.jsonl'), EQUAL),
        (manifest('vocab.rejected/a.jsonl', 'rejected/b.jsonl'), DIFFERENT),
        (manifest('vocab.rejected/a.jsonl', 'vocab.rejected/c.jsonl'), DIFFERENT),
        (manifest(), DIFFERENT),
    ],
)
def test_a_manifest_may_name_what_moved_and_nothing_else(tmp_path, now, state):
    before = manifest('rejected/a.jsonl', 'rejected/b.jsonl')
    name = 'vocab.tokbeam.json'
    assert states({name: before}, {name: now}, 'vocab', tmp_path) == {name: state}


def test_a_revision_that_is_not_there_is_told(capsys):
    assert main(['--against', '0' * 40]) == 2
    assert 'cannot be had' in capsys.readouterr().err


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.is_dir(), reason=f'{CORPORA} is not there')
def test_whole_corpora_are_those_of_6b30307(packages_of_6b30307, capsys):
    status = main(['--against', '6b30307', '--corpora', str(CORPORA)])
    assert status == 0, capsys.readouterr().out
