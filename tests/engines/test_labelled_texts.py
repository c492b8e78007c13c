"""Texts with their labels in another file, through the command."""

import pytest
from dataset_files import manifest_of, read_shards
from jobs import refuse, succeed, write

from tokcore.reading import dataset as reading

NAMES = ('bad', 'good', 'no idea')
TEXTS = [f'the {number} words\tof a text' for number in range(60)]
LABELS = [NAMES[number % 3] for number in range(60)]
BUILD = ['--name', 'kinds', '--shards', 2, '--scheme', 'byte']


def lines(words):
    return ''.join(f'{each}\n' for each in words).encode()


@pytest.fixture
def given(tmp_path):
    names = write(tmp_path / 'names', lines(NAMES))
    text = write(tmp_path / 'texts.gz', lines(TEXTS))
    labels = write(tmp_path / 'labels', lines(LABELS))
    return ['--text', text, '--line-labels', labels, '--labels', names]


def examples(folder, split='train'):
    return sorted(repr(each) for shard in read_shards(folder, split) for each in shard)


def test_they_are_what_columns_of_one_file_are(given, tmp_path):
    out = tmp_path / 'out'
    succeed('build', *given, *BUILD, '--output', out)
    rows = [f'{label}\t{text}' for label, text in zip(LABELS, TEXTS, strict=True)]
    table = write(tmp_path / 'table.tsv', lines(rows))
    asked = ['--tsv', table, '--columns', 1, '--keep-tabs', '--label', 0, *given[4:]]
    succeed('build', *asked, *BUILD, '--output', tmp_path / 'columns')
    assert examples(out) == examples(tmp_path / 'columns')
    targets = [each['targets'] for shard in read_shards(out) for each in shard]
    assert sorted(targets) == sorted([NAMES.index(label)] for label in LABELS)
    assert reading.open_dataset(str(out)).features == ('inputs',)
    manifest = manifest_of(out)
    assert manifest['options']['labels'] == list(NAMES)
    assert [each['role'] for each in manifest['inputs']] == ['text', 'line_labels']


def test_other_splits_are_named_in_a_job_file(given, tmp_path):
    succeed('build', *given, *BUILD, '--output', tmp_path / 'alone')
    said = refuse('build', *given, '--dev', given[1], *BUILD, '--output', tmp_path / 'out')
    assert 'has --text and --line-labels; name the files in a table [[dev]]' in said
    paths = f'paths = {{ text = "{given[1]}", line_labels = "{given[3]}" }}'
    job = write(
        tmp_path / 'job.toml',
        f'[[dev]]\nformat = "labelled"\nlabels = "{given[5]}"\n{paths}\n'.encode(),
    )
    succeed('build', job, *given, *BUILD, '--output', tmp_path / 'out')
    assert examples(tmp_path / 'out', 'dev') == examples(tmp_path / 'alone')


REFUSED = {
    'names without --labels': ([], 'is not a whole number of 64 bits'),
    'a prefix of a label': (['--target-prefix', 'x'], 'the targets are a label'),
    'a label field': (['--label', 'kind'], '--label goes with --tsv or --jsonl or --parquet'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_what_does_not_go_together_is_refused(given, tmp_path, name):
    more, sentence = REFUSED[name]
    assert sentence in refuse('build', *given[:4], *more, *BUILD, '--output', tmp_path / 'out')
