"""Batches of a dataset: NMT's rule and Tensor2Tensor's, any number of readers, any moment."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_nmt_batches import plain_training_batches
from written_dataset import write_dataset

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.batching import batch_sizes, growing_boundaries
from tokcore.reading.ordered_rows import EpochOrder

START, END, PAD = 400, 1, 0
ROWS = 230


def drawn_shards(seed, shards, rows=ROWS, longest=60):
    """Shards of pairs, no two alike; ids end with that of the end, as the byte scheme has them."""
    dice = random.Random(seed)
    examples = [
        {
            name: [
                2 + number % 200,
                *(dice.randint(2, 257) for _ in range(dice.randint(0, longest))),
                END,
            ]
            for name in ('inputs', 'targets')
        }
        for number in range(rows)
    ]
    cuts = sorted(dice.randint(0, rows) for _ in range(shards - 1))
    return [examples[a:b] for a, b in zip([0, *cuts], [*cuts, rows], strict=True)]


SHARDS = drawn_shards(1, 10)


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    return open_dataset(write_dataset(tmp_path_factory.mktemp('pairs'), SHARDS))


def listed(batches):
    return [{name: each.tolist() for name, each in batch.items()} for batch in batches]


def pairs_of(examples):
    return [(each['inputs'][:-1], each['targets'][:-1]) for each in examples]


def rows_of(batches):
    """The pairs of NMT's batches, without padding."""
    return sorted(
        (tuple(source[:length]), tuple(target[: size - 1]))
        for batch in listed(batches)
        for source, length, target, size in zip(
            batch['source'], batch['source_sequence_length'], batch['target_output'],
            batch['target_sequence_length'], strict=True,
        )
    )  # fmt: skip


ALL_PAIRS = sorted(
    (tuple(source), tuple(target)) for examples in SHARDS for source, target in pairs_of(examples)
)


@given(
    st.integers(1, 20), st.integers(0, 7), st.one_of(st.none(), st.integers(1, 50)),
    st.one_of(st.none(), st.integers(1, 50)),
)  # fmt: skip
def test_batches_in_stored_order_are_nmts(dataset, size, buckets, source, target):
    found = dataset.batches(
        'train', batch_size=size, num_buckets=buckets, source_max_length=source,
        target_max_length=target, start=START, shuffle=False, window=64,
    )  # fmt: skip
    pairs = [pair for examples in SHARDS for pair in pairs_of(examples)]
    assert listed(found) == plain_training_batches(
        pairs, batch_size=size, num_buckets=buckets, source_max_length=source,
        target_max_length=target, start=START, end=END, pad_source=PAD, pad_target=PAD,
    )  # fmt: skip


NMT = {'batch_size': 7, 'start': START}


def test_each_epoch_is_another_order_of_all_rows(dataset):
    first, second = (
        listed(part)
        for part in np.array_split(np.array([*dataset.batches('train', epochs=2, **NMT)]), 2)
    )
    both = dataset.batches('train', epochs=2, **NMT)
    assert rows_of(both) == sorted(2 * ALL_PAIRS)
    assert first != second
    assert listed(dataset.batches('train', **NMT)) == listed(dataset.batches('train', **NMT))
    assert listed(dataset.batches('train', **NMT)) != listed(
        dataset.batches('train', seed=1, **NMT)
    )


def test_an_order_is_a_permutation_within_windows():
    for seed in range(5):
        order = EpochOrder((30, 0, 7, 64), 16, seed, 3)
        windows = [order.window(number) for number in range(order.window_count)]
        rows = [
            (window.shard, window.first + row)
            for window in windows
            for row in order.rows_of(window).tolist()
        ]
        assert sorted(rows) == [
            (s, r) for s, count in enumerate((30, 0, 7, 64)) for r in range(count)
        ]
        assert [each.position for each in windows] == [
            sum(each.last - each.first for each in windows[:k]) for k in range(len(windows))
        ]
        assert [order.window_of(position) for position in range(order.rows)] == [
            k for k, each in enumerate(windows) for _ in range(each.first, each.last)
        ]


KINDS = {
    'buckets': {'batch_size': 5, 'start': START, 'epochs': 2, 'window': 30},
    'stored': {'batch_size': 5, 'start': START, 'shuffle': False, 'window': 30},
    'no buckets': {'batch_size': 9, 'start': START, 'num_buckets': 0, 'window': 11},
    'budget': {'tokens_per_batch': 600, 'epochs': 2, 'window': 40},
    'shapes': {
        'tokens_per_batch': 600,
        'max_length': 50,
        'pad_to_boundary': True,
        'drop_remainder': True,
    },
}


