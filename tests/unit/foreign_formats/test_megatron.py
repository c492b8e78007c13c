"""The `.idx` of Megatron, byte by byte, and bytes that are not one."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.foreign_formats.megatron import index_bytes, index_lengths


def plain_index(lengths, code, size):
    """The index as Megatron-LM's writer packs it, value by value."""
    data = b'MMIDIDX\0\0' + struct.pack('<QBQQ', 1, code, len(lengths), len(lengths) + 1)
    data += b''.join(struct.pack('<i', length) for length in lengths)
    data += b''.join(struct.pack('<q', size * sum(lengths[:k])) for k in range(len(lengths)))
    return data + b''.join(struct.pack('<q', number) for number in range(len(lengths) + 1))


@given(st.lists(st.integers(0, 1000), max_size=20), st.sampled_from([('uint16', 8), ('int32', 4)]))
def test_an_index_is_the_plain_one_and_gives_its_lengths_back(lengths, kind):
    dtype, code = kind
    data = index_bytes(np.array(lengths, np.int64), dtype)
    assert data == plain_index(lengths, code, np.dtype(dtype).itemsize)
    assert index_lengths(data, dtype).tolist() == lengths


WHOLE = index_bytes(np.array([3, 1, 2]), 'uint16')


@pytest.mark.parametrize(
    ('data', 'problem'),
    [
        (b'', 'ends within its head, after 0 bytes'),
        (WHOLE[:33], 'ends within its head, after 33 bytes'),
        (b'N' + WHOLE[1:], 'does not begin as an index of Megatron'),
        (WHOLE[:9] + b'\2' + WHOLE[10:], 'does not begin as an index of Megatron'),
        (index_bytes(np.array([3]), 'int32'), 'ids are int32, and the manifest states uint16'),
        (WHOLE[:17] + b'\x63' + WHOLE[18:], 'unknown dtype, 99'),
        (WHOLE[:-1], 'not those of 3 rows as 3 documents'),
        (WHOLE[:18] + b'\4' + WHOLE[19:], 'not those of 4 rows as 3 documents'),
        (WHOLE[:34] + b'\4' + WHOLE[35:], 'do not lie one after another'),
        (WHOLE[:37] + b'\xff' + WHOLE[38:], 'do not lie one after another'),
        (WHOLE[:-8] + b'\2' + WHOLE[-7:], 'do not lie one after another'),
    ],
    ids=str,
)
def test_a_damaged_index_is_refused(data, problem):
    with pytest.raises(ValueError, match=problem):
        index_lengths(data, 'uint16')
