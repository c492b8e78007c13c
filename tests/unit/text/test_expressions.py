"""Expressions of two dialects: what they match as their engines do, and what is refused.

`tests/neighbours/test_expressions.py` compares random ones with the engines.
"""

import itertools
import pickle

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from tokcore.encoding.encoder import UnmatchedText
from tokcore.foreign_tokenizers.pre_tokenizers import parse_cutting
from tokcore.text.byte_level_scan import PatternPreTokenizer
from tokcore.text.expression_trees import compiled, leaves_text, may_be_empty, spelled
from tokcore.text.expressions import ExpressionError, fancy_regex, oniguruma
from tokcore.text.patterns import DEFINITIONS, named_pattern
from tokcore.text.pre_tokenizer import TextRows
from tokcore.text.regex_splits import Split, SplitPreTokenizer, replacing
from tokcore.text.rows import Side
from tokcore.text.split_sequence import SequencePreTokenizer

READERS = {'Oniguruma': oniguruma, 'fancy-regex': fancy_regex}
CL100K = DEFINITIONS['cl100k'].expressions[0]


def found(read, expression, text):
    return [match[0] for match in compiled(read(expression)).finditer(text)]


@pytest.mark.parametrize(
    ('expression', 'text', 'by_oniguruma', 'by_fancy_regex'),
    [
        (r'\p{N}{1,3}+', '12345', ['12345'], ['123', '45']),
        ('a{2}?', 'aaa', ['aa', '', ''], ['aa']),
        ('a++', 'aa', ['aa'], ['aa']),
        (r'\w', 'Ⅳⓐᛮ²\u200d', ['Ⅳ', 'ⓐ', 'ᛮ', '²'], ['Ⅳ', 'ⓐ', 'ᛮ', '\u200d']),
        (r'[\w]', 'Ⅳ²\u200d', ['Ⅳ'], ['Ⅳ', '\u200d']),
        (r'\bb', '²b', [], ['b']),
        ('[[:punct:]]', '!$€—', ['!', '$', '€', '—'], ['!', '$']),
        ('[[:^alpha:]]', 'aé1', ['1'], ['é', '1']),
        ('[a-z&&[^aeiou]x]', 'abx', ['b', 'x'], ['b', 'x']),
        ('[^a[b-c]]', 'abcd', ['d'], ['d']),
        ('(?i:ss)', 'sSßẞ', ['sS', 'ß', 'ẞ'], ['sS']),
        ('(?i:sss)', 'ßsss', ['ßs'], ['sss']),
        ('(?i:s(?:t))', 'ST\ufb06', ['ST', '\ufb06'], ['ST']),
        ('(?i:ß)', 'ssß', ['ss', 'ß'], ['ß']),
        ('(?i:[ß])', 'ssß', ['ss', 'ß'], ['ß']),
        ('(?i:[^k])', 'K\u212ab', ['b'], ['b']),
        ('(?i:i)', 'iIİı', ['i', 'I'], ['i', 'I']),
        (r'(?i:\p{Lu})', 'aA', ['A'], ['a', 'A']),
        (r'(?i:[\p{Lu}])', 'aA', ['a', 'A'], ['a', 'A']),
        ('.', 'a\n', ['a'], ['a']),
        ('^', 'a\n', [''], ['']),
        ('a$', 'a\na', ['a', 'a'], ['a']),
        (r'a\Z', 'a\n\n', [], ['a']),
        (r'a\z', 'a\na', ['a'], ['a']),
        (r'\Aa|b', 'aab', ['a', 'b'], ['a', 'b']),
        (r'(?:x)(a|b)\1', 'xaaxb', ['xaa'], ['xaa']),
        ('x(?i)a|B', 'xAxbb', ['xA', 'xb'], ['xA', 'b', 'b']),
        (r'(?<=\d(?=x))x', '1xx', ['x'], ['x']),
        (r'[\p{Ll}]', 'aʕ', ['a', 'ʕ'], ['a', 'ʕ']),
        (r'[]a]|[^\]]|\u0062{,1}', 'a]', ['a', ']', ''], ['a', ']', '']),
    ],
)  # fmt: skip
def test_each_engine_has_its_way(expression, text, by_oniguruma, by_fancy_regex):
    assert found(oniguruma, expression, text) == by_oniguruma
    assert found(fancy_regex, expression, text) == by_fancy_regex


