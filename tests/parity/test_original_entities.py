"""The filter `paracrawl` does to texts what Tensor2Tensor does to segments of ParaCrawl's TMX."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.filters.registry import make_filter
from tokcore.text.rows import Side

PIECES = [
    '&', 'amp;', '&amp;', '& amp;', '&  amp;', '&apos;', '& quot;', '&lt;', '& gt;', ' ', '字', 'é',
    '&nbsp;', '&AMP;', 'lt;', ';', '\u2028', 'a',
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=9).map(''.join),
    st.text(st.characters(codec='utf-8', exclude_characters='\n\r'), max_size=9),
)


@pytest.fixture(scope='module')
def original(t2t_text_encoder):
    """After what says that there is no Tensor2Tensor."""
    from tensor2tensor.data_generators.cleaner_en_xx import paracrawl_v3_pairs

    return paracrawl_v3_pairs


@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), max_size=9))
def test_entities_become_what_they_become_there(original, pairs):
    lines = [f'  <seg>{text}</seg>\n'.encode() for pair in pairs for text in pair]
    data = '\n'.join(text for pair in pairs for text in pair).encode()
    lengths = np.array([len(text.encode()) for pair in pairs for text in pair], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    every = [(ends - lengths)[side::2] for side in (0, 1)], [ends[side::2] for side in (0, 1)]
    text = np.frombuffer(data, np.uint8)
    found = make_filter('paracrawl').apply(tuple(Side(text, *bounds) for bounds in zip(*every)))
    made = [tuple(side.row(row) for side in found.sides) for row in range(len(found.rows))]
    # Pairs with an empty side are dropped by all filters alike, in `applying`.
    assert [pair for pair in made if all(pair)] == list(original(lines))
