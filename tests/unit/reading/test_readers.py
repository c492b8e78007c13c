"""Batches have one order for any number of readers, and a run goes on with another number of them."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_rounds import check_rounds, dealt
from written_dataset import listed, opened, write_order

from tokcore.errors import InputError
from tokcore.format_numbers import ITERATOR_STATE
from tokcore.reading.batch_options import BatchOptions

ROWS = 190
QUICK = ('by buckets', 'by budget', 'exact', 'whole')
ASKED = {
    'by size': {'batch_size': 4, 'num_buckets': 0, 'start': 0, 'window': 40},
    'by buckets': {'batch_size': 5, 'start': 0, 'window': 16, 'epochs': 2},
    'by budget': {'tokens_per_batch': 300, 'window': 50, 'seed': 3},
    'as stored': {'tokens_per_batch': 300, 'shuffle': False, 'epochs': 3},
    'exact': {'tokens_per_batch': 300, 'shuffle': 'exact', 'window': 30, 'epochs': 2},
    'corpus': {'tokens_per_batch': 300, 'shuffle': 'corpus', 'window': 30, 'epochs': 2},
    'whole': {'tokens_per_batch': 200, 'drop_remainder': True, 'epochs': 2, 'max_length': 30},
    'shapes': {'tokens_per_batch': 600, 'max_length': 50, 'pad_to_boundary': True, 'window': 40},
}
KINDS = [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in ASKED]


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    dice = random.Random(5)
    rows = [
        {
            name: [2 + number % 200, *(dice.randint(2, 257) for _ in range(dice.randint(0, 40))), 1]
            for name in ('inputs', 'targets')
        }
        for number in range(ROWS)
    ]
    shards = [rows[:70], [], rows[70:81], rows[81:160], rows[160:]]
    dataset = opened(tmp_path_factory.mktemp('readers') / 'd', shards)
    write_order(dataset.folder, np.arange(ROWS) * 7 % ROWS)  # the index is for the exact order too
    return dataset


def rows_in(batches):
    """The rows without padding, in order."""
    rows = []
    for batch in batches:
        is_nmts = 'source' in batch
        names = ('source', 'target_output') if is_nmts else ('inputs', 'targets')
        sizes = ('source_sequence_length', 'target_sequence_length')
        columns = [batch.get(name, [[]] * len(batch[names[1]])) for name in names]
        lengths = [batch.get(s if is_nmts else f'{n}_length') for n, s in zip(names, sizes)]
        for k in range(len(batch[names[1]])):
            rows.append([c[k][: n[k]] for c, n in zip(columns, lengths) if n is not None])
    return rows


@pytest.mark.parametrize('kind', KINDS)
def test_a_run_goes_on_with_another_number_of_readers(dataset, kind):
    asked = ASKED[kind]

    def batches(**readers):
        return dataset.batches('train', **asked, **readers)

    dice, is_dropped = random.Random(kind), asked.get('drop_remainder', False)
    whole = check_rounds(batches, dataset.from_state, rows_in, dice, 12, is_dropped)
    alone = batches()
    assert len([*alone]) == len(whole)
    left_out = sum(alone.left_out.values())
    assert len(rows_in(whole)) + left_out == ROWS * asked.get('epochs', 1)


SHARDS = st.lists(st.lists(st.lists(st.integers(2, 257), max_size=12), max_size=14), min_size=1, max_size=4)  # fmt: skip


@given(
    SHARDS.filter(any), st.integers(1, 9), st.integers(1, 60), st.booleans(), st.integers(1, 3),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_any_dataset_has_one_order(
    tmp_path_factory, shards, window, tokens, is_dropped, epochs, dice
):
    rows = [[{'targets': [*row, 1]} for row in shard] for shard in shards]
    dataset = opened(tmp_path_factory.mktemp('drawn') / 'd', rows)
    asked = {
        'tokens_per_batch': tokens, 'window': window, 'drop_remainder': is_dropped, 'epochs': epochs,
    }  # fmt: skip
    check_rounds(
        lambda **readers: dataset.batches('train', **asked, **readers),
        dataset.from_state, rows_in, dice, 1, is_dropped,
    )  # fmt: skip


def test_without_an_end_no_batch_is_left_out(dataset):
    """A round goes on with batches of the next epoch."""
    asked = {'tokens_per_batch': 300, 'epochs': None}
    alone = dataset.batches('train', **asked)
    readers = [dataset.batches('train', num_readers=15, reader_index=k, **asked) for k in range(15)]
    shares = [[listed(next(each)) for _ in range(6)] for each in readers]
    assert dealt(shares) == [listed(next(alone)) for _ in range(90)]


@pytest.mark.parametrize('workers', [2, 3])
def test_workers_take_turns_in_the_batches_of_their_reader(dataset, workers):
    """So a loader that takes turns among its workers has the batches in their order."""
    options = BatchOptions.of({'tokens_per_batch': 300, 'num_readers': 3, 'reader_index': 1})
    expected = [*map(listed, dataset._batches('train', options))]
    for worker in range(workers):
        share = dataset._batches('train', options, worker, workers)
        assert [*map(listed, share)] == expected[worker::workers]
    halfway, again = (dataset._batches('train', options, 1, workers) for _ in range(2))
    assert listed(next(halfway)) == expected[1]
    again.resume(json.loads(json.dumps(halfway.state())), is_same_worker=True)
    assert [*map(listed, again)] == expected[1 + workers :: workers]
    of_reader = dataset._batches('train', options)
    next(of_reader)
    again.resume(of_reader.state())
    assert [*map(listed, again)] == expected[2::workers]


def test_a_state_of_other_arguments_is_refused_by_name(dataset):
    state = dataset.batches('train', tokens_per_batch=300, seed=4).state()
    assert state['format'] == ITERATOR_STATE and len(json.dumps(state)) < 300
    for other, said in (
        ({'tokens_per_batch': 300}, 'with seed=4, and these are with the default of seed'),
        ({'tokens_per_batch': 200, 'seed': 4}, 'tokens_per_batch=300, and these .*batch=200'),
    ):
        with pytest.raises(InputError, match=said):
            dataset.batches('train', **other).resume(state)
    with pytest.raises(InputError, match='reader_index is 3; give one of 0 to 2'):
        dataset.from_state(state, num_readers=3, reader_index=3)


def test_an_exact_order_is_one_permutation_of_all_rows(dataset):
    stored = [row['targets'].tolist() for row in dataset['train'][:]]
    orders = []
    for seed, epoch in [(0, 0), (0, 1), (1, 0)]:
        asked = {'shuffle': 'exact', 'window': 7, 'seed': seed, 'first_epoch': epoch}
        batches = dataset.batches('train', tokens_per_batch=1, **asked)
        orders.append([stored.index(batch['targets'][0].tolist()) for batch in batches])
    assert all(sorted(order) == [*range(ROWS)] for order in orders)
    assert orders[0] != orders[1] != orders[2] != orders[0]
    # The first shard has 70 of 190 rows: no stretch has its rows alone.
    assert all(any(row >= 70 for row in orders[0][at : at + 20]) for at in range(ROWS - 20))
