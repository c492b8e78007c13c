"""Rows encoded in parts and tokens in windows have the ids that they have as a whole."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.encoding import encoder as encoding_encoder
from tokcore.kernels.bytes import with_margin
from tokcore.subword import text_encoder
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text import pre_tokenizer
from tokcore.text.pre_tokenizer import one_row
from tokcore.text.t2t import T2TPreTokenizer, tokenize

VOCABULARY = [
    '<pad>_', '<EOS>_', 'the_', 'th', 'ca', 'cat', 'catcatcatcat', '127;\\', ';\\12', '字字_', '字',
    *'thecat, <>pdEOSn', *'\\_u;0123456789', '',
]  # fmt: skip
ENCODER = SubwordTextEncoder(VOCABULARY)

words = st.sampled_from(
    ['the', 'cat', '字', 'é', '\\', '_', ',', ', ', ' ', '  ', '\x7f', '𝄞', '\n', '9']
)
pieces = st.tuples(words, st.integers(1, 40)).map(lambda drawn: drawn[0] * drawn[1])
row_texts = st.lists(pieces, max_size=6).map(''.join)


@pytest.fixture
def small_parts(monkeypatch):
    """Rows of a few bytes are long, so are their tokens, and windows are smaller than these."""
    monkeypatch.setattr(encoding_encoder, 'LONG_ROW_BYTES', 30)
    monkeypatch.setattr(encoding_encoder, 'LONG_TOKEN_BYTES', 10)
    monkeypatch.setattr(text_encoder, 'WINDOW_BYTES', 4)
    monkeypatch.setattr(pre_tokenizer, '_TOKENS_AT_ONCE', 80)


class TestParts:
    @pytest.fixture(autouse=True, params=[1 << 16, len(VOCABULARY) - 1], ids=['uint16', 'int32'])
    def _small_parts(self, small_parts, request, monkeypatch):
        monkeypatch.setattr(encoding_encoder, '_UINT16_IDS', request.param)
        self.id_type = np.uint16 if request.param > len(VOCABULARY) else np.int32

    @given(st.lists(row_texts, max_size=5), st.sampled_from(['', 'the ', '字']), st.booleans())
    @example(['the ' + 'cat' * 30 + ' the , ' + 'cat' * 30], '', True)
    @example(['cat' * 30 + ' ', ' ' * 50 + 'cat'], '', False)
    def test_long_rows_have_the_ids_of_their_tokens(self, texts, prefix, eos):
        encoded = ENCODER.row_encoder().encode_side(side_of(texts), prefix, [7] * eos, [1] * eos)
        is_long = any(len((prefix + text).encode()) > 30 for text in texts)
        assert encoded.ids.dtype == (self.id_type if is_long else np.int32)
        rows = [ids.tolist() for ids in np.split(encoded.ids, encoded.offsets[1:-1])]
        assert rows[: len(texts)] == [
            [7] * eos
            + [id_ for token in tokenize(prefix + text) for id_ in plain_ids(token)]
            + [1] * eos
            for text in texts
        ]

    @given(row_texts)
    def test_the_parts_of_a_row_have_its_tokens(self, text):
        data = text.encode()
        row = one_row(with_margin(np.frombuffer(data, np.uint8)), 0, len(data))
        found = []
        for _, start, end, is_long in T2TPreTokenizer().row_parts(row, 0, 10):
            tokens = list(tokenize(data[start:end].decode()))
            assert not is_long or (len(tokens) == 1 and end - start > 10)
            assert is_long or all(len(token.encode()) <= 10 for token in tokens)
            found += tokens
        assert found == list(tokenize(text))

    @pytest.mark.parametrize('place', [0, 1, 50, 199])
    def test_what_no_subtoken_begins_is_shown_and_no_more_of_it(self, place):
        encoder = SubwordTextEncoder(['<pad>_', '<EOS>_', 'a', '_', '\\']).row_encoder()
        text = 'a' * place + '9' + 'a' * 200
        with pytest.raises(ValueError, match=r"begins '9a{0,60}', in a token of \d+ bytes"):
            encoder.encode_side(side_of([text]))

    def test_what_follows_a_window_may_decide_on_a_cut(self):
        # 'ab' begins subtokens, but neither of its letters is one.
        encoder = SubwordTextEncoder(['<pad>_', '<EOS>_', 'abab', 'ababab_', 'abc', '_'])
        for count in range(20, 40):
            encoded = encoder.row_encoder().encode_side(side_of(['ab' * count]))
            wholes, rest = divmod(count, 2)
            expected = [2] * wholes + [5] if not rest else [2] * (wholes - 1) + [3]
            assert encoded.ids.tolist() == expected


def plain_ids(token):
    """Cuts an escaped token from the left, by trying all lengths."""
    alphabet = set(''.join(VOCABULARY)) - set('\\_\n')
    spelled = {'\\': '\\\\', '_': '\\u'}
    escaped = ''.join(
        spelled.get(each) or (each if each in alphabet else f'\\{ord(each)};') for each in token
    ) + '_'  # fmt: skip
    ids = {subtoken: number for number, subtoken in enumerate(VOCABULARY) if subtoken}
    found = []
    while escaped:
        size = next(size for size in range(len(escaped), 0, -1) if escaped[:size] in ids)
        found.append(ids[escaped[:size]])
        escaped = escaped[size:]
    return found


def test_ids_around_a_long_row_may_be_above_those_of_the_model(small_parts):
    side = side_of(['the ' + 'cat' * 30])
    encoded = ENCODER.row_encoder().encode_side(side, before=[70_000], after=[1 << 16])
    assert encoded.ids[[0, -1]].tolist() == [70_000, 1 << 16]


def test_a_row_of_a_megabyte_is_encoded_in_parts_by_default():
    text = 'the ' + 'cat' * 100_000 + ', ' + '\x7f' * 1_500 + ' the'
    ids = ENCODER.row_encoder().encode_side(side_of([text]), after=[1]).ids.tolist()
    assert ids == [id_ for token in tokenize(text) for id_ in ENCODER.encode(token)] + [1]
    assert len(text) > encoding_encoder.LONG_ROW_BYTES
