"""A table of distinct tokens and their counts: the result of counting, and a learner's input."""

import dataclasses
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tokcore.counts.counting import TokenAccumulator, is_ascending
from tokcore.kernels.bytes import pick_ranges, read_varints, row_offsets, write_varints
from tokcore.kernels.jit import read_only
from tokcore.kernels.sorting import sort_tokens

# The packed form: magic (its last byte is the version), number of tokens, the tokens' lengths and
# then their counts as LEB128, and the tokens' bytes.
_MAGIC = b'TKT\x01'
_HEADER = struct.Struct('<4sQ')

# Arrow's `string` has 32-bit offsets, so a longer table is split into chunks. Half of the limit,
# since a chunk may be longer by one token.
_CHUNK_BYTES = 1 << 30


@dataclass(frozen=True)
class TokenTable:
    """Distinct tokens and their counts. Token i is `data[offsets[i]:offsets[i + 1]]`.

    The arrays are read-only and contiguous, as kernels take them.

    Examples:
        >>> table = tokcore.TokenTable.from_items([('then', 2), ('the', 3)])
        >>> table.total, list(table.sorted().items())
        (5, [('the', 3), ('then', 2)])
    """

    data: np.ndarray  # uint8: the tokens' UTF-8, one after another
    offsets: np.ndarray  # int64[n + 1]; the first is 0
    counts: np.ndarray  # int64[n]
    is_ordered: bool = False  # by the user, as lines of a text; else the order means nothing
    last_word: bytes | None = None  # of the corpus, for a scheme whose learner depends on it

    def __post_init__(self) -> None:
        for name in ('data', 'offsets', 'counts'):
            array = read_only(np.ascontiguousarray(getattr(self, name)))
            object.__setattr__(self, name, array)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # By the constructor: an array that was pickled is no longer read-only.
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        """Shows how many tokens there are, distinct and in all."""
        return f'<TokenTable: {len(self):,} distinct tokens of {self.total:,}>'

    @property
    def total(self) -> int:
        """The sum of all counts, exact also beyond 2^63."""
        high, low = self.counts >> 32, self.counts & 0xFFFFFFFF
        return (int(high.sum()) << 32) + int(low.sum())

    @property
    def text_bytes(self) -> int:
        """The bytes of the text that was counted: the sum of length x count, exact also beyond 2^63."""
        lengths, mask = np.diff(self.offsets), (1 << 21) - 1
        parts = (np.dot(self.counts >> shift & mask, lengths) for shift in (0, 21, 42))
        return sum(int(part) << 21 * number for number, part in enumerate(parts))

    @property
    def nbytes(self) -> int:
        """The memory of the three arrays."""
        return self.data.nbytes + self.offsets.nbytes + self.counts.nbytes

    def items(self) -> Iterator[tuple[str, int]]:
        """Yields each token with its count, in the table's order."""
        start = 0
        for end, count in zip(self.offsets[1:].tolist(), self.counts.tolist()):
            yield self.data[start:end].tobytes().decode(), count
            start = end

    @classmethod
    def from_items(cls, items: Iterable[tuple[str, int]]) -> 'TokenTable':
        """Returns the table of `(token, count)` pairs in order of first occurrence.

        Raises ValueError for a negative count or a lone surrogate, OverflowError past 2^63 - 1.
        """
        pairs = list(items)
        encoded = [token.encode() for token, _ in pairs]
        counts = np.array([count for _, count in pairs], np.int64)
        offsets = row_offsets([len(token) for token in encoded])
        return distinct_table(np.frombuffer(b''.join(encoded), np.uint8), offsets, counts)

    def sorted(self) -> 'TokenTable':
        """Returns the table in ascending order of the tokens' bytes, hence of their code points."""
        return self.pick(sort_tokens(self.data, self.offsets))

    def tokens(self) -> pa.LargeBinaryArray:
        """Returns the tokens as bytes, over the same memory."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self), buffers)

    def pick(self, order: np.ndarray) -> 'TokenTable':
        """Returns the tokens of these indices (int64[m]), in this order."""
        starts, ends = self.offsets[order], self.offsets[order + 1]
        data, offsets = pick_ranges(self.data, read_only(starts), read_only(ends))
        return TokenTable(data, offsets, self.counts[order])

    def part(self, first: int, last: int) -> 'TokenTable':
        """Returns the tokens from `first` to before `last`, over the same memory."""
        offsets = self.offsets[first : last + 1]
        data = self.data[offsets[0] : offsets[-1]]
        return TokenTable(data, offsets - offsets[0], self.counts[first:last])

    def to_bytes(self) -> bytes:
        """Returns the table, in its order, in a packed form for `from_bytes`."""
        numbers = np.concatenate([np.diff(self.offsets), self.counts])
        packed = np.empty(9 * len(numbers), np.uint8)
        size = write_varints(read_only(numbers), packed)
        return b''.join((_HEADER.pack(_MAGIC, len(self)), packed[:size].data, self.data.data))

    @classmethod
    def from_bytes(cls, packed: bytes) -> 'TokenTable':
        """Returns the table that `to_bytes` packed; raises ValueError if the bytes are damaged."""
        if len(packed) < _HEADER.size or not packed.startswith(_MAGIC):
            raise ValueError('these bytes are not a packed token table of this version')
        _, tokens = _HEADER.unpack_from(packed)
        array = np.frombuffer(packed, np.uint8)
        if 2 * tokens > len(array) - _HEADER.size:
            raise ValueError('the packed token table is cut off')
        numbers = np.empty(2 * tokens, np.int64)
        start = read_varints(array, _HEADER.size, numbers)
        offsets = row_offsets(numbers[:tokens])
        if start < 0 or start + offsets[-1] != len(array):
            raise ValueError('the packed token table is cut off or damaged')
        # Copies, so that a table does not keep all of `packed` alive.
        return cls(array[start:].copy(), offsets, numbers[tokens:].copy())

    def to_arrow(self) -> pa.Table:
        """Returns an Arrow table with the columns token (string) and count (int64)."""
        chunks = [0]
        while chunks[-1] < len(self):
            limit = self.offsets[chunks[-1]] + _CHUNK_BYTES
            end = int(np.searchsorted(self.offsets, limit, side='right')) - 1
            chunks.append(max(end, chunks[-1] + 1))
        tokens, counts = [], []
        for start, end in zip(chunks, chunks[1:]):
            offsets = self.offsets[start : end + 1]
            buffers = [
                pa.py_buffer((offsets - offsets[0]).astype(np.int32)),
                pa.py_buffer(self.data[offsets[0] : offsets[-1]]),
            ]
            tokens.append(pa.StringArray.from_buffers(end - start, *buffers))
            counts.append(pa.array(self.counts[start:end]))
        columns = [pa.chunked_array(tokens, pa.string()), pa.chunked_array(counts, pa.int64())]
        return pa.table(columns, ['token', 'count'])

    @classmethod
    def from_arrow(cls, table: pa.Table, is_sorted: bool = False) -> 'TokenTable':
        """Returns the table of an Arrow table's columns token (any string) and count (any integer).

        Tokens may repeat; other columns are ignored. If `is_sorted`, neighbors are compared, which
        is cheaper than a search for repeats. Raises ValueError for a missing column, another type,
        a null, a negative count or invalid UTF-8, OverflowError past 2^63 - 1.
        """
        tokens, counts = _column(table, 'token'), _column(table, 'count')
        try:
            tokens.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"the column 'token' is damaged: {error}") from error
        try:
            data, offsets, counts = token_arrays(tokens, counts)
        except pa.ArrowInvalid as error:
            raise OverflowError(f"the column 'count' holds more than 2^63 - 1: {error}") from error
        if is_sorted and is_ascending(data, offsets):
            data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
            return cls(data.copy(), offsets, counts.copy())
        return distinct_table(data, offsets, counts)


def token_arrays(
    tokens: pa.Array | pa.ChunkedArray, counts: pa.Array | pa.ChunkedArray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (data uint8, offsets int64[n + 1], counts int64[n]) of strings and integers.

    They are read-only, and the first offset need not be 0. The strings are not checked to be UTF-8.
    Raises ValueError for another type, a null, a negative count or, as `pa.ArrowInvalid`, a count
    past 2^63 - 1.
    """
    if pa.types.is_dictionary(tokens.type):
        tokens = tokens.cast(tokens.type.value_type)
    for name, column in (('token', tokens), ('count', counts)):
        if column.null_count:
            raise ValueError(f"the column '{name}' holds {column.null_count} nulls")
    if not (pa.types.is_string(tokens.type) or pa.types.is_large_string(tokens.type)):
        raise ValueError(f"the column 'token' must hold strings, not {tokens.type}")
    if not pa.types.is_integer(counts.type):
        raise ValueError(f"the column 'count' must hold integers, not {counts.type}")
    tokens = tokens.cast(pa.large_string())
    if isinstance(tokens, pa.ChunkedArray):
        tokens = tokens.combine_chunks()
    numbers = counts.cast(pa.int64()).to_numpy()
    _refuse_negative(numbers)
    _, offset_buffer, data_buffer = tokens.buffers()
    offsets = np.zeros(1, np.int64)
    if len(tokens):
        offsets = np.frombuffer(offset_buffer, np.int64)[tokens.offset :][: len(tokens) + 1]
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return read_only(data), read_only(offsets), read_only(numbers)


def distinct_table(data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> TokenTable:
    """Returns the table of tokens that may repeat, in order of first occurrence."""
    _refuse_negative(counts)
    accumulator = TokenAccumulator()
    accumulator.add_tokens(data, offsets, counts)
    return TokenTable(*accumulator.finish())


def _refuse_negative(counts: np.ndarray) -> None:
    if len(counts) and counts.min() < 0:
        raise ValueError(f'a count must not be negative, but one is {counts.min()}')


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    columns = table.schema.get_all_field_indices(name)
    if len(columns) != 1:
        raise ValueError(
            f"a table of counts has one column '{name}', but the columns are {table.column_names}"
        )
    return table.column(columns[0])
