"""Sequences of splits by a kernel: the tokens that `regex` finds, one expression after another."""

import functools
import itertools
import pickle
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from scanned_tokens import laid_out, scanned

from tokcore.kernels.bytes import READABLE
from tokcore.kernels.jit import read_only
from tokcore.text.byte_level_scan import PatternPreTokenizer
from tokcore.text.expressions import oniguruma
from tokcore.text.patterns import DEFINITIONS, PUNCTUATION, RUNS, sequence_rules, split, split_by
from tokcore.text.pre_tokenizer import TextRows
from tokcore.text.regex_splits import Split, SplitPreTokenizer, cut
from tokcore.text.split_sequence import (
    SequencePreTokenizer,
    pattern_pre_tokenizer,
    pre_tokenizer_of,
)

NUMBERS, KANA = r'\p{N}{1,3}', DEFINITIONS['deepseek'].expressions[1]
DEEPSEEK = DEFINITIONS['deepseek'].expressions
GPT2 = DEFINITIONS['gpt2'].expressions
SEQUENCES = [
    DEEPSEEK,
    (r'\p{N}', *GPT2),  # Digits and ByteLevel: StarCoder, SmolLM
    (r'\p{N}+', f'{PUNCTUATION}+', *GPT2),
    (PUNCTUATION, r'\p{N}{1,3}', *DEFINITIONS['cl100k'].expressions),
    (KANA, r'\p{N}', *DEFINITIONS['qwen2'].expressions),
    (r'\p{N}+', *DEFINITIONS['o200k'].expressions),
    (PUNCTUATION, *DEFINITIONS['tekken'].expressions),
    (KANA,),
    (r'\p{N}{1,3}', PUNCTUATION),
]

# One or two of each class, by all that the expressions tell apart.
CLASSES = "aZé字ｱª\u0301\u3099カー・゠\u30401٣½\r\n \t\x0b\u3000\xa0!'+_—，€\0\x1c\ufeff\U000f0000ſ"
PIECES = [*CLASSES, "'s", "'Ll", '\r\n', '  ', '1234', 'カ・タ', '!ab', '\0\0a', 'HeLLo']
LINES = st.one_of(
    st.text(st.characters(exclude_categories=['Cs']), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=120).map(''.join),
    st.lists(st.sampled_from(PIECES), min_size=2, max_size=4).flatmap(
        lambda few: st.lists(st.sampled_from(few), max_size=200).map(''.join)
    ),
)


def trees_of(expressions):
    return tuple(map(oniguruma, expressions))


def by_regex(text, expressions):
    """The tokens by `regex` and its own tables."""
    return [text[start:end] for start, end in cut(text, [*map(Split, expressions)])]


