"""SGM drawn, and the rules of its lines and segments.

As Tensor2Tensor reads them: a line without carriage returns and the white space around it is a
segment from `<seg` to `</seg>`. Any other is markup, or if there is text outside of tags, left out.
Where the segments of both files are not on the same lines with the same ids, these pair them.
"""

import codecs
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokcore.text.normalizers import T2T_LINES, UNSTRIPPED_LINES
from tokcore.text.rows import Normalizer

from .lines import NamedText, Reject, SplitRows, damage_of, judged_lines, lines_of

_TEXTS = [
    'a word', ' two  words ', '', '   ', 'x &amp; y', '&lt;seg&gt; &#233;', '语料', 'a > b',
    '&#xD800;',
]  # fmt: skip
_MARKUP = ['<doc docid="a">', '</doc>', '<p>', '</p>', '', '<hl>', '<srcset>', '</refset>', '\t']
_BROKEN = [
    '<seg id="1">begins', 'ends</seg>', 'text', '<p>text', '<seg', '<seg</seg>', '<SEG>a</SEG>',
    '\xa0',
]  # fmt: skip
_SEVERAL = [
    '<seg id="1">a</seg><seg id="2">b</seg>',
    '<seg id="3">a</seg> <seg>b</seg>',
    '<doc id=b>',
]


def draw_sgm(dice: random.Random) -> tuple[bytes, bytes]:
    """Returns two files of as many lines."""
    pairs = []
    oddness = dice.choice([0, 0, 0.05, 0.4])
    has_ids = dice.random() < 0.7
    for number in range(dice.choice([0, 1, 9, 60, 400])):
        pair = []
        for _ in range(2):
            if dice.random() < oddness:
                line = dice.choice(_BROKEN + _SEVERAL).encode()
                long = b'<seg>' + b'x' * dice.choice([50, 3000])
                line = dice.choice([line, b'\xff' + line, long])
            elif number % 9:
                space = dice.choice(['', '', ' ', '\u3000'])
                name = f' id="{number}"' if has_ids else ''
                line = f'{space}<seg{name}>{dice.choice(_TEXTS)}</seg>'.encode()
            else:
                line = dice.choice(_MARKUP).encode()
            pair.append(line + dice.choice([b'', b'', b'\r', b' ']))
        pairs.append(pair)
    return tuple(b''.join(pair[side] + b'\n' for pair in pairs) for side in (0, 1))


def sgm_rows(
    files: Sequence[NamedText], decodes: bool, longest: int, normalizer: Normalizer = T2T_LINES
) -> SplitRows:
    """Returns the rows of two files."""
    segments = [_find(file.text) for file in files]
    if not _are_on_the_same_lines(files, segments):
        return _paired_by_ids(files, segments, decodes, longest, normalizer)
    sides = [lines_of(file.text) for file in files]
    found = SplitRows()
    judged = (judged_lines(file, longest, T2T_LINES) for file in files)
    for pair, lines in zip(zip(*judged, strict=True), zip(*sides, strict=True), strict=True):
        texts, rejects = [], []
        for file, (offset, raw, reject), (_, line) in zip(files, pair, lines, strict=True):
            reason, text = _segment(raw.decode().strip())
            texts.append(decoded(text) if decodes else text)
            if reject or reason:
                rejects.append(reject or Reject(reason, file.name, offset, line))
        found.add(pair[0][0], texts, rejects, normalizer)
    return found


@dataclass(frozen=True)
class _Found:
    """A segment, where it is, and whether its end tag is missing."""

    start: int
    end: int
    text: bytes
    line: int
    last_line: int
    document: tuple[int, bytes | None]
    id: bytes | None
    is_open: bool


def _find(data: bytes) -> list[_Found]:
    found: list[_Found] = []
    documents, document = 0, (0, None)
    opened, at = None, 0

    def end_segment(before: int, after: int, is_open: bool) -> None:
        if opened is not None:
            start, text = opened
            lines = [data.count(b'\n', 0, place) + 1 for place in (start, after)]
            tag = data[start:text]
            found.append(
                _Found(
                    start,
                    after,
                    data[text:before],
                    *lines,
                    document,
                    _attribute(tag, b'id'),
                    is_open,
                )
            )

    while at < len(data):
        kind, after = _tag(data, at)
        if not kind:
            at += 1
            continue
        end_segment(at, after if kind == 'end' else at, kind != 'end')
        opened = (at, after) if kind == 'segment' else None
        if kind == 'document':
            documents += 1
            tag = data[at:after]
            document = documents, _attribute(tag, b'docid') or _attribute(tag, b'id')
        elif kind == 'document end':
            document = (0, None)
        at = after
    end_segment(len(data), len(data), True)
    return found


def _tag(data: bytes, at: int) -> tuple[str, int]:
    """Returns what kind of tag begins at a place, if any, and where it ends."""
    word = data[at : at + 7].lower()
    end = data.find(b'>', at) + 1
    if data[at : at + 6] == b'</seg>':
        return 'end', at + 6
    if word[:5] == b'</doc' and word[5:6] and word[5:6] in b' \t\n\r\f\v>':
        return 'document end', at + 5
    if end and data[at : at + 4] == b'<seg' and word[4:5] in b' \t\n\r\f\v>/':
        return 'segment', end
    if end and word[:4] == b'<doc' and word[4:5] in b' \t\n\r\f\v>':
        return 'document', end
    return '', at


