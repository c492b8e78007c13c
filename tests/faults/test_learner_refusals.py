"""What a learner refuses, it refuses in a sentence, and it leaves no rounds behind."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from jobs import refuse, write
from leftovers import assert_nothing_made


def write_counts(path: Path, tokens: list[str]) -> Path:
    table = pa.table({'token': tokens, 'count': pa.array(range(5, 5 + len(tokens)), pa.int64())})
    parquet.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ('token', 'learner'),
    [
        ('a\r', 'memory'),
        ('a\rb', 'beam'),
        ('\r', 'memory'),
        pytest.param('a\r', 'beam', marks=pytest.mark.slow),
        pytest.param('a\rb', 'memory', marks=pytest.mark.slow),
        pytest.param('\r', 'beam', marks=pytest.mark.slow),
    ],
)
def test_a_token_with_a_carriage_return(tokbeam, tmp_path, learner, token):
    counts = write_counts(tmp_path / 'counts.parquet', ['word', token])
    ended = tokbeam(
        'vocab', '--counts', counts, '--vocab-size', 300, '--learner', learner,
        '--output', tmp_path / 'out' / 'vocab',
    )  # fmt: skip
    ended.assert_refused(counts)
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize(
    ('options', 'lines', 'said'),
    [
        ('word', 'the  12', "'the ' cannot be a line"),
        ('wordpiece', 'the  12', "' ', has white space at its ends"),
        ('bpe --preset subword-nmt', 'New York\t12', "the merge of 'w' and ' ' has a space"),
        ('bpe --preset textbook', 'New York\t12', "' ' has a space"),
    ],
)
def test_a_space_that_the_vocabulary_cannot_hold(tmp_path, options, lines, said):
    counts = write(tmp_path / 'counts.txt', f'{lines}\n'.encode())
    output = ['--vocab-size', 50, '--output', tmp_path / 'out' / 'vocab']
    sentence = refuse('vocab', '--counts', counts, '--scheme', *options.split(), *output)
    assert said in sentence and 'leave' in sentence
    assert_nothing_made(tmp_path / 'out')


def test_a_size_below_the_alphabet_and_a_work_folder_that_is_a_file(tokbeam, tmp_path):
    counts = write_counts(tmp_path / 'counts.parquet', ['one', 'two', 'three'])
    work, file = tmp_path / 'work', tmp_path / 'file'
    work.mkdir()
    file.write_text('')
    learning = ['vocab', '--counts', counts, '--learner', 'beam']
    output = ['--output', tmp_path / 'out' / 'vocab']
    for options, said in [
        (['--vocab-size', 4], 'smallest possible size'),
        (['--vocab-size', 4, '--work', work], 'smallest possible size'),
        (['--vocab-size', 40, '--work', file], file),
    ]:
        tokbeam(*learning, *output, *options).assert_refused(said)
        assert_nothing_made(tmp_path / 'out')
    assert list(work.iterdir()) == []
