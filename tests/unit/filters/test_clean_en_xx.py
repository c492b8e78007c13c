"""`clean_en_xx` over blocks of rows, against its rules over strings."""

import itertools
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import side_of

from tests.plain_cleaning import TESTS, clean_pair, failed_test
from tokcore.errors import InputError
from tokcore.filters.clean_en_xx import (
    CleanEnXx,
    check_beginning,
    check_ends,
    check_whole,
    english_classes,
    failed_tests,
)
from tokcore.kernels.jit import read_only

NAMES = list(TESTS)
IMPLIED = {'initial-quote', 'final-quote'}
"""By `one-quote`."""

FEW = '"“”\'‘’st ABcd09_.?!:;,()-©\n\xa0\u3000é字٣²\u0301|'
PIECES = [
    'A cat. ', 'It is. ', 'No! ', 'Why? ', 'USA. ', 'x9. ', 'B. ', '9. A', '字. B', '。', ' ', '  ',
    '__|__', '|__', '__', 'Copyright ', '(C)', '(', ')', 'NEW YORK -', 'NAME_', 'Note: ',
    '2 3', ' , ', '"', '“',
    '”', "'", "'s ", '‘x', '’', '\n', '\u3000', 'é', 'text', 'Is',
]  # fmt: skip

texts = st.one_of(
    st.text(st.sampled_from(FEW), max_size=20),
    st.lists(st.sampled_from(PIECES), max_size=8).map(''.join),
    st.text(st.characters(exclude_categories=['Cs']), max_size=12),
)
sentences = st.builds(
    '{}{}{}'.format,
    st.sampled_from(['A', '"A', 'It is. A', 'B. C']),
    texts,
    st.sampled_from(['a.', 'a!"', '9?', 'a.\n', 'A.']),
)
english_texts = st.one_of(texts, sentences)
between = st.sampled_from(['', '\n', 'A', '"', 'a. B', '__', '字', '3 ', ' ', '.'])


def pairs_of(filtered):
    sides = [[side.row(index) for index in range(len(side))] for side in filtered.sides]
    pairs = zip(filtered.rows.tolist(), *sides, filtered.is_kept, strict=True)
    return [tuple(pair) for *pair, is_kept in pairs if is_kept]


def cleaned(*pairs, english=0):
    sides = tuple(side_of(texts, ['\n'] * len(texts)) for texts in zip(*pairs, strict=True))
    return pairs_of(CleanEnXx(english).apply(sides))


def found_by_kernels(text, before, behind):
    """The names of all tests that find a text bad, which stands between two others."""
    whole = (before + text + behind).encode()
    data = read_only(np.frombuffer(whole, np.uint8))
    place = len(before.encode()), len(whole) - len(behind.encode()), english_classes()
    kernels = check_ends, check_beginning, check_whole
    found = 0
    for each in kernels:
        found |= int(each(data, *place))
    return {name for bit, name in enumerate(NAMES) if found >> bit & 1}


@pytest.mark.parametrize(('pattern', 'bit'), [(r'\w', 1), (r'\s', 2), (r'\d', 4)])
def test_characters_are_what_they_are_to_regular_expressions(pattern, bit):
    matched = set(re.findall(pattern, ''.join(map(chr, range(0x110000)))))
    assert {chr(code) for code in np.flatnonzero(english_classes() & bit)} == matched


HARD = [
    '', '"', '"\n', '“.', 'a.“', '”', '."', "'a'b'c", "'\n'\n'\n", "'a\n'b\n'c", "''''''",
    "'ta 'tb 'tc d", "'sa 'sb 'sc d", '"a\n"b\n"c', '"a"b\n"c"', '"x\ny"', '"x y"\n', '"xy',
    'xy"\n', 'A\u3000"\u3000B', '" A "', ', a', ' ,', 'NEW\u3000YORK -x', 'N -x', 'NE', 'NEW YORK',
    'Copyrigh', 'copyright', '(C', 'A. b: c', 'A : c', 'A.: c', 'A b:c', '1  2', '1 \u30002',
    '1 a 2', '٣ ٣', '12', ')(', '()', '(()', 'A_', 'Ab_', '_', 'AbC_',
]  # fmt: skip


