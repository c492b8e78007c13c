"""What is told of filters of rows."""

from dataclasses import dataclass

from pipelines.engines.progress import News


@dataclass(frozen=True)
class RowsFiltered(News):
    """Filters dropped rows of a split, or made several of one.

    Attributes:
        split: whose.
        lines: that it has.
        filtered: by filter, what it dropped.
        added: rows that came of others.
    """

    split: str
    lines: int
    filtered: tuple[tuple[str, int], ...]
    added: int

    def __str__(self) -> str:
        parts = [f'{name} dropped {count}' for name, count in self.filtered]
        if self.added:
            parts.append(f'{self.added} came of others')
        return f'filters: {self.split}: of {self.lines} lines, {", ".join(parts)}'


@dataclass(frozen=True)
class DroppedRowsKept(News):
    """Rows that a filter dropped are in a file."""

    rows: int
    path: str

    def __str__(self) -> str:
        return f'{self.rows} rows that a filter dropped: {self.path}'
