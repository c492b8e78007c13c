"""BERT's tokens by kernels, against plain Python; rows whose characters act on each other; where rows are cut."""

import collections
import itertools
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scanned_tokens import scanned

from tokcore.kernels.bytes import READABLE, with_margin
from tokcore.kernels.jit import read_only
from tokcore.text.bert import BertPreTokenizer, RowCuts, cut_places
from tokcore.text.bert_kernels import SOFT_BYTES, bert_tables, mark_rows_to_normalize
from tokcore.text.pre_tokenizer import TextRows, one_row, readable_parts

DECOMPOSED = unicodedata.normalize('NFD', 'Tiếng Việt, é')
ORDERED = [
    'Tiếng Việt', 'हिन्दी में', 'ภาษาไทยที่ดี', 'العَرَب', 'Ünïcödé', 'Русский', '한국어', '中文，。'
]  # fmt: skip

SPECIAL = ('[MASK]', '[SEP]', '<mask>')
PRE_TOKENIZERS = [
    BertPreTokenizer(kind, lower, strip, split, special)
    for kind, lower, strip, split, special in itertools.product(
        ['bert', 'bert-original'], [True, False], [True, False], [True, False], [(), SPECIAL]
    )
]
WORDS = st.one_of(
    st.text(max_size=6),
    st.text(st.sampled_from('abcXYZ019 .,!-'), max_size=70),
    st.text(st.sampled_from('中文字龍，。ａＡ　ひカ\uf900\U00020000'), max_size=25),
    st.text(st.sampled_from('éÀüßЖйΣσςİǅ가각\u1100\u1161\u11a8'), max_size=12),
    st.text(
        st.sampled_from('aिी्\u093c\u0301\u0327\u302e\U0001d165\U0001d15e\u0e38\u0e48'), max_size=5
    ),
    st.sampled_from('\r\t\n\x00\x1f\x7f\u200b\u2028\xa0\u3000'),
    st.sampled_from([*SPECIAL, '[mask]', '<MASK>', '[MA\u200bSK]', '[MÁSK]', '<ma\u0301sk>', '[']),
    st.integers(50, 200).map(lambda count: count * 'x'),
)
LINES = st.lists(WORDS, max_size=8).map(''.join)


def leaves(text, kind, lower_case, strip):
    data = text.encode()
    row = one_row(with_margin(np.frombuffer(data, np.uint8)), 0, len(data))
    found = np.zeros(1, np.uint8)
    tables = bert_tables(kind, lower_case, strip, True)
    mark_rows_to_normalize(row.text, row.starts, row.ends, tables, found)
    return bool(found[0])


@pytest.mark.parametrize('text', [*ORDERED, DECOMPOSED])
def test_by_default_ordinary_text_stays(text):
    assert not leaves(text, 'bert', True, True)
    assert not leaves(text, 'bert', False, True)


@pytest.mark.parametrize('text', ORDERED)
def test_what_is_in_its_form_already_stays_where_marks_are_kept(text):
    assert unicodedata.is_normalized('NFC', text)
    assert not leaves(text, 'bert', False, False)
    assert not leaves(text, 'bert', True, False)


def test_marks_that_join_or_are_out_of_order_leave():
    assert leaves(DECOMPOSED, 'bert', False, False)
    assert leaves('\u0e01\u0e48\u0e38', 'bert', False, False)
    assert leaves('\u0e01\u0e48\u200b\u0e38', 'bert', False, False)  # dropped: they meet
    assert not leaves('\u0e01\u0e48a\u0e38', 'bert', False, False)
    assert not leaves('a\U0001d165\u302e', 'bert', False, False)  # classes 216 and 224
    assert leaves('a\u302e\U0001d165', 'bert', True, True)
    assert not leaves(DECOMPOSED, 'bert-original', False, False)


def test_a_capital_sigma_leaves_where_whole_words_are_lowered():
    assert leaves('ΟΔΟΣ', 'bert-original', True, True)
    assert not leaves('ΟΔΟΣ', 'bert', True, True)
    assert not leaves('ΟΔΟΣ', 'bert-original', False, False)


