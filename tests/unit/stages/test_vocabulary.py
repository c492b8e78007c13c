"""The stage that learns a vocabulary: the warning when it has another size than the target."""

from types import SimpleNamespace

import pytest
from jobs import succeed, write

import tokcore
from pipelines.stages.vocabulary import warn_if_size_missed
from tokcore.encoding.scheme import Learned, LearningOptions
from tokcore.wordpiece.options import WordPieceOptions


@pytest.mark.parametrize(
    'size, target, search, warning',
    [
        (
            110,
            120,
            {'min_count': 8, 'reachable': ((7, 130), (8, 110)), 'smallest_size': 50},
            'reachable around it are 130 at min-count 7 and 110 at min-count 8',
        ),
        (
            50,
            40,
            {'min_count': 8, 'smallest_size': 50},
            'reachable around it are no others; no fewer than 50 are possible',
        ),
        (110, 120, {}, 'there are no more'),
        (
            257,
            200,
            {},
            'so many are the special tokens and what merges begin with, bytes or characters',
        ),
        (110, 120, {'min_count': 1, 'reachable': ((1, 110),)}, 'the text gives no more'),
    ],
)
def test_a_missed_size_is_a_warning_with_the_sizes_around_it(caplog, size, target, search, warning):
    learned = Learned(SimpleNamespace(vocab_size=size), **search)
    warn_if_size_missed(learned, LearningOptions(target), 'v')
    [record] = caplog.records
    assert record.levelname == 'WARNING'
    assert record.getMessage() == f'v has {size} entries, asked for {target}: {warning}'


def test_a_search_that_ends_at_the_lowest_min_count_says_how_to_go_below_it(caplog):
    options = WordPieceOptions(vocab_size=600)
    # The search as TensorFlow Text's ends one below its range.
    warn_if_size_missed(Learned(SimpleNamespace(vocab_size=247), min_count=9), options, 'v')
    assert caplog.messages == [
        'v has 247 entries, asked for 600: lower min-counts may give more: '
        '--min-count-range 1:10000000'
    ]


def test_a_size_within_a_hundredth_of_the_target_is_not_a_warning(caplog):
    vocabulary = SimpleNamespace(vocab_size=1009)
    warn_if_size_missed(Learned(vocabulary, min_count=3), LearningOptions(1000), 'v')
    assert not caplog.records


def test_codes_of_the_size_with_their_first_symbols_are_not_a_warning(tmp_path, caplog):
    counts = write(tmp_path / 'counts.txt', b'there 9\nthen 7\nthe 5\n')
    codes = ['--scheme', 'bpe', '--preset', 'subword-nmt', '--vocab-size', 9]
    said = succeed('vocab', '--counts', counts, *codes, '--output', tmp_path / 'codes')
    # After the five characters, and e</w> and n</w>, there are two merges.
    assert (tmp_path / 'codes').read_text() == '#version: 0.2\nt h\nth e\n'
    assert 'warning' not in said
    table = tokcore.TokenTable.from_items([('there', 9), ('then', 7), ('the', 5)])
    tokcore.learn_vocabulary(table, scheme='bpe', preset='subword-nmt', vocab_size=9)
    assert not caplog.records
