"""Merges learned in compiled steps are those of counting all pairs again at each."""

import dataclasses
import itertools
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe import pair_counting, trainer
from tokcore.bpe.options import BpeRules
from tokcore.bpe.plain_iteration import learn_plainly
from tokcore.bpe.trainer import learn_merges
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError

SMALLEST = BpeRules()
CHARACTERS = BpeRules(byte_level=False)
LARGEST = BpeRules('largest-pair', byte_level=False, end_of_word='</w>')
FIRST = BpeRules('first', byte_level=False)

words = st.one_of(
    st.text('ab', max_size=20),
    st.text('abcdé中', max_size=8),
    st.text('a</w>b', min_size=1, max_size=12),
    st.text('Ġa \U0001f600', max_size=6),
)
tables = st.dictionaries(words, st.integers(0, 12), max_size=20)
limits = {
    'min_count': st.sampled_from([0, 1, 2, 7]),
    'max_piece_length': st.sampled_from([None, None, 0, 1, 2, 3, 5, 9]),
    'special_tokens': st.lists(
        st.text('abĠ<é', min_size=1, max_size=3), max_size=3, unique=True
    ).map(tuple),
}


def learned(counts, rules, in_order=True):
    table = dataclasses.replace(TokenTable.from_items(counts.items()), is_ordered=in_order)
    found = learn_merges(table, rules)
    return list(found.entries), list(found.merges), found.counts.tolist()


def test_the_example_of_the_textbook():
    counts = {'fast_': 4, 'faster_': 3, 'tall_': 5, 'taller_': 4}
    table = dataclasses.replace(TokenTable.from_items(counts.items()), is_ordered=True)
    found = learn_merges(table, dataclasses.replace(FIRST, merges=10))
    made = ['ta', 'tal', 'tall', 'fa', 'fas', 'fast', 'er', 'er_', 'tall_', 'fast_']
    assert [left + right for left, right in found.merges] == made
    assert found.counts.tolist() == [9, 9, 9, 7, 7, 7, 7, 7, 5, 4]
    assert found.characters == '_aeflrst'
    assert found.entries == (*'_aeflrst', *made)


@pytest.mark.parametrize(
    'rules', [SMALLEST, CHARACTERS, LARGEST, FIRST], ids=lambda each: each.ties
)
@given(tables, st.sampled_from([1, 3, 20, 1000]), st.fixed_dictionaries(limits))
@example({}, 9, {})
@example({'': 3, 'a': 7, 'b': 1, 'ab': 0}, 9, {})
@example({'a</w>b': 5, 'a': 1, 'ba': 4, 'ba</w>a': 9, 'b</w></w>': 3}, 60, {})
def test_any_table(rules, counts, merges, asked):
    rules = dataclasses.replace(rules, merges=merges, **asked)
    assert learned(counts, rules) == learn_plainly(counts.items(), rules)


@pytest.mark.parametrize('few', [0, 1 << 10])
@pytest.mark.parametrize('fall', [1, 2, 1 << 40])
@pytest.mark.parametrize('rules', [SMALLEST, LARGEST, FIRST], ids=lambda each: each.ties)
def test_thresholds_and_growing_change_nothing(monkeypatch, rules, fall, few):
    monkeypatch.setattr(trainer, '_THRESHOLD_DIVISOR', fall)
    for room in ('_FIRST_SYMBOLS', '_FIRST_PAIRS', '_FIRST_OCCURRENCES'):
        monkeypatch.setattr(trainer, room, 1)
    monkeypatch.setattr(pair_counting, '_FEW_SYMBOLS', few)
    monkeypatch.setattr(trainer, '_PAUSE', 3)
    dice = random.Random(fall)
    syllables = ['ba', 'con', 'de', 'er', '中', 'ing', 'aa', 'aaa']
    counts = {
        ''.join(dice.choices(syllables, k=dice.randint(1, 6))): 1 + 3000 // (1 + rank)
        for rank in range(300)
    }
    rules = dataclasses.replace(rules, merges=500)
    assert learned(counts, rules) == learn_plainly(counts.items(), rules)


COUNTS = [0, 1, 2, 32_767, 32_768, 32_769, 65_535, 65_536, 2**31 - 1, 2**31, 2**32, 2**40]


@pytest.mark.parametrize('few', [0, 1 << 10], ids=['sorted', 'table'])
@pytest.mark.parametrize('cells', [np.uint16, np.uint32], ids=['narrow', 'wide'])
@pytest.mark.parametrize('rules', [SMALLEST, LARGEST, FIRST], ids=lambda each: each.ties)
@given(st.dictionaries(words, st.sampled_from(COUNTS), max_size=12), st.sampled_from([1, 20]))
def test_any_counts_in_cells_of_either_size(rules, cells, few, counts, merges):
    rules = dataclasses.replace(rules, merges=merges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, '_CELLS', (cells,))
        patch.setattr(pair_counting, '_FEW_SYMBOLS', few)
        assert learned(counts, rules) == learn_plainly(counts.items(), rules)


