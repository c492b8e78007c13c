"""The patterns of GPT-2 and cl100k in plain Python, and the alphabet of bytes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.text.byte_level import (
    ALPHABET,
    BYTE_TO_CHARACTER,
    CHARACTER_TO_BYTE,
    PATTERNS,
    spelled,
    split,
    token_bytes,
)

ANY = st.one_of(st.characters(), st.sampled_from(" \t\r\n'sl1."))


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


@pytest.mark.parametrize(
    ('text', 'gpt2', 'cl100k'),
    [
        ('', '', ''),
        ('Hello  big world', 'Hello| | big| world', 'Hello| | big| world'),
        # Contractions, which only cl100k finds in capitals, and not behind a blank.
        ("I'll don't 's", "I|'ll| don|'t| '|s", "I|'ll| don|'t| '|s"),
        ("I'LL we'RE", "I|'|LL| we|'|RE", "I|'LL| we|'RE"),
        ("'sand 'tis", "'s|and| '|tis", "'s|and| '|tis"),
        ("o'clock ''s", "o|'|clock| ''|s", "o|'clock| ''|s"),
        ("a'ſb", "a|'|ſb", "a|'ſ|b"),
        # Numbers.
        ('12345 6789', '12345| 6789', '123|45| |678|9'),
        ('x²½٣٤٥', 'x|²½٣٤٥', 'x|²½٣|٤٥'),
        # What stands before letters.
        ('(abc) —x ..y', '(|abc|)| —|x| ..|y', '(abc|)| —|x| ..|y'),
        ('a—x\tb\xa0c', 'a|—|x|\t|b|\xa0|c', 'a|—x|\tb|\xa0c'),
        # White space gives up its last character to what follows, and keeps it at the end.
        ('a   b   ', 'a|  | b|   ', 'a|  | b|   '),
        ('\t\t\t1', '\t\t|\t|1', '\t\t|\t|1'),
        # Line breaks.
        ('a.\r\n  b', 'a|.|\r\n | b', 'a|.\r\n| | b'),
        ('a \n \n  b', 'a| \n \n | b', 'a| \n \n| | b'),
        ('a\n \n', 'a|\n \n', 'a|\n \n'),
        ('a\n  ', 'a|\n  ', 'a|\n  '),
        # Marks are no letters, and U+001C to U+001F are no white space.
        ('e\u0301x\x1cy', 'e|\u0301|x|\x1c|y', 'e|\u0301x|\x1cy'),
    ],
)
def test_cases(text, gpt2, cl100k):
    assert '|'.join(split(text, 'gpt2')) == gpt2
    assert '|'.join(split(text, 'cl100k')) == cl100k
    if text != 'a\n  ':
        assert '|'.join(split(text, 'llama3')) == cl100k


@pytest.mark.parametrize(
    ('text', 'cl100k', 'llama3'),
    [
        ('a\n  ', 'a|\n  ', 'a|\n|  '),
        ('a \n\t\r\n b', 'a| \n\t\r\n| b', 'a| \n\t\r\n| b'),
        ('a \r\n \n', 'a| \r\n \n', 'a| \r\n \n'),
        ('.\n ', '.\n| ', '.\n| '),
        ('\n \n ', '\n \n ', '\n \n| '),
    ],
)
def test_llama3_cuts_white_space_at_the_end_after_its_last_line_break(text, cl100k, llama3):
    assert '|'.join(split(text, 'cl100k')) == cl100k
    assert '|'.join(split(text, 'llama3')) == llama3


@given(st.text(ANY), st.sampled_from(PATTERNS))
def test_tokens_joined_are_the_text(text, pattern):
    tokens = split(text, pattern)
    assert ''.join(tokens) == text and '' not in tokens
