"""Joined rows: those that BERT's rule gives, applied to one pair after another."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.shard_formats import tfrecord
from pipelines.shard_formats.shard_format import Column, Shard, cut_rows
from pipelines.shard_formats.tfrecord import Joined, ids_around
from tokcore.encoding.encoder import EncodedSide
from tokcore.encoding.vocabulary import SpecialIds
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import OutputFile
from tokcore.records.tfrecord import frame_examples, parse_features, read_records

SHARD = Shard('d-train-00001-of-00002', 1000)
PAD, CLS, SEP = 9, 7, 8
SIDES = ('inputs', 'targets')
IDS = st.lists(st.integers(10, 99), max_size=9)


def plain(first, second, length):
    """The three features, and whether the row was cut: a pair is shortened by one id at a time.

    A B without ids, or without any left, is none.
    """
    first, second = [*first], [*second]
    before = len(first) + len(second)
    if second:
        while len(first) + len(second) > length - 3:
            longer = first if len(first) > len(second) else second
            longer.pop()
    else:
        del first[length - 2 :]
    ids = [CLS, *first, SEP]
    segments = [0] * len(ids)
    if second:
        ids += [*second, SEP]
        segments += [1] * (len(second) + 1)
    padding = length - len(ids)
    features = {
        'input_ids': ids + [PAD] * padding,
        'input_mask': [1] * len(ids) + [0] * padding,
        'segment_ids': segments + [0] * padding,
    }
    return features, len(first) + len(second) < before


def columns(names):
    return [Column.of(name, 100, SpecialIds(PAD, CLS, SEP), 'vocab.txt') for name in names]


def encoded(rows, names=SIDES):
    return EncodedRows(
        {
            name: np.array([id_ for row in rows for id_ in row[side]], np.int32)
            for side, name in enumerate(names)
        },
        {name: row_offsets([len(row[side]) for row in rows]) for side, name in enumerate(names)},
    )


def written(parts, length, names=SIDES):
    """Returns the file that was written, and its records."""
    parts = [encoded(rows, names) for rows in parts]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(tfrecord, '_CELLS', 3 * length):
        [made] = Joined(length).write(iter(parts), SHARD, folder, columns(names))
        data = Path(folder, made.name).read_bytes()
    assert (made.name, made.bytes) == (f'{SHARD.name}.joined', len(data))
    return made, [*read_records(data, made.name)]


@given(st.lists(st.tuples(IDS, IDS), max_size=12), st.integers(0, 12), st.integers(3, 24))
@example([([10] * 4, [11] * 4), ([10] * 4, [11] * 5), ([10] * 5, [11] * 4)], 1, 10)
@example([([10] * 9, [11]), ([10], [11] * 9), ([10] * 9, []), ([], [])], 2, 5)
def test_pairs_are_cut_and_padded_as_by_the_rule(rows, at, length):
    made, records = written([rows[:at], rows[at:]], length)
    expected = [plain(*row, length) for row in rows]
    assert [parse_features(record) for record in records] == [row for row, _ in expected]
    assert made.rows == made.examples == len(rows)
    assert made.cut == sum(is_cut for _, is_cut in expected)


@given(st.lists(st.tuples(IDS), max_size=12), st.integers(3, 12))
def test_texts_are_cut_at_their_end(rows, length):
    made, records = written([rows], length, ['targets'])
    expected = [plain(row[0], [], length) for row in rows]
    assert [parse_features(record) for record in records] == [row for row, _ in expected]
    assert made.cut == sum(is_cut for _, is_cut in expected)


def test_rows_that_were_made_again_are_those_that_are_stored():
    rows = [([10] * 4, [11] * 6), ([12], [13])]
    encoded_rows = encoded(rows)
    sides = [
        (name, EncodedSide(encoded_rows.ids[name], encoded_rows.offsets[name])) for name in SIDES
    ]
    framed = frame_examples(sides, np.zeros(2, np.uint64))
    again = [*Joined(8).row_bytes(framed, columns(SIDES))]
    with tempfile.TemporaryDirectory() as folder:
        [made] = Joined(8).write(iter([encoded_rows]), SHARD, folder, columns(SIDES))
        path = str(Path(folder, made.name))
        stored = [*Joined(8).stored_rows([path], np.array([0, 1, 2]), columns(SIDES), {})]
    assert stored == [*again, None]


def test_one_vocabulary_has_all_ids_around_a_row():
    assert ids_around(columns(SIDES)) == (CLS, SEP, PAD)
    roles = SpecialIds(PAD, CLS, SEP)
    lacking = [
        [Column.of('targets', 100, roles._replace(**{role: None}))] for role in roles._fields[:3]
    ]
    for refused in (*lacking, [Column.of(name, 100, roles, name) for name in SIDES]):
        with pytest.raises(InputError):
            ids_around(refused)


def test_rows_that_were_cut_are_counted_by_split():
    files = [
        OutputFile(f'd-{split}-0000{number}-of-00002.joined', 1, '0' * 8, 5, cut=cut)
        for number, (split, cut) in enumerate([('train', 2), ('train', 3), ('dev', 0)])
    ]
    assert cut_rows(files) == {'train': 5, 'dev': 0}
    assert cut_rows([OutputFile('d-train-00000-of-00001', 1, '0' * 8, 5)]) == {}
