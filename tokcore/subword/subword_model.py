"""A subword vocabulary as a model of the block engine."""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.subword.segmenting_tokens import SubwordState
from tokcore.subword.subtoken_trie import Trie, TrieWalk, build_trie
from tokcore.subword.window_segmenting import WindowSegmenter
from tokcore.text.escaping import ESCAPE_CHARACTERS, alphabet_of, escape_token
from tokcore.text.pre_tokenizer import RowPart
from tokcore.text.unicode_tables import CODE_POINTS


class SubwordModel:
    """A `Model`: tokens are escaped and cut greedily from the left into the longest subtokens."""

    def __init__(self, subtokens: Sequence[str]):
        """Takes the subtokens by id. Of equal ones the last one has its id, empty ones have none."""
        self._subtokens = tuple(subtokens)

    @property
    def size(self) -> int:
        return len(self._subtokens)

    @functools.cached_property
    def state(self) -> SubwordState:
        """The vocabulary as kernels read it, built at first use."""
        # Lone surrogates are characters like others here: any str can be encoded.
        joined = ''.join(self._subtokens).encode('utf-32-le', 'surrogatepass')
        codes = np.frombuffer(joined, np.dtype('<u4'))
        offsets = row_offsets([len(subtoken) for subtoken in self._subtokens])
        trie = Trie(*map(read_only, build_trie(codes, read_only(offsets))))

        alphabet = np.zeros(CODE_POINTS, np.uint8)
        alphabet[codes] = 1
        alphabet[[ord(character) for character in ESCAPE_CHARACTERS]] = 1
        # Always escaped, see `escape_token`.
        alphabet[[ord(character) for character in '\\_\n']] = 0
        bits = np.packbits(alphabet, bitorder='little').view(np.uint64)
        return SubwordState(trie, read_only(bits))

    def workspace(self, tokens: int) -> TrieWalk:
        bounds, id_bounds = (np.empty(tokens + 1, np.uint64) for _ in range(2))
        matches, deeper = (np.empty(tokens, np.uint64) for _ in range(2))
        codes, ids = np.empty(tokens, np.uint32), np.empty(tokens, np.int32)
        return TrieWalk(codes, bounds, matches, deeper, ids, id_bounds)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        return self._windows.segment(part.text, part.start, part.end)

    @functools.cached_property
    def _windows(self) -> WindowSegmenter:
        return WindowSegmenter(self.state, self._subtokens)

    def unspelled(self, token: str, left: int) -> str:
        escaped = escape_token(token, alphabet_of(self._subtokens))
        return (
            f'no subtoken of the vocabulary begins {escaped[-left:]!r}, '
            f'the rest of the token {token!r}; the vocabulary lacks characters of its own '
            'alphabet, so learn another one'
        )