@functools.cache
def unlike():
    """The characters that are of one class by `regex` and of another one here."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    text = ''.join(characters)
    different = set()
    for category in ('Lu', 'Lt', 'Ll', 'Lm', 'Lo', 'M', 'N', 'P', 'S'):
        there = {*''.join(regex.findall(rf'\p{{{category}}}+', text))}
        here = {each for each in characters if unicodedata.category(each).startswith(category)}
        different |= there ^ here
    return different


def test_tables_differ_only_where_unicode_has_grown():
    # Or has changed its mind: U+0295 is no small letter any more.
    assert {unicodedata.category(each) for each in unlike() - {'ʕ'}} <= {'Cn'}
    assert unlike().isdisjoint(CLASSES)


@given(
    rows=st.lists(LINES, min_size=1, max_size=5),
    expressions=st.sampled_from(SEQUENCES),
    room=st.sampled_from([0, 1, 2, 5, 64, 1_000]),
)
@example(['1' * 70, '12345٣٤٥ 6789', 'カ・タ' * 30, '\0\0\0a', '  1', ' \n 1 \n'], DEEPSEEK, 1)
@example(['2⁵²', 'a2⁵²b', '1²34²', '١23 4'], DEEPSEEK, 1_000)  # numbers of one and of several bytes
@example(
    [
        f'{before * size}{after}'
        for size in range(59, 66)
        for before in 'a1 '
        for after in (
            '12',
            ' 1',
            '  1a',
            '1234 5',
            '⁵2',
            'é1',
            '字12',
            "'s1",
            '\0a1',
            '!1!a',
            '\n1',
            '\t12',
        )
    ],
    DEEPSEEK,
    64,
)
@example(['12 a, ' * 14_000, '1' * 80_000, '2⁵² é' * 6_000], DEEPSEEK, 1_000)
@example(["x'1s", "!1'll", ' 1', "a's'"], SEQUENCES[1], 0)
def test_tokens_are_those_of_regex(rows, expressions, room):
    found = scanned(laid_out(rows), SequencePreTokenizer(trees_of(expressions)), room)
    assert found == [split_by(row, trees_of(expressions)) for row in rows]
    for row, tokens in zip(rows, found, strict=True):
        if unlike().isdisjoint(row):
            assert tokens == by_regex(row, expressions)


@pytest.mark.parametrize('expressions', SEQUENCES, ids=str)
def test_every_class_beside_every_class(expressions):
    rows = [''.join(each) for each in itertools.product(CLASSES, repeat=2)]
    rows += [
        f'a{first}{second}b1{second}' for first, second in itertools.product(CLASSES, repeat=2)
    ]
    expected = [by_regex(row, expressions) for row in rows]
    assert scanned(laid_out(rows), SequencePreTokenizer(trees_of(expressions))) == expected


@pytest.mark.slow
@pytest.mark.parametrize('number', range(len(SEQUENCES)))
def test_every_code_point_beside_every_class(number):
    """With the first sequence all; with each other one kana, the ends of each category, and an eighth."""
    expressions = SEQUENCES[number]
    known = [
        [each for each in run if each not in unlike()]
        for category, run in itertools.groupby(map(chr, range(0x110000)), unicodedata.category)
        if category not in ('Cn', 'Co', 'Cs')
    ]
    characters = [*itertools.chain(*known)]
    if number:
        ends = [each for run in known if run for each in (run[0], run[-1])]
        kana = map(chr, [*range(0x3000, 0x3200), *range(0xFF00, 0x10000)])
        characters = sorted(
            {*characters[number - 1 :: 8], *ends, *{*kana}.intersection(characters)}
        )
    beside = 'aA字カ\u03011\r \t!€\0'
    rows = [''.join(f'{each}{other}' for other in beside) for each in characters]
    pre_tokenizer = SequencePreTokenizer(trees_of(expressions))
    for first in range(0, len(rows), 10_000):
        some = rows[first : first + 10_000]
        assert scanned(laid_out(some), pre_tokenizer) == [
            by_regex(row, expressions) for row in some
        ]


@given(LINES, st.sampled_from(SEQUENCES), st.sampled_from([1, 2, 4, 20]))
@example('a!\n \n\t 1bbbbbb', DEEPSEEK, 4)
@example('12345\0\0\0aaaaa  ', DEEPSEEK, 4)
def test_the_parts_of_a_row_have_its_tokens(row, expressions, longest):
    data = row.encode()
    text = read_only(np.frombuffer(data + b'a1 ' * READABLE, np.uint8))
    bounds = (read_only(np.array([place], np.int64)) for place in (0, len(data)))
    found = []
    for part in SequencePreTokenizer(trees_of(expressions)).row_parts(
        TextRows(text, *bounds), 0, longest
    ):
        own = part.text[part.start : part.end].tobytes().decode()
        found += [own] if part.is_long_token else split_by(own, trees_of(expressions))
    assert found == split_by(row, trees_of(expressions))


@pytest.mark.parametrize(
    ('expressions', 'has_kernel'),
    [
        *((expressions, True) for expressions in SEQUENCES),
        ((*GPT2, r'\p{N}'), False),  # after a pattern
        ((r'\p{N}', r'\p{N}{1,3}', *GPT2), False),  # both of numbers
        ((KANA, PUNCTUATION, *GPT2), False),  # a few kana are punctuation
        ((r'\d', *GPT2), False),
        ((r'\p{N}', '[a-z]+'), False),
        ((), False),
    ],
    ids=str,
)
def test_which_sequences_have_a_kernel(expressions, has_kernel):
    assert (sequence_rules(trees_of(expressions)) is not None) == has_kernel
    assert isinstance(pre_tokenizer_of(trees_of(expressions)), SequencePreTokenizer) == has_kernel


def test_pre_tokenizers_of_patterns():
    assert pattern_pre_tokenizer('deepseek') == SequencePreTokenizer(trees_of(DEEPSEEK))
    assert pattern_pre_tokenizer('o200k') == PatternPreTokenizer('o200k')
    assert pattern_pre_tokenizer('none') == SplitPreTokenizer((), 'none')
    # Files have line breaks themselves where others have their escapes.
    spelled = tuple(text.replace(r'\r', '\r').replace(r'\n', '\n') for text in DEEPSEEK)
    assert spelled != DEEPSEEK
    assert dict(pre_tokenizer_of(trees_of(spelled)).options) == {'pattern': 'deepseek'}


def test_it_is_known_by_its_expressions():
    made = SequencePreTokenizer(trees_of(SEQUENCES[1]))
    as_for_regex = [r'\p{N}', GPT2[0].replace(r'\s\p{L}\p{N}', r'\p{L}\p{N}\s')]
    assert (made.name, dict(made.options)) == ('pattern', {'pattern': as_for_regex})
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.tokens('a12 b') == ['a', '1', '2', ' b']
    with pytest.raises(ValueError, match='have no kernel'):
        SequencePreTokenizer(trees_of(GPT2))
    assert {rules.characters for rules in RUNS.values()} == {
        'numbers', 'punctuation', 'kana and ideographs',
    }  # fmt: skip
    assert split('12345', 'deepseek') == ['123', '45']
