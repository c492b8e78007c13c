"""A text in memory as blocks of whole lines, and a map over them with some threads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pipelines.engines.machine import keep_freed_memory
from tokcore.corpus.corpus import BLOCK_BYTES
from tokcore.encoding.scheme import Scheme
from tokcore.schemes import find_scheme
from tokcore.warm_up import compile_kernels

_Part = TypeVar('_Part')
_Result = TypeVar('_Result')


@dataclass(frozen=True)
class TextBlock:
    """Whole lines, and where they begin."""

    data: bytes
    offset: int


def get_ready(scheme: Scheme | None = None) -> None:
    """Does what a worker of the pipelines does before its first block."""
    compile_kernels(scheme or find_scheme())
    keep_freed_memory()


def text_blocks(data: bytes, size: int = BLOCK_BYTES) -> list[TextBlock]:
    """Returns blocks of about `size` bytes; of one text, so that none is copied twice."""
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


def map_blocks(
    function: Callable[[_Part], _Result], blocks: Sequence[_Part], threads: int
) -> Iterable[_Result]:
    """Yields a result for each block (or share of them), in order, so many in flight."""
    if threads == 1:
        return map(function, blocks)
    return _map_in_threads(function, blocks, threads)


def _map_in_threads(
    function: Callable[[_Part], _Result], blocks: Sequence[_Part], threads: int
) -> Iterator[_Result]:
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, blocks)
