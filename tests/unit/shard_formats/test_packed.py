"""Shards of packed rows: every row once, whole or cut as the rule says, however the rows come."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.shard_formats import tfrecord
from pipelines.shard_formats.shard_format import Column, Shard
from pipelines.shard_formats.tfrecord import Packed
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import EncodedRows
from tokcore.records.tfrecord import parse_features, read_records

SHARD = Shard('d-train-00001-of-00002', 1000)
SUFFIXES = ('', '_segmentation', '_position')


def encoded(rows, features):
    return EncodedRows(
        {name: np.array([id_ for row in rows for id_ in row[name]], np.int32) for name in features},
        {name: row_offsets([len(row[name]) for row in rows]) for name in features},
    )


def converted(parts, features, length, window=5):
    """Returns the file that was written, and its records."""
    columns = [Column(name, 1 << 20, (0, 1)) for name in features]
    parts = [encoded(rows, features) for rows in parts]
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(tfrecord, 'WINDOW_ROWS', window),
        mock.patch.object(tfrecord, '_CELLS', 3 * length),
    ):
        [made] = Packed(length).write(iter(parts), SHARD, folder, columns)
        data = Path(folder, made.name).read_bytes()
    assert (made.name, made.bytes) == (f'{SHARD.name}.packed', len(data))
    return made, [parse_features(record) for record in read_records(data, made.name)]


def segments(record, feature):
    """The segments of a record, after a check of their numbers and positions."""
    ids, numbers, positions = (record[feature + suffix] for suffix in SUFFIXES)
    found = {}
    for id_, number, position in zip(ids, numbers, positions, strict=True):
        found.setdefault(number, []).append(id_)
        assert position == len(found[number]) - 1
    assert numbers == sorted(numbers) and min(numbers, default=1) >= 1
    return found


def shuffled_rows(features, most):
    """Rows whose first ids are their numbers, so that no two are equal."""
    lengths = st.fixed_dictionaries({name: st.integers(0, most) for name in features})
    return st.lists(lengths, max_size=30).map(
        lambda rows: [
            {name: [7 + number] * row[name] for name in features} for number, row in enumerate(rows)
        ]
    )


@given(shuffled_rows(['targets'], 20), st.integers(0, 30), st.integers(1, 12))
def test_texts_are_there_once_cut_where_they_are_longer(rows, cut, length):
    made, records = converted([rows[:cut], rows[cut:]], ['targets'], length)
    pieces = [piece for record in records for piece in segments(record, 'targets').values()]
    expected = [
        row['targets'][at : at + length]
        for row in rows
        for at in range(0, len(row['targets']), length)
    ]
    assert sorted(pieces) == sorted(expected)
    assert all(0 < len(record['targets']) <= length for record in records)
    empty = [number for number, row in enumerate(rows) if not row['targets']]
    assert [*made.dropped] == empty and made.rows == len(records)
    assert made.packed == len(rows) - len(empty) and made.examples == len(rows)


@given(shuffled_rows(['inputs', 'targets'], 14), st.integers(0, 30), st.integers(1, 12))
def test_pairs_are_in_one_record_and_segment_and_longer_ones_are_left_out(rows, cut, length):
    made, records = converted([rows[:cut], rows[cut:]], ['inputs', 'targets'], length)
    pairs = []
    for record in records:
        sides = [segments(record, side) for side in ('inputs', 'targets')]
        pairs += [
            tuple(side.get(number, []) for side in sides)
            for number in sorted({*sides[0], *sides[1]})
        ]
        assert all(len(record[side]) <= length for side in ('inputs', 'targets'))
    kept = {
        number: (row['inputs'], row['targets'])
        for number, row in enumerate(rows)
        if 0 < max(len(row['inputs']), len(row['targets'])) <= length
    }
    assert sorted(pairs) == sorted(kept.values())
    assert [*made.dropped] == [number for number in range(len(rows)) if number not in kept]
    assert (made.packed, made.examples) == (len(kept), len(rows))


@given(shuffled_rows(['targets'], 9), st.lists(st.integers(0, 30), max_size=4))
def test_the_bytes_do_not_depend_on_how_rows_come(rows, cuts):
    bounds = [0, *sorted(cuts), len(rows)]
    parts = [rows[first:last] for first, last in zip(bounds, bounds[1:])]
    assert converted(parts, ['targets'], 10) == converted([rows], ['targets'], 10)


def test_a_window_is_packed_best_fit_and_records_come_as_their_first_rows():
    rows = [{'targets': [id_] * size} for id_, size in [(2, 3), (3, 6), (4, 4), (5, 7), (6, 10)]]
    _, records = converted([rows], ['targets'], 10)
    assert [record['targets'] for record in records] == [
        [2] * 3 + [5] * 7,
        [3] * 6 + [4] * 4,
        [6] * 10,
    ]
    assert records[0]['targets_segmentation'] == [1] * 3 + [2] * 7
    assert records[0]['targets_position'] == [0, 1, 2, 0, 1, 2, 3, 4, 5, 6]


def test_a_shard_without_rows_is_an_empty_file():
    made, records = converted([], ['targets'], 10)
    assert (made.bytes, made.rows, made.packed, records) == (0, 0, 0, [])
