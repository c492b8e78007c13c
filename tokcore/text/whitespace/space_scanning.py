"""What stands between white space, found 64 bytes at a time."""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, put_places, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens
from tokcore.text.utf8 import decode_word

_CHUNK = np.uint64(64)
_0, _1 = np.uint64(0), np.uint64(1)
_ALL, _LAST = ~_0, np.uint64(63)


class WhiteSpace(NamedTuple):
    """The state: which characters are between tokens."""

    whitespace: np.ndarray  # uint8[0x110000], `whitespace_table`; of no length: U+0020 alone
    breaks: bool  # whether line feeds and carriage returns are, beside U+0020


@kernel_without_allocation
def _wide_spaces(text, place, inside, carried, whitespace):
    """The bytes of a chunk that belong to white space of several bytes, and those behind it.

    `carried` are the bytes at its beginning that a character before it takes; so is what is returned
    second. Only such characters begin with C2, E1, E2 or E3.
    """
    found = carried
    leads = inside & (
        byte_range_mask(text, place, 0xC2, 0xC2) | byte_range_mask(text, place, 0xE1, 0xE3)
    )
    behind = _0
    while leads != _0:
        byte = trailing_zeros(leads)
        leads &= leads - _1
        word = load_word(text, place + byte)
        if whitespace[decode_word(word)]:
            size = np.uint64(2) if word & np.uint64(0xFF) == np.uint64(0xC2) else np.uint64(3)
            bits = (_1 << size) - _1
            found |= bits << byte
            if byte + size > _CHUNK:
                behind = bits >> (_CHUNK - byte)
    return found, behind


@kernel_without_allocation
def _spaces_of_chunk(text, place, inside, carried, pre_tokenizer):
    """The bytes of a chunk that are white space, and what the next one takes of its last."""
    found = byte_range_mask(text, place, 0x20, 0x20)
    whitespace = pre_tokenizer.whitespace
    if len(whitespace) == 0:
        if pre_tokenizer.breaks:
            found |= byte_range_mask(text, place, 0x0A, 0x0A)
            found |= byte_range_mask(text, place, 0x0D, 0x0D)
        return found, _0
    found |= byte_range_mask(text, place, 0x09, 0x0D) | byte_range_mask(text, place, 0x1C, 0x1F)
    wide, behind = _wide_spaces(text, place, inside, carried, whitespace)
    return found | wide, behind


@scan_tokens.register(WhiteSpace)
@kernel_without_allocation
def scan_words(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    begun = ended = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        carried = _0
        while place < row_end:
            if begun > room:
                if begun > ended:
                    place = tokens.starts[ended]
                return row, np.int64(place), np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            spaces, carried = _spaces_of_chunk(
                rows.text, place, inside, carried, pre_tokenizer
            )
            letters = ~spaces & inside
            before = letters << _1 | np.uint64(begun > ended)
            begun = put_places(letters & ~before, place, tokens.starts, begun)
            ended = put_places(before & ~letters, place, tokens.ends, ended)
            place += min(left, _CHUNK)
        if begun > ended:
            tokens.ends[ended] = row_end
            ended = begun
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)
