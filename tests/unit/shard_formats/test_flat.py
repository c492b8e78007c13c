"""The list of documents of a flat stream, and bytes that are not one."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.shard_formats.flat import document_lengths, flat_dtype, list_bytes


def written(lengths, records, first_row, shard):
    return list_bytes(np.array(lengths, np.int64), np.array(records), first_row, shard)


@given(
    st.lists(st.integers(0, 1 << 40), max_size=20),
    st.integers(0, 1 << 40),
    st.sampled_from(['d-train-00000-of-00003', 'a,b', 'a "b", c', 'ü']),
)
def test_a_list_has_a_line_for_each_row_that_any_reader_of_csv_takes(lengths, first_row, shard):
    records = [2 * number for number in range(len(lengths))]
    data = written(lengths, records, first_row, shard)
    rows = list(csv.reader(io.StringIO(gzip.decompress(data).decode())))
    ends = np.cumsum([0, *lengths]).tolist()
    assert rows == [
        [str(start), str(end), str(first_row + record), shard, str(record)]
        for start, end, record in zip(ends[:-1], ends[1:], records, strict=True)
    ]
    assert document_lengths(data).tolist() == lengths


def test_the_same_rows_have_the_same_bytes():
    one = written([3, 4], [0, 1], 5, 'd')
    assert one == written([3, 4], [0, 1], 5, 'd')
    assert one[4:8] == bytes(4)  # no time


@pytest.mark.parametrize(('size', 'dtype'), [(65_536, 'uint16'), (65_537, 'uint32'), (1, 'uint16')])
def test_ids_have_two_bytes_as_long_as_they_fit(size, dtype):
    assert flat_dtype(size) == dtype


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('0,3,0,d,0\n3,4', 'ends within a line'),
        ('0,3,0,d,0\n4,5,1,d,1\n', 'line 2 does not begin where'),
        ('0,3,0,d,0\n3,2,1,d,1\n', 'line 2 does not begin where'),
        ('0,3,0,d\n', 'line 1 is not start,end,row,shard,record'),
        ('0,-3,0,d,0\n', 'line 1 is not start,end,row,shard,record'),
        ('1,3,0,d,0\n', 'line 1 does not begin where'),
    ],
)
def test_what_is_not_a_list_is_told_in_a_clause(text, problem):
    with pytest.raises(ValueError, match=problem):
        document_lengths(gzip.compress(text.encode()))


def test_a_cut_or_damaged_file_is_not_whole():
    data = written([3, 4], [0, 1], 0, 'd')
    for damaged in (data[:-1], data[:12], b'PAR1', data[:14] + b'\xff\xff\xff' + data[17:]):
        with pytest.raises(ValueError, match='not whole as a gzip file'):
            document_lengths(damaged)
