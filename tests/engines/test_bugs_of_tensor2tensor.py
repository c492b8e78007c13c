"""What Tensor2Tensor does wrong while it compiles, writes and shuffles data, and is not done here.

Each test is named after the bug. Those of sampling, SGM, TMX and cleaning stand with their formats and
filters, those of runs that are killed with the faults.
"""

import io
import os
import stat
import tarfile

import pytest
from dataset_files import files_of, lines_of, manifest_of, read_shards, shards_and_vocabularies
from jobs import refuse, succeed, write

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


def test_a_missing_dev_shard_is_made_again_and_not_left_unshuffled(columns, tmp_path):
    job = building(tmp_path / 'out', '--tsv', columns, '--dev', columns)
    succeed(*job)
    whole = shards_and_vocabularies(tmp_path / 'out')
    (tmp_path / 'out' / 'x-dev-00000-of-00001').unlink()
    assert 'x-dev-00000-of-00001 is missing' in refuse(*job)
    succeed(*job, '--overwrite')
    assert shards_and_vocabularies(tmp_path / 'out') == whole
    assert not [name for name in os.listdir(tmp_path / 'out') if 'unshuffled' in name]


def test_leftovers_of_a_run_do_not_fail_the_next_one_after_all_its_work(columns, tmp_path):
    job = building(tmp_path / 'out', '--tsv', columns)
    succeed(*job)
    whole = shards_and_vocabularies(tmp_path / 'out')
    write(tmp_path / 'out' / 'x-unshuffled-train-00000-of-00003.incomplete', b'half')
    succeed(*job, '--overwrite')
    made = shards_and_vocabularies(tmp_path / 'out')
    assert {name: made[name] for name in whole} == whole


def test_an_empty_text_is_not_an_error_when_it_is_written(tmp_path):
    text = write(tmp_path / 'x.txt', b'one\n\n \t\ntwo\n')
    succeed(*building(tmp_path / 'out', '--text', text))
    assert lines_of(tmp_path / 'out')['empty'] == 2
    assert lines_of(tmp_path / 'out')['examples'] == 2


def test_all_is_shuffled_and_not_shard_by_shard(columns, tmp_path):
    succeed(*building(tmp_path / 'out', '--tsv', columns))
    # Dealt out in turns and shuffled within, a shard would have every third row.
    shards = read_shards(tmp_path / 'out')
    assert sorted(map(len, shards)) != [13, 13, 14]
    assert sum(map(len, shards)) == 40


def test_the_order_does_not_depend_on_who_does_the_work(columns, tmp_path):
    folders = [tmp_path / 'one', tmp_path / 'two']
    for workers, folder in enumerate(folders, 1):
        succeed(*building(folder, '--tsv', columns), '--workers', workers)
    assert len({str(sorted(shards_and_vocabularies(folder).items())) for folder in folders}) == 1


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


def test_the_tail_of_the_longer_file_is_not_dropped(tmp_path):
    source = write(tmp_path / 'x.en', b'one\ntwo\nthree\n')
    target = write(tmp_path / 'x.zh', b'1\n2\n')
    said = refuse(*building(tmp_path / 'out', '--source', source, '--target', target))
    assert '3 lines' in said and '2' in said


def test_too_few_columns_do_not_end_the_job_with_a_traceback(tmp_path):
    short = write(tmp_path / 'x.tsv', PAIRS + b'a single column\n')
    job = building(tmp_path / 'out', '--tsv', short)
    assert f'byte {len(PAIRS)}' in refuse(*job)
    succeed(*job, '--on-error', 'skip')
    assert lines_of(tmp_path / 'out')['missing_column'] == 1
    assert lines_of(tmp_path / 'out')['examples'] == 40


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
    archive = tmp_path / 'in' / 'x.tgz'
    archive.parent.mkdir()
    with tarfile.open(archive, 'w:gz') as tar:
        for name in ('x.txt', '../evil.txt', f'{tmp_path}/worse.txt'):
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b'one\n'))
    succeed(*building(tmp_path / 'out', '--text', f'{archive}!x.txt'))
    assert sorted(os.listdir(tmp_path)) == ['in', 'out']
    assert os.listdir(archive.parent) == ['x.tgz']


def test_the_test_split_reads_its_own_files(columns, tmp_path):
    dev = write(tmp_path / 'dev.tsv', b'development\tset\n')
    test = write(tmp_path / 'test.tsv', b'a test\tset\nof two\tlines\n')
    succeed(*building(tmp_path / 'out', '--tsv', columns, '--dev', dev, '--test', test))
    assert [lines_of(tmp_path / 'out', split)['lines'] for split in ('dev', 'test')] == [1, 2]


def test_files_are_read_in_the_order_of_their_names(tmp_path):
    for number in (2, 0, 1):
        write(tmp_path / 'in' / f'{number}.tsv', PAIRS.replace(b'source', b'%d' % number))
    succeed(*building(tmp_path / 'glob', '--tsv', tmp_path / 'in' / '*.tsv'))
    named = [tmp_path / 'in' / f'{number}.tsv' for number in range(3)]
    succeed(*building(tmp_path / 'named', '--tsv', *named))
    assert files_of(tmp_path / 'glob') == files_of(tmp_path / 'named')


def test_a_dataset_whose_name_begins_alike_is_not_read_with_another(columns, tmp_path):
    other = write(tmp_path / 'other.tsv', b'other\trows\n')
    for name, file in (('x', columns), ('x-train-2', other)):
        succeed(
            *('build', '--tsv', file, '--name', name, '--scheme', 'byte', '--shards', 1),
            *('--output', tmp_path / name),
        )
    names = os.listdir(tmp_path / 'x')
    assert not [each for each in names if each.startswith('x-train-2')]
    assert lines_of(tmp_path / 'x')['examples'] == 40
