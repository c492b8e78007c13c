"""TMX: each translation unit is a row, its segments of one language or of two the sides.

A unit is one row however many languages it has. Those wanted are looked for in `xml:lang`, or in `lang`
where there is no such; a region's variant does where the language itself is missing, and of several
that fit alike the first. A file is read as one stream, as XML must be.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.corpus.corpus import Reject
from tokcore.corpus.formats import CorpusFormat
from tokcore.errors import InputError
from tokcore.options import LANGUAGE, option, shown

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
    reader = 'tokcore.corpus.tmx_reading:TmxReader'
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

    def explain(self, reject: Reject) -> str:
        text = reject.line.decode('utf-8', 'replace')
        reference = re.search(r'&(?!(amp|lt|gt|quot|apos|#\w+);)[^;\s]*;?', text)
        named = shown(reference.group()) if reference else 'one'
        return (
            f'the unit at byte {reject.offset} refers to an entity that XML does not know, {named}; '
            'write the character itself, or give --on-error=skip'
        )
