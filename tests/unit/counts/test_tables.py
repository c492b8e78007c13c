"""Counting, merging and packing tokens, against `collections.Counter`."""

import concurrent.futures
import functools
import itertools
import struct
import unicodedata
import zlib
from collections import Counter

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.corpus.corpus import Rows
from tokcore.corpus.line_rows import bitext_rows, text_rows
from tokcore.counts import kernels
from tokcore.counts.counting import TokenAccumulator, TokenIndex
from tokcore.counts.kernels import slot_shift, slot_tag
from tokcore.counts.tables import (
    concatenate_tables,
    is_partition,
    merge_tables,
    partition_table,
    read_counts_text,
)
from tokcore.counts.token_table import TokenTable, token_arrays
from tokcore.errors import InputError
from tokcore.kernels.bytes import GOLDEN_RATIO, MIXER, hash_bytes
from tokcore.kernels.jit import read_only
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rewriting import prepend
from tokcore.text.t2t import T2TPreTokenizer

_LARGEST = 2**63 - 1

valid_characters = st.characters(exclude_categories=['Cs'])
# A small alphabet makes tokens repeat.
texts = st.one_of(
    st.text(valid_characters),
    st.text(st.sampled_from(' \n\r\tab1_-é字\u0301²\u3000\u2028😀'), max_size=200),
)
tokens = st.one_of(
    st.text(valid_characters, max_size=4), st.text(st.sampled_from('ab字'), max_size=2)
)
items = st.lists(st.tuples(tokens, st.integers(0, 2**40)), max_size=30)


def plain_tokens(text: str) -> list[str]:
    runs = itertools.groupby(text, lambda c: unicodedata.category(c)[0] in 'LN')
    pieces = [''.join(run) for _, run in runs]
    last = len(pieces) - 1
    return [piece for i, piece in enumerate(pieces) if piece != ' ' or i in (0, last)]


def plain_counts(text: str) -> Counter:
    lines = [line.replace('\r', '').strip() for line in text.split('\n')]
    return Counter(token for line in lines for token in plain_tokens(line))


def added_up(pairs) -> dict[str, int]:
    sums = {}
    for token, count in pairs:
        sums[token] = sums.get(token, 0) + count
    return sums


def count_rows(rows: Rows, sides: tuple[int, ...]) -> TokenTable:
    accumulator = TokenAccumulator()
    for side in (rows.sides[index] for index in sides):
        accumulator.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
    return TokenTable(*accumulator.finish())


def assert_sound(table: TokenTable):
    assert table.data.dtype == np.uint8
    assert table.offsets.dtype == table.counts.dtype == np.int64
    assert len(table.offsets) == len(table) + 1
    assert table.offsets[0] == 0 and table.offsets[-1] == len(table.data)
    assert len(dict(table.items())) == len(table)
    assert table.total == sum(count for _, count in table.items())


@settings(deadline=None)
@given(texts)
@example('')
@example('a b a')
def test_tokens_of_lines_are_counted(text):
    table = count_rows(text_rows(text.encode(), 0, T2T_LINES), (0,))
    assert_sound(table)
    assert dict(table.items()) == plain_counts(text)
    assert table.total == plain_counts(text).total()


@settings(deadline=None)
@given(texts, st.text(valid_characters, max_size=3))
def test_a_prefix_may_begin_and_end_a_row_with_a_space(text, prefix):
    (side,) = text_rows(text.encode(), 0, T2T_LINES).sides
    side = prepend(side, prefix)
    accumulator = TokenAccumulator()
    accumulator.add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
    expected = Counter(token for i in range(len(side)) for token in plain_tokens(side.row(i)))
    assert dict(TokenTable(*accumulator.arrays()).items()) == expected


def test_sides_are_counted_together_or_alone():
    rows = bitext_rows(b'a b\nc\n', 0, b'a\nd\n', 0, T2T_LINES)
    assert dict(count_rows(rows, (0,)).items()) == {'a': 1, 'b': 1, 'c': 1}
    assert dict(count_rows(rows, (1,)).items()) == {'a': 1, 'd': 1}
    assert dict(count_rows(rows, (0, 1)).items()) == {'a': 2, 'b': 1, 'c': 1, 'd': 1}
    assert len(count_rows(rows, ())) == 0


