"""Packed rows hold every id once, as a plain form packs them, for any readers and states."""

import collections
import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_rounds import check_rounds
from written_dataset import change_manifest, listed, opened, write_dataset

from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.ordered_rows import EpochOrder

END, PAD = 1, 0
STRATEGIES = ['best-fit', 'greedy', 'concat']
IDS = st.lists(st.integers(2, 257), max_size=25)


def shards_of(*features):
    return st.lists(
        st.lists(st.fixed_dictionaries(dict.fromkeys(features, IDS)), max_size=12),
        min_size=1,
        max_size=3,
    ).filter(any)


def segments_in(batches, feature='targets'):
    """The segments of each packed row in order, after checking numbers, positions and padding."""
    found = []
    for batch in batches:
        arrays = [batch[f'{feature}{suffix}'] for suffix in ('', '_segmentation', '_position')]
        assert {array.dtype for array in arrays} == {np.dtype(np.int32)}
        for ids, numbers, positions in zip(*(array.tolist() for array in arrays), strict=True):
            used = len(numbers) - numbers.count(0)
            assert not any(numbers[used:]) and not any(positions[used:])
            assert set(ids[used:]) <= {PAD}
            row = collections.defaultdict(list)
            for id_, number, position in zip(ids[:used], numbers[:used], positions[:used]):
                assert position == len(row[number])
                row[number].append(id_)
            assert list(row) == sorted(row)
            found.append(dict(row))
    return found


def cut(row, length):
    return [row[at : at + length] for at in range(0, len(row), length)]


def rows_in_order(shards, window, seed, epoch):
    order = EpochOrder(tuple(map(len, shards)), window, seed, epoch)
    for number in range(order.window_count):
        part = order.window(number)
        for row in order.rows_of(part).tolist():
            yield shards[part.shard][part.first + row]


