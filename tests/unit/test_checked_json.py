"""A value of JSON is what its declaration says, or an error names its place, its value and what it must be."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest

from tokcore.checked_json import Matches, Within, WrongValue, checked, fields_of


@dataclass(frozen=True)
class File:
    name: Annotated[str, Matches('[a-z]+', 'a name of small letters')]
    rows: Annotated[int, Within(0, 9)] = 0


@dataclass(frozen=True)
class Folder:
    files: tuple[File, ...]
    kind: Literal['a', 'b'] = 'a'
    note: str | None = None
    columns: tuple[int | str, ...] = ()
    further: dict[str, object] | None = None


def test_objects_are_dataclasses_and_lists_tuples():
    value = {
        'files': [{'name': 'x', 'rows': 3, 'else': 1}, {'name': 'y'}],
        'columns': [0, 'b'],
        'note': None,
    }
    assert checked(value, Folder) == Folder((File('x', 3), File('y', 0)), columns=(0, 'b'))
    assert fields_of({'kind': 'b', 'files': []}, Folder) == {'files': (), 'kind': 'b'}
    assert checked({'files': [], 'further': {'a': [1]}}, Folder).further == {'a': [1]}


@pytest.mark.parametrize(
    ('value', 'message'),
    [
        (None, 'it is None and not an object with names'),
        ({}, 'files is missing'),
        ({'files': {}}, 'files is {} and not a list'),
        ({'files': [3]}, r'files\[0\] is 3 and not an object'),
        ({'files': [{'name': 'x'}, {'name': 'x', 'rows': 10}]},
         r'files\[1\].rows is 10 and not a whole number from 0 to 9'),
        ({'files': [{'name': 'x', 'rows': True}]}, 'rows is True and not a whole number'),
        ({'files': [{'name': 'x', 'rows': 1.0}]}, 'rows is 1.0 and not a whole number'),
        ({'files': [{'name': 'X'}]}, "name is 'X' and not a name of small letters"),
        ({'files': [{'name': 'x\n'}]}, 'and not a name of small letters'),
        ({'files': [], 'kind': 'c'}, "kind is 'c' and not 'a' or 'b'"),
        ({'files': [], 'kind': []}, "and not 'a' or 'b'"),
        ({'files': [], 'note': 5}, 'note is 5 and not a text'),
        ({'files': [], 'columns': [None]}, r'columns\[0\] is None and not a whole number or a text'),
        ({'files': [], 'columns': 'ab'}, "columns is 'ab' and not a list"),
        ({'files': [], 'further': {5: 6}}, 'and not an object with names'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(value, message):
    with pytest.raises(WrongValue, match=message):
        checked(value, Folder)


@pytest.mark.parametrize(
    'value', ['x' * 10**7, [[]] * 10**6, 10**10_000, {'a': {'b': {'c': {'d': {'e': {'f': {}}}}}}}],
    ids=['text', 'list', 'number', 'deep'],
)  # fmt: skip
def test_an_error_is_short_whatever_the_value(value):
    with pytest.raises(WrongValue) as caught:
        checked(value, bool, 'x')
    assert len(str(caught.value)) < 300


def test_numbers_of_numpy_are_numbers():
    assert type(checked(np.int64(5), int)) is int
    assert checked(np.bool_(True), bool) is True
    with pytest.raises(WrongValue):
        checked(np.float64(5), int)
