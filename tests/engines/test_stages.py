"""`build` is exactly count, vocab and encode: run one by one they give the same bytes."""

import pytest
from dataset_files import files_of, manifest_of, read_shards
from jobs import succeed

DATASET = ['--name', 'small', '--shards', 3]
VOCABULARY = ['--vocab-size', 900]


def assert_same_dataset(folder, built):
    """The shards, and what both manifests say of lines, inputs and files."""
    shards = {path.name: path.read_bytes() for path in built.glob('small-*')}
    assert shards == {path.name: path.read_bytes() for path in folder.glob('small-*')}
    assert read_shards(folder) == read_shards(built)
    for field in ('files', 'lines', 'inputs', 'unicode'):
        assert manifest_of(folder)[field] == manifest_of(built)[field]


def test_a_vocabulary_for_each_side(small, small_build, tmp_path):
    for side in ('inputs', 'targets'):
        counts, vocabulary = tmp_path / f'counts.{side}', tmp_path / f'vocab.{side}'
        succeed('count', '--tsv', small.tsv, '--side', side, '--output', counts)
        succeed('vocab', '--counts', counts, *VOCABULARY, '--output', vocabulary)
        assert files_of(counts) == files_of(small_build / f'counts.{side}')
        built = small_build / f'vocab.small.900.subwords.{side}'
        assert vocabulary.read_bytes() == built.read_bytes()
    succeed(
        *('encode', '--tsv', small.tsv, *DATASET, '--output', tmp_path / 'out'),
        *('--vocab', tmp_path / 'vocab.inputs', tmp_path / 'vocab.targets'),
    )
    assert_same_dataset(tmp_path / 'out', small_build)


def test_a_shared_vocabulary(small, build, tmp_path):
    built = build('--tsv', small.tsv, '--shared-vocab')
    counts, vocabulary = tmp_path / 'counts', tmp_path / 'vocab'
    succeed('count', '--tsv', small.tsv, '--output', counts)
    succeed('vocab', '--counts', counts, *VOCABULARY, '--output', vocabulary)
    assert files_of(counts) == files_of(built / 'counts')
    assert vocabulary.read_bytes() == (built / 'vocab.small.900.subwords').read_bytes()
    arguments = ['encode', '--tsv', small.tsv, *DATASET]
    succeed(*arguments, '--vocab', vocabulary, '--output', tmp_path / 'out')
    assert_same_dataset(tmp_path / 'out', built)
    # One file named for both sides is the shared vocabulary as well.
    both = ['--vocab', vocabulary, vocabulary]
    succeed(*arguments, *both, '--output', tmp_path / 'again')
    assert files_of(tmp_path / 'again') == files_of(tmp_path / 'out')


@pytest.mark.parametrize('side', ['inputs', 'targets'])
def test_a_vocabulary_straight_from_text(small, small_build, tmp_path, side):
    path = tmp_path / 'vocab'
    succeed('vocab', '--tsv', small.tsv, '--side', side, *VOCABULARY, '--output', path)
    built = small_build / f'vocab.small.900.subwords.{side}'
    assert path.read_bytes() == built.read_bytes()
    manifest = manifest_of(tmp_path, 'vocab.tokbeam.json')
    [lines, *others] = manifest_of(small_build)['lines']
    assert lines.pop('text_bytes') > 0  # of what was encoded
    assert manifest['lines'] == [lines, *others]
    # The vocabulary and its two records; its counts are not kept.
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        'vocab',
        'vocab.tokbeam.json',
        'vocab.tokbeam.run.json',
    ]


def test_options_of_the_vocabulary_mean_the_same(small, build, tmp_path):
    options = [
        *('--search', 'closest', '--min-count-range', '2:50', '--max-subtoken-length', 6),
        *('--reserved-token', 'the', '--reserved-token', '<x>'),
    ]
    built = build('--tsv', small.tsv, *options)
    for side in ('inputs', 'targets'):
        path = tmp_path / side
        counts = built / f'counts.{side}'
        succeed('vocab', '--counts', counts, *VOCABULARY, *options, '--output', path)
        vocabulary = built / f'vocab.small.900.subwords.{side}'
        assert path.read_bytes() == vocabulary.read_bytes()
        assert path.read_text().splitlines()[2:4] == ["'the_'", "'<x>_'"]
    read_shards(built)
