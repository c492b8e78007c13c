"""What differs between two revisions is found, and against bc5a19e nothing differs."""

import json
from pathlib import Path

import pytest
from jobs import write

from .__main__ import main
from .comparison import ADDED, DIFFERENT, EQUAL, MISSING, RENUMBERED, compare_results

CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'


def states(before: dict[str, bytes], now: dict[str, bytes], root: Path) -> dict:
    for name, files in [('before', before), ('now', now)]:
        (root / name).mkdir()
        for file, data in files.items():
            write(root / name / file, data)
    compared = compare_results(root / 'before', root / 'now')
    assert len({each.name for each in compared}) == len(compared)
    return {each.name: each.state for each in compared}


def test_every_difference_is_found(tmp_path):
    before = {'a': b'1', 'b/c': b'22', 'cut': b'333', 'tokbeam.run.json': b'1', 'gone': b''}
    now = {'a': b'1', 'b/c': b'23', 'cut': b'33', 'tokbeam.run.json': b'2', '.tokbeam-x': b''}
    assert states(before, now, tmp_path) == {
        'a': EQUAL, 'b/c': DIFFERENT, 'cut': DIFFERENT, 'gone': MISSING, '.tokbeam-x': ADDED,
    }  # fmt: skip


@pytest.mark.parametrize(
    'now, state',
    [
        ({'format': 2, 'options': {'é': 1}}, RENUMBERED),
        ({'format': 1, 'options': {'é': 2}}, DIFFERENT),
        ({'format': 2, 'options': {'é': 2}}, DIFFERENT),
        ({'format': 2, 'options': {}}, DIFFERENT),
    ],
)
def test_a_manifest_may_have_another_format_number_and_nothing_else(tmp_path, now, state):
    before = json.dumps({'format': 1, 'options': {'é': 1}}).encode()
    name = 'vocab.tokbeam.json'
    assert states({name: before}, {name: json.dumps(now).encode()}, tmp_path) == {name: state}


def test_a_revision_that_is_not_there_is_told(capsys):
    assert main(['--against', '0' * 40]) == 2
    assert 'cannot be had' in capsys.readouterr().err


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.is_dir(), reason=f'{CORPORA} is not there')
def test_whole_corpora_are_those_of_bc5a19e(capsys):
    status = main(['--against', 'bc5a19e', '--corpora', str(CORPORA)])
    if status == 2:
        pytest.skip(capsys.readouterr().err)
    assert status == 0, capsys.readouterr().out
