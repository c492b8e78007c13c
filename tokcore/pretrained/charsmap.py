"""SentencePiece's `precompiled_charsmap`: strings and what replaces them, in a double array.

The layout is a number of bytes (uint32, little-endian), so many bytes of the double array of Darts,
and the replacements, each of which ends with a zero byte. A unit of the array is a uint32: its label
in bits 0 to 7 and 31, whether a string ends at it in bit 8, and the offset of its children in bits
10 to 30, times 256 if bit 9 is set. The child of node n by a byte is unit n ^ offset ^ byte, if that
has the byte as its label; the child by zero has the place of the replacement.

SentencePiece replaces the longest string at each place. `tokenizers` goes through the text by
grapheme clusters: of a cluster of up to five bytes the shortest string at its start replaces the
whole cluster; otherwise characters are replaced one by one, each by the shortest string too.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import regex

from tokcore.kernels.jit import kernel_without_allocation, read_only

_LABEL = np.uint32((1 << 31) | 0xFF)
_LARGEST_CLUSTER = 5  # bytes
_CACHED = 1 << 16  # clusters
_CLUSTERS = regex.compile(r'\X')


class Charsmap(NamedTuple):
    """The double array and the replacements; arrays are read-only."""

    units: np.ndarray  # uint32[units]; none if nothing is replaced
    replacements: np.ndarray  # uint8[bytes]


def parse_charsmap(data: bytes) -> Charsmap | None:
    """Returns the strings and their replacements, or None if the data is damaged."""
    if not data:
        return Charsmap(read_only(np.empty(0, np.uint32)), read_only(np.empty(0, np.uint8)))
    size = int.from_bytes(data[:4], 'little')
    if len(data) <= 4 or not 0 < size < len(data) - 3 or size % 4:
        return None
    units = np.frombuffer(data, '<u4', size // 4, 4).astype(np.uint32)
    replacements = np.frombuffer(data, np.uint8, offset=4 + size).copy()
    try:
        replacements.tobytes().decode()
    except UnicodeDecodeError:
        return None
    # So no walk leaves the arrays.
    nodes = np.arange(len(units), dtype=np.uint32)
    is_node = units >> np.uint32(31) == 0
    base = nodes ^ _offsets(units)
    if (base[is_node] | np.uint32(0xFF)).max(initial=0) >= len(units):
        return None
    ends = base[is_node & (units >> np.uint32(8) & np.uint32(1) == 1)]
    values = units[ends] & np.uint32((1 << 31) - 1)
    if values.max(initial=0) >= max(1, len(replacements)):
        return None
    return Charsmap(read_only(units), read_only(replacements))


def _offsets(units: np.ndarray) -> np.ndarray:
    return (units >> np.uint32(10)) << ((units & np.uint32(1 << 9)) >> np.uint32(6))


def sizes_of_unchanged(charsmap: Charsmap) -> np.ndarray:
    """Returns the bytes of characters that SentencePiece does not replace, by their first byte.

    uint8[256]: 0 if the charsmap has a string for that byte to begin. A byte of ASCII has 1 also if each
    of these strings goes on with another character than of ASCII; then that must not follow.
    """
    sizes = np.zeros(256, np.uint8)
    for first, size in ((0, 1), (0xC0, 2), (0xE0, 3), (0xF0, 4)):
        sizes[first:] = size
    sizes[0x80:0xC0] = 0  # not the first byte of a character
    units = charsmap.units
    if not len(units):
        return sizes
    labels = np.arange(256, dtype=np.uint32)
    nodes = _offsets(units[:1])[0] ^ labels
    has_strings = units[nodes] & _LABEL == labels
    sizes[has_strings & (labels >= 0x80)] = 0
    for byte in np.flatnonzero(has_strings[:0x80]).tolist():
        unit = units[nodes[byte]]
        children = nodes[byte] ^ _offsets(unit) ^ labels[1:0x80]
        if (
            unit >> np.uint32(8) & np.uint32(1)
            or (units[children] & _LABEL == labels[1:0x80]).any()
        ):
            sizes[byte] = 0
    return sizes


class ClusterReplacements:
    """What `tokenizers` makes of text with a charsmap."""

    def __init__(self, charsmap: Charsmap):
        """Takes the strings and their replacements."""
        self._charsmap = charsmap
        self._replaced = functools.lru_cache(_CACHED)(self._of_cluster)
        self._plain = frozenset(
            chr(code) for code in range(128) if self._replaced(chr(code)) == chr(code)
        )

    def __reduce__(self) -> tuple[type, tuple[Charsmap]]:
        return type(self), (self._charsmap,)

    def __call__(self, text: str) -> str:
        """Returns the text with its replacements."""
        if text.isascii() and self._plain.issuperset(text):
            return text
        return ''.join(map(self._replaced, _CLUSTERS.findall(text)))

    def _of_cluster(self, cluster: str) -> str:
        if len(cluster.encode('utf-8', 'surrogatepass')) <= _LARGEST_CLUSTER:
            replaced = self._shortest(cluster)
            if replaced is not None:
                return replaced
        replacements = map(self._shortest, cluster)
        return ''.join(
            character if new is None else new
            for character, new in zip(cluster, replacements, strict=True)
        )

    def _shortest(self, text: str) -> str | None:
        """Returns the replacement of the shortest string that the text begins with, or None."""
        units = self._charsmap.units
        if not len(units):
            return None
        node = int(_offsets(units[:1])[0])
        for byte in text.encode('utf-8', 'surrogatepass'):
            if byte == 0:
                return None
            node ^= byte
            unit = int(units[node])
            if unit & int(_LABEL) != byte:
                return None
            node ^= (unit >> 10) << ((unit & (1 << 9)) >> 6)
            if unit >> 8 & 1:
                place = int(units[node]) & ((1 << 31) - 1)
                data = self._charsmap.replacements[place:].tobytes()
                return data[: data.index(0)].decode() if 0 in data else data.decode()
        return None


@kernel_without_allocation
def longest_replacement(text, place, end, charsmap):
    """Returns the end of the longest string at text[place:end], and where its replacement is.

    The end is the place (uint64) if there is none.
    """
    units = charsmap.units
    found, value = place, np.uint64(0)
    if len(units) == 0:
        return found, value
    unit = np.uint64(units[0])
    node = _offset(unit)
    while place < end:
        byte = np.uint64(text[place])
        node ^= byte
        unit = np.uint64(units[node])
        if unit & np.uint64((1 << 31) | 0xFF) != byte or byte == np.uint64(0):
            break
        node ^= _offset(unit)
        place += np.uint64(1)
        if unit >> np.uint64(8) & np.uint64(1):
            found, value = place, np.uint64(units[node]) & np.uint64((1 << 31) - 1)
    return found, value


@kernel_without_allocation
def _offset(unit):
    return (unit >> np.uint64(10)) << ((unit & np.uint64(1 << 9)) >> np.uint64(6))
