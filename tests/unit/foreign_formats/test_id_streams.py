"""Shards as Megatron's files, flat ones and nanoGPT's, against rows packed one by one in Python."""

import csv
import gzip
import io
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.foreign_formats.id_streams import Flat, Megatron, NanoGpt
from pipelines.options.job import one_shard
from pipelines.shard_formats.formats import converted_format
from pipelines.shard_formats.shard_format import Column, Shard, most_ids, rows_of_ids
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.reading.shards import EncodedRows
from tokcore.records.manifest import file_of_shard, shard_name

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
            lengths = Megatron().lengths(data[name.replace('.bin', '.idx')], written.dtype)
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


def plain_index(lengths, code, size):
    """The index as Megatron-LM's writer packs it, value by value."""
    data = b'MMIDIDX\0\0' + struct.pack('<QBQQ', 1, code, len(lengths), len(lengths) + 1)
    data += b''.join(struct.pack('<i', length) for length in lengths)
    data += b''.join(struct.pack('<q', size * sum(lengths[:k])) for k in range(len(lengths)))
    return data + b''.join(struct.pack('<q', number) for number in range(len(lengths) + 1))


def index_of(lengths, dtype):
    array = np.array(lengths, np.int64)
    return Megatron().list_bytes(array, dtype, np.arange(len(array)), SHARD)


@given(st.lists(st.integers(0, 1000), max_size=20), st.sampled_from([('uint16', 8), ('int32', 4)]))
def test_an_index_of_megatron_is_the_plain_one_and_gives_its_lengths_back(lengths, kind):
    dtype, code = kind
    data = index_of(lengths, dtype)
    assert data == plain_index(lengths, code, np.dtype(dtype).itemsize)
    assert Megatron().lengths(data, dtype).tolist() == lengths


@given(
    st.lists(st.integers(0, 1 << 40), max_size=20),
    st.integers(0, 1 << 40),
    st.sampled_from([SHARD.name, 'a,b', 'a "b", c', 'ü']),
)
def test_a_flat_list_has_a_line_for_each_row_that_any_reader_of_csv_takes(
    lengths, first_row, shard
):
    records = [2 * number for number in range(len(lengths))]
    data = flat_list(lengths, records, Shard(shard, first_row))
    rows = list(csv.reader(io.StringIO(gzip.decompress(data).decode())))
    ends = np.cumsum([0, *lengths]).tolist()
    assert rows == [
        [str(start), str(end), str(first_row + record), shard, str(record)]
        for start, end, record in zip(ends[:-1], ends[1:], records, strict=True)
    ]
    assert Flat().lengths(data, 'uint16').tolist() == lengths
    assert data[4:8] == bytes(4)  # no time


def flat_list(lengths, records, shard=SHARD):
    return Flat().list_bytes(np.array(lengths, np.int64), 'uint16', np.array(records), shard)


INDEX, LIST = index_of([3, 1, 2], 'uint16'), flat_list([3, 4], [0, 1])


@pytest.mark.parametrize(
    ('data', 'problem'),
    [
        (b'', 'ends within its head, after 0 bytes'),
        (INDEX[:33], 'ends within its head, after 33 bytes'),
        (b'N' + INDEX[1:], 'does not begin as an index of Megatron'),
        (INDEX[:9] + b'\2' + INDEX[10:], 'does not begin as an index of Megatron'),
        (index_of([3], 'int32'), 'ids are int32, and the manifest states uint16'),
        (INDEX[:17] + b'\x63' + INDEX[18:], 'unknown dtype, 99'),
        (INDEX[:-1], 'not those of 3 rows as 3 documents'),
        (INDEX[:18] + b'\4' + INDEX[19:], 'not those of 4 rows as 3 documents'),
        (INDEX[:34] + b'\4' + INDEX[35:], 'do not lie one after another'),
        (INDEX[:37] + b'\xff' + INDEX[38:], 'do not lie one after another'),
        (INDEX[:-8] + b'\2' + INDEX[-7:], 'do not lie one after another'),
        ('0,3,0,d,0\n3,4', 'ends within a line'),
        ('0,3,0,d,0\n4,5,1,d,1\n', 'line 2 does not begin where'),
        ('0,3,0,d,0\n3,2,1,d,1\n', 'line 2 does not begin where'),
        ('0,3,0,d\n', 'line 1 is not start,end,row,shard,record'),
        ('0,-3,0,d,0\n', 'line 1 is not start,end,row,shard,record'),
        ('1,3,0,d,0\n', 'line 1 does not begin where'),
        *[
            (damaged, 'not whole as a gzip file')
            for damaged in (LIST[:-1], LIST[:12], LIST[:14] + b'\xff\xff\xff' + LIST[17:])
        ],
    ],
    ids=str,
)
def test_a_damaged_list_of_rows_is_refused(data, problem):
    is_flat = isinstance(data, str) or data[:1] == LIST[:1]
    form = Flat() if is_flat else Megatron()
    with pytest.raises(ValueError, match=problem):
        form.lengths(gzip.compress(data.encode()) if isinstance(data, str) else data, 'uint16')


@pytest.mark.parametrize(('split', 'name'), [('train', 'train'), ('dev', 'val'), ('test', 'test')])
def test_nanogpt_has_one_file_for_each_split(split, name):
    names = NanoGpt().file_names(shard_name('d-dev', split, 0, 1), ['targets'])
    assert names == [f'{name}.bin', f'{name}.csv.gz']
    for each in names:
        file = file_of_shard(each)
        assert file == (name, split, 0, each.removeprefix(name))
        assert NanoGpt().file_names(file.shard, ['targets']) == names


def test_nanogpt_has_one_shard_of_texts_with_ids_of_16_bits():
    NanoGpt().require(['targets'])
    NanoGpt().require_ids(most_ids([], [EndOfDocument('targets', 65_535, '', False)]))
    assert one_shard({}) == one_shard({'shards': 1, 'seed': 3}) == {'shards': 1}
    for refused in (
        lambda: NanoGpt().require(['inputs', 'targets']),
        lambda: NanoGpt().require_ids(most_ids([], [EndOfDocument('targets', 65_536, '', False)])),
        lambda: one_shard({'shards': 2}),
    ):
        with pytest.raises(InputError):
            refused()
