r"""Where tokens begin among 64 bytes, by the patterns of GPT-2 and cl100k, as bits.

What a pattern tries in turn at each place comes to this, for runs of one class:

    both      the last character of white space that something follows begins a token, and so does
              white space itself; ' does before letters if no U+0020 is before it, and a contraction
              ends behind its letters, though others follow
    gpt2      letters, numbers and others begin one, save that a U+0020 before them does for them
    cl100k    others begin one, save behind U+0020; letters save behind white space or behind one
              other that begins a token; each third number of a run

White space with a line break in it is cut otherwise by cl100k, see `line_breaks`; at the end of a
row it is one token, but for line breaks right behind others, which are theirs.
"""

from typing import NamedTuple

import numpy as np

from tokcore.compiled.byte_masks import trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word

_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_8, _16 = np.uint64(8), np.uint64(16)
_BYTE, _TWO_BYTES = np.uint64(0xFF), np.uint64(0xFFFF)
_S, _D, _M, _T = (np.uint64(ord(each)) for each in 'sdmt')
# Two letters as they are read, the first one lowest.
_LL, _VE, _RE = (np.uint64(int.from_bytes(each, 'little')) for each in (b'll', b've', b're'))
_LONG_S = np.uint64(int.from_bytes('ſ'.encode(), 'little'))
_LOWER, _LOWER_TWO = np.uint64(0x20), np.uint64(0x2020)

STRIDE = 60
"""Of 64 bytes that more follow, only so many are decided: those behind show what comes next, and a
character has at most four."""

_LAST, _LAST_THREE = np.uint64(STRIDE - 1), np.uint64(STRIDE - 3)
_THREE_BITS = np.uint64(7)


class Before(NamedTuple):
    """What the bytes decided before say of those that follow, uint64 each; 0 at a token's start."""

    letter: np.uint64  # the class of the byte before: 1 or 0
    number: np.uint64
    space: np.uint64
    other: np.uint64
    blank: np.uint64  # it is U+0020
    joining: np.uint64  # letters are one token with the character of the byte before
    numbers: np.uint64  # three bits, the byte before highest: numbers
    thirds: np.uint64  # likewise: where numbers begin tokens
    put: np.uint64  # where contractions end


@kernel_without_allocation
def nothing_before():
    """Returns the `Before` of a token's first byte."""
    return Before(_0, _0, _0, _0, _0, _0, _0, _0, _0)


@kernel_without_allocation
def contraction_size(word, left, any_case):
    """The bytes of the contraction that begins a word of text, 0 if none does.

    `left` is how many bytes of the word are of the row; the first is an apostrophe.
    """
    one, two = word >> _8 & _BYTE, word >> _8 & _TWO_BYTES
    if any_case:
        if two == _LONG_S:
            return _3
        one |= _LOWER
        two |= _LOWER_TWO
    if left >= _2 and (one == _S or one == _T or one == _M or one == _D):
        return _2
    if left >= _3 and (two == _LL or two == _VE or two == _RE):
        return _3
    return _0


@kernel_without_allocation
def _contractions(text, place, left, candidates, any_case):
    """Of apostrophes those that begin contractions, and where within the row these end, as bits."""
    found = ends = _0
    while candidates != _0:
        byte = trailing_zeros(candidates)
        candidates &= candidates - _1
        size = contraction_size(load_word(text, place + byte), left - byte, any_case)
        if size != _0:
            found |= _1 << byte
            if byte + size < left:
                ends |= _1 << (byte + size)
    return found, ends


@kernel_without_allocation
def _last_spaces(masks, nonspaces):
    """Where the last characters of white space begin that something follows."""
    found = masks.spaces & (nonspaces >> _1)
    if masks.continued != _0:
        found = (found & ~masks.continued) | (found & masks.continued) >> _1
        found = (found & ~masks.continued) | (found & masks.continued) >> _1
    return found


@kernel_without_allocation
def _carried(masks, joining, thirds, put):
    return Before(
        masks.letters >> _LAST & _1,
        masks.numbers >> _LAST & _1,
        masks.spaces >> _LAST & _1,
        masks.others >> _LAST & _1,
        masks.blanks >> _LAST & _1,
        joining >> _LAST & _1,
        masks.numbers >> _LAST_THREE & _THREE_BITS,
        thirds >> _LAST_THREE & _THREE_BITS,
        put >> np.uint64(STRIDE),
    )


@kernel_without_allocation
def gpt2_borders(text, place, left, decided, masks, before):
    """Returns the bits of the bytes where tokens begin, and `Before` of the next.

    `masks` are of the bytes at text[place:], where so many are left of the row; the bits in
    `decided` are good.
    """
    behind_letter = masks.letters << _1 | before.letter
    behind_number = masks.numbers << _1 | before.number
    behind_other = masks.others << _1 | before.other
    nonspaces = masks.letters | masks.numbers | masks.others
    behind_space = masks.spaces << _1 | before.space
    behind_blank = masks.blanks << _1 | before.blank
    starts = (
        (masks.letters & ~behind_letter)
        | (masks.numbers & ~behind_number)
        | (masks.others & ~behind_other)
    ) & ~behind_blank
    found, put = _0, before.put
    candidates = masks.apostrophes & starts & masks.letters >> _1 & decided
    if candidates != _0:
        found, ends = _contractions(text, place, left, candidates, False)
        put |= ends
    starts &= ~(masks.letters & (found << _1 | before.joining))
    starts |= masks.spaces & ~behind_space | _last_spaces(masks, nonspaces) | put
    return starts, _carried(masks, found, _0, put)


@kernel_without_allocation
def _thirds(masks, before):
    """Where numbers begin tokens: the first of a run and each third one; a number is one byte."""
    one = masks.numbers << _1 | before.numbers >> _2
    three = masks.numbers << _3 | before.numbers
    found = masks.numbers & ~one
    fourth = masks.numbers & one & (masks.numbers << _2 | before.numbers >> _1) & three
    if fourth != _0:
        more = (found << _3 | before.thirds) & fourth
        while more != _0:
            found |= more
            more = more << _3 & fourth
    return found


@kernel_without_allocation
def cl100k_borders(text, place, left, decided, masks, before):
    """As `gpt2_borders`; the only line breaks are at the row's end, and numbers are one byte."""
    behind_letter = masks.letters << _1 | before.letter
    behind_other = masks.others << _1 | before.other
    behind_space = masks.spaces << _1 | before.space
    nonspaces = masks.letters | masks.numbers | masks.others
    behind_blank = masks.blanks << _1 | before.blank
    others = masks.others & ~behind_other & ~behind_blank
    put = before.put
    candidates = masks.apostrophes & others & masks.letters >> _1 & decided
    if candidates != _0:
        _, ends = _contractions(text, place, left, candidates, True)
        put |= ends
    joining = others | masks.spaces & ~masks.breaks
    if masks.continued != _0:
        # From the first byte of an other to all of them.
        joining |= (joining << _1 | before.joining) & masks.continued
        joining |= (joining << _1 | before.joining) & masks.continued
        joining |= (joining << _1 | before.joining) & masks.continued
    letters = masks.letters & ~behind_letter & ~(joining << _1 | before.joining)
    thirds = _thirds(masks, before)
    spaces = masks.spaces & ~behind_space & ~(masks.breaks & behind_other)
    starts = letters | thirds | others | spaces | _last_spaces(masks, nonspaces) | put
    return starts, _carried(masks, joining, thirds, put)
