"""CRC32C of a file's decompressed text, put together from blocks read in any order anywhere.

Each block leaves a receipt of what was read; joined, the receipts prove that a file was read whole,
once, and give a checksum that does not depend on how the file was cut or compressed. For CRCs,
appending n bytes is a multiplication by x^(8n) modulo the polynomial, so two checksums combine
in O(log n) steps without the bytes.
"""

import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import google_crc32c

from tokcore.compiled.crc import CRC32C
from tokcore.corpus.dataset import Block

_ONE = 1 << 31


@dataclass(frozen=True)
class RangeChecksum:
    """What one block read of one file: `length` bytes of its decompressed text from `offset` on."""

    split: str
    place: int
    side: int  # 0 source, 1 target
    offset: int
    length: int
    crc32c: int


@dataclass(frozen=True)
class TextSummary:
    """Length and CRC32C of a file's whole decompressed text."""

    bytes: int
    crc32c: int


def checksums_of(block: Block) -> tuple[RangeChecksum, ...]:
    """Returns a receipt for each file that a block is of."""
    if block.read is not None:
        return tuple(
            RangeChecksum(block.split, block.place, *dataclasses.astuple(each))
            for each in block.read
        )
    read = {line.side: (line.length, line.crc32c) for line in block.long_lines}
    return tuple(
        RangeChecksum(
            block.split,
            block.place,
            side,
            text.offset,
            *(read[side] if side in read else (len(text.data), google_crc32c.value(text.data))),
        )
        for side, text in enumerate(block.texts)
    )


def combine_crc32c(first: int, second: int, second_length: int) -> int:
    """Returns the CRC32C of two byte strings, one after the other, from theirs.

    >>> crc = google_crc32c.value
    >>> combine_crc32c(crc(b'ab'), crc(b'cde'), 3) == crc(b'abcde')
    True
    """
    return _multiply(_power_of_x(8 * second_length), first) ^ second


def join_checksums(receipts: Iterable[RangeChecksum], length: int | None = None) -> TextSummary:
    """Joins the receipts of one file, given in any order, to its summary.

    `length` is the text's length where it is known (a plain file's size); without it, a
    file that lost its end cannot be told.

    Raises:
      ValueError: if a part of the file was lost or read twice, or the receipts are of two files.
    """
    end = crc = 0
    previous = None
    for receipt in sorted(receipts, key=lambda receipt: (receipt.offset, receipt.length)):
        file = (receipt.split, receipt.place, receipt.side)
        if previous not in (None, file):
            raise ValueError(f'receipts of two files: {previous} and {file}')
        previous = file
        if receipt.offset != end:
            what = 'lost' if receipt.offset > end else 'read twice'
            first, last = sorted((end, receipt.offset))
            raise ValueError(f'bytes {first} to {last} of (split, place, side) {file} were {what}')
        crc = combine_crc32c(crc, receipt.crc32c, receipt.length)
        end += receipt.length
    if length is not None and end != length:
        raise ValueError(f'{end} of {length} bytes of (split, place, side) {previous} were read')
    return TextSummary(end, crc)


def join_adjacent(receipts: Iterable[RangeChecksum]) -> list[RangeChecksum]:
    """Joins each receipt to an earlier one of the same file that ends where it begins.

    Given in the order of reading, many receipts of a file become one; nothing is lost or checked.
    """
    joined: dict[tuple[str, int, int, int], RangeChecksum] = {}  # by file and end
    for receipt in receipts:
        file = (receipt.split, receipt.place, receipt.side)
        before = joined.pop((*file, receipt.offset), None)
        if before is not None:
            receipt = replace(
                before,
                length=before.length + receipt.length,
                crc32c=combine_crc32c(before.crc32c, receipt.crc32c, receipt.length),
            )
        joined[(*file, receipt.offset + receipt.length)] = receipt
    return list(joined.values())


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials over GF(2) modulo the CRC's."""
    product = 0
    bit = _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ CRC32C if b & 1 else b >> 1
    return product


@functools.cache
def _squarings(count: int) -> int:
    """x to the power 2^count."""
    if count == 0:
        return _ONE >> 1
    root = _squarings(count - 1)
    return _multiply(root, root)


def _power_of_x(exponent: int) -> int:
    power = _ONE
    for place in range(exponent.bit_length()):
        if exponent >> place & 1:
            power = _multiply(_squarings(place), power)
    return power
