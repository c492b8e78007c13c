"""What Tensor2Tensor does wrong while it compiles, writes and shuffles data, and is not done here.

Each test is named after the bug. Those of sampling, SGM, TMX and cleaning stand with their formats and
filters, those of runs that are killed with the faults. That empty texts and short rows are counted, and
that the order does not depend on who does the work, is tested for every format by `test_every_format`.
"""

import os
import stat

import pytest
from dataset_files import lines_of, manifest_of, shards_and_vocabularies
from jobs import refuse, succeed, write
from packed_members import tar_of

pytestmark = pytest.mark.slow

PAIRS = b''.join(b'source %d\ttarget %d\n' % (number, number) for number in range(40))


def building(folder, *corpus):
    return (
        *('build', *corpus, '--name', 'x', '--scheme', 'byte', '--shards', 3),
        *('--output', folder),
    )


@pytest.fixture
def columns(tmp_path):
    return write(tmp_path / 'x.tsv', PAIRS)


def test_one_output_that_exists_is_not_taken_for_all_of_them(columns, tmp_path):
    job = building(tmp_path / 'out', '--tsv', columns)
    succeed(*job)
    whole = shards_and_vocabularies(tmp_path / 'out')
    (tmp_path / 'out' / 'x-train-00001-of-00003').unlink()
    assert 'x-train-00001-of-00003 is missing' in refuse(*job)
    succeed(*job, '--overwrite')
    assert shards_and_vocabularies(tmp_path / 'out') == whole


def test_leftovers_of_a_run_do_not_fail_the_next_one_after_all_its_work(columns, tmp_path):
    job = building(tmp_path / 'out', '--tsv', columns)
    succeed(*job)
    whole = shards_and_vocabularies(tmp_path / 'out')
    write(tmp_path / 'out' / 'x-unshuffled-train-00000-of-00003.incomplete', b'half')
    succeed(*job, '--overwrite')
    made = shards_and_vocabularies(tmp_path / 'out')
    assert {name: made[name] for name in whole} == whole


def test_the_mode_of_a_folder_is_not_changed_where_a_file_is_unpacked(tmp_path):
    packed = write(tmp_path / 'in' / 'x.txt.gz', b'one\ntwo\n')
    os.chmod(packed.parent, 0o755)
    succeed(*building(tmp_path / 'out', '--text', packed))
    assert stat.S_IMODE(packed.parent.stat().st_mode) == 0o755
    assert os.listdir(packed.parent) == ['x.txt.gz']


def test_no_pair_at_all_is_a_sentence(tmp_path):
    empty = write(tmp_path / 'x.tsv', b'only a source\t\n\ttarget\n')
    said = refuse(*building(tmp_path / 'out', '--tsv', empty))
    assert 'none with text on every side' in said


def test_a_second_run_does_not_read_every_pair_twice(tmp_path):
    write(tmp_path / 'in' / 'x.tsv.gz', PAIRS)
    pattern = tmp_path / 'in' / 'x.tsv*'
    for folder in (tmp_path / 'first', tmp_path / 'second'):
        succeed(*building(folder, '--tsv', pattern))
        assert lines_of(folder)['lines'] == 40


def test_a_name_that_ends_in_letters_of_gz_is_not_cut_and_its_namesake_not_read(tmp_path):
    write(tmp_path / 'in' / 'corp.eng.gz', b'packed\n')
    write(tmp_path / 'in' / 'corp.en', b'another\n')
    succeed(*building(tmp_path / 'out', '--text', tmp_path / 'in' / 'corp.eng.gz'))
    [read] = manifest_of(tmp_path / 'out')['inputs']
    assert read['name'].endswith('corp.eng.gz')
    assert read['bytes'] == len(b'packed\n')
    assert sorted(os.listdir(tmp_path / 'in')) == ['corp.en', 'corp.eng.gz']


def test_a_relative_path_does_not_lead_to_the_root_folder(tmp_path, monkeypatch):
    write(tmp_path / 'corp.eng.gz', b'one\ntwo\n')
    monkeypatch.chdir(tmp_path)
    mode = stat.S_IMODE(os.stat('/').st_mode)
    succeed(*building('./out', '--text', './corp.eng.gz'))
    assert stat.S_IMODE(os.stat('/').st_mode) == mode
    assert not os.path.exists('/corp.en')
    assert manifest_of(tmp_path / 'out')['lines'][0]['lines'] == 2


def test_an_archive_writes_nothing_outside_of_the_output(tmp_path):
    names = ('x.txt', '../evil.txt', f'{tmp_path}/worse.txt')
    archive = write(tmp_path / 'in' / 'x.tgz', tar_of([(name, b'one\n') for name in names], 'w:gz'))
    succeed(*building(tmp_path / 'out', '--text', f'{archive}!x.txt'))
    assert sorted(os.listdir(tmp_path)) == ['in', 'out']
    assert os.listdir(archive.parent) == ['x.tgz']
