"""The subword learner in memory, against the plain iteration; its subtokens in order."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.learning import pruned_trie, ranked_text, suffix_trie
from tokcore.learning.ranked_text import escape_tokens
from tokcore.subword import learner as subword_learner
from tokcore.subword.learner import MemoryLearner, Subtokens

CHARACTERS = 'ab' * 6 + 'cd_\\u;019 \t\n\ré中ा\U0001f600\U0010ffff\ud7ff\x00'
words = st.one_of(
    st.text(st.sampled_from(CHARACTERS), max_size=9),
    st.text(st.sampled_from('ab'), max_size=14),
    st.builds(lambda piece, times: piece * times, st.text(st.sampled_from('abc'), max_size=3),
              st.integers(1, 30)),
)  # fmt: skip
tables = st.dictionaries(words, st.integers(0, 30), max_size=14)
limits = st.sampled_from([1, 2, 3, 4, 5, 8, 200, None])

few_words = st.one_of(
    st.text(st.sampled_from('abc_\\\\é中\U0001f600'), max_size=10),
    st.builds(lambda letter, times: letter * times, st.sampled_from('ab'), st.integers(1, 60)),
)


def escape(token):
    return token.replace('\\', '\\\\').replace('_', '\\u').replace('\n', '\\10;') + '_'


def plain_vocabulary(counts, min_count, limit, reserved):
    """The published algorithm: quadratic in a token's length, one dictionary entry a substring."""
    reserved = ['<pad>', '<EOS>', *reserved]
    alphabet = set('\\_u;0123456789').union(*counts, *reserved)

    vocabulary = list(alphabet)
    for _ in range(4):
        known, longest = set(vocabulary), max(map(len, vocabulary))
        weights = Counter()
        for token, count in counts.items():
            rest = escape(token)
            while rest:
                candidates = len(rest) if limit is None else min(len(rest), limit - 1)
                for length in range(1, candidates + 1):
                    weights[rest[:length]] += count
                segment = next(
                    n for n in range(min(len(rest), longest), 0, -1) if rest[:n] in known
                )
                rest = rest[segment:]
        selected = []
        for string in sorted(weights, key=len, reverse=True):
            count = weights[string]
            if len(string) > 1 and count >= max(min_count, 1):
                selected.append((count, string))
                for length in range(1, len(string)):
                    weights[string[:length]] -= count
        selected += [(weights[character], character) for character in alphabet]
        vocabulary = [escape(token) for token in reserved]
        vocabulary += [string for _, string in sorted(selected, reverse=True)]
    return tuple(vocabulary)


@st.composite
def problems(draw):
    """A table, a limit, and in a third of the examples reserved tokens of the table's own words."""
    counts = draw(tables)
    reserved = []
    if counts and draw(st.integers(0, 2)) == 0:
        limit = draw(st.sampled_from([1, 2, 3, 4, 5]))
        beyond = sorted(word for word in counts if len(word) >= limit) or sorted(counts)
        reserved = draw(st.lists(st.sampled_from(beyond), min_size=1, max_size=3))
    else:
        limit = draw(limits)
    return counts, limit, reserved


@given(problems(), st.lists(st.integers(-1, 40), min_size=1, max_size=4))
@example(({}, 200, []), [1])
@example(({'': 3}, None, []), [1])
@example(({'xtend': 10, 'extend': 10}, 200, ['xtend']), [15])
@example(({'.\n': 4, '\n': 3}, 200, ['a\nb']), [3])
@example(({'aaaa': 5, 'aaa': 5}, 3, ['aaaa']), [2])
@example(({'the': 3, 'cat': 3, 'foo': 3}, 200, ['the', 'foo', 'the']), [1, 2, 5])
def test_equals_the_quadratic_learner(problem, min_counts):
    counts, limit, reserved = problem
    learner = MemoryLearner(
        TokenTable.from_items(counts.items()), max_subtoken_length=limit, reserved_tokens=reserved
    )
    for min_count in min_counts:
        expected = plain_vocabulary(counts, min_count, limit, reserved)
        assert learner.build(min_count) == expected
        assert len(expected) >= learner.smallest_size


