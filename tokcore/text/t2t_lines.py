"""Tensor2Tensor's rule for lines of text, as `tf.gfile` and it read them.

Every '\\r' is dropped, what is left must be strict UTF-8, and Unicode's white space is stripped at
both ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.normalizer import NormalizedRows
from tokcore.text.sides import Side
from tokcore.text.t2t_line_kernels import drop_returns, strip_rows
from tokcore.text.unicode_tables import whitespace_table
from tokcore.text.utf8_checking import check_rows

_PIECE_BYTES = 1 << 20
"""Looked at together: eight times as much is held for that."""


@dataclass(frozen=True)
class T2tLines:
    """The `Normalizer` of this rule."""

    @property
    def name(self) -> str:
        return 't2t-lines'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def apply(self, rows: Side) -> NormalizedRows:
        """Returns the rows stripped; a '\\r' is dropped within a character too."""
        text = read_only(rows.text)
        starts, ends = read_only(rows.starts), read_only(rows.ends)
        damaged = np.zeros(len(rows), np.uint8)
        returns = check_rows(text, starts, ends, damaged)
        damages = {}
        for row in np.flatnonzero(damaged).tolist():
            damage = find_damage(text[starts[row] : ends[row]].tobytes())
            if damage is None:
                damaged[row] = 0
            else:
                damages[row] = int(starts[row]) + damage
        if returns:
            text, starts, ends = map(read_only, drop_returns(text, starts, ends))
        stripped = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        strip_rows(text, (starts, ends), read_only(damaged), whitespace_table(), stripped)
        return NormalizedRows(Side(text, *stripped), damages)


T2T_LINES = T2tLines()
"""The only one there is: it has no options."""


def find_damage(line: bytes) -> int | None:
    r"""Returns where a line's UTF-8 breaks once every '\r' is dropped, also within a character.

    >>> find_damage(b'a\r\xff')
    2

    None if it does not.
    """
    try:
        line.replace(b'\r', b'').decode()
    except UnicodeDecodeError as error:
        return _place_of_kept(line, error.start)
    return None


def _place_of_kept(line: bytes, index: int) -> int:
    """The place in a line of the byte that has this index once every '\\r' is dropped."""
    for start in range(0, len(line), _PIECE_BYTES):
        is_kept = np.frombuffer(line[start : start + _PIECE_BYTES], np.uint8) != ord('\r')
        kept = int(np.count_nonzero(is_kept))
        if index < kept:
            return start + int(np.flatnonzero(is_kept)[index])
        index -= kept
    return len(line)
