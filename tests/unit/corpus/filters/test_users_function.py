"""A user's own filter: called for each row, and what it may return."""

import hashlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_of_text import applied, kept

from tokcore.corpus.filters.registry import asked_filters, filter_list, make_filter
from tokcore.corpus.filters.users_function import RowError, UsersFunction
from tokcore.errors import InputError

CODE = """
import collections

def pairs(source, target):
    if source == 'drop':
        return None
    if source == 'cut':
        return [(source, word) for word in target.split()]
    return source, target.upper()

def single(text):
    return text.split() or None

not_a_function = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / 'filters_there.py').write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / 'filters_there.py'
    sys.modules.pop('filters_there', None)


def test_rows_are_dropped_changed_and_made_several(module):
    made = make_filter('filters_there:pairs')
    rows = [('a', 'é'), ('drop', 'x'), ('cut', 'one two'), ('B', 'WHOLE'), ('cut', '  ')]
    texts = [('a', 'É'), ('cut', 'one'), ('cut', 'two'), ('B', 'WHOLE')]
    assert applied(made, rows) == (texts, [0, 2, 2, 3])
    assert made.makes_several and made.name == 'filters_there:pairs'
    assert applied(make_filter('filters_there:single'), [('a b',), (' ',), ('字',)]) == (
        [('a',), ('b',), ('字',)], [0, 0, 2]
    )  # fmt: skip


TEXTS = st.text(st.characters(codec='utf-8'), max_size=6)
ANSWERS = st.one_of(
    st.none(), st.tuples(TEXTS, TEXTS), st.lists(st.tuples(TEXTS, TEXTS), max_size=3)
)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, ANSWERS), min_size=1, max_size=9))
def test_what_is_returned_is_what_comes_out(drawn):
    answers = iter([answer for *_, answer in drawn])
    asked = []

    def function(source, target):
        asked.append((source, target))
        return next(answers)

    rows = [(source, target) for source, target, _ in drawn]
    expected = [
        (row, each)
        for row, (*_, answer) in enumerate(drawn)
        for each in (answer if isinstance(answer, list) else [answer])
        if each is not None
    ]
    texts, numbers = applied(UsersFunction('own:function', function), rows)
    assert asked == rows
    assert list(zip(numbers, texts, strict=True)) == expected


@pytest.mark.parametrize(
    'returned',
    [True, 'text', ('one',), ('a', 3), ['text'], [None], ('a', 'b', 'c'), b'ab', {}],
    ids=str,
)
def test_what_is_no_row_of_two_is_refused_with_the_row_and_what_it_was(returned):
    made = UsersFunction('own:function', lambda source, _: (source, 'x') if source else returned)
    with pytest.raises(RowError, match='own:function returned .*a row is a tuple of 2 str') as refused:
        kept(made, [('first', 'x'), ('', 'y')])
    assert refused.value.row == 1


def test_an_error_of_a_function_is_told_by_its_last_line():
    made = UsersFunction('own:function', lambda text: {}[text])
    with pytest.raises(RowError, match=r"own:function fails with KeyError: 'key'; mend") as refused:
        kept(made, [('key',)])
    assert refused.value.row == 0
    with pytest.raises(RowError, match='fails with TypeError: .* positional argument'):
        kept(made, [('key', 'two')])


def test_text_that_utf_8_cannot_hold_is_refused():
    with pytest.raises(RowError, match='UTF-8 cannot hold'):
        kept(UsersFunction('own:function', lambda text: text + '\ud800'), [('a',)])


def test_what_cannot_be_imported_is_told_before_any_row(module, tmp_path):
    assert filter_list('nowhere.at_all:function') == ('nowhere.at_all:function',)
    for name, sentence in [
        ('nowhere.at_all:function', 'there is no module nowhere here; put its folder on PYTHONPATH'),
        ('lengths:function', 'or give length:MIN:MAX'),
        ('filters_there:missing', 'filters_there has no function missing; mend the name'),
        ('filters_there:not_a_function', 'has not_a_function, which is no function; mend'),
    ]:
        with pytest.raises(InputError, match=sentence):
            make_filter(name)
    (tmp_path / 'breaks_here.py').write_text('import not_installed_either')
    with pytest.raises(InputError, match="No module named 'not_installed_either'; install it"):
        make_filter('breaks_here:function')
    (tmp_path / 'breaks_too.py').write_text('1 / 0')
    with pytest.raises(InputError, match='fails with ZeroDivisionError: division by zero; mend it'):
        make_filter('breaks_too:function')


def test_its_stamp_is_a_digest_of_its_modules_source(module):
    [asked] = asked_filters(['filters_there:pairs'])
    assert asked.stamp == f'source {hashlib.sha256(CODE.encode()).hexdigest()[:16]}'
    module.write_text(CODE + '# changed\n')
    [changed] = asked_filters(['filters_there:pairs'])
    assert changed.stamp != asked.stamp
    assert make_filter('math:floor').stamp in ('', asked_filters(['math:floor'])[0].stamp)
