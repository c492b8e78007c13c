"""What records tell of lines: newer facts only where there are any."""

from tokcore.corpus.block_stats import MOST_UNKNOWN_WORDS, LineTally, add_tallies


def test_records_of_old_stay_what_they_were():
    record = LineTally('train', 3, 2, 1).record()
    assert record == {
        'split': 'train', 'lines': 3, 'examples': 2, 'empty': 1, 'invalid_utf8': 0,
        'missing_column': 0,
    }  # fmt: skip
    assert LineTally.of_record(record) == LineTally('train', 3, 2, 1)


def test_unknown_tokens_are_told_where_there_can_be_any():
    tally = LineTally('train', 3, 2, 1, {}, 1, 10, 0)
    record = tally.record()
    assert (record['no_token'], record['ids'], record['unknown']) == (1, 10, 0)
    assert LineTally.of_record(record) == tally


def test_tallies_add_up():
    first = LineTally('train', 3, 3, 0, {}, 1, 10, 2, {'a': 2})
    second = LineTally('train', 2, 2, 0, {}, 0, 5, 3, {'b': 2, 'a': 1})
    total = add_tallies('train', [first, LineTally('dev', 1, 1, 0), second])
    assert total == LineTally('train', 5, 5, 0, {}, 1, 15, 5, {'a': 3, 'b': 2})
    assert list(total.unknown_words) == ['a', 'b']
    assert add_tallies('dev', [LineTally('dev', 1, 1, 0)]).ids is None


def test_only_the_commonest_words_are_kept():
    words = {f'{number:05d}': 1 for number in range(2 * MOST_UNKNOWN_WORDS)}
    total = add_tallies('train', [LineTally('train', 0, 0, 0, {}, 0, 1, 1, words)])
    assert list(total.unknown_words) == sorted(words)[:MOST_UNKNOWN_WORDS]
