"""Counting the tokens of rows, by one thread and by several, against `collections.Counter`."""

import concurrent.futures
import functools
import itertools
from collections import Counter

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.corpus.line_rows import text_rows
from tokcore.counts.counting import TokenAccumulator, TokenIndex, slot_shift, slot_tag
from tokcore.counts.tables import merge_tables
from tokcore.counts.token_table import TokenTable
from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, hash_bytes
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer, tokenize

from .test_token_table import assert_sound, valid_characters

_LARGEST = 2**63 - 1


# A small alphabet makes tokens repeat.
texts = st.one_of(
    st.text(valid_characters),
    st.text(st.sampled_from(' \n\r\tab1_-é字\u0301²\u3000\u2028😀'), max_size=200),
)


def plain_counts(text: str) -> Counter:
    lines = [line.replace('\r', '').strip() for line in text.split('\n')]
    return Counter(token for line in lines for token in tokenize(line))


def counted(text: bytes) -> TokenTable:
    (side,) = text_rows(text, 0, T2T_LINES).sides
    accumulator = TokenAccumulator()
    accumulator.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
    return TokenTable(*accumulator.finish())


@given(texts)
@example('')
@example('a b a')
def test_tokens_of_lines_are_counted(text):
    table = counted(text.encode())
    assert_sound(table)
    assert dict(table.items()) == plain_counts(text)
    assert table.total == plain_counts(text).total()


@given(texts, st.text(valid_characters, max_size=3))
def test_a_prefix_may_begin_and_end_a_row_with_a_space(text, prefix):
    (side,) = text_rows(text.encode(), 0, T2T_LINES).sides
    side = side.with_prefix(prefix)
    accumulator = TokenAccumulator()
    accumulator.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
    expected = Counter(token for i in range(len(side)) for token in tokenize(side.row(i)))
    assert dict(TokenTable(*accumulator.arrays()).items()) == expected


@given(texts, st.lists(st.integers(0, 200)))
def test_blocks_cut_at_any_line_ends_give_the_same_counts(text, cuts):
    lines = text.encode().split(b'\n')
    borders = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    parts = [b''.join(line + b'\n' for line in lines[a:b]) for a, b in zip(borders, borders[1:])]
    tables = [counted(part) for part in parts]
    assert dict(merge_tables(tables).items()) == plain_counts(text)
    assert dict(merge_tables(reversed(tables)).items()) == plain_counts(text)


FIRST_SLOTS = 1 << 12


