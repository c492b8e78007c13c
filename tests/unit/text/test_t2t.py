"""Tensor2Tensor's tokens, plain and as a kernel, and their escapes."""

import itertools
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scanned_tokens import laid_out, scanned

from tokcore.text import unicode
from tokcore.text.t2t import (
    ESCAPE_CHARACTERS,
    T2TPreTokenizer,
    alphabet_of,
    detokenize,
    escape_token,
    tokenize,
    unescape_token,
)

any_token_text = st.text(st.characters(exclude_categories=[]))

pieces = st.sampled_from(
    ['a', ' ', 'a b', ', ', '  ', '字', 'é', '𝄞', '𝔞', '。', '\0', '\x7f', 'Ω']
    + ['，', '々', '一', '龿']
)
texts = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=150),
    st.lists(pieces, max_size=150).map(''.join),
    st.lists(st.sampled_from(['a', ' ']), max_size=200).map(''.join),
)

_SPECIAL = ' a1_-é字\u0301²Ⅷ\u3000\x85\u2028\x1c\x00\n\r\t𝔘😀\U0010ffff\xa0'
any_text = st.one_of(st.text(), st.text(st.sampled_from(_SPECIAL)))


def test_the_alphabet_always_has_what_escaping_writes():
    assert set('\\_u;0123456789') == ESCAPE_CHARACTERS
    assert alphabet_of([]) == ESCAPE_CHARACTERS
    assert alphabet_of(['ab', '', 'bé']) == ESCAPE_CHARACTERS | set('abé')


@pytest.mark.parametrize(
    'token, escaped',
    [
        ('ab', 'ab_'),
        ('', '_'),
        ('a_b', 'a\\ub_'),
        ('\\', '\\\\_'),
        ('\\u', '\\\\u_'),
        ('aé', 'a\\233;_'),
        ('\U0010ffff', '\\1114111;_'),
        ('\ud800', '\\55296;_'),
        ('1;', '1;_'),
    ],
)
def test_examples_of_escapes(token, escaped):
    assert escape_token(token, alphabet_of(['abu'])) == escaped
    assert unescape_token(escaped) == token


def test_a_newline_is_escaped_even_if_the_alphabet_has_it():
    assert escape_token('a\nb', alphabet_of(['a\nb'])) == 'a\\10;b_'


@pytest.mark.parametrize(
    'escaped, token',
    [
        ('ab', 'ab'),  # the end may be missing
        ('ab__', 'ab_'),  # only one is dropped
        ('\\x', '\\x'),  # no escape
        ('\\', '\\'),
        ('\\12', '\\12'),  # no semicolon
        ('\\;', '\\;'),
        ('\\\\u', '\\u'),  # read from the left
        ('\\1114112;', '\u3013'),  # beyond Unicode
        ('\\99999999999999999999;', '\u3013'),
        ('\\' + '9' * 5000 + ';', '\u3013'),
        ('\\0065;', 'A'),
        ('\\٣;', '\\٣;'),  # digits of other scripts are none
    ],
)
def test_unescaping_what_escaping_never_writes(escaped, token):
    assert unescape_token(escaped) == token


@given(any_token_text, st.frozensets(st.characters(exclude_categories=[])))
def test_unescaping_restores_every_token(token, characters):
    alphabet = alphabet_of(characters)
    escaped = escape_token(token, alphabet)
    assert unescape_token(escaped) == token
    assert escaped.index('_') == len(escaped) - 1
    assert set(escaped) <= alphabet - {'\n'}


@given(
    rows=st.lists(texts, min_size=1, max_size=6),
    between=st.sampled_from([b'', b'\n', b' ', b'a', b'\xff\xe5', b'\xa0\xb0' * 40]),
    room=st.sampled_from([1, 2, 5, 64, 1_000]),
)
@example([' ' * 64, 'a' * 64, 'a ' * 32, ' a' * 32, '字' * 64], b'', 1)
def test_tokens_are_those_of_the_plain_rule(rows, between, room):
    assert scanned(laid_out(rows, between), T2TPreTokenizer(), room) == [
        tokenize(row) for row in rows
    ]


@pytest.mark.parametrize(
    'character', ['字', '一', '龿', '鿀', '䷿', 'é', '𝄞', '𝔞', '。', '，', '々', '０', 'a'] + [' ']
)
@pytest.mark.parametrize('before', ['', 'a', ' ', 'a ', '. '])
def test_every_place_in_a_chunk(character, before):
    rows = [
        'b' * length + before + character + after
        for length in range(56, 70)
        for after in ('', 'c', ' ', ' c', character)
    ]
    for room in (1, 1_000):
        assert scanned(laid_out(rows), T2TPreTokenizer(), room) == [tokenize(row) for row in rows]


def test_what_is_not_looked_up_is_of_one_class():
    ideographs, marks = range(0x4E00, 0x9FC0), [*range(0x3000, 0x3004), *range(0xFF00, 0xFF10)]
    assert all(unicodedata.category(chr(code))[0] in 'LN' for code in ideographs)
    assert not any(unicodedata.category(chr(code))[0] in 'LN' for code in marks)


def test_every_wide_character_is_of_its_class():
    wide = [chr(code) for code in range(0x2F00, 0x10000) if not 0xD800 <= code < 0xE000]
    rows = [f'a{character}b' for character in wide]
    assert scanned(laid_out(rows), T2TPreTokenizer()) == [tokenize(row) for row in rows]


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


@given(any_text)
@example('\ud800a \udfff')
def test_tokens_of_a_string(text):
    assert tokenize(text) == plain_tokens(text)
    assert detokenize(tokenize(text)) == text


def test_an_empty_token_cannot_be_joined():
    with pytest.raises(ValueError, match='at least one character'):
        detokenize(['a', ''])


def test_tables_hold_every_code_point():
    words = unicode.alphanumeric_table()
    spaces = unicode.whitespace_table()
    assert words.shape == spaces.shape == (0x110000,)
    for code_point in range(0x110000):
        character = chr(code_point)
        assert words[code_point] == is_word(character)
        assert spaces[code_point] == (not character.strip())
    assert unicodedata.unidata_version == unicode.UNICODE_VERSION
