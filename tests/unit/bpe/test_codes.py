"""Codes of subword-nmt and of the textbook: pieces, ids of pieces, and files."""

import pytest

from tokcore.bpe.apply_codes import CodesSegmenter
from tokcore.bpe.codes import (
    NmtVocabulary,
    TextbookVocabulary,
    parse_nmt_codes,
    parse_textbook_codes,
)
from tokcore.bpe.scheme import SCHEME, BpeScheme
from tokcore.errors import InputError
from tokcore.tokenizers import BpeTokenizer

TEXTBOOK = TextbookVocabulary(
    (
        ('t', 'a'), ('ta', 'l'), ('tal', 'l'), ('f', 'a'), ('fa', 's'), ('fas', 't'), ('e', 'r'),
        ('er', '_'), ('tall', '_'), ('fast', '_'),
    ),
    characters='_aeflrst',
)  # fmt: skip

LOW = NmtVocabulary((('l', 'o'), ('lo', 'w</w>'), ('e', 'r</w>'), ('lo', 'w')))


def written(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ('word', 'pieces'),
    [
        ('tallest_', 'tall e s t _'),
        ('fatter_', 'fa t t er_'),
        ('tallést_', 'tall [UNK]'),
        ('tall_', 'tall_'),
        ('fast_', 'fast_'),
        ('é', '[UNK]'),
    ],
)
def test_the_textbook_takes_the_longest_piece(word, pieces):
    assert TEXTBOOK.pieces_in(word) == pieces.split()
    if word.endswith('_'):
        assert CodesSegmenter(TEXTBOOK).lines([f'{word[:-1]}\n']) == [f'{pieces}\n']


@pytest.mark.parametrize(
    ('line', 'pieces'),
    [
        ('low lower lo w', 'low low@@ er l@@ o w'),
        ('  low   lower \r\n', '  low low@@ er \r\n'),
        ('a@@ x\ty', 'a@@ @@@ @ x@@ \t@@ y'),
        ('', ''),
        ('  ', '  '),
        ('\n', '\n'),
        ('日本\u3000語', '日@@ 本@@ \u3000@@ 語'),
    ],
)
def test_lines_of_pieces_as_apply_bpe_writes_them(line, pieces):
    assert CodesSegmenter(LOW).lines([line]) == [pieces]


def test_an_end_of_word_is_not_another_character():
    codes = NmtVocabulary((('l', 'o'), ('lo', 'w</w>')))
    assert codes.pieces_in('lowlow') == ['lo@@', 'w@@', 'low']
    assert codes.pieces_in('o') == ['o']


def test_pieces_have_ids_if_a_list_of_them_is_there(tmp_path):
    path = written(tmp_path, 'x.codes', LOW.dump())
    with pytest.raises(InputError, match='x.codes has no ids.*--pieces --vocab'):
        BpeTokenizer.load(path).encode('low')
    assert BpeTokenizer.load(path).tokenize('low lower') == ['low', 'low@@', 'er']
    written(tmp_path, 'x.vocab', b'<pad>\n</s>\n<unk>\nlow\ner\nlow@@\n')
    tokenizer = BpeTokenizer.load(path)
    assert tokenizer.encode('low lower lo <unk>') == [3, 5, 4, 2, 2, *[2] * 5]
    assert tokenizer.decode([3, 5, 4, 5, 3]) == 'low lower lowlow'
    assert tokenizer.vocab_size == 6
    special = tokenizer.vocabulary.special_ids
    assert (special.pad, special.end, special.unknown) == (0, 1, 2)


def test_a_piece_without_an_id_is_refused_if_there_is_no_unknown_one(tmp_path):
    path = written(tmp_path, 'x.codes', LOW.dump())
    written(tmp_path, 'x.vocab', b'low@@\n')
    for word in ('lower', 'low' * 2000 + 'er'):
        with pytest.raises(ValueError, match=r"the piece 'er' of 'low.* add <unk>"):
            BpeTokenizer.load(path).encode(word)


def test_ids_of_the_textbook(tmp_path):
    path = written(tmp_path, 't.codes', TEXTBOOK.dump())
    written(tmp_path, 't.vocab', b'<unk>\ntall_\ntall\ner_\n')
    tokenizer = BpeTokenizer.load(path)
    assert tokenizer.tokenize('tall fatter é') == ['tall_', 'fa', 't', 't', 'er_', '[UNK]']
    assert tokenizer.encode('tall fatter é') == [1, 0, 0, 0, 3, 0]
    assert tokenizer.decode([1, 2, 3, 1]) == 'tall taller tall'


def test_files_come_back():
    assert parse_nmt_codes(LOW.dump(), 'x') == LOW.merges
    assert LOW.dump() == b'#version: 0.2\nl o\nlo w</w>\ne r</w>\nlo w\n'
    assert parse_nmt_codes(b'#version: 0.2\na b\nc d\na b\n\n', 'x') == (('a', 'b'), ('c', 'd'))
    assert parse_textbook_codes(TEXTBOOK.dump(), 'x') == ('_aeflrst', TEXTBOOK.merges)
    assert SCHEME.recognizes(LOW.dump()) and SCHEME.recognizes(TEXTBOOK.dump())
    assert SCHEME.parse(TEXTBOOK.dump(), 'x.codes') == TextbookVocabulary(
        TEXTBOOK.merges, None, 'x.codes', TEXTBOOK.characters
    )


@pytest.mark.parametrize(
    'data',
    [
        b'l o\n', b'#version: 0.1\nl o\n', b'#version: 0.2\n', b'#version: 0.2\na b c\n',
        b'#version: 0.2\na b\n\nc d\n', b'#version: 0.2\n\xff b\n',
    ],
)  # fmt: skip
def test_damaged_codes_are_refused(data):
    with pytest.raises(InputError, match='^x'):
        parse_nmt_codes(data, 'x')


def test_codes_name_their_scheme():
    assert SCHEME.configured_for(LOW).kind == 'space'
    assert SCHEME.configured_for(TEXTBOOK).preset == 'textbook'
    assert BpeScheme(preset='subword-nmt').vocabulary_name('v', '9') == 'vocab.v.9.codes'
    assert SCHEME.vocabulary_name('v', '9', 'inputs') == 'vocab.v.9.bpe.json.inputs'
    entries = ('<unk>', 'low')
    with pytest.raises(InputError, match='leave out --preset'):
        SCHEME.encoder(NmtVocabulary(LOW.merges, entries))
