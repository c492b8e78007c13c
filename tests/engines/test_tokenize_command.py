"""`tokenize` and `detokenize` keep lines: one in, one out, and back to the same text."""

import pytest
from generated_text import as_lines, chinese_lines, english_lines

from tokcore.subword.text_encoder import SubwordTextEncoder

GAPS = ['', ' ', '\u3000\t', 'Ωmega\u0301 ไทย', '  padded  ', 'a_b\\c <pad> <EOS>', '']


@pytest.fixture(scope='module')
def vocabulary(small_build):
    return small_build / 'vocab.small.900.subwords.inputs'


def some_lines():
    lines = english_lines(150, seed=3) + chinese_lines(50, seed=4)
    return [line for pair in zip(lines, GAPS * 30) for line in pair]


@pytest.mark.parametrize('line_end', ['\n', '\r\n'])
@pytest.mark.parametrize('options', [[], ['--template', '$A <EOS>']])
def test_lines_come_back_as_the_line_rules_leave_them(vocabulary, filter_lines, options, line_end):
    lines = some_lines()
    ids = filter_lines(as_lines(lines, line_end), 'tokenize', '--vocab', vocabulary, *options)
    text = filter_lines(ids, 'detokenize', '--vocab', vocabulary)
    assert text == as_lines([line.strip() for line in lines])


@pytest.mark.parametrize('options, ends', [([], []), (['--template', '$A <EOS>'], [1])])
def test_ids_are_decimal_between_single_spaces(vocabulary, filter_lines, options, ends):
    encoder = SubwordTextEncoder.load(vocabulary)
    lines = some_lines()
    ids = filter_lines(as_lines(lines), 'tokenize', '--vocab', vocabulary, *options)
    expected = [[*encoder.encode(line.strip()), *ends] for line in lines]
    assert ids == as_lines([' '.join(map(str, each)) for each in expected])


def test_blank_lines_stay(vocabulary, filter_lines):
    assert filter_lines(b'\n \n\r\n\n', 'tokenize', '--vocab', vocabulary) == b'\n\n\n\n'
    with_eos = filter_lines(
        b'\n \n\r\n\n', 'tokenize', '--vocab', vocabulary, '--template', '$A <EOS>'
    )
    assert with_eos == b'1\n1\n1\n1\n'
    assert filter_lines(with_eos, 'detokenize', '--vocab', vocabulary) == b'\n\n\n\n'
    assert filter_lines(b'', 'tokenize', '--vocab', vocabulary) == b''
    assert filter_lines(b'', 'detokenize', '--vocab', vocabulary) == b''


def test_a_last_line_without_an_end_is_a_line(vocabulary, filter_lines):
    ended = filter_lines(b'one\ntwo\n', 'tokenize', '--vocab', vocabulary)
    assert filter_lines(b'one\ntwo', 'tokenize', '--vocab', vocabulary) == ended
    text = filter_lines(ended.removesuffix(b'\n'), 'detokenize', '--vocab', vocabulary)
    assert text == b'one\ntwo\n'


def test_a_megabyte_is_not_a_border(vocabulary, filter_lines):
    lines = ['x' * 1_500_000, *english_lines(20, seed=1), '', 'y ' * 700_000 + 'z']
    ids = filter_lines(as_lines(lines), 'tokenize', '--vocab', vocabulary)
    assert filter_lines(ids, 'detokenize', '--vocab', vocabulary) == as_lines(lines)


def test_trailing_padding_and_eos_are_dropped(vocabulary, filter_lines):
    ids = filter_lines(b'some words\n', 'tokenize', '--vocab', vocabulary).strip()
    lines = b'\n'.join([ids + b' 1', ids + b' 1 0 0', ids + b' 0 1 1', b'1 0', b'0'])
    text = filter_lines(lines, 'detokenize', '--vocab', vocabulary)
    assert text == b'some words\n' * 3 + b'\n\n'


@pytest.mark.parametrize('wrong', [b'3 900000', b'3 -1', b'3 x', b'1.5'])
def test_what_is_not_an_id_is_refused_with_its_line(vocabulary, filter_lines, wrong):
    lines = b'3 4\n\n' + wrong + b'\n5\n'
    said = filter_lines(lines, 'detokenize', '--vocab', vocabulary, status=2).decode()
    assert 'line 3' in said


@pytest.mark.parametrize('before', [0, 2, 60_000])
def test_invalid_utf8_is_refused_with_its_line(vocabulary, filter_lines, before):
    lines = b'a line of some length\n' * before + b'\xc3(\nx\n'
    said = filter_lines(lines, 'tokenize', '--vocab', vocabulary, status=2).decode()
    assert f'line {before + 1}:' in said and 'UTF-8' in said
