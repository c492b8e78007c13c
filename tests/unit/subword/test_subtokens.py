"""Subtokens in order, against sorting them as strings."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.learning.ranked_text import escape_tokens
from tokcore.subword.subtokens import Subtokens

words = st.one_of(
    st.text(st.sampled_from('abc_\\\\é中\U0001f600'), max_size=10),
    st.builds(lambda letter, times: letter * times, st.sampled_from('ab'), st.integers(1, 60)),
)


@st.composite
def kept_strings(draw):
    """A text, and different substrings of it of two characters or more with their counts."""
    tokens = draw(st.lists(words, min_size=1, max_size=6, unique=True))
    table = TokenTable.from_items((token, 1) for token in tokens)
    text = escape_tokens(table.data, table.offsets, table.counts, ())
    joined = ''.join(map(chr, text.alphabet[text.ranks]))
    places = {}
    for begin, end in zip(text.starts.tolist(), text.starts[1:].tolist()):
        for place in range(begin, end):
            for stop in range(place + 2, end + 1):
                places[joined[place:stop]] = place
    strings = sorted(places)
    kept = draw(st.lists(st.sampled_from(strings), unique=True)) if strings else []
    counts = draw(st.lists(st.integers(0, 2), min_size=len(kept), max_size=len(kept)))
    left_over = draw(
        st.lists(st.integers(0, 2), min_size=len(text.alphabet), max_size=len(text.alphabet))
    )
    return text, [places[string] for string in kept], kept, counts, left_over


@given(kept_strings())
@settings(deadline=None, max_examples=200)
def test_the_order_is_by_count_and_string_descending(problem):
    text, places, kept, counts, left_over = problem
    subtokens = Subtokens(
        ('<pad>_', '<EOS>_'),
        text,
        np.array(places, np.int32),
        np.array(list(map(len, kept)), np.int32),
        np.array(counts, np.int64),
        np.array(left_over, np.int64),
    )
    pairs = [*zip(counts, kept), *zip(left_over, map(chr, text.alphabet))]
    expected = ('<pad>_', '<EOS>_', *(string for _, string in sorted(pairs, reverse=True)))
    assert len(subtokens) == len(expected)
    assert subtokens == expected
    assert expected == subtokens
    assert subtokens != expected[:-1]
    assert subtokens[2:5] == expected[2:5]
    assert list(subtokens) == list(expected)
    assert hash(subtokens) == hash(expected)