@given(st.text(st.characters(codec='utf-8', categories=['M', 'L', 'Cf']), max_size=12))
def test_what_is_not_in_its_form_leaves_or_changes_character_by_character(text):
    cleaned = ''.join(each for each in text if unicodedata.category(each)[0] != 'C')
    alone = ''.join(unicodedata.normalize('NFC', each) for each in cleaned)
    if unicodedata.normalize('NFC', cleaned) != alone:
        assert leaves(text, 'bert', False, False)


def padded(lines, between='\n', before=0):
    data = [line.encode('utf-8', 'surrogatepass') for line in lines]
    separator = between.encode()
    lengths = np.array([len(each) for each in data], np.int64)
    ends = before + np.cumsum(lengths + len(separator)) - len(separator)
    text = b'\xff' * before + separator.join(data) + separator
    return np.frombuffer(text, np.uint8), ends - lengths, ends


def rows_of(lines, **how):
    text, starts, ends = padded(lines, **how)
    return TextRows(with_margin(text), read_only(starts), read_only(ends))


@pytest.mark.parametrize('room', [1, 3, 1000])
@given(st.lists(LINES, min_size=1, max_size=4), st.sampled_from(PRE_TOKENIZERS))
@example(['x' * 64, 'x' * 63 + '中', 'x' * 62 + '中' * 40], PRE_TOKENIZERS[0])
@example(['!' * 64 + 'a' * 64 + '!' * 65], PRE_TOKENIZERS[0])
@example(['É' * 70 + 'Σ' * 9 + '\u302e' * 3], PRE_TOKENIZERS[0])
def test_tokens_are_those_of_the_plain_form(room, lines, pre_tokenizer):
    expected = [pre_tokenizer.tokens(line) for line in lines]
    assert scanned(rows_of(lines), pre_tokenizer, room) == expected
    assert all(itertools.chain(*expected))


@given(st.lists(LINES, min_size=1, max_size=3), st.sampled_from(PRE_TOKENIZERS))
def test_what_stands_beside_rows_means_nothing(lines, pre_tokenizer):
    expected = [pre_tokenizer.tokens(line) for line in lines]
    for between in ('', '\u0301', 'x', '[MASK]', 'SK]'):
        rows = rows_of(lines, between=between, before=3)
        assert scanned(rows, pre_tokenizer, 50) == expected


def test_rows_at_the_end_of_a_text_are_read_no_further():
    lines = ['Ça va', 'b' * 200, '中文!']
    text, starts, ends = padded(lines)
    found = []
    for rows in readable_parts(text[: ends[-1]], starts, ends):
        found += scanned(rows, BertPreTokenizer(), 10)
    assert found == [['ca', 'va'], ['b' * 200], ['中', '文', '!']]


