"""Ids as transformers' slow BertTokenizer gives them, and tokenizers on ordinary text."""

import gzip
import itertools
import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.foreign_tokenizers.scheme import PretrainedScheme
from tokcore.tokenizers import WordPieceTokenizer, learn_wordpiece_vocabulary, tokenizer_of
from tokcore.wordpiece.options import SPECIAL_TOKENS
from tokcore.wordpiece.scheme import WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary, parse_pieces

WORDS = [
    'the', 'a', 'one', 'river', 'stone', 'Unable', 'unaffable', 'naïve', 'café', "don't", "isn't",
    "I'm", "we've", "can't", '1984', '3.14', 'Straße', 'Übermut', 'größer', 'ÉCOLE', 'garçon',
    'año', 'İstanbul', 'ışık', 'Việt', 'Nam', 'résumé', 'co-operate', 'e.g.', '(why?)', 'река',
    'Ёлка', 'вышел', 'из', 'дома', 'ΟΔΟΣ', 'Σίσυφος', 'ὁδός', 'λόγος', 'שלום', 'עולם', 'مرحبا',
    'بالعالم', 'हिन्दी', 'नमस्ते', 'ไทยครับ', '漢字', '東京都', '北京', 'かな', 'カタカナ', '한국어', '서울', '안녕하세요',
    'ﬁne', '²', '€', '±', 'x_y', '#tag', '@you', '##ing', '[MASK]', '[CLS]', '[mask]', '[', 'MASK',
    ']', '…', '“so”', '—', '«là»', '。', '、', '！', '𝄞', '😀', '𠮷野', '\xad', 'soft\xadhyphen',
    'zero\u200bwidth', 'é', 'Å',
]  # fmt: skip

OPTIONS = [
    {'lower_case': lower, 'strip_accents': strip, 'split_cjk': split}
    for lower, strip, split in itertools.product((True, False), (None, True, False), (True, False))
]


def drawn_lines(count):
    dice = random.Random(count)
    marks = [*[' '] * 12, ', ', '. ', '', '\t', '\u3000', '\xa0', '-', ' [SEP] ', '[MASK]']
    for _ in range(count):
        words = dice.choices(WORDS, k=dice.randint(0, 20))
        yield ''.join(word + dice.choice(marks) for word in words)


LINES = list(drawn_lines(200))


@pytest.fixture(scope='module')
def vocabulary():
    """Some thousand pieces: characters, words, beginnings and endings, lowered and not."""
    text = ' '.join([*LINES, *map(str.lower, LINES)])
    words = sorted(set(re.findall(r'\w+', text)))
    characters = sorted({each for each in text if not each.isspace()} - set('𝄞À한'))
    parts = [
        piece
        for word in words
        for cut in range(1, len(word))
        for piece in (word[:cut], f'##{word[cut:]}', f'##{word[cut : cut + 2]}')
    ]
    random.Random(5).shuffle(parts)
    tails = [f'##{each}' for each in characters]
    chosen = [*SPECIAL_TOKENS, *characters, *tails, *words[::2], *parts[:3000]]
    return WordPieceVocabulary(list(dict.fromkeys(chosen)))


@pytest.fixture(scope='module')
def path(vocabulary, tmp_path_factory):
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab.txt'
    path.write_bytes(vocabulary.dump())
    return path


def bert(transformers, path, lower_case=True, strip_accents=None, split_cjk=True):
    return transformers.BertTokenizer(
        str(path),
        do_lower_case=lower_case,
        strip_accents=strip_accents,
        tokenize_chinese_chars=split_cjk,
    )


def bert_of_text(transformers, path, lower_case=True, strip_accents=None, split_cjk=True):
    """BertTokenizer without its special tokens: text is nothing but text."""
    from transformers.models.bert.tokenization_bert import BasicTokenizer, WordpieceTokenizer

    vocab = bert(transformers, path).vocab
    basic = BasicTokenizer(lower_case, [], split_cjk, strip_accents)
    pieces = WordpieceTokenizer(vocab, '[UNK]')

    def encode(text):
        # As BertTokenizer does before: a character at a time.
        lowered = ''.join(map(str.lower, text)) if lower_case else text
        words = basic.tokenize(lowered)
        return [vocab[piece] for word in words for piece in pieces.tokenize(word)]

    return encode


any_text = st.text(st.characters(exclude_categories=['Cs']), max_size=30)
familiar_text = st.lists(
    st.sampled_from([*WORDS, *' \n\r\t\u2028\x00[]Σ\u0301', '  ']), max_size=12
).map(''.join)
some_text = st.one_of(any_text, familiar_text)


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_ids_are_those_of_bert_tokenizer(transformers, path, options):
    theirs = bert(transformers, path, **options)
    ours = WordPieceTokenizer.load(path, allow_special_tokens=True, **options)

    @given(some_text)
    def check(text):
        assert ours.encode(text) == theirs.encode(text)

    for line in LINES:
        tokens = theirs.tokenize(line)
        ids = theirs.convert_tokens_to_ids(tokens)
        assert ours.tokenize(line) == tokens
        assert ours.encode(line, add_special_tokens=False) == ids
        assert ours.encode(line) == theirs.build_inputs_with_special_tokens(ids)
    check()


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_without_special_tokens_in_text_they_are_those_of_its_parts(transformers, path, options):
    theirs = bert_of_text(transformers, path, **options)
    ours = WordPieceTokenizer.load(path, **options)

    @given(some_text)
    def check(text):
        assert ours.encode(text, add_special_tokens=False) == theirs(text)

    for line in LINES:
        assert ours.encode(line, add_special_tokens=False) == theirs(line)
    check()


