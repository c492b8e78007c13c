"""A number or share of `--on-error` ends a job that loses too many lines, and tells how many."""

import re

import pytest
from dataset_files import lines_of, read_shards
from jobs import refuse, succeed, write

GOOD = 297
ENCODING = ['encode', '--scheme', 'byte', '--name', 'x', '--shards', 2]
SMALL = ['@item-size', 400]
RUNS = pytest.mark.parametrize(('shuffle', 'workers'), [('files', 2), ('engine', 1)])


@pytest.fixture(scope='module')
def three_of_300(tmp_path_factory):
    """300 lines, of which three are too short."""
    lines = [f'source {number}\ttarget {number}\n' for number in range(GOOD)]
    for place in (0, 150, GOOD + 2):
        lines.insert(place, 'short\n')
    return write(tmp_path_factory.mktemp('corpus') / 'x.tsv', ''.join(lines).encode())


@pytest.fixture(scope='module')
def nothing_but_bad(tmp_path_factory):
    """10,000 lines, and none of them good."""
    return write(tmp_path_factory.mktemp('bad') / 'x.tsv', b'no columns here\n' * 10_000)


@RUNS
@pytest.mark.parametrize('enough', ['3', '1%'])
def test_exactly_so_many_may_be_left_out(three_of_300, tmp_path, shuffle, workers, enough):
    succeed(
        *ENCODING, '--tsv', three_of_300, *SMALL, '--on-error', enough,
        '@shuffle', shuffle, '--workers', workers, '--output', tmp_path / 'out',
    )  # fmt: skip
    assert lines_of(tmp_path / 'out')['missing_column'] == 3
    assert sum(map(len, read_shards(tmp_path / 'out'))) == GOOD


@RUNS
@pytest.mark.parametrize('too_few', ['2', '0.9%'])
def test_one_more_ends_the_job(three_of_300, tmp_path, shuffle, workers, too_few):
    said = refuse(
        *ENCODING, '--tsv', three_of_300, *SMALL, '--on-error', too_few,
        '@shuffle', shuffle, '--workers', workers, '--output', tmp_path / 'out',
    )  # fmt: skip
    assert re.search(r'3 of \d+ lines read could not be used \(3 missing_column\), more than', said)
    assert f'--on-error {too_few} allows;' in said
    assert not (tmp_path / 'out').exists()


@RUNS
@pytest.mark.parametrize('few', ['10', '5%'])
def test_it_ends_before_all_is_read(nothing_but_bad, tmp_path, shuffle, workers, few):
    said = refuse(
        *ENCODING, '--tsv', nothing_but_bad, *SMALL, '--on-error', few,
        '@shuffle', shuffle, '--workers', workers, '--output', tmp_path / 'out',
    )  # fmt: skip
    [(rejected, read)] = re.findall(r'(\d+) of (\d+) lines read could not be used', said)
    assert rejected == read
    assert int(read) < 10_000


@pytest.mark.parametrize(
    'command',
    [['count'], ['vocab', '--vocab-size', 99], ['build', '--vocab-size', 99, '--name', 'x']],
    ids=lambda command: command[0],
)
def test_every_command_that_reads_a_corpus_ends_so(nothing_but_bad, tmp_path, command):
    said = refuse(
        *command, '--tsv', nothing_but_bad, *SMALL, '--on-error', 10,
        '--output', tmp_path / 'out',
    )  # fmt: skip
    [(rejected, read)] = re.findall(r'(\d+) of (\d+) lines read could not be used', said)
    assert 10 < int(rejected) == int(read) < 10_000


def test_a_share_of_a_compressed_file_is_judged_at_its_end(three_of_300, tmp_path):
    zipped = write(tmp_path / 'x.tsv.gz', three_of_300.read_bytes())
    command = [*ENCODING, '--tsv', zipped, *SMALL, '--output', tmp_path / 'out']
    said = refuse(*command, '--on-error', '0.9%')
    assert '3 of 300 lines read could not be used' in said
    succeed(*command, '--on-error', '1%')


def test_all_datasets_of_a_job_share_it(three_of_300, tmp_path):
    dev = write(tmp_path / 'dev.tsv', b'short\n' + b'a\tb\n' * 50)
    command = [*ENCODING, '--tsv', three_of_300, '--dev', dev, *SMALL]
    said = refuse(*command, '--on-error', 3, '--output', tmp_path / 'out')
    assert '4 of ' in said
    succeed(*command, '--on-error', 4, '--output', tmp_path / 'out')


def test_a_result_that_is_there_is_judged_too(three_of_300, tmp_path):
    job = [*ENCODING, '--tsv', three_of_300, *SMALL, '--output', tmp_path / 'out']
    succeed(*job, '--on-error', 'skip')
    said = refuse(*job, '--on-error', 2)
    assert '3 of 300 lines read could not be used (3 missing_column), more than' in said
    assert 'already done' in succeed(*job, '--on-error', 3)