@given(
    shards_of('targets'),
    st.sampled_from(STRATEGIES),
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
)
def test_every_id_comes_once(
    tmp_path_factory, shards, strategy, length, size, window, has_end, has_index
):
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    dataset = opened(folder, shards, template=None if has_end else '$A')
    if has_index:
        dataset.write_index()
    asked = {'strategy': strategy, 'batch_size': size, 'window': window}
    batches = dataset.packed('train', length, epochs=2, seed=7, **asked)
    given_batches = [*batches]
    for batch in given_batches:
        assert len(batch['targets']) <= size and batch['targets'].shape[1] == length
    packed = segments_in(given_batches)
    rows = [row['targets'] for epoch in range(2) for row in rows_in_order(shards, window, 7, epoch)]
    empty = sum(not row for row in rows)
    rows = [row + [END] * (not has_end) for row in rows if row]
    if strategy == 'concat':
        stream = [id_ for row in rows for id_ in row]
        assert [id_ for row in packed for part in row.values() for id_ in part] == stream
        assert len(packed) == 2 * -(-(len(stream) // 2) // length)  # full, and each epoch's last
    else:
        pieces = sorted(piece for row in rows for piece in cut(row, length))
        assert sorted(part for row in packed for part in row.values()) == pieces
    assert batches.left_out == {'damaged': 0, 'length': empty, 'remainder': 0}
    cells = length * len(packed)
    used = sum(len(part) for row in packed for part in row.values())
    assert batches.padding_share == (1 - used / cells if cells else 0)


@given(
    shards_of('inputs', 'targets'),
    st.sampled_from(STRATEGIES[:2]),
    st.integers(1, 30),
    st.booleans(),
)
def test_pairs_stay_together(tmp_path_factory, shards, strategy, length, has_end):
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    template = None if has_end else '$A'
    dataset = opened(folder, shards, template=template)
    batches = dataset.packed('train', length, strategy=strategy, batch_size=2, window=9)
    given_batches = [*batches]
    sides = [segments_in(given_batches, name) for name in ('inputs', 'targets')]
    found = [
        (inputs.get(number, []), targets.get(number, []))
        for inputs, targets in zip(*sides, strict=True)
        for number in sorted(inputs.keys() | targets.keys())
    ]
    rows = [(row['inputs'], row['targets']) for shard in shards for row in shard]
    end = [] if has_end else [END]
    ended = [(inputs + end, targets + end) for inputs, targets in rows if inputs or targets]
    fitting = [pair for pair in ended if max(map(len, pair)) <= length]
    assert sorted(found) == sorted(fitting)
    assert batches.left_out['length'] == len(rows) - len(fitting)


def plain_best_fit(rows, length):
    """The rows of each packed row, as the numbers of rows; every side counts."""
    packed, changed = [], []
    for time, number in enumerate(sorted(range(len(rows)), key=lambda n: -max(map(len, rows[n])))):
        sizes = [*map(len, rows[number])]

        rooms = [
            [length - sum(len(rows[n][k]) for n in place) for k in range(len(sizes))]
            for place in packed
        ]
        fitting = [p for p in range(len(packed)) if all(a <= b for a, b in zip(sizes, rooms[p]))]
        if not fitting:
            packed.append([number])
            changed.append(time)
            continue
        best = min((min(rooms[place]), -changed[place], place) for place in fitting)[-1]
        packed[best].append(number)
        changed[best] = time
    return [sorted(each) for each in sorted(packed, key=min)]


def plain_greedy(rows, length):
    packed = []
    for number, row in enumerate(rows):
        for place in packed[-10:]:
            if all(sum(len(rows[n][k]) for n in place) + len(side) <= length
                   for k, side in enumerate(row)):  # fmt: skip
                place.append(number)
                break
        else:
            packed.append([number])
    return packed


@pytest.mark.parametrize('plain', [plain_best_fit, plain_greedy])
@pytest.mark.parametrize('features', [('targets',), ('inputs', 'targets')])
@given(data=st.data())
def test_rows_are_packed_as_by_the_plain_form(tmp_path_factory, plain, features, data):
    sizes = st.lists(st.integers(2, 257), min_size=1, max_size=20)
    rows = data.draw(
        st.lists(st.fixed_dictionaries(dict.fromkeys(features, sizes)), min_size=1, max_size=40)
    )
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    dataset = opened(folder, [rows])
    dataset.write_index()
    strategy = 'best-fit' if plain is plain_best_fit else 'greedy'
    batches = [*dataset.packed('train', 20, strategy=strategy, batch_size=1, shuffle=False)]
    expected = plain([[row[name] for name in features] for row in rows], 20)
    for name in features:
        found = segments_in(batches, name)
        assert [[*packed.values()] for packed in found] == [
            [rows[number][name] for number in packed] for packed in expected
        ]


@pytest.mark.parametrize('long_side', ['inputs', 'targets'])
def test_pairs_of_one_long_side_fill_packed_rows_with_it(tmp_path, long_side):
    dice = random.Random(4)
    rows = [
        {
            name: [5] * dice.randint(3, 30 if name == long_side else 6)
            for name in ('inputs', 'targets')
        }
        for _ in range(900)
    ]
    dataset = opened(tmp_path / 'd', [rows])
    batches = [*dataset.packed('train', 128, batch_size=1)]
    ids = sum(len(row[long_side]) for row in rows)
    assert len(batches) <= 1.01 * ids / 128 + 1


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    dice = random.Random(5)
    rows = [
        {'targets': [*(dice.randint(2, 257) for _ in range(dice.randint(0, 70))), END]}
        for number in range(190)
    ]
    shards = [rows[:70], [], rows[70:81], rows[81:160], rows[160:]]
    dataset = opened(tmp_path_factory.mktemp('packed') / 'd', shards)
    dataset.write_index()
    return dataset


@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('is_dropped', [False, True])
def test_a_run_goes_on_with_another_number_of_readers(dataset, strategy, is_dropped):
    asked = {
        'length': 48, 'strategy': strategy, 'batch_size': 3, 'window': 40, 'epochs': 2,
        'drop_remainder': is_dropped,
    }  # fmt: skip

    def batches(**readers):
        return dataset.packed('train', **asked, **readers)

    def rows_in(batches):
        return [row for batch in batches for row in batch['targets']]

    whole = check_rounds(
        batches, dataset.from_state, rows_in, random.Random(strategy), 5, is_dropped, False
    )
    assert len(whole) > 40


def test_best_fit_leaves_less_padding_than_greedy_and_what_is_left_out_is_counted(dataset):
    shares = {}
    for strategy in STRATEGIES:
        batches = dataset.packed('train', 128, strategy=strategy, batch_size=1)
        assert sum(1 for _ in batches) > 50
        shares[strategy] = batches.padding_share
    assert shares['concat'] < shares['best-fit'] < shares['greedy']
    assert shares['best-fit'] < 0.03
    batches = dataset.packed('train', 48, batch_size=7, drop_remainder=True, strategy='concat')
    assert len(segments_in([*batches])) % 7 == 0
    assert 0 < batches.left_out['remainder'] < 48 * 7


def state_of(dataset, strategy, length=48):
    batches = dataset.packed('train', length, strategy=strategy, batch_size=3, window=40)
    for _ in batches:
        state = batches.state()
        if state['place']['waiting'] and 'starts' in state['place']:
            return json.loads(json.dumps(state))
    raise AssertionError('no part of a row waits')


@pytest.mark.parametrize('strategy', ['concat', 'best-fit'])
@pytest.mark.parametrize(
    'starts',
    [None, 5, 'x', [-1], [1.5], [1 << 63], [1 << 40], [0] * 4000],
    ids=lambda s: repr(s)[:9],
)
def test_impossible_starts_are_refused(dataset, strategy, starts):
    state = state_of(dataset, strategy, 12)
    if isinstance(starts, list) and len(starts) == 1:
        starts = starts + [0] * (len(state['place']['waiting']) - 1)
    state['place']['starts'] = starts
    with pytest.raises(InputError):
        dataset.from_state(state)


@pytest.mark.parametrize('strategy', STRATEGIES)
def test_the_end_can_be_given_or_left_out(tmp_path, strategy):
    rows = [{'targets': [n + 2] * 5} for n in range(9)]
    dataset = opened(tmp_path / 'd', [rows], template='$A')
    for asked, end in [({}, [END]), ({'end': 7}, [7]), ({'end': False}, [])]:
        batches = dataset.packed('train', 100, strategy=strategy, batch_size=1, **asked)
        parts = [part for row in segments_in(batches) for part in row.values()]
        assert sorted(parts) == sorted(row['targets'] + end for row in rows)
        small = {'length': 11, 'strategy': strategy, 'batch_size': 1, **asked}
        begun, whole = (dataset.packed('train', **small) for _ in range(2))
        assert listed(next(begun)) == listed(next(whole))
        again = dataset.from_state(json.loads(json.dumps(begun.state())))
        assert [*map(listed, again)] == [*map(listed, whole)]


def test_a_state_is_of_rows_with_the_same_end(tmp_path):
    rows = [{'targets': [n + 2] * 5} for n in range(9)]
    folder = write_dataset(tmp_path / 'd', [rows], template='$A')
    packed = open_dataset(folder).packed('train', 7, batch_size=1)
    next(packed)
    change_manifest(folder, lambda fields: fields['end_of_document'][0].update(id=2))
    with pytest.raises(InputError, match='the state is of batches with ends='):
        open_dataset(folder).from_state(packed.state())


def test_rows_are_not_joined_where_no_end_is_known(tmp_path):
    folder = write_dataset(tmp_path / 'd', [[{'targets': [5, 6]}]], template='$A')
    change_manifest(folder, lambda fields: fields.pop('end_of_document'))
    said = 'does not say which token ends its documents, .* give end=ID, or end=False'
    for strategy in STRATEGIES:
        with pytest.raises(InputError, match=said):
            open_dataset(folder).packed('train', 9, strategy=strategy)
    change_manifest(folder, lambda fields: fields['options'].update(end='none'))
    assert next(open_dataset(folder).packed('train', 3))['targets'].tolist() == [[5, 6, PAD]]


def test_an_end_above_the_vocabulary_counts_among_its_ids(tmp_path):
    record = {
        'side': 'both', 'name': 'v', 'size': 300, 'bytes': 1, 'crc32c': '0' * 8, 'scheme': 'word',
        'special_ids': {},
    }  # fmt: skip
    folder = write_dataset(tmp_path / 'd', [[{'targets': [5, 6]}]])
    change_manifest(folder, lambda fields: fields.update(vocabularies=[record]))
    change_manifest(folder, lambda fields: fields['end_of_document'][0].update(id=300))
    assert open_dataset(folder).vocab_size() == 301
