"""CRC-32C by the processor's instruction and by tables, against google-crc32c."""

import google_crc32c
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.kernels.bytes import CRC32C, HAS_INSTRUCTION, crc32c_bytes, crc_bytes, crc_table


@given(st.binary(max_size=300), st.integers(0, 20), st.integers(0, 20))
@example(b'', 0, 0)
@example(b'123456789', 0, 0)
@example(b'12345678', 3, 0)
@example(bytes(15), 0, 0)
def test_checksums_equal_those_of_the_library(data, before, after):
    array = np.frombuffer(b'#' * before + data + b'#' * after, np.uint8)
    found = crc32c_bytes(array, before, before + len(data), crc_table(CRC32C))
    assert found == google_crc32c.value(data)


def test_the_instruction_is_used_where_there_is_one():
    try:
        flags = open('/proc/cpuinfo').read().split()
    except FileNotFoundError:
        pytest.skip('only Linux tells of its processors so')
    assert HAS_INSTRUCTION == ('sse4_2' in flags) == (crc32c_bytes is not crc_bytes)
