"""Tokens of rows found 64 bytes at a time, as bits: where they begin and where they end.

The rule is that of `t2t_tokens.tokenize`. One bit a byte: letter, space, border (the class changes
here). Whether a space is a lone one between two letters shows only at the byte after it, so starts
and ends are emitted one byte late. No branch depends on how long a token is.
"""

import functools
from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, put_places, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.wide_loads import load_word
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens
from tokcore.text.unicode_tables import alphanumeric_table
from tokcore.text.utf8 import decode_word

_CHUNK = np.uint64(64)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_ALL = ~_0
_LAST, _LAST_TWO = np.uint64(63), np.uint64(62)  # shifts that leave the last bits of a chunk
_LOW_SIX = np.uint64(0x3F)


@functools.cache
def alphanumeric_bits() -> np.ndarray:
    """Returns uint64[0x110000 / 64]: bit c % 64 of word c // 64 is the class of code point c."""
    return read_only(np.packbits(alphanumeric_table(), bitorder='little').view(np.uint64))


class AlphanumericRuns(NamedTuple):
    """The state of Tensor2Tensor's pre-tokenizer: which characters are letters and numbers."""

    classes: np.ndarray  # uint64[0x110000 / 64], `alphanumeric_bits`


@kernel_without_allocation
def ideographs(text, place):
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
def _letters_of_chunk(text, place, inside, before, classes):
    """The bits of the 64 bytes at text[place:] that are letters or numbers.

    Only of those whose bits are set in `inside`; `before` says whether the byte before is one.
    """
    found = (
        byte_range_mask(text, place, 0x61, 0x7A)
        | byte_range_mask(text, place, 0x41, 0x5A)
        | byte_range_mask(text, place, 0x30, 0x39)
    )
    others = byte_range_mask(text, place, 0x80, 0xFF) & inside
    if others != _0:
        continued = byte_range_mask(text, place, 0x80, 0xBF)
        found |= ideographs(text, place)
        leads = others & ~continued & ~found & ~_wide_marks(text, place)
        while leads != _0:
            byte = trailing_zeros(leads)
            leads &= leads - _1
            code = decode_word(load_word(text, place + byte))
            found |= (classes[code >> np.uint64(6)] >> (code & _LOW_SIX) & _1) << byte
        # All bytes of a character are of its class.
        found |= (found << _1 | before) & continued
        found |= (found << _1 | before) & continued
        found |= (found << _1 | before) & continued
    return found & inside


@scan_tokens.register(AlphanumericRuns)
@kernel_without_allocation
def scan_alphanumeric_runs(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    begun = ended = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
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
                    position = np.int64(tokens.ends[ended - _1])
                return row, position, np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            last = letters >> _1
            found = _letters_of_chunk(rows.text, place, inside, last, pre_tokenizer.classes)
            spaces = byte_range_mask(rows.text, place, 0x20, 0x20)
            borders = ((found ^ (found << _1 | last)) | first) & inside
            # Behind a lone space there is a letter, and before it too.
            lone = found & (spaces << _1 | space) & (found << _2 | letters)
            behind = (borders << _1 | border) & ~lone
            closed = borders & ~lone & ~first
            if left < _CHUNK:
                closed |= _1 << left
            begun = put_places(behind, place - _1, tokens.starts, begun)
            ended = put_places(closed, place, tokens.ends, ended)
            if left < _CHUNK:
                break
            border, space, letters = borders >> _LAST, spaces >> _LAST, found >> _LAST_TWO
            first = _0
            place += _CHUNK
        begun = ended
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, position, np.int64(ended)
