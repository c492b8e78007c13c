"""The learner of pieces against the plain words of its rules, and its searches for a size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.wordpiece.learner import PieceLearner, learn_wordpieces
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.plain_iteration import learn_plainly

WORDS = st.dictionaries(
    st.text('ab#é字', min_size=1, max_size=9), st.integers(1, 60), min_size=1, max_size=25
)


def learned(words, **options):
    table = TokenTable.from_items(words.items())
    return learn_wordpieces(table, WordPieceOptions(**options), lambda *_: None).vocabulary


@given(WORDS, st.integers(1, 80), st.integers(1, 4), st.sampled_from(['##', '#', '_', 'a']))
def test_pieces_are_those_of_the_rule(words, min_count, iterations, joiner):
    options = WordPieceOptions(
        vocab_size=1,
        iterations=iterations,
        joiner=joiner,
        special_tokens=('[X]',),
    )
    learner = PieceLearner(TokenTable.from_items(words.items()), options)
    assert learner.build(min_count) == learn_plainly(
        words, min_count, iterations=iterations, joiner=joiner, special_tokens=('[X]',)
    )  # fmt: skip


def test_sizes_are_searched_for_in_three_ways():
    words = {f'{first}{second}{number}': 40 - number for first in 'abc' for second in 'xyz'
             for number in range(10)}  # fmt: skip
    options = {'vocab_size': 110, 'min_count_range': (1, 1000)}
    sizes = {
        search: len(learned(words, search=search, **options).pieces)
        for search in ('tensorflow-text', 'closest', 'at-most')
    }
    assert sizes['at-most'] <= 110
    assert abs(sizes['closest'] - 110) <= abs(sizes['at-most'] - 110)
    with pytest.raises(InputError, match='no vocabulary of at most 9 pieces was found'):
        learned(words, search='at-most', vocab_size=9)
    with pytest.raises(InputError, match='no word to learn from'):
        learned({}, vocab_size=9)


def test_what_is_left_out_gives_no_pieces():
    words = {'[MASK]': 50, 'aa': 20, 'b' * 6: 30, 'ac': 10}
    options = {'vocab_size': 20, 'min_count_range': (1, 100), 'special_tokens': ('[MASK]',)}
    pieces = learned(words, max_learned_word_length=5, max_characters=1, **options).pieces
    assert pieces == ('[MASK]', 'a', 'aa', '##a')
    assert learned(words, max_words=1, **options).pieces[:2] == ('[MASK]', 'b')


def test_endings_are_counted_up_to_the_largest_integer():
    largest = {'walking': 2**62, 'talking': 2**62 - 1, 'k': 2**63 - 1}
    learner = PieceLearner(
        TokenTable.from_items(largest.items()), WordPieceOptions(vocab_size=30, iterations=1)
    )
    assert '##alking' in learner.build(2**63 - 1)
    with pytest.raises(InputError, match=r"the ending 'g' occurs more than 2\^63 - 1 times"):
        learned({**largest, 'king': 1}, vocab_size=30)
