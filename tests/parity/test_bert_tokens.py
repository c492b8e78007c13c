"""BERT's tokens are those of transformers' slow `BertTokenizer`, and of google-research's rules."""

import itertools
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokcore.counts.token_counter import TokenAccumulator
from tokcore.text.bert.bert_pre_tokenizer import BertPreTokenizer
from tokcore.text.bert.plain_bert_tokens import CJK_RANGES, bert_tokens

OPTIONS = [
    {'lower_case': lower, 'strip_accents': strip, 'split_cjk': split}
    for lower, strip, split in itertools.product([True, False], [None, True, False], [True, False])
]
SPECIAL = ('[UNK]', '[SEP]', '[PAD]', '[CLS]', '[MASK]')
ALL_CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]

TEXTS = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from('aAeΣσςÀ .,!-\'\t\r\n\x0b\x7f\x85\xa0\u3000\u2028中文日ひ한\u1100\u1161\u11a8'),
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


@pytest.mark.parametrize('options', [*OPTIONS[::2][:5], OPTIONS[1]], ids=str)
def test_every_character_between_letters(original, options):
    pre_tokenizer = BertPreTokenizer(**options)
    for first in range(0, len(ALL_CHARACTERS), 4096):
        texts = [f'a{each}b' for each in ALL_CHARACTERS[first : first + 4096]]
        expected = [original(text, **options) for text in texts]
        assert [bert_tokens(text, **options) for text in texts] == expected
        assert found(texts, pre_tokenizer) == counted(itertools.chain(*expected))


@given(TEXTS, st.sampled_from(OPTIONS))
@settings(max_examples=400, deadline=None)
@example('ΟΔΟΣ e\u0301 \u1100\u1161\u11a8', OPTIONS[0])
@example('a\U0001d165\U0001d16d\u0301b', OPTIONS[0])
def test_any_text(original, text, options):
    expected = original(text, **options)
    assert bert_tokens(text, **options) == expected
    assert found([text, 'x', text], BertPreTokenizer(**options)) == counted(['x', *expected * 2])


@pytest.mark.parametrize('lower_case', [True, False])
def test_special_tokens_are_cut_out_first(transformers, tmp_path, lower_case):
    characters = 'aAbß[]MASKmask, É中'
    path = tmp_path / 'vocab.txt'
    pieces = [*SPECIAL, *dict.fromkeys(characters + characters.lower() + 'e')]
    path.write_text(''.join(f'{each}\n##{each}\n' for each in pieces if each != ' '))
    tokenizer = transformers.BertTokenizer(str(path), do_lower_case=lower_case)
    pre_tokenizer = BertPreTokenizer(lower_case=lower_case, special_tokens=SPECIAL)

    @given(st.lists(st.sampled_from([*SPECIAL, *characters, '[mask]', '[ MASK ]'])).map(''.join))
    @settings(max_examples=200, deadline=None)
    def check(text):
        whole = ''.join(each.removeprefix('##') for each in tokenizer.tokenize(text))
        tokens = pre_tokenizer.tokens(text)
        assert ''.join(tokens) == whole
        assert [each for each in tokens if each in SPECIAL] == [
            each for each in tokenizer.tokenize(text) if each in SPECIAL
        ]
        assert found([text], pre_tokenizer) == counted(tokens)

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


@pytest.mark.parametrize('lower_case', [True, False])
def test_every_character_by_the_rules_of_google_research(lower_case):
    pre_tokenizer = BertPreTokenizer('bert-original', lower_case)
    for first in range(0, len(ALL_CHARACTERS), 4096):
        texts = [f'a{each}b' for each in ALL_CHARACTERS[first : first + 4096]]
        expected = [google_tokens(text, lower_case) for text in texts]
        assert [bert_tokens(text, 'bert-original', lower_case) for text in texts] == expected
        assert found(texts, pre_tokenizer) == counted(itertools.chain(*expected))


@given(TEXTS, st.booleans())
@settings(max_examples=400, deadline=None)
@example('ΟΔΟΣ ΣΑΣ', True)
def test_any_text_by_the_rules_of_google_research(text, lower_case):
    expected = google_tokens(text, lower_case)
    assert bert_tokens(text, 'bert-original', lower_case) == expected
    pre_tokenizer = BertPreTokenizer('bert-original', lower_case)
    assert found([text, 'x'], pre_tokenizer) == counted([*expected, 'x'])