def test_cells_are_wide_for_many_symbols_and_for_many_frequent_words():
    def cells_of(counts, size):
        rules = dataclasses.replace(SMALLEST, vocab_size=size)
        table = TokenTable.from_items(counts.items())
        learning = trainer.Learning(trainer.first_symbols([table], rules), rules)
        learner = trainer.Trainer(learning.first.words(table), learning, 1, 1 << 40)
        return learner._words.cells.dtype

    letters = 'abcdefghijklmnopqrst'
    frequent = [''.join(each) for each in itertools.product(letters, repeat=4)]
    assert cells_of(dict.fromkeys(frequent, 32_767), 65_532) == np.uint16
    assert cells_of(dict.fromkeys(frequent, 32_767), 65_533) == np.uint32
    assert cells_of(dict.fromkeys(frequent[:32_768], 32_768), 1000) == np.uint16
    assert cells_of(dict.fromkeys(frequent[:32_769], 32_768), 1000) == np.uint32


@pytest.mark.parametrize('few', [0, 1 << 10], ids=['sorted', 'table'])
def test_only_a_pair_that_may_be_merged_can_occur_too_often(monkeypatch, few):
    monkeypatch.setattr(pair_counting, '_FEW_SYMBOLS', few)
    counts = {'abab': 2**62, 'cd': 5}
    with pytest.raises(OverflowError, match=r"the pair 'a' 'b' occurs more than 2\^63 - 1 times"):
        learned(counts, SMALLEST)
    rules = dataclasses.replace(SMALLEST, max_piece_length=3)
    first = trainer.first_symbols([], rules)
    a, b = (first.entries.index(letter) for letter in 'ab')
    learning = trainer.Learning(first, rules)
    learning.resume(np.array([a << 32 | b]), np.array([1]))
    data = np.frombuffer(b'\x80\x02' * 3, np.uint8)  # three times `ab`, the symbol 256
    learning.merge_words(TokenTable(data, np.array([0, 6]), np.array([2**62])), 1)
    assert len(learning.pairs) == 1


def test_more_symbols_than_cells_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr(trainer, 'MOST_CELLS', 10)
    learned({'abc': 1, 'ab': 2, '中': 3}, CHARACTERS)  # six symbols, four borders
    with pytest.raises(InputError, match='have 11 symbols and borders'):
        learned({'abc': 1, 'ab': 2, '中中': 3}, CHARACTERS)


def test_stale_occurrences_are_removed_to_make_room(monkeypatch):
    monkeypatch.setattr(trainer, '_THRESHOLD_DIVISOR', 1 << 40)
    monkeypatch.setattr(trainer, '_FIRST_OCCURRENCES', 1)
    grow, fits = trainer.Trainer._grow_occurrences, []

    def recorded_grow(self):
        # Without stale occurrences the longest list would not fit twice.
        longest = (self._pairs.ends - self._pairs.starts).max()
        used = self._state[trainer.kernels.OCCURRENCES]
        fits.append(used + 2 * longest <= len(self._pairs.occurrences))
        grow(self)

    monkeypatch.setattr(trainer.Trainer, '_grow_occurrences', recorded_grow)
    dice = random.Random(4)
    counts = {''.join(dice.choices('abcd', k=40)): dice.randint(1, 9) for _ in range(60)}
    rules = dataclasses.replace(SMALLEST, merges=700)
    monkeypatch.setattr(trainer, '_occurrence_room', lambda occurrences, cells: occurrences)
    assert learned(counts, rules) == learn_plainly(counts.items(), rules)
    assert any(fits) and not all(fits)


@given(tables, st.integers(1, 7), st.integers(1, 40))
def test_characters_beyond_the_limit_of_the_alphabet_are_taken_out(counts, limit, size):
    rules = dataclasses.replace(CHARACTERS, limit_alphabet=limit, vocab_size=size)
    assert learned(counts, rules) == learn_plainly(counts.items(), rules)


def test_which_characters_stay_at_the_limit():
    rules = dataclasses.replace(CHARACTERS, limit_alphabet=2, merges=5)
    assert learned({'bcda': 2}, rules)[:2] == (['a', 'b', 'ba'], [('b', 'a')])
    rules = dataclasses.replace(CHARACTERS, limit_alphabet=1, merges=5, special_tokens=('c',))
    assert learned({'abca': 2}, rules)[0] == ['c', 'a', 'ca', 'aca']


