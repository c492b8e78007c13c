"""Merges learned on Beam are those that are learned in memory, however the work is cut."""

import dataclasses
import random

import apache_beam as beam
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import refuse, succeed, write

from pipelines.artifacts.counts import counts_parts
from pipelines.files.filesystem import names_below
from pipelines.learning import search
from pipelines.learning.bpe_on_beam import BeamMerges
from pipelines.learning.rounds import MergeFiles, is_learner_file
from tokcore.bpe.options import PRESETS
from tokcore.bpe.trainer import learn_merges
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

BYTES = dataclasses.replace(PRESETS['gpt2'], merges=40)
SUFFIX = dataclasses.replace(PRESETS['subword-nmt'], merges=40)
ANY_SIZE = 1 << 30


class Runs:
    """Runs pipelines in this process, and counts them."""

    def __init__(self):
        self.jobs = 0

    def __call__(self, build_pipeline):
        self.jobs += 1
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            build_pipeline(pipeline)


def sample_counts():
    dice = random.Random(7)
    syllables = ['ka', 'to', 'ing', 'st', 'aa', '中', '文字', 'é', '\U0001f600']
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 5))) for _ in range(150)]
    return {word: dice.randint(1, 90) for word in words}


def write_counts(folder, counts, files=3, rows=10):
    """Writes a table as some Parquet files of small row groups; returns the files' parts."""
    items = sorted(counts.items())
    paths = []
    for number in range(files):
        paths.append(str(folder / f'counts-{number}.parquet'))
        table = TokenTable.from_items(items[number::files])
        parquet.write_table(table.to_arrow(), paths[-1], row_group_size=rows)
    return counts_parts(paths, 2 * rows)


def result(learned):
    return list(learned.entries), list(learned.merges), learned.counts.tolist()


def in_memory(counts, rules):
    return result(learn_merges(TokenTable.from_items(counts.items()), rules))


def on_beam(folder, parts, rules, run, **options):
    return BeamMerges(
        parts, MergeFiles(str(folder / 'files')), str(folder / 'work'), run, rules, **options
    )


@pytest.mark.parametrize('rules', [BYTES, SUFFIX], ids=['bytes', 'suffix'])
def test_equals_the_learner_in_memory(tmp_path, rules):
    counts, run = sample_counts(), Runs()
    parts = write_counts(tmp_path, counts)
    assert len(parts) > 3
    learner = on_beam(tmp_path, parts, rules, run, workers=2)
    learner.learn(1000)
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert len(learner.rounds) > 1
    assert max(each.cells for each in learner.rounds) <= 1000
    assert run.jobs >= 2 * len(learner.rounds)


words = st.one_of(st.text('ab', max_size=9), st.text('abcé中', max_size=6))


