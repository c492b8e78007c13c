"""Cutting a split into work items: the unit that crosses workers and is read at once.

A plain file of lines needs no knowledge of its content: items are byte ranges, and a line belongs
to the range that it starts in. A pair of plain files is cut by its line index, so that neither side
of an item outgrows the limit wherever the sizes drift apart. A gzip file, or a pair with one, is
one item.
"""

from collections.abc import Iterable

from tokcore.corpus.dataset import CorpusFile, Split, TextRange, WorkItem
from tokcore.corpus.formats.line_index import LineCount, LineIndex, join_counts
from tokcore.errors import InputError

ITEM_BYTES = 8 << 20
"""The default size of a work item. At 8 to 16 MiB a block's fixed costs vanish; of these the least,
since larger ones hold more memory for each thread and leave the last workers waiting."""


def plan_items(
    split: Split, line_counts: Iterable[LineCount] = (), item_bytes: int = ITEM_BYTES
) -> list[WorkItem]:
    """Cuts a split into work items, in the order of places and lines.

    For bitext, `line_counts` are those of `index_items` with the same `item_bytes`; counts of other
    splits are passed over. Each side of an item has at most `item_bytes` bytes unless it is one
    line.

    Raises:
      InputError: if the two files of a pair have different numbers of lines.
      ValueError: if `item_bytes` is below 1, or the counts do not cover the split's files.
    """
    if item_bytes < 1:
        raise ValueError(f'item_bytes must be at least 1, not {item_bytes}')
    if split.kind == 'bitext':
        return _plan_pairs(split, line_counts, item_bytes)
    return [
        WorkItem(split.name, split.kind, split.columns, place, text_range)
        for place, file in enumerate(split.sources)
        for text_range in _byte_ranges(file, item_bytes)
    ]


def _byte_ranges(file: CorpusFile, item_bytes: int) -> list[TextRange]:
    if file.compressed:
        return [TextRange(file, 0, file.size)]
    return [
        TextRange(file, start, min(start + item_bytes, file.size))
        for start in range(0, file.size, item_bytes)
    ]


def _plan_pairs(
    split: Split, line_counts: Iterable[LineCount], item_bytes: int
) -> list[WorkItem]:
    counts: dict[tuple[int, int], list[LineCount]] = {}
    for count in line_counts:
        if count.range.split == split.name:
            counts.setdefault((count.range.place, count.range.side), []).append(count)
    items = []
    for place, files in enumerate(zip(split.sources, split.targets, strict=True)):
        source, target = (
            join_counts(file, counts.get((place, side), ())) for side, file in enumerate(files)
        )
        if source.lines != target.lines:
            raise InputError(
                f'{source.file.path} has {source.lines} lines but {target.file.path} has '
                f'{target.lines}; the two files of a pair must have the same number of lines'
            )
        if source.file.compressed or target.file.compressed:
            cuts = [0, source.lines] if source.lines else []
        else:
            cuts = _cut_lines(source, target, item_bytes)
        items += [
            WorkItem(
                split.name,
                split.kind,
                split.columns,
                place,
                _line_range(source, first, end),
                _line_range(target, first, end),
            )
            for first, end in zip(cuts, cuts[1:], strict=False)
        ]
    return items


def _cut_lines(source: LineIndex, target: LineIndex, item_bytes: int) -> list[int]:
    """The line numbers between which the items lie: each takes as many lines as surely fit."""
    cuts = [0]
    while (line := cuts[-1]) < source.lines:
        fitting = min(_end_within(side, line, item_bytes) for side in (source, target))
        cuts.append(max(line + 1, fitting))
    return cuts


def _end_within(index: LineIndex, line: int, item_bytes: int) -> int:
    """The last line number n such that lines [line, n) surely fit into `item_bytes` bytes."""
    # The line starts somewhere in its chunk, so count from the chunk's beginning to the end of the
    # last chunk: every line whose line feed lies there fits.
    end = index.chunk_of(line) + item_bytes // index.chunk_bytes
    if end >= len(index.newlines_before) - 1:
        return index.lines
    return int(index.newlines_before[end])


def _line_range(index: LineIndex, first: int, end: int) -> TextRange:
    if index.file.compressed or (first == 0 and end == index.lines):
        return TextRange(index.file, 0, index.file.size, 0, end - first)
    chunk = index.chunk_of(first)
    last_byte = (
        index.file.size if end == index.lines else index.start_of(index.chunk_of(end) + 1)
    )
    skip = first - int(index.newlines_before[chunk])
    return TextRange(index.file, index.start_of(chunk), last_byte, skip, end - first)
