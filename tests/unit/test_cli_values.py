"""Values of options arrive as what they mean, or are refused with their option."""

import argparse

import pytest

from pipelines.cli_parser import (
    byte_size,
    columns,
    min_count_range,
    parse_command,
    positive,
    subtoken_length,
)
from tokcore.errors import InputError

BUILD = [
    *['build', '--source', 'a.en', '--target', 'a.zh'],
    *['--name', 'enzh', '--vocab-size', '8192', '--output', 'out'],
]


def test_values_arrive_as_what_they_mean():
    options, _ = parse_command(
        [
            *BUILD,
            *['--source', 'b.en', 'c*.en', '--target', 'b.zh', '--dev-tsv', 'd.tsv'],
            *['--dev-columns', '2,0', '--test-text', 'e', '--shards', '3', '--dev-shards', '2'],
            *['--seed', '7', '--workers', '4', '--search', 'closest', '--min-count-range', '1:50'],
            *['--max-subtoken-length', 'none', '--reserved-token', 'X', '--reserved-token', 'Y'],
            *['--learner', 'beam', '--shared-vocab', '--overwrite', '--source-prefix', 'to zh: '],
        ]
    )
    assert options.source == ['a.en', 'b.en', 'c*.en']
    assert options.target == ['a.zh', 'b.zh']
    assert options.dev_tsv == ['d.tsv']
    assert options.dev_columns == (2, 0)
    assert options.test_text == ['e']
    assert (options.shards, options.dev_shards, options.test_shards) == (3, 2, 1)
    assert (options.seed, options.workers) == (7, 4)
    assert (options.search, options.min_count_range) == ('closest', (1, 50))
    assert options.max_subtoken_length is None
    assert options.reserved_token == ['X', 'Y']
    assert options.learner == 'beam'
    assert options.shared_vocab and options.overwrite
    assert options.source_prefix == 'to zh: '


@pytest.mark.parametrize(
    ('option', 'value'),
    [
        ('--vocab-size', '0'),
        ('--vocab-size', '8k'),
        ('--shards', '-1'),
        ('--shards', '１'),
        ('--workers', '0'),
        ('--columns', '0'),
        ('--columns', '1,1'),
        ('--columns', '0,1,2'),
        ('--columns', '-1,0'),
        ('--min-count-range', '5'),
        ('--min-count-range', '0:5'),
        ('--min-count-range', '9:5'),
        ('--max-subtoken-length', '0'),
        ('--max-subtoken-length', 'None'),
        ('--search', 'T2T'),
        ('--learner', 'flink'),
        ('--seed', 'zero'),
        ('--item-size', '0'),
        ('--item-size', '12 miles'),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_option(option, value):
    with pytest.raises(InputError, match=option) as refused:
        parse_command([*BUILD, f'{option}={value}'])
    assert value in str(refused.value)


def test_the_types_of_values():
    assert positive('12') == 12
    assert columns('3,0') == (3, 0)
    assert min_count_range('1:1') == (1, 1)
    assert subtoken_length('none') is None
    assert subtoken_length('200') == 200
    sizes = ['64', '64B', '2k', '2KB', '2KiB', '12MiB', '1g']
    expected = [64, 64, 2048, 2048, 2048, 12 * 2**20, 2**30]
    assert [byte_size(size) for size in sizes] == expected
    with pytest.raises(argparse.ArgumentTypeError):
        byte_size('1.5M')
