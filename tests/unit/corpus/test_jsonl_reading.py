"""JSON lines where the plain rules draw too little: depth, many lines, paths of fields."""

import json
import random

import pytest
from read_format import became_of

from tokcore.corpus.declarations import JsonLines
from tokcore.corpus.fields import field_path

PAIRS = JsonLines(fields=('a', 'b.c'))


def test_depth_is_no_danger():
    good = b'{"a": "x", "b": {"c": "y"}}\n'
    for depth in (10_000, 1_000_000):
        ignored = b'{"z": ' + b'[' * depth + b']' * depth + b', "a": "x", "b": {"c": "y"}}\n'
        wanted = b'{"a": ' + b'{"a":' * depth + b'1' + b'}' * depth + b', "b": {"c": "y"}}\n'
        found = [*became_of(PAIRS, good + ignored + wanted).found.values()]
        assert found[:2] == [('x', 'y')] * 2
        assert set(found) <= {('x', 'y'), 'invalid_json', 'not_a_string'}


def test_a_bad_line_is_found_among_many():
    dice = random.Random(1)
    lines = [json.dumps({'a': f'{k}', 'b': {'c': 'y' * (k % 9 + 1)}}).encode() for k in range(3000)]
    for number in dice.sample(range(3000), 5):
        lines[number] = b'{"a": 1}'
    found = became_of(PAIRS, b'\n'.join(lines)).found
    assert [*found.values()].count('not_a_string') == 5 and len(found) == 3000


@pytest.mark.parametrize(
    ('typed', 'path'), [('text', ('text',)), ('a.b', ('a', 'b')), (r'a\.b.c', ('a.b', 'c'))]
)
def test_dots_lead_into_objects(typed, path):
    assert field_path(typed) == path


def test_an_empty_name_is_refused():
    with pytest.raises(ValueError, match='an empty name'):
        field_path('a..b')
