"""64 bytes of a row to tokens by BERT's tables: copied at once where nothing is changed.

Bytes that stay are copied with those between them, capitals lowered on the way, and the places of
tokens are bits: where letters begin and end, and what is a token by itself. What becomes something
else, or nothing, is looked up character by character, and so is text that is full of it.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, popcount, put_places, trailing_zeros
from tokcore.compiled.compilation import inlined_kernel, kernel_without_allocation
from tokcore.compiled.wide_loads import load_word, store_word
from tokcore.text.bert.bert_tables import (
    ALONE,
    BLOCK,
    BORDER,
    EXPANDED,
    FLAG_BITS,
    LENGTH_BITS,
    WRITTEN,
)
from tokcore.text.utf8 import decode_word, ideograph_mask

CHUNK = 64

_SPARSE = np.uint64(8)  # more characters of 64 bytes are looked up one after another
_CHUNK, _WORD = np.uint64(CHUNK), np.uint64(8)
_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_ALL, _LAST = ~_0, np.uint64(63)
_BLOCK = np.uint64(BLOCK)
_BORDER, _WRITTEN, _ALONE = np.uint64(BORDER), np.uint64(WRITTEN), np.uint64(ALONE)
_EXPANDED = np.uint64(EXPANDED)
_FLAG_BITS, _OFFSET_BITS = np.uint64(FLAG_BITS), np.uint64(FLAG_BITS + LENGTH_BITS)
_LENGTH = np.uint64((1 << LENGTH_BITS) - 1)
_FOUR, _NIBBLE = np.uint64(4), np.uint64(0xF)
_SIZES = np.uint64(0x4322000011111111)  # of characters, by the high half of their first byte


class Written(NamedTuple):
    """How far a call has come: tokens begun and ended, and bytes of the buffer."""

    begun: np.uint64
    ended: np.uint64
    used: np.uint64


@kernel_without_allocation
def character_size(word):
    """The bytes of the character that begins a little-endian word."""
    return _SIZES >> ((word >> _FOUR & _NIBBLE) << _2) & _NIBBLE


@kernel_without_allocation
def action_place(tables, code):
    """Where in `actions` and `classes` a code point's are."""
    return np.uint64(tables.index[code // _BLOCK]) * _BLOCK + code % _BLOCK


@kernel_without_allocation
def action_of(tables, word):
    """That of the character that begins a little-endian word."""
    return np.uint64(tables.actions[action_place(tables, decode_word(word))])


@kernel_without_allocation
def _copy_lowered(text, place, lowering, buffer, used):
    """Copies 64 bytes, capitals of ASCII lowered."""
    for k in range(_CHUNK):
        byte = text[place + k]
        is_capital = (byte >= np.uint8(0x41)) & (byte <= np.uint8(0x5A))
        buffer[used + k] = byte + (lowering if is_capital else np.uint8(0))


@inlined_kernel
def scan_characters(text, place, stop, state, tokens, written):
    """Looks up the characters from a place on that begin before another one.

    Returns the place behind them and `Written`. No branch depends on what they are.
    """
    begun, ended, used = written
    tables, buffer = state.tables, state.buffer
    while place < stop:
        word = load_word(text, place)
        place += character_size(word)
        action = action_of(tables, word)
        tokens.ends[ended] = used
        ended += action & _BORDER & (begun - ended)
        tokens.starts[begun] = used
        begun += action >> _1 & _1 & ~(begun - ended)
        offset = action >> _OFFSET_BITS
        other = _ALL * (action >> _3 & _1)
        store_word(buffer, used, word ^ (word ^ load_word(tables.expansions, offset)) & other)
        store_word(buffer, used + _WORD, load_word(tables.expansions, offset + _WORD))
        used += action >> _FLAG_BITS & _LENGTH
        tokens.ends[ended] = used
        ended += action >> _2 & _1
    return place, Written(begun, ended, used)


@inlined_kernel
def _look_up(text, place, leads, tables):
    """Bits of the characters that begin at some: those of words, those alone, those that change."""
    letters = alone = changing = _0
    while leads != _0:
        byte = trailing_zeros(leads)
        leads &= leads - _1
        action = action_of(tables, load_word(text, place + byte))
        stays = action & (_EXPANDED | _WRITTEN | _BORDER)
        changing |= np.uint64(stays == _0 or stays >= _EXPANDED) << byte
        alone |= (action >> _2 & _1) << byte
        letters |= np.uint64(action & (_WRITTEN | _ALONE) == _WRITTEN) << byte
    return letters, alone, changing


@kernel_without_allocation
def _last_character(text, place):
    """How many of 64 bytes are of characters that do not go on behind them."""
    if text[place + _CHUNK] & 0xC0 != 0x80:
        return _CHUNK
    size = _LAST
    while text[place + size] & 0xC0 == 0x80:
        size -= _1
    return size


@inlined_kernel
def _class_others(text, place, end, letters, alone, tables):
    """Classes the characters of a chunk that are not printable ASCII, whose bits are given.

    Returns the bits of letters, of tokens by themselves and of bytes behind the first of
    characters, how many bytes can be copied, and how many after them are not to be looked at again.
    """
    left = min(end - place, _CHUNK)
    inside = _ALL >> (_CHUNK - left)
    leads = byte_range_mask(text, place, 0xC0, 0xFF) & inside
    if tables.ideograph:
        ideographs = ideograph_mask(text, place) & leads
        leads &= ~ideographs
        if tables.ideograph & ALONE:
            alone |= ideographs
        else:
            letters |= ideographs
    if popcount(leads) > _SPARSE:
        return _0, _0, _0, _0, left
    more_letters, more_alone, changing = _look_up(text, place, leads, tables)
    controls = byte_range_mask(text, place, 0x00, 0x1F) | byte_range_mask(text, place, 0x7F, 0x7F)
    spaces = byte_range_mask(text, place, 0x09, 0x0A) | byte_range_mask(text, place, 0x0D, 0x0D)
    size = min(trailing_zeros(controls & ~spaces | changing), left)
    looked_up = np.uint64(size < left)
    if size == _CHUNK and end - place > _CHUNK:
        size = _last_character(text, place)
    inside = _ALL >> (_CHUNK - size) if size else _0
    continued = byte_range_mask(text, place, 0x80, 0xBF) & inside
    letters = (letters | more_letters) & inside
    return letters, (alone | more_alone) & inside, continued, size, looked_up


@inlined_kernel
def scan_chunk(text, place, end, state, tokens, written):
    """Scans up to 64 bytes of text[place:end] that stay as they are, but for capitals.

    Returns the place behind them, the one that characters are to be looked up to, and `Written`.
    """
    left = min(end - place, _CHUNK)
    inside = _ALL >> (_CHUNK - left)
    letters = inside & (
        byte_range_mask(text, place, 0x61, 0x7A)
        | byte_range_mask(text, place, 0x41, 0x5A)
        | byte_range_mask(text, place, 0x30, 0x39)
    )
    printable = byte_range_mask(text, place, 0x20, 0x7E) & inside
    alone = printable & ~letters & ~byte_range_mask(text, place, 0x20, 0x20)
    continued, size, looked_up = _0, left, _0
    whole = alone
    if printable != inside:
        letters, alone, continued, size, looked_up = _class_others(
            text, place, end, letters, alone, state.tables
        )
        if size == _0:
            return place, place + looked_up, written
        # All bytes of a character are of its class.
        whole = alone
        for _ in range(3):
            letters |= letters << _1 & continued
            whole |= whole << _1 & continued
        inside = _ALL >> (_CHUNK - size)
    begun, ended, used = written
    _copy_lowered(text, place, state.lowering, state.buffer, used)
    before = letters << _1 | (begun - ended)
    # A word at the end stays open.
    begun = put_places((letters & ~before) | alone, used, tokens.starts, begun)
    ends = (before & ~letters & inside) | (whole << _1 & ~continued)
    ended = put_places(ends, used, tokens.ends, ended)
    if whole >> _LAST != _0:
        tokens.ends[ended] = used + _CHUNK
        ended += _1
    place += size
    return place, place + looked_up, Written(begun, ended, used + size)
