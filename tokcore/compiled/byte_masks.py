"""64 bytes' classes as bits, bit scans, and two ids at once."""

import numpy as np
from llvmlite import ir
from numba import types

from tokcore.compiled.compilation import intrinsic, kernel_without_allocation

CHUNK = 64
"""Bytes that are classed at once."""

_AT_ONCE = 8

_WORD = ir.IntType(64)
_CHUNK_TYPE = ir.VectorType(ir.IntType(8), CHUNK)


def _address(context, builder, array_type, array, place, pointee):
    """A pointer to `array[place]`, to read or write another type there."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), pointee.as_pointer())


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


def _popcount(word):
    return np.uint64(int(word).bit_count())


@intrinsic(_popcount)
def popcount(typing_context, word):
    """The number of bits that are set in a uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _splat(value):
    return ir.Constant(_CHUNK_TYPE, [value] * CHUNK)


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


@kernel_without_allocation
def put_places(bits, place, places, count):
    """Puts `place` + the number of each bit that is set into places[count:]; returns the count."""
    end = count + popcount(bits)
    while True:
        # Eight whether there are or not: how many eights there are is easily guessed right.
        for k in range(np.uint64(_AT_ONCE)):
            places[count + k] = place + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
        count += np.uint64(_AT_ONCE)
        if count >= end:
            return end
