"""Batches of a dataset: NMT's rule and Tensor2Tensor's, their orders, and damage."""

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_nmt_batches import plain_training_batches
from written_dataset import listed, opened, write_dataset

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
                2 + number % 200, *(dice.randint(2, 257) for _ in range(dice.randint(0, longest))), END,
            ]
            for name in ('inputs', 'targets')
        }
        for number in range(rows)
    ]  # fmt: skip
    cuts = sorted(dice.randint(0, rows) for _ in range(shards - 1))
    return [examples[a:b] for a, b in zip([0, *cuts], [*cuts, rows], strict=True)]


SHARDS = drawn_shards(1, 10)
EXAMPLES = [example for shard in SHARDS for example in shard]
PAIRS = [(each['inputs'][:-1], each['targets'][:-1]) for each in EXAMPLES]


@pytest.fixture(scope='module', params=['with an index', 'without one'])
def dataset(tmp_path_factory, request):
    dataset = opened(tmp_path_factory.mktemp('pairs'), SHARDS)
    if request.param == 'with an index':
        dataset.write_index()
    return dataset


def rows_of(batches):
    """The pairs of NMT's batches, without padding."""
    return sorted(
        (source[:length], target[: size - 1])
        for batch in map(listed, batches)
        for source, length, target, size in zip(
            batch['source'], batch['source_sequence_length'], batch['target_output'],
            batch['target_sequence_length'], strict=True,
        )
    )  # fmt: skip


SOME = st.one_of(st.none(), st.integers(1, 50))


@given(st.integers(1, 20), st.integers(0, 7), SOME, SOME)
def test_batches_in_stored_order_are_nmts(dataset, size, buckets, source, target):
    asked = {
        'batch_size': size, 'num_buckets': buckets, 'source_max_length': source,
        'target_max_length': target, 'start': START,
    }  # fmt: skip
    found = dataset.batches('train', shuffle=False, window=64, **asked)
    plain = plain_training_batches(PAIRS, end=END, pad_source=PAD, pad_target=PAD, **asked)
    assert [*map(listed, found)] == plain


NMT = {'batch_size': 7, 'start': START}


