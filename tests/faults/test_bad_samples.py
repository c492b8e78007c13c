"""Samples that cannot be had: a sentence that says why, and what to give."""

import json

import pytest
from jobs import refuse, write

LEARNING = ['--vocab-size', 900]


@pytest.fixture
def text(tmp_path):
    return write(tmp_path / 'a.txt', b'one two\n' * 50)


@pytest.fixture
def columns(tmp_path):
    return write(tmp_path / 'a.tsv', b'one\ttwo\n' * 50)


def vocab(*options):
    return refuse('vocab', *LEARNING, *options)


@pytest.mark.parametrize('sample', ['100MB', 'uniform:1'])
def test_what_is_not_a_sample_is_refused_with_those_there_are(text, tmp_path, sample):
    said = vocab('--text', text, '--vocab-sample', sample, '--output', tmp_path / 'v')
    assert '--vocab-sample' in said and repr(sample) in said
    assert 't2t:100MB' in said


def test_rows_that_are_not_lines_of_files_have_no_budget(columns, tmp_path):
    said = vocab('--tsv', columns, '--vocab-sample', 't2t:1MB', '--output', tmp_path / 'v')
    assert 'tab-separated columns' in said
    assert '--vocab-sample uniform:0.1' in said
    # Also where nothing would be done.
    again = ['--vocab-sample', 't2t:1MB', '--output', tmp_path / 'v', '--dry-run']
    assert vocab('--tsv', columns, *again) == said


def dataset(path, name, more=''):
    return f"""
[[train]]
name = "{name}"
format = "{'tsv' if path.suffix == '.tsv' else 'text'}"
paths = {json.dumps(str(path))}
{more}
"""


def test_the_dataset_whose_rows_are_not_lines_is_named(text, columns, tmp_path):
    jobs = [dataset(text, 'plain'), dataset(columns, 'pairs', 'columns = 0')]
    job = write(tmp_path / 'job.toml', ''.join(jobs).encode())
    said = refuse('vocab', job, *LEARNING, '--vocab-sample', 't2t:1MB', '--output', tmp_path / 'v')
    assert 'the dataset pairs' in said


def test_a_limit_of_examples_and_a_budget_exclude_each_other(text, tmp_path):
    job = write(tmp_path / 'job.toml', dataset(text, 'plain', 'max_examples = 5').encode())
    said = refuse('vocab', job, *LEARNING, '--vocab-sample', 't2t:1MB', '--output', tmp_path / 'v')
    assert 'the first 5 examples' in said and 'uniform:0.1' in said


def test_a_share_that_takes_no_row_is_refused(text, tmp_path):
    options = ['--vocab-sample', 'uniform:0.000001', '--output', tmp_path / 'v']
    said = vocab('--text', text, *options)
    assert 'none of the 50 lines with text' in said and 'larger share' in said
    assert not (tmp_path / 'v').exists()


def test_a_budget_that_takes_no_line_is_refused(text, tmp_path):
    said = vocab('--text', text, '--vocab-sample', 't2t:1', '--output', tmp_path / 'v')
    assert 'takes no line' in said and str(text) in said and 'one line in 201,' in said


def test_the_file_of_which_a_line_would_soonest_be_taken_is_not_an_empty_one(text, tmp_path):
    empty = write(tmp_path / 'empty.txt', b'')
    said = vocab('--text', empty, text, '--vocab-sample', 't2t:1', '--output', tmp_path / 'v')
    assert f'of {text} it would be one line in 201,' in said


def test_a_budget_that_takes_nothing_but_blank_lines_is_refused(tmp_path):
    # Every second line is taken.
    path = write(tmp_path / 'a.txt', b'one two\n \n' * 50)
    said = vocab('--text', path, '--vocab-sample', 't2t:200', '--output', tmp_path / 'v')
    assert 'takes no line with text' in said and 'larger budget' in said
    assert not (tmp_path / 'v').exists()


@pytest.mark.parametrize('sample', ['t2t:1MB', 'uniform:0.5'])
@pytest.mark.parametrize(
    ('command', 'other'),
    [
        (['count', '--counts', 'counts'], '--counts'),
        (['vocab', *LEARNING, '--counts', 'counts'], '--counts'),
        (['count', '--pieces', '--vocab', 'a.codes', '--text', 'a.txt'], '--pieces'),
        (['build', '--scheme', 'byte', '--name', 'x', '--text', 'a.txt'], '--scheme byte'),
        (['encode', '--text', 'a.txt'], 'encode'),
    ],
)
def test_what_learns_from_no_text_takes_no_sample(
    text, tmp_path, monkeypatch, sample, command, other
):
    monkeypatch.chdir(tmp_path)
    said = refuse(*command, '--vocab-sample', sample, '--output', tmp_path / 'x')
    assert '--vocab-sample' in said and other in said


@pytest.mark.parametrize('damage', ['cut', 'bits'])
def test_a_damaged_file_is_named_by_the_pass_that_samples_it(tmp_path, damage):
    path = write(tmp_path / 'a.txt.gz', b'one two three\n' * 5000)
    data = path.read_bytes()
    path.write_bytes(data[:-9] if damage == 'cut' else data[:40] + b'\xff' * 8 + data[48:])
    said = vocab('--text', path, '--vocab-sample', 't2t:1kB', '--output', tmp_path / 'v')
    assert str(path) in said and 'get the file again' in said
    assert not (tmp_path / 'v').exists()
