"""Tokens that are remembered have the ids that merging gives, whatever row they share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe.model import MergeModel, merge_work
from tokcore.bpe.model_kernels import memory_row, recall_ids, remember_ids, token_memory
from tokcore.encoding.kernels import MissedTokens, segment_tokens
from tokcore.kernels.bytes import with_margin
from tokcore.text.pre_tokenizer import ScannedTokens

from .test_model import merged, random_merges, units_of

_LETTERS = st.sampled_from(['a', 'b', 'c', 'é', '語'])
_LENGTHS = st.sampled_from([1, 7, 8, 9, 15, 16, 17, 55, 56, 57, 90])


def scanned(tokens: list[bytes]) -> ScannedTokens:
    ends = np.cumsum([len(token) for token in tokens]).astype(np.uint64)
    starts = np.append(np.zeros(1, np.uint64), ends[:-1])
    text = with_margin(np.frombuffer(b''.join(tokens), np.uint8))
    return ScannedTokens(text, starts, ends, np.zeros(1, np.int64))


def segmented(model: MergeModel, tokens: list[bytes], work) -> list[list[int]]:
    """The ids of each token, all of them missed at once."""
    numbers = np.arange(len(tokens), dtype=np.uint64)
    missed = MissedTokens(numbers, len(tokens), sum(map(len, tokens)))
    assert segment_tokens(scanned(tokens), missed, model.state, work) == (0, 0)
    bounds = work.id_bounds.tolist()
    return [work.ids[bounds[k] : bounds[k + 1]].tolist() for k in range(len(tokens))]


@given(
    st.randoms(use_true_random=False),
    st.lists(
        st.tuples(_LENGTHS, st.lists(_LETTERS, min_size=1, max_size=6)), min_size=1, max_size=9
    ),
    st.sampled_from([0, 2, 64]),
)
def test_ids_are_those_of_merging(chance, parts, rows):
    merges = random_merges(chance, b'abc', 30, False)
    model = MergeModel(merges, units_of(), size=400)
    # Some are cut within a character, and some differ in a byte alone.
    tokens = [(''.join(letters) * length).encode()[:length] for length, letters in parts]
    tokens += [token[:-1] + b'a' for token in tokens]
    expected = [merged(token, merges) for token in tokens]
    work = merge_work(9 * sum(map(len, tokens)), len(tokens), rows)
    for _ in range(3):
        order = chance.sample(range(len(tokens)), len(tokens))
        assert segmented(model, [tokens[k] for k in order], work) == [expected[k] for k in order]


@pytest.mark.parametrize(
    ('token', 'count', 'is_kept'),
    [
        (b'a' * 56, 16, True),
        (b'a' * 57, 1, False),
        (b'a', 17, False),
        ('語'.encode(), 2, False),
        ('\u2581語'.encode(), 2, False),
        ('\u2581é'.encode(), 2, True),
        (' 語語語'.encode(), 2, False),
        (' a語語'.encode(), 2, True),
    ],
)
@pytest.mark.parametrize('rows', [2, 0])
def test_what_is_kept(token, count, is_kept, rows):
    text, start, end = (
        with_margin(np.frombuffer(token, np.uint8)),
        np.uint64(0),
        np.uint64(len(token)),
    )
    memory = token_memory(rows)
    ids, recalled = np.arange(20, dtype=np.int32), np.zeros(20, np.int32)
    row = np.uint64(memory_row(text, start, end, memory))
    remember_ids(text, start, end, row, memory, ids, np.uint64(3), np.uint64(count))
    kept = recall_ids(text, start, end, row, memory, recalled, np.uint64(1))
    assert kept == (count if is_kept and rows else 0)
    if kept:
        assert recalled[1 : 1 + count].tolist() == list(range(3, 3 + count))
