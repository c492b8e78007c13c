"""CRCs and varints, against zlib, google-crc32c and plain Python."""

import zlib

import google_crc32c
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.kernels.bytes import (
    CRC32,
    CRC32C,
    HAS_INSTRUCTION,
    crc32c_bytes,
    crc_bytes,
    crc_table,
    put_varint,
    read_varint,
    read_varints,
    varint_size,
    write_varints,
)


@pytest.mark.parametrize(
    'kernel, polynomial, checksum',
    [
        (crc_bytes, CRC32, zlib.crc32),
        (crc_bytes, CRC32C, google_crc32c.value),
        (crc32c_bytes, CRC32C, google_crc32c.value),
    ],
)
@given(st.binary(max_size=300), st.integers(0, 20), st.integers(0, 20))
@example(b'', 0, 0)
@example(b'123456789', 0, 0)
@example(b'12345678', 3, 0)
@example(bytes(15), 0, 0)
def test_checksums_equal_those_of_the_library(kernel, polynomial, checksum, data, before, after):
    array = np.frombuffer(b'#' * before + data + b'#' * after, np.uint8)
    found = kernel(array, before, before + len(data), crc_table(polynomial))
    assert found == checksum(data)


def test_the_instruction_is_used_where_there_is_one():
    try:
        flags = open('/proc/cpuinfo').read().split()
    except FileNotFoundError:
        pytest.skip('only Linux lists the flags of its processor so')
    assert HAS_INSTRUCTION == ('sse4_2' in flags) == (crc32c_bytes is not crc_bytes)


def plain_varint(number: int) -> bytes:
    """The lowest seven bits first, each byte but the last with its high bit set."""
    last = (number.bit_length() + 6) // 7 or 1
    return bytes(number >> 7 * i & 127 | 128 * (i < last - 1) for i in range(last))


@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))))
@example([0, 127, 128, 2**14 - 1, 2**14, 2**63 - 1])
def test_varints_are_written_in_the_plain_form_and_read_back(numbers):
    expected = b''.join(map(plain_varint, numbers))
    out = np.empty(9 * len(numbers), np.uint8)
    used = write_varints(np.array(numbers, np.int64), out)
    data = out[:used]
    assert data.tobytes() == expected
    back = np.empty(len(numbers), np.int64)
    assert read_varints(data, 0, back) == used
    assert back.tolist() == numbers
    place = 0
    for number in numbers:
        assert varint_size(number) == len(plain_varint(number))
        assert put_varint(out, place, number) == place + len(plain_varint(number))
        assert read_varint(data, place) == (number, place + len(plain_varint(number)))
        place += len(plain_varint(number))


def test_varints_that_are_cut_off_or_too_large_are_refused():
    numbers = np.empty(2, np.int64)
    for data in (b'\x01', b'\x01\x80', b'\x01' + b'\x80' * 9 + b'\x01'):
        assert read_varints(np.frombuffer(data, np.uint8), 0, numbers) == -1
