"""Counts with weights: paths and weights apart, and tables scaled and added up as a plain form does."""

import collections
from fractions import Fraction

import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import succeed, write

from pipelines.artifacts.counts import find_counts, find_weighted_counts, read_counts
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

tables = st.lists(
    st.dictionaries(st.text('ab字é', min_size=1, max_size=4), st.integers(1, 50), min_size=1),
    min_size=1,
    max_size=3,
)
weights = st.one_of(
    st.lists(st.sampled_from(['1x', '2x', '3x', '9x']), min_size=3, max_size=3),
    st.lists(st.sampled_from(['0.7', '0.3', '1', '12.25', '0.001']), min_size=3, max_size=3),
)


def plain_mixture(tables, given_weights):
    """Returns the weighted sum of tables as dictionaries: the rule, word for word."""
    if given_weights[0].endswith('x'):
        factors = [Fraction(int(word[:-1])) for word in given_weights]
    else:
        bytes_of = [sum(len(word.encode()) * n for word, n in table.items()) for table in tables]
        factors = [Fraction(word) / size for word, size in zip(given_weights, bytes_of)]
        factors = [factor / min(factors) for factor in factors]
    total = collections.Counter()
    for table, factor in zip(tables, factors, strict=True):
        for word, count in table.items():
            total[word] += round(count * factor)
    return dict(total)


def write_table(path, table, form):
    if form == 'text':
        path.write_text(''.join(f'{word}\t{count}\n' for word, count in table.items()))
    else:
        parquet.write_table(TokenTable.from_items(table.items()).to_arrow(), path)
    return path


@pytest.mark.parametrize('form', ['text', 'parquet'])
@given(tables=tables, words=weights)
def test_a_mixture_is_what_the_rule_says(tmp_path_factory, form, tables, words):
    folder, words = tmp_path_factory.mktemp('tables'), words[: len(tables)]
    paths = [write_table(folder / f't{n}', table, form) for n, table in enumerate(tables)]
    counts = find_weighted_counts([f'{path}={word}' for path, word in zip(paths, words)])
    mixed = read_counts(counts)
    assert dict(mixed.items()) == plain_mixture(tables, words)
    assert mixed.is_ordered == (form == 'text')
    if words[0].endswith('x'):
        repeated = [str(path) for path, word in zip(paths, words) for _ in range(int(word[:-1]))]
        plain = read_counts(find_counts(repeated))
        assert list(mixed.items()) == list(plain.items())


@pytest.fixture
def counted(tmp_path):
    for name, words in {'en': b'the cat and the dog\n', 'zh': '猫 和 狗\n'.encode()}.items():
        text = write(tmp_path / f'{name}.txt', words * 3)
        succeed('count', '--text', text, '--output', tmp_path / name)
    return tmp_path


def table_of(folder):
    return dict(read_counts(find_counts([str(folder)])).items())


def test_folders_are_scaled_partition_by_partition(counted):
    both = [table_of(counted / name) for name in ('en', 'zh')]
    words = [f'{counted}/en=0.25', f'{counted}/zh/=3']
    mixed = read_counts(find_weighted_counts(words))
    assert dict(mixed.items()) == plain_mixture(both, ['0.25', '3'])


def test_a_folder_and_a_file_have_weights_together(counted):
    write_table(counted / 'more', {'the': 5, 'owl': 1}, 'text')
    mixed = read_counts(find_weighted_counts([f'{counted}/en=1', f'{counted}/more=2']))
    tables = [table_of(counted / 'en'), {'the': 5, 'owl': 1}]
    assert dict(mixed.items()) == plain_mixture(tables, ['1', '2'])


def test_files_of_one_dataset_are_added_up_before_they_are_rounded(tmp_path):
    write_table(tmp_path / 'a.1', {'ka': 1}, 'parquet')
    write_table(tmp_path / 'a.2', {'ka': 2}, 'parquet')
    write_table(tmp_path / 'b', {'to': 1}, 'text')
    counts = find_weighted_counts([f'{tmp_path}/a.*=3.5', f'{tmp_path}/b=1'])
    # 3.5 / 6 bytes and 1 / 2 bytes: factors 7 / 6 and 1.
    assert dict(read_counts(counts).items()) == {'ka': 4, 'to': 1}  # 3.5 to even
    weights = [['a.*', 2, '3.5'], ['b', 1, '1']]
    assert counts.weighting == {'weights': weights, 'temperature': None}


def test_temperature_weights_by_sizes(tmp_path):
    write_table(tmp_path / 'a', {'ka': 450}, 'text')
    write_table(tmp_path / 'b', {'to': 50}, 'text')
    counts = find_weighted_counts([f'{tmp_path}/a', f'{tmp_path}/b'], '2')
    assert dict(read_counts(counts).items()) == {'ka': 450, 'to': 150}
    assert counts.weighting['temperature'] == '2'


def test_a_path_may_hold_the_sign(tmp_path):
    for name in ('year=2024', 'a=b', 'plain'):
        write_table(tmp_path / name, {'ka': 2}, 'text')
    counts = find_weighted_counts([f'{tmp_path}/year=2024', f'{tmp_path}/a=b', f'{tmp_path}/plain'])
    assert not counts.has_weights and dict(read_counts(counts).items()) == {'ka': 6}
    counts = find_weighted_counts([f'{tmp_path}/year=2024=2x', f'{tmp_path}/a=b=3x'])
    assert dict(read_counts(counts).items()) == {'ka': 10}


@pytest.mark.parametrize(
    ('words', 'degree', 'message'),
    [
        (['a=0.7', 'b'], None, 'some datasets have a weight and others do not; give one to each'),
        (['a=0.7', 'b=2x'], None, 'a factor, as 2x, and a weight, as 0.7, do not go together'),
        (['a=0.7', 'b=1'], '3', '--temperature takes the place of weights'),
        (['a=0,7', 'b=1'], None, '0,7 of .*a=0,7 is not a weight above 0'),
        (['a=-1', 'b=1'], None, '-1 of .* is not a weight above 0'),
        (['a=0', 'b=1'], None, '0 of .* is not a weight above 0'),
        (['none=1', 'b=1'], None, 'none'),
        (['empty=1', 'b=1'], None, 'empty has no token, so it cannot have a weight'),
        (['large=1x', 'large=2x'], None, r'add up to .* more than 2\^62'),
    ],
)
def test_weights_that_cannot_be_are_refused(tmp_path, words, degree, message):
    write_table(tmp_path / 'a', {'ka': 2}, 'text')
    write_table(tmp_path / 'b', {'to': 2}, 'text')
    write_table(tmp_path / 'empty', {}, 'text')
    write_table(tmp_path / 'large', {'ka': 2**61}, 'text')
    with pytest.raises(InputError, match=message):
        read_counts(find_weighted_counts([f'{tmp_path}/{word}' for word in words], degree))


def test_a_sum_of_exactly_2_to_62_is_taken(tmp_path):
    write_table(tmp_path / 'large', {'ka': 2**61}, 'text')
    counts = find_weighted_counts([f'{tmp_path}/large=1x', f'{tmp_path}/large=1x'])
    assert dict(read_counts(counts).items()) == {'ka': 2**62}
