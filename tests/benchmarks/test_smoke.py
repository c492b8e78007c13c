"""The benchmark works: rows come out, on generated text, and the contenders' results agree.

Nothing is said of times. That vocabularies and records are the original's is tested elsewhere too;
here, that the table compares like with like.
"""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.earlier_revisions import MissingRevisionError, packages_of
from tokcore.encoding import encoder
from tokcore.kernels import sorting

from . import report
from .__main__ import main, wanted_rows
from .comparing import Comparison, Figure, RowResult
from .contenders import OURS, Contender, Row
from .goals import mean_ratios
from .revisions import speed_ratio
from .rows import all_rows
from .running import ROOT
from .scale import FULL, SMOKE
from .stage_timer import StageTimer

pytestmark = pytest.mark.slow

_ROWS = ('count/enzh/1', 'records/enzh/1', 'shuffled/*')
_AGREEING = {'re.findall + Counter', 'Tensor2Tensor', 'plain counting'}


def _usable_cores() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else set()


@pytest.fixture(scope='module')
def smoke(tmp_path_factory) -> dict:
    """What a run of some rows wrote."""
    folder = tmp_path_factory.mktemp('benchmarks')
    output = folder / 'figures.json'
    killed = folder / 'scratch' / 'records-enzh-1.ours.tfrecord'
    killed.mkdir(parents=True)  # what it left would be in the way
    (killed / 'shard').write_bytes(b'half of a record')
    status = main(
        ['--smoke', '--rows', *_ROWS, '--output', str(output), '--scratch', str(folder / 'scratch')]
    )
    assert status == 0
    return json.loads(output.read_text(encoding='utf-8'))


def test_every_row_asked_for_has_a_figure_of_ours(smoke):
    names = [row['name'] for row in smoke['rows']]
    assert names == [row.name for row in wanted_rows(all_rows(SMOKE), _ROWS)]
    for row in smoke['rows']:
        for comparison in row['comparisons']:
            assert comparison['ours']['problem'] is None
            assert comparison['ours']['median_seconds'] > 0
            assert comparison['ours']['peak_bytes'] > 0


def test_a_peer_does_the_same_or_is_reported_as_missing(smoke):
    peers = {
        comparison['peer']['label']: comparison
        for row in smoke['rows']
        for comparison in row['comparisons']
        if comparison['peer'] is not None
    }
    assert set(peers) == _AGREEING
    for comparison in peers.values():
        problem = comparison['peer']['problem']
        if problem is None:
            assert comparison['results_agree'] is True
            assert comparison['ratio'] > 0
        else:
            assert problem.startswith('missing: ')
    for label in ('re.findall + Counter', 'plain counting'):
        assert peers[label]['peer']['problem'] is None


def test_packed_counting_shuffles_at_most_a_quarter_of_plain(smoke):
    [row] = [row for row in smoke['rows'] if row['name'].startswith('shuffled/')]
    [comparison] = row['comparisons']
    packed, plain = comparison['ours']['facts'], comparison['peer']['facts']
    assert 4 * packed['shuffled_bytes'] <= plain['shuffled_bytes']
    assert packed['rounds'] == plain['rounds'] > 1
    assert comparison['ratio'] == plain['shuffled_bytes'] / packed['shuffled_bytes']


@pytest.mark.large
def test_no_comparison_of_any_row_fails(tmp_path):
    output = tmp_path / 'figures.json'
    assert main(['--smoke', '--rows', '*', '--output', str(output)]) == 0
    rows = json.loads(output.read_text(encoding='utf-8'))['rows']
    assert [row['name'] for row in rows] == [row.name for row in all_rows(SMOKE)]
    figures = [
        (row['name'], comparison[side])
        for row in rows
        for comparison in row['comparisons']
        for side in ('ours', 'peer')
        if comparison[side] is not None
    ]
    failed = [
        (name, figure['label'], figure['problem'])
        for name, figure in figures
        if figure['problem'] and figure['problem'].startswith('failed')
    ]
    assert not failed


def test_names_of_rows_are_their_own():
    for scale in (FULL, SMOKE):
        names = [row.name for row in all_rows(scale)]
        assert len(set(names)) == len(names)