def test_words_of_a_hundred_characters_are_the_longest(transformers, tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_bytes(WordPieceVocabulary([*SPECIAL_TOKENS, 'é', '##é', 'x', '##x']).dump())
    options = {'lower_case': False}
    theirs, ours = bert(transformers, path, **options), WordPieceTokenizer.load(path, **options)
    for word in ('x' * 100, 'x' * 101, 'é' * 100, 'é' * 101, 'é' * 3000):
        text = f'x {word} é'
        assert ours.encode(text) == theirs.encode(text)


@given(st.lists(st.integers(-2, 4000), max_size=40))
def test_text_of_ids_is_theirs(transformers, vocabulary, path, ids):
    theirs = bert(transformers, path)
    cleaned = theirs.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=True)
    assert vocabulary.decode(ids) == cleaned


def test_text_of_ids_of_lines_is_theirs(transformers, path):
    theirs, ours = bert(transformers, path), WordPieceTokenizer.load(path)
    for line in LINES:
        ids = ours.encode(line)
        assert ours.decode(ids) == theirs.decode(ids, clean_up_tokenization_spaces=True)


SPECIAL_LINES = '\n'.join(SPECIAL_TOKENS) + '\n'


FOREIGN = [
    'a\n##b', 'a\r\n##b\r\n', 'a\r##b\r', '\na\n\nb\n\n', 'a\nb\na\nb', ' a\nb \n',
    'a\u2028b\n\x85\n',
]  # fmt: skip


@pytest.mark.parametrize('text', FOREIGN)
def test_foreign_files_are_read_as_there(transformers, tmp_path, text):
    path = tmp_path / 'vocab.txt'
    data = (SPECIAL_LINES + text).encode()
    path.write_bytes(data)
    theirs, ours = bert(transformers, path), WordPieceVocabulary(parse_pieces(data, 'v'))
    assert ours.ids == theirs.vocab
    ids = range(ours.vocab_size + 1)
    assert ours.pieces_of(ids) == theirs.convert_ids_to_tokens(list(ids))


def test_ids_of_ordinary_text_are_those_of_tokenizers(transformers, tokenizers, path):
    theirs = transformers.BertTokenizerFast(str(path))
    ours = WordPieceTokenizer.load(path, allow_special_tokens=True)
    for line in LINES:
        assert ours.encode(line) == theirs.encode(line)


@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_ids_of_the_tokenizer_json_are_ours(tokenizers, vocabulary, options):
    scheme, pretrained = WordPieceScheme.of(**options), PretrainedScheme()
    file = scheme.tokenizer_files(vocabulary)['tokenizer.json']
    theirs = tokenizers.Tokenizer.from_str(file.decode())
    theirs.encode_special_tokens = True
    ours = tokenizer_of(vocabulary, scheme)
    read_again = tokenizer_of(pretrained.parse(file, 'tokenizer.json'), pretrained)

    @given(familiar_text)
    @example('cafe\u0301 I\u0307 ΟΔΟΣ e\u200d\u0301 \u1100\u1161 \u212b')
    def check(text):
        assert theirs.encode(text).ids == ours.encode(text) == read_again.encode(text)

    check()


CORPORA = Path(__file__).resolve().parents[2].parent / 'shared' / 'corpora'
EACH = 50  # the slow tokenizer takes seconds for a megabyte


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA.exists(), reason=f'{CORPORA} is not there')
@pytest.mark.parametrize('name', ['docs.en.txt.gz', 'poetry.zh.txt.gz', 'enzh.tsv.gz'])
@pytest.mark.parametrize('lower_case', [True, False])
def test_ids_of_real_text_are_theirs(transformers, tmp_path, name, lower_case):
    with gzip.open(CORPORA / name, 'rt', encoding='utf-8', newline='\n') as file:
        lines = list(itertools.islice(file, 0, None, EACH))
    learned = learn_wordpiece_vocabulary(lines, vocab_size=8000, lower_case=lower_case)
    path = tmp_path / 'vocab.txt'
    path.write_bytes(learned.dump())
    theirs = bert(transformers, path, lower_case=lower_case)
    as_text = bert_of_text(transformers, path, lower_case=lower_case)
    ours = WordPieceTokenizer.load(path, lower_case=lower_case)
    allowing = WordPieceTokenizer.load(path, lower_case=lower_case, allow_special_tokens=True)
    for line in lines:
        assert allowing.encode(line) == theirs.encode(line)
        assert ours.encode(line, add_special_tokens=False) == as_text(line)
