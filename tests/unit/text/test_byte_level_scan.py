"""Tokens of patterns found by bits: those of the plain patterns, wherever chunks and calls end."""

import itertools
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scanned_tokens import laid_out, scanned

from tokcore.kernels.bytes import READABLE
from tokcore.text.byte_level_scan import (
    LETTER,
    NUMBER,
    SPACE,
    PatternPreTokenizer,
    character_classes,
)
from tokcore.text.patterns import DEFINITIONS, WHITE_SPACE, PatternRules, split
from tokcore.text.pre_tokenizer import one_row
from tokcore.text.split_sequence import pattern_pre_tokenizer

NAMED = "'stremdvlSTREMDVLſ"
PIECES = [
    *'aé字Ω𝔞1½٣𝟙〇.(\0—，。𝄞\u0301 \t\r\n\x0b\x1c\x85\xa0\u2003\u3000€+カ・゙\ufeff',
    *("'s", "'Ll", '\r\n', '  ', 'ab'),
]
SPACES = [' ', '    ', '\n', '\n    ', '\r\n', '\n\n', '\u3000', '\xa0']
LINES = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=100),
    st.lists(st.sampled_from([*PIECES, *NAMED]), max_size=150).map(''.join),
    st.lists(st.sampled_from(PIECES), min_size=2, max_size=4).flatmap(
        lambda few: st.lists(st.sampled_from(few), max_size=250).map(''.join)
    ),
    st.lists(st.sampled_from(['to them', 'x.', '/', '字', '1', "it's"] + SPACES), max_size=80).map(
        ''.join
    ),
)
PATTERNS = [name for name, pattern in DEFINITIONS.items() if pattern.rules is not None]
QUICK = {'gpt2', 'cl100k', 'o200k', 'deepseek'}
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


@given(
    rows=st.lists(LINES, min_size=1, max_size=5),
    pattern=st.sampled_from(PATTERNS),
    between=st.sampled_from([b'', b'\n', b' ', b'a', b"'s", b'1', b'\r', 'ſ'.encode()]),
    room=st.sampled_from([0, 1, 2, 5, 64, 1_000]),
)
@example([' ' * 64, 'a' * 60, '1' * 61, ' a' * 32, '字' * 64, '!' * 200], 'cl100k', b'', 1)
@example([' \n' * 40 + '  ', 'a\n \n ', '\n \n', ' ' * 70 + '\n '], 'llama3', b'', 1)
@example(['\n' * 64, ' \n' * 40 + 'a', '!' + '\r\n' * 40, '½' * 70], 'cl100k', b'', 1)
@example(["a'", "'"], 'cl100k', 'ſ'.encode(), 1)
@example(['a\n  ' + 'b' * 35 + '\n    b', 'a' * 58 + '\n    b', 'a.\n/\n/a'], 'o200k', b'', 1)
@example(['a' * 59 + each + 'b' for each in ('\n', '\n  ', ' \n ', '\n \n')], 'llama3', b'', 1)
@example(["it'Sx it'lL's's ABc aBC", '字A字Ab aBé—É', 'a' * 70 + "B'sC" * 30], 'o200k', b'', 1)
def test_tokens_are_those_of_the_plain_patterns(rows, pattern, between, room):
    assert scanned(laid_out(rows, between), pattern_pre_tokenizer(pattern), room) == [
        split(row, pattern) for row in rows
    ]


@pytest.mark.parametrize(
    'pattern',
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in PATTERNS],
)
@pytest.mark.parametrize(
    'piece', ["'s", "'re", "'ſ", "'lL", 'aBc', '—', '1234', '½½½½'] + [' ', '\t', '\u3000', '\r\n']
)
def test_every_place_in_a_chunk(pattern, piece):
    rows = [
        begin * length + before + piece + after
        for begin in 'b '
        for length in range(59, 67)
        for before in ('', ' ', '.')
        for after in ('', 'c', ' ', ' c', '.', '5', '字' * 30)
    ]
    for room in (1, 1_000):
        found = scanned(laid_out(rows), pattern_pre_tokenizer(pattern), room)
        assert found == [split(row, pattern) for row in rows]


