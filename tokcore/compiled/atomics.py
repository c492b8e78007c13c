"""Memory that several threads read and write while kernels run.

What a thread wrote before `store_released` is seen by whoever finds the number stored by
`load_acquired` or `exchange_if`.
"""

from numba import types

from tokcore.compiled.compilation import intrinsic


def _place(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _width(array_type):
    return array_type.dtype.bitwidth // 8


def _load_acquired(numbers, index):
    return numbers[index]


@intrinsic(_load_acquired)
def load_acquired(typing_context, numbers, index):
    """The number at `numbers[index]` of an array of integers; none that is half written."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(place, 'acquire', _width(signature.args[0]))

    return numbers.dtype(numbers, types.uint64), generate


def _store_released(numbers, index, number):
    numbers[index] = number


@intrinsic(_store_released)
def store_released(typing_context, numbers, index, number):
    """Writes a number to `numbers[index]`, after all that this thread wrote before."""

    def generate(context, builder, signature, arguments):
        array, index, number = arguments
        place = _place(context, builder, signature.args[0], array, index)
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
    """Writes a number to `numbers[index]` if the expected one stands there; returns what stood."""

    def generate(context, builder, signature, arguments):
        array, index, expected, number = arguments
        place = _place(context, builder, signature.args[0], array, index)
        found = builder.cmpxchg(place, expected, number, 'acq_rel', 'acquire')
        return builder.extract_value(found, 0)

    dtype = numbers.dtype
    return dtype(numbers, types.uint64, dtype, dtype), generate