@pytest.mark.parametrize('kind', KINDS)
def test_a_state_of_any_moment_goes_on_with_the_rest(dataset, kind):
    whole = listed(dataset.batches('train', **KINDS[kind]))
    dice = random.Random(kind)
    for given_batches in dice.sample(range(len(whole) + 1), min(10, len(whole))):
        before = dataset.batches('train', **KINDS[kind])
        for _ in range(given_batches):
            next(before)
        after = dataset.from_state(json.loads(json.dumps(before.state())))
        assert listed(after) == whole[given_batches:]
        undisturbed = dataset.batches('train', **KINDS[kind])
        assert len([*undisturbed]) == len(whole)
        assert after.left_out == undisturbed.left_out


@given(st.integers(1, 2000), st.one_of(st.none(), st.integers(1, 70)), st.integers(0, 20))
def test_batches_by_a_budget_are_tensor2tensors(dataset, tokens, most, least):
    longest = most or tokens
    bounds = growing_boundaries(longest)
    sizes = batch_sizes(tokens, (*bounds, longest))
    waiting, expected = {}, []
    for example in (each for examples in SHARDS for each in examples):
        length = max(map(len, example.values()))
        if length < least or (most is not None and length > most):
            continue
        bucket = sum(bound <= length for bound in bounds)
        waiting.setdefault(bucket, []).append(example)
        if len(waiting[bucket]) == sizes[bucket]:
            expected.append(waiting.pop(bucket))
    expected += [waiting[bucket] for bucket in sorted(waiting)]
    found = dataset.batches(
        'train', tokens_per_batch=tokens, max_length=most, min_length=least, shuffle=False
    )
    assert listed(found) == [
        {
            key: value
            for name in ('inputs', 'targets')
            for key, value in (
                (name, padded([each[name] for each in batch])),
                (f'{name}_length', [len(each[name]) for each in batch]),
            )
        }
        for batch in expected
    ]


def padded(rows):
    width = max(map(len, rows))
    return [[*row, *[PAD] * (width - len(row))] for row in rows]


