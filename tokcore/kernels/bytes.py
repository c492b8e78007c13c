"""Kernels over bytes: rows of any length in one array, hashes, CRCs, varints.

Hashes and comparisons read words and chunks, so texts are followed by a margin of readable bytes.
CRCs have 32 bits, reflected, and inverted at both ends: zlib's and CRC32C; the processor's instruction
for the latter takes eight bytes in the time in which tables take two. Varints are LEB128:
numbers >= 0 in 7 bits a byte, low bits first, the high bit set on all bytes but the last.
"""

import itertools
from collections.abc import Iterator, Sequence

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types

from tokcore.kernels.jit import intrinsic, kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import WIDE_BYTES, copy_chunk, load_word, mismatch_mask, store_word

GOLDEN_RATIO = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: multiplied by it, consecutive keys spread (Knuth)."""

MIXER = 0xD6E8FEB86659FD93
"""An odd multiplier that mixes all bits of a word into the highest."""

_SPREAD, _MIXER = np.uint64(GOLDEN_RATIO), np.uint64(MIXER)
_HALF = np.uint64(32)
_ZERO, _ONE, _THREE = np.uint64(0), np.uint64(1), np.uint64(3)
_WORD, _CHUNK = np.uint64(8), np.uint64(WIDE_BYTES)
_BYTE = np.uint64(0xFF)

CRC32 = 0xEDB88320
"""zlib's polynomial; the highest bit is x^0."""

CRC32C = 0x82F63B78
"""Castagnoli's polynomial; `google_crc32c` computes the same of whole buffers."""

READABLE = 64 + 8
"""Bytes that must be readable from any byte of a row on."""

_CHOSEN = [vars(numba.config).get(name) for name in ('CPU_NAME', 'CPU_FEATURES')]

HAS_INSTRUCTION = not any(_CHOSEN) and llvmlite.binding.get_host_cpu_features().get('sse4.2', False)
"""Whether kernels are compiled for a processor with SSE 4.2, as any since 2011."""


@kernel_without_allocation
def hash_bytes(text, start, end):
    """A 64-bit hash of text[start:end], good in its high bits; reads up to eight bytes after it."""
    value = (end - start) * _SPREAD
    while start + _WORD < end:
        value = (value ^ load_word(text, start)) * _SPREAD
        value ^= value >> _HALF
        start += _WORD
    if start < end:
        value = (value ^ _low_bytes(load_word(text, start), end - start)) * _SPREAD
    return (value ^ (value >> _HALF)) * _MIXER


@kernel_without_allocation
def same_bytes(text, start, data, begin, length):
    """Whether text[start:start + length] and data[begin:begin + length] are equal."""
    while length > _CHUNK:
        if mismatch_mask(text, start, data, begin) != _ZERO:
            return False
        start += _CHUNK
        begin += _CHUNK
        length -= _CHUNK
    # Most tokens are compared here, without a branch on their length.
    return mismatch_mask(text, start, data, begin) & ((_ONE << length) - _ONE) == _ZERO


@kernel_without_allocation
def _low_bytes(word, number):
    """The lowest `number` bytes of a word, 1 to 8; the others are 0."""
    unwanted = (_WORD - number) << _THREE
    return (word << unwanted) >> unwanted


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
    """A checksum's change by eight bytes, lowest first, that `zeros` zero bytes follow."""
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
        crc = word_change(first, table, 8) ^ word_change(load_word(data, place + _WORD), table, 0)
        place += np.uint64(16)
    if place + _WORD <= end:
        crc = word_change(load_word(data, place) ^ crc, table, 0)
        place += _WORD
    while place < end:
        crc = table[0, (crc ^ np.uint64(data[place])) & _BYTE] ^ (crc >> _WORD)
        place += np.uint64(1)
    return crc ^ np.uint64(0xFFFFFFFF)


def _crc32c_word(crc, word):
    crc = int(crc) ^ int(word)
    for _ in range(64):
        crc = crc >> 1 ^ (CRC32C if crc & 1 else 0)
    return np.uint64(crc)


@intrinsic(_crc32c_word)
def crc32c_word(typing_context, crc, word):
    """The state of a CRC-32C, below 2^32, after eight more bytes, of which the first is the lowest."""

    def generate(context, builder, signature, arguments):
        kind = ir.IntType(64)
        function = builder.module.declare_intrinsic(
            'llvm.x86.sse42.crc32.64.64', (), ir.FunctionType(kind, [kind, kind])
        )
        return builder.call(function, arguments)

    return types.uint64(types.uint64, types.uint64), generate


@kernel_without_allocation
def _crc32c_by_instruction(data, start, end, table):
    place, end = np.uint64(start), np.uint64(end)
    if end - place < _WORD:
        return crc_bytes(data, place, end, table)
    crc = np.uint64(0xFFFFFFFF)
    while place + _WORD <= end:
        crc = crc32c_word(crc, load_word(data, place))
        place += _WORD
    if place < end:
        # Zeros before the first bytes do not change a state of 0, so that a few are a word too; what
        # they leave of the state is moved past them.
        missing = _WORD * (_WORD - (end - place))
        last = load_word(data, end - _WORD) ^ crc << missing
        crc = crc32c_word(np.uint64(0), last >> missing << missing) ^ crc >> np.uint64(64) - missing
    return crc ^ np.uint64(0xFFFFFFFF)


crc32c_bytes = _crc32c_by_instruction if HAS_INSTRUCTION else crc_bytes
"""`crc32c_bytes(data, start, end, table)` is `crc_bytes` with the table of CRC-32C."""


