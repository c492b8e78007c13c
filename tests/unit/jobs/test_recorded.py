"""The corpus of a dataset by its manifest, which anyone may have written."""

import pytest

from pipelines.jobs.recorded import recorded_corpus
from tokcore.errors import InputError
from tokcore.records.manifest import InputText, Manifest
from tokcore.schemes import find_scheme

TEXTS = tuple(InputText('train', 'text', name, 9, '00000000') for name in 'abc')


def manifest(**options) -> Manifest:
    options = {'name': 'n', 'seed': 0, **options}
    return Manifest('encode', '15.0.0', options, TEXTS, find_scheme('byte').rules)


def test_files_are_those_of_the_datasets_in_their_order():
    records = [{'split': 'train', 'format': 'text', 'name': name, 'files': 1} for name in 'xy']
    records[1]['files'] = 2
    corpus = recorded_corpus(manifest(datasets=records))
    assert [(split.dataset, split.first_file_index) for split in corpus.splits] == [
        ('x', 0),
        ('y', 1),
    ]
    assert [[file.name for (file,) in split.files] for split in corpus.splits] == [
        ['a'],
        ['b', 'c'],
    ]
    assert [(each.file_index, each.recorded) for each in corpus.inputs] == [*enumerate(TEXTS)]


@pytest.mark.parametrize(
    'datasets',
    [
        [{'split': 'train', 'format': 'text', 'files': 'x'}],
        [{'split': 'train', 'format': 'text', 'files': -1}],
        [{'split': 'train', 'format': 'text', 'clean': 7}],
        [{'split': 'train', 'format': 'of none'}],
        [{'format': 'text'}],
        [7],
        7,
    ],
)
def test_a_manifest_that_does_not_say_what_rows_are_is_refused(datasets):
    with pytest.raises(InputError, match='does not say what the rows of n are'):
        recorded_corpus(manifest(datasets=datasets))
