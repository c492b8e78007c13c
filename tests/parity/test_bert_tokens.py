"""BERT's tokens are those of transformers' slow `BertTokenizer`, and of google-research's rules."""

import itertools
import sys
import unicodedata

import numpy as np
import pytest
from characters import EVERY_CHARACTER, SAMPLE
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.counts.counting import TokenAccumulator
from tokcore.text.bert import BertPreTokenizer
from tokcore.text.bert_plain import CJK_RANGES, bert_tokens

pytestmark = pytest.mark.slow

OPTIONS = [
    {'lower_case': lower, 'strip_accents': strip, 'split_cjk': split}
    for lower, strip, split in itertools.product([True, False], [None, True, False], [True, False])
]
SPECIAL = ('[UNK]', '[SEP]', '[PAD]', '[CLS]', '[MASK]')

TEXTS = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "aAeΣσςÀ .,!-'\t\r\n\x0b\x7f\x85\xa0\u3000\u2028中文日ひ한\u1100\u1161\u11a8"
        ),
        st.sampled_from(
            '\u0301\u0327\u0345\u093c\u0958\U0001d15e\U0001d165\U0001d16d\u302e\u302fİﬁﷺ\uf900'
            '\u037e\u1fef\u212b\u2126\ufeff\u200b\U0001133e\u0bd7\u0bc6'
        ),
    ),
    max_size=40,
)


@pytest.fixture(scope='module')
def original(transformers):
    """Gives the tokens that transformers gives, before these are cut into pieces."""
    basic = sys.modules[transformers.BertTokenizer.__module__].BasicTokenizer

    def tokens(text, *, lower_case, strip_accents, split_cjk):
        made = basic(lower_case, [], split_cjk, strip_accents)
        # `BertTokenizer.tokenize` lowers one character after another before that.
        return made.tokenize(''.join(map(str.lower, text)) if lower_case else text)

    return tokens


def found(lines, pre_tokenizer):
    """The distinct tokens that the kernel finds, with their counts."""
    data = [line.encode('utf-8', 'surrogatepass') for line in lines]
    ends = np.cumsum([len(each) for each in data], dtype=np.int64)
    starts = ends - [len(each) for each in data]
    counted = TokenAccumulator()
    counted.add_rows(np.frombuffer(b''.join(data), np.uint8), starts, ends, pre_tokenizer)
    text, offsets, counts = counted.finish()
    return {
        text[offsets[token] : offsets[token + 1]].tobytes().decode('utf-8', 'surrogatepass'): count
        for token, count in enumerate(counts.tolist())
    }


def counted(tokens):
    counts = {}
    for token in tokens:
        counts[token] = counts.get(token, 0) + 1
    return counts


EACH_OPTION = [*OPTIONS[0:10:2], OPTIONS[1]]
CHARACTERS = pytest.mark.parametrize(
    'characters',
    [
        pytest.param(SAMPLE, id='a sample'),
        pytest.param(EVERY_CHARACTER, id='every character', marks=pytest.mark.corpora),
    ],
)


@CHARACTERS
@pytest.mark.parametrize('options', EACH_OPTION, ids=str)
def test_characters_between_letters(original, options, characters):
    pre_tokenizer = BertPreTokenizer(**options)
    for first in range(0, len(characters), 4096):
        texts = [f'a{character}b' for character in characters[first : first + 4096]]
        expected = [original(text, **options) for text in texts]
        assert [bert_tokens(text, **options) for text in texts] == expected
        assert found(texts, pre_tokenizer) == counted(itertools.chain(*expected))


@given(TEXTS, st.sampled_from(OPTIONS))
@example('ΟΔΟΣ e\u0301 \u1100\u1161\u11a8', OPTIONS[0])
@example('a\U0001d165\U0001d16d\u0301b', OPTIONS[0])
def test_any_text(original, text, options):
    expected = original(text, **options)
    assert bert_tokens(text, **options) == expected
    assert found([text, 'x', text], BertPreTokenizer(**options)) == counted(['x', *expected * 2])


