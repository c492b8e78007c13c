"""Tokens of the patterns, found some 60 bytes at a time.

Every byte of a row is of a token, so a token ends where the next one begins. And no pattern looks
back: the tokens from any token's start on are those of the rest by itself.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import popcount, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.text.byte_level.character_classes import CharacterClasses
from tokcore.text.byte_level.class_masks import class_masks
from tokcore.text.byte_level.line_breaks import cl100k_token_end
from tokcore.text.byte_level.token_borders import (
    STRIDE,
    cl100k_borders,
    gpt2_borders,
    nothing_before,
)
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens

_0, _1, _CHUNK, _STRIDE, _AT_ONCE = (np.uint64(each) for each in (0, 1, 64, STRIDE, 8))
_ALL = ~_0


class PatternText(NamedTuple):
    """The state: what characters are, and which pattern it is."""

    classes: CharacterClasses
    is_cl100k: bool  # else GPT-2's


@kernel_without_allocation
def _put_borders(bits, place, tokens, ended):
    """Ends the open token at the first bit and begins others; returns how many have ended."""
    end = ended + popcount(bits)
    while True:
        # Eight whether there are or not, as in `put_places`.
        for k in range(_AT_ONCE):
            border = place + trailing_zeros(bits)
            tokens.ends[ended + k] = border
            tokens.starts[ended + k + _1] = border
            bits &= bits - _1
        ended += _AT_ONCE
        if ended >= end:
            return end


@kernel_without_allocation
def _is_cut_otherwise(masks, left, inside):
    """Whether there are line breaks but at the end of the row, or numbers of several bytes."""
    if masks.breaks | masks.numbers & masks.continued == _0:
        return False
    if masks.numbers & masks.continued != _0 or left > _CHUNK:
        return True
    return inside & ~masks.breaks >= masks.breaks & (~masks.breaks + _1)


@kernel_without_allocation
def _scan_one_by_one(text, stop, row_end, classes, tokens, ended):
    """Ends tokens from the open one on until one begins at `stop` or behind, or the row ends.

    Returns that place, and how many have ended.
    """
    place = tokens.starts[ended]
    while place < stop:
        place = cl100k_token_end(text, place, row_end, classes)
        if place == row_end:
            break
        tokens.ends[ended] = place
        ended += _1
        tokens.starts[ended] = place
    return place, ended


@scan_tokens.register(PatternText)
@kernel_without_allocation
def scan_pattern(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    text, classes = rows.text, pre_tokenizer.classes
    ended = _0
    while row < len(rows.starts):
        start = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        tokens.starts[ended] = place = start
        before, first = nothing_before(), _1
        while place < row_end:
            if ended > room:
                return row, np.int64(tokens.starts[ended]), np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            decided = inside if left <= _CHUNK else (_1 << _STRIDE) - _1
            masks = class_masks(text, place, inside, before, classes)
            if pre_tokenizer.is_cl100k:
                if _is_cut_otherwise(masks, left, inside):
                    stop = min(place + _STRIDE, row_end)
                    place, ended = _scan_one_by_one(text, stop, row_end, classes, tokens, ended)
                    before, first = nothing_before(), _1
                    continue
                borders, before = cl100k_borders(text, place, left, decided, masks, before)
            else:
                borders, before = gpt2_borders(text, place, left, decided, masks, before)
            # The first byte of a row, or of what it is gone on with, is in a token begun already.
            ended = _put_borders(borders & decided & ~first, place, tokens, ended)
            first = _0
            place += _STRIDE if left > _CHUNK else left
        if start < row_end:
            tokens.ends[ended] = row_end
            ended += _1
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)
