"""Cutting text into tokens, against a tokenizer made of `re` and `unicodedata` alone."""

import itertools
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.text import unicode_tables
from tokcore.text.t2t_tokens import detokenize, tokenize

_SPECIAL = ' a1_-é字\u0301²Ⅷ\u3000\x85\u2028\x1c\x00\n\r\t𝔘😀\U0010ffff\xa0'
any_text = st.one_of(st.text(), st.text(st.sampled_from(_SPECIAL)))


def is_word(character: str) -> bool:
    return unicodedata.category(character)[0] in 'LN'


def plain_tokens(text: str) -> list[str]:
    runs = [''.join(run) for _, run in itertools.groupby(text, is_word)]
    last = len(runs) - 1
    return [run for place, run in enumerate(runs) if run != ' ' or place in (0, last)]


@pytest.mark.parametrize(
    'text, tokens',
    [
        ('', []),
        (' ', [' ']),
        ('  ', ['  ']),
        (' a', [' ', 'a']),
        ('a b ', ['a', 'b', ' ']),
        ('Hi, you 2', ['Hi', ', ', 'you', '2']),
        ('中文字。字', ['中文字', '。', '字']),
        ('किताब', ['क', 'ि', 'त', 'ा', 'ब']),
        ('a\u3000b', ['a', '\u3000', 'b']),
    ],
)
def test_examples(text, tokens):
    assert tokenize(text) == tokens
    assert detokenize(tokens) == text


@settings(deadline=None)
@given(any_text)
@example('\ud800a \udfff')
def test_tokens_of_a_string(text):
    assert tokenize(text) == plain_tokens(text)
    assert detokenize(tokenize(text)) == text


def test_an_empty_token_cannot_be_joined():
    with pytest.raises(ValueError, match='at least one character'):
        detokenize(['a', ''])


def test_tables_hold_every_code_point():
    words = unicode_tables.alphanumeric_table()
    spaces = unicode_tables.whitespace_table()
    assert words.shape == spaces.shape == (0x110000,)
    for code_point in range(0x110000):
        character = chr(code_point)
        assert words[code_point] == is_word(character)
        assert spaces[code_point] == (not character.strip())
    assert unicode_tables.UNICODE_VERSION == unicodedata.unidata_version