def test_bounds_and_sizes_are_tensor2tensors():
    # What its `batching_scheme` gives for a budget of 4,096 and lengths up to 256.
    bounds = growing_boundaries(256)
    assert bounds[:14] == (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22)
    assert bounds[-1] < 256 <= int(bounds[-1] * 1.1)
    sizes = batch_sizes(4096, (*bounds, 256))
    window = 1260  # the largest highly composite number up to 3 * 512
    assert sizes[0] == 420
    for size, bound in zip(sizes, (*bounds, 256), strict=True):
        assert window % size == 0 and size <= 4096 // bound
        assert not any(window % more == 0 for more in range(size + 1, 4096 // bound + 1))


def test_sizes_are_divisors_of_the_number_that_has_most():
    counts = [sum(number % k == 0 for k in range(1, number + 1)) for number in range(1, 3 * 60)]
    for tokens in range(1, 60):
        most = counts[: 3 * tokens]
        window = most.index(max(most)) + 1
        assert batch_sizes(tokens, [1]) == (
            max(k for k in range(1, tokens + 1) if window % k == 0),
        )
    # 735,134,400 has more divisors than all numbers below it (OEIS A002182).
    assert batch_sizes(735_134_400 // 3, [1]) == (735_134_400 // 3,)


def test_shapes_are_known_beforehand(dataset):
    arguments = {
        'tokens_per_batch': 600,
        'max_length': 50,
        'pad_to_boundary': True,
        'drop_remainder': True,
    }
    iterator = dataset.batches('train', **arguments)
    bounds = growing_boundaries(50)
    shapes = {
        *zip(batch_sizes(600, (*bounds, 50)), (*(each - 1 for each in bounds), 50), strict=True)
    }
    given_rows = 0
    for batch in iterator:
        assert batch['inputs'].shape == batch['targets'].shape and batch['inputs'].shape in shapes
        given_rows += len(batch['inputs'])
    assert given_rows + sum(iterator.left_out.values()) == ROWS
    assert iterator.left_out['length'] and iterator.left_out['remainder']


def test_damage_is_an_error_or_counted(tmp_path):
    folder = write_dataset(tmp_path / 'd', drawn_shards(3, 3))
    shard = max(folder.glob('d-train-*'), key=lambda path: path.stat().st_size)
    data = bytearray(shard.read_bytes())
    data[-6] ^= 1
    shard.write_bytes(data)
    dataset = open_dataset(folder)
    with pytest.raises(InputError, match=f'{shard.name}, record .*does not match'):
        rows_of(dataset.batches('train', **NMT))
    skipping = dataset.batches('train', on_error='skip', **NMT)
    assert len(rows_of(skipping)) == ROWS - 1
    assert skipping.left_out['damaged'] == 1
    assert len([*dataset.examples('train', on_error='skip')]) == ROWS - 1
    with pytest.raises(InputError, match='does not match'):
        [*dataset.examples('train')]


def test_text_and_rows_come_back(dataset):
    examples = [*dataset.examples('train')]
    assert [{name: each.tolist() for name, each in row.items()} for row in examples] == [
        each for shard in SHARDS for each in shard
    ]
    assert dataset.text([2 + ord('a'), 2 + ord('b'), END, PAD, PAD]) == 'ab'
    assert (dataset.vocab_size(), dataset.special_ids().pad) == (258, 0)


def test_targets_alone_have_batches_of_targets(tmp_path):
    shards = [[{'targets': [5, 6, END]}, {'targets': [7, END]}], [{'targets': [END]}]]
    dataset = open_dataset(write_dataset(tmp_path / 't', shards))
    iterator = dataset.batches('train', shuffle=False, **NMT)
    assert listed(iterator) == [
        {
            'target_input': [[START, 5, 6], [START, 7, PAD]],
            'target_output': [[5, 6, END], [7, END, PAD]],
            'target_sequence_length': [3, 2],
        }
    ]
    assert iterator.left_out == {'damaged': 0, 'length': 1, 'remainder': 0}


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({}, 'give batch_size, or tokens_per_batch'),
        ({'batch_size': 2, 'tokens_per_batch': 9}, 'and not both'),
        ({'batch_size': 2, 'boundaries': [3]}, 'boundaries goes with tokens_per_batch'),
        ({'tokens_per_batch': 9, 'num_buckets': 2}, 'num_buckets goes with batch_size'),
        ({'tokens_per_batch': 9, 'boundaries': [3, 3]}, 'each larger than the one before'),
        ({'tokens_per_batch': 9, 'num_readers': 2, 'reader_index': 2}, 'one of 0 to 1'),
        ({'tokens_per_batch': 0}, 'tokens_per_batch is 0; give a whole number from 1 to'),
        ({'tokens_per_batch': 9, 'on_error': 'go on'}, "give 'stop' or 'skip'"),
    ],
)
def test_impossible_arguments_are_refused(dataset, arguments, message):
    with pytest.raises(InputError, match=message):
        dataset.batches('train', **arguments)


def test_a_folder_without_a_whole_dataset_is_refused(dataset, tmp_path):
    with pytest.raises(InputError, match='has no tokbeam.json'):
        open_dataset(tmp_path)
    folder = write_dataset(tmp_path / 'd', [[{'targets': [1]}]])
    [shard] = folder.glob('d-train-*')
    shard.write_bytes(b'')
    with pytest.raises(InputError, match='is missing, or is not a file of the'):
        open_dataset(folder)
    with pytest.raises(InputError, match="no split 'dev'; there are train"):
        dataset.batches('dev', tokens_per_batch=9)
    (folder / 'tokbeam.json').write_text('{"stage": "count"}')
    with pytest.raises(InputError, match='is of `count`'):
        open_dataset(folder)


def test_no_tensorflow_is_imported(dataset):
    import subprocess
    import sys

    code = (
        'import sys; from tokcore import open_dataset; '
        f'next(open_dataset({dataset.folder!r}).batches("train", tokens_per_batch=99)); '
        'assert not {"tensorflow", "apache_beam", "torch"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


def test_a_vocabulary_without_a_begin_begins_targets_with_its_padding(dataset):
    batch = next(dataset.batches('train', batch_size=4))
    assert batch['target_input'][:, 0].tolist() == [PAD] * 4


def test_partial_batches_come_in_a_seeded_order(dataset):
    """No bucket is ever full, so that an epoch has no other batches."""

    def widths(**asked):
        batches = dataset.batches('train', batch_size=ROWS, **asked)
        return [batch['target_output'].shape[1] for batch in batches]

    by_length = widths(shuffle=False)
    assert by_length == sorted(by_length) and len(by_length) == 6
    orders = [widths(seed=seed, first_epoch=epoch) for seed in range(3) for epoch in range(3)]
    assert all(sorted(order) == by_length for order in orders)
    assert len({*map(tuple, orders)}) == len(orders)
    assert orders[3:5] == [widths(seed=1), widths(seed=1, first_epoch=1)]
    begun = dataset.batches('train', batch_size=ROWS, seed=1)
    for _ in range(2):
        next(begun)
    rest = dataset.from_state(begun.state())
    assert [batch['target_output'].shape[1] for batch in rest] == orders[3][2:]