@given(problems())
def test_largest_count_is_the_largest_min_count_that_selects_a_string(problem):
    counts, limit, reserved = problem
    learner = MemoryLearner(
        TokenTable.from_items(counts.items()), max_subtoken_length=limit, reserved_tokens=reserved
    )
    substrings = Counter()
    longest = limit - 1 if limit else 1000
    for token, count in counts.items():
        escaped = escape(token)
        for begin in range(len(escaped)):
            for end in range(begin + 2, min(begin + longest, len(escaped)) + 1):
                substrings[escaped[begin:end]] += count
    assert learner.largest_count == max(substrings.values(), default=0)
    assert len(learner.build(learner.largest_count + 1)) == learner.smallest_size


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_the_table_does_not_matter(counts, random):
    shuffled = list(counts.items())
    random.shuffle(shuffled)
    one = MemoryLearner(TokenTable.from_items(counts.items()))
    other = MemoryLearner(TokenTable.from_items(shuffled))
    assert one.build(3) == other.build(3)


@given(tables, st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_earlier_builds_do_not_matter(counts, min_counts):
    table = TokenTable.from_items(counts.items())
    learner = MemoryLearner(table)
    for min_count in min_counts:
        assert learner.build(min_count) == MemoryLearner(table).build(min_count)


@pytest.mark.parametrize('limit', [None, 200, 300, 5000])
def test_a_word_of_many_equal_characters_takes_no_quadratic_time_or_memory(limit):
    # 20,000 suffixes with common prefixes of up to 20,000 characters: 1.6 GB if written out.
    counts = {'a' * 20_000: 3, 'b' + 'a' * 20_000: 2, 'ab' * 5_000: 2, 'a' * 700: 40}
    subtokens = MemoryLearner(
        TokenTable.from_items(counts.items()), max_subtoken_length=limit
    ).build(2)
    longest = 20_002 if limit is None else limit - 1
    assert max(map(len, subtokens)) == longest
    assert set(''.join(subtokens)) == set('\\_u;0123456789ab<pad>EOS')


@pytest.mark.parametrize('limit', [None, 261, 300])
def test_long_words_equal_the_quadratic_learner(limit):
    counts = {'a' * 301: 3, 'b' + 'a' * 298: 2, 'a' * 259 + 'c': 4}
    counts |= {'ab' * 160: 2, 'c' + 'ab' * 150: 5}
    learner = MemoryLearner(TokenTable.from_items(counts.items()), max_subtoken_length=limit)
    for min_count in (2, 3, 7):
        assert learner.build(min_count) == plain_vocabulary(counts, min_count, limit, [])


@pytest.mark.slow  # only text of gigabytes has such positions, and their kernels take long to compile
def test_positions_of_64_bits_and_ranks_of_32_give_the_same(monkeypatch):
    counts = {'banana': 5, 'ananas': 4, 'bandana': 3, 'a' * 300: 2}
    table = TokenTable.from_items(counts.items())
    narrow = MemoryLearner(table, max_subtoken_length=None, reserved_tokens=['bandana'])
    monkeypatch.setattr(pruned_trie, 'WIDE', 0)
    monkeypatch.setattr(suffix_trie, 'WIDE', 0)
    monkeypatch.setattr(ranked_text, '_NARROW', 0)
    for steps in (2000, 0):
        monkeypatch.setattr(subword_learner, '_MAX_STEPS', steps)
        wide = MemoryLearner(table, max_subtoken_length=None, reserved_tokens=['bandana'])
        for min_count in (5, 2, 1):
            assert wide.build(min_count) == narrow.build(min_count)


@given(problems(), st.lists(st.integers(-1, 40), min_size=1, max_size=4))
def test_a_full_trie_gives_the_same(problem, min_counts):
    counts, limit, reserved = problem
    table = TokenTable.from_items(counts.items())
    options = {'max_subtoken_length': limit, 'reserved_tokens': reserved}
    pruned = MemoryLearner(table, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subword_learner, '_MAX_STEPS', 0)
        full = MemoryLearner(table, **options)
    assert full.largest_count == pruned.largest_count
    for min_count in min_counts:
        assert full.build(min_count) == pruned.build(min_count)


def test_repeats_longer_than_the_bound_of_next_weights():
    counts = {'-' * 70_000: 3, '-' * 66_000 + '+': 2, '=' * 65_535: 2, '=' * 65_534: 3}
    table = TokenTable.from_items(counts.items())
    subtokens = MemoryLearner(table, max_subtoken_length=65_600).build(2)
    assert max(map(len, subtokens)) == 65_599


@pytest.mark.parametrize(
    'data', [b'\x80', b'\xc3', b'\xe4\xb8', b'\xed\xa0\x80', b'\xf5\x80\x80\x80', b'\xc1\x81']
)
def test_a_token_that_is_not_utf8_is_refused(data):
    table = TokenTable(
        np.frombuffer(b'ok' + data, np.uint8), np.array([0, 2, 2 + len(data)]), np.array([1, 1])
    )
    with pytest.raises(ValueError, match='token 1 of the table is not valid UTF-8'):
        MemoryLearner(table)


def test_counts_up_to_the_largest_integer_are_summed_exactly():
    # Two escaped characters each: 2^62 - 1 times 2 is the largest sum that fits.
    learner = MemoryLearner(TokenTable.from_items([('a', 2**62 - 1)]))
    assert learner.largest_count == 2**62 - 1
    assert 'a_' in learner.build(2**62 - 1)
    assert 'a_' not in learner.build(2**62)
    assert 'a_' not in learner.build(2**70)


def test_sums_past_the_largest_integer_and_a_limit_below_one_are_refused():
    with pytest.raises(OverflowError, match='2\\^63'):
        MemoryLearner(TokenTable.from_items([('a', 2**62)]))
    with pytest.raises(OverflowError, match='2\\^63'):
        MemoryLearner(TokenTable.from_items([('a', 2**61), ('b', 2**61), ('c', 1)]))
    with pytest.raises(ValueError, match='max_subtoken_length is 0'):
        MemoryLearner(TokenTable.from_items([('a', 1)]), max_subtoken_length=0)


@st.composite
def selected_strings(draw):
    """A text, and different substrings of it of two characters or more with their counts."""
    tokens = draw(st.lists(few_words, min_size=1, max_size=6, unique=True))
    table = TokenTable.from_items((token, 1) for token in tokens)
    text = escape_tokens(table.data, table.offsets, table.counts, ())
    joined = ''.join(map(chr, text.alphabet[text.ranks]))
    positions = {}
    for begin, end in zip(text.starts.tolist(), text.starts[1:].tolist()):
        for position in range(begin, end):
            for stop in range(position + 2, end + 1):
                positions[joined[position:stop]] = position
    strings = sorted(positions)
    selected = draw(st.lists(st.sampled_from(strings), unique=True)) if strings else []
    counts = draw(st.lists(st.integers(0, 2), min_size=len(selected), max_size=len(selected)))
    letter_counts = draw(
        st.lists(st.integers(0, 2), min_size=len(text.alphabet), max_size=len(text.alphabet))
    )
    return text, [positions[string] for string in selected], selected, counts, letter_counts


@given(selected_strings())
def test_the_order_is_by_count_and_string_descending(problem):
    text, positions, selected, counts, letter_counts = problem
    subtokens = Subtokens(
        ('<pad>_', '<EOS>_'),
        text,
        np.array(positions, np.int32),
        np.array(list(map(len, selected)), np.int32),
        np.array(counts, np.int64),
        np.array(letter_counts, np.int64),
    )
    pairs = [*zip(counts, selected), *zip(letter_counts, map(chr, text.alphabet))]
    expected = ('<pad>_', '<EOS>_', *(string for _, string in sorted(pairs, reverse=True)))
    assert len(subtokens) == len(expected)
    assert subtokens == expected
    assert expected == subtokens
    assert subtokens != expected[:-1]
    assert subtokens[2:5] == expected[2:5]
    assert list(subtokens) == list(expected)
    assert hash(subtokens) == hash(expected)
