"""The learner's vocabularies are those of TensorFlow Text, file for file."""

import os
import random

import pytest

from tokcore.counts.token_table import TokenTable
from tokcore.wordpiece.learner import learn_wordpieces
from tokcore.wordpiece.options import WordPieceOptions

CASES = int(os.environ.get('FUZZ_CASES', '400'))
ALPHABETS = ['ab', 'abc#', 'aé中b_', 'a#b', 'abcdefgh', '#a']
SPECIAL = [('[PAD]', '[UNK]'), ('a', '##a', 'b', 'a'), (), ('##ab', 'ab', '#')]


def drawn_table(dice):
    alphabet, longest = dice.choice(ALPHABETS), dice.choice([3, 6, 12])
    words = {}
    for _ in range(dice.randint(1, 40)):
        word = ''.join(dice.choices(alphabet, k=dice.randint(1, longest)))
        words[word] = dice.choice([1, 2, 3, 10, 20, dice.randint(1, 500)])
    return dict(sorted(words.items()))  # the order of ties in a table


@pytest.mark.parametrize('seed', range(4))
def test_any_table(tensorflow_text_learner, seed):
    dice = random.Random(seed)
    for _ in range(CASES // 4):
        words, size = drawn_table(dice), dice.choice([5, 10, 20, 40, 100])
        special, joiner = dice.choice(SPECIAL), dice.choice(['##', '#', '__', 'a', 'ab'])
        low = dice.choice([1, 2, 10])
        high = dice.choice([10, 100, 10_000_000])
        most_words = dice.choice([None, 5, 100])
        longest, characters = dice.choice([50, 5, 3]), dice.choice([1000, 2, 3])
        iterations, slack = dice.randint(1, 4), dice.choice([0.05, 0.0, 0.5])
        expected = tensorflow_text_learner.learn(
            words, size, list(special), upper_thresh=high, lower_thresh=low,
            num_iterations=iterations, max_input_tokens=most_words or -1,
            max_token_length=longest, max_unique_chars=characters, slack_ratio=slack, joiner=joiner,
        )  # fmt: skip
        options = WordPieceOptions(
            vocab_size=size, min_count_range=(low, high), iterations=iterations,
            max_words=most_words, max_learned_word_length=longest, max_characters=characters,
            slack=slack, joiner=joiner, special_tokens=special,
        )  # fmt: skip
        table = TokenTable.from_items(words.items())
        found = learn_wordpieces(table, options, lambda *_: None)
        assert list(found.vocabulary.pieces) == expected, (words, options)