def test_what_only_one_engine_has():
    assert found(oniguruma, '(?m:.)', 'a\n') == ['a', '\n']
    assert found(fancy_regex, '(?s:.)', 'a\n') == ['a', '\n']
    assert found(fancy_regex, '(?m:^a$)', 'a\na') == ['a', 'a']
    assert found(fancy_regex, '[a-d--b]', 'abc') == ['a', 'c']
    assert found(fancy_regex, '[ab~~bc]', 'abc') == ['a', 'c']
    assert found(fancy_regex, r'\pL1', 'a1b') == ['a1']


@pytest.mark.parametrize(
    ('expression', 'said'),
    [
        ('', 'there is nothing at character 1'),
        ('ab)', r'a \) without its \( at character 3'),
        ('a(b', r'a \( without its \) at character 2'),
        ('a[b', r'a \[ without its \] at character 2'),
        ('a|*', 'a repeat of nothing at character 3'),
        ('(?=a)+', r'\+ with nothing to repeat at character 6'),
        ('(?:a?)*', r'\* after what may match nothing at character 7'),
        ('a{3,1}', r'the repeat \{3,1\} at character 2'),
        ('a{1001}', r'the repeat \{1001\} at character 2'),
        (r'a\X', r'\\X at character 2'),
        (r'\K', r'\\K at character 1'),
        (r'a\p{Odd}', r'\\p\{Odd\} at character 2'),
        (r'\x{110000}', 'which is no character at character 1'),
        ('[a&&]', 'nothing on a side of an operator at character 5'),
        ('[a-z-9]', 'a - that is no range; write .* at character 5'),
        ('[z-a]', 'a range without its end at character 2'),
        (r'[a-\d]', 'a range without its end at character 2'),
        ('[[:odd:]]', r'\[:odd:\] at character 2'),
        ('(?~ab)', r"a group with '\(\?~a' at character 1"),
        ('(?(1)a)', 'a group with'),
        ('(*FAIL)', 'a group with'),
        ('(?a:b)', r'the flags \(\?a: at character 1'),
        (r'(a)\2', 'a reference to 2, which may be none'),
        (r'(a\1)', 'a reference to 1, which may be none'),
        (r'(?i:(a)\1)', 'a reference to 1, which may be none or in any case'),
        ('(?<=a++)b', r'an atomic part of a look-behind at character 6'),
        ('a(?<n>a)', r"a group with '\(\?<n' at character 2"),
        ('a(?#b)', 'a group with'),
        ('(?x: a)', r'the flags \(\?x: at character 1'),
        (r'(a)\k<1>', r'\\k at character 4'),
        ('a\\', 'the end at character 3'),
    ],
)
@pytest.mark.parametrize('read', READERS.values(), ids=READERS)
def test_what_a_grammar_lacks_is_refused_with_its_place(read, expression, said):
    with pytest.raises(ExpressionError, match=said):
        read(expression)


@pytest.mark.parametrize(
    ('read', 'expression', 'said'),
    [
        (oniguruma, '(?s:.)', r'the flags \(\?s: at character 1'),
        (oniguruma, r'\xe9', 'which is no character'),
        (oniguruma, r'\pL', r'\\pL'),
        (oniguruma, '(?i:(?<=[ß]))', 'several in another case, in a look-behind at character 9'),
        (fancy_regex, 'a{2}{3}', r'\{3\} with nothing to repeat at character 5'),
        (fancy_regex, '(a(?i)b)', 'flags for the rest of a group at character 3'),
        (fancy_regex, r'\<a', r'\\< at character 1'),
        (fancy_regex, r'\b{start}', r'\\b at character 1'),
        (fancy_regex, r'\p{alnum}', r'\\p\{alnum\}'),
    ],
)
def test_what_only_one_grammar_lacks(read, expression, said):
    with pytest.raises(ExpressionError, match=said):
        read(expression)


