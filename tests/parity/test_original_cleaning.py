"""`clean_en_xx` against Tensor2Tensor's own functions.

Its `clean_en_xx_pairs` asks for `itertools.izip`, which Python 3 has not: it is given `zip` there.
"""

import gzip
import itertools
import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plain_cleaning import TESTS, clean_pair, sentences
from tokcore.filters.clean_en_xx import CleanEnXx
from tokcore.text.rows import Side

CORPORA = pathlib.Path(__file__).parents[3] / 'shared' / 'corpora'

EXPRESSIONS = {
    'start': '_RE_GOOD_S_START',
    'end': '_RE_GOOD_S_END',
    'label': '_RE_LABEL_COLON',
    'digits': '_RE_DIGIT_SPACE_DIGIT',
    'one-quote': '_RE_DQ_ONE',
    'initial-quote': '_RE_DQ_INITIAL',
    'final-quote': '_RE_DQ_FINAL',
    'quoted': '_RE_DQ_LINE',
    'many-quotes': '_RE_DQ_MANY',
    'many-single-quotes': '_RE_SQ_MANY',
    'quotes-together': '_RE_CHARS_QQ',
    'lone-mark': '_RE_SPACE_PUNCT_SPACE',
    'copyright': '_RE_COPYRIGHT',
    'left-parenthesis': '_RE_UNMATCHED_PAREN_LEFT',
    'right-parenthesis': '_RE_UNMATCHED_PAREN_RIGHT',
    'city': '_RE_TAGLINE_CITY',
    'underscore': '_RE_CHARS_UPPER_UNDERSCORE',
}
"""The expressions of the original's filter in its order. The first two say what is good."""

FEW = '"“”\'‘’st ABcd09_.?!:;,()-©|\n\r\t\x1c\xa0\u3000\u2028é字٣²Ⅷ\u0301'
PIECES = [
    'It is. ', 'No! ', 'Why? ', 'USA. ', 'x9. ', 'B. ', '9. A', '字. B', ' ', '__|__', '|__', '__',
    'Copyright ', '(C)', 'NEW YORK -', 'NAME_', 'Note: ', '2 3', ' , ', '"', "'", "'s ",
    '\n', '\u3000', 'a',
]  # fmt: skip
texts = st.one_of(
    st.text(st.sampled_from(FEW), max_size=20),
    st.lists(st.sampled_from(PIECES), max_size=8).map(''.join),
    st.text(max_size=12),
)
english_texts = st.one_of(
    texts,
    st.builds(
        '{}{}{}'.format,
        st.sampled_from(['A', '“A', 'It is. A']),
        texts,
        st.sampled_from(['a.', 'a!”', '9?\n', 'A."']),
    ),
)


@pytest.fixture(scope='module')
def original(t2t_text_encoder):
    from tensor2tensor.data_generators import cleaner_en_xx

    return cleaner_en_xx


def side_of(rows):
    data = [row.encode() for row in rows]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int64)
    return Side(np.frombuffer(b''.join(data), np.uint8), offsets[:-1], offsets[1:])


def cleaned(pairs):
    """What the filter makes of pairs."""
    filtered = CleanEnXx().apply(tuple(map(side_of, zip(*pairs, strict=True))))
    rows = np.flatnonzero(filtered.is_kept)
    return [tuple(side.row(row) for side in filtered.sides) for row in rows]


def cleaned_by(original, pairs):
    """What the original makes of pairs, with what it asks for."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(itertools, 'izip', zip, raising=False)
        return list(original.clean_en_xx_pairs(pairs))


def test_the_tests_are_in_the_original_order():
    assert list(TESTS) == list(EXPRESSIONS)


@pytest.mark.parametrize('name', TESTS)
@given(text=english_texts)
def test_each_test_finds_what_the_original_expression_finds(original, name, text):
    found = getattr(original, EXPRESSIONS[name]).search(text) is not None
    assert TESTS[name](text) == (found != (name in ('start', 'end')))


HARD = [
    '', '"', '"\n', '“.', 'a.“', 'a.”', 'a."\n', 'a.\n\n', '.', '²!', "'a'b'c", "'\n'\n'\n",
    "'a\n'b\n'c", "''''''", "'ta 'tb 'tc d", "'sa 'sb 'sc d", '"a\n"b\n"c', '"a"b\n"c"', '"a"b"c',
    '"x\ny"', '"x y"\n', '"xy', 'xy"\n', '\n"', 'A\u3000"\u3000B', '" A "', ', a', ' ,', '\n;\x1c',
    'NEW\u3000YORK -x', 'N -x', 'NE\n-', 'NE A', 'Copyrigh', 'Copyright', '(C', '(C)', 'A. b: c',
    'A : c', 'A.: c', 'A b:c', 'A b c: d', '1  2', '1 \u30002', '1 a 2', '٣ ٣', '² ²', '12', ')(',
    '()', '(()', '(\n)', 'A_', 'Ab_', '_', 'AbC_',
]  # fmt: skip


@pytest.mark.parametrize('name', TESTS)
def test_each_test_finds_in_hard_texts_what_the_original_expression_finds(original, name):
    expression = getattr(original, EXPRESSIONS[name])
    found = [text for text in HARD if TESTS[name](text)]
    is_good = name in ('start', 'end')
    assert found == [text for text in HARD if (expression.search(text) is None) == is_good]
    assert 0 < len(found) < len(HARD)


@pytest.mark.parametrize(
    'text',
    [
        'Hi. US. As. B', 'x. A. B', 'J. Doe', 'éJ. Doe', 'é. A', '². A', '3. A', '. A', ' . A',
        '\n? A', 'a.  A', '__|__|__', '__|__|__|__', 'a__|__B. C', 'a__|__. A', 'a.__|__ B',
        'a_|__b__|_c', 'a. A__|__', '_A. B',
    ],
)  # fmt: skip
def test_hard_texts_are_cut_where_the_original_cuts_them(original, text):
    cut = sentences(text, True), sentences(text, False)
    assert cut == original._split_sentences(text, text)


@given(texts, texts)
def test_texts_are_cut_where_the_original_cuts_them(original, english, other):
    expected = original._split_sentences(english, other)
    assert (sentences(english, True), sentences(other, False)) == expected


@given(pairs=st.lists(st.tuples(english_texts, texts), min_size=1, max_size=8))
def test_any_pairs_give_the_same_pairs(original, pairs):
    expected = cleaned_by(original, pairs)
    assert cleaned(pairs) == expected
    assert [each for pair in pairs for each in clean_pair(*pair)] == expected


@pytest.mark.slow
def test_real_pairs(original):
    path = CORPORA / 'enzh.tsv.gz'
    if not path.exists():
        pytest.skip(f'{path.name} is not at hand')
    with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
        pairs = [tuple(line.rstrip('\n').split('\t')) for line in lines]
    found = cleaned(pairs)
    assert found == cleaned_by(original, pairs)
    assert 0 < len(found) < len(pairs)
