"""The list of documents of a flat stream, and bytes that are not one."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.foreign_formats.flat import NanoGpt, document_lengths, list_bytes
from pipelines.options.job import one_shard
from pipelines.shard_formats.shard_format import most_ids
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.errors import InputError
from tokcore.records.manifest import file_of_shard, shard_name


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
def test_a_damaged_list_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        document_lengths(gzip.compress(text.encode()))


def test_a_cut_or_damaged_file_is_not_whole():
    data = written([3, 4], [0, 1], 0, 'd')
    for damaged in (data[:-1], data[:12], b'PAR1', data[:14] + b'\xff\xff\xff' + data[17:]):
        with pytest.raises(ValueError, match='not whole as a gzip file'):
            document_lengths(damaged)


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
