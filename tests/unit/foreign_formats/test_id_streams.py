"""Shards as Megatron's files and as flat ones, held against rows packed one by one in Python."""

import csv
import gzip
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.foreign_formats.megatron import index_lengths
from pipelines.shard_formats.formats import converted_format
from pipelines.shard_formats.shard_format import Column, Shard, rows_of_ids
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import EncodedRows

SHARD = Shard('d-train-00001-of-00002', 1000)
CODES = {'uint16': 'H', 'int32': 'i', 'uint32': 'I'}


def encoded(rows):
    """Returns rows, dictionaries of lists by feature, as the readers of shards give them."""
    return EncodedRows(
        {
            name: np.array([id_ for row in rows for id_ in row[name]], np.int32)
            for name in ('inputs', 'targets')
        },
        {name: row_offsets([len(row[name]) for row in rows]) for name in ('inputs', 'targets')},
    )


def columns(size):
    return [Column('inputs', size, (0, 1)), Column('targets', size, (0, 1))]


def converted(parts, output_format, size=70_000):
    """Returns what was written of each file, and the files by their names."""
    with tempfile.TemporaryDirectory() as folder:
        made = list(
            converted_format(output_format).write(iter(parts), SHARD, folder, columns(size))
        )
        is_stored = any(each.rows for each in made)
        data = {each.name: Path(folder, each.name).read_bytes() for each in made if is_stored}
        assert sorted(data) == sorted(path.name for path in Path(folder).iterdir())
    names = converted_format(output_format).file_names(SHARD.name, ['inputs', 'targets'])
    assert [each.name for each in made] == names
    return {each.name: each for each in made}, data


ids = st.lists(st.integers(0, 3) | st.integers(0, 69_999), max_size=6)
rows = st.lists(st.fixed_dictionaries({'inputs': ids, 'targets': ids}), max_size=12)


@given(rows, st.integers(0, 12), st.sampled_from(['megatron', 'flat']))
def test_the_files_are_the_rows_with_text_in_their_order(rows, cut, output_format):
    parts = [encoded(rows[:cut]), encoded(rows[cut:])]
    made, data = converted(parts, output_format)
    kept = [
        (number, row)
        for number, row in enumerate(rows)
        if all(any(id_ > 1 for id_ in row[name]) for name in row)
    ]
    for name, written in made.items():
        assert written.rows == len(kept)
        assert [*written.dropped] == sorted({*range(len(rows))} - {number for number, _ in kept})
        if not kept:
            assert (written.bytes, written.crc32c, data) == (0, 0, {})
            continue
        assert written.bytes == len(data[name])
        if not name.endswith(('.bin', '.npy')):
            continue
        feature = 'inputs' if 'inputs' in name else 'targets'
        lists = [row[feature] for _, row in kept]
        values = [id_ for row in lists for id_ in row]
        assert data[name] == struct.pack(f'<{len(values)}{CODES[written.dtype]}', *values)
        if output_format == 'megatron':
            lengths = index_lengths(data[name.replace('.bin', '.idx')], written.dtype)
            assert lengths.tolist() == [len(row) for row in lists]
            continue
        lines = gzip.decompress(data[name.replace('.npy', '.csv.gz')]).decode().splitlines()
        ends = np.cumsum([0, *map(len, lists)]).tolist()
        assert [*csv.reader(lines)] == [
            [str(start), str(end), str(1000 + number), SHARD.name, str(number)]
            for start, end, (number, _) in zip(ends[:-1], ends[1:], kept, strict=True)
        ]


@given(rows)
def test_rows_are_compared_by_the_ids_of_each_side_and_their_number(rows):
    sides = ('inputs', 'targets')
    wanted = [
        b'\n'.join(
            struct.pack(f'<{len(row[name]) + 1}q', len(row[name]), *row[name]) for name in sides
        )
        for row in rows
    ]
    assert [*rows_of_ids(encoded(rows), sides)] == wanted


@pytest.mark.parametrize(
    ('output_format', 'size', 'dtype'),
    [
        ('megatron', 65_499, 'uint16'),
        ('megatron', 65_500, 'int32'),
        ('flat', 65_536, 'uint16'),
        ('flat', 65_537, 'uint32'),
    ],
)
def test_the_largest_id_of_each_dtype_is_kept(output_format, size, dtype):
    rows = [{'inputs': [size - 1], 'targets': [size - 1, 1]}]
    made, data = converted([encoded(rows)], output_format, size)
    assert {each.dtype for each in made.values()} == {dtype}
    for name in made:
        if name.endswith(('.bin', '.npy')):
            assert np.frombuffer(data[name], dtype)[0] == size - 1
    wrong = [{'inputs': [size], 'targets': [2, 1]}]
    with pytest.raises(ValueError, match=rf'has the id {size}, and the vocabulary of inputs'):
        converted([encoded(wrong)], output_format, size)


def test_a_text_without_inputs_has_the_names_that_trainers_know():
    assert converted_format('megatron').file_names('d', ['targets']) == [
        'd_text_document.bin', 'd_text_document.idx'
    ]  # fmt: skip
    assert converted_format('flat').file_names('d', ['targets']) == ['d.npy', 'd.csv.gz']
