"""Rows of ids as lines of pieces, empty rows too."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.reading.shards.text_shards import PieceLines

PIECES = ['a', 'é中', '', 'b c', '\\32;']
SHOWN = ['a', 'é中', '', 'b\\32;c', '\\92;32;']


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.lists(st.integers(0, len(PIECES) - 1), max_size=5), max_size=6))
def test_lines(rows):
    ids = np.array([id_ for row in rows for id_ in row], np.int32)
    text = PieceLines(PIECES).lines(ids, row_offsets([len(row) for row in rows]))
    assert text.tobytes().decode() == ''.join(' '.join(SHOWN[id_] for id_ in row) + '\n' for row in rows)
    plain = PieceLines(PIECES, escapes=False).lines(ids, row_offsets([len(row) for row in rows]))
    assert plain.tobytes().decode() == ''.join(' '.join(PIECES[id_] for id_ in row) + '\n' for row in rows)