def assert_found(text, before, behind):
    expected = {name for name, is_bad in TESTS.items() if is_bad(text)}
    assert found_by_kernels(text, before, behind) == expected - IMPLIED
    assert not expected & IMPLIED or 'one-quote' in expected


@given(english_texts, between, between)
def test_kernels_find_what_the_rules_over_strings_find(text, before, behind):
    assert_found(text, before, behind)


@pytest.mark.parametrize('text', HARD)
def test_kernels_find_what_the_rules_find_in_hard_texts(text):
    for before, behind in itertools.product(['', '1 ', 'NE', '"', "'", ' , '], repeat=2):
        assert_found(text, before, behind)


@given(
    st.lists(st.tuples(english_texts, english_texts, between, between), max_size=8),
    st.sampled_from([0, 1]),
)
@example([('It is. Is it?', '是. 吗?', '', ''), ('It is. Is it?', '是. A吗?', 'A', '. A')], 0)
@example(
    [('It is. Note: Is it? So.', 'Ja. Nein? So.', '', ''), ('Hi. US. As.', 'x. A. B', '', '')], 0
)
@example([('It is 3. So.', 'Es ist 3. So.', '', ''), ('Ask J. Doe.', 'x', '', '')], 0)
@example(
    [('A b.__|__C d.', each, '', '') for each in ('x__|__y', ' x __|__', 'x__|__|__y', 'x_|__y')], 0
)
@example(
    [('A b.__|__B. C d.', each, '', '') for each in ('x__|__. A__|__z', 'x__|__y. A', 'x__|__. A')],
    0,
)
@example([('A__|__. Bc. D e.', 'x__|__. Ay__|__|__z. B', '', '')], 0)
def test_rows_become_what_each_would_alone(drawn, english):
    columns = list(zip(*drawn, strict=True)) or [()] * 4
    sides = side_of(columns[0], columns[2]), side_of(columns[1], columns[3])
    filtered = CleanEnXx(english).apply(sides[:: -1 if english else 1])
    expected = [
        (row, *(pair[::-1] if english else pair))
        for row, texts in enumerate(drawn)
        for pair in clean_pair(*texts[:2])
    ]
    assert pairs_of(filtered) == expected
    for side, whole in zip(filtered.sides, sides[:: -1 if english else 1], strict=True):
        assert side.text is whole.text


@given(st.lists(english_texts, max_size=8))
def test_the_first_test_by_which_a_row_is_dropped_is_known(drawn):
    tests = failed_tests(side_of(drawn, ['A'] * len(drawn))).tolist()
    assert [NAMES[test - 1] if test else None for test in tests] == list(map(failed_test, drawn))


@pytest.mark.parametrize(
    ('text', 'test'),
    [
        ('it is.', 'start'),
        ('It is', 'end'),
        ('It is…', 'end'),
        ('It is. ', 'end'),
        ('Note: It is.', 'label'),
        ('No. one: It is.', 'label'),
        ('See 12  34 there.', 'digits'),
        ('It is" so.', 'one-quote'),
        ('"It is."', 'quoted'),
        ('It “is” "so.', 'many-quotes'),
        ("It's not 'a' b 'c' d.", 'many-single-quotes'),
        ('It "\u3000" is.', 'quotes-together'),
        ('It , is.', 'lone-mark'),
        ('Some © rights.', 'copyright'),
        ('Copyright is held.', 'copyright'),
        ('It (is so.', 'left-parenthesis'),
        ('It is) so (it is) so.', 'right-parenthesis'),
        ('NEW YORK - It is.', 'city'),
        ('NAMEs_are so.', 'underscore'),
        ('It is.', None),
        ("It's 'so' that it's.", None),
        ('“It” is 12 (34) so.', None),
    ],
)
def test_what_is_not_a_sentence_is_dropped(text, test):
    assert failed_test(text) == test
    assert cleaned((text, 'x')) == ([] if test else [(0, text, 'x')])


def test_its_stamp_is_the_version_of_the_tables_of_characters():
    assert CleanEnXx().stamp == f'Unicode {unicodedata.unidata_version}'


def test_rows_of_one_text_are_refused():
    with pytest.raises(InputError, match='clean_en_xx is for pairs'):
        CleanEnXx().apply((side_of(['It is.'], ['']),))