@settings(deadline=None)
@given(texts, st.lists(st.integers(0, 200)))
def test_blocks_cut_at_any_line_ends_give_the_same_counts(text, cuts):
    lines = text.encode().split(b'\n')
    borders = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    parts = [b''.join(line + b'\n' for line in lines[a:b]) for a, b in zip(borders, borders[1:])]
    tables = [count_rows(text_rows(part, 0, T2T_LINES), (0,)) for part in parts]
    assert dict(merge_tables(tables).items()) == plain_counts(text)
    assert dict(merge_tables(reversed(tables)).items()) == plain_counts(text)


FIRST_SLOTS = 1 << 12


@functools.cache
def colliding_words(most: int) -> list[str]:
    """Words of 8 and of 16 letters that no table of `FIRST_SLOTS` tells apart but by their bytes.

    Each step of the hash can be undone, so that of each hash with the bits wanted the last eight
    bytes of a word are known; those are taken of which all are ASCII letters or digits.
    """
    inverses = [np.uint64(pow(factor, -1, 1 << 64)) for factor in (GOLDEN_RATIO, MIXER)]
    found = []
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
        found += tails[: most // 2]
    return [word.decode() for word in found]


def test_words_that_are_said_to_collide_have_one_slot_and_one_tag():
    words = colliding_words(200)
    assert len(set(words)) == 200 and {len(word) for word in words} == {8, 16}
    texts = [(np.frombuffer(word.encode() + bytes(8), np.uint8), len(word)) for word in words]
    hashes = [hash_bytes(text, np.uint64(0), np.uint64(length)) for text, length in texts]
    assert len(set(hashes)) == 200
    last_slot = np.uint64(FIRST_SLOTS - 1)
    assert {int(np.uint64(each) >> slot_shift(FIRST_SLOTS)) for each in hashes} == {0}
    assert {int(slot_tag(np.uint64(each), last_slot)) for each in hashes} == {0}


@pytest.mark.parametrize('collide', [True, False])
def test_tokens_of_one_hash_and_of_many_are_told_apart(collide):
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


def test_rows_may_stand_in_any_order_and_anything_behind_them():
    text = np.frombuffer('一二 ab, 三'.encode() + b'z9' * 100 + 'end 四'.encode(), np.uint8)
    rows = [(len(text) - 7, len(text)), (0, 14), (7, 9), (14, 14), (len(text) - 3, len(text))]
    starts, ends = (np.array(places, np.int64) for places in zip(*rows))
    for order in ([0, 1, 2, 3, 4], [1, 2, 3], [2, 4, 1, 0]):
        accumulator = TokenAccumulator()
        accumulator.add_rows(text, starts[order], ends[order], T2TPreTokenizer())
        shown = [text[slice(*rows[row])].tobytes().decode() for row in order]
        expected = Counter(token for row in shown for token in plain_tokens(row))
        assert list(TokenTable(*accumulator.arrays()).items()) == list(expected.items())


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason='plain atomics are for one thread')
@pytest.mark.parametrize('collide', [True, False])
def test_threads_count_into_one_index(collide):
    # All threads meet the same new tokens at once, and make the table grow many times over.
    words = [f'{number * 7919:x}字' for number in range(60_000)]
    if collide:
        words = [f'{word} {other}' for word, other in zip(colliding_words(200), words)] * 2
    index = TokenIndex()
    sums = [TokenAccumulator(index) for _ in range(4)]

    def count(number: int) -> Counter:
        order = words[number * 97 :] + words[: number * 31]
        (side,) = text_rows('\n'.join(order).encode(), 0, T2T_LINES).sides
        sums[number].add_rows(side.text, side.starts, side.ends, T2TPreTokenizer())
        return Counter(token for word in order for token in plain_tokens(word))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        expected = sum(pool.map(count, range(4)), Counter())
    nbytes = sum(each.nbytes for each in (index, *sums))
    table = TokenTable(*sums[0].finish(sums[1:]))
    assert_sound(table)
    assert dict(table.items()) == expected
    assert len(index) == len(expected)
    assert table.nbytes <= nbytes


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
    given = TokenTable(*accumulator.arrays())
    more = TokenTable.from_items([('c', 5), *((f'new{number}', 1) for number in range(9_000))])
    for start in (0, 100, 5_000):
        accumulator.add_tokens(more.data, more.offsets[start:], more.counts[start:])
        assert list(given.items()) == [('ab', 1), ('c', 2)]
        assert len(given.data) == 3


