"""TMX drawn unit by unit, so that it is known what each becomes."""

import random
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer

from .lines import NamedText, Reject, SplitRows

_TEXTS = [
    'a word',
    ' two  words ',
    '',
    '   ',
    'x & y',
    '<seg>é',
    '语料',
    'a > b',
    'x' * 3000,
    'z\tz',
]
_BETWEEN = ['', '\n', ' <!-- <tu> -->', '<?x <tu ?>', '<note>not a unit</note>', '<!---->' * 300]
_LANGUAGES = ['zh', 'ZH', 'zh-CN', 'fr', 'z']


def draw_tmx(
    dice: random.Random,
) -> tuple[bytes, Callable[[Sequence[NamedText], int, Normalizer], SplitRows]]:
    """Returns a file of pairs of English and Chinese, and what its units become."""
    head = dice.choice(['', '<?xml version="1.0"?>\n', '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'])
    data = f'{head}<tmx version="1.4"><body>\n'.encode()
    units: list[tuple[int, bytes, list[str] | None]] = []
    for number in range(dice.choice([0, 1, 9, 60, 400])):
        data += dice.choice(_BETWEEN).encode()
        unit, cells = _draw_unit(dice, number)
        units.append((len(data), unit, cells))
        data += unit
    data += b'</body></tmx>' + dice.choice([b'', b'\n'])

    def rows(
        files: Sequence[NamedText], longest: int, normalizer: Normalizer = T2T_LINES
    ) -> SplitRows:
        found = SplitRows()
        for offset, unit, cells in units:
            rejects = []
            if len(unit) > longest:
                number = files[0].text[:offset].count(b'\n') + 1
                rejects = [Reject('too_long', files[0].name, offset, unit, number=number)]
            if cells is None and not rejects:
                found.lines += 1
                found.missing_side += 1
            else:
                found.add(offset, cells or [], rejects, normalizer)
        return found

    return data, rows


def _draw_unit(dice: random.Random, number: int) -> tuple[bytes, list[str] | None]:
    """Returns a unit and its texts, or None if it lacks a language."""
    if dice.random() < 0.05:
        return b'<tu/>', None
    source, target = dice.choice(_TEXTS), dice.choice(_TEXTS)
    language = dice.choice(_LANGUAGES)
    variants = [('en', source), (language, target)]
    dice.shuffle(variants)
    body = ''.join(
        f'<tuv xml:lang="{name}">{dice.choice(_BETWEEN)}<seg>{_segment(dice, text)}</seg></tuv>'
        for name, text in variants
    )
    fits = language.lower() in ('zh', 'zh-cn')
    return f'<tu tuid="{number}">{body}</tu>'.encode(), [source, target] if fits else None


def _segment(dice: random.Random, text: str) -> str:
    if text and ']]>' not in text and dice.random() < 0.2:
        return f'<![CDATA[{text}]]>'
    written = escape(text)
    if dice.random() < 0.2:
        written += '<ph x="<tu>">code &amp; <sub>more</sub></ph>'.replace('"<', '"&lt;')
    if dice.random() < 0.2:
        written = ''.join(f'&#{ord(character)};' for character in text)
    return written
