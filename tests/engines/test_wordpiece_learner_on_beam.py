"""The WordPiece learner on Beam learns the pieces of the one in memory."""

import dataclasses
import random
import zlib

import pytest
from generated_text import english_lines
from jobs import succeed, write
from stopped_learners import Runs, StoppedError, stop_after, write_counts

from pipelines.files.filesystem import names_below
from pipelines.learning.rounds import WordFiles, is_learner_file
from pipelines.learning.wordpiece_on_beam import BeamPieceLearner
from tokcore.counts.tables import COUNT_PARTITIONS
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.wordpiece.learner import PieceLearner, learn_wordpieces, search_pieces
from tokcore.wordpiece.options import WordPieceOptions

SHARED = [('shared', 5)]
"""In each file of counts."""


def sample_counts():
    dice = random.Random(7)
    syllables = ['ka', 'to', 'ing', 'st', '中', '文字', 'é', '##', '\U0001f600', '7']
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(120)]
    return {word: dice.randint(1, 90) for word in words}


def on_beam(folder, paths, run_pipeline, options):
    files = WordFiles(str(folder / 'files'))
    return BeamPieceLearner(paths, files, str(folder / 'work'), run_pipeline, options)


@pytest.mark.parametrize(
    'changes',
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({'joiner': 'k', 'special_tokens': ('kato', '中')}, marks=pytest.mark.slow),
        {'max_characters': 5, 'max_learned_word_length': 6, 'iterations': 2},
    ],
    ids=str,
)
def test_equals_the_learner_in_memory(tmp_path, changes):
    counts = sample_counts()
    options = WordPieceOptions(vocab_size=99, min_count_range=(2, 1000), **changes)
    paths = write_counts(tmp_path, counts, 3, SHARED)
    learner = on_beam(tmp_path, paths, Runs(), options)
    table = TokenTable.from_items([*counts.items(), ('shared', 15)])
    memory = PieceLearner(table, options)
    assert learner.smallest_size == memory.smallest_size
    for min_count in (2, 40, 500):
        assert learner.build(min_count) == memory.build(min_count)


OPTIONS = WordPieceOptions(vocab_size=99, min_count_range=(2, 1000))


def test_a_killed_driver_repeats_no_job_and_a_round_is_one(tmp_path):
    counts = sample_counts()
    paths = write_counts(tmp_path, counts, 2, SHARED)
    for most in (0, 1, 1, 1):
        with pytest.raises(StoppedError):
            learner = on_beam(tmp_path, paths, Runs(most), OPTIONS)
            learner.build(40)
            learner.build(2)
    memory = PieceLearner(TokenTable.from_items([*counts.items(), ('shared', 10)]), OPTIONS)
    runs = Runs()
    learner = on_beam(tmp_path, paths, runs, OPTIONS)
    assert [learner.build(count) for count in (40, 2)] == [memory.build(count) for count in (40, 2)]
    assert runs.jobs == 1
    assert all(map(is_learner_file, names_below(str(tmp_path / 'files'))))