# One is lowered itself, one the start of another, one holds white space, one what is Chinese.
MORE_SPECIAL = ['<mask>', '[MASK', '[S P]', 'k中é']
ODD = [
    '[mask]', '[ MASK ]', '[MA\u200bSK]', '[MÁSK]', '<MASK>', '<ma\u0301s\u212a>', '<m\u200dask>',
]  # fmt: skip


@pytest.fixture(scope='module')
def bert_tokenizer(transformers, tmp_path_factory):
    """Makes slow tokenizers that do not cut words into pieces."""
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab.txt'
    path.write_text(''.join(f'{each}\n' for each in SPECIAL))

    def made(special_tokens, lower_case, strip_accents):
        tokenizer = transformers.BertTokenizer(
            str(path), do_lower_case=lower_case, strip_accents=strip_accents,
            additional_special_tokens=special_tokens,
        )  # fmt: skip
        tokenizer.wordpiece_tokenizer.tokenize = lambda word: [word]
        return tokenizer

    return made


@pytest.mark.parametrize('more', [[], MORE_SPECIAL[:1], MORE_SPECIAL], ids=len)
@pytest.mark.parametrize('strip_accents', [None, False, True])
@pytest.mark.parametrize('lower_case', [True, False])
def test_special_tokens_are_cut_out_first(bert_tokenizer, lower_case, strip_accents, more):
    tokenizer = bert_tokenizer(more, lower_case, strip_accents)
    special = tuple(tokenizer.all_special_tokens)
    pre_tokenizer = BertPreTokenizer('bert', lower_case, strip_accents, special_tokens=special)
    parts = [*SPECIAL, *MORE_SPECIAL, *ODD, *'aAbß[]MASKmask, É中\u212a\u0301']

    @given(st.lists(st.sampled_from(parts), max_size=12).map(''.join))
    def check(text):
        expected = tokenizer.tokenize(text)
        assert pre_tokenizer.tokens(text) == expected
        assert found([text, 'x', text], pre_tokenizer) == counted(['x', *expected * 2])

    check()


def google_tokens(text, lower_case):
    """google-research's tokenizer, restated: its rules are in what it drops, and when it lowers."""
    cleaned = ''
    for each in text:
        category = unicodedata.category(each)
        if each in ' \t\n\r' or category == 'Zs':
            cleaned += ' '
        elif ord(each) not in (0, 0xFFFD) and category not in ('Cc', 'Cf'):
            is_chinese = any(first <= ord(each) <= last for first, last in CJK_RANGES)
            cleaned += f' {each} ' if is_chinese else each
    tokens = []
    for word in cleaned.strip().split():
        if lower_case:
            marked = unicodedata.normalize('NFD', word.lower())
            word = ''.join(each for each in marked if unicodedata.category(each) != 'Mn')
        spaced = ''
        for each in word:
            is_ascii_mark = each.isascii() and each.isprintable() and not each.isalnum()
            is_mark = each != ' ' and is_ascii_mark or unicodedata.category(each)[0] == 'P'
            spaced += f' {each} ' if is_mark else each
        tokens += spaced.split()
    return tokens


@CHARACTERS
@pytest.mark.parametrize('lower_case', [True, False])
def test_characters_by_the_rules_of_google_research(lower_case, characters):
    pre_tokenizer = BertPreTokenizer('bert-original', lower_case)
    for first in range(0, len(characters), 4096):
        texts = [f'a{character}b' for character in characters[first : first + 4096]]
        expected = [google_tokens(text, lower_case) for text in texts]
        assert [bert_tokens(text, 'bert-original', lower_case) for text in texts] == expected
        assert found(texts, pre_tokenizer) == counted(itertools.chain(*expected))


@given(TEXTS, st.booleans())
@example('ΟΔΟΣ ΣΑΣ', True)
def test_any_text_by_the_rules_of_google_research(text, lower_case):
    expected = google_tokens(text, lower_case)
    assert bert_tokens(text, 'bert-original', lower_case) == expected
    pre_tokenizer = BertPreTokenizer('bert-original', lower_case)
    assert found([text, 'x'], pre_tokenizer) == counted([*expected, 'x'])
