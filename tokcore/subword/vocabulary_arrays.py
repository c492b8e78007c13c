"""A subword vocabulary as arrays, the form in which kernels read it.

The subtokens are a trie over UTF-8 bytes: matching bytes is matching characters, since subtokens are
whole characters. Its edges are one open-addressing table of integers.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tokcore.compilation import frozen
from tokcore.escaping import alphabet_of
from tokcore.subword.trie_kernels import MAX_NODES, build_trie
from tokcore.unicode_tables import CODE_POINTS


@dataclasses.dataclass(frozen=True)
class VocabularyArrays:
    """What encoding reads of a vocabulary; read-only, so that threads can share it."""

    edges: np.ndarray
    """int64[power of two]: `(parent << 8 | byte) << 27 | child` where an edge is, else 0."""

    node_ids: np.ndarray
    """int32[nodes]: the id of the subtoken that ends at a node, or -1; node 0 is the root."""

    alphabet: np.ndarray
    """uint8[0x110000]: 1 for each code point that is written as itself, 0 where it is escaped."""

    @classmethod
    def from_subtokens(cls, subtokens: Sequence[str]) -> 'VocabularyArrays':
        """Builds the arrays; of equal subtokens the last one's id counts, empty ones have none."""
        # 'surrogatepass' gives lone surrogates three bytes like their neighbours: any str encodes.
        encoded = [subtoken.encode('utf-8', 'surrogatepass') for subtoken in subtokens]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
        if offsets[-1] >= MAX_NODES:
            raise ValueError(f'the subtokens have {offsets[-1]} bytes, more than {MAX_NODES - 1}')
        data = np.frombuffer(b''.join(encoded), np.uint8)
        edges, node_ids = build_trie(data, frozen(offsets))

        alphabet = np.zeros(CODE_POINTS, np.uint8)
        alphabet[[ord(character) for character in alphabet_of(subtokens)]] = 1
        alphabet[ord('\n')] = 0  # always escaped, see `escape_token`
        return cls(frozen(edges), frozen(node_ids), frozen(alphabet))
