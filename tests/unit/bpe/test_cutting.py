"""Merges learned from cut words are those of all words, whatever the thresholds."""

import dataclasses
import os
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe import cutting, pair_counting, trainer
from tokcore.bpe.cutting import (
    LocalWords,
    ambiguous_word,
    learn_by_cutting,
    learn_in_rounds,
    reason_against_cutting,
)
from tokcore.bpe.options import BpeRules
from tokcore.bpe.plain_iteration import learn_plainly
from tokcore.bpe.trainer import Learning, first_symbols, learn_merges
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

SEED = int(os.environ.get('FUZZ_SEED', '0'))
CASES = int(os.environ.get('FUZZ_CASES', '300'))

BYTES = BpeRules()
CHARACTERS = BpeRules(byte_level=False)
SUFFIX = BpeRules('largest-pair', byte_level=False, end_of_word='</w>')
ANY_SIZE = 1 << 40


def parts_of(counts, parts):
    """Returns tables in which some tokens are, so that each count is a sum of several."""
    items = [*counts.items()]
    return [TokenTable.from_items(items[part::parts]) for part in range(parts)]


def result(learned):
    return list(learned.entries), list(learned.merges), learned.counts.tolist()


def cut_and_learned(counts, rules, choose, most_cells=ANY_SIZE, parts=1, folder=None):
    """Returns (entries, merges, counts), without a check of the condition."""
    tables = parts_of(counts, parts)
    first = first_symbols(tables, rules)
    learning = Learning(first, rules)
    words = LocalWords((first.words(table) for table in tables), folder)
    learn_in_rounds(words, learning, most_cells, choose_threshold=choose)
    return result(learning.learned())


def drawn_threshold(dice):
    return lambda largest, min_count: dice.randint(min_count, largest)


