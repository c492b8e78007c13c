"""One iteration of the plain algorithm."""

import pytest

from tokcore.subword.plain_iteration import PlainSegmenter, candidate_substrings, select_substrings


def test_tokens_are_segmented_greedily_from_the_left():
    segmenter = PlainSegmenter(['a', 'b', '_', 'ab', 'aba', 'ba_'])
    assert list(segmenter.segment_starts('ababa_')) == [0, 3]
    assert list(segmenter.segment_starts('baba_')) == [0, 1, 4]
    assert list(segmenter.segment_starts('aaba_')) == [0, 1, 4]
    with pytest.raises(ValueError, match="'c' is not in the vocabulary"):
        list(segmenter.segment_starts('aca_'))


def test_candidates_start_at_segments_and_end_anywhere_up_to_the_limit():
    segmenter = PlainSegmenter(['a', 'b', '_', 'ab'])
    assert list(candidate_substrings('abb_', segmenter, 2)) == ['a', 'ab', 'b', 'b_', '_']
    assert list(candidate_substrings('ab_', segmenter, 9)) == ['a', 'ab', 'ab_', '_']
    assert list(candidate_substrings('ab_', segmenter, 0)) == []


def test_the_count_of_a_selected_substring_is_subtracted_from_its_prefixes():
    counts = {'a': 9, 'ab': 9, 'abc': 5, 'abd': 3, 'b': 2}
    # abc is selected with 5, so 4 remain of ab, which is selected too, and 0 of a.
    assert select_substrings(counts, 4, 'ab') == ['abc', 'ab', 'b', 'a']
    assert select_substrings(counts, 5, 'ab') == ['abc', 'a', 'b']


def test_equal_counts_are_ordered_by_string_descending():
    assert select_substrings({'ab': 3, 'ac': 3, 'a': 6}, 3, 'abz') == ['ac', 'ab', 'z', 'b', 'a']