def test_many_tokens_grow_the_table_in_any_row():
    words = [f'{number:x}' for number in range(50_000)]
    text = '\n'.join(' '.join(words[i : i + 97]) for i in range(0, len(words), 97)) * 2
    table = count_rows(text_rows(text.encode(), 0, T2T_LINES), (0,))
    assert dict(table.items()) == plain_counts(text)


@pytest.mark.parametrize('length', [*range(1, 36), 63, 64, 65, 95, 96, 97])
def test_tokens_that_differ_in_one_byte_or_in_length_are_apart(length):
    # Tokens are compared 32 bytes at a time: each place of each length must tell.
    token = ('abcdefghijklmnopqrstuvwxyz0123456789' * 3)[:length]
    others = [token[:place] + 'A' + token[place + 1 :] for place in range(length)]
    others += [token + 'A', token + token, '\0' + token, token + '\0']
    table = TokenTable.from_items([(each, 1) for each in [token, *others] * 2])
    assert list(dict(table.items())) == list(dict.fromkeys([token, *others]))
    assert set(dict(table.items()).values()) == {2}


@settings(deadline=None)
@given(items)
def test_a_table_of_items(pairs):
    table = TokenTable.from_items(pairs)
    assert_sound(table)
    assert list(table.items()) == list(added_up(pairs).items())
    in_order = table.sorted()
    assert list(in_order.items()) == sorted(added_up(pairs).items(), key=lambda x: x[0].encode())
    assert table.nbytes == len(table.data) + 16 * len(table) + 8


@settings(deadline=None)
@given(st.lists(items, max_size=5))
def test_tables_are_merged(lists):
    merged = merge_tables(TokenTable.from_items(pairs) for pairs in lists)
    assert_sound(merged)
    assert dict(merged.items()) == added_up(itertools.chain(*lists))


def test_sums_stop_at_the_largest_count():
    largest = TokenTable.from_items([('b', 1), ('a', _LARGEST)])
    assert largest.total == _LARGEST + 1
    assert dict(merge_tables([largest, TokenTable.from_items([('a', 0)])]).items())['a'] == _LARGEST
    with pytest.raises(OverflowError, match="'a'"):
        merge_tables([largest, TokenTable.from_items([('a', 1)])])
    with pytest.raises(OverflowError):
        TokenTable.from_items([('a', _LARGEST), ('a', 1)])
    with pytest.raises(OverflowError):
        TokenTable.from_items([('a', _LARGEST + 1)])


@settings(deadline=None)
@given(items, st.lists(st.integers(0, 30), max_size=4))
def test_parts_of_a_table_make_it_again(pairs, cuts):
    table = TokenTable.from_items(pairs)
    borders = sorted({0, len(table), *(cut for cut in cuts if cut < len(table))})
    parts = [table.part(first, last) for first, last in zip(borders, borders[1:])]
    for part in parts:
        assert_sound(part)
    assert [list(part.items()) for part in parts] == [
        list(table.items())[first:last] for first, last in zip(borders, borders[1:])
    ]
    whole = concatenate_tables(parts or [table])
    assert_sound(whole)
    assert list(whole.items()) == list(table.items())


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40)), st.randoms())
def test_tokens_of_any_length_are_picked_whole(tokens, dice):
    offsets = np.cumsum([0, *map(len, tokens)])
    table = TokenTable(np.frombuffer(b''.join(tokens), np.uint8), offsets, np.arange(len(tokens)))
    order = dice.sample(range(len(tokens)), len(tokens))
    picked = table.pick(np.array(order, np.int64))
    found = [
        picked.data[start:end].tobytes() for start, end in zip(picked.offsets, picked.offsets[1:])
    ]
    assert found == [tokens[place] for place in order]
    assert picked.counts.tolist() == order


@settings(deadline=None)
@given(items, st.one_of(st.integers(1, 9), st.sampled_from([64, 1000, 2**31])))
def test_partitions_follow_the_crc32(pairs, partitions):
    table = TokenTable.from_items(pairs)
    parts = partition_table(table, partitions)
    expected = {}
    for token, count in table.items():
        partition = zlib.crc32(token.encode()) * partitions >> 32
        expected.setdefault(partition, []).append((token, count))
    assert [(number, list(part.items())) for number, part in parts] == sorted(expected.items())
    for _, part in parts:
        assert_sound(part)


