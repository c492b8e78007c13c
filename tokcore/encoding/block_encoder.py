"""Rows of text to rows of ids, a whole block at once and without Python on the way.

Most tokens of a text were met before, so each encoder keeps the ids of the tokens that it met, in a
bounded cache; a new token is segmented over the vocabulary's trie.
"""

import functools
import typing

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.encoding.encoded_rows import EncodedSide, GrowingSide
from tokcore.encoding.encoding_kernels import encode_rows
from tokcore.encoding.long_tokens import WindowSegmenter, row_parts
from tokcore.encoding.row_prefixes import prepend
from tokcore.encoding.scheme import RowEncoder
from tokcore.encoding.token_cache import ROW_WORDS
from tokcore.encoding.vocabulary_arrays import VocabularyArrays
from tokcore.text.escaping import alphabet_of, escape_token
from tokcore.text.sides import Side
from tokcore.text.t2t_scanning import alphanumeric_bits, readable_parts

DEFAULT_CACHE_BYTES = 8 << 20
"""Some 260,000 tokens."""

LONG_ROW_BYTES = 256 << 10
"""Longer rows are encoded in parts, at a hundredth of a second for a megabyte more. What a row of
this length may take at once, should it be one token, is less than a block takes anyhow."""

_UINT16_IDS = 1 << 16
_CACHE_LINE = 64


def _empty_cache(cache_bytes: int) -> tuple[np.uint64, np.ndarray]:
    """The cache's arguments of `encode_rows`, with at least 2 rows."""
    row_bytes = 8 * ROW_WORDS
    bits = max(1, (cache_bytes // row_bytes).bit_length() - 1)
    memory = np.zeros((row_bytes << bits) + _CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % _CACHE_LINE
    words = memory[begin : begin + (row_bytes << bits)].view(np.uint64)
    return np.uint64(64 - bits), words.reshape(-1, ROW_WORDS)


class SubwordVocabulary(typing.Protocol):
    """What blocks are encoded with."""

    @property
    def subtokens(self) -> tuple[str, ...]:
        """The subtokens by id."""

    @property
    def arrays(self) -> VocabularyArrays:
        """The same as kernels read it."""


class SubwordBlockEncoder:
    """Encodes blocks for one thread: the vocabulary's arrays are shared, the cache is its own."""

    def __init__(self, vocabulary: SubwordVocabulary, cache_bytes: int = DEFAULT_CACHE_BYTES):
        """Takes the vocabulary and about how much memory to remember tokens in.

        A full cache forgets what came once; results do not depend on its size.
        """
        self._vocabulary = vocabulary
        arrays = vocabulary.arrays
        self._tables = (alphanumeric_bits(), arrays.alphabet, arrays.edges, arrays.edge_ids)
        self._cache = _empty_cache(cache_bytes)

    def encode_side(
        self, side: Side, prefix: str = '', before: tuple = (), after: tuple = ()
    ) -> EncodedSide:
        eos = bool(after)
        """Returns the ids of each row, of `prefix` and text as one, with id 1 at the end if `eos`.

        They are int32, or uint16 if a row is longer than `LONG_ROW_BYTES` and all ids are below
        65,536. Equal to `encoder.encode(prefix + text)` row by row. Raises ValueError naming the
        rest of a token that no subtoken begins, as `SubwordTextEncoder.encode` does.
        """
        side = prepend(side, prefix)
        encoded = GrowingSide(len(side.text), len(side), self._id_type(side))
        for text, starts, ends in readable_parts(side.text, side.starts, side.ends):
            first = 0
            for row in [*np.flatnonzero(ends - starts > LONG_ROW_BYTES).tolist(), len(starts)]:
                self._encode_rows(text, starts[first:row], ends[first:row], eos, encoded)
                if row < len(starts):
                    self._encode_long_row(text, int(starts[row]), int(ends[row]), eos, encoded)
                first = row + 1
        return encoded.side()

    def _id_type(self, side: Side) -> type[np.integer]:
        # A long row may have five ids for a byte, at four bytes each more than a job may take.
        is_long = (side.ends - side.starts).max(initial=0) > LONG_ROW_BYTES
        is_small = len(self._vocabulary.subtokens) <= _UINT16_IDS
        return np.uint16 if is_long and is_small else np.int32

    def _encode_rows(
        self, text: np.ndarray, starts: np.ndarray, ends: np.ndarray, eos: bool, out: GrowingSide
    ) -> None:
        if out.ids.dtype != np.int32:
            part = GrowingSide(int((ends - starts).sum()), len(starts))
            self._encode_rows(text, starts, ends, eos, part)
            out.add_rows(part)
            return
        out.ids, out.used, start, end, missed = encode_rows(
            text, starts, ends, int(eos), *self._tables, *self._cache, out.ids, out.used,
            out.offsets[out.rows :],
        )  # fmt: skip
        if missed:
            raise ValueError(self._missing_subtoken(text[start:end].tobytes(), missed))
        out.rows += len(starts)

    def _encode_long_row(
        self, text: np.ndarray, start: int, end: int, eos: bool, out: GrowingSide
    ) -> None:
        part = GrowingSide(0, 1)
        for part_start, part_end, is_long_token in row_parts(text, start, end):
            if is_long_token:
                for ids in self._windows.cut(text, part_start, part_end):
                    out.add(ids)
                continue
            bounds = (read_only(np.array([place])) for place in (part_start, part_end))
            part.used = part.rows = 0
            self._encode_rows(text, *bounds, False, part)
            out.add(part.ids[: part.used])
        out.end_row(eos)

    @functools.cached_property
    def _windows(self) -> WindowSegmenter:
        return WindowSegmenter(self._vocabulary.arrays, self._vocabulary.subtokens)

    def _missing_subtoken(self, data: bytes, missed: int) -> str:
        token = data.decode('utf-8', 'surrogatepass')
        escaped = escape_token(token, alphabet_of(self._vocabulary.subtokens))
        return (
            f'no subtoken of the vocabulary begins {escaped[-missed:]!r}, '
            f'the rest of the token {token!r}'
        )


def unspelled_row(
    encoder: RowEncoder, side: Side, prefix: str = ''
) -> tuple[int, ValueError] | None:
    """Returns the first row that no subtokens of a vocabulary spell, and what `encode_side` says.

    It encodes row by row, so it is for a side of which it is known that there is one.
    """
    for row in range(len(side)):
        one = Side(side.text, side.starts[row : row + 1], side.ends[row : row + 1])
        try:
            encoder.encode_side(one, prefix)
        except ValueError as error:
            return row, error
    return None
