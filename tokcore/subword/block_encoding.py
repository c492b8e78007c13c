"""Rows of text to rows of ids, a whole block at once and without Python on the way.

Most tokens of a text were met before, so each encoder keeps the ids of the tokens that it met, in a
bounded table (the memo); a new token is cut over the vocabulary's trie.
"""

import dataclasses
import typing

import numpy as np

from tokcore.compilation import frozen
from tokcore.corpus.rows import Side, prepend
from tokcore.escaping import alphabet_of, escape_token
from tokcore.pretokenization import token_class_tables, tokenize
from tokcore.subword.encoding_kernels import (
    DONE,
    NO_ROOM_TO_ESCAPE,
    NO_SUBTOKEN,
    encode_rows,
)
from tokcore.subword.memo_kernels import (
    ALL_HASH_BITS,
    ENTRY_WORDS,
    IDS_MARGIN,
    LONGEST_REMEMBERED,
    MAX_GROWTH,
    WORD,
)

if typing.TYPE_CHECKING:
    from tokcore.subword.encoder import SubwordTextEncoder

DEFAULT_MEMO_BYTES = 32 << 20
"""Some 260,000 tokens. English documentation is encoded up to 20 % slower with half of it; Chinese,
where most tokens are new and memory is touched for nothing, 10 % faster with a quarter."""

_SLOT_BYTES = 40  # a word of the index, half an entry, 8 bytes of long tokens, 2 ids of many


@dataclasses.dataclass(frozen=True)
class EncodedSide:
    """The ids of rows, one after another."""

    ids: np.ndarray
    """int32[sum of the rows' lengths]"""

    offsets: np.ndarray
    """int64[rows + 1]: row r has `ids[offsets[r]:offsets[r + 1]]`."""


def _empty_memo(memo_bytes: int) -> tuple:
    """The memo's arguments of `encode_rows`, with at least 16 slots."""
    slots = 1 << max(4, (memo_bytes // _SLOT_BYTES).bit_length() - 1)
    return (
        np.zeros(slots, np.uint64),
        np.empty((slots // 2, ENTRY_WORDS), np.uint64),
        np.empty(slots * 8, np.uint8),
        np.empty(slots * 2, np.int32),
        np.zeros(3, np.int64),
        ALL_HASH_BITS,
    )


def _padded(side: Side) -> np.ndarray:
    """The side's text with so many bytes behind the rows that a word can be read at any token."""
    end = int(side.ends.max(initial=0))
    if end + WORD <= len(side.text):
        return side.text
    return np.concatenate([side.text[:end], np.zeros(WORD, np.uint8)])


class SubwordBlockEncoder:
    """Encodes blocks for one thread: the vocabulary's arrays are shared, the memo is its own."""

    def __init__(self, encoder: 'SubwordTextEncoder', memo_bytes: int = DEFAULT_MEMO_BYTES):
        """Takes the vocabulary and about how much memory to remember tokens in.

        When the memo is full it is emptied; results do not depend on its size.
        """
        self._encoder = encoder
        arrays = encoder.arrays
        self._tables = (*token_class_tables(), arrays.edges, arrays.alphabet)
        self._memo = _empty_memo(memo_bytes)
        self._escaped = np.empty(MAX_GROWTH * LONGEST_REMEMBERED + 1, np.int32)
        self._ids = np.empty(IDS_MARGIN, np.int32)  # grows to what the largest block takes

    def encode_side(self, side: Side, prefix: str = '', eos: bool = True) -> EncodedSide:
        """Returns the ids of each row, of `prefix` and text as one, with id 1 at the end if `eos`.

        Equal to `encoder.encode(prefix + text)` row by row. Raises ValueError naming the rest of a
        token that no subtoken begins, as `SubwordTextEncoder.encode` does.
        """
        side = prepend(side, prefix)
        text, starts, ends = frozen(_padded(side)), frozen(side.starts), frozen(side.ends)
        offsets = np.zeros(len(starts) + 1, np.int64)
        row, position, used = 0, int(starts[0]) if len(starts) else 0, 0
        while True:
            outcome, row, position, used, amount = encode_rows(
                text, starts, ends, row, position, eos, *self._tables, *self._memo,
                self._escaped, self._ids, used, offsets,
            )  # fmt: skip
            if outcome == DONE:
                return EncodedSide(self._ids[:used].copy(), offsets)
            if outcome == NO_SUBTOKEN:
                rest_of_row = text[position : ends[row]].tobytes()
                raise ValueError(self._missing_subtoken(rest_of_row, amount))
            if outcome == NO_ROOM_TO_ESCAPE:
                self._escaped = np.empty(amount, np.int32)
            else:
                grown = np.empty(max(2 * len(self._ids), used + amount), np.int32)
                grown[:used] = self._ids[:used]
                self._ids = grown

    def _missing_subtoken(self, rest_of_row: bytes, missed: int) -> str:
        token = tokenize(rest_of_row.decode('utf-8', 'surrogatepass'))[0]
        escaped = escape_token(token, alphabet_of(self._encoder.subtokens))
        return (
            f'no subtoken of the vocabulary begins {escaped[-missed:]!r}, '
            f'the rest of the token {token!r}'
        )