@pytest.mark.parametrize('partitions', [0, -1, 2**31 + 1])
def test_a_number_of_partitions_that_cannot_be(partitions):
    with pytest.raises(ValueError, match='partitions'):
        partition_table(TokenTable.from_items([('a', 1)]), partitions)


@settings(deadline=None)
@given(st.lists(st.tuples(tokens, st.integers(0, _LARGEST)), unique_by=lambda pair: pair[0]))
def test_packed_tables_come_back(pairs):
    table = TokenTable.from_items(pairs)
    packed = table.to_bytes()
    back = TokenTable.from_bytes(packed)
    assert_sound(back)
    assert list(back.items()) == pairs
    assert back.to_bytes() == packed
    for cut in {0, 3, 4, 11, len(packed) // 2, len(packed) - 1}:
        with pytest.raises(ValueError):
            TokenTable.from_bytes(packed[:cut])
    with pytest.raises(ValueError):
        TokenTable.from_bytes(packed + b'x')


def test_packed_bytes_are_pinned():
    table = TokenTable.from_items([('a', 300), ('字', 1)])
    header = b'TKT\x01' + struct.pack('<Q', 2)
    assert table.to_bytes() == header + b'\x01\x03' + b'\xac\x02\x01' + 'a字'.encode()


def test_other_bytes_are_no_table():
    with pytest.raises(ValueError, match='not a packed token table'):
        TokenTable.from_bytes(b'PAR1' + bytes(20))


@settings(deadline=None)
@given(items)
def test_arrow_tables_come_back(pairs):
    table = TokenTable.from_items(pairs)
    arrow = table.to_arrow()
    arrow.validate(full=True)
    assert arrow.schema == pa.schema([('token', pa.string()), ('count', pa.int64())])
    assert list(zip(*arrow.to_pydict().values())) == list(table.items())
    assert list(TokenTable.from_arrow(arrow).items()) == list(table.items())


def test_long_tables_are_cut_into_arrow_chunks(monkeypatch):
    monkeypatch.setattr('tokcore.counts.token_table._CHUNK_BYTES', 5)
    table = TokenTable.from_items([('ab', 1), ('cde', 2), ('fghijklm', 3), ('', 4), ('n', 5)])
    arrow = table.to_arrow()
    assert [len(chunk) for chunk in arrow['token'].chunks] == [2, 1, 2]
    assert list(zip(*arrow.to_pydict().values())) == list(table.items())
    assert list(TokenTable.from_arrow(arrow).items()) == list(table.items())


@pytest.mark.parametrize('string', [pa.string(), pa.large_string()])
@pytest.mark.parametrize('integer', [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.int64()])
def test_arrow_strings_and_integers_of_any_kind(string, integer):
    words = pa.chunked_array([['x', 'a'], [], ['字', 'a', '']], string)
    counts = pa.chunked_array([[9, 1, 2], [3, 4]], integer)
    expected = {'a': 4, '字': 2, '': 4}
    for column in (words, words.dictionary_encode()):
        table = pa.table({'count': counts, 'more': counts, 'token': column}).slice(1)
        assert dict(TokenTable.from_arrow(table).items()) == expected


@pytest.mark.parametrize(
    'columns, message',
    [
        ({'token': ['a']}, "one column 'count'"),
        ({'word': ['a'], 'count': [1]}, "one column 'token'"),
        ({'token': ['a', None], 'count': [1, 1]}, "'token' holds 1 nulls"),
        ({'token': ['a', 'b'], 'count': [1, None]}, "'count' holds 1 nulls"),
        ({'token': [1], 'count': [1]}, 'must hold strings, not int64'),
        ({'token': ['a'], 'count': [1.0]}, 'must hold integers, not double'),
        ({'token': ['a', 'b'], 'count': [1, -2]}, 'one is -2'),
        (
            {'token': pa.array([b'\xff']).view(pa.string()), 'count': [1]},
            "'token' is damaged",
        ),
    ],
)
def test_arrow_tables_that_are_no_counts(columns, message):
    with pytest.raises(ValueError, match=message):
        TokenTable.from_arrow(pa.table(columns))


def test_arrow_counts_past_the_largest():
    column = pa.array([_LARGEST + 1], pa.uint64())
    with pytest.raises(OverflowError):
        TokenTable.from_arrow(pa.table({'token': ['a'], 'count': column}))


def test_a_null_in_a_dictionary_is_found():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(['a', None]))
    with pytest.raises(ValueError, match='nulls'):
        TokenTable.from_arrow(pa.table({'token': column, 'count': [1, 1]}))


