"""Batches have one order for any number of readers, and a run goes on with another number of them."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import write_dataset

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.format_numbers import ITERATOR_STATE
from tokcore.reading.corpus_order import write_corpus_order
from tokcore.reading.manifest import DatasetManifest

ROWS = 190
READERS = [1, 3, 16]
QUICK = ('by buckets', 'by budget', 'exact', 'whole')
ASKED = {
    'by size': {'batch_size': 4, 'num_buckets': 0, 'start': 0, 'window': 40},
    'by buckets': {'batch_size': 5, 'start': 0, 'window': 16, 'epochs': 2},
    'by budget': {'tokens_per_batch': 300, 'window': 50, 'seed': 3},
    'as stored': {'tokens_per_batch': 300, 'shuffle': False, 'epochs': 3},
    'exact': {'tokens_per_batch': 300, 'shuffle': 'exact', 'window': 30, 'epochs': 2},
    'corpus': {'tokens_per_batch': 300, 'shuffle': 'corpus', 'window': 30, 'epochs': 2},
    'whole': {'tokens_per_batch': 200, 'drop_remainder': True, 'epochs': 2, 'max_length': 30},
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
    dataset = open_dataset(write_dataset(tmp_path_factory.mktemp('readers') / 'd', shards))
    dataset.write_index()  # for the exact order, and that of the corpus
    shards = DatasetManifest.read(dataset.folder).splits['train']
    write_corpus_order(dataset.folder, 'train', shards, np.arange(ROWS) * 7 % ROWS)
    return dataset


def listed(batch):
    return {name: each.tolist() for name, each in batch.items()}


def rows_in(batches):
    """The rows without padding, in order."""
    rows = []
    for batch in batches:
        if 'source' in batch:
            lengths = batch['source_sequence_length'], batch['target_sequence_length']
            arrays = batch['source'], batch['target_output']
        else:
            lengths = batch['inputs_length'], batch['targets_length']
            arrays = batch['inputs'], batch['targets']
        rows += [
            (source[:length], target[:size])
            for source, length, target, size in zip(
                arrays[0], lengths[0], arrays[1], lengths[1], strict=True
            )
        ]
    return rows


def dealt(shares):
    """The batches of readers in rounds, after checking that all have equally many."""
    assert len({len(share) for share in shares}) == 1
    return [batch for round_ in zip(*shares, strict=True) for batch in round_]


def readers_of(dataset, count, **asked):
    return [
        dataset.batches('train', num_readers=count, reader_index=k, **asked) for k in range(count)
    ]


def check_end(found, undisturbed, count, is_dropped):
    """Whole rounds are those of one reader; the rows after them are those of the last round."""
    whole = len(undisturbed) // count * count
    assert found[:whole] == undisturbed[:whole]
    rest = rows_in(undisturbed[whole:])
    if is_dropped or len(rest) < count:
        assert len(found) == whole
        return len(rest)
    assert rows_in(found[whole:]) == rest
    assert len(found) == whole + (count if rest else 0)
    return 0


@pytest.mark.parametrize('count', READERS)
@pytest.mark.parametrize('kind', KINDS)
def test_readers_take_turns_in_one_order(dataset, count, kind):
    asked = ASKED[kind]
    alone = dataset.batches('train', **asked)
    undisturbed = [*map(listed, alone)]
    readers = readers_of(dataset, count, **asked)
    found = dealt([[*map(listed, reader)] for reader in readers])
    left = check_end(found, undisturbed, count, asked.get('drop_remainder', False))
    for reader in readers:
        expected = {**alone.left_out, 'remainder': alone.left_out['remainder'] + left}
        assert reader.left_out == expected
        assert len(rows_in(found)) + sum(reader.left_out.values()) == ROWS * asked.get('epochs', 1)
        assert reader.state() == readers[0].state()


@pytest.mark.parametrize('kind', KINDS)
def test_a_run_goes_on_with_another_number_of_readers(dataset, kind):
    asked, dice = ASKED[kind], random.Random(kind)
    undisturbed = [*map(listed, dataset.batches('train', **asked))]
    for _ in range(5):
        before, after = dice.choice(READERS), dice.choice(READERS)
        readers = readers_of(dataset, before, **asked)
        rounds = dice.randint(0, len(undisturbed) // before)
        given_batches = dealt([[listed(next(reader)) for _ in range(rounds)] for reader in readers])
        assert given_batches == undisturbed[: rounds * before]
        states = [json.dumps(reader.state()) for reader in readers]
        assert set(states) == {states[0]}
        others = [
            dataset.from_state(json.loads(states[0]), num_readers=after, reader_index=k)
            for k in range(after)
        ]
        found = dealt([[*map(listed, reader)] for reader in others])
        check_end(found, undisturbed[rounds * before :], after, asked.get('drop_remainder', False))


SHARDS = st.lists(st.lists(st.lists(st.integers(2, 257), max_size=12), max_size=14), min_size=1, max_size=4)  # fmt: skip


@given(
    SHARDS.filter(any), st.integers(1, 5), st.integers(1, 5), st.integers(1, 9), st.integers(1, 60),
    st.booleans(), st.integers(1, 3), st.integers(0, 9),
)  # fmt: skip
def test_any_dataset_has_one_order(
    tmp_path_factory, shards, before, after, window, tokens, is_dropped, epochs, rounds
):
    rows = [[{'targets': [*row, 1]} for row in shard] for shard in shards]
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    dataset = open_dataset(write_dataset(folder, rows))
    asked = {
        'tokens_per_batch': tokens, 'window': window, 'drop_remainder': is_dropped, 'epochs': epochs,
    }  # fmt: skip
    alone = dataset.batches('train', **asked)
    undisturbed = [*map(listed, alone)]
    given_rows = sum(len(batch['targets']) for batch in undisturbed)
    assert given_rows + alone.left_out['remainder'] == epochs * sum(map(len, shards))
    rounds = min(rounds, len(undisturbed) // before)
    readers = readers_of(dataset, before, **asked)
    shares = [[listed(next(reader)) for _ in range(rounds)] for reader in readers]
    assert dealt(shares) == undisturbed[: rounds * before]
    state = readers[-1].state()
    assert all(reader.state() == state for reader in readers)
    others = [dataset.from_state(state, num_readers=after, reader_index=k) for k in range(after)]
    found = dealt([[*map(listed, reader)] for reader in others])
    rest = undisturbed[rounds * before :]
    whole = len(rest) // after * after
    assert found[:whole] == rest[:whole]
    last = [row for batch in rest[whole:] for row in targets_in(batch)]
    if is_dropped or len(last) < after:
        assert len(found) == whole
    else:
        assert [row for batch in found[whole:] for row in targets_in(batch)] == last


def targets_in(batch):
    return [
        row[:length] for row, length in zip(batch['targets'], batch['targets_length'], strict=True)
    ]


def test_without_an_end_no_batch_is_left_out(dataset):
    """A round goes on with batches of the next epoch."""
    asked = {'tokens_per_batch': 300, 'epochs': None}
    alone = dataset.batches('train', **asked)
    undisturbed = [listed(next(alone)) for _ in range(90)]
    shares = [[listed(next(each)) for _ in range(6)] for each in readers_of(dataset, 15, **asked)]
    assert dealt(shares) == undisturbed


def test_workers_take_turns_in_the_batches_of_their_reader(dataset):
    """So a loader that takes turns among its workers has the batches in their order."""
    from tokcore.reading.batch_options import BatchOptions

    for workers in (2, 3):
        options = BatchOptions.of({'tokens_per_batch': 300, 'num_readers': 3, 'reader_index': 1})
        expected = [*map(listed, dataset._batches('train', options))]
        shares = [
            [*map(listed, dataset._batches('train', options, worker, workers))]
            for worker in range(workers)
        ]
        assert [share for k in range(workers) for share in shares[k]] == [
            batch for k in range(workers) for batch in expected[k::workers]
        ]
        halfway = dataset._batches('train', options, 1, workers)
        assert listed(next(halfway)) == expected[1]
        again = dataset._batches('train', options, 1, workers)
        again.resume(json.loads(json.dumps(halfway.state())), is_own=True)
        assert [*map(listed, again)] == expected[1 + workers :: workers]
        of_reader = dataset._batches('train', options)
        next(of_reader)
        again.resume(of_reader.state())
        assert [*map(listed, again)] == expected[2::workers]


def test_a_state_of_other_arguments_is_refused_by_name(dataset):
    state = dataset.batches('train', tokens_per_batch=300, seed=4).state()
    assert state['format'] == ITERATOR_STATE and len(json.dumps(state)) < 300
    other = dataset.batches('train', tokens_per_batch=300)
    with pytest.raises(InputError, match='with seed=4, and these are with the default of seed'):
        other.resume(state)
    other = dataset.batches('train', tokens_per_batch=200, seed=4)
    with pytest.raises(InputError, match='tokens_per_batch=300, and these .*tokens_per_batch=200'):
        other.resume(state)
    with pytest.raises(InputError, match='reader_index is 3; give one of 0 to 2'):
        dataset.from_state(state, num_readers=3, reader_index=3)


def test_an_exact_order_is_one_permutation_of_all_rows(dataset):
    stored = [row['targets'].tolist() for row in dataset['train'][:]]
    orders = []
    for seed, first_epoch in [(0, 0), (0, 1), (1, 0)]:
        batches = dataset.batches(
            'train',
            tokens_per_batch=1,
            shuffle='exact',
            window=7,
            seed=seed,
            first_epoch=first_epoch,
        )
        orders.append([stored.index(batch['targets'][0].tolist()) for batch in batches])
    assert all(sorted(order) == [*range(ROWS)] for order in orders)
    assert orders[0] != orders[1] != orders[2] != orders[0]
    # The first shard has 70 of 190 rows: no stretch has its rows alone.
    assert all(any(row >= 70 for row in orders[0][at : at + 20]) for at in range(ROWS - 20))


def test_an_exact_order_takes_an_index_and_skips_nothing(dataset, tmp_path):
    other = open_dataset(write_dataset(tmp_path / 'd', [[{'inputs': [1], 'targets': [1]}]]))
    with pytest.raises(InputError, match='has no index, .*; run `tokbeam index'):
        next(other.batches('train', tokens_per_batch=9, shuffle='exact'))
    with pytest.raises(InputError, match="cannot be with shuffle='exact'"):
        dataset.batches('train', tokens_per_batch=9, shuffle='exact', on_error='skip')
