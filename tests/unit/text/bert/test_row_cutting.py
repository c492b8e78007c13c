"""Rows are cut where no token and no rule goes across, and never within a special token."""

import numpy as np
import pytest

from tokcore.text.bert.row_cutting import RowCuts, cut_places


def pieces(text, split_cjk=True, spaces=False):
    data = text.encode()
    array = np.frombuffer(data, np.uint8)
    places = cut_places(array, 0, len(data), split_cjk, spaces).tolist()
    bounds = zip([0, *places], [*places, len(data)], strict=True)
    return [data[start:end].decode() for start, end in bounds]


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('a b\tc\r\nd', ['a ', 'b\t', 'c\r', '\n', 'd']),
        ('(a)b', ['(', 'a)', 'b']),
        ("a'b.c:d^e`f", ["a'b.c:d^e`f"]),  # to a final sigma these are no ends
        ('!\u0301!a', ['!\u0301!', 'a']),
        ('一二', ['一二']),
        ('見a見', ['見a', '見']),
        ('éé', ['éé']),
    ],
)
def test_places(text, expected):
    assert pieces(text) == expected


def test_only_the_places_that_are_asked_for():
    assert pieces('見見', split_cjk=False) == ['見見']
    assert pieces('(a)b c見見', spaces=True) == ['(a)b ', 'c', '見', '見']


def test_none_is_within_a_special_token():
    text = np.frombuffer(b'ab [X Y] [X Y]', np.uint8)
    special = np.array([3, 9], np.uint64), np.array([8, 14], np.uint64)
    assert RowCuts(text, True, special).between(0, len(text)).tolist() == [3, 9]


def test_the_next_place_is_the_last_within_reach(monkeypatch):
    monkeypatch.setattr('tokcore.text.bert.row_cutting.WINDOW', 6)
    text = np.frombuffer(b'a b c d e' + b'x' * 20 + b' y z', np.uint8)
    cuts = RowCuts(text, True, None)
    ends = [0]
    while ends[-1] < len(text):
        ends.append(cuts.next(ends[-1], len(text)))
    assert ends[:2] == [0, 4] and ends[-1] == len(text)
    assert all(text[end - 1] == ord(' ') for end in ends[1:-1])
    assert max(np.diff(ends)) < 30
