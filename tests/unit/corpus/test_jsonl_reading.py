"""What becomes of a JSON line depends on that line alone, and is what Python's parser says."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.fields import field_path
from tokcore.corpus.jsonl_reading import FieldsToRead, json_rows
from tokcore.text.normalizers import UNSTRIPPED_LINES

FIELDS = FieldsToRead((('a',), ('b', 'c')))

TEXTS = st.text(st.characters(exclude_categories=['Cs']), max_size=8)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from('abcxé'), inner, max_size=3)
    ),
    max_leaves=5,
)
GOOD = st.fixed_dictionaries(
    {'a': TEXTS, 'b': st.fixed_dictionaries({'c': TEXTS})}, optional={'z': VALUES}
)
OBJECTS = st.one_of(GOOD, st.dictionaries(st.sampled_from('abz'), VALUES, max_size=3), VALUES)
LINES = st.one_of(
    st.builds(lambda value, ascii: json.dumps(value, ensure_ascii=ascii).encode(), OBJECTS, st.booleans()),
    st.sampled_from([
        b'', b'  ', b' {"a": "x", "b": {"c": "y"}} \r', b'{"a": "1", "a": "2", "b": {"c": "3"}}',
        b'{"a": "\\ud800", "b": {"c": "y"}}', b'{"a": "\\ud83d\\ude00", "b": {"c": "\\n"}}',
        b'{"a": "\xff", "b": {"c": "y"}}', b'{"a": "x", "b": {"c": "y"}', b'{"a": "x"} {"a": "y"}',
        b'{"a": NaN, "b": {"c": "y"}}', b'{"z": [{"a": "x"}], "a": "q", "b": {"c": "", "c": "z"}}',
        b'[', b'{"a": "x",}', b'{"a": "tab\there", "b": {"c": "y"}}', b'{}', b'\xef\xbb\xbf{"a": "x"}',
    ]),
)  # fmt: skip


def plain(line):
    """The strings of a line, or why there are none."""
    if not line.strip(b' \t\r'):
        return 'empty'
    try:
        found = json.loads(line.decode().strip(' \t\r'))
    except UnicodeDecodeError:
        return 'invalid_utf8'
    except ValueError:
        return 'invalid_json'
    if not isinstance(found, dict):
        return 'invalid_json'
    strings = []
    for path in FIELDS.paths:
        value = found
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return 'missing_field'
            value = value[name]
        if not isinstance(value, str):
            return 'not_a_string'
        if any('\ud800' <= each < '\ue000' for each in value):
            return 'lone_surrogate'
        strings.append(value)
    return tuple(strings) if all(map(str.strip, strings)) else 'empty'


def found_in(data, offset=0):
    """By the place of each line what became of it; lines that are empty lack."""
    rows = json_rows(data, offset, FIELDS, UNSTRIPPED_LINES)
    found = {reject.offset: reject.reason for reject in rows.rejects}
    for row, place in enumerate(rows.offsets.tolist()):
        found[place] = tuple(side.row(row) for side in rows.sides)
    assert rows.lines == len(found) + rows.empty
    return found


@given(st.lists(LINES, max_size=12))
def test_any_lines_in_any_blocks(lines):
    expected, place = {}, 0
    for line in lines:
        if (became := plain(line)) != 'empty':
            expected[place] = became
        place += len(line) + 1
    data = b''.join(line + b'\n' for line in lines)
    assert found_in(data) == expected
    alone = {}
    place = 0
    for line in lines:
        alone |= found_in(line + b'\n', place)
        place += len(line) + 1
    assert alone == expected


def test_depth_is_no_danger():
    good = b'{"a": "x", "b": {"c": "y"}}\n'
    for depth in (10_000, 1_000_000):
        ignored = b'{"z": ' + b'[' * depth + b']' * depth + b', "a": "x", "b": {"c": "y"}}\n'
        wanted = b'{"a": ' + b'{"a":' * depth + b'1' + b'}' * depth + b', "b": {"c": "y"}}\n'
        found = found_in(good + ignored + wanted)
        assert [found[place] for place in sorted(found)][:2] == [('x', 'y')] * 2
        assert set(found.values()) <= {('x', 'y'), 'invalid_json', 'not_a_string'}


def test_a_bad_line_is_found_among_many():
    dice = random.Random(1)
    lines = [json.dumps({'a': f'{k}', 'b': {'c': 'y' * (k % 9 + 1)}}).encode() for k in range(3000)]
    for number in dice.sample(range(3000), 5):
        lines[number] = b'{"a": 1}'
    found = found_in(b'\n'.join(lines))
    assert [*found.values()].count('not_a_string') == 5
    assert len(found) == 3000


@pytest.mark.parametrize(
    ('typed', 'path'), [('text', ('text',)), ('a.b', ('a', 'b')), (r'a\.b.c', ('a.b', 'c'))]
)
def test_dots_lead_into_objects(typed, path):
    assert field_path(typed) == path


def test_an_empty_name_is_none():
    with pytest.raises(ValueError, match='an empty name'):
        field_path('a..b')
