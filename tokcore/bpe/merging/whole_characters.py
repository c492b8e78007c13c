"""Characters of several bytes that are one symbol whatever stands beside them.

Byte-level text of other scripts begins as bytes, and most of the work is to make characters of them
again. A character is its symbol from the beginning, with the same result, if nothing could take its
bytes apart before: let r be the largest rank of the merges that make it of its bytes. Then no pair
of what is at its borders meanwhile and any symbol beside it may have a rank up to r, nor may a pair
of the character itself and another. For the lowest rank is merged first, so these merges come
before all that reach across its borders, and those elsewhere do not touch it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.unicode_tables import CODE_POINTS

_NEVER = 1 << 62


def whole_characters(
    characters: Mapping[int, bytes], symbols: Sequence[int], merges: Sequence[tuple[int, int, int]]
) -> np.ndarray:
    """Returns 1 + the symbol of each character that can be taken whole, else 0.

    Args:
        characters: code points with their UTF-8, that may have symbols.
        symbols: 1 + the symbol of each byte, 0 if it has none.
        merges: left, right and what they become, by rank; of equal pairs the last counts.

    int32[0x110000], of which what is not set takes no memory.
    """
    ranks = {(left, right): (rank, new) for rank, (left, right, new) in enumerate(merges)}
    first_as_left: dict[int, int] = {}
    first_as_right: dict[int, int] = {}
    for (left, right), (rank, _) in ranks.items():
        first_as_left[left] = min(rank, first_as_left.get(left, _NEVER))
        first_as_right[right] = min(rank, first_as_right.get(right, _NEVER))
    whole = np.zeros(CODE_POINTS, np.int32)
    for code, coded in characters.items():
        parts = [symbols[byte] - 1 for byte in coded]
        last = -1
        border = _NEVER
        while min(parts) >= 0:
            border = min(
                border,
                first_as_right.get(parts[0], _NEVER),
                first_as_left.get(parts[-1], _NEVER),
            )
            found = [
                (*ranks[pair], place)
                for place, pair in enumerate(zip(parts, parts[1:], strict=False))
                if pair in ranks
            ]
            if not found:
                break
            rank, new, place = min(found, key=lambda each: (each[0], each[2]))
            last = max(last, rank)
            parts[place : place + 2] = [new]
        if len(parts) == 1 and border > last:
            whole[code] = parts[0] + 1
    return read_only(whole)