def _attribute(tag: bytes, name: bytes) -> bytes | None:
    pattern = rb'(?i)\s%s\s*=\s*("[^"]+"|\'[^\']+\'|[^\s"\'>]+)' % name
    match = re.search(pattern, tag)
    return match[1].strip(match[1][:1]) if match and match[1][:1] in b'"\'' else match and match[1]


def _are_on_the_same_lines(files: Sequence[NamedText], found: Sequence[Sequence[_Found]]) -> bool:
    for side in found:
        if any(each.is_open or each.line != each.last_line for each in side):
            return False
        if len({each.line for each in side}) < len(side):
            return False
    if len({len(lines_of(file.text)) for file in files}) > 1:
        return False
    keys = [[[each.line for each in side] for side in found]]
    for of_side in ([[each.id for each in side] for side in found],
                    [[each.document[1] for each in side] for side in found]):  # fmt: skip
        if all(any(names) for names in of_side):
            keys.append(of_side)
    return all(source == target for source, target in keys)


def _paired_by_ids(
    files: Sequence[NamedText], found: Sequence[Sequence[_Found]], decodes: bool, longest: int,
    normalizer: Normalizer,
) -> SplitRows:  # fmt: skip
    rows = SplitRows()
    documents = [{}, {}]
    for side, segments in enumerate(found):
        for each in segments:
            number, name = each.document
            documents[side].setdefault(number if name is None else name, []).append(each)
    names = [{key: key if isinstance(key, bytes) else None for key in side} for side in documents]
    pairs, alone = [], [list(side) for side in found]
    for keys in _match(*([(key, name) for key, name in side.items()] for side in names)):
        segments = [[(each, each.id) for each in documents[side][keys[side]]] for side in (0, 1)]
        pairs += _match(*segments)
    pairs.sort(key=lambda pair: pair[0].start)
    for pair in pairs:
        for side, each in enumerate(pair):
            alone[side].remove(each)
    for pair in pairs:
        texts, bad = [], []
        for side, each in enumerate(pair):
            content = each.text.strip(b'\r\n').replace(b'\r', b'').replace(b'\n', b' ')
            reason, text = '', ''
            if each.end - each.start > longest:
                reason = 'too_long'
            else:
                try:
                    text = content.decode()
                except UnicodeDecodeError:
                    reason = 'invalid_utf8'
            if not reason and each.is_open:
                reason = 'outside_segment'
            texts.append(decoded(text) if decodes else text)
            if reason:
                bad.append(_reject(reason, files[side], found[side], each))
        offset = _reject('', files[0], found[0], pair[0]).offset
        rows.add(offset, texts, bad, normalizer)
    for side, file in enumerate(files):
        others = [_reject('unmatched_segment', file, found[side], each) for each in alone[side]]
        others += _outside(file, found[side])
        rows.lines += len(others)
        rows.rejects += others
    order = [file.name for file in files]
    rows.rejects.sort(key=lambda reject: (order.index(reject.file), reject.offset))
    return rows


def _match(source: list, target: list) -> list:
    """Pairs things by their names, which are None where there are none, and the rest in order."""
    both = (source, target)
    names = [[name for _, name in side] for side in both]
    twice = {name for side in names for name in side if name is not None and side.count(name) > 1}
    pairs, left = [], [[], []]
    for side, other in ((0, 1), (1, 0)):
        for thing, name in both[side]:
            if name in twice:
                continue
            if name is None or name not in names[other]:
                left[side].append((thing, name))
            elif side == 0:
                pairs.append((thing, next(each for each, its in target if its == name)))
    if len(left[0]) == len(left[1]):
        in_order = list(zip(*left))
        if all(a[1] is None or b[1] is None for a, b in in_order):
            pairs += [(a[0], b[0]) for a, b in in_order]
    return pairs


def _reject(reason: str, file: NamedText, found: Sequence[_Found], each: _Found) -> Reject:
    is_first = next(other for other in found if other.line == each.line) is each
    offset = file.text.rfind(b'\n', 0, each.start) + 1 if is_first else each.start
    line = file.text[each.start : each.end]
    damage = each.start - offset
    if reason == 'invalid_utf8':
        damage += damage_of(line, UNSTRIPPED_LINES) or 0
    return Reject(reason, file.name, offset, line, number=each.line, damage=damage)


def _outside(file: NamedText, found: Sequence[_Found]) -> list[Reject]:
    rejects = []
    mark = len(codecs.BOM_UTF8) if file.text.startswith(codecs.BOM_UTF8) else 0
    bounds = [mark, *(at for each in found for at in (each.start, each.end)), len(file.text)]
    for start, end in zip(bounds[::2], bounds[1::2]):
        blank = bytearray(file.text[start:end])
        in_tag = False
        for place, byte in enumerate(blank):
            in_tag = in_tag or byte == ord('<')
            if in_tag and byte != ord('\n'):
                blank[place] = ord(' ')
            in_tag = in_tag and byte != ord('>')
        for place, line in lines_of(bytes(blank)):
            if line.strip():
                at = start + place
                number = file.text.count(b'\n', 0, at) + 1
                written = file.text[at : at + len(line)]
                rejects.append(Reject('outside_segment', file.name, at, written, number=number))
    return rejects


def _segment(text: str) -> tuple[str, str]:
    """Returns why a line is rejected, and its text."""
    if text.startswith('<seg') and text.endswith('</seg>'):
        return '', text[text.index('>') + 1 : -6]
    outside = re.sub('<[^>]*(>|$)', '', text)
    return 'outside_segment' if outside.strip(' \t\x0b\x0c') else '', ''


def decoded(text: str) -> str:
    """Returns a text whose references are the characters that they stand for."""
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
