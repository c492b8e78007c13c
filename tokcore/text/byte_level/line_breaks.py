"""One token of cl100k's pattern after another, where line breaks or numbers of many bytes are.

What follows white space decides there how it is cut, however far away that is. So each alternative
of the pattern is tried in its turn.
"""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word
from tokcore.text.byte_level.character_classes import LETTER, NUMBER, SPACE, class_of
from tokcore.text.byte_level.token_borders import contraction_size
from tokcore.text.utf8 import decode_word

_0, _1 = np.uint64(0), np.uint64(1)
_LETTER, _NUMBER, _SPACE = np.uint64(LETTER), np.uint64(NUMBER), np.uint64(SPACE)
_OTHER = _0
_END = np.uint64(8)
_BYTE = np.uint64(0xFF)
_APOSTROPHE, _BLANK, _CR, _LF = (np.uint64(ord(each)) for each in "' \r\n")
_ALL = np.uint64(2**64 - 1)


@kernel_without_allocation
def _character(text, place, end, classes):
    """The class of the character at a place, and where it ends; at the end `_END`."""
    if place >= end:
        return _END, place
    word = load_word(text, place)
    lead = word & _BYTE
    size = _1
    if lead >= np.uint64(0x80):
        size = np.uint64(2)
        if lead >= np.uint64(0xE0):
            size = np.uint64(4) if lead >= np.uint64(0xF0) else np.uint64(3)
    return class_of(classes, decode_word(word)), place + size


@kernel_without_allocation
def _run_end(text, place, end, kind, most, classes):
    """Where a run of one class ends, of so many characters at most."""
    while most > _0:
        found, behind = _character(text, place, end, classes)
        if found != kind:
            break
        place = behind
        most -= _1
    return place


@kernel_without_allocation
def _is_break(byte):
    return byte == np.uint8(_CR) or byte == np.uint8(_LF)


@kernel_without_allocation
def _space_end(text, place, end, classes):
    """Where a token ends that begins with white space, which nothing behind it is joined to."""
    last, behind_break, at = place, place, place
    while True:
        kind, behind = _character(text, at, end, classes)
        if kind != _SPACE:
            break
        last = at
        if _is_break(text[at]):
            behind_break = behind
        at = behind
    if at == end:
        return end
    if behind_break > place:
        return behind_break
    return last if last > place else at


@kernel_without_allocation
def cl100k_token_end(text, place, end, classes):
    """Where the token ends that begins at a place of a row, which ends at `end`."""
    byte = np.uint64(text[place])
    if byte == _APOSTROPHE:
        size = contraction_size(load_word(text, place), end - place, True)
        if size != _0:
            return place + size
    kind, behind = _character(text, place, end, classes)
    if kind == _NUMBER:
        return _run_end(text, place, end, _NUMBER, np.uint64(3), classes)
    following, _ = _character(text, behind, end, classes)
    if kind == _LETTER or (following == _LETTER and not _is_break(text[place])):
        return _run_end(text, behind, end, _LETTER, _ALL, classes)
    if kind == _OTHER or (byte == _BLANK and following == _OTHER):
        place = _run_end(text, behind, end, _OTHER, _ALL, classes)
        while place < end and _is_break(text[place]):
            place += _1
        return place
    return _space_end(text, place, end, classes)