def test_each_epoch_is_another_order_of_all_rows(dataset):
    both = [*dataset.batches('train', epochs=2, **NMT)]
    assert rows_of(both) == sorted(2 * PAIRS)
    orders = [
        [*map(listed, dataset.batches('train', seed=seed, **NMT))] for seed in (0, 0, 1)
    ]  # fmt: skip
    assert [*map(listed, both[: len(both) // 2])] == orders[0] == orders[1] != orders[2]
    assert [*map(listed, both[len(both) // 2 :])] != orders[0]


@pytest.mark.parametrize('seed', range(5))
def test_an_order_is_a_permutation_within_windows(seed):
    order = EpochOrder((30, 0, 7, 64), 16, seed, 3)
    windows = [order.window(number) for number in range(order.window_count)]
    rows = [
        (window.shard, window.first + row)
        for window in windows
        for row in order.rows_of(window).tolist()
    ]
    assert sorted(rows) == [(s, r) for s, count in enumerate((30, 0, 7, 64)) for r in range(count)]
    of_positions = [k for k, each in enumerate(windows) for _ in range(each.first, each.last)]
    assert [order.window_of(position) for position in range(order.rows)] == of_positions
    assert [each.position for each in windows] == [of_positions.index(k) for k in range(len(windows))]  # fmt: skip


@given(st.integers(1, 2000), st.one_of(st.none(), st.integers(1, 70)), st.integers(0, 20))
def test_batches_by_a_budget_are_tensor2tensors(dataset, tokens, most, least):
    longest = most or tokens
    bounds = growing_boundaries(longest)
    sizes = batch_sizes(tokens, (*bounds, longest))
    waiting, expected = {}, []
    for example in EXAMPLES:
        length = max(map(len, example.values()))
        if length < least or (most is not None and length > most):
            continue
        bucket = sum(bound <= length for bound in bounds)
        waiting.setdefault(bucket, []).append(example)
        if len(waiting[bucket]) == sizes[bucket]:
            expected.append(waiting.pop(bucket))
    expected += [waiting[bucket] for bucket in sorted(waiting)]
    asked = {'tokens_per_batch': tokens, 'max_length': most, 'min_length': least}
    found = [*map(listed, dataset.batches('train', shuffle=False, **asked))]
    for batch, rows in zip(found, expected, strict=True):
        for name in ('inputs', 'targets'):
            lengths = [len(row[name]) for row in rows]
            assert batch[f'{name}_length'] == lengths
            padded = [row[name] + [PAD] * (max(lengths) - len(row[name])) for row in rows]
            assert batch[name] == padded


def test_bounds_and_sizes_are_tensor2tensors():
    # What its `batching_scheme` gives for a budget of 4,096 and lengths up to 256.
    bounds = growing_boundaries(256)
    assert bounds[:14] == (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22)
    assert bounds[-1] < 256 <= int(bounds[-1] * 1.1)
    sizes = batch_sizes(4096, (*bounds, 256))
    window = 1260  # the largest highly composite number up to 3 * 512
    assert sizes[0] == 420
    for size, bound in zip(sizes, (*bounds, 256), strict=True):
        assert size == max(k for k in range(1, 4096 // bound + 1) if window % k == 0)
    counts = [sum(number % k == 0 for k in range(1, number + 1)) for number in range(1, 3 * 60)]
    for tokens in range(1, 60):
        window = counts.index(max(counts[: 3 * tokens])) + 1
        divisors = [k for k in range(1, tokens + 1) if window % k == 0]
        assert batch_sizes(tokens, [1]) == (max(divisors),)
    # 735,134,400 has more divisors than all numbers below it (OEIS A002182).
    assert batch_sizes(735_134_400 // 3, [1]) == (735_134_400 // 3,)


def test_shapes_are_known_beforehand(dataset):
    asked = {'max_length': 50, 'pad_to_boundary': True, 'drop_remainder': True}
    iterator = dataset.batches('train', tokens_per_batch=600, **asked)
    bounds = (*growing_boundaries(50), 51)
    shapes = {*zip(batch_sizes(600, (*bounds[:-1], 50)), (each - 1 for each in bounds))}
    rows = 0
    for batch in iterator:
        assert batch['inputs'].shape == batch['targets'].shape and batch['inputs'].shape in shapes
        rows += len(batch['inputs'])
    assert rows + sum(iterator.left_out.values()) == ROWS
    assert iterator.left_out['length'] and iterator.left_out['remainder']


def test_damage_is_an_error_or_counted(tmp_path):
    folder = write_dataset(tmp_path / 'd', drawn_shards(3, 3))
    shard = max(folder.glob('d-train-*'), key=lambda path: path.stat().st_size)
    data = bytearray(shard.read_bytes())
    data[-6] ^= 1
    shard.write_bytes(data)
    dataset = open_dataset(folder)
    for rows in (dataset.batches('train', **NMT), dataset.examples('train')):
        with pytest.raises(InputError, match=f'{shard.name}, record .*does not match'):
            list(rows)
    skipping = dataset.batches('train', on_error='skip', **NMT)
    assert len(rows_of(skipping)) == ROWS - 1 and skipping.left_out['damaged'] == 1
    assert len([*dataset.examples('train', on_error='skip')]) == ROWS - 1


def test_text_and_rows_come_back(dataset):
    assert [*map(listed, dataset.examples('train'))] == EXAMPLES
    assert dataset.text([2 + ord('a'), 2 + ord('b'), END, PAD, PAD]) == 'ab'
    assert (dataset.vocab_size(), dataset.special_ids().pad) == (258, 0)


def test_targets_alone_have_batches_of_targets(tmp_path):
    shards = [[{'targets': [5, 6, END]}, {'targets': [7, END]}], [{'targets': [END]}]]
    iterator = opened(tmp_path / 't', shards).batches('train', shuffle=False, **NMT)
    [batch] = map(listed, iterator)
    assert batch == {
        'target_input': [[START, 5, 6], [START, 7, PAD]],
        'target_output': [[5, 6, END], [7, END, PAD]],
        'target_sequence_length': [3, 2],
    }
    assert iterator.left_out == {'damaged': 0, 'length': 1, 'remainder': 0}


def test_no_framework_is_imported(dataset):
    code = (
        'import sys; from tokcore import open_dataset; '
        f'next(open_dataset({dataset.folder!r}).batches("train", tokens_per_batch=99)); '
        'assert not {"tensorflow", "apache_beam", "torch"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


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
