"""Whole blocks to ids: the same as text by text, whatever the memo holds, without Python calls.

What the ids of one text must be is stated in `test_encoder`.
"""

import functools
import itertools
import sys
import threading

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.encoding.encoder import LONG_ROW_BYTES, RowEncoder
from tokcore.encoding.kernels import cache_memory
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.pre_tokenizer import RowTokens
from tokcore.text.rows import Side
from tokcore.text.t2t import tokenize
from tokcore.word.model import WordModel

VOCABULARY = [
    '<pad>_', '<EOS>_', 'the_', 'th', 'encyclopedia_', 'encyclop', '字典_', '字', *'thecat典, ',
    *'yclopdi<>EOSn',
    *'\\_u;0123456789',
]  # fmt: skip
ENCODER = SubwordTextEncoder(VOCABULARY)

words = st.sampled_from(
    ['the', 'cat', 'encyclopedia', 'encyclopedic', 'encyclopedib', '字典', 'é', '\\', '_', ', ', ' ',
     '\x7f', '𝄞𝄞', 'a' * 8, 'a' * 9, 'a' * 300]
)  # fmt: skip
row_texts = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=20),
    st.lists(words, max_size=12).map(' '.join),
    st.lists(words, max_size=12).map(''.join),
)


MORE = ['the cat ' * 1_000] * (1 + LONG_ROW_BYTES // 8_000)
"""Rows with which a block is no longer a small side."""


def rows_of(encoded):
    assert encoded.ids.dtype == np.int32 and encoded.offsets.dtype == np.int64
    assert encoded.offsets[0] == 0 and encoded.offsets[-1] == len(encoded.ids)
    return [ids.tolist() for ids in np.split(encoded.ids, encoded.offsets[1:-1])]


@given(
    blocks=st.lists(st.lists(row_texts, min_size=1, max_size=8), max_size=4),
    prefix=st.sampled_from(['', '<2zh> ', 'the', '字', ' ', '\n']),
    between=st.sampled_from([b'', b'\n', b'e\t\xff']),
    cache_bytes=st.sampled_from([0, 2_000, 1 << 20]),
    before=st.lists(st.integers(0, 2**31 - 1), max_size=5),
    after=st.lists(st.integers(0, 2**31 - 1), max_size=5),
    more=st.sampled_from([[], MORE]),
)
def test_each_row_has_the_ids_of_its_text(
    blocks, prefix, between, cache_bytes, before, after, more
):
    encoder = ENCODER.row_encoder(cache_bytes)
    for drawn in blocks:  # the memo lives on from block to block
        texts = drawn + more
        encoded = encoder.encode_side(
            side_of(texts, [between] * len(texts), between), prefix, before, after
        )
        ids = {text: ENCODER.encode(prefix + text) for text in {*texts}}
        assert rows_of(encoded) == [[*before, *ids[text], *after] for text in texts]


# Around each of these lengths a token is another number of words, or has no place in the memo.
LENGTHS = [1, 2, 7, 8, 9, 14, 15, 16, 17, 23, 24, 25, 30, 31, 32, 33, 63, 64, 65, 127, 128, 129]


@st.composite
def alike_tokens(draw):
    """A token and others that differ from it in one byte, or in a NUL after it."""
    length = draw(st.sampled_from(LENGTHS))
    letters = draw(st.text('eht', min_size=length, max_size=length))
    place = draw(st.integers(0, length - 1))
    others = [letters[:place] + letter + letters[place + 1 :] for letter in 'cap']
    signs = ['!' * length, '!' * length + '\0', '\0' * length, '\0' * (length + 1)]
    wide = ['字' * (length // 3), '典' * (length // 3), 'é' * (length // 2), '𝄞' * (length // 4)]
    return [letters, *others, *signs, *wide]


@given(tokens=alike_tokens(), data=st.data())
def test_tokens_that_are_nearly_the_same_are_told_apart(tokens, data):
    texts = data.draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=30))
    texts += [' '.join(texts), ''.join(texts)]
    expected = [ENCODER.encode(text) + [1] for text in texts]
    for cache_bytes in (0, 1 << 20):  # four entries, all of them always in use; and room for all
        encoder = ENCODER.row_encoder(cache_bytes)
        for _ in range(2):
            assert rows_of(encoder.encode_side(side_of(texts), after=[1])) == expected


@given(
    st.lists(
        st.builds(lambda times, rest: 'encyclop' * times + rest, st.integers(1, 3), st.text('eht')),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.data(),
)
def test_longer_tokens_keep_their_ids_when_others_take_their_lines(tokens, data):
    drawn = st.lists(st.sampled_from(tokens), min_size=1, max_size=20).map(' '.join)
    blocks = data.draw(st.lists(drawn, min_size=1, max_size=6))
    for cache_bytes in (0, 2_000, 1 << 20):  # two lines, some, and room for all
        encoder = ENCODER.row_encoder(cache_bytes)
        for text in blocks:
            assert rows_of(encoder.encode_side(side_of([text]))) == [ENCODER.encode(text)]


@pytest.mark.parametrize('ids', [3, 4, 7, 8, 9])
@pytest.mark.parametrize('length', [15, 16, 31, 32])
def test_a_token_of_16_to_31_bytes_and_up_to_8_ids_has_a_line_by_itself(length, ids):
    whole = 'x' * (length - ids + 2)
    token = whole + 'y' * (ids - 2)  # the last id is that of the '_' after it
    own = SubwordTextEncoder(['<pad>_', '<EOS>_', whole, *'xyz\\_u;0123456789'])
    assert len(own.encode(token)) == ids and len(token) == length
    encoder = own.row_encoder()
    for _ in range(2):
        texts = [token, f'{token} z {token}']
        assert rows_of(encoder.encode_side(side_of(texts))) == list(map(own.encode, texts))
    lines = np.count_nonzero(encoder._cache.long_slots[:, 2])
    assert lines == (length in (16, 31) and ids <= 8)


@pytest.mark.parametrize('row_words', [1, 1_023, 1_024, 1_025, 6_000])
def test_rows_of_more_tokens_than_are_taken_at_a_time(row_words):
    numbers = np.random.default_rng(row_words).zipf(1.5, 6_000) % 3_000
    words = [
        ('the', 'cat', '字典')[n % 3] + str(n) * (n % 4) + '.' * (n % 5) for n in numbers.tolist()
    ]
    texts = [' '.join(words[i : i + row_words]) for i in range(0, len(words), row_words)]
    encode = functools.cache(ENCODER.encode)
    expected = [[*itertools.chain(*map(encode, tokenize(text))), 1] for text in texts]
    for cache_bytes in (0, 1 << 20):
        encoder = ENCODER.row_encoder(cache_bytes)
        assert rows_of(encoder.encode_side(side_of(texts), after=[1])) == expected


def test_the_memo_is_as_large_as_asked_for():
    for cache_bytes in (0, 100, 1_000, 50_000, 8 << 20):
        cache = ENCODER.row_encoder(cache_bytes)._cache
        assert cache.slots.nbytes <= max(cache_bytes, 128) < 2 * cache.slots.nbytes + 128
        assert cache.long_slots.nbytes <= max(cache_memory(cache_bytes) - cache_bytes, 128)
        assert cache.slots.ctypes.data % 64 == cache.long_slots.ctypes.data % 64 == 0


def test_no_rows_and_empty_rows():
    encoder = ENCODER.row_encoder()
    none = encoder.encode_side(side_of([]))
    assert none.ids.tolist() == [] and none.offsets.tolist() == [0]
    assert rows_of(encoder.encode_side(side_of([''] * 5_000), after=[1])) == [[1]] * 5_000
    assert encoder.encode_side(side_of(['', ''])).offsets.tolist() == [0, 0, 0]


def test_an_empty_row_is_not_an_unknown_word():
    encoder = RowEncoder(RowTokens(), WordModel(['<unk>', 'a', 'b'], 0), 0)
    texts = ['a', '', 'b', 'ab', '', 'abc', 'bc']
    for _ in range(3):  # later no entry of the memo is free
        assert rows_of(encoder.encode_side(side_of(texts))) == [[1], [], [2], [0], [], [0], [0]]


def test_a_token_of_a_megabyte_outside_the_alphabet():
    encoder = ENCODER.row_encoder()
    ids = encoder.encode_side(side_of(['the', '\x7f' * 1_000_000, 'the']), after=[1]).ids
    escaped = [VOCABULARY.index(character) for character in '\\127;']
    assert ids.tolist() == [2, 1, *escaped * 1_000_000, VOCABULARY.index('_'), 1, 2, 1]


def test_what_no_subtoken_begins_is_named_and_the_next_block_is_not_harmed():
    encoder = SubwordTextEncoder(['<pad>_', '<EOS>_', 'the_', 'b']).row_encoder()
    with pytest.raises(ValueError, match="'\\\\\\\\23383;_'.*'b字'"):
        encoder.encode_side(side_of(['the the', 'the b字, the', 'the']))
    assert encoder.encode_side(side_of(['the'])).ids.tolist() == [2]


def new_tokens(count, length):
    """Words that each occur once, spelled in letters."""
    digits = np.arange(count)[:, None] // 23 ** np.arange(length) % 23
    return (digits + ord('a')).astype(np.uint8)


def python_calls(block):
    encoder = ENCODER.row_encoder()
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ('call', 'c_call')

    encoder.encode_side(side_of(['warm up']))
    sys.setprofile(count)
    try:
        encoder.encode_side(block)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason='what is not compiled is Python calls')
def test_python_calls_do_not_grow_with_new_tokens():
    few, many = (
        np.concatenate([new_tokens(count, 9), np.full((count, 1), ord(' '), np.uint8)], axis=1)
        for count in (30_000, 300_000)
    )
    sides = []
    for tokens in (few, many):
        starts = np.arange(0, tokens.size, 1_000)
        sides.append(Side(tokens.reshape(-1), starts, starts + 999))
    assert sides[0].text.size > LONG_ROW_BYTES
    assert python_calls(sides[1]) <= python_calls(sides[0]) + 50 < 300


def test_threads_share_a_vocabulary():
    texts = [f'the cat {number} encyclopedia {number:x}' for number in range(5_000)]
    expected = ENCODER.row_encoder().encode_side(side_of(texts), after=[1]).ids.tolist()
    results = {}

    def encode(name):
        encoder = ENCODER.row_encoder(cache_bytes=20_000)
        results[name] = encoder.encode_side(side_of(texts), after=[1]).ids.tolist()

    threads = [threading.Thread(target=encode, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[name] == expected for name in range(4))
