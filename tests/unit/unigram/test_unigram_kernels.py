"""The learner's kernels compute what the plain iteration does, bit for bit."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.bytes import read_varint
from tokcore.unigram import plain_iteration, seeds
from tokcore.unigram.learner import PieceRules, learn_pieces
from tokcore.unigram.scripts import COMMON, INHERITED, script_table
from tokcore.unigram.seeds import seed_pieces
from tokcore.unigram.words import choose_alphabet, count_characters, rank_words

LETTERS = 'aabbcßж日本ー\u0301\u2585\x1f.,’é'
SENTENCES = st.lists(
    st.lists(st.text(st.sampled_from(LETTERS), max_size=9), min_size=1, max_size=6),
    min_size=1,
    max_size=30,
)


def words_of(sentences):
    """Returns the words of sentences, which are lists of words without U+2581."""
    tokens = [
        f'\u2581{word}\0' if number == len(sentence) else f'\u2581{word}\u2581'
        for sentence in sentences
        for number, word in enumerate(sentence, 1)
    ]
    table = TokenTable.from_items(Counter(tokens).items())
    return dataclasses.replace(table, last_word=tokens[-1][:-1].encode())


def in_letters(table, coverage):
    """Returns the words of a table, and their alphabet."""
    alphabet = choose_alphabet(count_characters(table), coverage)
    return alphabet.words_of(table), alphabet


def letters_of(strings):
    """Returns the letters of words or pieces, with a 0 behind each."""
    letters, position = [], 0
    while position < len(strings.letters):
        letter, position = read_varint(strings.letters, position)
        letters.append(letter)
    return letters


def plain_of(words, alphabet):
    """Returns ranked words with both counts, the last word, and the required characters, as strings."""

    def text_of(letters):
        return ''.join(chr(alphabet.code_points[letter]) for letter in letters)

    totals, ending = Counter(), Counter()
    texts = text_of(words.letters).split('\0')
    for word, count, is_last in zip(texts, words.counts.tolist(), words.are_last.tolist()):
        totals[word] += count
        ending[word] += count * is_last
    [ranked] = rank_words(words, len(alphabet.code_points), 1)
    order = text_of(letters_of(ranked)).split('\0')[:-1]
    assert ranked.counts.tolist() == [totals[word] for word in order]
    assert ranked.longest == max(map(len, order))
    plain = {word: (totals[word], ending[word]) for word in order}
    return plain, text_of(words.last), [*text_of(alphabet.required)]


def test_words_are_sorted_by_count_and_bytes_and_rare_characters_make_some_equal():
    sentences = [['ab', 'ab', 'ax'], ['ay', 'ay', 'b'], ['b']]
    words, last, required = plain_of(*in_letters(words_of(sentences), 0.8))
    assert words == {'▁a\u2585': (3, 1), '▁ab': (2, 0), '▁b': (2, 2)}
    assert [*words] == ['▁a\u2585', '▁ab', '▁b']
    assert (last, required) == ('▁b', ['▁', 'a', 'b'])


@given(SENTENCES, st.sampled_from([0.9, 0.9995, 1.0]))
def test_words_are_those_of_dictionaries(sentences, coverage):
    words = words_of(sentences)
    counts = Counter('▁' + word for sentence in sentences for word in sentence)
    ending = Counter('▁' + sentence[-1] for sentence in sentences)
    got, last, required = plain_of(*in_letters(words, coverage))
    expected: dict[str, tuple[int, int]] = {}
    for word in counts:
        kept = ''.join(c if c in required else '\u2585' for c in word)
        before = expected.get(kept, (0, 0))
        expected[kept] = before[0] + counts[word], before[1] + ending[word]
    assert got == expected
    assert [*got] == sorted(got, key=lambda word: (-got[word][0], word.encode()))
    assert last in got


@given(SENTENCES, st.sampled_from([5, 1000]), st.sampled_from([3, 16]), st.booleans())
def test_seeds_are_those_of_the_plain_form(sentences, most, longest, are_many):
    in_order, alphabet = in_letters(words_of(sentences), 1.0)
    words, last, _ = plain_of(in_order, alphabet)
    expected = plain_iteration.seed_model(words, last, most, longest)
    partition = seeds._PARTITION
    seeds._PARTITION = 2 if are_many else partition
    try:
        code_points = alphabet.code_points
        pieces = seed_pieces(in_order, code_points, most, longest, max_workers=2)
    finally:
        seeds._PARTITION = partition
    characters = [chr(code_point) for code_point in code_points.tolist()]
    text = ''.join(characters[letter] for letter in letters_of(pieces))
    assert text.split('\0')[:-1] == [*expected]
    assert pieces.scores.tobytes() == np.array([*expected.values()], np.float32).tobytes()


@settings(max_examples=40, deadline=None)
@given(SENTENCES, st.sampled_from([1, 3, 16]), st.sampled_from([0.3, 0.75]), st.integers(0, 9))
def test_pieces_and_scores_are_those_of_the_plain_form(sentences, num_threads, shrinking, more):
    words = words_of(sentences)
    table, last, required = plain_of(*in_letters(words, 0.99))
    options = {
        'vocab_size': len(required) + 3 + more, 'num_meta_pieces': 3, 'num_threads': num_threads,
        'shrinking_factor': shrinking, 'num_sub_iterations': 1 + more % 2,
        'max_sentencepiece_length': 4 + more,
    }  # fmt: skip
    expected = plain_iteration.learn_plainly(table, last, required, **options)
    rules = PieceRules(character_coverage=0.99, hard_vocab_limit=False, **options)
    reports = []
    learned = learn_pieces(words, rules, 2, lambda *steps: reports.append(steps))
    assert learned == expected
    [total] = {total for _, total in reports}
    assert [done for done, _ in reports] == [*range(len(reports) - 1), total]


def test_sizes_that_the_words_cannot_give_are_refused():
    words = words_of([['ab', 'ab', 'ax'], ['ay', 'ay', 'b'], ['b']])
    with pytest.raises(InputError, match='5 characters and 3 meta pieces are required'):
        learn_pieces(words, PieceRules(vocab_size=7, num_meta_pieces=3))
    with pytest.raises(InputError, match='the words give only'):
        learn_pieces(words, PieceRules(vocab_size=100, num_meta_pieces=3))
    nothing = dataclasses.replace(TokenTable.from_items([]), last_word=b'')
    with pytest.raises(InputError, match='no word'):
        learn_pieces(nothing, PieceRules(vocab_size=9, num_meta_pieces=3))


@pytest.mark.fast
def test_scripts_are_those_of_sentencepiece():
    scripts = script_table()
    assert scripts[ord('1')] == scripts[0x10FFFF] == COMMON
    assert scripts[0x301] == INHERITED
    assert scripts[ord('ー')] == scripts[ord('ひ')] == scripts[ord('漢')] != scripts[ord('a')]
