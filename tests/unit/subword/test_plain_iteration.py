"""One iteration in the plain form."""

import pytest

from tokcore.subword.plain_iteration import PlainSegmenter, candidate_substrings, keep_substrings


def test_tokens_are_cut_greedily_from_the_left():
    segmenter = PlainSegmenter.of(['a', 'b', '_', 'ab', 'aba', 'ba_'])
    assert list(segmenter.cuts('ababa_')) == [0, 3]
    assert list(segmenter.cuts('baba_')) == [0, 1, 4]
    assert list(segmenter.cuts('aaba_')) == [0, 1, 4]


def test_a_character_that_the_vocabulary_lacks_is_an_error():
    with pytest.raises(ValueError, match="'c' is not in the vocabulary"):
        list(PlainSegmenter.of(['a', '_']).cuts('aca_'))


def test_candidates_start_at_cuts_and_end_anywhere_up_to_the_limit():
    segmenter = PlainSegmenter.of(['a', 'b', '_', 'ab'])
    assert list(candidate_substrings('abb_', segmenter, 2)) == ['a', 'ab', 'b', 'b_', '_']
    assert list(candidate_substrings('ab_', segmenter, 9)) == ['a', 'ab', 'ab_', '_']
    assert list(candidate_substrings('ab_', segmenter, 0)) == []


def test_a_kept_substring_takes_its_count_from_its_prefixes():
    counts = {'a': 9, 'ab': 9, 'abc': 5, 'abd': 3, 'b': 2}
    # abc keeps 5, so ab has 4 left and a none of those.
    assert keep_substrings(counts, 4, 'ab') == ['abc', 'ab', 'b', 'a']
    assert keep_substrings(counts, 5, 'ab') == ['abc', 'a', 'b']


def test_equal_counts_are_ordered_by_string_descending():
    assert keep_substrings({'ab': 3, 'ac': 3, 'a': 6}, 3, 'abz') == ['ac', 'ab', 'z', 'b', 'a']
