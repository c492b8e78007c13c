"""A subword vocabulary as arrays, the form in which kernels read it."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.encoding.subtoken_trie import build_trie
from tokcore.text.escaping import ESCAPE_CHARACTERS
from tokcore.text.unicode_tables import CODE_POINTS


@dataclasses.dataclass(frozen=True)
class VocabularyArrays:
    """What encoding reads of a vocabulary; read-only, so that threads can share it."""

    edges: np.ndarray
    """uint64[...]: the trie of the subtokens, see `subtoken_trie`."""

    edge_ids: np.ndarray
    """int32[...]: the ids of the subtokens that end at the edges."""

    alphabet: np.ndarray
    """uint64[0x110000 / 64]: bit c % 64 of word c // 64 says that code point c is written as
    itself; the others are escaped."""

    @classmethod
    def from_subtokens(cls, subtokens: Sequence[str]) -> 'VocabularyArrays':
        """Builds the arrays; of equal subtokens the last one's id counts, empty ones have none."""
        # Lone surrogates are characters like others here: any str can be encoded.
        joined = ''.join(subtokens).encode('utf-32-le', 'surrogatepass')
        codes = np.frombuffer(joined, np.dtype('<u4'))
        offsets = row_offsets([len(subtoken) for subtoken in subtokens])
        edges, edge_ids = build_trie(codes, read_only(offsets))

        alphabet = np.zeros(CODE_POINTS, np.uint8)
        alphabet[codes] = 1
        alphabet[[ord(character) for character in ESCAPE_CHARACTERS]] = 1
        # Always escaped, see `escape_token`.
        alphabet[[ord(character) for character in '\\_\n']] = 0
        bits = np.packbits(alphabet, bitorder='little').view(np.uint64)
        return cls(read_only(edges), read_only(edge_ids), read_only(bits))
