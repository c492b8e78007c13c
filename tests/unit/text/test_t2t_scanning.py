"""Tokens found by bits: those of `tokenize`, wherever chunks and batches end."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.compiled.compilation import read_only
from tokcore.text.padded_text import READABLE, TextRows
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, ScannedTokens, scan_tokens
from tokcore.text.t2t_pre_tokenizer import T2TPreTokenizer
from tokcore.text.t2t_scanning import alphanumeric_bits
from tokcore.text.t2t_tokens import tokenize

pieces = st.sampled_from(
    ['a', ' ', 'a b', ', ', '  ', '字', 'é', '𝄞', '𝔞', '。', '\0', '\x7f', 'Ω']
    + ['，', '々', '一', '龿']
)
texts = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=150),
    st.lists(pieces, max_size=150).map(''.join),
    st.lists(st.sampled_from(['a', ' ']), max_size=200).map(''.join),
)


def scanned(rows: list[str], between: bytes, room: int) -> list[list[str]]:
    """The tokens of each row, found by as many calls as a room for so many tokens needs."""
    data = b''.join(row.encode() + between for row in rows)
    lengths = np.array([len(row.encode()) for row in rows], np.int64)
    ends = np.cumsum(lengths + len(between)) - len(between)
    starts = ends - lengths
    text = read_only(np.frombuffer(data + b'a ' * READABLE, np.uint8))
    text_rows = TextRows(text, read_only(starts), read_only(ends))
    state, text = T2TPreTokenizer().prepare(text_rows)
    places = [np.empty(CHUNK_TOKENS + room, np.uint64) for _ in range(2)]
    found: list[list[str]] = [[] for _ in rows]
    row, position = 0, -1
    while row < len(rows):
        first = row
        row_tokens = np.zeros(len(rows) + 1, np.int64)
        row, position, tokens = scan_tokens(
            text_rows, row, position, state, ScannedTokens(text, *places, row_tokens)
        )
        assert tokens <= CHUNK_TOKENS + room
        token = 0
        for done in range(first, len(rows)):
            end = row_tokens[done + 1] if done < row else tokens
            for begin, stop in zip(*(each[token:end] for each in places)):
                found[done].append(text[begin:stop].tobytes().decode())
            token = end
            if done == row:
                break
    return found


@settings(deadline=None, max_examples=300)
@given(
    rows=st.lists(texts, min_size=1, max_size=6),
    between=st.sampled_from([b'', b'\n', b' ', b'a', b'\xff\xe5', b'\xa0\xb0' * 40]),
    room=st.sampled_from([1, 2, 5, 64, 1_000]),
)
@example([' ' * 64, 'a' * 64, 'a ' * 32, ' a' * 32, '字' * 64], b'', 1)
def test_tokens_are_those_of_the_plain_rule(rows, between, room):
    assert scanned(rows, between, room) == [tokenize(row) for row in rows]


@pytest.mark.parametrize('character', '字 一 龿 鿀 ䷿ é 𝄞 𝔞 。 ， 々 ０ a'.split() + [' '])
@pytest.mark.parametrize('before', ['', 'a', ' ', 'a ', '. '])
def test_every_place_in_a_chunk(character, before):
    rows = [
        'b' * length + before + character + after
        for length in range(56, 70)
        for after in ('', 'c', ' ', ' c', character)
    ]
    for room in (1, 1_000):
        assert scanned(rows, b'\n', room) == [tokenize(row) for row in rows]


def test_what_is_not_looked_up_is_of_one_class():
    ideographs, marks = range(0x4E00, 0x9FC0), [*range(0x3000, 0x3004), *range(0xFF00, 0xFF10)]
    assert all(unicodedata.category(chr(code))[0] in 'LN' for code in ideographs)
    assert not any(unicodedata.category(chr(code))[0] in 'LN' for code in marks)


def test_every_wide_character_is_of_its_class():
    wide = [chr(code) for code in range(0x2F00, 0x10000) if not 0xD800 <= code < 0xE000]
    rows = [f'a{character}b' for character in wide]
    assert scanned(rows, b'\n', 1_000) == [tokenize(row) for row in rows]


def test_bits_are_the_table():
    bits = alphanumeric_bits()
    for code in (0x30, 0x41, 0x5F, 0xE9, 0x3002, 0x5B57, 0x1D11E, 0x1D51E, 0x10FFFF):
        alphanumeric = unicodedata.category(chr(code))[0] in 'LN'
        assert int(bits[code // 64]) >> code % 64 & 1 == alphanumeric
