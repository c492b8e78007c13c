"""Bytes as ids: the pre-tokenizer splits rows into slices, and the model gives each byte an id."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, PieceIds, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown
from tokcore.kernels.jit import kernel, kernel_without_allocation
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, TextRows, scan_tokens

_PART_BYTES = 1 << 18

SLICE_BYTES = 64
"""The length of a token. Tokens have no meaning here: a row's ids are those of its bytes."""

_0, _1 = np.uint64(0), np.uint64(1)


class _Slices(NamedTuple):
    """The state of the pre-tokenizer."""

    size: int


@dataclass(frozen=True)
class BytePreTokenizer:
    """A `PreTokenizer` that splits rows into slices."""

    @property
    def name(self) -> str:
        return 'bytes'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[_Slices, np.ndarray]:
        return _Slices(SLICE_BYTES), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        for position in range(start, end, _PART_BYTES):
            yield RowPart(rows.text, position, min(end, position + _PART_BYTES), False)


class ByteModel:
    """A `Model` that gives each byte an id."""

    def __init__(self, first: int):
        """Takes the id of byte 0."""
        self.state = _ByteIds(first)

    @property
    def size(self) -> int:
        return self.state.first + 256

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds.of(tokens, room=SLICE_BYTES * tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        yield part.text[part.start : part.end].astype(np.int32) + self.state.first

    def describe_failure(self, token: str, failure: int) -> str:
        raise AssertionError('every byte has an id')


class _ByteIds(NamedTuple):
    """The state of the model: the id of byte b is first + b."""

    first: int


@scan_tokens.register(_Slices)
@kernel_without_allocation
def _scan_slices(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says."""
    room = len(tokens.starts) - CHUNK_TOKENS
    size = np.uint64(pre_tokenizer.size)
    count = 0
    while row < len(rows.starts):
        start = np.uint64(rows.starts[row] if position < 0 else position)
        end = np.uint64(rows.ends[row])
        while start < end:
            if count > room:
                return row, np.int64(start), count
            tokens.starts[count] = start
            start = min(end, start + size)
            tokens.ends[count] = start
            count += 1
        row += 1
        position = -1
        tokens.row_tokens[row] = count
    return row, np.int64(position), count


@segment_tokens.register(_ByteIds)
@kernel_without_allocation
def _segment_bytes(tokens, missed, model, work):
    """As `segment_tokens` says; every byte has an id."""
    if len(work.ids) < missed.nbytes:
        return 0, NO_ROOM
    first = np.int32(model.first)
    used = _0
    work.id_bounds[0] = _0
    for miss in range(np.uint64(missed.count)):
        token = missed.numbers[miss]
        start = tokens.starts[token]
        size = tokens.ends[token] - start
        for k in range(size):
            work.ids[used + k] = first + np.int32(tokens.text[start + k])
        used += size
        work.id_bounds[miss + _1] = used
    return 0, 0


@larger_workspace.register(_ByteIds)
@kernel
def larger_ids(missed, model, work):
    """As `larger_workspace` says."""
    return PieceIds(grown(work.ids, 0, missed.nbytes), work.id_bounds)
