"""Mixtures keep to their weights in every stretch, for any readers and states."""

import collections
import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_rounds import check_rounds
from written_dataset import listed, opened

import tokcore
from tokcore.errors import InputError
from tokcore.reading.ordered_rows import EpochOrder

END = 1


def dataset_of(folder, rows, first, shards=2, most_more=0, has_index=True, **options):
    """Rows that hold the id `first`, their numbers in three, and up to so many ids more."""
    examples = [
        {
            'targets': [first, 2 + number % 100, 2 + number // 100 % 100, 2 + number // 10_000]
            + [9] * (number % (most_more + 1))
            + [END]
        }
        for number in range(rows)
    ]
    bounds = np.linspace(0, rows, shards + 1).astype(int).tolist()
    parts = [examples[a:b] for a, b in zip(bounds, bounds[1:])]
    dataset = opened(folder, parts, **options)
    if has_index:
        dataset.write_index()
    return dataset


def rows_of(batches):
    """The first id and the number of each row, in order."""
    return [
        (row[0], row[1] - 2 + 100 * (row[2] - 2) + 10_000 * (row[3] - 2))
        for batch in batches
        for row in batch['targets'].tolist()
    ]


def orders(dataset, window, seed):
    """Yields the numbers of the rows of a dataset, one epoch after another."""
    sizes = dataset.splits['train'].shard_examples
    firsts = [sum(sizes[:shard]) for shard in range(len(sizes))]
    for epoch in range(1000):
        order = EpochOrder(sizes, window, seed, epoch)
        for number in range(order.window_count):
            part = order.window(number)
            for row in order.rows_of(part).tolist():
                yield firsts[part.shard] + part.first + row


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), min_size=1, max_size=4),
    st.sampled_from(['first', 'all']),
    st.integers(1, 30),
    st.integers(1, 5),
)
def test_weights_hold_at_every_row(tmp_path_factory, drawn, stop, window, size):
    folder = tmp_path_factory.mktemp('drawn')
    datasets = {
        f'd{k}': dataset_of(folder / str(k), rows, 10 + k) for k, (rows, _) in enumerate(drawn)
    }
    weights = {f'd{k}': weight for k, (_, weight) in enumerate(drawn)}
    mixed = tokcore.mixture(datasets, weights=weights, stop=stop)
    asked = {'tokens_per_batch': 6 * size, 'boundaries': [], 'window': window, 'seed': 3}
    found = rows_of(mixed.batches('train', epochs=2, **asked))
    assert len(found) % 2 == 0
    expected = [orders(dataset, window, 3) for dataset in datasets.values()]
    taken = collections.Counter()
    for place, (first, number) in enumerate(found, 1):
        source = first - 10
        assert number == next(expected[source])
        taken[source] += 1
        if place <= len(found) // 2:
            for k, (_, weight) in enumerate(drawn):
                share = place * weight / sum(weights.values())
                assert abs(taken[k] - share) < len(drawn) + 0.01
        if place == len(found) // 2:
            whole = [taken[k] >= rows for k, (rows, _) in enumerate(drawn)]
            over = [taken[k] > rows for k, (rows, _) in enumerate(drawn)]
            assert (any(whole) and not any(over)) if stop == 'first' else all(whole)


@pytest.fixture(scope='module')
def datasets(tmp_path_factory):
    folder = tmp_path_factory.mktemp('mixed')
    return {
        'long': dataset_of(folder / 'a', 300, 10, shards=3),
        'short': dataset_of(folder / 'b', 40, 11, has_index=False),
        'parquet': dataset_of(folder / 'c', 90, 12, output_format='parquet'),
    }


WEIGHTS = {'long': 0.5, 'short': 0.3, 'parquet': 0.2}


