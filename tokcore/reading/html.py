"""What a notebook shows of a dataset: the sizes of its splits, and rows as coloured pieces."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tokcore.errors import InputError
from tokcore.text.whitespace import escape_piece

_ROWS, _PIECES = 3, 40
"""The most that are shown: rows of the first split, and pieces of each."""

_PIECE = (
    '<span style="background: rgba({colour}, 0.25); display: inline-block; padding: 0 0.15em; '
    'white-space: pre">{text}</span>'
)
"""An inline block, so that lines of a wide table end between pieces."""
_COLOURS = ('66, 133, 244', '219, 140, 40')
_LEFT = '<th style="text-align: left">{}</th>'
_CELL = '<td style="text-align: left; vertical-align: top">{}</td>'


def html_table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Returns a table of cells, which are text, or HTML as `Html`.

    >>> 'a &lt; b' in html_table([('a < b', 1)])
    True
    """
    lines = [''.join(_LEFT.format(html.escape(name)) for name in head)] if head else []
    lines += [''.join(_CELL.format(_escaped(value)) for value in row) for row in rows]
    return f'<table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


class Html(str):
    """Text that is HTML already."""


def dataset_html(dataset: Any) -> str:
    """Returns the sizes of the splits of a `Dataset`, and its first rows, as far as they can be read."""
    splits = dataset.splits
    sizes = html_table(
        ((name, f'{size.examples:,}', len(size.shard_examples)) for name, size in splits.items()),
        ('split', 'rows', 'shards'),
    )
    try:
        rows = list(itertools.islice(dataset.examples(next(iter(splits))), _ROWS))
    except InputError as error:
        return sizes + html_table([[str(error)]])
    shown = [[_pieces(dataset, name, row[name]) for name in dataset.features] for row in rows]
    return sizes + html_table(shown, dataset.features)


def _pieces(dataset: Any, feature: str, ids: np.ndarray) -> Html:
    """Returns the pieces of a row, in two colours in turn; ids without a vocabulary are shown as numbers."""
    try:
        pieces: Sequence[str] = dataset.vocabulary(feature).pieces
    except InputError:
        pieces = ()
    texts = [
        escape_piece(pieces[id_].replace(' ', '␣')) if id_ < len(pieces) else str(id_)
        for id_ in ids[:_PIECES]
    ]
    spans = [
        _PIECE.format(colour=_COLOURS[number % 2], text=html.escape(text))
        for number, text in enumerate(texts)
    ]
    more = f' … {len(ids):,} ids' if len(ids) > _PIECES else ''
    return Html(''.join(spans) + more)


def _escaped(value: object) -> str:
    return value if isinstance(value, Html) else html.escape(str(value))