@functools.cache
def colliding_words(most: int) -> list[str]:
    """Words of 8 and of 16 letters with equal slots and tags in a table of `FIRST_SLOTS`.

    Each step of the hash can be inverted, so a hash with the desired bits gives the last eight bytes of
    a word; only words of ASCII letters and digits are returned.
    """
    inverses = [np.uint64(pow(factor, -1, 1 << 64)) for factor in (GOLDEN_RATIO, MIXER)]
    words = []
    for head in (b'', b'collided'):
        known = (len(head) + 8) * GOLDEN_RATIO % (1 << 64)
        if head:
            known = (known ^ int.from_bytes(head, 'little')) * GOLDEN_RATIO % (1 << 64)
            known ^= known >> 32
        tails = []
        for part in itertools.count():
            free = np.arange(part << 20, part + 1 << 20, dtype=np.uint64)
            value = (free >> np.uint64(12) << np.uint64(32) | free & np.uint64(0xFFF)) * inverses[1]
            value = (value ^ value >> np.uint64(32)) * inverses[0] ^ np.uint64(known)
            letters = value.view(np.uint8).reshape(-1, 8)
            is_word = np.ones(len(free), np.bool_)
            for column in range(8):
                low = letters[:, column] | 0x20
                is_word &= (low - np.uint8(0x61) < 26) | (letters[:, column] - np.uint8(0x30) < 10)
            tails += [head + row.tobytes() for row in letters[is_word]]
            if len(tails) >= most // 2:
                break
        words += tails[: most // 2]
    return [word.decode() for word in words]


def test_colliding_words_have_one_slot_and_one_tag():
    words = colliding_words(200)
    assert len(set(words)) == 200 and {len(word) for word in words} == {8, 16}
    texts = [(np.frombuffer(word.encode() + bytes(8), np.uint8), len(word)) for word in words]
    hashes = [hash_bytes(text, np.uint64(0), np.uint64(length)) for text, length in texts]
    assert len(set(hashes)) == 200
    last_slot = np.uint64(FIRST_SLOTS - 1)
    assert {int(np.uint64(each) >> slot_shift(FIRST_SLOTS)) for each in hashes} == {0}
    assert {int(slot_tag(np.uint64(each), last_slot)) for each in hashes} == {0}


@pytest.mark.parametrize('collide', [True, False])
def test_colliding_and_other_tokens_are_counted_apart(collide):
    # With 6,000 words the table also grows; words that collide make each search long, so fewer.
    words = colliding_words(200) if collide else [f'w{number * 7919}字' for number in range(6_000)]
    words = [*words, 'aa', 'ab', 'ba', 'a', 'b' * 40_000]
    text = ' '.join(words + words[::2] + words[::3])
    (side,) = text_rows(text.encode(), 0, T2T_LINES).sides
    accumulator = TokenAccumulator(TokenIndex())
    accumulator.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
    table = TokenTable(*accumulator.arrays())
    assert list(dict(table.items())) == words
    assert dict(table.items()) == Counter(words + words[::2] + words[::3])
    accumulator.add_tokens(table.data, table.offsets, table.counts)
    doubled = TokenTable(*accumulator.arrays())
    assert dict(doubled.items()) == {token: 2 * count for token, count in table.items()}
    assert len(accumulator.index) == len(words)
    assert accumulator.index.nbytes + accumulator.nbytes >= doubled.nbytes


def test_rows_may_come_in_any_order_with_any_bytes_after_them():
    text = np.frombuffer('一二 ab, 三'.encode() + b'z9' * 100 + 'end 四'.encode(), np.uint8)
    rows = [(len(text) - 7, len(text)), (0, 14), (7, 9), (14, 14), (len(text) - 3, len(text))]
    starts, ends = (np.array(bounds, np.int64) for bounds in zip(*rows))
    for order in ([0, 1, 2, 3, 4], [1, 2, 3], [2, 4, 1, 0]):
        accumulator = TokenAccumulator()
        accumulator.add_rows(text, starts[order], ends[order], T2TPreTokenizer())
        shown = [text[slice(*rows[row])].tobytes().decode() for row in order]
        expected = Counter(token for row in shown for token in tokenize(row))
        assert list(TokenTable(*accumulator.arrays()).items()) == list(expected.items())


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason='plain atomics are for one thread')
@pytest.mark.parametrize('collide', [True, False])
def test_threads_count_into_one_index(collide):
    # All threads add the same new tokens at once, so that the table grows many times.
    words = [f'{number * 7919:x}字' for number in range(60_000)]
    if collide:
        words = [f'{word} {other}' for word, other in zip(colliding_words(200), words)] * 2
    index = TokenIndex()
    sums = [TokenAccumulator(index) for _ in range(4)]

    def count(number: int) -> Counter:
        order = words[number * 97 :] + words[: number * 31]
        (side,) = text_rows('\n'.join(order).encode(), 0, T2T_LINES).sides
        sums[number].add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
        return Counter(token for word in order for token in tokenize(word))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        expected = sum(pool.map(count, range(4)), Counter())
    nbytes = sum(part.nbytes for part in (index, *sums))
    table = TokenTable(*sums[0].finish(sums[1:]))
    assert_sound(table)
    assert dict(table.items()) == expected
    assert len(index) == len(expected)
    assert table.nbytes <= nbytes


@pytest.mark.parametrize('length', [1, 1_000], ids=['more slots', 'more data'])
def test_a_thread_with_an_old_table_finds_no_token_that_is_only_in_a_new_one(length):
    table = TokenTable.from_items((f'{number:0{length}}', 1) for number in range(5_000))
    accumulator = TokenAccumulator()
    first = accumulator.index.table
    accumulator.add_tokens(table.data, table.offsets, table.counts)
    assert len(accumulator.index) == 5_000
    assert np.count_nonzero(first.slots) == first.size < 5_000
    assert first.offsets[first.size] <= len(first.data)


def test_sums_of_threads_stop_at_the_largest_count():
    table = TokenTable.from_items([('a', _LARGEST), ('b', 1)])
    first = TokenAccumulator()
    sums = [first, TokenAccumulator(first.index), TokenAccumulator(first.index)]
    for each in sums[:2]:
        each.add_tokens(table.data, table.offsets[:3], table.counts)
    with pytest.raises(OverflowError, match="'a'"):
        first.finish(sums[1:])


def test_arrays_stay_as_they_were_when_more_is_added():
    first = TokenTable.from_items([('ab', 1), ('c', 2)])
    accumulator = TokenAccumulator()
    accumulator.add_tokens(first.data, first.offsets, first.counts)
    before = TokenTable(*accumulator.arrays())
    more = TokenTable.from_items([('c', 5), *((f'new{number}', 1) for number in range(9_000))])
    for start in (0, 100, 5_000):
        accumulator.add_tokens(more.data, more.offsets[start:], more.counts[start:])
        assert list(before.items()) == [('ab', 1), ('c', 2)]
        assert len(before.data) == 3
