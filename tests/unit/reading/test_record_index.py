"""The index of a shard: what is written of any rows is read again, also beyond 4 GiB."""

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.reading.record_index import (
    FOOTER_BYTES,
    Addresses,
    IndexWriter,
    entry_type,
    parse_index,
)
from tokcore.reading.shards import ShardFile

NUMBERS = st.integers(0, (1 << 32) - 1)
ROWS = st.lists(
    st.tuples(st.integers(16, (1 << 31) - 1), st.integers(0, (1 << 64) - 1), NUMBERS, NUMBERS, NUMBERS),
    max_size=20,
)  # fmt: skip


def written(rows, cut, has_offsets, has_keys):
    """The bytes of the index of rows, which come in two parts."""
    lengths = np.array([row[0] for row in rows], np.int64)
    keys = np.array([row[1] for row in rows], np.uint64)
    sizes = np.array([row[2:] for row in rows], np.uint32).reshape(-1, 3)
    writer = IndexWriter(2, has_offsets)
    parts = [
        writer.entries(
            Addresses(lengths[own], keys[own] if has_keys else None, sizes[own, : 2 + has_keys])
        )
        for own in (slice(0, cut), slice(cut, None))
    ]
    shard = ShardFile('x', len(rows), int(lengths.sum()), '0123abcd')
    return b''.join(parts) + writer.footer(shard)


def parsed(data):
    return parse_index(np.frombuffer(data, np.uint8))


@given(ROWS, st.integers(0, 20), st.booleans(), st.booleans())
def test_any_rows_are_those_that_were_written(rows, cut, has_offsets, has_keys):
    index = parsed(written(rows, cut, has_offsets, has_keys))
    assert len(index) == len(rows) and index.has_keys == has_keys
    assert index.shard == (len(rows), sum(row[0] for row in rows), 0x0123ABCD)
    assert index.lengths.tolist() == [list(row[2:4]) for row in rows]
    if has_keys:
        assert index.keys.tolist() == [row[1] for row in rows]
        assert index.text_bytes.tolist() == [row[4] for row in rows]
    assert index.has_offsets == has_offsets
    if has_offsets:
        ends = np.cumsum([row[0] for row in rows], dtype=np.int64).tolist()
        bounds = list(zip([0, *ends], ends))
        assert [index.bounds_of(number) for number in range(len(rows))] == bounds
        together = index.bounds(np.arange(len(rows))[::-1])
        assert list(zip(*(each.tolist() for each in together))) == bounds[::-1]


def test_a_row_of_a_pair_takes_24_bytes():
    assert entry_type(2, True, True).itemsize == 24


@pytest.mark.parametrize('size', [0, 8, FOOTER_BYTES - 1, FOOTER_BYTES, -1], ids=str)
def test_what_is_not_whole_is_no_index(size):
    data = written([(20, 1, 2, 3, 4), (30, 5, 6, 7, 8)], 1, True, True)
    assert parsed(data[size:]) is None if size > 0 else parsed(data[:size]) is None


@given(st.binary(max_size=FOOTER_BYTES), st.integers(0, FOOTER_BYTES - 5))
def test_any_footer_with_a_checksum_is_read_or_refused(noise, at):
    data = written([(20, 1, 2, 3, 4)], 1, True, True)
    footer = bytearray(data[-FOOTER_BYTES:-4])
    footer[at : at + len(noise)] = noise
    footer = bytes(footer[: FOOTER_BYTES - 4])
    data = data[:-FOOTER_BYTES] + footer + google_crc32c.value(footer).to_bytes(4, 'little')
    index = parsed(data)
    assert index is None or len(index.entries) * index.entries.dtype.itemsize <= len(data)