def halved(largest, min_count):
    return max(min_count, largest // 2)


def test_the_example_of_the_module():
    rounds = []
    table = TokenTable.from_items([('lower', 2), ('low', 5)])
    rules = dataclasses.replace(CHARACTERS, min_count=2)
    learned = learn_by_cutting(lambda: [table], rules, ANY_SIZE, on_round=rounds.append)
    assert [left + right for left, right in learned.merges] == ['lo', 'low', 'er', 'lower']
    assert learned.counts.tolist() == [7, 7, 2, 2]
    assert sum(round_.merges for round_ in rounds) == 4
    counts = cut_and_learned({'lower': 2, 'low': 5}, rules, lambda largest, _: min(largest, 4))
    assert counts == result(learned)


words = st.one_of(
    st.text('ab', max_size=20), st.text('abcdé中', max_size=8), st.text('Ġa \U0001f600', max_size=6)
)
cases = {
    'merges': st.sampled_from([1, 3, 20, 1000]),
    'min_count': st.sampled_from([0, 1, 2, 7]),
    'max_piece_length': st.sampled_from([None, None, 0, 1, 2, 3, 5, 9]),
    'special_tokens': st.lists(
        st.text('abĠ<é', min_size=1, max_size=3), max_size=3, unique=True
    ).map(tuple),
}


LIMITED = dataclasses.replace(CHARACTERS, limit_alphabet=3)
TOTAL = dataclasses.replace(SUFFIX, total_symbols=True)
RULES = {'bytes': BYTES, 'plain': CHARACTERS, 'suffix': SUFFIX, 'limited': LIMITED, 'total': TOTAL}


@pytest.mark.parametrize('rules', RULES.values(), ids=RULES)
@given(
    st.dictionaries(words, st.integers(0, 12), max_size=20),
    st.fixed_dictionaries(cases),
    st.sampled_from([1, 12, 40, ANY_SIZE]),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
@example({}, {}, 1, 1, random.Random(0))
@example({'': 3, 'a': 7, 'b': 1, 'ab': 0}, {'merges': 9}, 1, 1, random.Random(0))
def test_any_table_at_any_thresholds(rules, counts, case, most_cells, parts, dice):
    rules = dataclasses.replace(rules, **case)
    expected = learn_plainly(counts.items(), rules)
    assert result(learn_merges(TokenTable.from_items(counts.items()), rules)) == expected
    assert cut_and_learned(counts, rules, drawn_threshold(dice), most_cells, parts) == expected


@pytest.fixture
def small_arrays(monkeypatch):
    """Arrays for small tables of ASCII: those for any characters and sizes take four times as long."""
    monkeypatch.setattr(trainer, 'CODE_POINTS', 1 << 7)
    monkeypatch.setattr(trainer, '_FIRST_PAIRS', 1 << 8)
    monkeypatch.setattr(trainer, '_FIRST_OCCURRENCES', 1 << 8)
    monkeypatch.setattr(pair_counting, '_FEW_SYMBOLS', 1 << 9)
    monkeypatch.setattr(cutting, '_PAIRS_AT_ONCE', 1 << 9)


def check_small_table(seed):
    """Learns from a table of two to four letters with repeats, so that all counts tie."""
    dice = random.Random(seed)
    letters = 'abcd'[: dice.randint(2, 4)]
    longest = dice.choice([3, 6, 12, 40])
    counts = {
        ''.join(dice.choices(letters, k=dice.randint(1, longest))): dice.randint(0, 4)
        for _ in range(dice.randint(1, 12))
    }
    rules = dataclasses.replace(
        dice.choice([CHARACTERS, SUFFIX]),
        merges=dice.choice([2, 10, 200]),
        min_count=dice.choice([1, 1, 2]),
        max_piece_length=dice.choice([None, None, 4]),
    )
    most_cells = dice.choice([1, 20, ANY_SIZE])
    expected = result(learn_merges(TokenTable.from_items(counts.items()), rules))
    learned = cut_and_learned(counts, rules, drawn_threshold(dice), most_cells, dice.randint(1, 3))
    assert learned == expected, (seed, counts, rules)
    return counts, rules, expected


def test_small_tables(small_arrays):
    for seed in range(SEED, SEED + CASES):
        counts, rules, expected = check_small_table(seed)
        assert expected == learn_plainly(counts.items(), rules), (seed, counts, rules)


def zipf_counts():
    dice = random.Random(8)
    syllables = ['ba', 'con', 'de', 'er', '中', 'ing', 'aa', 'aaa', 'o']
    return {
        ''.join(dice.choices(syllables, k=dice.randint(1, 6))): 1 + 5000 // (1 + rank)
        for rank in range(800)
    }


@pytest.mark.parametrize('rules', [BYTES, SUFFIX], ids=['bytes', 'suffix'])
def test_words_in_files_and_fragments_within_a_limit(tmp_path, rules):
    counts, rules = zipf_counts(), dataclasses.replace(rules, merges=600)
    tables = parts_of(counts, 4)
    expected = result(learn_merges(TokenTable.from_items(counts.items()), rules))
    rounds = []
    learned = learn_by_cutting(lambda: tables, rules, 2000, tmp_path, on_round=rounds.append)
    assert result(learned) == expected
    assert len(rounds) > 2 and max(round_.cells for round_ in rounds[:-1]) <= 2000
    assert [round_.threshold for round_ in rounds] == sorted(
        (round_.threshold for round_ in rounds), reverse=True
    )
    assert len([*tmp_path.iterdir()]) == 4


def test_a_run_that_has_merges_goes_on_with_them():
    counts, rules = zipf_counts(), dataclasses.replace(BYTES, merges=400)
    table = TokenTable.from_items(counts.items())
    first = first_symbols([table], rules)
    begun = Learning(first, dataclasses.replace(rules, merges=150))
    learn_in_rounds(LocalWords([first.words(table)]), begun, ANY_SIZE)
    learning = Learning(first, rules)
    learning.resume(begun.pairs, begun.counts)
    assert learning.strings == begun.strings and learning.units.tolist() == begun.units.tolist()
    learn_in_rounds(LocalWords([first.words(table)]), learning, ANY_SIZE)
    assert result(learning.learned()) == result(learn_merges(table, rules))


def test_words_longer_than_what_is_counted_at_once(monkeypatch):
    monkeypatch.setattr(cutting, '_PAIRS_AT_ONCE', 8)
    dice = random.Random(2)
    counts = {''.join(dice.choices('abcd', k=size)): size for size in (1, 3, 50, 200, 1000)}
    rules = dataclasses.replace(CHARACTERS, merges=300)
    expected = result(learn_merges(TokenTable.from_items(counts.items()), rules))
    assert cut_and_learned(counts, rules, halved) == expected


def test_counts_above_32_bits_and_a_sum_that_is_too_large():
    counts = {'abab': 1 << 60, 'ab': 3, 'cab': 1 << 33}
    rules = dataclasses.replace(CHARACTERS, merges=9)
    expected = learn_plainly(counts.items(), rules)
    assert cut_and_learned(counts, rules, halved) == expected
    assert expected[2][0] == (1 << 61) + 3 + (1 << 33)
    with pytest.raises(OverflowError, match='a pair of symbols occurs more than 2\\^63'):
        cut_and_learned({'ab': (1 << 63) - 1, 'abc': 1}, rules, halved)


def test_a_suffix_inside_a_word_gives_a_string_two_histories():
    # Within the word `b_` is two symbols at first, at its end it is one. Once `b _` is merged, `b_ b_`
    # occurs twice and comes before `a cd_`; but at the start `_ b_` occurs once, and 2 cuts it.
    rules = BpeRules('largest-pair', byte_level=False, end_of_word='_')
    counts = {'b_b_b': 1, 'acd': 2}
    expected = learn_plainly(counts.items(), rules)
    assert result(learn_merges(TokenTable.from_items(counts.items()), rules)) == expected
    assert cut_and_learned(counts, rules, lambda largest, _: min(largest, 2)) != expected
    table = TokenTable.from_items(counts.items())
    assert ambiguous_word(table, rules) == 'b_b_b'
    with pytest.raises(InputError, match="the token 'b_b_b' has '_' inside"):
        learn_by_cutting(lambda: [table], rules, ANY_SIZE)


@pytest.mark.parametrize(
    ('word', 'suffix', 'expected'),
    [
        ('a</w>b', '</w>', True),
        ('a</w>', '</w>', True),
        ('a</w', '</w>', False),
        ('a', '</w>', False),
        ('aa', 'aa', True),  # the suffix overlaps itself
        ('a_', '', False),
    ],
)
def test_words_with_the_suffix_before_their_end(word, suffix, expected):
    rules = BpeRules(byte_level=False, end_of_word=suffix)
    table = TokenTable.from_items([('x', 1), (word, 1), ('y', 1)])
    assert ambiguous_word(table, rules) == (word if expected else None)


def test_ties_by_first_occurrence_need_the_order_of_words():
    rules = BpeRules('first', byte_level=False)
    assert 'have no order' in reason_against_cutting(rules)
    with pytest.raises(InputError):
        learn_by_cutting(lambda: [TokenTable.from_items([('bb', 1)])], rules, ANY_SIZE)
    # A limited alphabet may put the suffix inside words.
    assert '--limit-alphabet' in reason_against_cutting(
        dataclasses.replace(SUFFIX, limit_alphabet=3)
    )
    assert reason_against_cutting(LIMITED) is None


def test_no_string_is_made_by_two_pairs(monkeypatch, small_arrays):
    # The trainer counts all pairs again when a pair makes a string that is a symbol already.
    recounted = []
    count = trainer.Trainer._list_pairs

    def recorded(self, lower_threshold):
        recounted.append(not lower_threshold)
        return count(self, lower_threshold)

    monkeypatch.setattr(trainer.Trainer, '_list_pairs', recorded)
    for seed in range(200):
        check_small_table(seed)
    assert recounted and not any(recounted)
