"""Each character is of the classes that it has in `tokenizers`, whatever Unicode Python and `regex` have."""

import unicodedata

import numpy as np
import pytest
import regex
from families import family_file
from scanned_tokens import laid_out, scanned

from tokcore.encoding.encoder import side_of_text
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.normalizers import text_steps
from tokcore.foreign_tokenizers.pre_tokenizers import parse_cutting
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.text.alignment import AlignedText
from tokcore.text.expression_trees import compiled, compiled_for, spelled
from tokcore.text.expressions import oniguruma
from tokcore.text.patterns import DEFINITIONS, PUNCTUATION
from tokcore.text.split_sequence import SequencePreTokenizer, pre_tokenizer_of
from tokcore.text.unicode import NEWER, age_table

EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
ASSIGNED = [each for each in EVERY if unicodedata.category(each) not in ('Cn', 'Co')]
MARKS_AND_CONTROLS = [each for each in ASSIGNED if unicodedata.category(each)[0] in 'MCZ']
CLASSES = [
    *(rf'\p{{{name}}}' for name in 'L Lu Ll Lt Lm Lo M Mn N Nd P Pc S Z Cc Cf Co Han Latin'.split()),
    r'\P{L}', r'\w', r'\s', r'[^\s\p{L}\p{N}]', r'[\p{L}&&[^\p{Han}]]', r'[^\w\s]',
    '[[:punct:]]', '[[:alpha:]]', '[[:graph:]]', '[^[:graph:]]', '[[:print:]]', r'\p{Alphabetic}',
    r'\p{Uppercase}', r'\p{Lowercase}',
]  # fmt: skip
QUICK = {r'\p{L}', r'\p{N}', r'\s', r'[\p{L}&&[^\p{Han}]]', '[[:punct:]]'}


def matched(tokenizers, expression):
    """Returns the characters that an expression of one character matches in `tokenizers`."""
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), 'removed', invert=True)
    chunks = (''.join(EVERY[first : first + 20_000]) for first in range(0, len(EVERY), 20_000))
    return {word for chunk in chunks for word, _ in split.pre_tokenize_str(chunk)}


def test_unicode_16_is_that_of_expressions(tokenizers):
    newer = np.flatnonzero(age_table() == NEWER).tolist()
    assert {*map(chr, newer)} == matched(tokenizers, r'\p{Cn}')


@pytest.mark.parametrize(
    'expression',
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in CLASSES],
)
def test_every_character_in_classes(tokenizers, expression):
    tree = oniguruma(expression)
    theirs = matched(tokenizers, expression)
    assert {*compiled(tree).findall(''.join(EVERY))} == theirs
    few = EVERY[::97]
    assert [each for each in few if compiled_for(each, spelled(tree)).match(each)] == [
        each for each in few if each in theirs
    ]


def test_an_escaped_backslash_begins_no_property():
    assert compiled(oniguruma(r'\\p\{L\}')).findall(r'\p{L} a') == [r'\p{L}']
    assert compiled(oniguruma(r'\\\p{L}')).findall('\\a\\\U0003d000') == [r'\a']


def test_letters_of_a_newer_regex():
    letters = {*regex.findall(r'\p{L}', ''.join(EVERY))}
    if '\U0003f87c' not in letters:
        pytest.skip('the installed regex has no letters of Unicode 18')
    assert compiled_for('\U0003f87c', r'\p{L}').findall('a\U0003f87c') == ['a']
    assert compiled_for('\U0003f87c', r'[^\p{L}\p{N}\s]').findall('a\U0003f87c') == ['\U0003f87c']


def bert(**wanted):
    """Returns a normalizer with some of BERT's rules."""
    parts = ('clean_text', 'handle_chinese_chars', 'strip_accents', 'lowercase')
    return {'type': 'BertNormalizer', **dict.fromkeys(parts, False), **wanted}


@pytest.mark.parametrize(
    'part',
    [{'type': 'StripAccents'}, bert(clean_text=True), bert(strip_accents=True)],
    ids=['StripAccents', 'clean_text', 'strip_accents'],
)
def test_every_mark_and_control_character(tokenizers, part):
    texts = [*MARKS_AND_CONTROLS, *ASSIGNED[::29]]
    assert normalized(part, texts) == by_tokenizers(tokenizers, part, texts)


@pytest.mark.parametrize('kind', ['Punctuation', 'BertPreTokenizer'])
def test_every_punctuation_mark(tokenizers, kind):
    ours = parse_cutting({'type': kind}, 'file', 'pre_tokenizer').pre_tokenizer
    theirs = getattr(tokenizers.pre_tokenizers, kind)()
    for first in range(0, len(EVERY), 20_000):
        text = 'a'.join(EVERY[first : first + 20_000])
        assert ours.tokens(text) == [word for word, _ in theirs.pre_tokenize_str(text)]


def test_every_punctuation_mark_in_a_kernel(tokenizers):
    made = tokenizers.pre_tokenizers
    gpt2 = DEFINITIONS['gpt2'].expressions[0]
    theirs = made.Sequence(
        [made.Punctuation('contiguous'), made.Split(tokenizers.Regex(gpt2), 'isolated')]
    )
    ours = pre_tokenizer_of([oniguruma(f'{PUNCTUATION}+'), oniguruma(gpt2)])
    assert isinstance(ours, SequencePreTokenizer)
    rows = ['a'.join(ASSIGNED[first : first + 500]) for first in range(0, len(ASSIGNED), 500)]
    expected = [[word for word, _ in theirs.pre_tokenize_str(row)] for row in rows]
    assert scanned(laid_out(rows), ours) == expected
    assert [*map(ours.tokens, rows)] == expected


def test_marks_next_to_newer_ones(tokenizers):
    marks = '\u0301\u0323\u07fd\u08e1\u0b55\U0001e000\U00011938\U00011935\U00011930\u1885'
    texts = [f'{a}{b}{c}' for a in 'éa\u0b55' for b in marks for c in marks]
    part = bert(strip_accents=True)
    assert normalized(part, texts) == by_tokenizers(tokenizers, part, texts)


def normalized(part, texts):
    """Returns texts as we normalize them, in both ways."""
    [step] = text_steps(part, 'file', 'normalizer')
    found = []
    for text in texts:
        side = step.rewrite(side_of_text(text))
        found.append(side.row(0))
        assert step.align(AlignedText.of(text)).text == found[-1]
    return found


def by_tokenizers(tokenizers, part, texts):
    parts = {name: value for name, value in part.items() if name != 'type'}
    made = getattr(tokenizers.normalizers, part['type'])(**parts)
    return [*map(made.normalize_str, texts)]


@pytest.mark.parametrize('family', ['CLIP', 'MiniLM', 'HerBERT'])
def test_ids_of_newer_characters(tokenizers, family):
    data = family_file(tokenizers, family)
    theirs = tokenizers.Tokenizer.from_str(data)
    theirs.no_truncation()
    theirs.no_padding()
    ours = PretrainedTokenizer(parse_pretrained(data.encode(), f'{family}.json'))
    texts = [
        'the \u07fd of',
        'a\u07fdb',
        'the\U0003f87cof',
        '\U0003f87c',
        'a1\U0003f87c2',
        '\ue000a',
    ]
    assert ours.encode_batch(texts) == [each.ids for each in theirs.encode_batch(texts)]
