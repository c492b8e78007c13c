"""Segmenting, packing and weighing suffixes, against the plain segmenter on strings."""

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.kernels.jit import read_only
from tokcore.subword.plain_iteration import PlainSegmenter
from tokcore.subword.segmenting import (
    Segmenter,
    Surveyor,
    add_surveys,
    escaped_batches,
    pack_all_suffixes,
)
from tokcore.subword.suffix_tables import (
    PrefixPartitions,
    SuffixTable,
    merge_suffix_tables,
)
from tokcore.text.t2t import alphabet_of, escape_token

LETTERS = 'ab\\_\n\x00é中\U0001f600'
TOKENS = st.dictionaries(
    st.one_of(st.text(LETTERS, max_size=6), st.integers(1, 60).map(lambda n: 'ab' * n)),
    st.integers(0, 9),
    max_size=12,
)
LONGEST = st.one_of(st.integers(1, 12), st.just(2**31 - 1))
BORDERS = st.sets(st.text(LETTERS, min_size=1, max_size=9), max_size=4)


def escape(token):
    return escape_token(token, alphabet_of([token]))


def batches_of(tokens, longest):
    data = ''.join(tokens).encode()
    offsets = np.cumsum([0, *(len(token.encode()) for token in tokens)])
    counts = np.array(list(tokens.values()), np.int64)
    array = read_only(np.frombuffer(data, np.uint8))
    return list(
        escaped_batches(array, read_only(offsets.astype(np.int64)), read_only(counts), longest)
    )


def groups_of(borders):
    return PrefixPartitions(tuple(sorted(border.encode() for border in borders)))


def expected_suffixes(tokens, segmenter, longest):
    weights = {}
    for token, count in tokens.items():
        escaped = escape(token)
        for start in segmenter.segment_starts(escaped):
            suffix = escaped[start : start + longest].encode()
            weights[suffix] = weights.get(suffix, 0) + count
    return weights


def assert_tables(tables, expected, groups, group_range):
    """Each table has strings of its group, and all together those expected in the range."""
    for group, table in tables:
        assert group_range[0] <= group < group_range[1]
        assert all(bisect_right(groups.borders, string) == group for string, _ in table.items())
    within = {
        string: weight
        for string, weight in expected.items()
        if group_range[0] <= bisect_right(groups.borders, string) < group_range[1]
    }
    merged = merge_suffix_tables(table for _, table in tables)
    assert list(merged.items()) == sorted(within.items(), reverse=True)


def draw_range(data, groups):
    first = data.draw(st.integers(0, len(groups) - 1))
    return first, data.draw(st.integers(first + 1, len(groups)))


@given(TOKENS, LONGEST, BORDERS, st.data())
def test_packs_the_suffixes_at_every_character(tokens, longest, borders, data):
    groups = groups_of(borders)
    group_range = draw_range(data, groups)
    tables = []
    for batch in batches_of(tokens, longest):
        tables += pack_all_suffixes(batch, longest, groups, group_range)
    expected = expected_suffixes(tokens, PlainSegmenter(sorted(set(LETTERS + 'u10;'))), longest)
    assert_tables(tables, expected, groups, group_range)


SUBTOKENS = st.lists(st.text(LETTERS + 'u', min_size=2, max_size=7), max_size=12)


@given(TOKENS, LONGEST, BORDERS, SUBTOKENS, st.data())
def test_packs_the_suffixes_at_segments(tokens, longest, borders, subtokens, data):
    groups = groups_of(borders)
    group_range = draw_range(data, groups)
    reserved = data.draw(st.lists(st.sampled_from([escape(token) for token in tokens] or ['a_'])))
    letters = sorted(set(LETTERS + 'u10;'))
    vocabulary = SuffixTable.from_items((string.encode(), 0) for string in [*letters, *subtokens])
    segmenter = Segmenter(vocabulary, reserved, None)
    tables = []
    for batch in batches_of(tokens, longest):
        tables += segmenter.pack(batch, longest, groups, group_range)
    plain = PlainSegmenter([*letters, *subtokens, *reserved])
    assert_tables(tables, expected_suffixes(tokens, plain, longest), groups, group_range)