@pytest.mark.parametrize(
    ('tokens', 'counts', 'reason'),
    [
        (pa.array(['a', None]), pa.array([1, 2]), 'nulls'),
        (pa.array(['a']), pa.array([-1]), 'negative'),
        (pa.array(['a']), pa.array([0.5]), 'integers'),
        (pa.array([1]), pa.array([1]), 'strings'),
    ],
)
def test_refuses_arrays_of_columns_that_are_no_counts(tokens, counts, reason):
    with pytest.raises(ValueError, match=reason):
        token_arrays(tokens, counts)


def test_arrays_of_slices_and_dictionaries():
    tokens = pa.array(['x', 'ab', 'c', 'é'])
    for column in (tokens.slice(1), tokens.dictionary_encode().slice(1)):
        data, offsets, counts = token_arrays(column, pa.array([2, 3, 4], pa.int32()))
        pieces = [data[start:end].tobytes() for start, end in zip(offsets, offsets[1:])]
        assert pieces == [b'ab', b'c', 'é'.encode()]
        assert counts.tolist() == [2, 3, 4]


def test_counts_text():
    text = 'the 12\nof\t7\r\n\n \t\r\na b c 3\nx y\t5\nthe 1\n  9\nq\rr 2\n字 007'.encode()
    assert list(read_counts_text(text, 'f').items()) == [
        ('the', 13), ('of', 7), ('a b c', 3), ('x y', 5), (' ', 9), ('q\rr', 2), ('字', 7),
    ]  # fmt: skip
    assert len(read_counts_text(b'', 'f')) == 0


words = st.text(valid_characters.filter(lambda c: c not in '\n\t'), min_size=1, max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(words, st.integers(0, 2**50), st.sampled_from('\t '), st.booleans())))
def test_counts_text_of_any_tokens(lines):
    text = ''.join(
        f'{word}{separator}{count}' + ('\r\n' if carriage_return else '\n')
        for word, count, separator, carriage_return in lines
    )
    table = read_counts_text(text.encode(), 'f')
    assert list(table.items()) == list(added_up(line[:2] for line in lines).items())


@pytest.mark.parametrize(
    'line, reason',
    [
        (b'the', 'does not end with'),
        (b'the x', 'does not end with'),
        (b'the 5 ', 'does not end with'),
        (b'a 5\tb', 'does not end with'),
        (b'the -5', 'does not end with'),
        (b'the +5', 'does not end with'),
        ('the ５'.encode(), 'does not end with'),
        (b'\t5', 'has no token'),
        (b' 5', 'has no token'),
        (b'\xff 5', 'not valid UTF-8'),
        (b'a 9223372036854775808', 'above 2\\^63 - 1'),
    ],
)
def test_counts_text_with_a_bad_line(line, reason):
    with pytest.raises(InputError, match=f'^words.txt: line 3 .*{reason}'):
        read_counts_text(b'a 9223372036854775807\n\n' + line + b'\nb 1\n', 'words.txt')


def test_counts_text_whose_sum_is_too_large():
    with pytest.raises(InputError, match="words.txt: .*'a'"):
        read_counts_text(b'a 9223372036854775807\na 1\n', 'words.txt')


@settings(deadline=None)
@given(st.lists(st.binary(max_size=4), max_size=8))
def test_ascending_means_each_is_above_the_one_before(tokens):
    data = read_only(np.frombuffer(b''.join(tokens), np.uint8))
    offsets = read_only(np.cumsum([0, *map(len, tokens)], dtype=np.int64))
    assert kernels.is_ascending(data, offsets) == all(a < b for a, b in zip(tokens, tokens[1:]))


@given(st.lists(st.text(max_size=3), unique=True, max_size=8), st.integers(1, 4))
def test_a_partition_has_the_tokens_of_its_number_only(tokens, partitions):
    table = TokenTable.from_items((token, 1) for token in tokens)
    numbers = {zlib.crc32(token.encode()) * partitions >> 32 for token in tokens}
    for number in range(partitions):
        assert is_partition(number, table, partitions) == (numbers <= {number})