@given(st.text(st.sampled_from("ab(?:|)[^-&]{1,}*+\\pLdi<=!.$'k"), max_size=16))
def test_any_text_is_read_or_refused(text):
    for read in READERS.values():
        try:
            tree = read(text)
        except ExpressionError as error:
            assert 0 <= error.position <= len(text)
        else:
            regex.compile(spelled(tree), regex.VERSION1)
            assert pickle.loads(pickle.dumps(tree)) == tree


@pytest.mark.parametrize('read', READERS.values(), ids=READERS)
@pytest.mark.parametrize('name', DEFINITIONS)
def test_the_tree_selects_the_pattern(read, name):
    expressions = DEFINITIONS[name].expressions
    assert named_pattern([*map(read, expressions)]) == name
    others = [
        expression.replace(r'\r', '\r').replace(r'\n', r'\x0a').replace(r'\p{L}', r'[\p{l}]')
        .replace(r'\S', r'[^\s]').replace(r'\p{N}', r'\P{^N}').replace('?:', '')
        for expression in expressions
    ]  # fmt: skip
    assert named_pattern([*map(read, others)]) == name


@pytest.mark.parametrize(
    'expression',
    [
        CL100K.replace(r'\p{N}{1,3}', r'\p{Nd}{1,3}'),
        CL100K.replace(r'\p{L}++', r'\p{L}+?'),
        CL100K.replace('?i', '?-i'),
        CL100K + '|a',
    ],
)
def test_another_tree_does_not(expression):
    for read in READERS.values():
        assert named_pattern([read(expression)]) is None


def test_a_possessive_number_is_three_digits_to_one_engine_alone():
    spelled_by_tiktoken = CL100K.replace('{1,3}', '{1,3}+')
    assert named_pattern([fancy_regex(spelled_by_tiktoken)]) == 'cl100k'
    assert named_pattern([oniguruma(spelled_by_tiktoken)]) is None


def _cutting(*parts):
    sequence = {'type': 'Sequence', 'pretokenizers': [*parts]}
    return parse_cutting(sequence, 'tokenizer.json', '$.pre_tokenizer').pre_tokenizer


def _split(expression, behavior='Isolated', invert=False):
    pattern = {'Regex': expression}
    return {'type': 'Split', 'pattern': pattern, 'behavior': behavior, 'invert': invert}


def test_files_get_kernels_by_their_trees():
    byte_level = {'type': 'ByteLevel', 'add_prefix_space': False}
    respelled = CL100K.replace(r'[\r\n]', r'[\n\r]')
    assert respelled != CL100K
    assert _cutting(_split(respelled)) == PatternPreTokenizer('cl100k')
    assert _cutting(_split(CL100K, 'Removed', True)) == PatternPreTokenizer('cl100k')
    digits = _cutting(_split(r'[\p{N}]'), byte_level)
    assert digits == _cutting({'type': 'Digits', 'individual_digits': True}, byte_level)
    assert isinstance(digits, SequencePreTokenizer)
    assert isinstance(_cutting(_split(r'\d'), byte_level), SplitPreTokenizer)


@pytest.mark.parametrize(
    ('expression', 'text', 'tokens'),
    [
        ('(?=b)', 'abab', ['a', 'ba', 'b']),
        ('b*|cc', 'bcc', ['b', 'c', 'c']),  # at c there is an empty match, so no cc is looked for
        ('$', 'a\nb\n', ['a', '\nb', '\n']),
        ('^', 'a\nb\n', ['a\n', 'b\n']),
        (r'\G\w', 'ab cd', ['a', 'b', ' cd']),
        (r'\Ga?', 'ab aa', ['a', 'b', ' ', 'a', 'a']),
        (r'a|\b', 'ab a', ['a', 'b', ' ', 'a']),
    ],
)
def test_empty_matches_cut_as_those_of_oniguruma(expression, text, tokens):
    tree = oniguruma(expression)
    cuts = Split(spelled(tree)).cuts(text)
    assert [text[start:end] for start, end in cuts if start < end] == tokens


