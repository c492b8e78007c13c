"""Rows of text to rows of ids, a whole block at once and without Python on the way.

Most tokens of a text were met before, so each encoder keeps the ids of the tokens that it met, in a
bounded table (the memo); a new token is cut over the vocabulary's trie.
"""

import dataclasses
import typing

import numpy as np

from tokcore.corpus.rows import Side, prepend
from tokcore.escaping import alphabet_of, escape_token
from tokcore.subword.encoding_kernels import encode_rows
from tokcore.subword.memo_kernels import ROW_WORDS
from tokcore.token_scanning import alphanumeric_bits, readable_parts

if typing.TYPE_CHECKING:
    from tokcore.subword.encoder import SubwordTextEncoder

DEFAULT_MEMO_BYTES = 8 << 20
"""Some 260,000 tokens."""

_CACHE_LINE = 64


@dataclasses.dataclass(frozen=True)
class EncodedSide:
    """The ids of rows, one after another."""

    ids: np.ndarray
    """int32[sum of the rows' lengths]"""

    offsets: np.ndarray
    """int64[rows + 1]: row r has `ids[offsets[r]:offsets[r + 1]]`."""


def _empty_memo(memo_bytes: int) -> tuple[np.uint64, np.ndarray]:
    """The memo's arguments of `encode_rows`, with at least 2 rows."""
    row_bytes = 8 * ROW_WORDS
    bits = max(1, (memo_bytes // row_bytes).bit_length() - 1)
    memory = np.zeros((row_bytes << bits) + _CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % _CACHE_LINE
    words = memory[begin : begin + (row_bytes << bits)].view(np.uint64)
    return np.uint64(64 - bits), words.reshape(-1, ROW_WORDS)


class SubwordBlockEncoder:
    """Encodes blocks for one thread: the vocabulary's arrays are shared, the memo is its own."""

    def __init__(self, encoder: 'SubwordTextEncoder', memo_bytes: int = DEFAULT_MEMO_BYTES):
        """Takes the vocabulary and about how much memory to remember tokens in.

        A full memo forgets what came once; results do not depend on its size.
        """
        self._encoder = encoder
        arrays = encoder.arrays
        self._tables = (alphanumeric_bits(), arrays.alphabet, arrays.edges, arrays.edge_ids)
        self._memo = _empty_memo(memo_bytes)

    def encode_side(self, side: Side, prefix: str = '', eos: bool = True) -> EncodedSide:
        """Returns the ids of each row, of `prefix` and text as one, with id 1 at the end if `eos`.

        Equal to `encoder.encode(prefix + text)` row by row. Raises ValueError naming the rest of a
        token that no subtoken begins, as `SubwordTextEncoder.encode` does.
        """
        side = prepend(side, prefix)
        # Room that is not written to takes no memory, and text seldom has more ids than this.
        ids = np.empty(len(side.text) // 2 + len(side), np.int32)
        offsets = np.zeros(len(side) + 1, np.int64)
        rows = used = 0
        for text, starts, ends in readable_parts(side.text, side.starts, side.ends):
            ids, used, start, end, missed = encode_rows(
                text, starts, ends, int(eos), *self._tables, *self._memo, ids, used, offsets[rows:]
            )
            if missed:
                raise ValueError(self._missing_subtoken(text[start:end].tobytes(), missed))
            rows += len(starts)
        return EncodedSide(ids[:used], offsets)

    def _missing_subtoken(self, data: bytes, missed: int) -> str:
        token = data.decode('utf-8', 'surrogatepass')
        escaped = escape_token(token, alphabet_of(self._encoder.subtokens))
        return (
            f'no subtoken of the vocabulary begins {escaped[-missed:]!r}, '
            f'the rest of the token {token!r}'
        )
