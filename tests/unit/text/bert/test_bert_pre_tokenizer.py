"""The kernel gives the plain rules' tokens wherever it stops, and for rows of any length."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.text.bert.bert_pre_tokenizer import BertPreTokenizer
from tokcore.text.padded_text import TextRows, one_row, with_margin
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, ScannedTokens, scan_tokens

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


def scanned(rows, pre_tokenizer, room):
    """The tokens of rows, found so many at a time."""
    state, text = pre_tokenizer.prepare(rows)
    starts = np.empty(room + CHUNK_TOKENS, np.uint64)
    tokens = ScannedTokens(text, starts, np.empty_like(starts), np.zeros(len(rows.starts) + 1, np.int64))
    found = [[] for _ in rows.starts]
    row, position = 0, -1
    while row < len(rows.starts):
        first, (row, position, count) = row, scan_tokens(rows, row, position, state, tokens)
        bounds = zip(tokens.starts[:count].tolist(), tokens.ends[:count].tolist())
        words = [text[begin:end].tobytes().decode() for begin, end in bounds]
        done = 0
        for each in range(first, row):
            end = int(tokens.row_tokens[each + 1])
            found[each] += words[done:end]
            done = end
        if row < len(rows.starts):
            found[row] += words[done:]
    return found


@pytest.mark.parametrize('pre_tokenizer', KINDS, ids=str)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from([1, 3, 500]))
@settings(max_examples=60, deadline=None)
def test_rows_are_gone_on_with_anywhere(pre_tokenizer, texts, room):
    assert scanned(rows_of(texts), pre_tokenizer, room) == [
        pre_tokenizer.tokens(text) for text in texts
    ]


@pytest.mark.parametrize('pre_tokenizer', KINDS, ids=str)
@pytest.mark.parametrize(
    'text',
    ['word, ' * 30_000, '中文字' * 60_000, 'x' * 200_000 + ' é ' + 'y' * 2_000, '한글' * 20_000 + ' a'],
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
