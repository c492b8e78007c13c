"""TMX: each translation unit is a row, and its segments in one or two languages are the sides.

The language of a variant is its `xml:lang`, or without that its `lang`. A regional variant such as
en-US is used for en if a unit has no variant in en itself; of several that fit equally well, the first.
A file is read as one stream, as XML must be.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Literal, get_args

from tokcore.corpus.contents import XML
from tokcore.corpus.corpus import UNMATCHED_SEGMENT, Reject
from tokcore.corpus.formats import CorpusFormat
from tokcore.errors import InputError
from tokcore.options import LANGUAGE, option, shown

Markup = Literal['drop', 'text']

UNDEFINED_ENTITY = 'undefined_entity'

BROKEN_UNIT = 'broken_unit'
"""The unit is not well-formed XML."""


def languages(word: str) -> tuple[str, ...]:
    """One language, or two different ones, as en,zh."""
    codes = tuple(word.split(','))
    are_codes = all(map(re.compile(LANGUAGE).fullmatch, codes))
    if not are_codes or len(codes) > 2 or len({code.lower() for code in codes}) < len(codes):
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a language, or two of source and target, as en,zh'
        )
    return codes


@dataclass(frozen=True)
class Tmx(CorpusFormat):
    """Rows of one or two sides, the segments in one or two languages.

    Attributes:
        languages: of source and target, or of a text.
        markup: `drop` leaves out the inline elements with codes of a native format (`bpt`, `ept`,
            `it`, `ph`, `ut`), `text` keeps their text; text in other elements always stays.
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
        'of TMX: drop codes of a native format in inline elements, or keep them as text',
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
    reasons = (BROKEN_UNIT, UNDEFINED_ENTITY)
    forbidden_characters = '\0'  # XML does not allow it even as a reference
    takes_any_text = False
    content = XML

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
        if reject.reason == BROKEN_UNIT:
            return (
                f'the unit at byte {reject.offset} is not well-formed XML: {reject.why}; mend it '
                'there, or give --on-error=skip'
            )
        text = reject.line.decode('utf-8', 'replace')
        reference = re.search(r'&(?!(amp|lt|gt|quot|apos|#\w+);)[^;\s]*;?', text)
        name = shown(reference.group()) if reference else 'one'
        return (
            f'the unit at byte {reject.offset} refers to an entity that XML does not define, {name}; '
            'write the character itself, or give --on-error=skip'
        )


@dataclass(frozen=True)
class TmxLines(CorpusFormat):
    """Rows of two sides, from pairs of lines like ` <seg>text</seg>`; other lines are skipped.

    This is the rule of Tensor2Tensor's `paracrawl_v3_pairs` in its `data_generators/cleaner_en_xx.py`, for
    those who want the same pairs: it ignores languages, and does not parse XML.
    """

    name = 'tmx-lines'
    what = 'TMX by lines, as Tensor2Tensor reads it'
    roles = ('tmx_lines',)
    help = ('TMX with each <seg> on a line of its own, in turns source and target',)
    reader = 'tokcore.corpus.tmx_lines_reading:TmxLinesReader'
    reasons = (UNMATCHED_SEGMENT,)
    sides = ('inputs', 'targets')
    forbidden_characters = '\n'
    takes_any_text = False
    is_in_job_files_only = True

    def explain(self, reject: Reject) -> str:
        return (
            f'the segment at byte {reject.offset} has no partner after it; is the '
            'file cut off? mend it, or give --on-error=skip'
        )
