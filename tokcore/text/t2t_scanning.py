"""Tokens of rows found 64 bytes at a time, as bits: where they begin and where they end.

The rule is that of `t2t_tokens.tokenize`. One bit a byte: letter, space, border (the class changes
here). Whether a space is a lone one between two letters shows only at the byte after it, so starts
and ends are emitted one byte late. No branch depends on how long a token is.
"""

import functools
from collections.abc import Iterator

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, popcount, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.wide_loads import load_word
from tokcore.text.unicode_tables import alphanumeric_table
from tokcore.text.utf8 import decode_word

READABLE = 64 + 8
"""So many bytes from any place of a row on must be readable."""

CHUNK_TOKENS = 64 + 16
"""Room for the tokens of a chunk, and for places that are written for nothing."""

_CHUNK, _AT_ONCE = np.uint64(64), np.uint64(8)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_ALL = ~_0
_LAST, _LAST_TWO = np.uint64(63), np.uint64(62)  # shifts that leave the last bits of a chunk
_LOW_SIX = np.uint64(0x3F)


@functools.cache
def alphanumeric_bits() -> np.ndarray:
    """Returns uint64[0x110000 / 64]: bit c % 64 of word c // 64 is the class of code point c."""
    return read_only(np.packbits(alphanumeric_table(), bitorder='little').view(np.uint64))


def readable_parts(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields (text, starts, ends) of the rows, in their order, with `READABLE` bytes behind each.

    Only rows near the end of the text are copied, for the sake of what is read behind them.
    """
    near = np.flatnonzero(ends > len(text) - READABLE)
    first = int(near[0]) if len(near) else len(ends)
    if first:
        yield (
            read_only(np.ascontiguousarray(text)),
            read_only(starts[:first]),
            read_only(ends[:first]),
        )
    if first < len(ends):
        begin = starts[first:].min()
        rest = with_margin(text[begin : ends[first:].max()])
        yield rest, read_only(starts[first:] - begin), read_only(ends[first:] - begin)


def with_margin(text: np.ndarray) -> np.ndarray:
    """Returns a copy of some bytes (uint8) with `READABLE` more behind them."""
    copy = np.empty(len(text) + READABLE, np.uint8)
    copy[: len(text)] = text
    copy[len(text) :] = 0
    return read_only(copy)


@kernel_without_allocation
def _ideographs(text, place):
    """Where U+4E00 to U+9FBF begin, all letters: nearly all the ideographs in use."""
    after = place + _1
    return (
        byte_range_mask(text, place, 0xE5, 0xE8)
        | byte_range_mask(text, place, 0xE4, 0xE4) & byte_range_mask(text, after, 0xB8, 0xBF)
        | byte_range_mask(text, place, 0xE9, 0xE9) & byte_range_mask(text, after, 0x80, 0xBE)
    )


@kernel_without_allocation
def _wide_marks(text, place):
    """Where U+3000 to U+3003 and U+FF00 to U+FF0F begin, no letters: the commas and full stops."""
    after, last = place + _1, place + _2
    return (
        byte_range_mask(text, place, 0xE3, 0xE3)
        & byte_range_mask(text, after, 0x80, 0x80)
        & byte_range_mask(text, last, 0x80, 0x83)
    ) | (
        byte_range_mask(text, place, 0xEF, 0xEF)
        & byte_range_mask(text, after, 0xBC, 0xBC)
        & byte_range_mask(text, last, 0x80, 0x8F)
    )


@kernel_without_allocation
def _put_places(bits, place, places, count):
    """Puts `place` + the number of each bit that is set into places[count:]; returns the count."""
    end = count + popcount(bits)
    while True:
        # Eight whether there are or not: how many eights there are is easily guessed right.
        for k in range(np.uint64(8)):
            places[count + k] = place + trailing_zeros(bits)
            bits &= bits - _1
        count += _AT_ONCE
        if count >= end:
            return end


@kernel_without_allocation
def scan_tokens(text, starts, ends, row, position, classes, token_starts, token_ends, row_tokens):
    """Finds the tokens of rows, from a row and a position in it on, until there is no more room.

    A position of -1 is the row's start, any other is one that this returned. Fills `token_starts`
    and `token_ends` (uint64[...], of more than `CHUNK_TOKENS`) and for each row that is done
    row_tokens[row + 1], the tokens so far. Returns (row, position, tokens) with the place to go on
    at; the row is the number of rows when all are done. `classes` are `alphanumeric_bits`.
    """
    room = np.uint64(len(token_starts) - CHUNK_TOKENS)
    begun = ended = _0
    while row < len(starts):
        place = np.uint64(starts[row] if position < 0 else position)
        row_end = np.uint64(ends[row])
        # What is carried on from chunk to chunk: whether there is a border at the last byte,
        # whether it is a space, and whether it and the one before are alphanumeric (two bits).
        border = space = _0
        # Where a row is gone on with, a space there had a letter before it.
        letters = _0 if position < 0 else _2
        first = _1
        before = ended
        while place < row_end or first == _0:
            if begun > room:
                if ended > before:
                    position = np.int64(token_ends[ended - _1])
                return row, position, np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            last = letters >> _1
            found = (
                byte_range_mask(text, place, 0x61, 0x7A)
                | byte_range_mask(text, place, 0x41, 0x5A)
                | byte_range_mask(text, place, 0x30, 0x39)
            )
            others = byte_range_mask(text, place, 0x80, 0xFF) & inside
            if others != _0:
                continued = byte_range_mask(text, place, 0x80, 0xBF)
                found |= _ideographs(text, place)
                leads = others & ~continued & ~found & ~_wide_marks(text, place)
                while leads != _0:
                    byte = trailing_zeros(leads)
                    leads &= leads - _1
                    code = decode_word(load_word(text, place + byte))
                    found |= (classes[code >> np.uint64(6)] >> (code & _LOW_SIX) & _1) << byte
                # All bytes of a character are of its class.
                found |= (found << _1 | last) & continued
                found |= (found << _1 | last) & continued
                found |= (found << _1 | last) & continued
            found &= inside
            spaces = byte_range_mask(text, place, 0x20, 0x20)
            borders = ((found ^ (found << _1 | last)) | first) & inside
            # Behind a lone space there is a letter, and before it too.
            lone = found & (spaces << _1 | space) & (found << _2 | letters)
            behind = (borders << _1 | border) & ~lone
            closed = borders & ~lone & ~first
            if left < _CHUNK:
                closed |= _1 << left
            begun = _put_places(behind, place - _1, token_starts, begun)
            ended = _put_places(closed, place, token_ends, ended)
            if left < _CHUNK:
                break
            border, space, letters = borders >> _LAST, spaces >> _LAST, found >> _LAST_TWO
            first = _0
            place += _CHUNK
        begun = ended
        row += 1
        position = -1
        row_tokens[row] = np.int64(ended)
    return row, position, np.int64(ended)
