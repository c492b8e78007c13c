"""Tensor2Tensor's SubwordTextEncoder, and the file of its vocabulary."""

import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.subword.text_encoder import SubwordTextEncoder, dump_vocabulary, parse_vocabulary

RESERVED = ['<pad>_', '<EOS>_']
ESCAPING = list('\\_u;0123456789')
CHARACTERS = [*ESCAPING, *'<pad>EOS']  # a vocabulary has each character of its subtokens
SMALL = [*RESERVED, 'the_', 'c', 'at_', 't', 'h', 'e', 'the', *CHARACTERS]

any_text = st.text(st.characters(exclude_categories=[]))
familiar_text = st.text(st.sampled_from('aet c_\\u;019\n\r\té字𝄞\u0301'))
long_tokens = st.text(st.sampled_from('aet字𝄞1'), min_size=60, max_size=200)
"""Of more code points than are prefetched at once."""
subtokens = st.lists(st.text(st.sampled_from('aet_\\u;01字𝄞,'), max_size=4), max_size=30)


def plain_tokens(text):
    tokens = re.findall(r'[^\W_]+|[\W_]+', text)
    last = len(tokens) - 1
    return [token for i, token in enumerate(tokens) if token != ' ' or i in (0, last)]


def plain_ids(vocabulary, text):
    """The definition, by slices: what encoding must be equal to."""
    ids = {subtoken: id_ for id_, subtoken in enumerate(vocabulary) if subtoken}
    alphabet = set(''.join(vocabulary)) | set('\\_u;0123456789')
    encoded = []
    for token in plain_tokens(text):
        spelled = ''
        for character in token:
            if character == '\\':
                spelled += '\\\\'
            elif character == '_':
                spelled += '\\u'
            elif character in alphabet and character != '\n':
                spelled += character
            else:
                spelled += '\\' + str(ord(character)) + ';'
        rest = spelled + '_'
        while rest:
            longest = max(size for size in range(len(rest) + 1) if size == 0 or rest[:size] in ids)
            if longest == 0:
                raise KeyError(rest)
            encoded.append(ids[rest[:longest]])
            rest = rest[longest:]
    return encoded


def test_the_longest_subtoken_is_taken_from_the_left():
    encoder = SubwordTextEncoder([*RESERVED, 'the_', 'c', 'at_', 'cat', *ESCAPING, 'a', 't'])
    assert encoder.encode('the cat') == [2, 5, 7]  # 'cat', '_', not 'c', 'at_'
    assert encoder.decode_list([2, 5, 7]) == ['the_', 'cat', '_']
    assert encoder.decode([2, 5, 7]) == 'the cat'
    assert encoder.encode('') == []


@given(subtokens, st.one_of(any_text, familiar_text, long_tokens))
def test_ids_are_those_of_the_definition(words, text):
    vocabulary = [*RESERVED, *words, *CHARACTERS, *sorted(set(''.join(words)) - set(CHARACTERS))]
    encoder = SubwordTextEncoder(vocabulary)
    assert encoder.encode(text) == plain_ids(vocabulary, text)
    assert encoder.decode(encoder.encode(text)) == text


@given(any_text)
def test_any_text_round_trips_though_the_vocabulary_has_few_characters(text):
    encoder = SubwordTextEncoder(SMALL)
    assert encoder.encode(text) == plain_ids(SMALL, text)
    assert encoder.decode(encoder.encode(text)) == text


@pytest.mark.parametrize('children', [1, 2, 3, 4, 5, 9, 33, 100, 700, 2_000])
def test_a_node_of_the_trie_with_many_children(children):
    codes = np.random.default_rng(children).permutation(20_000)[: 2 * children] + 0x4E00
    present, absent = ([chr(code) for code in half] for half in np.split(codes, 2))
    pairs = ['字' + character for character in present]
    deep = [f'典字{character}_' for character in present]
    vocabulary = [*pairs, *deep, '字', '典', *present, *absent, *ESCAPING]
    encoder = SubwordTextEncoder(vocabulary)
    words = [f'字{a}典字{b}' for a, b in zip(present + absent, absent + present)][:500]
    for word in [*words, *(word[2:] for word in words)]:
        assert encoder.encode(word) == plain_ids(vocabulary, word)


def test_nul_and_the_last_code_point():
    encoder = SubwordTextEncoder(['\0\0', '\0', '\U0010ffff\0', '\U0010ffff', *ESCAPING])
    assert encoder.encode('\0\0\0\U0010ffff\U0010ffff\0') == [0, 1, 3, 2, 5]
    assert SubwordTextEncoder(['\U0010ffff', *ESCAPING]).encode('\0') == [1, 5, 4, 2]


def test_of_equal_subtokens_the_last_is_used_and_empty_ones_only_take_an_id():
    encoder = SubwordTextEncoder([*RESERVED, 'a_', '', 'a_', *ESCAPING])
    assert encoder.encode('a') == [4]
    assert encoder.decode([2, 3, 4]) == 'a a'
    assert encoder.vocab_size == 5 + 14


def test_a_reserved_token_only_matches_a_whole_token():
    encoder = SubwordTextEncoder([*RESERVED, 'foo_', *'<>padEOSf', *ESCAPING, 'o'])
    assert encoder.encode('foo') == [2]
    assert 0 not in encoder.encode('<pad> <EOS>')


def test_decoding_shows_reserved_tokens_unless_they_are_stripped_from_the_end():
    encoder = SubwordTextEncoder(SMALL)
    assert encoder.decode([2, 1, 0]) == 'the<EOS><pad>'
    assert encoder.decode([2, 1, 0], strip_extraneous=True) == 'the'
    assert encoder.decode([1, 2, 1, 0], strip_extraneous=True) == '<EOS>the'
    assert encoder.decode([0, 1], strip_extraneous=True) == ''


