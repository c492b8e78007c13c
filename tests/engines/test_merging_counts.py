"""`tokbeam count --merge`: counts add up without reading text again."""

import json
import shutil

import pyarrow.parquet as parquet
import pytest
from dataset_files import manifest_of
from generated_text import english_lines
from jobs import refuse, succeed, write


def counted(folder) -> dict[str, int]:
    """Returns the counts in a COUNTS folder; a token stands in one file only."""
    tables = [parquet.read_table(path) for path in sorted(folder.glob('*.parquet'))]
    rows = [row for table in tables for row in table.to_pylist()]
    assert len({row['token'] for row in rows}) == len(rows)
    return {row['token']: row['count'] for row in rows}


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('made')
    lines = english_lines(400, seed=3)
    parts = {'one': lines[:150], 'two': lines[150:], 'all': lines}
    for name, part in parts.items():
        path = write(folder / f'{name}.txt', '\n'.join(part).encode())
        succeed('count', '--text', path, '--output', folder / name)
    return folder


@pytest.fixture
def halves(made, tmp_path):
    """A copy of what was counted, to do anything to."""
    return shutil.copytree(made, tmp_path / 'made')


def test_the_sum_of_two_halves_is_the_count_of_the_whole(halves):
    succeed('count', '--counts', halves / 'one', halves / 'two', '--output', halves / 'sum')
    assert counted(halves / 'sum') == counted(halves / 'all')
    assert manifest_of(halves / 'sum')['tokens'] == sum(counted(halves / 'all').values())
    for path in (halves / 'all').glob('*.parquet'):
        assert (halves / 'sum' / path.name).read_bytes() == path.read_bytes()


def test_the_same_counts_merged_twice_are_doubled(halves):
    succeed('count', '--counts', halves / 'one', halves / 'one', '--output', halves / 'twice')
    assert counted(halves / 'twice') == {
        token: 2 * count for token, count in counted(halves / 'one').items()
    }


def test_a_second_merge_does_nothing_and_a_changed_part_is_refused(halves):
    arguments = ['count', '--counts', halves / 'one', halves / 'two', '--output', halves / 'sum']
    succeed(*arguments)
    assert 'already done' in succeed(*arguments)
    sentence = refuse(
        'count', '--counts', halves / 'one', halves / 'all', '--output', halves / 'sum'
    )
    assert 'of a run with other input files: ' in sentence and '--overwrite' in sentence
    sentence = refuse(*arguments, '--counts', halves / 'all')
    assert 'of a run with another merged: 2 there, 3 now' in sentence


@pytest.mark.parametrize('wrong', ['no manifest', 'output', 'unicode'])
def test_only_whole_counts_of_this_unicode_version_are_merged_elsewhere(halves, wrong):
    manifest, output = halves / 'one' / 'tokbeam.json', halves / 'sum'
    if wrong == 'no manifest':
        manifest.unlink()
    elif wrong == 'output':
        output = halves / 'two'
    else:
        manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), 'unicode': '6.0.0'}))
    refuse('count', '--counts', halves / 'one', halves / 'two', '--output', output, '--overwrite')
