"""Rows leave the kernel only where normalizing puts characters in order or joins them."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.text.bert.bert_neighbours import find_out_of_order
from tokcore.text.bert.bert_tables import bert_tables
from tokcore.text.padded_text import one_row, with_margin

DECOMPOSED = unicodedata.normalize('NFD', 'Tiếng Việt, é')
ORDERED = [
    'Tiếng Việt', 'हिन्दी में', 'ภาษาไทยที่ดี', 'العَرَب', 'Ünïcödé', 'Русский', '한국어', '中文，。'
]  # fmt: skip


def leaves(text, kind, lower_case, strip):
    data = text.encode()
    row = one_row(with_margin(np.frombuffer(data, np.uint8)), 0, len(data))
    found = np.zeros(1, np.uint8)
    tables = bert_tables(kind, lower_case, strip, True)
    find_out_of_order(row.text, row.starts, row.ends, tables, found)
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
@settings(max_examples=300, deadline=None)
def test_what_is_not_in_its_form_leaves_or_changes_character_by_character(text):
    cleaned = ''.join(each for each in text if unicodedata.category(each)[0] != 'C')
    alone = ''.join(unicodedata.normalize('NFC', each) for each in cleaned)
    if unicodedata.normalize('NFC', cleaned) != alone:
        assert leaves(text, 'bert', False, False)
