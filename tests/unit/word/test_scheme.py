"""Whole words: which have ids, what becomes of others, and files of them."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.vocabulary import SpecialIds
from tokcore.errors import InputError
from tokcore.text.rows import Side
from tokcore.tokenizers import WordTokenizer
from tokcore.word.scheme import SCHEME, WordOptions, WordScheme, WordVocabulary, parse_words

COUNTS = {'b': 3, 'a': 3, 'é': 3, 'rare': 1, '<s>': 9, 'often': 7}
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(' a\t\n\r\x1c\x85\xa0\u2003\u3000')))


def learned(**options):
    table = TokenTable.from_items(COUNTS.items())
    found = SCHEME.learn(table, WordOptions(**options), lambda *_: None)
    return found.vocabulary.words


def test_words_stand_by_their_counts_and_ties_by_code_point():
    first = ('<unk>', '<s>', '</s>')
    assert learned(vocab_size=99) == (*first, 'often', 'a', 'b', 'é', 'rare')
    assert learned(vocab_size=5) == (*first, 'often', 'a')
    assert learned(vocab_size=2) == first
    assert learned(min_count=3) == (*first, 'often', 'a', 'b', 'é')
    assert learned(vocab_size=5, special_tokens=('<pad>', '<EOS>')) == (
        '<pad>', '<EOS>', '<s>', 'often', 'a'
    )  # fmt: skip
    assert learned(vocab_size=5, special_tokens=(*first, '[X]')) == (*first, '[X]', 'often')
    with pytest.raises(InputError, match='--vocab-size is missing; give it, or --min-count'):
        learned()


def test_a_file_is_named_by_its_size_or_its_min_count():
    assert WordOptions(vocab_size=9, min_count=2).size_label == '9'
    name = SCHEME.vocabulary_name('x', WordOptions(vocab_size=None, min_count=2).size_label)
    assert name == 'vocab.x.min-count-2.words.txt'


@given(st.lists(TEXTS, max_size=6), st.sampled_from(['space', 'unicode']))
def test_words_of_any_text(texts, split):
    vocabulary = WordVocabulary(['<unk>', '<s>', '</s>', 'a', 'aa', '\t', 'é' * 40])
    encoder = WordScheme(split).encoder(vocabulary)
    data = [text.encode('utf-8', 'surrogatepass') for text in texts]
    ends = np.cumsum([len(each) for each in data], dtype=np.int64)
    side = Side(np.frombuffer(b''.join(data), np.uint8), ends - [len(each) for each in data], ends)
    encoded = encoder.encode_side(side)
    rows = [
        encoded.ids[encoded.offsets[row] : encoded.offsets[row + 1]].tolist()
        for row in range(len(texts))
    ]
    split_text = str.split if split == 'unicode' else lambda text: re.split('[ \n\r]', text)
    assert rows == [
        [vocabulary.id_of(word) or 0 for word in split_text(text) if word] for text in texts
    ]


def test_long_rows_and_long_words_are_like_others():
    tokenizer = WordTokenizer(WordVocabulary(['<unk>', 'word', 'x' * 5000]))
    text = f'word {"x" * 5000} {"y" * 5000} ' * 60
    assert tokenizer.encode(text) == [1, 2, 0] * 60
    assert tokenizer.decode([1, 0]) == 'word <unk>'


def test_unknown_words_may_be_refused():
    vocabulary = WordVocabulary(['<unk>', 'known'])
    with pytest.raises(ValueError, match="the word 'other' is not in the vocabulary; give"):
        WordTokenizer(vocabulary, unknown='stop').encode('known other')
    with pytest.raises(ValueError, match="'other' is not in the vocabulary"):
        WordTokenizer(WordVocabulary(['known'])).encode('other')


def test_files_come_back(tmp_path):
    words = ['<unk>', '<s>', '</s>', 'a\rb', '\u2028', 'tab\t']
    path = tmp_path / 'words.txt'
    path.write_bytes(WordVocabulary(words).dump())
    tokenizer = WordTokenizer.load(path)
    assert list(tokenizer.vocabulary.words) == words
    assert tokenizer.vocabulary.special_ids == SpecialIds(begin=1, end=2, unknown=0)
    assert SCHEME.recognizes(path.read_bytes()) and not SCHEME.recognizes(b'<unk>\na\nb\n')
    for wrong in (['a', 'a'], [''], ['a\nb']):
        with pytest.raises(ValueError):
            WordVocabulary(wrong).dump()


@pytest.mark.parametrize(
    ('data', 'said'),
    [
        (b'a\n\nb\n', 'line 2 is blank'),
        (b'a\nb\na\n', "line 3: 'a' is on line 1 too"),
        (b'a\n\xff\n', 'invalid UTF-8 at byte 2'),
        (b'', 'is empty'),
    ],
)
def test_other_files_are_refused(data, said):
    with pytest.raises(InputError, match=f'^words.txt.*{said}'):
        parse_words(data, 'words.txt')