@pytest.mark.parametrize(
    'search',
    [
        'tensorflow-text',
        pytest.param('closest', marks=pytest.mark.slow),
        pytest.param('at-most', marks=pytest.mark.slow),
    ],
)
def test_min_counts_that_may_come_are_learned_in_one_job(tmp_path, search):
    counts = dict(list(sample_counts().items())[:12])
    options = dataclasses.replace(OPTIONS, vocab_size=60, search=search, iterations=3)
    table = TokenTable.from_items([*counts.items(), ('shared', 10)])
    memory = learn_wordpieces(table, options, lambda *_: None)
    assert len(memory.tried) > 3
    runs, near = Runs(), Runs()
    learners = [
        BeamPieceLearner(
            write_counts(tmp_path, counts, 2, SHARED), WordFiles(str(tmp_path / 'files')),
            str(tmp_path / 'work'), runs, options, run_near=near, looks_ahead=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for learner in learners:
        learned = search_pieces(learner.build, learner.bounds, options, lambda *_: None)
        assert learned.subtokens == memory.vocabulary.pieces
        assert (learned.tried, learned.reachable) == (memory.tried, memory.reachable)
        # The other learner goes on where iterations of some rounds are lost.
        for number, (min_count, _) in enumerate(memory.tried[:3]):
            for iteration in range(3, number, -1):
                (tmp_path / 'files' / f'round-{min_count}' / f'pieces-{iteration}').unlink()
    assert near.jobs == 2 and runs.jobs <= 5


@pytest.mark.parametrize('bounds', [(2, 3), (8, 9)])
def test_the_search_may_end_below_its_lowest_min_count(tmp_path, bounds):
    # As TensorFlow Text's bisection does, where the last vocabulary but one was too small.
    counts = sample_counts()
    options = dataclasses.replace(OPTIONS, vocab_size=10_000, min_count_range=bounds)
    table = TokenTable.from_items([*counts.items(), ('shared', 5)])
    memory = learn_wordpieces(table, options, lambda *_: None)
    learner = on_beam(tmp_path, write_counts(tmp_path, counts, 1, SHARED), Runs(), options)
    learned = search_pieces(learner.build, learner.bounds, options, lambda *_: None)
    assert learned.tried[-1][0] == bounds[0] - 1
    assert learned.tried == memory.tried
    assert learned.subtokens == memory.vocabulary.pieces


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(4))
def test_a_kill_after_any_file_changes_no_piece(tmp_path, seed, monkeypatch):
    counts = dict(list(sample_counts().items())[:20])
    paths = write_counts(tmp_path, counts, 2, SHARED)
    with monkeypatch.context() as patch:
        stop_after(patch, random.Random(seed).randrange(30))
        with pytest.raises(Exception, match=StoppedError.__name__):
            on_beam(tmp_path, paths, Runs(), OPTIONS).build(2)
    memory = PieceLearner(TokenTable.from_items([*counts.items(), ('shared', 10)]), OPTIONS)
    assert on_beam(tmp_path, paths, Runs(), OPTIONS).build(2) == memory.build(2)


def test_too_many_words_are_refused(tmp_path):
    paths = write_counts(tmp_path, sample_counts(), 1, SHARED)
    options = WordPieceOptions(vocab_size=99, max_words=10)
    with pytest.raises(InputError, match='are more than 10, and the learner on Beam'):
        on_beam(tmp_path, paths, Runs(), options)


@pytest.mark.parametrize('words', [('king', 'doing'), ('king', 'ring')])
def test_an_ending_that_is_too_frequent_in_or_across_partitions_is_refused(tmp_path, words):
    partitions = {zlib.crc32(word.encode()) * COUNT_PARTITIONS >> 32 for word in words}
    assert len(partitions) == 1 + ('ring' in words)
    paths = write_counts(tmp_path, dict.fromkeys(words, 1 << 62), 1)
    with pytest.raises(InputError, match='occurs more than 2\\^63 - 1 times'):
        on_beam(tmp_path, paths, Runs(), OPTIONS)


def test_a_word_of_several_files_that_is_too_frequent_is_refused(tmp_path):
    paths = write_counts(tmp_path, {'a': 1}, 2, [('shared', 1 << 62)])
    with pytest.raises(InputError, match='occurs more than 2\\^63 - 1 times'):
        on_beam(tmp_path, paths, Runs(), OPTIONS)


@pytest.mark.slow
def test_the_command_learns_one_vocabulary_by_both(tmp_path):
    text = write(tmp_path / 'text', '\n'.join(english_lines(300, seed=3)).encode())
    options = ['--scheme', 'wordpiece', '--vocab-size', 400, '--min-count-range', '3:6']
    paths = {learner: tmp_path / learner for learner in ('memory', 'beam')}
    for learner, path in paths.items():
        command = ['vocab', '--text', text, *options, '--learner', learner, '--output', path]
        succeed(*command)
    assert paths['memory'].read_bytes() == paths['beam'].read_bytes()
