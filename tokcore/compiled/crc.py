"""CRCs of 32 bits, their bits reversed and inverted before and after: zlib's, and CRC32C."""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.wide_loads import load_word

CRC32 = 0xEDB88320
"""zlib's polynomial, the highest bit standing for x^0."""

CRC32C = 0x82F63B78
"""Castagnoli's, of which `google_crc32c` has the checksums of whole buffers."""

_8 = np.uint64(8)
_BYTE = np.uint64(0xFF)


def crc_table(polynomial: int) -> np.ndarray:
    """Returns the tables of a CRC for 16 bytes at a time ("slicing by 16"): uint32[16, 256].

    Row k holds the checksum's change by a byte that k zero bytes follow. (Kounavis and Berry,
    "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation", 2008.)
    """
    table = np.zeros((16, 256), np.uint32)
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(polynomial), first >> 1)
    table[0] = first
    for k in range(1, 16):
        table[k] = (table[k - 1] >> 8) ^ first[table[k - 1] & 0xFF]
    return read_only(table)


@kernel_without_allocation
def word_change(word, table, zeros):
    """A checksum's change by eight bytes, lowest first, that so many zero bytes follow."""
    return (
        table[zeros + 7, word & _BYTE]
        ^ table[zeros + 6, word >> np.uint64(8) & _BYTE]
        ^ table[zeros + 5, word >> np.uint64(16) & _BYTE]
        ^ table[zeros + 4, word >> np.uint64(24) & _BYTE]
        ^ table[zeros + 3, word >> np.uint64(32) & _BYTE]
        ^ table[zeros + 2, word >> np.uint64(40) & _BYTE]
        ^ table[zeros + 1, word >> np.uint64(48) & _BYTE]
        ^ table[zeros, word >> np.uint64(56)]
    )


@kernel_without_allocation
def crc_bytes(data, start, end, table):
    """The CRC of data[start:end] by the tables of its polynomial, as a uint64 below 2^32."""
    crc = np.uint64(0xFFFFFFFF)
    place = np.uint64(start)
    end = np.uint64(end)
    while place + np.uint64(16) <= end:
        first = load_word(data, place) ^ crc
        crc = word_change(first, table, 8) ^ word_change(load_word(data, place + _8), table, 0)
        place += np.uint64(16)
    if place + _8 <= end:
        crc = word_change(load_word(data, place) ^ crc, table, 0)
        place += _8
    while place < end:
        crc = table[0, (crc ^ np.uint64(data[place])) & _BYTE] ^ (crc >> _8)
        place += np.uint64(1)
    return crc ^ np.uint64(0xFFFFFFFF)