@pytest.mark.slow
@pytest.mark.parametrize(
    'line',
    [
        'x' * (3 * SOFT_BYTES),
        'é x' * (SOFT_BYTES // 2),
        ' ' * (2 * SOFT_BYTES) + 'É' * SOFT_BYTES + ' a',
        '한' * (SOFT_BYTES // 2),
        'a\u302e\U0001d165' + 'y' * (2 * SOFT_BYTES),
        '[MASK]' * (SOFT_BYTES // 4),
    ],
    ids=['word', 'words', 'spaces', 'growing', 'leaving', 'special'],
)
def test_rows_are_longer_than_the_buffer_that_is_kept(line):
    lines = ['Ab', line, line, 'cd']
    for special in ((), SPECIAL):
        pre_tokenizer = BertPreTokenizer(special_tokens=special)
        tokens = pre_tokenizer.tokens(line)
        expected = [['ab'], tokens, tokens, ['cd']]
        assert scanned(rows_of(lines), pre_tokenizer, 1000) == expected


def joined_parts(line, pre_tokenizer, longest):
    """A row's tokens by its parts, and how many parts of each sort there are."""
    data = line.encode()
    row = one_row(with_margin(np.frombuffer(b'..' + data, np.uint8)), 2, 2 + len(data))
    found, sorts = [], collections.Counter()
    for text, start, end, is_long in pre_tokenizer.row_parts(row, 0, longest):
        assert end + READABLE <= len(text)
        sorts[is_long] += 1
        if is_long:
            found.append(text[start:end].tobytes().decode())
        else:
            [tokens] = scanned(one_row(text, start, end), pre_tokenizer, 100)
            assert all(len(token.encode()) <= longest for token in tokens)
            found += tokens
    return found, sorts


@given(
    st.lists(st.one_of(LINES, st.characters(codec='utf-8').map(lambda each: 40 * each))).map(
        ''.join
    )
)
@example('ΑΣ.Α ΑΣ,Α' * 3)
@example('=\u0338!\u0301a' * 9)
@example('[MA\u200bSK] 中[MASK]中' * 3)
def test_parts_of_a_row_have_the_tokens_of_the_whole(line):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('tokcore.text.bert.WINDOW', 8)
        for pre_tokenizer in PRE_TOKENIZERS:
            assert joined_parts(line, pre_tokenizer, 10)[0] == pre_tokenizer.tokens(line)


def test_a_long_row_is_cut_in_few_parts():
    line = 'Words of a line, ' * 20_000 + 'é' * 5000 + ' and more' * 20_000
    pre_tokenizer = BertPreTokenizer()
    found, sorts = joined_parts(line, pre_tokenizer, 1000)
    assert found == pre_tokenizer.tokens(line)
    assert sorts[True] < 1000 and sorts[False] < 30


def test_it_travels_and_says_what_it_is():
    pre_tokenizer = BertPreTokenizer('bert-original', lower_case=False, special_tokens=['[X Y]'])
    assert pickle.loads(pickle.dumps(pre_tokenizer)) == pre_tokenizer
    assert hash(pre_tokenizer) == hash(pickle.loads(pickle.dumps(pre_tokenizer)))
    assert pre_tokenizer.name == 'bert-original'
    assert pre_tokenizer.options == {
        'lower_case': False, 'strip_accents': False, 'split_cjk': True
    }  # fmt: skip
    assert scanned(rows_of(['a[X Y]b']), pre_tokenizer, 9) == [['a', '[X Y]', 'b']]


def test_a_special_token_of_nothing_is_refused():
    with pytest.raises(ValueError, match='a special token is empty'):
        BertPreTokenizer(special_tokens=('[X]', ''))


def pieces(text, split_cjk=True, spaces=False):
    data = text.encode()
    array = np.frombuffer(data, np.uint8)
    places = cut_places(array, 0, len(data), split_cjk, spaces).tolist()
    bounds = zip([0, *places], [*places, len(data)], strict=True)
    return [data[start:end].decode() for start, end in bounds]


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('a b\tc\r\nd', ['a ', 'b\t', 'c\r', '\n', 'd']),
        ('(a)b', ['(', 'a)', 'b']),
        ("a'b.c:d^e`f", ["a'b.c:d^e`f"]),  # these do not end a word for a final sigma
        ('!\u0301!a', ['!\u0301!', 'a']),
        ('一二', ['一二']),
        ('見a見', ['見a', '見']),
        ('éé', ['éé']),
    ],
)
def test_places(text, expected):
    assert pieces(text) == expected


def test_only_the_places_that_are_asked_for():
    assert pieces('見見', split_cjk=False) == ['見見']
    assert pieces('(a)b c見見', spaces=True) == ['(a)b ', 'c', '見', '見']


def test_none_is_within_a_special_token():
    text = np.frombuffer(b'ab [X Y] [X Y]', np.uint8)
    special = np.array([3, 9], np.uint64), np.array([8, 14], np.uint64)
    assert RowCuts(text, True, special).between(0, len(text)).tolist() == [3, 9]


def test_the_next_place_is_the_last_within_reach(monkeypatch):
    monkeypatch.setattr('tokcore.text.bert.WINDOW', 6)
    text = np.frombuffer(b'a b c d e' + b'x' * 20 + b' y z', np.uint8)
    cuts = RowCuts(text, True, None)
    ends = [0]
    while ends[-1] < len(text):
        ends.append(cuts.next(ends[-1], len(text)))
    assert ends[:2] == [0, 4] and ends[-1] == len(text)
    assert all(text[end - 1] == ord(' ') for end in ends[1:-1])
    assert max(np.diff(ends)) < 30
