"""CRC-32C of some bytes, by the processor's instruction for it where there is one.

The instruction takes eight bytes in the time in which tables take two. Short rows are many, and a
call of a library for each would take longer than their checksums.
"""

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types

from tokcore.kernels.bytes import crc_bytes
from tokcore.kernels.jit import intrinsic, kernel_without_allocation
from tokcore.kernels.simd import load_word

_CHOSEN = [vars(numba.config).get(name) for name in ('CPU_NAME', 'CPU_FEATURES')]

HAS_INSTRUCTION = not any(_CHOSEN) and llvmlite.binding.get_host_cpu_features().get('sse4.2', False)
"""Whether kernels are compiled for a processor with SSE 4.2, as any since 2011."""

_8 = np.uint64(8)
_ALL = np.uint64(0xFFFFFFFF)
_BITS = np.uint64(64)


def _crc32c_word(crc, word):
    crc = int(crc) ^ int(word)
    for _ in range(64):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
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
    if end - place < _8:
        return crc_bytes(data, place, end, table)
    crc = _ALL
    while place + _8 <= end:
        crc = crc32c_word(crc, load_word(data, place))
        place += _8
    if place < end:
        # Zeros before the first bytes do not change a state of 0, so that a few are a word too; what
        # they leave of the state is moved past them.
        missing = _8 * (_8 - (end - place))
        last = load_word(data, end - _8) ^ crc << missing
        crc = crc32c_word(np.uint64(0), last >> missing << missing) ^ crc >> _BITS - missing
    return crc ^ _ALL


crc32c_bytes = _crc32c_by_instruction if HAS_INSTRUCTION else crc_bytes
"""`crc32c_bytes(data, start, end, table)` is `crc_bytes` with the table of CRC-32C."""