@given(TOKENS, LONGEST, BORDERS, SUBTOKENS, st.data())
def test_adds_to_the_longest_frequent_prefix_of_each_suffix(
    tokens, longest, borders, subtokens, data
):
    groups = groups_of(borders)
    letters = sorted(set(LETTERS + 'u10;'))
    plain = PlainSegmenter([*letters, *subtokens])
    suffixes = expected_suffixes(tokens, plain, longest)
    # Any strings may be frequent, provided that every suffix has one of them as a prefix.
    frequent_strings = {letter.encode() for letter in letters}
    for suffix in suffixes:
        text = suffix.decode()
        frequent_strings.add(text[: data.draw(st.integers(1, len(text)))].encode())
    parts = [{} for _ in range(len(groups))]
    for string in frequent_strings:
        parts[bisect_right(groups.borders, string)][string] = 1
    frequent = [SuffixTable.from_items(part.items()) for part in parts]
    vocabulary = SuffixTable.from_items((string.encode(), 0) for string in [*letters, *subtokens])
    segmenter = Segmenter(vocabulary, [], frequent)
    weights = segmenter.empty_weights()
    for batch in batches_of(tokens, longest):
        segmenter.weigh(batch, weights)
    expected = {}
    for suffix, weight in suffixes.items():
        prefix = max(filter(suffix.startswith, frequent_strings), key=len)
        if weight:
            expected[prefix] = expected.get(prefix, 0) + weight
    tables = list(segmenter.tables(weights))
    assert_tables(tables, expected, groups, (0, len(groups)))


def test_a_character_that_the_vocabulary_lacks_is_an_error():
    segmenter = Segmenter(SuffixTable.from_items([(b'a', 0), (b'_', 0)]), [], None)
    with pytest.raises(ValueError, match='the vocabulary lacks'):
        segmenter.pack(batches_of({'ab': 1}, 9)[0], 9, PrefixPartitions(()), (0, 1))


def test_a_vocabulary_of_too_many_nodes_is_refused(monkeypatch):
    monkeypatch.setattr('tokcore.subword.segmenting.MAX_NODES', 5)
    vocabulary = SuffixTable.from_items([(b'abc', 1), (b'abd', 1), (b'_', 1)])
    assert vocabulary.added == 5
    Segmenter(vocabulary, [], None)
    with pytest.raises(InputError, match='too large to segment by'):
        Segmenter(vocabulary, ['x_'], None)


def test_the_suffixes_of_a_batch_are_bounded(monkeypatch):
    monkeypatch.setattr('tokcore.subword.segmenting.BATCH_BYTES', 500)
    tokens = {'a' * length: 1 for length in range(40)}
    for batch in batches_of(tokens, 10):
        sizes = np.diff(batch.starts).tolist()
        listed = sum(min(10, size - i) for size in sizes for i in range(size))
        assert listed <= 500 or len(sizes) == 1
    assert sum(len(batch.counts) for batch in batches_of(tokens, 10)) == len(tokens)


@given(TOKENS, TOKENS)
def test_surveys_of_parts_add_up(one, other):
    surveys = []
    for tokens in (one, other):
        surveyor = Surveyor(0, 9)
        data = read_only(np.frombuffer(''.join(tokens).encode(), np.uint8))
        offsets = np.cumsum([0, *(len(token.encode()) for token in tokens)]).astype(np.int64)
        counts = np.array(list(tokens.values()), np.int64)
        surveyor.add(data, read_only(offsets), read_only(counts))
        surveys.append(surveyor.result())
    survey = add_surveys(surveys)
    items = [*one.items(), *other.items()]
    assert survey.alphabet == ''.join(sorted(set().union(*one, *other)))
    assert survey.tokens == len(items)
    assert survey.characters == sum(len(escape(token)) for token, _ in items)
    assert survey.weight == sum(len(escape(token)) * count for token, count in items)
    assert survey.largest_count == sum((len(token.encode()) + 1) * count for token, count in items)
    assert survey.predicted_bytes(0) == survey.sample.nbytes