@pytest.mark.parametrize('rules', [BYTES, SUFFIX], ids=['bytes', 'suffix'])
@settings(deadline=None, max_examples=2, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(words, st.integers(0, 12), min_size=1, max_size=15),
    st.sampled_from([1, 30, ANY_SIZE]),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_any_table_at_any_thresholds(tmp_path_factory, rules, counts, most_cells, files, dice):
    folder = tmp_path_factory.mktemp('merges')
    rules = dataclasses.replace(rules, merges=4)
    parts = write_counts(folder, counts, files, rows=4)
    learner = on_beam(folder, parts, rules, Runs(), workers=dice.randint(1, 2))
    learner.learn(most_cells, choose_threshold=lambda largest, least: dice.randint(least, largest))
    assert result(learner.learning.learned()) == in_memory(counts, rules)


def test_a_learner_goes_on_from_merges_alone(tmp_path):
    counts, rules = sample_counts(), SUFFIX
    parts = write_counts(tmp_path, counts)
    begun = on_beam(tmp_path, parts, dataclasses.replace(rules, merges=25), Runs())
    begun.learn(ANY_SIZE)
    files = MergeFiles(str(tmp_path / 'files'))
    for number in files.numbers_of_merges():
        files.delete_words(number)
    run = Runs()
    learner = on_beam(tmp_path, parts, rules, run)
    assert len(learner.learning.pairs) == 25 and run.jobs == 0
    learner.learn(ANY_SIZE)
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert all(map(is_learner_file, names_below(files.folder)))


def test_a_token_in_several_files_has_the_sum_of_its_counts(tmp_path):
    parts = 2 * write_counts(tmp_path, {'abab': 3, 'ba': 1}, 1)
    learner = on_beam(tmp_path, parts, dataclasses.replace(BYTES, merges=2), Runs())
    learner.learn(ANY_SIZE)
    assert learner.learning.counts.tolist() == [12, 6]


def test_rare_tokens_are_left_out(tmp_path):
    counts = sample_counts()
    rules = dataclasses.replace(BYTES, merges=20)
    learner = on_beam(tmp_path, write_counts(tmp_path, counts), rules, Runs(), min_token_count=40)
    learner.learn(ANY_SIZE)
    frequent = {word: count for word, count in counts.items() if count >= 40}
    assert result(learner.learning.learned()) == in_memory(frequent, rules)


def test_counts_above_31_bits_and_a_sum_that_is_too_large(tmp_path):
    counts = {'abab': 1 << 60, 'ab': 3, 'cab': 1 << 33}
    rules = dataclasses.replace(BYTES, merges=2)
    learner = on_beam(tmp_path, write_counts(tmp_path, counts), rules, Runs())
    learner.learn(ANY_SIZE)
    assert result(learner.learning.learned()) == in_memory(counts, rules)
    assert learner.learning.counts[0] == (1 << 61) + 3 + (1 << 33)
    (tmp_path / 'large').mkdir()
    parts = write_counts(tmp_path / 'large', {'ab': (1 << 63) - 1, 'abc': 1})
    learner = on_beam(tmp_path / 'large', parts, rules, Runs())
    with pytest.raises(Exception, match='a pair of symbols occurs more than 2\\^63 - 1 times'):
        learner.learn(ANY_SIZE)


def test_a_suffix_inside_a_word_is_refused(tmp_path):
    parts = write_counts(tmp_path, {'ab': 4, 'a</w>b': 2, 'b': 3})
    with pytest.raises(InputError, match="the token 'a</w>b' has '</w>' inside.* --learner memory"):
        on_beam(tmp_path, parts, SUFFIX, Runs())


NMT = ['--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 20]
GPT2 = ['--scheme', 'bpe', '--vocab-size', 280]


@pytest.mark.parametrize('asked', [NMT, GPT2], ids=['codes', 'bytes'])
def test_the_command_learns_one_vocabulary_by_both(small, tmp_path, asked):
    for learner in ('memory', 'beam'):
        command = ['vocab', '--text', small.source, *asked, '--learner', learner]
        said = succeed(*command, '--output', tmp_path / learner)
        assert ('learning on Beam, in rounds' in said) == (learner == 'beam')
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()
    assert not (tmp_path / '.tokbeam').exists()


def test_counts_as_lines_and_lines_without_blanks(tmp_path):
    lines = ''.join(f'{word * 3} {count}\n' for word, count in sample_counts().items())
    counts = write(tmp_path / 'counts.txt', lines.encode())
    for learner in ('memory', 'beam'):
        command = ['vocab', '--counts', counts, *NMT, '--learner', learner]
        succeed(*command, '--output', tmp_path / learner)
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()


def test_what_needs_all_tokens_at_once_is_refused_before_anything_is_counted(small, tmp_path):
    command = ['vocab', '--text', small.source, '--scheme', 'bpe', '--merges', 9]
    said = refuse(
        *command, '--preset', 'textbook', '--learner', 'beam', '--output', tmp_path / 'codes'
    )
    assert 'on Beam: with --ties first the order of words decides' in said
    assert [*tmp_path.iterdir()] == []


def test_rare_tokens_of_several_counts_are_refused(tmp_path):
    paths = [write(tmp_path / name, b'abab 2\nab 1\n') for name in ('one.txt', 'two.txt')]
    counts = [each for path in paths for each in ('--counts', path)]
    command = ['vocab', *counts, *GPT2, '--min-token-count', 2, '--learner', 'beam']
    assert 'on Beam: which tokens are rare' in refuse(*command, '--output', tmp_path / 'vocab')


def test_a_cluster_learns_what_does_not_fit_in_memory(small, tmp_path, monkeypatch):
    command = ['vocab', '--text', small.source, *GPT2]
    succeed(*command, '--output', tmp_path / 'memory')
    monkeypatch.setattr(search, 'available_bytes', lambda: (350 << 20) + 10_000)
    monkeypatch.setattr(search.VocabularySearch, '_in_parts', 'beam')
    said = succeed(*command, '--output', tmp_path / 'beam')
    assert 'learning on Beam, in rounds' in said
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()
