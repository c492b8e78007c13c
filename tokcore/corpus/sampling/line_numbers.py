"""Work items and blocks of files of lines with the numbers of their first lines.

Pairs are cut by numbers of lines. Of a file that is cut by its bytes only a pass over it tells which
line is the first that begins in an item; that pass is asked about the items' first bytes.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tokcore.corpus.dataset import Block, WorkItem
from tokcore.corpus.formats.line_kernels import count_lines


def starts_to_number(items: Sequence[WorkItem]) -> dict[int, list[int]]:
    """Returns, by place, the bytes of which it must be known what line begins there or next.

    Nothing of files whose items tell their lines, or are the whole of them.
    """
    starts: dict[int, list[int]] = {}
    for item in items:
        if _is_cut_by_bytes(item):
            starts.setdefault(item.place, []).append(item.ranges[0].start)
    return starts


def number_items(
    items: Sequence[WorkItem], first_lines: Mapping[int, Sequence[int]]
) -> list[WorkItem]:
    """Returns items with the numbers of their first lines.

    Args:
        items: of whole files, in order.
        first_lines: by place, as many as `starts_to_number` gives.
    """
    left = {place: iter(numbers) for place, numbers in first_lines.items()}
    behind: dict[int, int] = {}  # by place, the line behind the last item
    numbered = []
    for item in items:
        if _is_cut_by_bytes(item):
            first = next(left[item.place])
        else:
            first = behind.get(item.place, 0)
            behind[item.place] = first + (item.ranges[0].lines or 0)
        numbered.append(dataclasses.replace(item, first_line=first))
    return numbered


def numbered_blocks(item: WorkItem, blocks: Iterator[Block]) -> Iterator[Block]:
    """Yields the blocks of a numbered item with the numbers of their first lines."""
    number = item.first_line
    for block in blocks:
        yield dataclasses.replace(block, first_line=number)
        if block.long_lines:
            number += 1
        else:
            number += int(count_lines(np.frombuffer(block.texts[0].data, np.uint8)))


def _is_cut_by_bytes(item: WorkItem) -> bool:
    text_range = item.ranges[0]
    is_whole = text_range.file.is_stream and not text_range.of_text
    return text_range.lines is None and not is_whole
