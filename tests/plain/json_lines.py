"""The rules of JSON lines, as plainly as `json.loads` allows, and such lines, drawn.

A line longer than may be is left out as `too_long`, one that is not UTF-8 as `invalid_utf8`, one
that is not an object as `invalid_json`. One that lacks a field is left out as `missing_field`, one with
something else than a string there as `not_a_string`, and one with half a surrogate pair in that
string as `lone_surrogate`: all of the first field before any of the second.
"""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer

from . import drawn_text
from .lines import NamedText, Reject, SplitRows, lines_of, without_mark

Paths = Sequence[Sequence[str]]

FIELDS: dict[str, Paths] = {
    'text': [['text']],
    'doc.text': [['doc', 'text']],
    r'a\.b': [['a.b']],
    'en,zh': [['en'], ['zh']],
    'translation.en,translation.zh': [['translation', 'en'], ['translation', 'zh']],
    'doc.text,text': [['doc', 'text'], ['text']],
    'doc,doc.text': [['doc'], ['doc', 'text']],  # of which a line never has both
}


def json_rows(
    files: Sequence[NamedText], paths: Paths, longest: int, normalizer: Normalizer = T2T_LINES
) -> SplitRows:
    """Returns the rows of fields."""
    found = SplitRows()
    for file in files:
        for offset, line in lines_of(file.text):
            text = without_mark(offset, line)
            cells, reason, damage = [''], '', 0
            if len(line) > longest:
                reason = 'too_long'
            elif text.strip(b' \t\r'):
                try:
                    cells, reason = _cells(text.decode(), paths)
                except UnicodeDecodeError as error:
                    reason, damage = 'invalid_utf8', len(line) - len(text) + error.start
            reject = Reject(reason, file.name, offset, line, damage=damage)
            found.add(offset, cells, [reject] if reason else [], normalizer)
    return found


def _cells(line: str, paths: Paths) -> tuple[list[str], str]:
    try:
        top = json.loads(line.strip(' \t\r'))
    except (ValueError, RecursionError):
        return [], 'invalid_json'
    if not isinstance(top, dict):
        return [], 'invalid_json'
    cells = []
    for path in paths:
        value = top
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return [], 'missing_field'
            value = value[name]
        if not isinstance(value, str):
            return [], 'not_a_string'
        if any('\ud800' <= each <= '\udfff' for each in value):
            return [], 'lone_surrogate'
        cells.append(value)
    return cells, ''


def places_of(content: object) -> Iterator[tuple[Any, Any]]:
    """Yields the container and the key of each value in a JSON value."""
    if isinstance(content, (dict, list)):
        for key in list(content) if isinstance(content, dict) else range(len(content)):
            yield content, key
            yield from places_of(content[key])


def draw_json_lines(dice: random.Random, paths: Paths) -> bytes:
    """Returns a file's text, with odd lines in half of all cases."""
    spoiled = dice.choice([0, 0, 0.03, 0.3, 1])
    count = dice.choice([1, 2, 5, 20, 20, 60, 60, 200])
    lines = [_line(dice, paths, spoiled) for _ in range(count)]
    ending = dice.choice([b'\n', b'\n', b'\n', b'\r\n'])
    text = ending.join(lines) + (ending if dice.random() < 0.8 else b'')
    return b'\xef\xbb\xbf' + text if spoiled and dice.random() < 0.1 else text


def _line(dice: random.Random, paths: Paths, spoiled: float) -> bytes:
    is_odd = dice.random() < spoiled
    how = dice.randrange(6) if is_odd else 0
    if how == 1:
        return dice.choice(_ODD_LINES)
    record: dict = {'id': dice.randrange(9), 'meta': {'text': 'not this', 'n': [1.5, None, {}]}}
    for path in paths:
        inner = record
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
            inner = inner if isinstance(inner, dict) else {}
        inner[path[-1]] = drawn_text.sentence(dice)
        if how == 2 and dice.random() < 0.7:
            inner[path[-1]] = copy.deepcopy(dice.choice(_ODD_VALUES))
        elif how == 3 and dice.random() < 0.7:
            del inner[path[-1]]
        elif how == 4 and dice.random() < 0.7:
            wild = drawn_text.line(dice, 1).decode('utf-8', 'replace')
            inner[path[-1]] = wild
    if is_odd and dice.random() < 0.3:
        record[dice.choice(['id', 'en', '', 'text', 'doc', '\0'])] = copy.deepcopy(
            dice.choice(_ODD_VALUES)
        )
    if dice.random() < 0.3:
        record = dict(sorted(record.items(), reverse=dice.random() < 0.5))
    line = json.dumps(
        record,
        ensure_ascii=dice.random() < 0.5,
        separators=dice.choice([None, (',', ':'), (' ,\t', '\r: ')]),
    ).encode('utf-8', 'surrogatepass')
    if how == 5:
        return drawn_text.mutated(dice, line, dice.choice([1, 1, 3])).replace(b'\n', b'')
    return line


_ODD_VALUES: list[object] = [
    None, 1, -0.0, True, [], ['text'], {}, {'text': 'x'}, '', ' ', '\r', 'a\rb', 'a\nb', '\n', '\0',
    '\ud83d', '\udc00x', '\ud83d\ude00', '\ufeff', '\u2028', '"\\/', 10**400, float('nan'), 1e300,
    'long ' * 3000,
]  # fmt: skip
_ODD_LINES = [
    b'', b' ', b'\t\r', b'\r', b'\x0b', b'\0', b'null', b'[]', b'"text"', b'17', b'{}', b'{"text":"x"',
    b'{"text":"x"}}', b'{"text":"x"} {"text":"y"}', b'{"text":"x",}', b"{'text':'x'}", b'{"text":x}',
    b'{"text":"1","text":"2"}', b'{"text":1,"text":"last"}', b'{"text":"first","text":1}',
    b'{"te\\u0078t":"escaped"}', b'{"text":"\\x"}', b'{"text":"tab\there"}', b'{"text":"\\ud83d\\u0041"}',
    b'{"text":"a\\u0000b"}', b'{"text\\u0000":"x"}', b'{"text":"x","n":01}', b'{"text":"x","n":1e999}',
    b'{"text":"x","n":-}', b'{"text":"x","n":.5}', b'{"text":"x","n":1.}', b'{"text":"x","n":-Infinity}',
    b'{"text":"x","\\ud800":1}', b'{"text":"x","n":"\\ud800"}', b'{"text":"x","n":tru}', b'\xc2\x85{}',
    b' \t{"text" : "x"}\t \r', b'{"text":"\xed\xa0\x80"}', b'{"doc":{"text":"x"},"doc":{"text":"y"}}',
    b'{"doc":"x","text":"y"}', b'{"doc":{"text":"x"},"doc":{}}', b'{"doc":{"text":"x","text":"y"}}',
    b'{"doc":null,"text":null}', b'{"doc":[{"text":"x"}]}', b'{"text":"x","n":[' + b'[' * 99 + b']' * 100 + b'}',
    b'{"text":"x"//\n}'.replace(b'\n', b''), b'{"text":"x"/**/}', b'{"text":"x"}\x1a', b'{,"text":"x"}',
    b'{"":"","text":"x"}', b'{"text":"' + b'x' * 70_000 + b'"}', b'\xff\xfe{\0"\0', b'\x1f\x8b',
]  # fmt: skip
