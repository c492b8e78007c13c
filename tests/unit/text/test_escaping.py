r"""Escaped tokens: `\` is `\\`, `_` is `\u`, a foreign character `\<decimal>;`, and `_` ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.text.escaping import ESCAPE_CHARACTERS, alphabet_of, escape_token, unescape_token

any_text = st.text(st.characters(exclude_categories=[]))


def test_the_alphabet_always_has_what_escaping_writes():
    assert ESCAPE_CHARACTERS == set('\\_u;0123456789')
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
def test_examples(token, escaped):
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


@settings(deadline=None)
@given(any_text, st.frozensets(st.characters(exclude_categories=[])))
def test_unescaping_restores_every_token(token, characters):
    alphabet = alphabet_of(characters)
    escaped = escape_token(token, alphabet)
    assert unescape_token(escaped) == token
    assert escaped.index('_') == len(escaped) - 1
    assert set(escaped) <= alphabet - {'\n'}
