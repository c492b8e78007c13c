"""Segmenting by the trie: the longest subtokens from the left, as by the plain rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.subword.text_encoder import SubwordTextEncoder

ESCAPES = list('\\_u;0123456789')


def plain_segments(escaped: str, subtokens: list[str]) -> list[int]:
    """Tensor2Tensor's rule: from the left, the longest piece that is a subtoken."""
    ids = {subtoken: number for number, subtoken in enumerate(subtokens) if subtoken}
    segments = []
    start = 0
    while start < len(escaped):
        end = max(end for end in range(start + 1, len(escaped) + 1) if escaped[start:end] in ids)
        segments.append(ids[escaped[start:end]])
        start = end
    return segments


def assert_segments(subtokens: list[str], words: list[str]) -> None:
    """Encodes words whose letters are all in the alphabet, so that only `_` is appended to them."""
    encoder = SubwordTextEncoder(subtokens)
    for word in words:
        assert encoder.encode(word) == plain_segments(word + '_', subtokens), word


letters = st.sampled_from(['ab', 'abc', 'aé字', '字典文', '𝔞𝔟a']).flatmap(
    lambda letters: st.tuples(
        st.just(letters),
        st.lists(st.text(letters + '_', min_size=1, max_size=6), max_size=40),
        st.lists(st.text(letters, min_size=1, max_size=20), min_size=1, max_size=8),
    )
)


@given(letters)
def test_the_longest_subtoken_is_taken(problem):
    alphabet, subtokens, words = problem
    assert_segments([*subtokens, *alphabet, *ESCAPES], words)


@pytest.mark.parametrize('children', [1, 2, 3, 4, 5, 9, 33, 100, 700, 2_000])
def test_a_node_with_many_children(children):
    codes = np.random.default_rng(children).permutation(20_000)[: 2 * children] + 0x4E00
    present, absent = ([chr(code) for code in half] for half in np.split(codes, 2))
    pairs = ['字' + character for character in present]
    deep = [f'典字{character}_' for character in present]
    subtokens = [*pairs, *deep, '字', '典', *present, *absent, *ESCAPES]
    words = [f'字{a}典字{b}' for a, b in zip(present + absent, absent + present)]
    assert_segments(subtokens, [*words[:500], *(word[2:] for word in words[:500])])


def test_nul_and_the_last_code_point():
    assert_segments(['\0a\0', 'a', '\0', '\U0010ffff', '\U0010ffff\0', *ESCAPES], ['a'])
    encoder = SubwordTextEncoder(['\0\0', '\0', '\U0010ffff\0', '\U0010ffff', *ESCAPES])
    assert encoder.encode('\0\0\0\U0010ffff\U0010ffff\0') == [0, 1, 3, 2, 5]
    assert SubwordTextEncoder(['\U0010ffff', *ESCAPES]).encode('\0') == [1, 5, 4, 2]
