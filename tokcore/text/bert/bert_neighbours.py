"""Rows whose characters act on each other: tables of single characters do not tell their tokens.

Normalizing sorts marks by their combining class and joins some to what stands before them. Text in
which all are in order and nothing can join is in its form already, as most text is: see the quick
check of Unicode's UAX #15.
"""

import numpy as np

from tokcore.compiled.byte_masks import byte_range_mask, trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation
from tokcore.compiled.wide_loads import load_word
from tokcore.text.bert.bert_chunks import action_place, character_size
from tokcore.text.bert.bert_tables import ALWAYS, ASKING, BORDER, WRITTEN
from tokcore.text.utf8 import decode_word, ideograph_mask

_0, _1 = np.uint64(0), np.uint64(1)
_CHUNK, _BYTE = np.uint64(64), np.uint64(0xFF)


@kernel_without_allocation
def _class_before(text, behind, place, tables, last):
    """The combining class before a place, `last` being that of what ends at `behind`.

    What is dropped between them parts nothing; only the first character is looked at.
    """
    if behind < place:
        action = tables.actions[action_place(tables, decode_word(load_word(text, behind)))]
        if action & (WRITTEN | BORDER):
            return _0
    return last


@kernel_without_allocation
def is_out_of_order(text, start, end, tables):
    """Whether normalizing may do more to text[start:end] than to each of its characters."""
    last, behind = _0, start
    while start < end:
        inside = ~_0 >> (_CHUNK - min(end - start, _CHUNK))
        leads = byte_range_mask(text, start, 0xC0, 0xFF) & inside
        if leads != _0 and tables.ideograph:
            leads &= ~ideograph_mask(text, start)
        while leads != _0:
            place = start + trailing_zeros(leads)
            leads &= leads - _1
            if not tables.asking[text[place]]:
                continue
            word = load_word(text, place)
            found = action_place(tables, decode_word(word))
            if tables.actions[found] & ASKING:
                classes = np.uint64(tables.classes[found])
                if classes == ALWAYS:
                    return True
                first = classes & _BYTE
                if first and _class_before(text, behind, place, tables, last) > first:
                    return True
                last, behind = classes >> np.uint64(8), place + character_size(word)
        start += _CHUNK
    return False


@kernel_without_allocation
def find_out_of_order(text, starts, ends, tables, found):
    """Sets `found` (uint8[rows], 0 at first) to 1 for rows that are not done by tables."""
    for row in range(len(starts)):
        found[row] = is_out_of_order(text, np.uint64(starts[row]), np.uint64(ends[row]), tables)
