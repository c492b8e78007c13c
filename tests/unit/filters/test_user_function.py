"""A user's own filter: called for each row, and what it may return."""

import hashlib
import signal
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_of_text import applied, kept, side_of

from tokcore.corpus.corpus import RowLimits, UnfitRow
from tokcore.errors import InputError
from tokcore.filters.registry import filter_list, filter_specs, make_filter
from tokcore.filters.user_function import RowError, UserFunction

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
    texts, numbers = applied(UserFunction('own:function', function), rows)
    assert asked == rows
    assert list(zip(numbers, texts, strict=True)) == expected


@pytest.mark.parametrize(
    'returned',
    [True, 'text', ('one',), ('a', 3), ['text'], [None], ('a', 'b', 'c'), b'ab', {}],
    ids=str,
)
def test_what_is_not_a_row_of_two_is_unfit_with_the_row_and_what_it_was(returned):
    made = UserFunction('own:function', lambda source, _: (source, 'x') if source else returned)
    [found] = unfit(made, [('first', 'x'), ('', 'y')])
    what = returned[0] if isinstance(returned, list) else returned
    assert found == UnfitRow(1, 'filter_no_row', found.why)
    assert f'own:function returned {what!r}, and a row is a tuple of 2 str' in found.why


def unfit(made, rows):
    """The rows that a filter could make none of; all others come out."""
    found = made.apply(tuple(map(side_of, zip(*rows, strict=True))))
    assert [*found.rows, *(each.row for each in found.unfit)] == [*range(len(rows))]
    return found.unfit


class Hostile:
    """What raises whatever is done to it."""

    def __repr__(self):
        raise SystemExit(0)

    __eq__ = __len__ = __iter__ = __hash__ = __repr__


class Text(str):
    __eq__ = __len__ = __iter__ = encode = __str__ = Hostile.__repr__
    __hash__ = str.__hash__


class Row(tuple):
    __len__ = __iter__ = __getitem__ = Hostile.__repr__


class Rows(list):
    __len__ = __iter__ = __getitem__ = Hostile.__repr__


def test_a_result_that_cannot_be_shown_is_told_by_its_type():
    [found] = unfit(UserFunction('own:function', lambda text: Hostile()), [('a',)])
    assert 'own:function returned an object of the type Hostile, and a row is a str' in found.why


def test_classes_of_a_functions_own_are_taken_as_what_they_hold():
    returned = Rows([Row([Text('x'), Text('y')]), Row([Text('z'), 'u'])])
    made = UserFunction('own:function', lambda source, target: returned)
    assert applied(made, [('a', 'b')]) == ([('x', 'y'), ('z', 'u')], [0, 0])


class Broken(Exception):
    __str__ = Hostile.__repr__


@pytest.mark.parametrize(
    'raised',
    [SystemExit(0), GeneratorExit(), KeyboardInterrupt(), MemoryError(), KeyError('key'), Broken()],
    ids=lambda raised: type(raised).__name__,
)
def test_whatever_a_function_raises_is_told_with_its_row(raised):
    def function(text):
        if text == 'b':
            raise raised
        return text

    with pytest.raises(
        RowError, match=f'own:function fails with .*{type(raised).__name__}'
    ) as refused:
        kept(UserFunction('own:function', function), [('a',), ('b',)])
    assert refused.value.row == 1


def interrupt(*given):
    signal.raise_signal(signal.SIGINT)
    return given


