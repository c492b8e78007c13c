"""Normal forms where each character changes by itself, whatever stands beside it.

So it is with most text that is not in a form: punctuation of full width, letters with accents taken
apart. Rows with a character that may go together with its neighbours, or change places with them,
are left to `unicodedata`.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import copy_bytes, row_offsets
from tokcore.text.byte_level.normal_forms import doubtful_bits
from tokcore.text.sides import Side
from tokcore.text.unicode_tables import CODE_POINTS
from tokcore.text.utf8 import next_character

_AS_IT_IS, _NOT_LOCAL = -1, -2


class Replacements(NamedTuple):
    """What becomes of characters: of c, pool[offsets[n]:offsets[n + 1]] with n = numbers[c]."""

    numbers: np.ndarray  # int32[0x110000]; -1 where c stays, -2 where its neighbours matter
    offsets: np.ndarray  # int64[replacements + 1]
    pool: np.ndarray  # uint8


@functools.cache
def replacements(form: str) -> Replacements:
    """Returns them for one of Unicode's four forms."""
    doubtful = np.unpackbits(doubtful_bits(form).view(np.uint8), bitorder='little')
    numbers = np.full(CODE_POINTS, _AS_IT_IS, np.int32)
    pool: list[bytes] = []
    for code in np.flatnonzero(doubtful).tolist():
        made = unicodedata.normalize(form, chr(code))
        # What may be put together with what stands before it is doubtful, and stays as it is alone.
        is_bound = [
            unicodedata.combining(each) or (doubtful[ord(each)] and _stays(form, each))
            for each in (chr(code), made[0])
        ]
        if any(is_bound):
            numbers[code] = _NOT_LOCAL
        else:
            numbers[code] = len(pool)
            pool.append(made.encode())
    offsets = row_offsets(list(map(len, pool)))
    return Replacements(
        read_only(numbers), read_only(offsets), read_only(np.frombuffer(b''.join(pool), np.uint8))
    )


def _stays(form: str, character: str) -> bool:
    return unicodedata.normalize(form, character) == character


def normalized_locally(side: Side, rows: np.ndarray, form: str) -> tuple[Side, np.ndarray]:
    """Returns the side with those of some rows replaced that can be, and the numbers of the others.

    Args:
        side: rows of text.
        rows: int64[…], ascending: those that may not be in the form.
        form: 'NFC', 'NFD', 'NFKC' or 'NFKD'.
    """
    found = replacements(form)
    bounds = read_only(side.starts[rows]), read_only(side.ends[rows])
    sizes = np.empty(len(rows), np.int64)
    measure_local(read_only(side.text), *bounds, found, sizes)
    is_local = sizes >= 0
    if not is_local.any():
        return side, rows
    local, left = rows[is_local], rows[~is_local]
    offsets = row_offsets(sizes[is_local])
    bounds = read_only(side.starts[local]), read_only(side.ends[local])
    made = np.empty(len(side.text) + int(offsets[-1]), np.uint8)
    made[: len(side.text)] = side.text
    offsets += len(side.text)
    replace_local(read_only(side.text), *bounds, found, offsets, made)
    starts, ends = side.starts.copy(), side.ends.copy()
    starts[local], ends[local] = offsets[:-1], offsets[1:]
    return Side(read_only(made), starts, ends), left


@kernel_without_allocation
def measure_local(text, starts, ends, found, sizes):
    """Fills in the bytes of each row when its characters are replaced; -1 where they cannot be."""
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        size = 0
        while position < end:
            character, behind = next_character(text, position)
            number = found.numbers[character]
            if number == -2:
                size = -1
                break
            size += behind - position
            if number >= 0:
                size += found.offsets[number + 1] - found.offsets[number] - (behind - position)
            position = behind
        sizes[row] = size


@kernel_without_allocation
def replace_local(text, starts, ends, found, offsets, out):
    """Writes each row, its characters replaced, to out[offsets[row]:]."""
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        to = np.uint64(offsets[row])
        # What stays is copied in runs.
        begin = position
        while position < end:
            character, behind = next_character(text, position)
            number = found.numbers[character]
            if number >= 0:
                length = np.uint64(position - begin)
                copy_bytes(out, to, text, np.uint64(begin), length)
                to += length
                first = np.uint64(found.offsets[number])
                length = np.uint64(found.offsets[number + 1]) - first
                copy_bytes(out, to, found.pool, first, length)
                to += length
                begin = behind
            position = behind
        copy_bytes(out, to, text, np.uint64(begin), np.uint64(end - begin))
