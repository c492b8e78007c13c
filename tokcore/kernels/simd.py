"""Wide loads and stores, bit masks of 64 bytes, prefetching, and atomic operations.

The lowest byte comes first, as on every machine that numba compiles for. Up to 7 or 31 bytes after
the last place may be read or written. A thread that reads a number by `load_acquired` or
`exchange_if` sees all that another wrote before it stored this number by `store_released`.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError

from tokcore.kernels.jit import intrinsic, kernel_without_allocation

CHUNK = 64
"""Bytes that are classified at once."""

_AT_ONCE = 8

_WORD = ir.IntType(64)
_CHUNK_TYPE = ir.VectorType(ir.IntType(8), CHUNK)

WIDE_BYTES = 32
"""Bytes that are compared and copied at once."""

_WIDE_TYPE = ir.VectorType(ir.IntType(8), WIDE_BYTES)


@intrinsic(lambda numbers, index: numbers[index])
def load_acquired(typing_context, numbers, index):
    """The integer at `numbers[index]`, never half written."""

    def generate(context, builder, signature, arguments):
        place = _address(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(place, 'acquire', _width(signature.args[0]))

    return numbers.dtype(numbers, types.uint64), generate


def _store_released(numbers, index, number):
    numbers[index] = number


@intrinsic(_store_released)
def store_released(typing_context, numbers, index, number):
    """Writes a number to `numbers[index]`, after all that this thread wrote before."""

    def generate(context, builder, signature, arguments):
        array, index, number = arguments
        place = _address(context, builder, signature.args[0], array, index)
        builder.store_atomic(number, place, 'release', _width(signature.args[0]))
        return context.get_dummy_value()

    return types.none(numbers, types.uint64, numbers.dtype), generate


def _exchange_if(numbers, index, expected, number):
    # The interpreter lock does not cover all of it: for one thread.
    found = numbers[index]
    if found == expected:
        numbers[index] = number
    return found


@intrinsic(_exchange_if)
def exchange_if(typing_context, numbers, index, expected, number):
    """Writes a number to `numbers[index]` if it holds the expected one; returns what it held."""

    def generate(context, builder, signature, arguments):
        array, index, expected, number = arguments
        place = _address(context, builder, signature.args[0], array, index)
        exchanged = builder.cmpxchg(place, expected, number, 'acq_rel', 'acquire')
        return builder.extract_value(exchanged, 0)

    dtype = numbers.dtype
    return dtype(numbers, types.uint64, dtype, dtype), generate


def _address(context, builder, array_type, array, place, pointee=None):
    """A pointer to `array[place]`; `pointee` is the type that is read or written there, if another."""
    data = context.make_array(array_type)(context, builder, array).data
    address = builder.gep(data, [place])
    return address if pointee is None else builder.bitcast(address, pointee.as_pointer())


def _width(array_type):
    return array_type.dtype.bitwidth // 8


def _store_pair(ids, place, pair):
    ids[place : place + np.uint64(2)].view(np.uint64)[0] = pair


@intrinsic(_store_pair)
def store_pair(typing_context, ids, place, pair):
    """Writes a uint64 over `ids[place:place + 2]` (int32), its low half first."""

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2], _WORD)
        builder.store(arguments[2], address, align=4)
        return context.get_dummy_value()

    return types.none(ids, types.uint64, types.uint64), generate


def _trailing_zeros(word):
    word = int(word)
    return np.uint64((word & -word).bit_length() - 1 if word else 64)


@intrinsic(_trailing_zeros)
def trailing_zeros(typing_context, word):
    """The number of the lowest bit that is set in a uint64; 64 where none is."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


