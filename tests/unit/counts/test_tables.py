"""Blocks to tables, and tables merged, partitioned and read from text."""

import tracemalloc
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.declarations import Tsv
from tokcore.counts.tables import (
    BlockCounter,
    TableMerger,
    concatenate_tables,
    is_partition,
    merge_tables,
    partition_table,
    read_counts_text,
)
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer, tokenize

from .test_token_table import added_up, assert_sound, items, valid_characters

_LARGEST = 2**63 - 1


FILE = CorpusFile('pairs.tsv', 'pairs.tsv', 0, compressed=False)

SPLITS = (Split('train', Tsv((0, 1)), ((FILE,),)),)


def tsv_block(data: bytes) -> Block:
    return Block('train', Tsv((0, 1)), 0, (BlockText(0, data),))


def counted(block, groups, on_error='stop'):
    """The tables of a block, one for each group of sides, and its stats."""
    counter = BlockCounter(groups, T2T_LINES, T2TPreTokenizer())
    stats = counter.add(block, SPLITS, on_error)
    return counter.finish(), stats


sides = st.text(st.characters(exclude_characters='\t\n', exclude_categories=['Cs']), max_size=12)


@given(st.lists(st.tuples(sides, sides), max_size=8))
def test_sides_are_counted_apart_or_together_without_empty_rows(pairs):
    data = ''.join(f'{source}\t{target}\n' for source, target in pairs).encode()
    kept = [
        stripped
        for source, target in pairs
        if all(stripped := [side.replace('\r', '').strip() for side in (source, target)])
    ]
    plain = [Counter(token for row in kept for token in tokenize(row[side])) for side in (0, 1)]

    apart, stats = counted(tsv_block(data), ((0,), (1,)))
    [together], stats_together = counted(tsv_block(data), ((0, 1),))

    assert [dict(table.items()) for table in apart] == [dict(counts) for counts in plain]
    assert dict(together.items()) == dict(plain[0] + plain[1])
    assert stats == stats_together
    assert stats.tally.examples == len(kept)
    assert stats.tally.lines == len(pairs)


BAD_LINES = b'a\tb\nalone\n\xff\tb\n\nc\td\n'


def test_bad_lines_stop_the_count_by_default():
    with pytest.raises(InputError, match='pairs.tsv.*line at byte 4 has too few columns'):
        counted(tsv_block(BAD_LINES), ((0, 1),))


def test_bad_lines_can_be_skipped_and_are_kept_with_their_reason():
    [table], stats = counted(tsv_block(BAD_LINES), ((0, 1),), on_error='skip')
    assert dict(table.items()) == {'a': 1, 'b': 1, 'c': 1, 'd': 1}
    tally = stats.tally
    assert (tally.lines, tally.examples, tally.empty) == (5, 2, 1)
    assert tally.left_out == {'invalid_utf8': 1, 'missing_column': 1}
    assert {lines.reason: lines.json_lines for lines in stats.rejected} == {
        'missing_column': b'{"file": "pairs.tsv", "offset": 4, "line": "alone"}\n',
        'invalid_utf8': b'{"file": "pairs.tsv", "offset": 10, "line_base64": "/wli"}\n',
    }


def token_table(first: int, count: int) -> TokenTable:
    return TokenTable.from_items((f'token{number}', 1) for number in range(first, first + count))


def test_one_table_added_many_times_stays_as_small_as_it_is():
    table = token_table(0, 20_000)
    merger = TableMerger()
    merger.add(table)
    merger.add(table)
    tracemalloc.start()
    for _ in range(298):
        merger.add(table)
        assert merger._sums.index.nbytes + merger._sums.nbytes <= 8 * table.nbytes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * table.nbytes
    assert merger.merged().total == 300 * table.total
    assert len(merger.merged()) == len(table)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=20))
def test_the_order_of_adding_does_not_matter(ranges):
    tables = [token_table(first, count) for first, count in ranges]
    sums = []
    for ordered in (tables, tables[::-1]):
        merger = TableMerger()
        for table in ordered:
            merger.add(table)
        sums.append(dict(merger.merged().items()))
    plain = sum((Counter(dict(table.items())) for table in tables), Counter())
    assert sums[0] == sums[1] == dict(plain) == dict(merge_tables(iter(tables)).items())


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


@given(items, st.lists(st.integers(0, 30), max_size=4))
def test_the_parts_of_a_table_concatenate_to_it(pairs, cuts):
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


@given(st.lists(st.text(max_size=3), unique=True, max_size=8), st.integers(1, 4))
def test_a_partition_has_the_tokens_of_its_number_only(tokens, partitions):
    table = TokenTable.from_items((token, 1) for token in tokens)
    numbers = {zlib.crc32(token.encode()) * partitions >> 32 for token in tokens}
    for number in range(partitions):
        assert is_partition(number, table, partitions) == (numbers <= {number})


@pytest.mark.parametrize('partitions', [0, -1, 2**31 + 1])
def test_an_invalid_number_of_partitions_is_refused(partitions):
    with pytest.raises(ValueError, match='partitions'):
        partition_table(TokenTable.from_items([('a', 1)]), partitions)


def test_counts_text():
    text = 'the 12\nof\t7\r\n\n \t\r\na b c 3\nx y\t5\nthe 1\n  9\nq\rr 2\n字 007'.encode()
    assert list(read_counts_text(text, 'f').items()) == [
        ('the', 13), ('of', 7), ('a b c', 3), ('x y', 5), (' ', 9), ('q\rr', 2), ('字', 7),
    ]  # fmt: skip
    assert len(read_counts_text(b'', 'f')) == 0


words = st.text(valid_characters.filter(lambda c: c not in '\n\t'), min_size=1, max_size=6)


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
        (b'a 9223372036854775807', "'a' exceed"),
    ],
)
def test_counts_text_with_a_bad_line(line, reason):
    with pytest.raises(InputError, match=f'^words.txt: .*{reason}'):
        read_counts_text(b'a 9223372036854775807\n\n' + line + b'\nb 1\n', 'words.txt')
