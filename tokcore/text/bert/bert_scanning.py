"""BERT's tokens of rows: written to a buffer, chunk by chunk, of which they are slices."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import inlined_kernel, kernel_without_allocation
from tokcore.compiled.ragged_bytes import copy_bytes
from tokcore.compiled.wide_loads import load_word
from tokcore.text.bert.bert_chunks import Written, action_of, scan_characters, scan_chunk
from tokcore.text.bert.bert_tables import BORDER, BertTables
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens

SOFT_BYTES = 64 << 10
"""Of the buffer are used at once, and stay in a core's cache, but for a token that is longer."""

_SOFT = np.uint64(SOFT_BYTES)
_0, _1 = np.uint64(0), np.uint64(1)


class KnownRows(NamedTuple):
    """Rows whose tokens are known: row r has those from `row_tokens[number]` on, up to the next."""

    numbers: np.ndarray  # int64[rows]: number of each row, or -1; of no length where none is known
    row_tokens: np.ndarray  # int64[known rows + 1]
    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[tokens + 1]: token i is text[offsets[i]:offsets[i + 1]]


class BertText(NamedTuple):
    """The state: what becomes of characters, and what is not looked up."""

    tables: BertTables
    lowering: np.uint8  # 0x20 if capitals are lowered, else 0
    buffer: np.ndarray  # uint8: the tokens of a call
    known: KnownRows
    special_starts: np.ndarray  # uint64[...]: of tokens in the rows' text that stay as they are
    special_ends: np.ndarray  # uint64[...]: and their ends


@kernel_without_allocation
def _word_start(text, start, place, tables):
    """Where the word began that is open at a place; nothing before `start` is of it."""
    while place > start:
        before = place - _1
        while text[before] & 0xC0 == 0x80:
            before -= _1
        if action_of(tables, load_word(text, before)) & np.uint64(BORDER):
            break
        place = before
    return place


@kernel_without_allocation
def _put_token(text, start, end, buffer, tokens, written):
    """Writes a token as it stands, once an open one is ended; returns `Written`."""
    begun, ended, used = written
    tokens.ends[ended] = used
    tokens.starts[begun] = used
    copy_bytes(buffer, used, text, start, end - start)
    used += end - start
    tokens.ends[begun] = used
    return Written(begun + _1, begun + _1, used)


@kernel_without_allocation
def _put_known(row, position, state, tokens, written):
    """Writes the tokens of a row that are known, from one on, while there is room.

    Returns the position, -1 behind the last, and `Written`.
    """
    known = state.known
    number = known.numbers[row]
    token = known.row_tokens[number] + max(position, 0)
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    while token < known.row_tokens[number + 1]:
        if written.begun >= room or written.used > _SOFT:
            return token - known.row_tokens[number], written
        start, end = np.uint64(known.offsets[token]), np.uint64(known.offsets[token + 1])
        written = _put_token(known.text, start, end, state.buffer, tokens, written)
        token += 1
    return np.int64(-1), written


@inlined_kernel
def _put_looked_up(rows, row, position, state, tokens, written):
    """Writes the tokens of a row from a position on, while there is room; as `_put_known`."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    start, end = np.uint64(rows.starts[row]), np.uint64(rows.ends[row])
    place = start if position < 0 else np.uint64(position)
    special = np.searchsorted(state.special_starts, place)
    while place < end:
        begun, ended, used = written
        if begun == _0:
            written = Written(_0, _0, _0)
        elif begun > room or (used > _SOFT and ended > _0):
            if begun > ended:
                if special:
                    start = max(start, state.special_ends[special - 1])
                place = _word_start(rows.text, start, place, state.tables)
            return np.int64(place), Written(ended, ended, used)
        stop = end
        if special < len(state.special_starts):
            stop = min(end, state.special_starts[special])
        if stop == place:
            place = state.special_ends[special]
            written = _put_token(rows.text, stop, place, state.buffer, tokens, written)
            special += 1
        else:
            place, stop, written = scan_chunk(rows.text, place, stop, state, tokens, written)
            place, written = scan_characters(rows.text, place, stop, state, tokens, written)
    tokens.ends[written.ended] = written.used
    return np.int64(-1), Written(written.begun, written.begun, written.used)


@scan_tokens.register(BertText)
@kernel_without_allocation
def scan_bert_words(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the buffer.

    A position is a place in the text, or of a row whose tokens are known the number of one.
    """
    written = Written(_0, _0, _0)
    numbers = pre_tokenizer.known.numbers
    while row < len(rows.starts):
        if len(numbers) > 0 and numbers[row] >= 0:
            stopped, written = _put_known(row, position, pre_tokenizer, tokens, written)
        else:
            stopped, written = _put_looked_up(rows, row, position, pre_tokenizer, tokens, written)
        if stopped >= 0:
            return row, stopped, np.int64(written.ended)
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(written.ended)
    return row, np.int64(position), np.int64(written.ended)
