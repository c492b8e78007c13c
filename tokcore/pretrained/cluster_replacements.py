"""What `tokenizers` makes of text with a charsmap.

It goes through the text by grapheme clusters: of a cluster of up to five bytes the shortest string at
its start replaces the whole cluster; otherwise characters are replaced one by one, each by the shortest
string too. So a table of characters does it, except where two neighbors of up to five bytes may be of
one cluster and a string begins in the first. Such rows are replaced by `ClusterReplacements.__call__`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import regex

from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.pretrained.charsmap import (
    Charsmap,
    replacement_at,
    shortest_replacement,
    strings_of_characters,
)
from tokcore.text.alignment import AlignedText
from tokcore.text.rewriting import replace_rows
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS, next_character, runs_of
from tokcore.text.unicode_normalization import STAYS, Replacements, write_replaced

_LARGEST_CLUSTER = 5  # bytes
_CACHED = 1 << 16  # clusters
_CLUSTERS = regex.compile(r'\X')

_BEGINS_STRING, _JOINS_LAST, _JOINS_NEXT = 1, 2, 4
_JOINING = {
    # Others that join have three bytes, and so have those that they join.
    r'[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]+': _JOINS_LAST,
    r'[\p{GCB=Prepend}\p{GCB=CR}]+': _JOINS_NEXT,
}
_SAME, _OTHER = -1, -2


class ClusterReplacements:
    """What `tokenizers` makes of text with a charsmap."""

    def __init__(self, charsmap: Charsmap):
        """Takes the strings and their replacements."""
        self._charsmap = charsmap
        self._replaced = functools.lru_cache(_CACHED)(self._of_cluster)

    def __reduce__(self) -> tuple[type, tuple[Charsmap]]:
        return type(self), (self._charsmap,)

    def __call__(self, text: str) -> str:
        """Returns a text with its replacements."""
        return ''.join(map(self._replaced, _CLUSTERS.findall(text)))

    def align(self, text: AlignedText) -> AlignedText:
        """Returns a text with its replacements, which knows where its characters come from."""
        changes: list[tuple[str, int]] = []
        for cluster in _CLUSTERS.findall(text.text):
            for old, new in self._parts(cluster):
                changes += [(each, int(number >= len(old))) for number, each in enumerate(new)]
                if changes and len(new) < len(old):
                    changes[-1] = changes[-1][0], changes[-1][1] + len(new) - len(old)
        return text.changed(changes)

    def by_table(self, side: Side) -> tuple[Side, np.ndarray]:
        """Returns the rows with their replacements, and int64[…]: the numbers of rows that stay to be done."""
        table = self._table
        sizes = np.empty(len(side), np.int64)
        _measure(*side.arrays(), table, sizes)
        changed = np.flatnonzero(sizes >= 0)
        if len(changed):
            offsets = row_offsets(sizes[changed])
            text = np.empty(int(offsets[-1]), np.uint8)
            write_replaced(*side.take(changed).arrays(), table.replacements, offsets, text)
            side = replace_rows(side, changed, Side(text, offsets[:-1], offsets[1:]))
        return side, np.flatnonzero(sizes == _OTHER)

    @functools.cached_property
    def _table(self) -> _Table:
        kinds = np.zeros(CODE_POINTS, np.uint8)
        places = np.full(CODE_POINTS, -1)
        bounds = (0, 0x80, 0x800, 0x10000, CODE_POINTS)
        for size in range(1, 5):
            codes = np.arange(*bounds[size - 1 : size + 1])
            strings = strings_of_characters(codes, size, self._charsmap)
            kinds[codes[strings.begin]] = _BEGINS_STRING
            places[codes] = strings.places
        for expression, kind in _JOINING.items():
            for first, end in runs_of(expression):
                kinds[first:end] |= kind
        numbers = np.full(CODE_POINTS, STAYS, np.int32)
        is_replaced = places >= 0
        distinct, numbers[is_replaced] = np.unique(places[is_replaced], return_inverse=True)
        pool = [replacement_at(self._charsmap, place) for place in distinct.tolist()]
        data = read_only(np.frombuffer(b''.join(pool), np.uint8))
        offsets = read_only(row_offsets(list(map(len, pool))))
        return _Table(read_only(kinds), Replacements(read_only(numbers), offsets, data))

    def _of_cluster(self, cluster: str) -> str:
        return ''.join(new for _, new in self._parts(cluster))

    def _parts(self, cluster: str) -> list[tuple[str, str]]:
        """Returns what is replaced of a cluster, all of it or each character, with what replaces it."""
        if len(cluster.encode('utf-8', 'surrogatepass')) <= _LARGEST_CLUSTER:
            replaced = self._shortest(cluster)
            if replaced is not None:
                return [(cluster, replaced)]
        replacements = map(self._shortest, cluster)
        return [
            (character, character if new is None else new)
            for character, new in zip(cluster, replacements, strict=True)
        ]

    def _shortest(self, text: str) -> str | None:
        data = shortest_replacement(text.encode('utf-8', 'surrogatepass'), self._charsmap)
        return None if data is None else data.decode()


class _Table(NamedTuple):
    """What becomes of each character that is a cluster."""

    kinds: np.ndarray  # uint8[0x110000]: bits
    replacements: Replacements


@kernel_without_allocation
def _measure(text, starts, ends, table, sizes):
    """Fills in the bytes of each row once its characters are replaced.

    int64[rows]: -1 for rows that stay, -2 for those that the table cannot do.
    """
    replacements = table.replacements
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        size, stays = 0, True
        last, last_begins = position, False
        while position < end:
            character, after = next_character(text, position)
            kind = table.kinds[character]
            joins_last = kind & _JOINS_LAST and last_begins and after - last <= _LARGEST_CLUSTER
            if joins_last or (kind & _JOINS_NEXT and after < end):
                size, stays = _OTHER, False
                break
            number = replacements.numbers[character]
            if number >= 0:
                size += replacements.offsets[number + 1] - replacements.offsets[number]
                stays = False
            else:
                size += after - position
            last, last_begins = position, kind & _BEGINS_STRING != 0
            position = after
        sizes[row] = _SAME if stays else size
