"""Entries of a dataset, a vocabulary or counts as lines for a reader; in colour on a terminal.

Neighbouring pieces have different colours, so that their borders show.
"""

import sys
from collections.abc import Iterator

from pipelines.cli.printable import printable
from pipelines.trust.inspect import Column, Entry

_COLOURS = ('\x1b[36m', '\x1b[33m')
_BOLD, _PLAIN = '\x1b[1m', '\x1b[0m'

_MOST_VALUES = 2_000
"""Of a row that is shown to a reader; --json has all of them."""


def entry_lines(entry: Entry) -> Iterator[str]:
    """Yields the lines of an entry, fit for standard output."""
    coloured = sys.stdout is not None and sys.stdout.isatty()

    def shown(text: str, colour: str = '') -> str:
        text = printable(text, sys.stdout)
        return f'{colour}{text}{_PLAIN}' if coloured and colour else text

    if entry.token is not None:
        count = '' if entry.count is None else f'  {entry.count:,}'
        yield f'{entry.number:>8}  {shown(repr(entry.token)[1:-1], _COLOURS[0])}{count}'
        return
    yield shown(f'{entry.where} {entry.number}'.strip(), _BOLD)
    for name, column in (entry.columns or {}).items():
        if column.text is not None:
            yield f'  {name}: {shown(column.text)}'
        if column.pieces is not None:
            pieces = column.pieces[:_MOST_VALUES]
            texts = (
                shown(piece.replace(' ', '␣'), _COLOURS[at % 2]) for at, piece in enumerate(pieces)
            )
            yield f'    pieces: {" ".join(texts)}{_rest(column)}'
        label = f'  {name}: ' if column.pieces is None else '    ids: '
        values = ' '.join(map(_value, column.values[:_MOST_VALUES]))
        yield f'{label}{shown(values)}{_rest(column)}'


def _value(value: object) -> str:
    return (
        repr(value.decode('utf-8', 'backslashreplace')) if isinstance(value, bytes) else str(value)
    )


def _rest(column: Column) -> str:
    return and_more(len(column.values) - _MOST_VALUES)


def and_more(left: int) -> str:
    """Returns what a line says of things that it leaves out; '' if there are none."""
    return f' … and {left:,} more' if left > 0 else ''
