"""The subtokens of one vocabulary, put in order and written out only when they are first read.

A search looks at the sizes of ten vocabularies and takes one.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.learning.ranked_text import EscapedText


class Subtokens(Sequence[str]):
    """Reserved tokens, then kept strings and characters by count and string, both descending.

    Equal to a tuple of the same strings, and to another sequence of its kind.

    Args:
      places: int[kept], where each kept string stands in the text.
      lengths: int32[kept].
      counts: int64[kept], what each is ordered by.
      left_over: int64[letters], the same for the characters of the alphabet.
    """

    def __init__(
        self,
        reserved: tuple[str, ...],
        text: EscapedText,
        places: np.ndarray,
        lengths: np.ndarray,
        counts: np.ndarray,
        left_over: np.ndarray,
    ):
        letters = len(text.alphabet)
        self._reserved, self._text = reserved, text
        # A character may stand nowhere in the text: its place is its rank, complemented.
        self._places = np.concatenate([places, ~np.arange(letters)])
        self._lengths = np.concatenate([lengths, np.ones(letters, np.int32)])
        self._counts = np.concatenate([counts, left_over])

    def __len__(self) -> int:
        return len(self._reserved) + len(self._places)

    def __getitem__(self, index):
        return self._strings[index]

    def __iter__(self):
        return iter(self._strings)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (tuple, Subtokens)):
            return len(self) == len(other) and self._strings == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._strings)

    def __repr__(self) -> str:
        return f'Subtokens{self._strings}'

    @cached_property
    def _strings(self) -> tuple[str, ...]:
        text = self._text
        order = _descending(text, self._places, self._lengths, self._counts)
        places, lengths = self._places[order], self._lengths[order]
        code_points = np.empty(int(lengths.sum()), np.uint32)
        _write_strings(
            text.ranks, text.alphabet, read_only(places), read_only(lengths), code_points
        )
        joined = code_points.astype('<u4', copy=False).tobytes().decode('utf-32-le')
        ends = np.cumsum(lengths).tolist()
        return self._reserved + tuple(map(joined.__getitem__, map(slice, [0, *ends], ends)))


def _descending(
    text: EscapedText, places: np.ndarray, lengths: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Returns the order by count and string, both descending; the strings differ."""
    bits = len(text.alphabet).bit_length()
    packed = 63 // bits
    order = np.argsort(-counts, kind='stable')
    ordered = counts[order]
    # Whether each is tied with the one before, as far as compared.
    tied = np.append(False, ordered[1:] == ordered[:-1])
    begin = 0
    while tied.any():
        among = np.flatnonzero(tied | np.append(tied[1:], False))
        group = np.cumsum(~tied)[among]
        members = order[among]
        keys = np.empty(len(members), np.int64)
        _pack_strings(
            text.ranks,
            read_only(places[members]),
            read_only(lengths[members]),
            begin,
            packed,
            bits,
            keys,
        )
        inside = np.lexsort((-keys, group))
        order[among] = members[inside]
        keys = keys[inside]
        tied[among[1:]] &= keys[1:] == keys[:-1]
        begin += packed
    return order


@kernel_without_allocation
def _pack_strings(ranks, places, lengths, begin, packed, bits, keys):
    """Packs characters of each string from `begin` on, as rank + 1; zeros stand behind its end."""
    for i in range(len(places)):
        key = 0
        for j in range(begin, begin + packed):
            key <<= bits
            if j < lengths[i]:
                key |= 1 + (np.int64(ranks[places[i] + j]) if places[i] >= 0 else ~places[i])
        keys[i] = key


@kernel_without_allocation
def _write_strings(ranks, alphabet, places, lengths, code_points):
    """Writes strings one after another."""
    written = 0
    for i in range(len(places)):
        if places[i] < 0:
            code_points[written] = alphabet[~places[i]]
            written += 1
            continue
        for j in range(places[i], places[i] + lengths[i]):
            code_points[written] = alphabet[ranks[j]]
            written += 1