def test_replacing_takes_each_match():
    assert replacing(oniguruma(r'\s{2,}|a'), '_')('a  b \n') == '__b_'
    assert replacing(oniguruma('(?=b)'), '-')('abb') == 'a-b-b'


@pytest.mark.parametrize(
    ('expression', 'leaves'),
    [
        (r'\w+|\s|[^\w\s]', False),
        (r'[^\s]?\s+|[^\s]', False),
        (r' ?\p{L}+| ?\p{N}++| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+', False),
        (r'[^\r\n\p{L}\p{N}]?+\p{L}++|\P{L}', False),
        (r'\p{L}?+\p{L}|\P{L}', True),  # the first part takes a letter and keeps it
        (r'\w+|\s', True),
        (r'.', True),
        (r'\s+(?!\S)|\S', True),
        (r'\b\w|\W', True),
        (r'(?:ab?)+|[^a]', False),
    ],
)
def test_which_expressions_leave_text(expression, leaves):
    assert leaves_text(fancy_regex(expression)) == leaves


@given(st.lists(st.text('ab é1字\n', max_size=9), max_size=5), st.integers(1, 9))
def test_unmatched_text_is_what_is_in_no_token(texts, most):
    split = Split(spelled(fancy_regex(r'\p{L}b?|1(?!a)')), 'Removed', True)
    rows = [text.encode() for text in texts]
    ends = np.cumsum([len(row) + 1 for row in rows]).astype(np.int64) - 1
    starts = ends - np.array([len(row) for row in rows], np.int64)
    data = np.frombuffer(b''.join(row + b'\xff' for row in rows) + b'\xff', np.uint8)
    size, counted = UnmatchedText(SplitPreTokenizer((split,))).count(Side(data, starts, ends), most)
    lost = [regex.sub(r'\p{L}b?|1(?!a)', '', text) for text in texts]
    assert size == len(''.join(lost).encode())
    expected = {each: ''.join(lost).count(each) for each in ''.join(lost)}
    ordered = sorted(expected.items(), key=lambda item: (-item[1], item[0]))
    assert counted == dict(ordered[:most])


def test_what_may_be_empty():
    empty = [r'a*', r'a?|b', '(?=a)', r'\b', '^', '(?:a|)', r'(a?)\1']
    full = ['a', 'a+|b', r'(?=a)a', 'a{2}', '(?>a|b)']
    assert [may_be_empty(oniguruma(each)) for each in empty + full] == [True] * 7 + [False] * 5


@given(
    st.lists(st.text("ab é1字\n'", max_size=12), max_size=6),
    st.sampled_from(
        [
            [(r'\w+|\W', 'Isolated', False)],  # matches all
            [(r'\w+|\W', 'Removed', True)],
            [(r'\w+', 'Isolated', False)],  # leaves text between
            [(r'\w+', 'Removed', True)],
            [(r'\w*', 'Isolated', False)],  # matches nothing too
            [(r'(\w)\1|[^a]', 'Isolated', False)],
            [(r'\w+', 'MergedWithNext', False)],
            [(r'\s', 'Removed', False), (r'1|\w', 'Isolated', False)],
        ]
    ),
)
def test_rows_of_a_block_are_cut_as_each_by_itself(texts, splits):
    made = [
        Split(spelled(oniguruma(expression)), behavior, invert)
        for expression, behavior, invert in splits
    ]
    data, bounds = b'xx', []
    for text in texts:
        bounds.append((len(data), len(data) + len(text.encode())))
        data += text.encode() + 'é'.encode()
    starts, ends = np.array(bounds, np.int64).reshape(-1, 2).T
    pre_tokenizer = SplitPreTokenizer(tuple(made))
    tokens, text = pre_tokenizer.prepare(TextRows(np.frombuffer(data, np.uint8), starts, ends))
    places = zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)
    found = [text[start:end].tobytes().decode() for start, end in places]
    expected = [pre_tokenizer.tokens(each) for each in texts]
    assert found == [token for row in expected for token in row]
    assert tokens.row_tokens.tolist() == [0, *itertools.accumulate(map(len, expected))]
