"""The encoder and its files against Tensor2Tensor's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t import alphabet_of, escape_token, unescape_token

any_text = st.text(st.characters(exclude_categories=[]))
familiar_text = st.text(st.sampled_from('abc _\\u;01,\n\r\téß字𝄞\u0301\u3000'))
texts = st.one_of(any_text, familiar_text)
subtokens = st.lists(st.text(st.sampled_from('abc_\\u;01, éß字𝄞'), max_size=5), max_size=30)
CHARACTERS = list('\\_u;0123456789<pad>EOS')  # what each vocabulary has at least


def both(t2t_text_encoder, vocabulary):
    theirs = t2t_text_encoder.SubwordTextEncoder()
    theirs._init_subtokens_from_list(list(vocabulary))
    theirs._init_alphabet_from_tokens(vocabulary)
    # A short cache, since making one of 2^20 places for each example takes a while.
    theirs._cache_size, theirs._cache = 64, [(None, None)] * 64
    return theirs, SubwordTextEncoder(vocabulary)


@given(words=subtokens, old=st.booleans(), texts=st.lists(texts, max_size=5))
def test_encoding_and_decoding(t2t_text_encoder, words, old, texts):
    reserved = ['<pad>', '<EOS>'] if old else ['<pad>_', '<EOS>_']
    characters = sorted(set(''.join(words)))
    theirs, ours = both(t2t_text_encoder, [*reserved, *words, *CHARACTERS, *characters, *words[:3]])
    for text in texts:
        ids = theirs.encode(text)
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids) == text
        assert ours.decode_list(ids) == theirs.decode_list(ids)


@given(words=subtokens, data=st.data(), strip=st.booleans())
def test_decoding_any_ids(t2t_text_encoder, words, data, strip):
    theirs, ours = both(t2t_text_encoder, ['<pad>_', '<EOS>_', *words, *CHARACTERS])
    ids = data.draw(st.lists(st.integers(0, ours.vocab_size - 1)))
    assert ours.decode(ids, strip) == theirs.decode(ids, strip)
    assert ours.decode_list(ids) == theirs.decode_list(ids)
    for unknown in (-1, ours.vocab_size):  # which Tensor2Tensor leaves out
        with pytest.raises(InputError, match=f'{unknown} is not an id of the vocabulary'):
            ours.decode([*ids, unknown])


@given(texts, st.frozensets(st.characters()))
def test_escaping(t2t_text_encoder, text, characters):
    alphabet = alphabet_of(characters)
    escaped = t2t_text_encoder._escape_token(text, set(alphabet))
    assert escape_token(text, alphabet) == escaped
    assert unescape_token(escaped) == t2t_text_encoder._unescape_token(escaped)
    assert unescape_token(text) == t2t_text_encoder._unescape_token(text)


@settings(max_examples=25)
@given(words=subtokens, text=familiar_text)
def test_files_both_ways(t2t_text_encoder, tmp_path_factory, words, text):
    folder = tmp_path_factory.mktemp('vocabularies')
    theirs, ours = both(t2t_text_encoder, ['<pad>_', '<EOS>_', *words, *CHARACTERS, *'abc, éß字𝄞'])
    theirs.store_to_file(str(folder / 'theirs'))
    ours.save(folder / 'ours')
    assert (folder / 'ours').read_bytes() == (folder / 'theirs').read_bytes()
    loaded = t2t_text_encoder.SubwordTextEncoder(str(folder / 'ours'))
    assert loaded.encode(text) == SubwordTextEncoder.load(folder / 'theirs').encode(text)


LINES = ["'a_'", '"a_"', 'a_', '', "'", "''", '"', ' ', "'a_' \t", "'b\r'", "'\u3000'", '\u2028']


@given(
    lines=st.lists(st.one_of(st.sampled_from(LINES), st.text(st.sampled_from('ab\'" \r\x85')))),
    end=st.sampled_from(['', '\n']),
)
def test_reading_lines_of_any_form(t2t_text_encoder, tmp_path_factory, lines, end):
    path = tmp_path_factory.mktemp('vocabularies') / 'v'
    path.write_bytes(('\n'.join(["'<pad>'", "'<EOS>'", *lines]) + end).encode())
    theirs = t2t_text_encoder.SubwordTextEncoder(str(path))
    assert list(SubwordTextEncoder.load(path).subtokens) == theirs._all_subtoken_strings