@kernel_without_allocation
def copy_bytes(target, to, source, start, length):
    """Copies source[start:start + length] to target[to:], places in uint64.

    It copies chunks or words; the last may overlap the one before. What is copied is mostly short,
    and a loop over its bytes would be slower.
    """
    if length < _WORD:
        for byte in range(length):
            target[to + byte] = source[start + byte]
    elif length < _CHUNK:
        last = length - _WORD
        copied = np.uint64(0)
        while copied < last:
            store_word(target, to + copied, load_word(source, start + copied))
            copied += _WORD
        store_word(target, to + last, load_word(source, start + last))
    else:
        last = length - _CHUNK
        copied = np.uint64(0)
        while copied < last:
            copy_chunk(target, to + copied, source, start + copied)
            copied += _CHUNK
        copy_chunk(target, to + last, source, start + last)


def row_offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Returns where adjacent rows of these lengths begin, and where the last ends: int64[rows + 1].

    >>> row_offsets([3, 0, 2])
    array([0, 3, 3, 5])
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def runs_of(values: np.ndarray) -> Iterator[slice]:
    """Yields where equal values follow each other.

    >>> list(runs_of(np.array([3, 3, 5])))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    bounds = np.flatnonzero(np.diff(values)) + 1
    if len(values):
        yield from itertools.starmap(slice, itertools.pairwise([0, *bounds.tolist(), len(values)]))


@kernel
def prepend_rows(text, starts, ends, prefix):
    """Returns the rows, each after the prefix, one after another, with their starts and ends."""
    rows = len(starts)
    size = rows * len(prefix)
    for row in range(rows):
        size += ends[row] - starts[row]
    joined = np.empty(size, np.uint8)
    joined_starts = np.empty(rows, np.int64)
    joined_ends = np.empty(rows, np.int64)
    position = _ZERO
    for row in range(rows):
        joined_starts[row] = np.int64(position)
        copy_bytes(joined, position, prefix, _ZERO, np.uint64(len(prefix)))
        position += np.uint64(len(prefix))
        length = np.uint64(ends[row] - starts[row])
        copy_bytes(joined, position, text, np.uint64(starts[row]), length)
        position += length
        joined_ends[row] = np.int64(position)
    return joined, joined_starts, joined_ends


@kernel
def pick_ranges(data, starts, ends):
    """Returns the data and offsets of the tokens data[starts[i]:ends[i]], one after another."""
    offsets = np.empty(len(starts) + 1, np.int64)
    offsets[0] = 0
    for token in range(len(starts)):
        offsets[token + 1] = offsets[token] + ends[token] - starts[token]
    picked = np.empty(offsets[len(starts)], np.uint8)
    for token in range(len(starts)):
        start, length = np.uint64(starts[token]), np.uint64(ends[token] - starts[token])
        copy_bytes(picked, np.uint64(offsets[token]), data, start, length)
    return picked, offsets


@kernel
def grown(array, used, size):
    """The array, or a larger copy if it has no room for `size` more after the first `used`."""
    if used + size <= len(array):
        return array
    # By half and not twofold, since blocks of rare characters determine the memory of a job.
    larger = np.empty(max(len(array) + len(array) // 2, used + size), array.dtype)
    # Not by slices: numba compiles an error of two shapes for these, which takes it seconds.
    for index in range(used):
        larger[index] = array[index]
    return larger


@kernel_without_allocation
def varint_size(number):
    """The size of a number in bytes."""
    size = 1
    while number >= 128:
        number >>= 7
        size += 1
    return size


@kernel_without_allocation
def put_varint(out, at, number):
    """Writes a number to out[at:]; returns where it ends."""
    while number >= 0x80:
        out[np.uint64(at)] = np.uint8((number & 0x7F) | 0x80)
        number >>= 7
        at += 1
    out[np.uint64(at)] = np.uint8(number)
    return at + 1


@kernel_without_allocation
def read_varint(data, place):
    """Reads a number; returns it and where it ends."""
    number, shift = np.int64(0), np.int64(0)
    while True:
        byte = np.int64(data[np.uint64(place)])
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7


@kernel_without_allocation
def write_varints(numbers, output):
    """Writes numbers one after another; returns the bytes written.

    `output` has room for 9 bytes a number.
    """
    position = 0
    for index in range(len(numbers)):
        position = put_varint(output, position, numbers[index])
    return position


@kernel_without_allocation
def read_varints(data, position, numbers):
    """Reads as many numbers as the array has; returns where they end, or -1 if damaged."""
    for index in range(len(numbers)):
        number = np.int64(0)
        shift = 0
        while True:
            if position >= len(data) or shift > 56:
                return -1
            byte = np.int64(data[position])
            position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        numbers[index] = number
    return position


def with_margin(text: np.ndarray) -> np.ndarray:
    """Returns a copy of bytes (uint8) with `READABLE` more after them."""
    copy = np.empty(len(text) + READABLE, np.uint8)
    copy[: len(text)] = text
    copy[len(text) :] = 0
    return read_only(copy)


@kernel
def join_lines(text, starts, ends):
    """Returns the rows one after another, each followed by a '\\n', with their starts and ends.

    As uint8[bytes], int64[rows], int64[rows].
    """
    size = len(starts)
    for row in range(len(starts)):
        size += ends[row] - starts[row]
    joined = np.empty(size, np.uint8)
    joined_starts = np.empty(len(starts), np.int64)
    joined_ends = np.empty(len(starts), np.int64)
    position = np.uint64(0)
    for row in range(len(starts)):
        joined_starts[row] = np.int64(position)
        length = np.uint64(ends[row] - starts[row])
        copy_bytes(joined, position, text, np.uint64(starts[row]), length)
        position += length
        joined_ends[row] = np.int64(position)
        joined[position] = 0x0A
        position += np.uint64(1)
    return joined, joined_starts, joined_ends
