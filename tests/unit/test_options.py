"""Values of options arrive as what they mean, or are refused with their option."""

import argparse
import re

import pytest

from pipelines.cli.parser import parse_command
from tokcore.errors import InputError
from tokcore.options import (
    ByteSize,
    WholeNumber,
    columns,
    format_number,
    format_size,
    min_count_range,
    positive,
    shown,
    subtoken_length,
)

BUILD = [
    *['build', '--source', 'a.en', '--target', 'a.zh'],
    *['--name', 'enzh', '--vocab-size', '8192', '--output', 'out'],
]


def test_values_arrive_as_what_they_mean():
    options, _ = parse_command(
        [
            *BUILD,
            *['--source', 'b.en', 'c*.en', '--target', 'b.zh', '--dev', 'd\udcff'],
            *['--dev-source', 'e', '--test', 'f', '--shards', '3'],
            *['--seed', '7', '--workers', '4', '--search', 'closest', '--min-count-range', '1:50'],
            *['--max-subtoken-length', 'none', '--reserved-token', 'X', '--reserved-token', 'Y'],
            *['--learner', 'beam', '--shared-vocab', '--overwrite', '--source-prefix', 'to zh: '],
            *['--work', 'out/.tokbeam'],
        ]
    )
    assert options.source == ['a.en', 'b.en', 'c*.en']
    assert options.target == ['a.zh', 'b.zh']
    # Names of files need not be UTF-8.
    assert (options.dev, options.dev_source, options.test) == (['d\udcff'], ['e'], ['f'])
    assert (options.shards, options.seed, options.workers) == (3, 7, 4)
    assert (options.search, options.min_count_range) == ('closest', (1, 50))
    assert options.max_subtoken_length is None
    assert options.reserved_token == ['X', 'Y']
    assert (options.learner, options.work) == ('beam', 'out/.tokbeam')
    assert options.shared_vocab and options.overwrite
    assert options.source_prefix == 'to zh: '


NO_NUMBERS = ['-1', '１', '٣', '²', '1_000', '1e3', '0x10', '+5', '', ' ']
NOT_UTF8 = ['\udcff', 'x\udcc3', '\ud800']
NO_PATHS = ['', 'a\0b']
OWN_FILES = ['.tokbeam', 'a/.tokbeam-attempt-x', '.tokbeam-lock/b', '/x/.tokbeam/', 'hf://a/b']
WRONG = {
    '--vocab-size': ['0', '8k'],
    '--shards': NO_NUMBERS,
    '--workers': ['0', *NO_NUMBERS],
    '--seed': ['zero', *NO_NUMBERS],
    '--columns': ['', '1,1', '0,1,2', '-1,0'],
    '--min-count-range': ['5', '0:5', '9:5'],
    '--max-subtoken-length': ['0', 'None'],
    '--search': ['T2T'],
    '--learner': ['flink'],
    '--max-line-size': ['0', '12 miles', *NO_NUMBERS],
    '--on-error': ['Skip', '101%', '-1'],
    '--name': [
        *['', '/', 'a/b', 'a\nb', 'a\0', '\x7f', '.tokbeam', '.tokbeam-attempt-z', 'tokbeam.json'],
        *NOT_UTF8,
    ],
    '--reserved-token': ['', ' a', *NOT_UTF8],
    '--source-prefix': ['a\nb', *NOT_UTF8],
    '--target-prefix': NOT_UTF8,
    '--text': NO_PATHS,
    '--source': NO_PATHS,
    '--dev': NO_PATHS,
    '--test-target': NO_PATHS,
    '--output': [*NO_PATHS, *OWN_FILES],
    '--work': [*NO_PATHS, 'out/.tokbeam-attempt-x'],
}
WRONG_OF_OTHERS = [
    ('count', '--counts', ''),
    ('count', '--output', '.tokbeam'),
    ('encode', '--vocab', 'a\0b'),
    ('tokenize', '--vocab', ''),
    ('detokenize', '--vocab', ''),
    *(('vocab', '--output', name) for name in ['tokbeam.json', 'x/v.tokbeam.run.json', *NO_PATHS]),
]


@pytest.mark.parametrize('option', WRONG)
def test_a_value_that_cannot_be_is_refused_with_its_option(option):
    for value in WRONG[option]:
        with pytest.raises(InputError, match=f'argument {option}: '):
            parse_command([*BUILD, f'{option}={value}'])


@pytest.mark.parametrize(('command', 'option', 'value'), WRONG_OF_OTHERS)
def test_other_commands_refuse_it_too(command, option, value):
    with pytest.raises(InputError, match=f'argument {option}: '):
        parse_command([command, f'{option}={value}'])


def test_the_types_of_values():
    assert positive('12') == 12
    assert columns('3,0') == (3, 0)
    assert min_count_range('1:1') == (1, 1)
    assert subtoken_length('none') is None
    assert subtoken_length('200') == 200
    size = ByteSize(1 << 40)
    sizes = ['64', '64B', '2k', '2KB', '2KiB', '12MiB', '1g', '1TiB', '007']
    expected = [64, 64, 2048, 2048, 2048, 12 * 2**20, 2**30, 2**40, 7]
    assert [size(each) for each in sizes] == expected
    with pytest.raises(argparse.ArgumentTypeError):
        size('1.5M')


def test_numbers_and_sizes_are_said_as_people_do():
    numbers = {7: '7', 100_000: '100,000', 2**31 - 1: '2^31 - 1', 2**64 - 1: '2^64 - 1'}
    assert {number: format_number(number) for number in numbers} == numbers
    sizes = {7: '7', 1024: '1KiB', 3 << 20: '3MiB', 1 << 50: '1PiB'}
    assert {size: format_size(size) for size in sizes} == sizes
    assert str(WholeNumber(1, 1024)) == 'from 1 to 1,024'
    assert shown('abc') == "'abc'" and len(shown('a' * 5000)) < 100


# Of each number its option, the largest value and the first beyond.
BOUNDS = [
    ('--shards', '100000', '100001'),
    ('--workers', '1024', '1025'),
    ('--vocab-size', '2147483647', '2147483648'),
    ('--max-subtoken-length', '2147483647', '2147483648'),
    ('--seed', '18446744073709551615', '18446744073709551616'),
    ('--columns', '65535,0', '65536,0'),
    ('--columns', '0,65535', '0,65536'),
    ('--min-count-range', '1:9223372036854775807', '1:9223372036854775808'),
    ('--max-line-size', '1GiB', '1025MiB'),
    ('--memory', '1024TiB', '1025TiB'),
]


@pytest.mark.parametrize(('option', 'largest', 'beyond'), BOUNDS)
def test_numbers_have_bounds(option, largest, beyond):
    command = [*BUILD, '--tsv', 'a']
    parse_command([*command, f'{option}={largest}'])
    for value in (beyond, '9' * 30, '9' * 5000, re.sub('[0-9]+', '9' * 5000, largest, count=1)):
        with pytest.raises(InputError, match=f'argument {option}: ') as refused:
            parse_command([*command, f'{option}={value}'])
        assert value[:40] in str(refused.value) and len(str(refused.value)) < 250


@pytest.mark.parametrize(
    'name', ['enzh', '..', 'a b', '语料', 'counts', 'tokbeam', 'x.tokbeam', '-']
)
def test_other_names_will_do(name):
    options, _ = parse_command([*BUILD, f'--name={name}'])
    assert options.name == name