@pytest.mark.parametrize('wrong', [-1, len(SMALL), 10**12])
def test_ids_that_there_are_not_are_refused(wrong):
    encoder = SubwordTextEncoder(SMALL)
    for decode in (encoder.decode, encoder.decode_list, encoder.decode_bytes):
        with pytest.raises(InputError, match=f'{wrong} is not an id of the vocabulary, which has'):
            decode([2, wrong, 2])


def test_a_vocabulary_without_the_escape_characters_names_the_rest_of_the_token():
    encoder = SubwordTextEncoder([*RESERVED, 'the_', 'a'])
    assert encoder.encode('the') == [2]
    with pytest.raises(ValueError, match=re.escape(repr('\\23383;_'))):
        encoder.encode('the a字')
    with pytest.raises(ValueError, match="'_'"):
        encoder.encode('a')


def test_a_word_takes_linear_time():
    """A long word of long subtokens: the trie is walked, no substrings are compared."""
    encoder = SubwordTextEncoder([*RESERVED, 'a' * 100, 'a', *ESCAPING])
    assert encoder.encode('a' * 1_000_050) == [2] * 10_000 + [3] * 50 + [5]


def test_a_file_written_and_read_encodes_the_same(tmp_path):
    path = tmp_path / 'v.subwords'
    SubwordTextEncoder([*SMALL, 'a_', "'", '"', ' ', 'a_']).save(path)
    again = SubwordTextEncoder.load(path)
    assert again.subtokens == (*SMALL, 'a_', "'", '"', ' ', 'a_')
    assert path.read_bytes().startswith(b"'<pad>_'\n'<EOS>_'\n'the_'\n")
    assert os.listdir(tmp_path) == ['v.subwords']


def test_a_vocabulary_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / 'v.subwords'
    SubwordTextEncoder(SMALL).save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError):
        SubwordTextEncoder([*SMALL, 'a\n']).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ['v.subwords']


def test_a_missing_file_is_the_users_mistake(tmp_path):
    with pytest.raises(InputError, match='nowhere.subwords'):
        SubwordTextEncoder.load(tmp_path / 'nowhere.subwords')
    with pytest.raises(InputError):
        SubwordTextEncoder.load(tmp_path)


def test_one_quoted_subtoken_a_line():
    assert dump_vocabulary([*RESERVED, 'the_', "'", 'é', ' ']) == (
        "'<pad>_'\n'<EOS>_'\n'the_'\n'''\n'é'\n' '\n".encode()
    )


@pytest.mark.parametrize('wrong', ['a\n', '\n\n', '\r', 'a\rb', '\ud800'])
def test_a_line_feed_alone_has_an_id_and_no_other_subtoken_contains_one(wrong):
    data = dump_vocabulary([*RESERVED, '\n', '\\10;_'])
    assert data.endswith(b"'\n''\n'\\10;_'\n")
    assert parse_vocabulary(data, 'v') == [*RESERVED, '', '\\10;_']
    with pytest.raises(ValueError, match='subtoken 2'):
        dump_vocabulary([*RESERVED, wrong])


@given(
    st.lists(
        st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\r\n'), max_size=5)
    )
)
def test_vocabularies_round_trip(subtokens):
    assert parse_vocabulary(dump_vocabulary(RESERVED + subtokens), 'v') == RESERVED + subtokens


@pytest.mark.parametrize('reserved', [['<pad>', '<EOS>'], ['<pad>_', '<EOS>_'], ['<pad>', '<eos>']])
def test_both_spellings_of_the_reserved_tokens(reserved):
    data = ''.join(f"'{subtoken}'\n" for subtoken in [*reserved, 'a']).encode()
    assert parse_vocabulary(data, 'v') == [*reserved, 'a']


@pytest.mark.parametrize(
    'line, subtoken',
    [
        ("'a_'", 'a_'),
        ('"a_"', 'a_'),
        ('a_', 'a_'),
        ("'a_' \t\u3000", 'a_'),  # whitespace at the end goes before the quotes
        ("' a '", ' a '),
        ("  'a'", "  'a'"),  # whitespace in front stays, so this is unquoted
        ('', ''),
        ("''", ''),
        ("'", ''),
        ("'''", "'"),
        ('\'a"', '\'a"'),  # not a pair
        ("'a\r'\r", 'a'),
        ('\u2028x\x0b\x85y', '\u2028x\x0b\x85y'),  # not line ends
    ],
)
def test_a_line_gives_a_subtoken(line, subtoken):
    data = f"'<pad>'\n'<EOS>'\n{line}\nlast".encode()
    assert parse_vocabulary(data, 'v') == ['<pad>', '<EOS>', subtoken, 'last']


def test_blank_lines_have_ids_and_a_last_line_needs_no_end():
    assert parse_vocabulary(b'<pad>\n<EOS>\n\n\n', 'v') == ['<pad>', '<EOS>', '', '']
    assert parse_vocabulary(b'<pad>\n<EOS>', 'v') == ['<pad>', '<EOS>']


@pytest.mark.parametrize(
    'data',
    [
        b'', b"'<pad>_'\n'<EOS>_'\n'a'\n'\xff'\n", b'hello\nworld\n', b"'<pad>_'\n'the_'\n",
        b"'<pad>_'\n", b'x' * 10_000,
    ],
)  # fmt: skip
def test_other_files_are_refused_by_name(data):
    with pytest.raises(InputError, match='^some/file.subwords: [^\n]{,280}$'):
        parse_vocabulary(data, 'some/file.subwords')
