"""Words of texts, a mark before each: what WhitespaceSplit and Metaspace of a tokenizer.json do, one after the other."""

from __future__ import annotations

import functools

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.alignment import AlignedText
from tokcore.text.patterns import WHITE_SPACE
from tokcore.text.rows import Side
from tokcore.text.unicode import next_character


def marked_words(side: Side, mark: str) -> Side:
    """Returns the texts without white space, each word with a mark before it unless it begins with one.

    Args:
        side: the texts.
        mark: a character.
    """
    data = np.frombuffer(mark.encode(), np.uint8)
    size = int((side.ends - side.starts).sum())
    most_words = (size + len(side)) // 2  # white space is between two of them
    out = np.empty(size + most_words * len(data), np.uint8)
    ends = np.zeros(len(side) + 1, np.int64)
    _mark_words(*side.arrays(), _spaces(), ord(mark), read_only(data), out, ends)
    return Side(read_only(out[: ends[-1]]), read_only(ends[:-1]), read_only(ends[1:]))


def aligned_words(text: AlignedText, mark: str) -> AlignedText:
    """Does what `marked_words` does with one text that knows where its characters come from."""
    words, spans, is_start = '', [], True
    for character, span in zip(text.text, text.spans, strict=True):
        if character not in WHITE_SPACE:
            added = mark if is_start and character != mark else ''
            words += added + character
            spans += [span] * (len(added) + 1)
        is_start = character in WHITE_SPACE
    return text._replace(text=words, spans=spans)


@functools.cache
def _spaces() -> np.ndarray:
    """Returns uint8[…]: 1 for white space, by code point; what is beyond is none."""
    spaces = np.zeros(ord(max(WHITE_SPACE)) + 1, np.uint8)
    spaces[[*map(ord, WHITE_SPACE)]] = 1
    return read_only(spaces)


@kernel_without_allocation
def _mark_words(text, starts, ends, spaces, mark, mark_bytes, out, out_ends):
    """Writes the words of row r, each with its mark, to out[out_ends[r]:out_ends[r + 1]]."""
    used = np.uint64(0)
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        is_start = True
        while position < end:
            character, after = next_character(text, position)
            if character < len(spaces) and spaces[character]:
                is_start = True
            else:
                if is_start and character != mark:
                    for byte in mark_bytes:
                        out[used] = byte
                        used += np.uint64(1)
                is_start = False
                for place in range(np.uint64(position), np.uint64(after)):
                    out[used] = text[place]
                    used += np.uint64(1)
            position = after
        out_ends[row + 1] = np.int64(used)
