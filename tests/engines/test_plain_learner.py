"""The plain learner on Beam equals the one in memory, and its counts are conserved."""

import json
import random

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from plain_learner import BeamLearner, CountSubstringsByElement
from stopped_learners import write_counts

from tokcore.counts.token_table import TokenTable
from tokcore.subword.learner import MemoryLearner


def run(build_pipeline):
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        build_pipeline(pipeline)


def sample_counts():
    dice = random.Random(7)
    syllables = ['ka', 'to', 'ing', 'st', '中', '文字', 'é', '_', '\\', '7', '\U0001f600']
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(150)]
    return {word: dice.randint(1, 90) for word in words}


@pytest.mark.parametrize(
    ('counts', 'limit', 'reserved'),
    [
        pytest.param(sample_counts(), 200, [], marks=pytest.mark.slow),
        (sample_counts(), 4, ['katoing', 'st']),
        pytest.param(sample_counts(), None, ['<UNK>'], marks=pytest.mark.slow),
        pytest.param({'ab': 3, 'abab': 2}, 1, [], marks=pytest.mark.slow),
        ({'': 2, 'the': 5, 'then': 5}, 2, ['the']),
    ],
)
def test_equals_the_learner_in_memory(tmp_path, counts, limit, reserved):
    options = {'max_subtoken_length': limit, 'reserved_tokens': reserved}
    learner = BeamLearner(write_counts(tmp_path, counts, 3), str(tmp_path / 'work'), run, **options)
    memory = MemoryLearner(TokenTable.from_items(counts.items()), **options)
    assert learner.smallest_size == memory.smallest_size
    for min_count in (1, 30, 500):
        assert learner.build(min_count) == memory.build(min_count)


def test_a_token_in_several_files_has_the_sum_of_its_counts(tmp_path):
    paths = write_counts(tmp_path, {'the': 3}, 1) * 2
    learner = BeamLearner(paths, str(tmp_path / 'work'), run)
    memory = MemoryLearner(TokenTable.from_items([('the', 6)]))
    assert learner.build(6) == memory.build(6)
    assert 'the_' in learner.build(6)


def test_every_occurrence_of_a_character_is_counted_once(tmp_path):
    counts = sample_counts()
    path = tmp_path / 'vocabulary.json'
    letters = sorted(set('_u\\').union(*counts))
    path.write_text(json.dumps(letters))
    escaped = {word: word.replace('\\', '\\\\').replace('_', '\\u') + '_' for word in counts}
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        total = (
            pipeline
            | beam.Create(sorted(counts.items()))
            | CountSubstringsByElement(str(path), longest=1)
            | beam.Values()
            | beam.CombineGlobally(sum)
        )
        assert_that(total, equal_to([sum(n * len(escaped[word]) for word, n in counts.items())]))


def test_line_feeds_are_learned_as_in_memory(tmp_path):
    counts = {'a\nb': 3, '\n': 5, '.\n': 4}
    learner = BeamLearner(write_counts(tmp_path, counts, 2), str(tmp_path / 'work'), run)
    learned = learner.build(3)
    assert learned == MemoryLearner(TokenTable.from_items(counts.items())).build(3)
    assert {'\\10;_', '.\\10;_', '\n'} < {*learned}