@pytest.fixture
def ctrl_c():
    """SIGINT raises KeyboardInterrupt, which a process started in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_a_function_runs_is_not_the_functions_error(monkeypatch, tmp_path, ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        kept(UserFunction('own:function', interrupt), [('a',)])
    (tmp_path / 'interrupted.py').write_text('import signal; signal.raise_signal(signal.SIGINT)')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make_filter('interrupted:function')
    assert signal.getsignal(signal.SIGINT) is ctrl_c


@pytest.mark.parametrize(
    ('limits', 'returned', 'reason', 'why'),
    [
        (RowLimits(5), 'ééé', 'filter_too_long', 'made more than 5 bytes of it'),
        (RowLimits(5), 'x' * 1000, 'filter_too_long', 'made more than 5 bytes of it'),
        (RowLimits(5), ['a', 'abc', 'xx'], 'filter_too_long', 'made more than 5 bytes of it'),
        (
            RowLimits(forbidden_characters='\n\0'),
            'a\nb',
            'filter_no_row',
            'returned text with a line feed',
        ),
        (RowLimits(forbidden_characters='\n\0'), '\0', 'filter_no_row', 'returned text with a NUL'),
        (RowLimits(), '\ud800', 'filter_no_row', 'returned text that UTF-8 cannot hold'),
        (RowLimits(), 3, 'filter_no_row', 'returned 3, and a row is a str'),
    ],
)
def test_what_cannot_be_a_row_is_unfit_and_others_go_on(limits, returned, reason, why):
    made = UserFunction('own:function', lambda text: returned if text == 'long row' else text)
    rows = [('another',), ('long row',)]
    [found] = unfit(made.with_limits(limits), rows)
    assert (found.row, found.reason) == (1, reason) and why in found.why
    # What is as it was given is a row already; so is a shorter one.
    assert unfit(UserFunction('own:function', lambda text: text).with_limits(limits), rows) == ()


def test_what_a_worker_cannot_hold_is_refused_with_the_row_where_it_is_too_much():
    made = UserFunction('own:function', lambda text: 'x' * 100).with_limits(RowLimits(100))
    rows = [('a',)] * 4
    assert len(kept_rows(made, rows)) == 4
    with pytest.raises(RowError, match='a worker cannot hold it; .* --max-line-size') as refused:
        kept_rows(made, rows + rows)
    assert refused.value.row == 4


def kept_rows(made, rows):
    return made.apply(tuple(map(side_of, zip(*rows, strict=True)))).rows


def test_what_cannot_be_imported_is_told_before_any_row(module, tmp_path):
    assert filter_list('nowhere.at_all:function') == ('nowhere.at_all:function',)
    for name, sentence in [
        (
            'nowhere.at_all:function',
            'there is no module nowhere here; put its folder on PYTHONPATH',
        ),
        ('lengths:function', 'or give length:MIN:MAX'),
        ('filters_there:missing', 'filters_there has no function missing; mend the name'),
        ('filters_there:not_a_function', 'has not_a_function, which is not a function; mend'),
    ]:
        with pytest.raises(InputError, match=sentence):
            make_filter(name)
    (tmp_path / 'breaks_here.py').write_text('import not_installed_either')
    with pytest.raises(InputError, match="No module named 'not_installed_either'; install it"):
        make_filter('breaks_here:function')
    for name, text, sentence in [
        ('exits', 'import sys; sys.exit(0)', 'SystemExit: 0; let it do so only if __name__ == '),
        ('stops', 'raise KeyboardInterrupt', 'KeyboardInterrupt; mend it'),
        ('closes', 'raise GeneratorExit', 'GeneratorExit; mend it'),
    ]:
        (tmp_path / f'{name}.py').write_text(text)
        with pytest.raises(InputError, match=f'{name}:f: importing {name} fails with {sentence}'):
            make_filter(f'{name}:f')
    (tmp_path / 'breaks_too.py').write_text('1 / 0')
    with pytest.raises(InputError, match='fails with ZeroDivisionError: division by zero; mend it'):
        make_filter('breaks_too:function')


def test_its_stamp_is_a_digest_of_its_modules_source(module):
    [asked] = filter_specs(['filters_there:pairs'])
    assert asked.stamp == f'source {hashlib.sha256(CODE.encode()).hexdigest()[:16]}'
    module.write_text(CODE + '# changed\n')
    [changed] = filter_specs(['filters_there:pairs'])
    assert changed.stamp != asked.stamp
    assert make_filter('math:floor').stamp in ('', filter_specs(['math:floor'])[0].stamp)
