"""Rows in one of Unicode's four normal forms, as `unicodedata.normalize` makes them, but faster.

Three steps, each for the rows that the one before left. The quick check (Unicode's UAX #15) passes
rows in which every character surely stays as it is. A table then replaces characters that change
whatever is next to them, such as fullwidth punctuation. Rows with a character that may combine with
its neighbors, or change places with them, are left to `unicodedata`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Literal, NamedTuple

import numpy as np

from tokcore.kernels.bytes import copy_bytes, row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, load_word, trailing_zeros
from tokcore.text.pre_tokenizer import readable_parts
from tokcore.text.rewriting import replace_rows, rewrite_rows
from tokcore.text.rows import Side
from tokcore.text.unicode import (
    CODE_POINTS,
    age_table,
    cached_table,
    category_table,
    decode_word,
    ideograph_mask,
    next_character,
)

NormalForm = Literal['NFC', 'NFD', 'NFKC', 'NFKD']

STAYS, _DEPENDS_ON_NEIGHBORS = -1, -2

# Korean vowels and final consonants, of which syllables are composed.
_JAMO = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]

_0, _1 = np.uint64(0), np.uint64(1)
_CHUNK, _LOW_SIX = np.uint64(64), np.uint64(0x3F)


def normalize_rows(side: Side, form: NormalForm) -> Side:
    """Returns the rows in a normal form, by this Python's Unicode tables.

    Returns `side` itself if every row is in the form already. Else rows that change are appended to
    the text, so that starts no longer ascend.
    """
    bits = _quick_check_bits(form)
    is_open, done = np.zeros(len(side), bool), 0
    for rows in readable_parts(side.text, side.starts, side.ends):
        size = len(rows.starts)
        _quick_check(*rows, bits, is_open[done : done + size])
        done += size
    if not is_open.any():
        return side
    side, others = _normalize_by_table(side, np.flatnonzero(is_open), form)
    # A line feed combines with nothing, and nothing becomes one.
    return rewrite_rows(
        side, others, lambda lines: unicodedata.normalize(form, lines.decode()).encode()
    )


def normalize_by_9(form: NormalForm, text: str) -> str:
    """Returns a text in a normal form by Unicode 9, in which newer characters stay as they are."""
    parts = _newer_than_9().split(text)
    parts[::2] = [unicodedata.normalize(form, part) for part in parts[::2]]
    return ''.join(parts)


@functools.cache
def _newer_than_9() -> re.Pattern[str]:
    """Finds characters of newer versions that change, or combine with their neighbors."""
    is_assigned = (category_table() != np.frombuffer(b'Cn', np.uint8)).any(1)
    newer = set(map(chr, np.flatnonzero(is_assigned & (age_table() > 9)).tolist()))
    change = {each for each in newer if unicodedata.normalize('NFKD', each) != each}
    parts = newer.intersection(''.join(unicodedata.normalize('NFKD', each) for each in change))
    marks = {each for each in newer if unicodedata.combining(each)}
    return re.compile(f'([{"".join(sorted(change | parts | marks))}])')


def _normalize_by_table(side: Side, rows: np.ndarray, form: NormalForm) -> tuple[Side, np.ndarray]:
    """Returns the side with some of `rows` normalized, and the numbers of the others."""
    replacements = _replacements(form)
    sizes = np.empty(len(rows), np.int64)
    _measure_replaced(*side.take(rows).arrays(), replacements, sizes)
    can_replace = sizes >= 0
    if not can_replace.any():
        return side, rows
    replaced = rows[can_replace]
    offsets = row_offsets(sizes[can_replace])
    text = np.empty(int(offsets[-1]), np.uint8)
    write_replaced(*side.take(replaced).arrays(), replacements, offsets, text)
    new_rows = Side(text, offsets[:-1], offsets[1:])
    return replace_rows(side, replaced, new_rows), rows[~can_replace]


@functools.cache
def _quick_check_bits(form: NormalForm) -> np.ndarray:
    """Returns uint64[0x110000 / 64]: bit c % 64 of word c // 64 is set where c fails the check.

    A text without such code points is in the form.
    """
    table = cached_table(f'quick-check-{form}', lambda: _failing_bits(form))
    return read_only(np.frombuffer(table, np.uint64))


def _failing_bits(form: NormalForm) -> bytes:
    fails = np.zeros(CODE_POINTS, np.uint8)
    fails[_JAMO] = 1
    for code in range(0x80, CODE_POINTS):
        character = chr(code)
        if unicodedata.combining(character) or unicodedata.normalize(form, character) != character:
            fails[code] = 1
        parts = unicodedata.decomposition(character)
        # The second of two that compose this one. ('<…> ' marks compatibility mappings.)
        if parts and parts[0] != '<' and ' ' in parts:
            fails[int(parts.split()[1], 16)] = 1
    return np.packbits(fails, bitorder='little').tobytes()


class Replacements(NamedTuple):
    """Code point c becomes pool[offsets[n]:offsets[n + 1]], where n is numbers[c]."""

    numbers: np.ndarray  # int32[0x110000]; -1 where c stays, -2 where its neighbors matter
    offsets: np.ndarray  # int64[replacements + 1]
    pool: np.ndarray  # uint8


@functools.cache
def _replacements(form: NormalForm) -> Replacements:
    fails = np.unpackbits(_quick_check_bits(form).view(np.uint8), bitorder='little')
    numbers = np.full(CODE_POINTS, STAYS, np.int32)
    pool: list[bytes] = []
    for code in np.flatnonzero(fails).tolist():
        normalized = unicodedata.normalize(form, chr(code))
        # A character that fails the check and alone stays may combine with the one before it.
        may_combine = [
            unicodedata.combining(character)
            or (fails[ord(character)] and unicodedata.normalize(form, character) == character)
            for character in (chr(code), normalized[0])
        ]
        if any(may_combine):
            numbers[code] = _DEPENDS_ON_NEIGHBORS
        else:
            numbers[code] = len(pool)
            pool.append(normalized.encode())
    offsets = row_offsets(list(map(len, pool)))
    return Replacements(
        read_only(numbers), read_only(offsets), read_only(np.frombuffer(b''.join(pool), np.uint8))
    )


@kernel_without_allocation
def _quick_check(text, starts, ends, bits, is_open):
    """Sets is_open[row], bool[rows], for rows with a code point of `bits`; the others as in `TextRows`."""
    for row in range(len(starts)):
        place, end = np.uint64(starts[row]), np.uint64(ends[row])
        while place < end:
            if _chunk_fails(text, place, end - place, bits):
                is_open[row] = True
                break
            place += _CHUNK


@kernel_without_allocation
def _chunk_fails(text, place, left, bits):
    """Whether a character of `bits` begins in the 64 bytes at `place`; `left` are of the row."""
    leads = byte_range_mask(text, place, 0xC2, 0xFF)
    if left < _CHUNK:
        leads &= (_1 << left) - _1
    if leads == _0:
        return False
    leads &= ~ideograph_mask(text, place)
    fails = _0
    while leads != _0:
        code = decode_word(load_word(text, place + trailing_zeros(leads)))
        leads &= leads - _1
        fails |= bits[code >> np.uint64(6)] >> (code & _LOW_SIX)
    return fails & _1 != _0


@kernel_without_allocation
def _measure_replaced(text, starts, ends, replacements, sizes):
    """Fills in the bytes of each row once its characters are replaced; -1 where they cannot be."""
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        size = 0
        while position < end:
            character, after = next_character(text, position)
            number = replacements.numbers[character]
            if number == _DEPENDS_ON_NEIGHBORS:
                size = -1
                break
            size += after - position
            if number >= 0:
                new_size = replacements.offsets[number + 1] - replacements.offsets[number]
                size += new_size - (after - position)
            position = after
        sizes[row] = size


@kernel_without_allocation
def write_replaced(text, starts, ends, replacements, offsets, out):
    """Writes each row, its characters replaced, to out[offsets[row]:]."""
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        to = np.uint64(offsets[row])
        # Characters that stay are copied in runs.
        run = position
        while position < end:
            character, after = next_character(text, position)
            number = replacements.numbers[character]
            if number >= 0:
                length = np.uint64(position - run)
                copy_bytes(out, to, text, np.uint64(run), length)
                to += length
                first = np.uint64(replacements.offsets[number])
                length = np.uint64(replacements.offsets[number + 1]) - first
                copy_bytes(out, to, replacements.pool, first, length)
                to += length
                run = after
            position = after
        copy_bytes(out, to, text, np.uint64(run), np.uint64(end - run))
