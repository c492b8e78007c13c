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
            *['--source', 'b.en', 'c*.en', '--target', 'b.zh', '--dev', 'd.tsv'],
            *['--dev-source', 'e', '--test', 'f', '--shards', '3'],
            *['--seed', '7', '--workers', '4', '--search', 'closest', '--min-count-range', '1:50'],
            *['--max-subtoken-length', 'none', '--reserved-token', 'X', '--reserved-token', 'Y'],
            *['--learner', 'beam', '--shared-vocab', '--overwrite', '--source-prefix', 'to zh: '],
        ]
    )
    assert options.source == ['a.en', 'b.en', 'c*.en']
    assert options.target == ['a.zh', 'b.zh']
    assert (options.dev, options.dev_source, options.test) == (['d.tsv'], ['e'], ['f'])
    assert options.shards == 3
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
        ('--columns', ''),
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
        ('--max-line-size', '0'),
        ('--max-line-size', '12 miles'),
        ('--on-error', 'Skip'),
        ('--on-error', '101%'),
        ('--on-error', '-1'),
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
    size = ByteSize(1 << 40)
    sizes = ['64', '64B', '2k', '2KB', '2KiB', '12MiB', '1g', '1TiB', '007']
    expected = [64, 64, 2048, 2048, 2048, 12 * 2**20, 2**30, 2**40, 7]
    assert [size(each) for each in sizes] == expected
    with pytest.raises(argparse.ArgumentTypeError):
        size('1.5M')


def test_numbers_and_sizes_are_said_as_people_do():
    assert [format_number(7), format_number(100_000), format_number(2**31 - 1), format_number(2**64 - 1)] == [
        '7', '100,000', '2^31 - 1', '2^64 - 1',
    ]  # fmt: skip
    sizes = {7: '7', 1024: '1KiB', 3 << 20: '3MiB', 1 << 50: '1PiB'}
    assert {size: format_size(size) for size in sizes} == sizes
    assert str(WholeNumber(1, 1024)) == 'from 1 to 1,024'
    assert shown('abc') == "'abc'"
    assert len(shown('a' * 5000)) < 100


ENCODE = ['encode', '--tsv', 'a', '--vocab', 'v', '--name', 'n', '--output', 'out']

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
        assert value[:40] in str(refused.value)
        assert len(str(refused.value)) < 250


@pytest.mark.parametrize('option', ['--shards', '--seed', '--workers', '--max-line-size'])
@pytest.mark.parametrize('value', ['-1', '１', '٣', '²', '1_000', '1e3', '0x10', '+5', '', ' '])
def test_only_plain_digits_are_numbers(option, value):
    with pytest.raises(InputError, match=option):
        parse_command([*BUILD, option, value])


PATHS = {
    'build': ['--source', '--target', '--text', '--dev', '--test-target', '--output', '--work'],
    'count': ['--tsv', '--counts', '--output'],
    'vocab': ['--text', '--counts', '--output', '--work'],
    'encode': ['--vocab', '--output', '--work'],
    'tokenize': ['--vocab'],
    'detokenize': ['--vocab'],
}
NEEDED = {
    'build': ['--name', 'n', '--vocab-size', '9', '--output', 'o'],
    'count': ['--output', 'o'],
    'vocab': ['--vocab-size', '9', '--output', 'o'],
    'encode': ['--name', 'n', '--output', 'o'],
    'tokenize': ['--vocab', 'v'],
    'detokenize': ['--vocab', 'v'],
}


@pytest.mark.parametrize(
    ('command', 'option'), [(command, option) for command in PATHS for option in PATHS[command]]
)
def test_an_empty_path_is_refused_by_its_options_name(command, option):
    with pytest.raises(InputError, match=f"argument {option}: '' is not a path"):
        parse_command([command, *NEEDED[command], option, ''])
    with pytest.raises(InputError, match=f'argument {option}: .*NUL'):
        parse_command([command, *NEEDED[command], f'{option}=a\0b'])


@pytest.mark.parametrize(
    'option', ['--name', '--reserved-token', '--source-prefix', '--target-prefix']
)
@pytest.mark.parametrize('value', ['\udcff', 'x\udcc3', '\ud800'])
def test_text_that_is_not_utf8_is_refused_by_its_options_name(option, value):
    with pytest.raises(InputError, match=f'argument {option}: .*is not UTF-8'):
        parse_command([*BUILD, f'{option}={value}'])


def test_names_of_files_need_not_be_utf8():
    options, _ = parse_command([*ENCODE, '--dev', 'x\udcff', '--work', 'y\udcff'])
    assert (options.dev, options.work) == (['x\udcff'], 'y\udcff')


@pytest.mark.parametrize(
    'name',
    ['', '/', 'a/b', 'a\nb', 'a\0', '\x7f', '.tokbeam', '.tokbeam-attempt-z', 'tokbeam.json'],
)
def test_a_dataset_is_not_called_what_would_be_taken_for_something_else(name):
    with pytest.raises(InputError, match='argument --name: '):
        parse_command([*BUILD, f'--name={name}'])


@pytest.mark.parametrize(
    'name', ['enzh', '..', 'a b', '语料', 'counts', 'tokbeam', 'x.tokbeam', '-']
)
def test_other_names_will_do(name):
    options, _ = parse_command([*BUILD, f'--name={name}'])
    assert options.name == name


@pytest.mark.parametrize(
    'path', ['.tokbeam', 'a/.tokbeam-attempt-x', '.tokbeam-lock/b', '/x/.tokbeam/']
)
@pytest.mark.parametrize('command', ['build', 'count', 'vocab', 'encode'])
def test_an_output_is_none_of_this_programs_own_files(command, path):
    with pytest.raises(InputError, match='argument --output: .*own files'):
        parse_command([command, *NEEDED[command], '--output', path])


@pytest.mark.parametrize(
    'name', ['tokbeam.json', 'tokbeam.run.json', 'v.tokbeam.json', 'x/v.tokbeam.run.json']
)
def test_a_vocabulary_is_not_called_as_a_manifest(name):
    with pytest.raises(InputError, match='argument --output: .*manifest'):
        parse_command(['vocab', *NEEDED['vocab'], '--output', name])


def test_work_may_go_where_it_goes_by_itself():
    options, _ = parse_command([*ENCODE, '--work', 'out/.tokbeam'])
    assert options.work == 'out/.tokbeam'
    with pytest.raises(InputError, match='argument --work: .*own files'):
        parse_command([*ENCODE, '--work', 'out/.tokbeam-attempt-x'])
