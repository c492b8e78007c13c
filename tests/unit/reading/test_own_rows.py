"""A reader parses the rows of its batches alone, which are those that reading all rows gives."""

import json
import random
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_rounds import dealt
from written_dataset import framed, listed, opened

import tokcore
from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.record_index import Addresses, write_index
from tokcore.reading.record_kernels import SMALLEST_RECORD
from tokcore.reading.shards import ExampleParser, row_sizes

ROWS = 6000
KINDS = {
    'by size': ('batches', {'batch_size': 4, 'start': 0}),
    'by budget': ('batches', {'tokens_per_batch': 100, 'window': 2500, 'epochs': 2}),
    'for a model': ('batches', {'tokens_per_batch': 150, 'for_model': 'lm', 'end': 9}),
    'as stored': ('batches', {'tokens_per_batch': 100, 'shuffle': False}),
    'exact': ('batches', {'tokens_per_batch': 100, 'shuffle': 'exact', 'window': 2000}),
    'best-fit': ('packed', {'length': 64, 'batch_size': 2}),
    'greedy': ('packed', {'length': 64, 'batch_size': 2, 'strategy': 'greedy'}),
    'concat': ('packed', {'length': 80, 'batch_size': 8, 'strategy': 'concat'}),
}


def drawn_rows(count, seed):
    dice = random.Random(seed)
    return [
        {'targets': [*(dice.randint(2, 257) for _ in range(dice.randint(0, 30))), 1]}
        for _ in range(count)
    ]


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    rows = drawn_rows(ROWS, 3)
    dataset = opened(tmp_path_factory.mktemp('own') / 'd', [rows[:3500], [], rows[3500:]])
    dataset.write_index()
    return dataset