@intrinsic(lambda word: np.uint64(int(word).bit_count()))
def popcount(typing_context, word):
    """The number of bits that are set in a uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _byte_range_mask(text, place, lowest, highest):
    chunk = text[place : place + np.uint64(CHUNK)]
    bits = np.packbits((lowest <= chunk) & (chunk <= highest), bitorder='little')
    return bits.view('<u8')[0]


@intrinsic(_byte_range_mask)
def byte_range_mask(typing_context, text, place, lowest, highest):
    """Bit i of the uint64 says whether `lowest <= text[place + i] <= highest`, for i below 64.

    `text` uint8[...] C-contiguous; the limits are literal numbers.
    """

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, text, *arguments[:2], _CHUNK_TYPE)
        chunk = builder.load(address, align=1)
        above = builder.sub(chunk, _splat(signature.args[2].literal_value))
        width = signature.args[3].literal_value - signature.args[2].literal_value
        return builder.bitcast(builder.icmp_unsigned('<=', above, _splat(width)), _WORD)

    if isinstance(lowest, types.IntegerLiteral) and isinstance(highest, types.IntegerLiteral):
        return types.uint64(text, types.uint64, lowest, highest), generate
    return None


def _at_least_mask(text, place, lowest):
    chunk = text[place : place + np.uint64(CHUNK)]
    return np.packbits(chunk >= lowest, bitorder='little').view('<u8')[0]


@intrinsic(_at_least_mask)
def at_least_mask(typing_context, text, place, lowest):
    """Bit i of the uint64 says whether `text[place + i] >= lowest`, for i below 64.

    `text` uint8[...] C-contiguous; `lowest` up to 255, known when it runs.
    """

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, text, *arguments[:2], _CHUNK_TYPE)
        byte = builder.trunc(arguments[2], _CHUNK_TYPE.element)
        unset = ir.Constant(_CHUNK_TYPE, ir.Undefined)
        first = builder.insert_element(unset, byte, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), CHUNK), [0] * CHUNK)
        every = builder.shuffle_vector(first, unset, zeros)
        chunk = builder.load(address, align=1)
        return builder.bitcast(builder.icmp_unsigned('>=', chunk, every), _WORD)

    return types.uint64(text, types.uint64, types.uint64), generate


@kernel_without_allocation
def put_places(bits, place, places, count):
    """Appends `place` + i for each set bit i to places[:count]; returns the new count."""
    end = count + popcount(bits)
    while True:
        # Eight at a time, even if there are fewer: that branch is easily predicted.
        for k in range(np.uint64(_AT_ONCE)):
            places[count + k] = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
        count += np.uint64(_AT_ONCE)
        if count >= end:
            return end


def _splat(value):
    return ir.Constant(_CHUNK_TYPE, [value] * CHUNK)


@intrinsic(lambda text, place: text[place : place + np.uint64(8)].view('<u8')[0])
def load_word(typing_context, text, place):
    """The uint64 at `text[place:place + 8]` of a uint8 array, its first byte the lowest."""
    _check_bytes(text)

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments, _WORD)
        return builder.load(address, align=1)

    return types.uint64(text, types.uint64), generate


def _store_word(text, place, word):
    text[place : place + np.uint64(8)].view('<u8')[0] = word


@intrinsic(_store_word)
def store_word(typing_context, text, place, word):
    """Writes a uint64 to `text[place:place + 8]` of a uint8 array, its lowest byte first."""
    _check_bytes(text)

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2], _WORD)
        builder.store(arguments[2], address, align=1)
        return context.get_dummy_value()

    return types.void(text, types.uint64, types.uint64), generate


@intrinsic(lambda array, index: None)
def prefetch(typing_context, array, index):
    """Asks the processor to load an element into its cache, without waiting for it.

    The index counts elements in memory order. It may be out of bounds; then nothing happens.
    """

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments, ir.IntType(8))
        number = ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            'llvm.prefetch',
            [address.type],
            ir.FunctionType(ir.VoidType(), [address.type, number, number, number]),
        )
        builder.call(prefetch, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def _mismatch_mask(text, place, other, other_place):
    size = np.uint64(WIDE_BYTES)
    differs = text[place : place + size] != other[other_place : other_place + size]
    return np.uint64(np.packbits(differs, bitorder='little').view('<u4')[0])


@intrinsic(_mismatch_mask)
def mismatch_mask(typing_context, text, place, other, other_place):
    """Bit i of the uint64 says whether byte i of 32 differs between two uint8 arrays."""
    _check_bytes(text)
    _check_bytes(other)

    def generate(context, builder, signature, arguments):
        one, two = (
            builder.load(_address(context, builder, kind, *place, _WIDE_TYPE), align=1)
            for kind, place in (
                (signature.args[0], arguments[:2]),
                (signature.args[2], arguments[2:]),
            )
        )
        bits = builder.bitcast(builder.icmp_unsigned('!=', one, two), ir.IntType(WIDE_BYTES))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(text, types.uint64, other, types.uint64), generate


def _copy_chunk(text, place, other, other_place):
    size = np.uint64(WIDE_BYTES)
    text[place : place + size] = other[other_place : other_place + size].copy()


@intrinsic(_copy_chunk)
def copy_chunk(typing_context, text, place, other, other_place):
    """Writes `other[other_place:other_place + 32]` to `text[place:place + 32]`, uint8 arrays."""
    _check_bytes(text)
    _check_bytes(other)

    def generate(context, builder, signature, arguments):
        source = _address(context, builder, signature.args[2], *arguments[2:], _WIDE_TYPE)
        chunk = builder.load(source, align=1)
        address = _address(context, builder, signature.args[0], *arguments[:2], _WIDE_TYPE)
        builder.store(chunk, address, align=1)
        return context.get_dummy_value()

    return types.void(text, types.uint64, other, types.uint64), generate


def _check_bytes(array):
    if not isinstance(array, types.Array) or array.dtype != types.uint8:
        raise TypingError('several bytes at once are for arrays of uint8')