def test_a_vocabulary_of_a_size():
    counts = {'abab': 3, 'abc': 2}
    rules = dataclasses.replace(SMALLEST, vocab_size=258, special_tokens=('ab',))
    found = learn_merges(TokenTable.from_items(counts.items()), rules)
    # The special token is what the first merge makes, which so takes no id.
    assert found.merges == (('a', 'b'), ('ab', 'ab'))
    assert found.entries[0] == 'ab' and found.entries[257:] == ('abab',)
    assert (found.smallest_size, found.special_tokens) == (257, ('ab',))


@pytest.mark.parametrize('size', [1, 256, 257])
def test_a_size_below_the_alphabet_gives_the_alphabet(size):
    rules = dataclasses.replace(SMALLEST, vocab_size=size, special_tokens=('<pad>',))
    entries, merges, _ = learned({'aaaa': 5}, rules)
    assert (len(entries), merges) == (257, [])


def test_characters_count_as_symbols():
    counts = {'abab': 3, 'b': 9, 'abc': 5}
    # Within words a and b, at their ends b and c.
    for merges, left in ((3, 0), (5, 1), (6, 2)):
        rules = dataclasses.replace(LARGEST, merges=merges, total_symbols=True)
        assert len(learned(counts, rules)[1]) == left
        assert learned(counts, rules) == learn_plainly(counts.items(), rules)


def test_the_end_of_words_is_text_where_strings_are_compared():
    # The textbook of it: `e</w>` is larger than `eb`, since `<` is not a letter and sorts below them.
    rules = dataclasses.replace(LARGEST, merges=1)
    assert learned({'de': 1, 'deb': 1}, rules)[1] == [('e', 'b</w>')]
    assert learned({'d~': 1, 'de': 1}, rules)[1] == [('d', '~</w>')]


def test_the_order_of_words_is_theirs_or_by_count_then_token():
    counts = {'yz': 2, 'ab': 1, 'xw': 2, 'cd': 2}
    rules = dataclasses.replace(FIRST, merges=4)
    in_order = [left + right for left, right in learned(counts, rules, in_order=True)[1]]
    assert in_order == ['yz', 'xw', 'cd', 'ab']
    by_count = [left + right for left, right in learned(counts, rules, in_order=False)[1]]
    assert by_count == ['cd', 'xw', 'yz', 'ab']


@pytest.mark.parametrize('rules', [SMALLEST, LARGEST], ids=lambda each: each.ties)
@given(tables, st.randoms(use_true_random=False))
def test_other_rules_know_no_order(rules, counts, dice):
    items = list(counts.items())
    dice.shuffle(items)
    rules = dataclasses.replace(rules, merges=50)
    assert learned(dict(items), rules) == learned(counts, rules)


def test_counts_up_to_the_largest_are_exact():
    most = (1 << 63) - 1
    assert (
        learned({'ab': most, 'bc': most}, dataclasses.replace(SMALLEST, merges=2))[2] == [most] * 2
    )
    with pytest.raises(OverflowError, match=r"the pair 'Ġ' 'b' occurs more than 2\^63 - 1 times"):
        learned({' b': most, 'a b': 1}, dataclasses.replace(SMALLEST, merges=2))
    with pytest.raises(OverflowError, match="'b</w>'"):
        learned({'ab': most, 'cab': 1}, dataclasses.replace(LARGEST, merges=2))


def test_long_tokens_take_time_in_proportion():
    # Quadratic time would be hours: each merge may look only at the places of its pair.
    dice = random.Random(1)
    token = ''.join(dice.choices('abcdefgh', k=400_000))
    found = learn_merges(
        TokenTable.from_items([(token, 1)]), dataclasses.replace(SMALLEST, merges=2000)
    )
    assert len(found.merges) == 2000
    assert np.all(np.diff(found.counts) <= 0)
    run = learn_merges(TokenTable.from_items([('a' * (1 << 18), 1)]), BpeRules(merges=99))
    assert [len(left + right) for left, right in run.merges] == [2 << each for each in range(18)]


def test_progress_is_reported(monkeypatch):
    monkeypatch.setattr(trainer, '_PAUSE', 4)
    reported = []
    counts = TokenTable.from_items([('abcdefghijklmn', 3)])
    learn_merges(counts, dataclasses.replace(SMALLEST, merges=10), reported.append)
    assert reported == [4, 8, 10]


def test_words_of_bytes_have_no_end():
    with pytest.raises(ValueError, match='no end of word'):
        learned({'a': 1}, BpeRules(end_of_word='_', merges=1))