@pytest.fixture(scope='module')
def without_index(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp('plain') / 'd'
    shutil.copytree(dataset.folder, folder, ignore=lambda *_: {'index'})
    return open_dataset(folder)


@pytest.fixture
def parsed(monkeypatch):
    """The sizes of all records that are parsed."""
    sizes, parse = [], ExampleParser.parse

    def counting(self, data, records):
        sizes.extend(records[1].tolist())
        return parse(self, data, records)

    monkeypatch.setattr(ExampleParser, 'parse', counting)
    return sizes


@pytest.mark.parametrize('kind', KINDS)
def test_each_of_many_readers_parses_its_share_of_bytes(dataset, parsed, kind):
    method, asked = KINDS[kind]
    records = framed([listed(row) for row in dataset['train'][:]])[0]
    whole = (len(records) - SMALLEST_RECORD * ROWS) * asked.get('epochs', 1)
    batches = getattr(dataset, method)
    for readers in (1, 3, 16, 64):
        all_parsed = 0
        for reader in range(readers):
            parsed.clear()
            for _ in batches('train', **asked, num_readers=readers, reader_index=reader):
                pass
            assert sum(parsed) <= whole * (1 / readers + 0.02)
            all_parsed += sum(parsed)
        assert all_parsed >= 0.97 * whole  # all but rows without ids, and those that are left out


@pytest.mark.parametrize('kind', [kind for kind in KINDS if kind != 'exact'])
def test_batches_and_states_are_those_of_reading_all_rows(dataset, without_index, parsed, kind):
    method, asked = KINDS[kind]
    for readers, reader in ((1, 0), (7, 5)):
        own, plain = (
            getattr(each, method)('train', **asked, num_readers=readers, reader_index=reader)
            for each in (dataset, without_index)
        )
        for number, (batch, expected) in enumerate(zip(own, plain, strict=True)):
            assert listed(batch) == listed(expected)
            if number % 20 == 0:
                assert own.state() == plain.state() and own.padding_share == plain.padding_share
                parsed.clear()
                again = dataset.from_state(own.state(), num_readers=5, reader_index=1)
                assert parsed == []  # no row is read to go on
                rest = without_index.from_state(own.state(), num_readers=5, reader_index=1)
                assert listed(next(again, {})) == listed(next(rest, {}))
        assert own.state() == plain.state()


SHARDS = st.lists(
    st.lists(st.lists(st.integers(2, 257), max_size=12), max_size=14), min_size=1, max_size=4
).filter(any)


@given(
    SHARDS, st.sampled_from([*KINDS.values()]), st.integers(1, 9), st.booleans(), st.integers(1, 4)
)
def test_any_rows_are_the_same_with_an_index(
    tmp_path_factory, shards, kind, window, is_dropped, readers
):
    rows = [[{'targets': [*row, 1]} for row in shard] for shard in shards]
    folder = tmp_path_factory.mktemp('drawn') / 'd'
    method, asked = kind
    asked = {**asked, 'window': window, 'drop_remainder': is_dropped, 'num_readers': readers}
    asked['shuffle'] = asked.get('shuffle') != 'exact'
    found = []
    for dataset in (opened(folder, rows), opened(folder, rows)):
        batches = [
            getattr(dataset, method)('train', **asked, reader_index=k) for k in range(readers)
        ]
        found.append(
            ([[*map(listed, each)] for each in batches], [each.state() for each in batches])
        )
        dataset.write_index()  # for the second one
    assert found[0] == found[1]


def test_damage_is_met_by_the_reader_whose_batch_it_is_in(tmp_path):
    rows = drawn_rows(300, 4)
    folder = tmp_path / 'd'
    dataset = opened(folder, [rows])
    dataset.write_index()
    data, starts = framed(rows)
    asked = {'tokens_per_batch': 60, 'num_readers': 3}
    expected = [[*dataset.batches('train', **asked, reader_index=k)] for k in range(3)]
    damaged = bytearray(data)
    damaged[starts[150] - 5] ^= 1  # in the content of record 149
    (folder / 'd-train-00000-of-00001').write_bytes(damaged)
    said = rf'record 149, byte {starts[149]}: the checksum of a TFRecord.s content does not match'
    met = 0
    for k in range(3):
        batches = open_dataset(folder).batches('train', **asked, reader_index=k)
        row = rows[149]['targets']
        if all(
            row != found[: len(row)] for each in expected[k] for found in listed(each)['targets']
        ):
            assert [*map(listed, batches)] == [*map(listed, expected[k])]
            continue
        met += 1
        before = batches.state()
        for _ in range(2):  # whoever asks again gets no other batch in its place
            with pytest.raises(InputError, match=said):
                for _ in batches:
                    before = batches.state()
            assert batches.state() == before
    assert met == 1


def test_an_index_that_contradicts_a_record_is_refused(tmp_path):
    rows = drawn_rows(50, 5)
    folder = tmp_path / 'd'
    dataset = opened(folder, [rows])
    [shard] = dataset._shards('train')
    [(lengths, sizes)] = row_sizes(shard, ['targets'])
    sizes[7:9, 0] += 1
    write_index(shard, 1, [Addresses(lengths, None, sizes)])
    said = f'record 7 has another number of ids than its index says; run `tokbeam verify {folder}`'
    for asked in ({}, {'shuffle': False}, {'shuffle': 'exact'}):
        with pytest.raises(InputError, match=said):
            [*open_dataset(folder).batches('train', tokens_per_batch=90, **asked)]
    assert [*open_dataset(folder).batches('train', tokens_per_batch=90, on_error='skip')]


def test_a_mixture_goes_on_with_48_readers_after_64_and_reads_no_row_for_it(tmp_path, parsed):
    datasets = {}
    for number in range(5):
        rows = drawn_rows(900, number)
        datasets[f'd{number}'] = opened(tmp_path / str(number), [rows[:400], rows[400:]])
        datasets[f'd{number}'].write_index()
    budgets = {name: 2000 + 3000 * k for k, name in enumerate(datasets)}
    for stop in ('first', budgets):
        mixed = tokcore.mixture(datasets, stop=stop)
        asked = {'tokens_per_batch': 40, 'window': 700}
        parsed.clear()
        alone = mixed.batches('train', **asked)
        assert parsed == []
        whole = [*map(listed, alone)]
        readers = [
            mixed.batches('train', **asked, num_readers=64, reader_index=k) for k in range(64)
        ]
        shares = [[listed(next(each)) for _ in range(3)] for each in readers]
        assert dealt(shares) == whole[: 3 * 64]
        state = json.loads(json.dumps(readers[9].state()))
        parsed.clear()
        after = [mixed.from_state(state, num_readers=48, reader_index=k) for k in range(48)]
        assert parsed == []
        rest = whole[3 * 64 :]
        shares = [[listed(next(each)) for _ in range(len(rest) // 48)] for each in after]
        assert dealt(shares) == rest[: len(rest) // 48 * 48]
