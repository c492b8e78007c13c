"""Bytes as tokens and ids, as the block engine takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tokcore.byte.byte_kernels import SLICE_BYTES, ByteIds, ByteWork, Slices
from tokcore.text.padded_text import TextRows
from tokcore.text.pre_tokenizer import RowPart

_PART_BYTES = 1 << 18


@dataclass(frozen=True)
class BytePreTokenizer:
    """A `PreTokenizer` that cuts rows into slices, which the model takes apart."""

    @property
    def name(self) -> str:
        return 'bytes'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[Slices, np.ndarray]:
        return Slices(SLICE_BYTES), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        start, end = int(rows.starts[row]), int(rows.ends[row])
        for place in range(start, end, _PART_BYTES):
            yield RowPart(rows.text, place, min(end, place + _PART_BYTES), False)


class ByteModel:
    """A `Model`: an id for each byte, behind the special ones."""

    def __init__(self, first: int):
        self.state = ByteIds(first)

    @property
    def size(self) -> int:
        return self.state.first + 256

    def workspace(self, tokens: int) -> ByteWork:
        return ByteWork(np.empty(SLICE_BYTES * tokens, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        yield part.text[part.start : part.end].astype(np.int32) + self.state.first

    def unspelled(self, token: str, left: int) -> str:
        raise AssertionError('every byte has an id')
