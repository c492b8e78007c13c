"""The formats of corpora: each draws files and the options that read them, and restates their rows.

To add one, add an entry to `FORMATS`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import drawn_text
from .json_rules import FIELDS, draw_json_lines, json_rows
from .line_rules import NamedText, SplitRows, lines_of, paired_rows, single_rows


@dataclass(frozen=True)
class DrawnRows:
    """A corpus before it is stored.

    Attributes:
        files: by the option that reads it the bytes of each file.
        words: more options.
        sides: of a row.
        rows: what any texts in place of those files become, in their order, where the longest line
            is given: None if they must be refused. None in its place where nobody can say that of
            damaged files, of which then only status 0 or 2 is asked.
    """

    files: dict[str, bytes]
    words: list[str]
    sides: int
    rows: Callable[[Sequence[NamedText], int], SplitRows | None] | None


def _draw_lines(dice: random.Random) -> DrawnRows:
    text = drawn_text.text(dice)
    return DrawnRows({'text': text}, [], 1, lambda files, most: single_rows(files, None, most))


def _draw_bitext(dice: random.Random) -> DrawnRows:
    pairs = [line.partition(b'\t')[::2] for line in drawn_text.text(dice, 2).split(b'\n')]
    source, target = (b'\n'.join(pair[side] for pair in pairs) + b'\n' for side in (0, 1))
    return DrawnRows({'source': source, 'target': target}, [], 2, _aligned_rows)


def _aligned_rows(files: Sequence[NamedText], longest: int) -> SplitRows | None:
    source, target = files
    if len(lines_of(source.text)) != len(lines_of(target.text)):
        return None
    return paired_rows([source], [target], longest)


def _draw_tsv(dice: random.Random) -> DrawnRows:
    columns = dice.choice([(0, 1), (1, 0), (2, 0)])
    text = drawn_text.text(dice, max(columns) + dice.choice([1, 1, 2]))
    words = ['--columns', '{},{}'.format(*columns)]
    return DrawnRows({'tsv': text}, words, 2, lambda files, most: single_rows(files, columns, most))


def _draw_json_lines(dice: random.Random) -> DrawnRows:
    fields = dice.choice(list(FIELDS))
    paths = FIELDS[fields]
    return DrawnRows(
        {'jsonl': draw_json_lines(dice, paths)},
        ['--fields', fields],
        len(paths),
        lambda files, most: json_rows(files, paths, most),
    )


FORMATS: dict[str, Callable[[random.Random], DrawnRows]] = {
    'lines': _draw_lines,
    'bitext': _draw_bitext,
    'tsv': _draw_tsv,
    'json lines': _draw_json_lines,
}
