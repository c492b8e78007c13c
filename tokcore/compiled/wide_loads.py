"""Eight bytes at once, or 32, and fetching memory ahead.

Kernels hash text eight bytes at a time with these, and compare and copy it 32 at a time. The lowest
byte comes first, as on every machine that numba compiles for. Seven bytes or 31 may be read or
written behind the last place.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError

from tokcore.compiled.compilation import intrinsic

CHUNK = 32
"""Bytes that are compared and copied at once."""


def _address(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.IntType(8).as_pointer())


def _check_bytes(array):
    if not isinstance(array, types.Array) or array.dtype != types.uint8:
        raise TypingError('several bytes at once are for arrays of uint8')


def _load_word(text, place):
    return text[place : place + np.uint64(8)].view('<u8')[0]


@intrinsic(_load_word)
def load_word(typing_context, text, place):
    """The uint64 at `text[place:place + 8]` of a uint8 array, its first byte the lowest."""
    _check_bytes(text)

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
        pointer = builder.bitcast(address, ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(text, types.uint64), generate


def _store_word(text, place, word):
    text[place : place + np.uint64(8)].view('<u8')[0] = word


@intrinsic(_store_word)
def store_word(typing_context, text, place, word):
    """Writes a uint64 to `text[place:place + 8]` of a uint8 array, its lowest byte first."""
    _check_bytes(text)

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2])
        pointer = builder.bitcast(address, ir.IntType(64).as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(text, types.uint64, types.uint64), generate


def _prefetch(array, index):
    """Nothing: it only makes memory faster."""


@intrinsic(_prefetch)
def prefetch(typing_context, array, index):
    """Asks the processor to bring an element near, without waiting for it.

    Elements of an array of several axes are counted as they lie in memory. There need be none at
    the index: nothing happens then.
    """

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
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
    size = np.uint64(CHUNK)
    differs = text[place : place + size] != other[other_place : other_place + size]
    return np.uint64(np.packbits(differs, bitorder='little').view('<u4')[0])


@intrinsic(_mismatch_mask)
def mismatch_mask(typing_context, text, place, other, other_place):
    """Bit i of the uint64 says whether byte i of 32 of a uint8 array is another in the other."""
    _check_bytes(text)
    _check_bytes(other)

    def generate(context, builder, signature, arguments):
        one = _load_chunk(context, builder, signature.args[0], *arguments[:2])
        two = _load_chunk(context, builder, signature.args[2], *arguments[2:])
        bits = builder.bitcast(builder.icmp_unsigned('!=', one, two), ir.IntType(CHUNK))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(text, types.uint64, other, types.uint64), generate


def _copy_chunk(text, place, other, other_place):
    size = np.uint64(CHUNK)
    text[place : place + size] = other[other_place : other_place + size].copy()


@intrinsic(_copy_chunk)
def copy_chunk(typing_context, text, place, other, other_place):
    """Writes `other[other_place:other_place + 32]` to `text[place:place + 32]`, uint8 arrays."""
    _check_bytes(text)
    _check_bytes(other)

    def generate(context, builder, signature, arguments):
        chunk = _load_chunk(context, builder, signature.args[2], *arguments[2:])
        address = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store(chunk, builder.bitcast(address, chunk.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(text, types.uint64, other, types.uint64), generate


def _load_chunk(context, builder, array_type, array, place):
    address = _address(context, builder, array_type, array, place)
    chunk = ir.VectorType(ir.IntType(8), CHUNK)
    return builder.load(builder.bitcast(address, chunk.as_pointer()), align=1)