def test_every_code_point_has_its_class():
    codes = np.arange(0x110000)
    index, blocks = character_classes(PatternRules('any', 0))
    found = blocks.reshape(-1, 256)[index[codes // 256], codes % 256]
    wanted = {'L': LETTER, 'N': NUMBER}
    expected = [wanted.get(unicodedata.category(chr(code))[0], 0) for code in range(0x110000)]
    for each in WHITE_SPACE:
        expected[ord(each)] = SPACE
    assert found.tolist() == expected


@pytest.mark.parametrize('pattern', PATTERNS)
def test_the_ends_of_each_run_of_a_category_are_of_its_class(pattern):
    runs = (
        [*run]
        for category, run in itertools.groupby(CHARACTERS, unicodedata.category)
        if category not in ('Cn', 'Co')
    )
    row = ''.join(f'a{each}1' for run in runs for each in (run[0], run[-1]))
    assert scanned(laid_out([row]), pattern_pre_tokenizer(pattern)) == [split(row, pattern)]


def tokens_of_parts(row, pattern, longest):
    """A row's tokens, those of its parts as texts by themselves."""
    rows = laid_out([row])
    found = []
    for part in pattern_pre_tokenizer(pattern).row_parts(rows, 0, longest):
        text = part.text[part.start : part.end].tobytes().decode()
        if part.is_long_token:
            assert part.end - part.start > longest
            found.append(text)
        else:
            assert one_row(part.text, part.start, part.end).ends[0] + READABLE <= len(part.text)
            tokens = split(text, pattern)
            assert max(len(each.encode()) for each in tokens) <= longest
            found += tokens
    return found


@given(LINES, st.sampled_from(PATTERNS), st.sampled_from([1, 2, 4, 20]))
@example('a\t\tbbbbb', 'gpt2', 4)
@example('a\n  \tbbbbb', 'cl100k', 4)
@example('a!\n \n\t 1bbbbbb', 'cl100k', 4)
@example('a!\n \n\t  bbbbbb \n\n ', 'llama3', 4)
def test_the_parts_of_a_row_have_its_tokens(row, pattern, longest):
    assert tokens_of_parts(row, pattern, longest) == split(row, pattern)


@pytest.mark.parametrize(
    'pattern',
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in PATTERNS],
)
@pytest.mark.parametrize(
    'row',
    [
        'a' * (1 << 20),
        '字' * (1 << 18),
        '\t' * (1 << 20) + 'a',
        "it's 1\t\t" * (1 << 13) + 'b' * 5_000,
    ],
    ids=['letters', 'ideographs', 'tabs', 'short and long'],
)
def test_a_row_of_up_to_a_megabyte(pattern, row):
    assert tokens_of_parts(row, pattern, 1 << 10) == split(row, pattern)


def test_it_is_known_by_its_pattern():
    made = PatternPreTokenizer('cl100k')
    assert (made.name, dict(made.options)) == ('pattern', {'pattern': 'cl100k'})
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.tokens('1234') == ['123', '4']
    with pytest.raises(
        ValueError, match=r"'p50k' is not a pattern; there are gpt2, cl100k, llama3"
    ):
        PatternPreTokenizer('p50k')
    with pytest.raises(ValueError, match='deepseek has no kernel of its own'):
        PatternPreTokenizer('deepseek')


def test_white_space_is_that_of_unicode():
    assert len(WHITE_SPACE) == 25
    assert {each for each in CHARACTERS if each.isspace()} - {*WHITE_SPACE} == {*'\x1c\x1d\x1e\x1f'}


@pytest.mark.parametrize('longest', [1, 20])
def test_a_row_that_no_pattern_cuts_is_one_token(longest):
    parts = pattern_pre_tokenizer('none').row_parts(laid_out(['a few words']), 0, longest)
    assert [(part.start, part.end) for part in parts] == [(0, len('a few words'))]
