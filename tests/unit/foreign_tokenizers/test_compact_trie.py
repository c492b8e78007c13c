"""The compact trie has the pieces, and their ids, and no others."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.foreign_tokenizers.compact_trie import (
    ROOT,
    compact_trie,
    has_label,
    has_piece,
    next_entry,
)

PIECES = st.dictionaries(st.text('ab\0é字😀', min_size=1, max_size=5), st.integers(0, 1 << 30))


def found(trie, text):
    """The id of a text that is a piece; None for another."""
    cell, entry = ROOT, np.uint64(trie.cells[ROOT])
    for byte in np.frombuffer(text.encode(), np.uint8):
        cell, entry = next_entry(trie.cells, entry, byte)
        if not has_label(entry, byte):
            return None
    return int(trie.ids[cell]) if has_piece(entry) else None


@given(PIECES, st.lists(st.text('ab\0é字😀', max_size=6)))
@example({}, ['', 'a', '\0'])
@example({'\0': 5, 'a\0': 6}, ['a', '\0', '\0\0', 'a\0'])
def test_pieces_are_found(pieces, others):
    trie = compact_trie(pieces.items())
    for text in [*pieces, *others]:
        assert found(trie, text) == pieces.get(text)


def test_nodes_of_many_children():
    pieces = {chr(0x4E00 + number) + chr(97 + number % 26): number for number in range(3000)}
    pieces |= {first + second: 0 for first in 'abcdefghij' for second in map(chr, range(128))}
    trie = compact_trie(pieces.items())
    assert {text: found(trie, text) for text in pieces} == pieces
    assert found(trie, '\u4e00') is None
    assert trie.cells.dtype == np.uint32