@pytest.mark.skipif(len(_usable_cores()) < 2, reason='one core, or no say in which')
def test_rows_measured_at_once_have_cores_of_their_own():
    code = (
        'import os, sys\n'
        'from tests.benchmarks.task_process import keep_to\n'
        'keep_to(1, int(sys.argv[1]))\n'
        'print(*os.sched_getaffinity(0))'
    )
    cores = [
        subprocess.check_output([sys.executable, '-c', code, lane], cwd=ROOT, text=True).split()
        for lane in ('0', '1')
    ]
    assert [len(each) for each in cores] == [1, 1]
    assert cores[0] != cores[1]


def test_the_limits_are_next_to_the_stages(capsys, tmp_path):
    assert main(['--limits', '--smoke', '--scratch', str(tmp_path)]) == 0
    lines = [line.strip('| ').split(' | ') for line in capsys.readouterr().out.splitlines()]
    values = {fields[0]: fields[1:] for fields in lines if len(fields) > 1}
    for stage in ('find, hash and count tokens', 'text to ids'):
        for figures in values[stage]:
            nanoseconds, limit = map(float, re.fullmatch(r'(\S+) \((\S+)\)', figures).groups())
            assert nanoseconds > 0
            assert limit > 0
    assert {'**count**', '**learn**', '**encode**', '- segment missed tokens'} <= set(values)


def test_the_timer_leaves_the_program_as_it_was():
    before = encoder.encode_rows, sorting.SortedRows.__dict__['of']
    timer = StageTimer()
    with timer.timing():
        assert encoder.encode_rows is not before[0]
        sorting.SortedRows.of(*np.zeros((4, 0), np.uint64), np.zeros((0, 1), np.uint32))
    assert (encoder.encode_rows, sorting.SortedRows.__dict__['of']) == before
    [(phase, stage)] = timer.stages
    assert (phase, stage.name) == ('', 'sort rows of others')


def test_an_unknown_row_is_refused(capsys):
    assert main(['--rows', 'no/such/row']) == 2
    assert '--list' in capsys.readouterr().err


@pytest.mark.parametrize(
    'revision',
    [
        'HEAD',
        pytest.param('6b30307', marks=pytest.mark.corpora),  # its kernels have to be compiled
    ],
)
def test_a_row_is_compared_with_an_earlier_revision(capsys, tmp_path, revision):
    try:
        packages_of(revision)
    except MissingRevisionError as error:
        pytest.skip(f'{revision} is not available: {error}')
    arguments = ['--rows', 'count/enzh/1', '--smoke', '--no-peers', '--against', revision]
    figures = tmp_path / 'figures.json'
    assert main([*arguments, '--output', str(figures)]) == 0
    [row] = json.loads(figures.read_text())['rows']
    [comparison] = row['comparisons']
    assert comparison['peer']['label'] == revision
    assert comparison['results_agree']
    assert f'{revision} takes ' in capsys.readouterr().out


def test_the_mean_of_a_revision_tells_the_rows_that_are_slower():
    results = [_result('count/a', 2.0, 4.0), _result('count/b', 2.0, 1.0)]
    ratio = speed_ratio(results, 're.findall + Counter')
    assert ratio.mean == pytest.approx(1)
    assert ratio.slower == (('count/b', 0.5),)


def test_a_revision_that_is_not_there_is_refused(capsys):
    assert main(['--rows', 'count/enzh/1', '--smoke', '--against', 'no-such']) == 2
    assert 'no-such' in capsys.readouterr().err


def test_a_mean_is_geometric_and_over_the_rows_with_a_target():
    results = [_result('count/a', 2.0, 10.0), _result('count/b', 1.0, 20.0)]
    [mean] = mean_ratios([*results, _result('count/c', 1.0, 1.0, target=None)])
    assert mean.mean == pytest.approx(10)
    assert mean.least == 5
    assert mean.rows == 2
    assert not mean.reached


def test_results_that_differ_are_called_out():
    [line] = report.table_lines(_result('count/a', 1.0, 2.0, digests=('1', '2')))
    assert 'THE RESULTS DIFFER' in line


def _result(
    name: str, ours: float, theirs: float, target: float | None = 7.2, digests=('1', '1')
) -> RowResult:
    label = 're.findall + Counter'
    contenders = [Contender(each, '', lambda inputs: {}) for each in (OURS, label)]
    figures = [
        Figure(each.label, seconds, (seconds,), 0, {'digest': digest})
        for each, seconds, digest in zip(contenders, (ours, theirs), digests, strict=True)
    ]
    row = Row(name, '', '', contenders[0], (contenders[1],))
    return RowResult(row, (Comparison(*figures, 1000, target),), ())
