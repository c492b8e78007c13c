"""SGM drawn and mutated, with the rules of its lines said once more as plainly as they can be.

As Tensor2Tensor reads them: a line without carriage returns and the white space around it is a
segment from `<seg` to `</seg>`. Any other is markup, or if there is text outside of tags, left out.
"""

import random
import re
from collections.abc import Sequence

from .line_rules import NamedText, Reject, SplitRows, add_row, lines_of, without_mark

_TEXTS = [
    'a word', ' two  words ', '', '   ', 'x &amp; y', '&lt;seg&gt; &#233;', '语料', 'a > b',
    '&#xD800;',
]  # fmt: skip
_MARKUP = ['<doc docid="a">', '</doc>', '<p>', '</p>', '', '<hl>', '<srcset>', '</refset>', '\t']
_BROKEN = [
    '<seg id="1">begins', 'ends</seg>', 'text', '<p>text', '<seg', '<seg</seg>', '<SEG>a</SEG>',
    '\xa0',
]  # fmt: skip
_REASONS = ('too_long', 'invalid_utf8', 'outside_segment')


def draw_sgm(dice: random.Random) -> tuple[bytes, bytes]:
    """Returns two files of as many lines."""
    pairs = []
    oddness = dice.choice([0, 0, 0.05, 0.4])
    for number in range(dice.choice([0, 1, 9, 60, 400])):
        pair = []
        for _ in range(2):
            if dice.random() < oddness:
                line = dice.choice(_BROKEN).encode()
                long = b'<seg>' + b'x' * dice.choice([50, 3000])
                line = dice.choice([line, b'\xff' + line, long])
            elif number % 9:
                space = dice.choice(['', '', ' ', '\u3000'])
                line = f'{space}<seg id="{number}">{dice.choice(_TEXTS)}</seg>'.encode()
            else:
                line = dice.choice(_MARKUP).encode()
            pair.append(line + dice.choice([b'', b'', b'\r', b' ']))
        pairs.append(pair)
    return tuple(b''.join(pair[side] + b'\n' for pair in pairs) for side in (0, 1))


def sgm_rows(files: Sequence[NamedText], decodes: bool, longest: int) -> SplitRows | None:
    """Returns the rows of two files, or None if they have other numbers of lines."""
    sides = [lines_of(file.text) for file in files]
    if len(sides[0]) != len(sides[1]):
        return None
    found = SplitRows()
    for pair in zip(*sides, strict=True):
        found.lines += 1
        texts, bad = [], []
        for file, (offset, line) in zip(files, pair, strict=True):
            is_long = len(line) > longest
            reason, text = ('too_long', '') if is_long else _segment(without_mark(offset, line))
            texts.append(_decoded(text) if decodes else text)
            if reason:
                bad.append(Reject(reason, file.name, offset, line))
        bad.sort(key=lambda reject: _REASONS.index(reject.reason))
        add_row(found, texts, bad[:1])
    return found


def _segment(line: bytes) -> tuple[str, str]:
    """Returns why a line is left out, and its text."""
    try:
        text = line.replace(b'\r', b'').decode().strip()
    except UnicodeDecodeError:
        return 'invalid_utf8', ''
    if text.startswith('<seg') and text.endswith('</seg>'):
        return '', text[text.index('>') + 1 : -6]
    outside = re.sub('<[^>]*(>|$)', '', text)
    return 'outside_segment' if outside.strip(' \t\x0b\x0c') else '', ''


def _decoded(text: str) -> str:
    names = {'amp': '&', 'lt': '<', 'gt': '>', 'quot': '"', 'apos': "'"}

    def character(match: re.Match) -> str:
        if match[1]:
            return names[match[1]]
        value = int(match[2]) if match[2] else int(match[3], 16)
        allowed = value in (9, 10, 13) or 32 <= value < 0x110000
        refused = 0xD800 <= value < 0xE000 or value in (0xFFFE, 0xFFFF)
        return chr(value) if allowed and not refused else match[0]

    pattern = '&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,10})|#[xX]([0-9a-fA-F]{1,10}));'
    return re.sub(pattern, character, text)