@pytest.mark.parametrize(
    ('method', 'stop'),
    [
        ('batches', 'first'),
        pytest.param('packed', 'all', marks=pytest.mark.slow),
        ('batches', {'long': 2000, 'short': 999, 'parquet': 1}),
        pytest.param('packed', 'first', marks=pytest.mark.slow),
        pytest.param('batches', 'all', marks=pytest.mark.slow),
        pytest.param('packed', {'long': 2000, 'short': 999, 'parquet': 1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_run_goes_on_with_another_number_of_readers(datasets, method, stop):
    mixed = tokcore.mixture(datasets, weights=WEIGHTS, stop=stop)
    asked = {'window': 32, 'epochs': 3 if isinstance(stop, str) else None, 'seed': 5}
    asked |= {'length': 31, 'batch_size': 2} if method == 'packed' else {'tokens_per_batch': 20}

    def batches(**readers):
        return getattr(mixed, method)('train', **asked, **readers)

    def rows_in(batches):
        return [row for batch in batches for row in batch['targets']]

    whole = check_rounds(
        batches, mixed.from_state, rows_in, random.Random(str(stop)), 4, counts_rows=False
    )
    assert len(whole) > 30


@pytest.mark.parametrize('method', ['batches', 'packed'])
@pytest.mark.parametrize('stop', [1, 777, 6000])
def test_a_number_of_ids_ends_the_round_that_reaches_it(datasets, method, stop):
    mixed = tokcore.mixture(datasets, weights=WEIGHTS, stop=stop)
    asked = {'window': 32, 'seed': 5}
    asked |= {'length': 31, 'batch_size': 2} if method == 'packed' else {'tokens_per_batch': 20}
    dice = random.Random(stop)
    for count in (1, 3):
        readers = [
            getattr(mixed, method)('train', num_readers=count, reader_index=k, **asked)
            for k in range(count)
        ]
        shares = [[*map(listed, reader)] for reader in readers]
        rounds = [
            sum(int(np.count_nonzero(batch['targets'])) for batch in each)
            for each in zip(*shares, strict=True)
        ]
        assert sum(rounds[:-1]) < stop <= sum(rounds)
        again = getattr(mixed, method)('train', num_readers=count, **asked)
        begun = [next(again) for _ in range(dice.randint(0, len(rounds)))]
        rest = mixed.from_state(json.loads(json.dumps(again.state())), num_readers=count)
        assert [*map(listed, rest)] == shares[0][len(begun) :]
    with pytest.raises(InputError, match=f'stop={stop} has no epochs'):
        mixed.batches('train', tokens_per_batch=20, epochs=2)


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(1, 900), st.integers(1, 9)),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.integers(1, 30),
    st.integers(0, 5),
)
def test_each_dataset_ends_at_its_own_number_of_ids(
    tmp_path_factory, drawn, has_weights, window, most_more
):
    folder = tmp_path_factory.mktemp('drawn')
    datasets = {
        f'd{k}': dataset_of(folder / str(k), rows, 10 + k, most_more=most_more)
        for k, (rows, _, _) in enumerate(drawn)
    }
    budgets = {f'd{k}': ids for k, (_, ids, _) in enumerate(drawn)}
    weights = {f'd{k}': weight for k, (_, _, weight) in enumerate(drawn)} if has_weights else None
    mixed = tokcore.mixture(datasets, weights=weights, stop=budgets)
    asked = {'tokens_per_batch': 12, 'boundaries': [], 'window': window, 'seed': 3}
    found = rows_of(mixed.batches('train', **asked))
    expected = {}
    for k, dataset in enumerate(datasets.values()):
        given_ids, rows = 0, []
        for number in orders(dataset, window, 3):
            rows.append(number)
            given_ids += 5 + number % (most_more + 1)
            if given_ids >= budgets[f'd{k}']:
                break
        expected[k] = rows
        assert [number for first, number in found if first == 10 + k] == rows
    shares = [len(expected[k]) if weights is None else weights[f'd{k}'] for k in expected]
    left, taken, until = set(expected), collections.Counter(), 0
    while left:  # from the end of one dataset to that of the next
        start, before = until, taken.copy()
        while all(taken[k] < len(expected[k]) for k in left):
            taken[found[until][0] - 10] += 1
            until += 1
            for k in left:
                share = (until - start) * shares[k] / sum(shares[each] for each in left)
                assert abs(taken[k] - before[k] - share) < 2 * len(left) + 2
        left = {k for k in left if taken[k] < len(expected[k])}
    assert until == len(found)


def test_without_weights_each_has_as_many_rows_as_it_holds(datasets):
    found = rows_of(tokcore.mixture(datasets, stop='all').batches('train', tokens_per_batch=50))
    counts = collections.Counter(first for first, _ in found)
    assert counts[10] >= 300 and counts[11] >= 40 and counts[12] >= 90
    assert len(found) - 430 <= 3


def test_a_state_of_another_mixture_is_refused(datasets):
    asked = {'tokens_per_batch': 50}
    batches = tokcore.mixture(datasets, weights=WEIGHTS).batches('train', **asked)
    next(batches)
    state = batches.state()
    others = [
        tokcore.mixture(datasets, weights=WEIGHTS | {'short': 0.4}),
        tokcore.mixture(datasets, weights=WEIGHTS, stop='all'),
        tokcore.mixture(dict(reversed(datasets.items())), weights=WEIGHTS),
        tokcore.mixture(datasets, weights=WEIGHTS, stop=dict.fromkeys(datasets, 200)),
    ]
    for other in others:
        with pytest.raises(
            InputError, match='of another mixture: its sources, weights or stop differ'
        ):
            other.from_state(state)
    with pytest.raises(InputError, match='of other shards than those of train in'):
        datasets['long'].from_state(state)


def test_an_epoch_that_no_number_can_hold_is_read_or_refused(datasets):
    mixed = tokcore.mixture(datasets, weights=WEIGHTS)
    batches = mixed.batches('train', tokens_per_batch=50, epochs=None)
    state = json.loads(json.dumps(batches.state()))
    state['place']['epoch'] = (1 << 63) - 1
    assert len(next(mixed.from_state(state))['targets'])


@pytest.mark.parametrize(
    ('asked', 'said'),
    [
        ({'weights': {'long': 1}}, 'weights are of long, and datasets are long, short, parquet'),
        ({'weights': WEIGHTS | {'short': 0}}, 'the weight of short is 0; give a number above 0'),
        ({'weights': WEIGHTS | {'short': math.nan}}, 'the weight of short is nan'),
        ({'weights': WEIGHTS | {'short': math.inf}}, 'the weight of short is inf'),
        ({'weights': WEIGHTS | {'short': '1'}}, "the weight of short is '1'"),
        ({'stop': 'last'}, 'stop is \'last\'; give "first", "all" or a number of ids'),
        ({'stop': 0}, 'stop is 0'),
        ({'stop': {'long': 9}}, 'stop is of long, and datasets are long, short, parquet'),
        (
            {'stop': {'long': 9, 'short': 0, 'parquet': 9}},
            'stop of short is 0; give a number of ids',
        ),
        ({'stop': True}, 'stop is True'),
    ],
)
def test_wrong_arguments_are_refused(datasets, asked, said):
    with pytest.raises(InputError, match=said):
        tokcore.mixture(datasets, **asked)


def test_numbers_of_ids_have_no_epochs(datasets):
    mixed = tokcore.mixture(datasets, stop=dict.fromkeys(datasets, 9))
    for asked in ({'epochs': 2}, {'first_epoch': 1}):
        with pytest.raises(InputError, match='has no epochs; leave them out'):
            mixed.batches('train', tokens_per_batch=20, **asked)


def test_datasets_that_cannot_be_mixed_are_refused(datasets, tmp_path):
    pairs = opened(tmp_path / 'pairs', [[{'inputs': [5, 1], 'targets': [6, 1]}]])
    plain = dataset_of(tmp_path / 'plain', 5, 10, template='$A')
    empty = opened(tmp_path / 'empty', [[{'targets': []}] * 3])
    for others, said in (
        ({'long': datasets['long'], 'pairs': pairs}, 'long and pairs have different features'),
        ({'long': datasets['long'], 'plain': plain}, 'long and plain have different templates'),
        ({}, 'takes one dataset or more'),
    ):
        with pytest.raises(InputError, match=said):
            tokcore.mixture(others)
    for mixed, said in (
        (
            tokcore.mixture({'empty': empty}, stop={'empty': 9}),
            'empty has no ids, so it never has 9',
        ),
        (
            tokcore.mixture(datasets, weights=WEIGHTS | {'short': 1e-6}),
            'the weight of short is less than 1 of 65536 of all',
        ),
    ):
        with pytest.raises(InputError, match=said):
            mixed.batches('train', tokens_per_batch=50)


def test_repr_tells_datasets_and_weights(datasets):
    assert repr(tokcore.mixture(datasets, weights=WEIGHTS)) == (
        '<Mixture of long 0.5, short 0.3, parquet 0.2; stop first>'
    )
