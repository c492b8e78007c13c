"""LEB128: numbers >= 0 in 7 bits a byte, low first, the high bit on all bytes but the last."""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation


@kernel_without_allocation
def varint_size(number):
    """The bytes that a number takes."""
    size = 1
    while number >= 128:
        number >>= 7
        size += 1
    return size


@kernel_without_allocation
def put_varint(out, at, number):
    """Writes a number to out[at:]; returns the place behind it."""
    while number >= 0x80:
        out[np.uint64(at)] = np.uint8((number & 0x7F) | 0x80)
        number >>= 7
        at += 1
    out[np.uint64(at)] = np.uint8(number)
    return at + 1


@kernel_without_allocation
def read_varint(data, place):
    """Reads a number that is whole; returns it and the place behind it."""
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
    """Fills in numbers from LEB128; returns where they end, or -1 if cut off or too large."""
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
