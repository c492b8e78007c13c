"""Whole words: which have ids, what becomes of others, and files of them."""

import json
import re
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.vocabulary import SpecialIds
from tokcore.errors import InputError
from tokcore.text.rows import Side
from tokcore.tokenizers import WordTokenizer
from tokcore.word.scheme import SCHEME, WordOptions, WordScheme, WordVocabulary, read_words

FIRST = ['<unk>', '<s>', '</s>']
MARK = b'\xef\xbb\xbf'
COUNTS = {'b': 3, 'a': 3, 'é': 3, 'rare': 1, '<s>': 9, 'often': 7}
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(' a\t\n\r\x1c\x85\xa0\u2003\u3000')))


def learned(**options):
    table = TokenTable.from_items(COUNTS.items())
    found = SCHEME.learn(table, WordOptions(**options), lambda *_: None)
    return found.vocabulary.pieces


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


@pytest.mark.parametrize(
    'data',
    [
        b'<unk>\r\n<s>\r\n</s>\r\nthe\r\n',
        b'<unk>\r\n<s>\r\n</s>\r\nthe',
        MARK + b'<unk>\n<s>\n</s>\nthe\n',
        MARK + b'<unk>\r\n<s>\r\n</s>\r\nthe\r\n',
        b'<unk> \n<s>\n</s>\n the\n',
    ],
)
def test_line_ends_and_marks_are_not_parts_of_words(data):
    assert read_words(data, 'words.txt') == [*FIRST, 'the']
    assert SCHEME.recognizes(data) == (b' ' not in data)


def test_all_white_space_is_dropped_where_it_separates_words():
    data = '<unk>\n\tthe\u3000\ncat\xa0\n'.encode()
    assert read_words(data, 'words.txt', 'unicode') == ['<unk>', 'the', 'cat']
    assert read_words(data, 'words.txt', 'space') == ['<unk>', '\tthe\u3000', 'cat\xa0']


YAML = '"</s>": 0\n<unk>: 1\nthe: 2\n"\\"x\\"": 3\nyes: 4\n"\\u0142\\"": 5\n'
FAIRSEQ = 'the 33\ncat 4\nmadeupword0000 0\n<x> 0 #fairseq:overwrite\n'
CONVERTED = {
    'fairseq': (FAIRSEQ, ['<s>', '<pad>', '</s>', '<unk>', 'the', 'cat', 'madeupword0000', '<x>']),
    'fairseq of Windows': (
        FAIRSEQ.replace('\n', '\r\n'),
        ['<s>', '<pad>', '</s>', '<unk>', 'the', 'cat', 'madeupword0000', '<x>'],
    ),
    'counts with special tokens': ('<unk> 9\n</s> 8\nthe 3\n', ['<unk>', '</s>', 'the']),
    'yaml': (YAML, ['</s>', '<unk>', 'the', '"x"', 'yes', 'ł"']),
    'json': (json.dumps({'cat': 2, '<unk>': 0, 'the': 1}), ['<unk>', 'the', 'cat']),
    'a list': (json.dumps(['<unk>', 'the'], indent=1), ['<unk>', 'the']),
    'ids from 1': ('<blank> 1\n<unk> 2\nthe 3\n', ['<blank>', '<unk>', 'the']),
    'ids in another order': ('cat\t2\n<unk>\t0\nthe\t1\n', ['<unk>', 'the', 'cat']),
    'tabs': ('the\t33\ncat\t4\n', ['the', 'cat']),
    'UTF-16': ('<unk>\nthe\n'.encode('utf-16'), ['<unk>', 'the']),
    'UTF-16 without a mark': ('<unk>\nthe\n'.encode('utf-16-le'), ['<unk>', 'the']),
}


@pytest.mark.parametrize(('content', 'words'), CONVERTED.values(), ids=CONVERTED)
@pytest.mark.parametrize('split', ['space', 'unicode'])
def test_files_of_other_tools_are_refused_with_the_command_that_converts_them(
    tmp_path, content, words, split
):
    if content == YAML:
        pytest.importorskip('yaml')
    path = tmp_path / "it's a file.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as refused:
        read_words(path.read_bytes(), str(path), split)
    sentence = str(refused.value)
    assert sentence.startswith(str(path))
    command = re.search(r'convert it: (.* > [^,]*words\S*?)(, and put|$)', sentence, re.DOTALL)
    subprocess.run(['sh', '-c', command[1]], check=True)
    assert read_words((tmp_path / f'{path.name}.words').read_bytes(), 'words') == words


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        ("'<pad>_'\n'<EOS>_'\n'the_'\n", 'subwords of Tensor2Tensor between quotes'),
        ('<unk>\t0\n<s>\t0\n▁the\t-3.25\n▁a\t-4e-05\n', "SentencePiece's .vocab: '<unk>.*; give the .model"),
        ('2 3\nthe 0.1 0.2 0.3\ncat 0.1 0.3 0.3\n', 'several words on a line'),
        ('  33 the\n   4 cat\n', 'several words on a line'),
        ('<unk>\rthe\rcat\r', 'several words on a line'),
        ('<unk>\n<s>\n</s>\nthe\t33\ncat\t4\na\t3\non\t3\n', "counts, as OpenNMT-py's"),
        ('{"model": {"vocab": {}}}', 'is JSON, and has no words with ids from 0 on'),
        ('{"the": 0, "cat": 5}', 'is JSON, and has no words with ids from 0 on'),
        ('a\n\nb\n', 'line 2 is blank'),
        ('a\nb\na\n', "line 3: 'a' is on line 1 too"),
        ('', 'is empty'),
        (b'a\n\xff\n', 'invalid UTF-8 at byte 2'),
    ],
)  # fmt: skip
def test_others_are_named_for_what_they_are(content, said):
    data = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(InputError, match=f'^words.txt.*{said}'):
        read_words(data, 'words.txt')


@pytest.mark.parametrize(
    'words',
    [
        ['[', '{', '[]', '1', "'a'", '"b"', 'c:'],
        ['[]'],
        ['"a"', '"b","c"', "'d'", '"e"'],
        ['1\t2', '3\t44', '5\t6', '7\t1'],
        ['x\0', '\0', 'y'],
        ['\ufeff', '\u200b'],
        ['a\rb', '\u2028', 'tab\t'],
    ],
)
def test_whatever_was_learned_is_read(words, tmp_path):
    path = tmp_path / 'words.txt'
    path.write_bytes(WordVocabulary([*FIRST, *words]).dump())
    vocabulary = WordTokenizer.load(path).vocabulary
    assert [*vocabulary.pieces] == [*FIRST, *words]
    assert vocabulary.special_ids == SpecialIds(begin=1, end=2, unknown=0)
    assert SCHEME.recognizes(path.read_bytes()) and not SCHEME.recognizes(b'<unk>\na\nb\n')


@pytest.mark.parametrize(
    'words', [['a '], [' a'], ['a\r'], [''], ['a\nb'], ['\ufeffa'], ['a', 'a']], ids=str
)
def test_words_that_would_be_read_as_others_are_not_written(words):
    with pytest.raises(ValueError, match='cannot be a line|is in the vocabulary twice'):
        WordVocabulary(words).dump()
