"""The alphabet of bytes."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.text.byte_level import (
    ALPHABET,
    BYTE_TO_CHARACTER,
    CHARACTER_TO_BYTE,
    spelled,
    spelled_tokens,
    token_bytes,
)


def test_printable_bytes_are_themselves_and_others_follow_in_their_order():
    assert sorted(BYTE_TO_CHARACTER) == list(range(256)) and len(CHARACTER_TO_BYTE) == 256
    changed = [byte for byte in range(256) if BYTE_TO_CHARACTER[byte] != chr(byte)]
    assert changed == [*range(0x21), *range(0x7F, 0xA1), 0xAD]
    assert [ord(BYTE_TO_CHARACTER[byte]) for byte in changed] == [*range(0x100, 0x144)]
    assert ALPHABET[0] == '!' and ALPHABET[-1] == '\u0143' and ALPHABET.index('Ġ') == 188 + 32


def test_tokens_as_files_spell_them():
    assert spelled(b' a\n') == 'ĠaĊ'
    assert spelled('é字'.encode()) == 'Ã©åŃĹ'


@given(st.binary())
def test_any_bytes_there_and_back(token):
    assert token_bytes(spelled(token)) == token
    assert all(each.isprintable() and not each.isspace() for each in spelled(token))


def test_what_stands_for_no_byte_is_named():
    with pytest.raises(InputError, match=re.escape("'a b' does not spell bytes: ' ' is not in")):
        token_bytes('a b')


@given(st.lists(st.binary(max_size=5).map(spelled) | st.text(st.characters(), max_size=4)))
@example(['Ġ', 'a b', '', '\ud83d', '\U0001f642', 'Ńń'])
def test_many_spellings_at_once(spellings):
    tokens, are_tokens = [], []
    for spelling in spellings:
        try:
            tokens.append(token_bytes(spelling))
            are_tokens.append(True)
        except InputError:
            are_tokens.append(False)
    data, sizes, found = spelled_tokens(spellings)
    assert data.tobytes() == b''.join(tokens)
    assert sizes.tolist() == [*map(len, tokens)] and found.tolist() == are_tokens
