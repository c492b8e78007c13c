"""The tokenizer against Tensor2Tensor's own."""

import random
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokcore.text.t2t import detokenize, tokenize
from tokcore.text.unicode import alphanumeric_table


def test_letters_and_numbers_are_the_same_characters(t2t_tokenizer):
    theirs = np.zeros(0x110000, np.uint8)
    theirs[[ord(character) for character in t2t_tokenizer._ALPHANUMERIC_CHAR_SET]] = 1
    assert np.array_equal(alphanumeric_table(), theirs)


@given(text=st.one_of(st.text(), st.text(st.sampled_from(' ab1_,.é字\u0301²\u3000\n\t😀'))))
def test_any_text_gives_the_same_tokens(t2t_tokenizer, text):
    tokens = t2t_tokenizer.encode(text)
    assert tokenize(text) == tokens
    assert detokenize(tokens) == t2t_tokenizer.decode(tokens)


@given(tokens=st.lists(st.text(min_size=1, max_size=3)))
def test_any_tokens_are_joined_to_the_same_text(t2t_tokenizer, tokens):
    assert detokenize(tokens) == t2t_tokenizer.decode(tokens)


def test_random_strings_over_all_of_unicode(t2t_tokenizer):
    generator = random.Random(11)
    for _ in range(2_000):
        top = generator.choice([0x80, 0x250, 0x3000, 0x10000, sys.maxunicode + 1])
        text = ''.join(
            generator.choice([' ', chr(generator.randrange(top))])
            for _ in range(generator.randrange(40))
        )
        assert tokenize(text) == t2t_tokenizer.encode(text)
