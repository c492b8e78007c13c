"""Files of words as other tools and systems write them: read, or refused by what they are."""

import json
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.errors import InputError
from tokcore.word.scheme import SCHEME, WordVocabulary, read_words

FIRST = ['<unk>', '<s>', '</s>']
MARK = b'\xef\xbb\xbf'


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
        ('<unk>\t0\n<s>\t0\n▁the\t-3.25\n▁a\t-4e-05\n', "SentencePiece's .vocab: '<unk>.t0'; give the .model"),
        ('2 3\nthe 0.1 0.2 0.3\ncat 0.1 0.3 0.3\n', 'several words on a line'),
        ('  33 the\n   4 cat\n', 'several words on a line'),
        ('<unk>\rthe\rcat\r', 'several words on a line'),
        ('<unk>\n<s>\n</s>\nthe\t33\ncat\t4\na\t3\non\t3\n', "counts, as OpenNMT-py's"),
        ('{"model": {"vocab": {}}}', 'is JSON, and has no words with ids from 0 on'),
        ('{"the": 0, "cat": 5}', 'is JSON, and has no words with ids from 0 on'),
    ],
)  # fmt: skip
def test_others_are_named_for_what_they_are(content, said):
    with pytest.raises(InputError, match=said):
        read_words(content.encode(), 'words.txt')


@pytest.mark.parametrize(
    'words',
    [
        ['[', '{', '[]', '1', "'a'", '"b"', 'c:'],
        ['[]'],
        ['"a"', '"b","c"', "'d'", '"e"'],
        ['1\t2', '3\t44', '5\t6', '7\t1'],
        ['x\0', '\0', 'y'],
        ['\ufeff', '\u200b'],
    ],
)
def test_whatever_was_learned_is_read(words):
    vocabulary = WordVocabulary([*FIRST, *words])
    assert read_words(vocabulary.dump(), 'words.txt') == [*vocabulary.words]


@given(st.lists(st.text(st.characters(exclude_categories=['Cs']), min_size=1), max_size=8))
def test_learned_words_come_back(texts):
    tokens = {word for text in texts for word in SCHEME.tokens(text)} - {*FIRST}
    vocabulary = WordVocabulary([*FIRST, *sorted(tokens)])
    assert read_words(vocabulary.dump(), 'words.txt') == [*vocabulary.words]


@pytest.mark.parametrize('word', ['a ', ' a', 'a\r', ''])
def test_words_that_would_be_read_as_others_are_not_written(word):
    with pytest.raises(ValueError, match='cannot be a line'):
        WordVocabulary(['<unk>', word]).dump()
    with pytest.raises(ValueError, match='cannot be a line'):
        WordVocabulary(['\ufeffa']).dump()
