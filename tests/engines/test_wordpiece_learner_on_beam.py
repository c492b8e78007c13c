"""The WordPiece learner on Beam learns the pieces of the one in memory."""

import random

import apache_beam as beam
import pyarrow.parquet as parquet
import pytest
from generated_text import english_lines
from jobs import refuse, succeed, write

from pipelines.learning.wordpiece_on_beam import BeamPieceLearner
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.wordpiece.learner import PieceLearner
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.scheme import SCHEME


def run(build_pipeline):
    with beam.Pipeline(runner='FnApiRunner') as pipeline:
        build_pipeline(pipeline)


def sample_counts():
    dice = random.Random(7)
    syllables = ['ka', 'to', 'ing', 'st', '中', '文字', 'é', '##', '\U0001f600', '7']
    words = [''.join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(120)]
    return {word: dice.randint(1, 90) for word in words}


def write_counts(folder, counts, files):
    """Writes a table as some Parquet files, with the first word in all of them; returns paths."""
    items = sorted(counts.items())
    paths = []
    for number in range(files):
        paths.append(str(folder / f'counts-{number}.parquet'))
        table = TokenTable.from_items(items[number::files] + [('shared', 5)])
        parquet.write_table(table.to_arrow(), paths[-1])
    return paths


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'joiner': 'k', 'special_tokens': ('kato', '中')},
        {'max_characters': 5, 'max_learned_word_length': 6, 'iterations': 2},
    ],
    ids=str,
)
def test_equals_the_learner_in_memory(tmp_path, changes):
    counts = sample_counts()
    options = WordPieceOptions(vocab_size=99, min_count_range=(2, 1000), **changes)
    paths = write_counts(tmp_path, counts, 3)
    on_beam = BeamPieceLearner(paths, str(tmp_path / 'work'), run, SCHEME, options)
    table = TokenTable.from_items([*counts.items(), ('shared', 15)])
    memory = PieceLearner(table, options)
    assert on_beam.smallest_size == memory.smallest_size
    for min_count in (2, 40, 500):
        assert on_beam.build(min_count) == memory.build(min_count)


def test_too_many_words_are_refused(tmp_path):
    paths = write_counts(tmp_path, sample_counts(), 1)
    options = WordPieceOptions(vocab_size=99, max_words=10)
    with pytest.raises(InputError, match='are more than the 10 of --max-words'):
        BeamPieceLearner(paths, str(tmp_path / 'work'), run, SCHEME, options)


def test_the_command_learns_one_vocabulary_by_both(tmp_path):
    text = write(tmp_path / 'text', '\n'.join(english_lines(300, seed=3)).encode())
    options = ['--scheme', 'wordpiece', '--vocab-size', 400, '--min-count-range', '3:6']
    paths = {learner: tmp_path / learner for learner in ('memory', 'beam')}
    for learner, path in paths.items():
        command = ['vocab', '--text', text, *options, '--learner', learner, '--output', path]
        succeed(*command)
    assert paths['memory'].read_bytes() == paths['beam'].read_bytes()
    message = refuse(*command, '--overwrite', '--selection', 'kept')
    assert '--selection kept is learned in memory only' in message
