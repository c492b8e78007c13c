"""The Unigram learner on Beam learns the pieces of the one in memory, bit for bit."""

import collections
import dataclasses

import apache_beam as beam
import pytest
from generated_text import chinese_lines, english_lines
from stopped_learners import StoppedError, write_counts

from pipelines.artifacts.counts import counts_parts
from pipelines.files.filesystem import names_below
from pipelines.learning import unigram_on_beam
from pipelines.learning.rounds import WordFiles, is_learner_file
from pipelines.learning.unigram_on_beam import BeamWords, learn_on_beam
from tokcore.counts.token_table import TokenTable
from tokcore.schemes import find_scheme
from tokcore.unigram.learner import PieceRules, learn_pieces

SCHEME = find_scheme('unigram')


class Runs:
    """Runs pipelines in this process; before one more than a number of them the driver dies."""

    def __init__(self, most=1000):
        self.jobs, self._most = 0, most

    def __call__(self, build_pipeline):
        if self.jobs == self._most:
            raise StoppedError
        self.jobs += 1
        with beam.Pipeline(runner='FnApiRunner') as pipeline:
            build_pipeline(pipeline)


def counted(lines):
    """Returns the counts of the tokens of lines, and the last word."""
    sentences = [tokens for tokens in map(SCHEME.tokens, lines) if tokens]
    counts = collections.Counter(token for tokens in sentences for token in tokens)
    return counts, sentences[-1][-1][:-1].encode()


def in_memory(counts, last, rules):
    table = dataclasses.replace(TokenTable.from_items(counts.items()), last_word=last)
    return bits(learn_pieces(SCHEME.words_of(table), **rules._asdict()))


def on_beam(folder, counts, last, rules, run, files=3, workers=2):
    parts = counts_parts(write_counts(folder, counts, files, row_group_size=40), 80)
    words = BeamWords(tuple(parts), SCHEME, last, rules, WordFiles(str(folder / 'files')))
    return bits(learn_on_beam(words, str(folder / 'work'), run, workers))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(unigram_on_beam, '_WORDS_IN_RANGE', 50)
    monkeypatch.setattr(unigram_on_beam, '_SUFFIXES_IN_GROUP', 200)


def bits(learned):
    return learned.pieces, learned.scores.tobytes()


LINES = [*english_lines(150, seed=4), *chinese_lines(40, seed=5), 'e\u0301 \u0416 end']
RULES = PieceRules(vocab_size=600, num_meta_pieces=3, hard_vocab_limit=False)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'num_threads': 1, 'character_coverage': 0.98},
        {'num_threads': 3, 'seed_sentencepiece_size': 900, 'shrinking_factor': 0.5},
        {'num_threads': 70, 'num_sub_iterations': 3, 'max_sentencepiece_length': 5},
    ],
    ids=str,
)
def test_equals_the_learner_in_memory(tmp_path, changes):
    rules = RULES._replace(**changes)
    counts, last = counted(LINES)
    assert on_beam(tmp_path, counts, last, rules, Runs()) == in_memory(counts, last, rules)
    assert all(map(is_learner_file, names_below(str(tmp_path / 'files'))))
