"""BERT's tokens of rows by tables: written to a buffer, 64 bytes of ASCII at a time where they are.

In ASCII alone a chunk is copied as it is, with capitals lowered, and the places of its tokens are
bits: where letters and numbers begin and end, and punctuation, each for itself. Elsewhere characters
are looked up one after another.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, put_places
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word
from tokcore.text.bert.bert_tables import (
    BLOCK,
    DROP,
    EXPAND,
    KEEP,
    KIND_BITS,
    LEAVE,
    LENGTH_BITS,
    SPACE,
    BertTables,
)
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens
from tokcore.text.utf8 import decode_word

CHUNK = 64

_CHUNK = np.uint64(CHUNK)
_0, _1 = np.uint64(0), np.uint64(1)
_ALL, _LAST = ~_0, np.uint64(63)
_BLOCK = np.uint64(BLOCK)
_KIND, _LENGTH = np.uint64((1 << KIND_BITS) - 1), np.uint64((1 << LENGTH_BITS) - 1)
_KIND_BITS, _OFFSET_BITS = np.uint64(KIND_BITS), np.uint64(KIND_BITS + LENGTH_BITS)


class BertText(NamedTuple):
    """The state: what becomes of characters, and of rows that are not looked up."""

    tables: BertTables
    lowering: np.uint8  # 0x20 if capitals are lowered, else 0
    buffer: np.ndarray  # uint8: the tokens of a call
    most: int  # of the buffer are used before a chunk
    rewritten: np.ndarray  # int64[rows]: which of the rows of `words`, or -1; of no length: none is
    words: np.ndarray  # uint8: rows as their tokens with spaces between them
    word_bounds: np.ndarray  # int64[rewritten rows + 1]


class Written(NamedTuple):
    """How far a call has come: tokens begun and ended, and bytes of the buffer."""

    begun: np.uint64
    ended: np.uint64
    used: np.uint64


@kernel_without_allocation
def _action(tables, code):
    block = np.uint64(tables.index[code // _BLOCK])
    return np.uint64(tables.actions[block * _BLOCK + code % _BLOCK])


@kernel_without_allocation
def _size(word):
    """The bytes of the character that begins a little-endian word."""
    lead = word & np.uint64(0xFF)
    if lead < np.uint64(0x80):
        return _1
    if lead < np.uint64(0xE0):
        return np.uint64(2)
    return np.uint64(3) if lead < np.uint64(0xF0) else np.uint64(4)


@kernel_without_allocation
def find_leaving(text, starts, ends, tables, found):
    """Marks rows with a character that only its neighbours tell what to do with.

    `found` uint8[rows] is 0, and set to 1. Returns how many are marked.
    """
    count = 0
    for row in range(len(starts)):
        place, end = np.uint64(starts[row]), np.uint64(ends[row])
        while place < end:
            if byte_range_mask(text, place, 0x80, 0xFF) == _0:
                place += _CHUNK
                continue
            stop = min(end, place + _CHUNK)
            while place < stop:
                word = load_word(text, place)
                if word & np.uint64(0x80):
                    code = decode_word(word)
                    if tables.leaving[code // _BLOCK]:
                        if _action(tables, code) & _KIND == np.uint64(LEAVE):
                            found[row] = 1
                place += _size(word)
            if found[row]:
                count += 1
                break
    return count


@kernel_without_allocation
def _copy_lowered(text, place, lowering, buffer, used):
    """Copies 64 bytes of ASCII, capitals lowered."""
    for k in range(_CHUNK):
        byte = text[place + k]
        buffer[used + k] = byte + (lowering if byte - np.uint8(0x41) < np.uint8(26) else np.uint8(0))


@kernel_without_allocation
def _scan_ascii(letters, punctuation, size, tokens, written):
    """Puts the places of the tokens of a chunk that was copied; returns `Written` behind it."""
    begun, ended, used = written
    before = letters << _1 | np.uint64(begun > ended)
    starts = (letters & ~before) | punctuation
    ends = (before & ~letters) | punctuation << _1
    if size < _CHUNK:
        ends &= (_1 << (size + _1)) - _1 if size < _LAST else _ALL
    begun = put_places(starts, used, tokens.starts, begun)
    ended = put_places(ends, used, tokens.ends, ended)
    if size == _CHUNK and punctuation >> _LAST != _0:
        tokens.ends[ended] = used + _CHUNK
        ended += _1
    return Written(begun, ended, used + size)


@kernel_without_allocation
def _scan_characters(text, place, stop, state, tokens, written):
    """Looks up the characters from a place on that begin before another one.

    Returns the place behind them and `Written`.
    """
    begun, ended, used = written
    tables, buffer = state.tables, state.buffer
    while place < stop:
        word = load_word(text, place)
        size = _size(word)
        action = _action(tables, decode_word(word))
        place += size
        kind = action & _KIND
        if kind == np.uint64(DROP):
            continue
        stands_alone = kind != np.uint64(KEEP) and kind != np.uint64(EXPAND)
        if stands_alone and begun > ended:
            tokens.ends[ended] = used
            ended += _1
        if kind == np.uint64(SPACE):
            continue
        if begun == ended:
            tokens.starts[begun] = used
            begun += _1
        if kind >= np.uint64(EXPAND):
            size = action >> _KIND_BITS & _LENGTH
            first = action >> _OFFSET_BITS
            for k in range(size):
                buffer[used + k] = tables.expansions[first + k]
        elif size == _1:
            byte = np.uint8(word & np.uint64(0xFF))
            buffer[used] = byte + (
                state.lowering if byte - np.uint8(0x41) < np.uint8(26) else np.uint8(0)
            )
        else:
            for k in range(np.uint64(4)):
                buffer[used + k] = np.uint8(word >> (k << np.uint64(3)) & np.uint64(0xFF))
        used += size
        if stands_alone:
            tokens.ends[ended] = used
            ended += _1
    return place, Written(begun, ended, used)


@kernel_without_allocation
def _scan_chunk(text, place, end, state, tokens, written):
    """Scans up to 64 bytes; returns the place behind them and `Written`."""
    left = min(end - place, _CHUNK)
    inside = _ALL if left == _CHUNK else (_1 << left) - _1
    others = (
        byte_range_mask(text, place, 0x80, 0xFF)
        | byte_range_mask(text, place, 0x00, 0x1F)
        | byte_range_mask(text, place, 0x7F, 0x7F)
    ) & inside
    if others != _0:
        return _scan_characters(text, place, place + left, state, tokens, written)
    letters = inside & (
        byte_range_mask(text, place, 0x61, 0x7A)
        | byte_range_mask(text, place, 0x41, 0x5A)
        | byte_range_mask(text, place, 0x30, 0x39)
    )
    punctuation = inside & ~letters & ~byte_range_mask(text, place, 0x20, 0x20)
    _copy_lowered(text, place, state.lowering, state.buffer, written.used)
    return place + left, _scan_ascii(letters, punctuation, left, tokens, written)


@kernel_without_allocation
def _scan_words(text, place, end, state, tokens, written):
    """Copies up to 64 bytes of tokens with spaces between them; returns place and `Written`."""
    begun, ended, used = written
    stop = min(end, place + _CHUNK)
    while place < stop:
        byte = text[place]
        place += _1
        if byte == np.uint8(0x20):
            if begun > ended:
                tokens.ends[ended] = used
                ended += _1
            continue
        if begun == ended:
            tokens.starts[begun] = used
            begun += _1
        state.buffer[used] = byte
        used += _1
    return place, Written(begun, ended, used)


@kernel_without_allocation
def _word_start(text, start, place, tables):
    """Where the word began that is open at a place of a row that begins at `start`."""
    while place > start:
        before = place - _1
        while text[before] & 0xC0 == 0x80:
            before -= _1
        kind = _action(tables, decode_word(load_word(text, before))) & _KIND
        if kind != np.uint64(KEEP) and kind != np.uint64(EXPAND) and kind != np.uint64(DROP):
            break
        place = before
    return place


@scan_tokens.register(BertText)
@kernel_without_allocation
def scan_bert_words(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the buffer."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    most = np.uint64(pre_tokenizer.most)
    written = Written(_0, _0, _0)
    while row < len(rows.starts):
        text, start, end = rows.text, np.uint64(rows.starts[row]), np.uint64(rows.ends[row])
        is_rewritten = len(pre_tokenizer.rewritten) > 0 and pre_tokenizer.rewritten[row] >= 0
        if is_rewritten:
            number = pre_tokenizer.rewritten[row]
            text = pre_tokenizer.words
            start = np.uint64(pre_tokenizer.word_bounds[number])
            end = np.uint64(pre_tokenizer.word_bounds[number + 1])
        place = start if position < 0 else np.uint64(position)
        while place < end:
            if written.begun > room or written.used > most:
                if written.begun > written.ended:
                    if is_rewritten:
                        place -= written.used - tokens.starts[written.ended]
                    else:
                        place = _word_start(text, start, place, pre_tokenizer.tables)
                return row, np.int64(place), np.int64(written.ended)
            if is_rewritten:
                place, written = _scan_words(text, place, end, pre_tokenizer, tokens, written)
            else:
                place, written = _scan_chunk(text, place, end, pre_tokenizer, tokens, written)
        if written.begun > written.ended:
            tokens.ends[written.ended] = written.used
            written = Written(written.begun, written.begun, written.used)
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(written.ended)
    return row, np.int64(position), np.int64(written.ended)
