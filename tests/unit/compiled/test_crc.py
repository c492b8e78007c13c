"""CRCs against the libraries that have them."""

import zlib

import google_crc32c
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.compiled.crc import CRC32, CRC32C, crc_bytes, crc_table


@pytest.mark.parametrize(
    'polynomial, checksum', [(CRC32, zlib.crc32), (CRC32C, google_crc32c.value)]
)
@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 20), st.integers(0, 20))
@example(b'', 0, 0)
@example(b'123456789', 0, 0)
def test_equals_the_librarys(polynomial, checksum, data, before, after):
    array = np.frombuffer(b'#' * before + data + b'#' * after, np.uint8)
    found = crc_bytes(array, before, before + len(data), crc_table(polynomial))
    assert found == checksum(data)
