"""Tables of counts: packed, as Arrow, in parts, against dictionaries."""

import pickle
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts import counting
from tokcore.counts.token_table import TokenTable
from tokcore.kernels.jit import read_only

_LARGEST = 2**63 - 1

valid_characters = st.characters(exclude_categories=['Cs'])

tokens = st.one_of(
    st.text(valid_characters, max_size=4), st.text(st.sampled_from('ab字'), max_size=2)
)

items = st.lists(st.tuples(tokens, st.integers(0, 2**40)), max_size=30)


def added_up(pairs) -> dict[str, int]:
    sums = {}
    for token, count in pairs:
        sums[token] = sums.get(token, 0) + count
    return sums


def assert_sound(table: TokenTable):
    assert table.data.dtype == np.uint8
    assert table.offsets.dtype == table.counts.dtype == np.int64
    assert len(table.offsets) == len(table) + 1
    assert table.offsets[0] == 0 and table.offsets[-1] == len(table.data)
    assert len(dict(table.items())) == len(table)
    assert table.total == sum(count for _, count in table.items())


@given(items)
def test_a_table_of_items(pairs):
    table = TokenTable.from_items(pairs)
    assert_sound(table)
    assert list(table.items()) == list(added_up(pairs).items())
    in_order = table.sorted()
    assert list(in_order.items()) == sorted(added_up(pairs).items(), key=lambda x: x[0].encode())
    assert table.nbytes == len(table.data) + 16 * len(table) + 8


@pytest.mark.parametrize('length', [*range(1, 36), 63, 64, 65, 95, 96, 97])
def test_tokens_that_differ_in_one_byte_or_in_length_are_distinct(length):
    # Tokens are compared 32 bytes at a time: so every position of every length is tested.
    token = ('abcdefghijklmnopqrstuvwxyz0123456789' * 3)[:length]
    others = [token[:position] + 'A' + token[position + 1 :] for position in range(length)]
    others += [token + 'A', token + token, '\0' + token, token + '\0']
    table = TokenTable.from_items([(string, 1) for string in [token, *others] * 2])
    assert list(dict(table.items())) == list(dict.fromkeys([token, *others]))
    assert set(dict(table.items()).values()) == {2}


@given(st.lists(st.binary(max_size=40)), st.randoms())
def test_tokens_of_any_length_are_picked_whole(tokens, dice):
    offsets = np.cumsum([0, *map(len, tokens)])
    table = TokenTable(np.frombuffer(b''.join(tokens), np.uint8), offsets, np.arange(len(tokens)))
    order = dice.sample(range(len(tokens)), len(tokens))
    picked = table.pick(np.array(order, np.int64))
    strings = [
        picked.data[start:end].tobytes() for start, end in zip(picked.offsets, picked.offsets[1:])
    ]
    assert strings == [tokens[index] for index in order]
    assert picked.counts.tolist() == order


@given(st.lists(st.tuples(tokens, st.integers(0, _LARGEST)), unique_by=lambda pair: pair[0]))
def test_packed_tables_round_trip(pairs):
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


@given(items)
def test_arrow_tables_round_trip(pairs):
    table = TokenTable.from_items(pairs)
    arrow = table.to_arrow()
    arrow.validate(full=True)
    assert arrow.schema == pa.schema([('token', pa.string()), ('count', pa.int64())])
    assert list(zip(*arrow.to_pydict().values())) == list(table.items())
    assert list(TokenTable.from_arrow(arrow).items()) == list(table.items())


def test_arrays_are_read_only_and_contiguous_in_a_copy_too():
    every_second = np.arange(6)[::2]
    table = TokenTable(
        np.frombuffer(b'abbc', np.uint8).copy(), np.array([0, 1, 3, 4]), every_second
    )
    for each in (table, pickle.loads(pickle.dumps(table)), table.part(1, 3), table.sorted()):
        for array in (each.data, each.offsets, each.counts):
            assert array.flags.c_contiguous and not array.flags.writeable
    assert list(pickle.loads(pickle.dumps(table)).items()) == [('a', 0), ('bb', 2), ('c', 4)]


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
        ({'token': pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(['a', None])),
          'count': [1, 1]}, 'nulls'),
        ({'token': [1], 'count': [1]}, 'must hold strings, not int64'),
        ({'token': ['a'], 'count': [1.0]}, 'must hold integers, not double'),
        ({'token': ['a', 'b'], 'count': [1, -2]}, 'one is -2'),
        ({'token': pa.array([b'\xff']).view(pa.string()), 'count': [1]}, "'token' is damaged"),
    ],
)  # fmt: skip
def test_arrow_tables_that_are_not_counts(columns, message):
    with pytest.raises(ValueError, match=message):
        TokenTable.from_arrow(pa.table(columns))


def test_arrow_counts_past_the_largest():
    column = pa.array([_LARGEST + 1], pa.uint64())
    with pytest.raises(OverflowError):
        TokenTable.from_arrow(pa.table({'token': ['a'], 'count': column}))


@given(st.lists(st.binary(max_size=4), max_size=8))
def test_ascending_means_each_token_is_greater_than_the_one_before(tokens):
    data = read_only(np.frombuffer(b''.join(tokens), np.uint8))
    offsets = read_only(np.cumsum([0, *map(len, tokens)], dtype=np.int64))
    assert counting.is_ascending(data, offsets) == all(a < b for a, b in zip(tokens, tokens[1:]))
