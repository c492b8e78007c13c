"""Runs of characters and counts of all characters, found by a kernel: those of plain Python."""

import collections
import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.jit import read_only
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    CharacterRuns,
    ScannedTokens,
    TextRows,
    scan_tokens,
)

# Every third code point, so that each plane and each length in UTF-8 has both kinds.
IS_INSIDE = read_only((np.arange(0x110000) % 3 == 1).astype(np.uint8))

EDGES = [
    0, 1, 0x7F, 0x80, 0x7FF, 0x800, 0xD800, 0xDFFF, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF,
]  # fmt: skip

ROWS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=())),  # lone surrogates too
        st.text('abcd', max_size=200),
        st.text(st.sampled_from([chr(each) for each in EDGES])),
    ),
    max_size=5,
)


def laid_out(rows):
    """Rows in UTF-8, and their starts and ends."""
    encoded = [row.encode('utf-8', 'surrogatepass') for row in rows]
    offsets = row_offsets(np.array([len(row) for row in encoded], np.int64))
    return np.frombuffer(b''.join(encoded), np.uint8), offsets[:-1], offsets[1:]


def plain_runs(row):
    runs = itertools.groupby(row, lambda character: IS_INSIDE[ord(character)])
    return [''.join(run) for is_inside, run in runs if is_inside]


def counted_characters(runs):
    codes = np.flatnonzero(runs.counts)
    return {chr(code): int(runs.counts[code]) for code in codes}


@settings(deadline=None)
@given(ROWS)
@example(['a', '', 'bd', 'dd'])
@example([''.join(map(chr, EDGES))])
@example(['d' * 20_000 + 'b', 'db' * 20_000])
def test_runs_and_characters_are_those_of_the_rows(rows):
    text, starts, ends = laid_out(rows)
    runs, words = CharacterRuns.of(IS_INSIDE, text), TokenAccumulator()
    words.add_rows(text, starts, ends, runs)
    assert counted_characters(runs) == collections.Counter(''.join(rows))
    table = TokenTable(*words.finish())
    found = [
        table.data[start:end].tobytes().decode('utf-8', 'surrogatepass')
        for start, end in itertools.pairwise(table.offsets)
    ]
    expected = collections.Counter(run for row in rows for run in plain_runs(row))
    assert dict(zip(found, table.counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize('room', [0, 1, 7])
@settings(deadline=None)
@given(rows=ROWS)
def test_a_call_continues_where_the_one_before_had_no_room(room, rows):
    text, starts, ends = laid_out(rows)
    text_rows = TextRows(with_margin(text), read_only(starts), read_only(ends))
    runs = CharacterRuns.of(IS_INSIDE, text)
    places = [np.empty(room + CHUNK_TOKENS, np.uint64) for _ in range(2)]
    found = []
    row, position = 0, -1
    while row < len(rows):
        tokens = ScannedTokens(text_rows.text, *places, np.zeros(len(rows) + 1, np.int64))
        row, position, count = scan_tokens(text_rows, row, position, runs, tokens)
        found += [
            text[int(start) : int(end)].tobytes().decode('utf-8', 'surrogatepass')
            for start, end in zip(places[0][:count], places[1][:count], strict=True)
        ]
    assert found == [run for row in rows for run in plain_runs(row)]
    assert counted_characters(runs) == collections.Counter(''.join(rows))
