"""A second run: skipped where it would give the same, refused where not, or told to overwrite."""

import json
import os
import shutil

import pytest
from dataset_files import files_of, manifest_of, read_shards, texts_of
from generated_text import as_tsv, distinct_pairs, kept_pairs
from jobs import refuse, succeed, write

from tokcore import format_numbers as formats

DATASET = ['--name', 'x', '--shards', 3]
VOCABULARY = ['--vocab-size', 900]


@pytest.fixture
def job(small, small_build, tmp_path):
    """The small corpus and its dataset, copied with their file times, to do anything to."""
    corpus = tmp_path / 'pairs.tsv'
    output = tmp_path / 'out'
    shutil.copy2(small.tsv, corpus)
    shutil.copytree(small_build, output)
    return corpus, output


def command(job, *options, **replaced):
    corpus, output = job
    known = {'name': 'small', 'shards': 3, 'vocab-size': 900}
    known |= {name.replace('_', '-'): value for name, value in replaced.items()}
    given = [part for name, value in known.items() for part in (f'--{name}', value)]
    return ['build', '--tsv', corpus, '--output', output, *given, *options]


def states_of(folder):
    """What changes when a file is written again, even with the same bytes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob('*')
        if path.is_file()
    }


def test_a_finished_build_is_skipped(job):
    before = states_of(job[1])
    assert f'build: already done in {job[1]}' in succeed(*command(job))
    # Nor do options matter that change no byte.
    said = succeed(*command(job, '--workers', 1, '@item-size', '1KiB', '--learner', 'memory'))
    assert 'already done' in said
    assert states_of(job[1]) == before


def test_every_command_is_skipped(small, tmp_path):
    counts, vocabulary, output = (tmp_path / name for name in ('counts', 'vocab', 'out'))
    commands = [
        ['count', '--tsv', small.tsv, '--output', counts],
        ['vocab', '--counts', counts, *VOCABULARY, '--output', vocabulary],
        ['vocab', '--tsv', small.tsv, *VOCABULARY, '--output', tmp_path / 'from-text'],
        ['encode', '--tsv', small.tsv, '--vocab', vocabulary, *DATASET, '--output', output],
    ]
    for each in commands:
        assert 'already done' not in succeed(*each)
    before = states_of(tmp_path)
    for each in commands:
        assert f'{each[0]}: already done in {each[-1]}' in succeed(*each)
    assert states_of(tmp_path) == before
    read_shards(output)


def test_a_result_of_another_format_is_refused_with_both_numbers_and_can_be_replaced(job):
    output = job[1]
    path = output / 'tokbeam.json'
    path.write_text(json.dumps({**json.loads(path.read_bytes()), 'format': 1}))
    kept = states_of(output)
    sentence = refuse(*command(job))
    assert (
        f'{path} has format 1, and this version of tokbeam reads format {formats.DATASET}'
        in sentence
    )
    assert '--overwrite' in sentence
    assert states_of(output) == kept
    succeed(*command(job, '--overwrite', shards=2))
    assert manifest_of(output)['format'] == formats.DATASET
    assert len(read_shards(output)) == 2  # none of the three is left


def test_a_build_without_its_manifest_keeps_the_counts(job):
    whole = files_of(job[1])
    counts = {name: state for name, state in states_of(job[1]).items() if name.startswith('counts')}
    (job[1] / 'tokbeam.json').unlink()
    said = succeed(*command(job))
    assert 'count: already done' in said and 'build: already done' not in said
    assert files_of(job[1]) == whole
    after = states_of(job[1])
    assert {name: after[name] for name in counts} == counts


@pytest.mark.parametrize(
    'option, before, now',
    [
        ('shards', 3, 4),
        ('vocab-size', 900, 800),
        ('seed', 0, 1),
        ('source-prefix', '', 'to Chinese: '),
        ('target-prefix', '', '<2zh>'),
        ('search', 't2t', 'closest'),
        ('min-count-range', None, '1:900'),
        ('max-subtoken-length', 200, 'none'),
        ('reserved-token', None, 'X'),
        ('columns', '0, 1', '1,0'),
        ('shared-vocab', False, True),
        ('name', 'small', 'large'),
    ],
)
def test_another_option_is_refused_with_both_values(job, option, before, now):
    kept = states_of(job[1])
    if option == 'shared-vocab':
        sentence = refuse(*command(job, '--shared-vocab'))
    else:
        sentence = refuse(*command(job, **{option: now}))
    assert f'--{option}' in sentence and '--overwrite' in sentence
    shown = {'1:900': '[1, 900]', '1,0': '[1, 0]', 'X': "['X']", 'none': 'none'}.get(now, str(now))
    assert f'{shown} now' in sentence
    if before is not None:
        there = {'0, 1': '[0, 1]'}.get(before, str(before))
        assert f'{there} there' in sentence
    assert states_of(job[1]) == kept


def test_another_command_is_refused(job, tmp_path):
    vocabulary = job[1] / 'vocab.small.900.subwords.inputs'
    sentence = refuse(
        *('encode', '--tsv', job[0], '--vocab', vocabulary),
        *('--name', 'small', '--shards', 3, '--output', job[1]),
    )
    assert 'build there, encode now' in sentence


@pytest.mark.parametrize(
    'change',
    [
        lambda data: data + b'one more\tline\n',
        lambda data: data.replace(b'e', b'a', 1),
        lambda data: data[: len(data) // 2] + b'\n',
    ],
    ids=['grown', 'same size', 'shrunk'],
)
def test_changed_inputs_are_refused(job, change):
    before = job[0].read_bytes()
    old_time = job[0].stat().st_mtime
    job[0].write_bytes(change(before))
    os.utime(job[0], (old_time + 5, old_time + 5))
    kept = states_of(job[1])
    sentence = refuse(*command(job))
    [recorded] = manifest_of(job[1])['inputs']
    assert str(job[0]) in sentence
    assert f'{len(before)} bytes with CRC-32C {recorded["crc32c"]} there' in sentence
    assert f'{len(change(before))} bytes' in sentence or f'{len(change(before))} with' in sentence
    assert states_of(job[1]) == kept


def test_other_input_files_are_refused(job, tmp_path):
    second = write(tmp_path / 'more.tsv', as_tsv(distinct_pairs(3, seed=1)))
    sentence = refuse(*command(job, '--tsv', second))
    assert 'input files' in sentence and 'more.tsv' in sentence
    sentence = refuse(*command(job, '--dev', second))
    assert 'more.tsv' in sentence or '--dev' in sentence


def test_a_touched_input_is_accepted_after_its_checksum(job):
    os.utime(job[0], (1_000_000_000, 1_000_000_000))
    before = states_of(job[1])
    assert 'already done' in succeed(*command(job))
    assert {name: state for name, state in states_of(job[1]).items() if 'run.json' not in name} == {
        name: state for name, state in before.items() if 'run.json' not in name
    }


def test_an_input_moved_elsewhere_is_the_same_input(job, tmp_path):
    moved = write(tmp_path / 'elsewhere' / 'pairs.tsv', job[0].read_bytes())
    assert 'already done' in succeed(*command((moved, job[1])))


def test_a_missing_or_cut_off_shard_is_not_skipped_over(job):
    shard = job[1] / 'small-train-00001-of-00003'
    data = shard.read_bytes()
    for damage in (lambda: shard.unlink(), lambda: shard.write_bytes(data[:-1])):
        damage()
        assert str(shard) in refuse(*command(job))
    succeed(*command(job, '--overwrite'))
    assert shard.read_bytes() == data


def test_overwriting_leaves_no_shard_of_the_old_number(job, tmp_path):
    succeed(*command(job, '--overwrite', shards=2))
    succeed(*command((job[0], tmp_path / 'new'), shards=2))
    assert files_of(job[1]) == files_of(tmp_path / 'new')
    assert len(read_shards(job[1])) == len(list(job[1].glob('small-*'))) == 2


def test_overwriting_with_another_name_and_size_removes_the_old_files(job, small):
    succeed(*command(job, '--overwrite', **{'name': 'other', 'vocab-size': 800}))
    assert all('.other.800.' in path.name for path in job[1].glob('vocab.*'))
    assert not list(job[1].glob('small-*'))
    assert sorted(texts_of(job[1])) == sorted(kept_pairs(small.pairs))


def test_overwriting_takes_changed_inputs(job):
    pairs = distinct_pairs(40, seed=77)
    job[0].write_bytes(as_tsv(pairs))
    succeed(*command(job, '--overwrite'))
    assert sorted(texts_of(job[1])) == sorted(pairs)
    assert 'already done' in succeed(*command(job))


def test_files_that_no_run_began_are_refused(small, tmp_path):
    foreign = write(tmp_path / 'out' / 'small-train-00002-of-00003', b'precious')
    job = (small.tsv, tmp_path / 'out')
    sentence = refuse(*command(job))
    assert str(foreign) in sentence and '--overwrite' in sentence
    assert [path.name for path in (tmp_path / 'out').rglob('*')] == [foreign.name]
    assert foreign.read_bytes() == b'precious'
