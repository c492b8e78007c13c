"""Blocks to tables, and tables that stay small however many are added."""

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.tsv import Tsv
from tokcore.counts.tables import BlockCounter, TableMerger
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.t2t import T2TPreTokenizer, tokenize

FILE = CorpusFile('pairs.tsv', 'pairs.tsv', 0, compressed=False)
SPLITS = (Split('train', Tsv((0, 1)), ((FILE,),)),)


def tsv_block(data: bytes) -> Block:
    return Block('train', Tsv((0, 1)), 0, (BlockText(0, data),))


def counted(block, groups, on_error='stop'):
    """The tables of a block, one for each group of sides, and what is known of it."""
    counter = BlockCounter(groups, T2T_LINES, T2TPreTokenizer())
    facts = counter.add(block, SPLITS, on_error)
    return counter.finish(), facts


texts = st.text(st.characters(exclude_characters='\t\n', exclude_categories=['Cs']), max_size=12)


@given(st.lists(st.tuples(texts, texts), max_size=8))
@settings(deadline=None)
def test_sides_are_counted_apart_or_together_from_the_kept_rows_alone(pairs):
    data = ''.join(f'{source}\t{target}\n' for source, target in pairs).encode()
    kept = [
        stripped
        for source, target in pairs
        if all(stripped := [side.replace('\r', '').strip() for side in (source, target)])
    ]
    plain = [Counter(token for row in kept for token in tokenize(row[side])) for side in (0, 1)]

    apart, facts = counted(tsv_block(data), ((0,), (1,)))
    [together], facts_together = counted(tsv_block(data), ((0, 1),))

    assert [dict(table.items()) for table in apart] == [dict(each) for each in plain]
    assert dict(together.items()) == dict(plain[0] + plain[1])
    assert facts == facts_together
    assert facts.tally.examples == len(kept)
    assert facts.tally.lines == len(pairs)


BAD_LINES = b'a\tb\nalone\n\xff\tb\n\nc\td\n'


def test_bad_lines_stop_the_count_by_default():
    with pytest.raises(InputError, match='pairs.tsv.*line at byte 4 has too few columns'):
        counted(tsv_block(BAD_LINES), ((0, 1),))


def test_bad_lines_can_be_skipped_and_are_kept_with_their_reason():
    [table], facts = counted(tsv_block(BAD_LINES), ((0, 1),), on_error='skip')
    assert dict(table.items()) == {'a': 1, 'b': 1, 'c': 1, 'd': 1}
    tally = facts.tally
    assert (tally.lines, tally.examples, tally.empty) == (5, 2, 1)
    assert tally.left_out == {'invalid_utf8': 1, 'missing_column': 1}
    assert {each.reason: each.json_lines for each in facts.rejected} == {
        'missing_column': b'{"file": "pairs.tsv", "offset": 4, "line": "alone"}\n',
        'invalid_utf8': b'{"file": "pairs.tsv", "offset": 10, "line_base64": "/wli"}\n',
    }


def token_table(first: int, count: int) -> TokenTable:
    return TokenTable.from_items((f'token{number}', 1) for number in range(first, first + count))


def test_one_table_added_a_thousand_times_stays_as_small_as_it_is():
    table = token_table(0, 20_000)
    merger = TableMerger()
    merger.add(table)
    merger.add(table)
    tracemalloc.start()
    for _ in range(998):
        merger.add(table)
        assert merger.nbytes <= 8 * table.nbytes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * table.nbytes
    assert merger.merged().total == 1000 * table.total
    assert len(merger.merged()) == len(table)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=20))
@settings(deadline=None)
def test_the_order_of_adding_does_not_matter(ranges):
    tables = [token_table(first, count) for first, count in ranges]
    sums = []
    for ordered in (tables, tables[::-1]):
        merger = TableMerger()
        for table in ordered:
            merger.add(table)
        sums.append(dict(merger.merged().items()))
    plain = sum((Counter(dict(table.items())) for table in tables), Counter())
    assert sums[0] == sums[1] == dict(plain)
