"""BERT's pre-tokenizer: special tokens, and where rows may be cut."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanned_tokens import scanned

from tokcore.kernels.bytes import with_margin
from tokcore.text.bert import BertPreTokenizer, RowCuts, cut_places
from tokcore.text.pre_tokenizer import TextRows, one_row

SPECIAL = ('[MASK]', '[UNK]')
TEXTS = st.lists(
    st.one_of(
        st.characters(exclude_categories=['Cs']),
        st.sampled_from('aB9 .,\t\r\x0b\x7fÉßΣé中文한\u0301\u200b\u037e\u0345'),
        st.sampled_from(['[MASK]', 'word ', 'x' * 70]),
    )
).map(''.join)
KINDS = [
    BertPreTokenizer(),
    BertPreTokenizer(lower_case=False),
    BertPreTokenizer('bert-original', strip_accents=False, split_cjk=False),
    BertPreTokenizer(special_tokens=SPECIAL),
]


def rows_of(texts):
    data = [text.encode() for text in texts]
    ends = np.cumsum([len(each) for each in data], dtype=np.int64)
    starts = ends - [len(each) for each in data]
    return TextRows(with_margin(np.frombuffer(b''.join(data), np.uint8)), starts, ends)


@pytest.mark.parametrize('pre_tokenizer', KINDS, ids=str)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from([1, 3, 500]))
def test_rows_are_gone_on_with_anywhere(pre_tokenizer, texts, room):
    assert scanned(rows_of(texts), pre_tokenizer, room) == [
        pre_tokenizer.tokens(text) for text in texts
    ]


@pytest.mark.parametrize('pre_tokenizer', KINDS, ids=str)
@pytest.mark.parametrize(
    'text',
    [
        'word, ' * 10_000,
        '中文字' * 20_000,
        'x' * 70_000 + ' é ' + 'y' * 2_000,
        '한글' * 7_000 + ' a',
    ],
    ids=['words', 'ideographs', 'long words', 'syllables'],
)
def test_parts_of_a_long_row_have_its_tokens(pre_tokenizer, text):
    rows = rows_of([text])
    found = []
    for part in pre_tokenizer.row_parts(rows, 0, 1024):
        if part.is_long_token:
            found.append(part.text[part.start : part.end].tobytes().decode())
        else:
            [tokens] = scanned(one_row(part.text, part.start, part.end), pre_tokenizer, 500)
            assert all(len(token.encode()) <= 1024 for token in tokens)
            found += tokens
    assert found == pre_tokenizer.tokens(text)


def test_it_goes_to_workers():
    for each in KINDS:
        assert pickle.loads(pickle.dumps(each)) == each
    assert KINDS[1].options == {'lower_case': False, 'split_cjk': True, 'strip_accents': False}


def test_no_special_token_is_empty():
    with pytest.raises(ValueError, match='a special token is empty'):
        BertPreTokenizer(special_tokens=('[MASK]', ''))


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
