"""TMX: each translation unit is a row, its segments of one language or of two the sides.

A unit is one row however many languages it has. Those wanted are looked for in `xml:lang`, or in `lang`
where there is no such; a region's variant does where the language itself is missing, and of several
that fit alike the first. A file is read as one stream, as XML must be.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokcore.corpus.corpus import Block, OpenBinary, Reject, Rows, Split, TextRange, WorkItem
from tokcore.corpus.formats import CorpusFormat
from tokcore.errors import InputError
from tokcore.options import LANGUAGE, option, shown
from tokcore.text.rows import Normalizer

Markup = Literal['drop', 'text']


def languages(word: str) -> tuple[str, ...]:
    """One language, or two different ones, as en,zh."""
    found = tuple(word.split(','))
    fits = all(map(re.compile(LANGUAGE).fullmatch, found))
    if not fits or len(found) > 2 or len({each.lower() for each in found}) < len(found):
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a language, or two of source and target, as en,zh'
        )
    return found


@dataclass(frozen=True)
class Tmx(CorpusFormat):
    """Rows of a side or two, of the languages' segments.

    Attributes:
        languages: of source and target, or of a text.
        markup: `drop` leaves out what inline elements hold of a native format (`bpt`, `ept`, `it`,
            `ph`, `ut`, with all that is in them), `text` keeps it; text in others always stays.
    """

    languages: tuple[str, ...] = option(
        'of TMX: of source and target, or of a text; en takes en-US too',
        languages,
        'A,B',
        default=(),
        default_help='none; it must be given',
        changes_bytes=True,
    )
    markup: Markup = option(
        'of TMX: drop what inline elements hold of a native format, or keep it as text',
        get_args(Markup),
        default='drop',
        default_help='drop',
        changes_bytes=True,
    )

    name = 'tmx'
    what = 'TMX'
    roles = ('tmx',)
    help = ('TMX files, a row for each translation unit',)
    reasons = ('undefined_entity',)
    forbidden_characters = '\0'  # not even by its number
    takes_any_text = False

    def __post_init__(self):
        if not self.languages:
            raise InputError(
                'TMX needs the languages of its segments: give --languages, as en,zh for pairs or en '
                'for text (of a job file the key languages)'
            )

    @property
    def sides(self) -> tuple[str, ...]:
        return ('inputs', 'targets') if len(self.languages) == 2 else ('targets',)

    def plan(
        self, split: Split, index: Sequence[tuple[Any, ...]], item_bytes: int
    ) -> list[WorkItem]:
        return [
            WorkItem(split.name, self, place, (TextRange(file, 0, file.size),))
            for place, (file,) in zip(split.file_indexes, split.files, strict=True)
        ]

    def read(
        self, item: WorkItem, open_binary: OpenBinary, block_bytes: int, max_line_bytes: int
    ) -> Iterator[Block]:
        from tokcore.corpus.tmx_reading import read_units

        return read_units(item, open_binary, block_bytes, max_line_bytes)

    def rows(self, block: Block, normalizer: Normalizer) -> Rows:
        from tokcore.corpus.line_rows import long_rows
        from tokcore.corpus.tmx_reading import unit_rows

        if block.long_lines:
            return long_rows(block.long_lines[0], len(self.sides), block.offset)
        [text] = block.texts
        wanted = tuple(each.lower().replace('_', '-') for each in self.languages)
        return unit_rows(
            text.data, text.offset, wanted, self.markup == 'drop', normalizer, block.max_line_bytes
        )

    def explain(self, reject: Reject) -> str:
        text = reject.line.decode('utf-8', 'replace')
        reference = re.search(r'&(?!(amp|lt|gt|quot|apos|#\w+);)[^;\s]*;?', text)
        named = shown(reference.group()) if reference else 'one'
        return (
            f'the unit at byte {reject.offset} refers to an entity that XML does not know, {named}; '
            'write the character itself, or give --on-error=skip'
        )
