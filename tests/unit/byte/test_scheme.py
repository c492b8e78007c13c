"""Bytes: an id for each, whatever the text and however long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.byte.scheme import SCHEME
from tokcore.errors import InputError
from tokcore.tokenizers import ByteTokenizer

TOKENIZER = ByteTokenizer.load()


@given(st.text())
def test_any_text_comes_back(text):
    ids = TOKENIZER.encode(text)
    assert ids == [byte + 2 for byte in text.encode('utf-8', 'surrogatepass')]
    assert TOKENIZER.decode(ids) == text


@pytest.mark.parametrize('size', [63, 64, 65, 300_000])
def test_texts_of_any_length(size):
    assert TOKENIZER.encode('a' * size) == [99] * size


def test_what_is_not_utf_8_is_shown_as_such():
    assert TOKENIZER.decode([1, 230, 99, 0]) == '<EOS>\ufffda<pad>'
    assert TOKENIZER.tokenize('é') == [b'\xc3', b'\xa9']


def test_there_is_no_file():
    with pytest.raises(InputError, match='leave --vocab out'):
        SCHEME.parse(b'', 'vocab')
    with pytest.raises(ValueError):
        SCHEME.fixed.dump()
