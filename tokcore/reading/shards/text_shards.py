"""Rows as lines of pieces: what toolkits for machine translation read.

Pieces stand between blanks (U+0020); white space in one is escaped, see `text.whitespace.piece_text`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import pick_ranges, row_offsets
from tokcore.text.whitespace.piece_text import escape_piece


class PieceLines:
    """Writes rows of ids as lines of pieces; threads can share it."""

    def __init__(self, pieces: Sequence[str], escapes: bool = True):
        """Takes the pieces by id.

        Args:
            pieces: none has a U+0020 or a line feed in it unless it is escaped.
            escapes: whether white space in pieces is escaped: not in subword-nmt's lines.
        """
        shown = map(escape_piece, pieces) if escapes else pieces
        coded = [piece.encode('utf-8', 'surrogatepass') for piece in shown]
        # A piece is followed by a blank, or the last of a line by its end; one more is an empty line.
        ended = [*(piece + b' ' for piece in coded), *(piece + b'\n' for piece in coded), b'\n']
        self._size = len(coded)
        self._text = read_only(np.frombuffer(b''.join(ended), np.uint8))
        offsets = row_offsets([len(each) for each in ended])
        self._starts, self._ends = offsets[:-1].copy(), offsets[1:].copy()

    def lines(self, ids: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Returns the lines of rows, UTF-8, with line feeds.

        Args:
            ids: int32, of all rows.
            offsets: int64[rows + 1].
        """
        has_ids = np.diff(offsets) > 0
        sizes = np.maximum(np.diff(offsets), 1)
        marked = np.full(int(sizes.sum()), 2 * self._size, np.int64)
        marked[np.repeat(has_ids, sizes)] = ids[offsets[0] : offsets[-1]]
        marked[row_offsets(sizes)[1:][has_ids] - 1] += self._size
        starts, ends = read_only(self._starts[marked]), read_only(self._ends[marked])
        return pick_ranges(self._text, starts, ends)[0]
