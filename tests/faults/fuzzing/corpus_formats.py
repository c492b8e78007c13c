"""The formats of corpora: each draws files and the options that read them, and restates their rows.

To add one, add an entry to `FORMATS`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import drawn_text
from .json_rules import FIELDS, draw_json_lines, json_rows
from .line_rules import NamedText, SplitRows, lines_of, paired_rows, single_rows
from .sgm_rules import draw_sgm, sgm_rows
from .table_formats import draw_named_columns, draw_parquet, draw_quoted_columns, named_rows
from .tmx_rules import draw_tmx


@dataclass(frozen=True)
class DrawnRows:
    """A corpus before it is stored.

    Attributes:
        files: by the option that reads it the bytes of each file.
        words: more options.
        sides: of a row.
        rows: what any texts in place of those files become, in their order, where the longest line
            is given: None if they must be refused.
        knows_damaged: whether `rows` says that of any texts, and not only of those drawn. Of others
            only status 0 or 2 is asked.
        is_packed: whether files may be compressed, or members of archives.
    """

    files: dict[str, bytes]
    words: list[str]
    sides: int
    rows: Callable[[Sequence[NamedText], int], SplitRows | None]
    knows_damaged: bool = True
    is_packed: bool = True


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


def _draw_named_columns(dice: random.Random) -> DrawnRows:
    text, wanted = draw_named_columns(dice)
    return DrawnRows(
        {'tsv': text},
        ['--columns', wanted],
        len(wanted.split(',')),
        lambda files, most: named_rows(files, wanted, most),
    )


def _draw_quoted_columns(dice: random.Random) -> DrawnRows:
    seed = dice.random()

    def rows(files: Sequence[NamedText], longest: int) -> SplitRows:
        return draw_quoted_columns(random.Random(seed), files[0].name, longest)[1]

    text, _ = draw_quoted_columns(random.Random(seed), '', 1 << 30)
    words = ['--quoting', 'csv', '--columns', '0,1']
    return DrawnRows({'tsv': text}, words, 2, rows, knows_damaged=False)


def _draw_parquet(dice: random.Random) -> DrawnRows:
    seed = dice.random()

    def rows(files: Sequence[NamedText], longest: int) -> SplitRows | None:
        return draw_parquet(random.Random(seed), files[0].name, longest)[2]

    data, words, _ = draw_parquet(random.Random(seed), '', 1 << 30)
    sides = words[1].count(',') + 1
    return DrawnRows({'parquet': data}, words, sides, rows, knows_damaged=False, is_packed=False)


def _draw_sgm(dice: random.Random) -> DrawnRows:
    source, target = draw_sgm(dice)
    entities = dice.choice(['keep', 'decode'])
    return DrawnRows(
        {'sgm-source': source, 'sgm-target': target},
        ['--entities', entities],
        2,
        lambda files, most: sgm_rows(files, entities == 'decode', most),
    )


def _draw_tmx(dice: random.Random) -> DrawnRows:
    data, rows = draw_tmx(dice)
    words = ['--languages', 'en,zh']
    return DrawnRows({'tmx': data}, words, 2, rows, knows_damaged=False)


FORMATS: dict[str, Callable[[random.Random], DrawnRows]] = {
    'lines': _draw_lines,
    'bitext': _draw_bitext,
    'tsv': _draw_tsv,
    'json lines': _draw_json_lines,
    'named columns': _draw_named_columns,
    'quoted columns': _draw_quoted_columns,
    'parquet': _draw_parquet,
    'sgm': _draw_sgm,
    'tmx': _draw_tmx,
}
