"""Bytes' classes as bits, bit scans, and ids in pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.compiled.byte_masks import byte_range_mask, popcount, store_pair, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation, read_only


@kernel_without_allocation
def store(numbers, place, word):
    store_pair(numbers, place, word)


@kernel_without_allocation
def letters_and_high_bytes(data, place):
    return byte_range_mask(data, place, 0x61, 0x7A), byte_range_mask(data, place, 0x80, 0xFF)


@kernel_without_allocation
def scan(word):
    return trailing_zeros(word), popcount(word)


@settings(deadline=None)
@given(st.binary(min_size=64, max_size=100), st.data())
def test_bytes_are_classed_at_any_place(data, draw):
    place = draw.draw(st.integers(0, len(data) - 64))
    array = np.frombuffer(data, np.uint8)
    letters, high = letters_and_high_bytes(read_only(array), np.uint64(place))
    chunk = data[place : place + 64]
    assert letters == sum(1 << i for i, byte in enumerate(chunk) if b'a'[0] <= byte <= b'z'[0])
    assert high == sum(1 << i for i, byte in enumerate(chunk) if byte >= 0x80)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_a_word_is_two_numbers(word, place):
    numbers = np.arange(5, dtype=np.int32)
    store(numbers, np.uint64(place), np.uint64(word))
    expected = bytearray(np.arange(5, dtype='<i4').tobytes())
    expected[4 * place : 4 * place + 8] = word.to_bytes(8, 'little')
    assert numbers.tobytes() == bytes(expected)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_bits_are_found_and_counted(word):
    digits = f'{word:064b}'
    assert scan(np.uint64(word)) == (64 - len(digits.rstrip('0')), digits.count('1'))
