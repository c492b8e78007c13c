"""The Unigram learner on Beam learns the pieces of the one in memory, bit for bit."""

import collections
import dataclasses
import random

import pytest
from generated_text import chinese_lines, english_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import refuse, succeed, write
from stopped_learners import Runs, StoppedError, stop_after, write_counts

from pipelines.artifacts.counts import counts_parts
from pipelines.files.filesystem import names_below
from pipelines.learning import unigram_on_beam
from pipelines.learning.rounds import WordFiles, is_learner_file
from pipelines.learning.unigram_on_beam import BeamWords, learn_on_beam
from tokcore.counts.token_table import TokenTable
from tokcore.schemes import find_scheme
from tokcore.unigram.learner import PieceRules, learn_pieces

SCHEME = find_scheme('unigram')


def counted(lines):
    """Returns the counts of the tokens of lines, and the last word."""
    sentences = [tokens for tokens in map(SCHEME.tokens, lines) if tokens]
    counts = collections.Counter(token for tokens in sentences for token in tokens)
    return counts, sentences[-1][-1][:-1].encode()


def in_memory(counts, last, rules):
    table = dataclasses.replace(TokenTable.from_items(counts.items()), last_word=last)
    return learn_pieces(table, rules)


def on_beam(folder, counts, last, rules, run, files=3, workers=2):
    parts = counts_parts(write_counts(folder, counts, files, row_group_size=40), 80)
    words = BeamWords(tuple(parts), last, rules, WordFiles(str(folder / 'files')))
    return learn_on_beam(words, str(folder / 'work'), run, workers)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(unigram_on_beam, '_WORDS_IN_RANGE', 50)
    monkeypatch.setattr(unigram_on_beam, '_SUFFIXES_IN_GROUP', 200)


LINES = [*english_lines(150, seed=4), *chinese_lines(40, seed=5), 'e\u0301 \u0416 end']
RULES = PieceRules(vocab_size=600, num_meta_pieces=3, hard_vocab_limit=False)


@pytest.mark.parametrize(
    'changes',
    [
        pytest.param({}, marks=pytest.mark.slow),
        {'num_threads': 3, 'seed_sentencepiece_size': 900, 'shrinking_factor': 0.5},
        pytest.param({'num_threads': 1, 'character_coverage': 0.98}, marks=pytest.mark.slow),
        pytest.param(
            {'num_threads': 70, 'num_sub_iterations': 3, 'max_sentencepiece_length': 5},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_equals_the_learner_in_memory(tmp_path, changes):
    rules = RULES._replace(**changes)
    counts, last = counted(LINES)
    assert on_beam(tmp_path, counts, last, rules, Runs()) == in_memory(counts, last, rules)
    assert all(map(is_learner_file, names_below(str(tmp_path / 'files'))))


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.text(st.sampled_from('ab bc\u65e5\u672c\u0436.\u0301\u2019'), min_size=1),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([1, 2, 16]),
    st.sampled_from([0.98, 1.0]),
    st.integers(1, 3),
)
def test_any_text(tmp_path_factory, lines, num_threads, coverage, files):
    counts, last = counted(['a b ab', *lines])
    rules = RULES._replace(
        vocab_size=20, num_threads=num_threads, character_coverage=coverage, shrinking_factor=0.5
    )
    expected = in_memory(counts, last, rules)
    folder = tmp_path_factory.mktemp('pieces')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unigram_on_beam, '_WORDS_IN_RANGE', 4)
        patch.setattr(unigram_on_beam, '_SUFFIXES_IN_GROUP', 9)
        assert on_beam(folder, counts, last, rules, Runs(), files) == expected


def test_a_word_with_rare_characters_may_be_in_several_files_and_groups(tmp_path):
    counts = {f'\u2581a{chr(0x4E00 + number)}\u2581': 1 for number in range(90)}
    counts |= {'\u2581a\u2581': 100_000, '\u2581aa\0': 7}
    rules = RULES._replace(vocab_size=6, num_threads=2)
    expected = in_memory(counts, b'', rules)
    assert on_beam(tmp_path, counts, b'', rules, Runs(), files=4) == expected


FEW = RULES._replace(vocab_size=150, num_threads=2, shrinking_factor=0.8)


@pytest.fixture(scope='module')
def few():
    counts, last = counted(english_lines(100, seed=4))
    return counts, last, in_memory(counts, last, FEW)


@pytest.mark.slow
def test_a_driver_that_dies_after_every_job_repeats_none(tmp_path, few):
    *counts, expected = few
    whole, attempts = Runs(), 1
    assert on_beam(tmp_path / 'whole', *counts, FEW, whole) == expected
    while True:
        try:
            learned = on_beam(tmp_path / 'killed', *counts, FEW, Runs(1))
            break
        except StoppedError:
            attempts += 1
    assert learned == expected
    assert attempts == whole.jobs > 9


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(6))
def test_a_kill_after_any_file_changes_no_bit(tmp_path, few, seed, monkeypatch):
    *counts, expected = few
    with monkeypatch.context() as patch:
        stop_after(patch, random.Random(seed).randrange(40))
        with pytest.raises(Exception, match=StoppedError.__name__):
            on_beam(tmp_path, *counts, FEW, Runs())
    assert on_beam(tmp_path, *counts, FEW, Runs()) == expected
    assert all(map(is_learner_file, names_below(str(tmp_path / 'files'))))


def test_the_remains_of_a_deletion_that_was_killed_are_ignored(tmp_path, few):
    *counts, expected = few
    with pytest.raises(StoppedError):
        on_beam(tmp_path, *counts, FEW, Runs(5))
    words = [*(tmp_path / 'files' / 'words').iterdir()]
    assert words and (tmp_path / 'files' / 'first.json').exists()
    for path in (tmp_path / 'files' / 'survey.json', *words):
        path.unlink()
    assert on_beam(tmp_path, *counts, FEW, Runs()) == expected


def test_the_command_learns_one_model_by_both(small, tmp_path):
    command = ['vocab', '--text', small.source, '--scheme', 'unigram', '--vocab-size', 300]
    for learner in ('memory', 'beam'):
        said = succeed(*command, '--learner', learner, '--output', tmp_path / learner)
        assert ('learning on Beam' in said) == (learner == 'beam')
    assert (tmp_path / 'memory').read_bytes() == (tmp_path / 'beam').read_bytes()
    assert not (tmp_path / '.tokbeam').exists()


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (['--vocab-size', 9], 'characters and 3 meta pieces are required'),
        (['--vocab-size', 100_000], 'the words give only'),
    ],
)
def test_sizes_that_cannot_be_are_refused(small, tmp_path, options, message):
    command = ['vocab', '--text', small.source, '--scheme', 'unigram', '--learner', 'beam']
    assert message in refuse(*command, *options, '--output', tmp_path / 'x.model')
    assert [*tmp_path.iterdir()] == []


def test_counts_without_a_last_word_are_refused(tmp_path):
    counts = write(tmp_path / 'counts.txt', '\u2581the\u2581 3\n'.encode())
    command = ['vocab', '--counts', counts, '--scheme', 'unigram', '--vocab-size', 40]
    said = refuse(*command, '--learner', 'beam', '--output', tmp_path / 'x.model')
    assert 'do not say which word is the last' in said
