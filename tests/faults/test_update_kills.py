"""An update that is killed at any moment leaves nothing half, and the same command gives the whole result."""

import pytest
from generated_text import as_tsv, pairs_with_gaps
from jobs import succeed, write
from killed_runs import NEVER, moments_of, run_until
from leftovers import assert_finished, result_files
from test_kills import assert_all_whole

pytestmark = pytest.mark.slow


def kill_updates(folder, count):
    old, new = (
        write(folder / f'{name}.tsv', as_tsv(pairs_with_gaps(1500, seed)))
        for name, seed in (('old', 3), ('new', 4))
    )
    encode = ['--scheme', 'byte', '--name', 'n', '--shards', 5]
    succeed('encode', '--tsv', old, *encode, '--output', folder / 'before')
    before = result_files(folder / 'before')
    offsets = [len(line) for line in old.read_bytes().splitlines(keepends=True)]
    first = sum(offsets[:3])
    write(folder / 'list', f'old.tsv:{first}\n'.encode())
    succeed(
        'encode',
        '--tsv',
        old,
        new,
        *encode,
        '--leave-out',
        folder / 'list',
        '--output',
        folder / 'whole',
    )
    reference = result_files(folder / 'whole')
    update = ['update', folder / 'before', '--tsv', new, '--remove', folder / 'list', '--output']
    _, measured = run_until([*update, folder / 'measured'], folder / 'measured', NEVER)
    old.unlink()
    killed = 0
    for number, moment in enumerate(moments_of(measured, count, seed=1)):
        output = folder / f'out{number}'
        was_killed, _ = run_until([*update, output], output, moment)
        killed += was_killed
        assert_all_whole(output, reference)
        succeed(*update, output)
        assert result_files(output) == reference
        assert_finished(output)
    assert killed > count // 3
    assert result_files(folder / 'before') == before


def test_an_update_killed_at_some_moments(tmp_path):
    kill_updates(tmp_path, 6)


@pytest.mark.corpora
def test_an_update_killed_at_fifty_moments(tmp_path):
    kill_updates(tmp_path, 50)
