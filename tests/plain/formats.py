"""The formats of corpora: each draws files and the options that read them, and says what their rows are.

To add one, add an entry to `FORMATS`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tokcore.corpus.corpus import CorpusFormat
from tokcore.corpus.declarations import (
    Bitext,
    JsonLines,
    Labelled,
    Parquet,
    PlainText,
    Sgm,
    Tmx,
    Tsv,
)
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer

from . import drawn_text
from .json_lines import FIELDS, draw_json_lines, json_rows
from .lines import NamedText, SplitRows, labelled_rows, lines_of, paired_rows, single_rows
from .sgm import draw_sgm, sgm_rows
from .tables import (
    draw_named_columns,
    draw_parquet,
    draw_quoted_columns,
    named_rows,
    parquet_rows,
    quoted_rows,
)
from .tmx import draw_tmx


@dataclass(frozen=True)
class DrawnRows:
    """A corpus before it is stored.

    Attributes:
        declared: the format.
        files: by the option that reads it, the bytes of each file.
        words: more options.
        sides: of a row.
        rows: what any texts in place of these files become, in their order, by the longest line that is
            allowed and a normalizer: None if they must be refused.
        knows_damaged: whether `rows` is right for any texts, and not only for those drawn. For others
            only status 0 or 2 is required.
        is_packed: whether files may be compressed, or members of archives.
    """

    declared: CorpusFormat
    files: dict[str, bytes]
    words: list[str]
    sides: int
    rows: Callable[[Sequence[NamedText], int, Normalizer], SplitRows | None]
    knows_damaged: bool = True
    is_packed: bool = True

    def rows_of(
        self, texts: Sequence[tuple[str, bytes]], longest: int, normalizer: Normalizer = T2T_LINES
    ) -> SplitRows | None:
        """Returns the rows of (name, text) in place of the files."""
        return self.rows([NamedText(*each) for each in texts], longest, normalizer)


def _draw_lines(dice: random.Random) -> DrawnRows:
    files = {'text': drawn_text.text(dice)}
    return DrawnRows(
        PlainText(), files, [], 1,
        lambda files, most, normalizer: single_rows(files, None, most, normalizer=normalizer),
    )  # fmt: skip


def _draw_bitext(dice: random.Random) -> DrawnRows:
    pairs = [line.partition(b'\t')[::2] for line in drawn_text.text(dice, 2).split(b'\n')]
    source, target = (b'\n'.join(pair[side] for pair in pairs) + b'\n' for side in (0, 1))
    return DrawnRows(Bitext(), {'source': source, 'target': target}, [], 2, _aligned_rows)


def _aligned_rows(
    files: Sequence[NamedText], longest: int, normalizer: Normalizer
) -> SplitRows | None:
    if not _are_aligned(files):
        return None
    source, target = files
    return paired_rows([source], [target], longest, normalizer)


def _are_aligned(files: Sequence[NamedText]) -> bool:
    return len({len(lines_of(file.text)) for file in files}) == 1


def _draw_labelled(dice: random.Random) -> DrawnRows:
    text = drawn_text.text(dice)
    words = ['1', ' -7 ', '+3\r', '', 'pos', '1_0', '٣', '9' * 19, '\u30005', '\x000', '07', '--1']
    oddness = dice.choice([0, 0, 0.1, 1])
    labels = [dice.choice(words if dice.random() < oddness else words[:3]) for _ in lines_of(text)]
    files = {'text': text, 'line-labels': '\n'.join([*labels, '']).encode()}

    def rows(files: Sequence[NamedText], longest: int, normalizer: Normalizer) -> SplitRows | None:
        if not _are_aligned(files):
            return None
        return labelled_rows(*files, (), longest, normalizer)

    return DrawnRows(Labelled(), files, [], 1, rows)


def _draw_tsv(dice: random.Random) -> DrawnRows:
    columns = dice.choice([(0, 1), (1, 0), (2, 0)])
    keep_tabs = dice.random() < 0.3
    text = drawn_text.text(dice, max(columns) + dice.choice([1, 1, 2]))
    words = ['--columns', '{},{}'.format(*columns), *['--keep-tabs'] * keep_tabs]
    return DrawnRows(
        Tsv(columns, keep_tabs=keep_tabs), {'tsv': text}, words, 2,
        lambda files, *limits: single_rows(files, columns, limits[0], keep_tabs, limits[1]),
    )  # fmt: skip


def _draw_json_lines(dice: random.Random) -> DrawnRows:
    fields = dice.choice(list(FIELDS))
    paths = FIELDS[fields]
    return DrawnRows(
        JsonLines(fields=tuple(fields.split(','))),
        {'jsonl': draw_json_lines(dice, paths)},
        ['--fields', fields],
        len(paths),
        lambda files, *limits: json_rows(files, paths, *limits),
    )


def _draw_named_columns(dice: random.Random) -> DrawnRows:
    text, wanted = draw_named_columns(dice)
    names = tuple(wanted.split(','))
    return DrawnRows(
        Tsv(names), {'tsv': text}, ['--columns', wanted], len(names),
        lambda files, *limits: named_rows(files, wanted, *limits),
    )  # fmt: skip


def _draw_quoted_columns(dice: random.Random) -> DrawnRows:
    words = ['--quoting', 'csv', '--columns', '0,1']
    files = {'tsv': draw_quoted_columns(dice)}
    return DrawnRows(Tsv(quoting='csv'), files, words, 2, quoted_rows, knows_damaged=False)


def _draw_parquet(dice: random.Random) -> DrawnRows:
    data, fields = draw_parquet(dice)
    return DrawnRows(
        Parquet(fields=tuple(fields)),
        {'parquet': data},
        ['--fields', ','.join(fields)],
        len(fields),
        lambda files, *limits: parquet_rows(files, fields, *limits),
        knows_damaged=False,
        is_packed=False,
    )


def _draw_sgm(dice: random.Random) -> DrawnRows:
    source, target = draw_sgm(dice)
    entities = dice.choice(['keep', 'decode'])
    return DrawnRows(
        Sgm(entities),
        {'sgm-source': source, 'sgm-target': target},
        ['--entities', entities],
        2,
        lambda files, *limits: sgm_rows(files, entities == 'decode', *limits),
    )


def _draw_tmx(dice: random.Random) -> DrawnRows:
    data, rows = draw_tmx(dice)
    words = ['--languages', 'en,zh']
    return DrawnRows(Tmx(('en', 'zh')), {'tmx': data}, words, 2, rows, knows_damaged=False)


FORMATS: dict[str, Callable[[random.Random], DrawnRows]] = {
    'lines': _draw_lines,
    'bitext': _draw_bitext,
    'labelled': _draw_labelled,
    'tsv': _draw_tsv,
    'json lines': _draw_json_lines,
    'named columns': _draw_named_columns,
    'quoted columns': _draw_quoted_columns,
    'parquet': _draw_parquet,
    'sgm': _draw_sgm,
    'tmx': _draw_tmx,
}
