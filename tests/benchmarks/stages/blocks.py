"""A text as blocks of whole lines, and what is done with all blocks, by some threads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipelines.engines.machine import keep_freed_memory
from tokcore.corpus.corpus import BLOCK_BYTES
from tokcore.corpus.line_rows import text_rows
from tokcore.counts.counting import TokenAccumulator
from tokcore.encoding.encoder import Encoder
from tokcore.encoding.scheme import Scheme
from tokcore.schemes import find_scheme
from tokcore.warm_up import compile_kernels

_Part = TypeVar('_Part')
_Result = TypeVar('_Result')


@dataclass(frozen=True)
class TextBlock:
    """Whole lines, and their offset in the text."""

    data: bytes
    offset: int


def get_ready(scheme: Scheme | None = None) -> None:
    """Does what a worker of the pipelines does before its first block."""
    compile_kernels(scheme or find_scheme())
    keep_freed_memory()


def text_blocks(data: bytes, size: int = BLOCK_BYTES) -> list[TextBlock]:
    """Returns blocks of about `size` bytes, each copied from the text once."""
    blocks = []
    start = 0
    while start < len(data):
        end = data.find(b'\n', min(start + size, len(data)) - 1) + 1 or len(data)
        blocks.append(TextBlock(data[start:end], start))
        start = end
    return blocks


def file_blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[TextBlock]:
    """Yields the blocks of a file, one at a time, as a worker reads it."""
    start = 0
    with open(path, 'rb', buffering=0) as file:
        while data := file.read(size):
            end = data.rfind(b'\n') + 1 or len(data)
            yield TextBlock(data if end == len(data) else data[:end], start)
            start += end
            file.seek(start)


def add_tokens(
    sums: TokenAccumulator, blocks: Iterable[TextBlock], normalizer: Any, pre_tokenizer: Any
) -> None:
    """Counts the tokens of blocks."""
    for block in blocks:
        (side,) = text_rows(block.data, block.offset, normalizer).sides
        sums.add_rows(side.text, side.starts, side.ends, pre_tokenizer)


def ids_of_blocks(
    encoder: Encoder, blocks: Iterable[TextBlock], normalizer: Any
) -> Iterator[np.ndarray]:
    """Yields the ids of each block."""
    for block in blocks:
        rows = text_rows(block.data, block.offset, normalizer)
        yield encoder.encode_side(rows.sides[0]).ids


def map_blocks(
    function: Callable[[_Part], _Result], blocks: Sequence[_Part], threads: int
) -> Iterator[_Result]:
    """Yields a result for each block, or for each share of the blocks, in their order."""
    if threads == 1:
        yield from map(function, blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, blocks)
