r"""Tokens of patterns are those of `tokenizers` and `tiktoken`.

They know more letters and numbers than this Python does, each by Unicode tables of its own. Where
they differ their regular expressions tell, `\p{L}` by itself, and texts without these characters
have no difference.
"""

import collections
import gzip
import itertools
import pathlib
import unicodedata

import numpy as np
import pytest
from characters import EVERY_CHARACTER, SAMPLE
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.counts.counting import TokenAccumulator
from tokcore.text.byte_level import ALPHABET, spelled
from tokcore.text.patterns import DEFINITIONS, WHITE_SPACE, split
from tokcore.text.split_sequence import pattern_pre_tokenizer

pytestmark = pytest.mark.slow

EXPRESSIONS = {
    'gpt2': r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    'cl100k': r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r'| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s',
    'llama3': r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r'| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+',
}

# As Qwen's and Mistral's files and tiktoken have them.
EXPRESSIONS['qwen2'] = EXPRESSIONS['llama3'].replace('{1,3}', '')
EXPRESSIONS['qwen3.5'] = (
    EXPRESSIONS['qwen2']
    .replace(r'?\p{L}+', r'?[\p{L}\p{M}]+')
    .replace(r's\p{L}\p{N}', r's\p{L}\p{M}\p{N}')
)
EXPRESSIONS['tekken'] = (
    r'[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+'
    r'|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*'
    r'|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+'
)
EXPRESSIONS['o200k'] = (
    r'[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+'
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r'|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*'
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r'|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+'
)
PATTERNS = [*EXPRESSIONS]

CORPORA = pathlib.Path(__file__).parents[3] / 'shared' / 'corpora'


def is_assigned(character):
    return unicodedata.category(character) not in ('Cn', 'Co')


CHARACTERS = sorted({*SAMPLE, *filter(is_assigned, EVERY_CHARACTER)})
"""All that are assigned, and of the others those of the sample."""

CONTEXT = "A{0}b A{0}B aB{0} {0}'s a{0}b '{0}b 'l{0}b '{0}eb 1{0}2 12{0}4 .{0}. .{0}b\t{0}x\n{0}\n {0}.{0}{0}.  {0}"

FEW = (
    'aBs sStTrRemMvVdDlLſK\'"(.,-—12345½٣〇\t\r\n \xa0\x85\x0b\x1c\u2028\u3000字éé한\u0301\u093f𝔞🎉'
)
PIECES = [
    '    ', '\t', '\r\n', '\n', ' ', 'def f(x):', "it's", "DON'T", 'x1234567', '!=', '...', '\xa0',
]  # fmt: skip
TEXTS = st.one_of(
    st.text(
        st.characters(exclude_categories=['Cs', 'Cn', 'Co']) | st.sampled_from(SAMPLE), max_size=40
    ),
    st.text(st.sampled_from(FEW), max_size=60),
    st.lists(st.sampled_from(PIECES)).map(''.join),
)


class HuggingFace:
    """What tokenizers finds."""

    def __init__(self, tokenizers):
        self._tokenizers = tokenizers
        made = tokenizers.pre_tokenizers
        # Oniguruma takes `{1,3}+` for `(?:{1,3})+`, which finds runs of any length.
        cl100k = tokenizers.Regex(EXPRESSIONS['cl100k'].replace('{1,3}+', '{1,3}'))
        self._splits = {
            'gpt2': made.ByteLevel(add_prefix_space=False, use_regex=True),
            'cl100k': made.Split(cl100k, 'isolated'),
        }
        for name in {*EXPRESSIONS} - {*self._splits}:
            self._splits[name] = made.Split(tokenizers.Regex(EXPRESSIONS[name]), 'isolated')
        self._splits['deepseek'] = made.Sequence(
            [
                made.Split(tokenizers.Regex(expression), 'isolated')
                for expression in DEFINITIONS['deepseek'].expressions
            ]
        )

    def tokens(self, text, pattern):
        # ByteLevel gives tokens in its alphabet, and where they are.
        found = self._splits[pattern].pre_tokenize_str(text)
        return [text[start:end] for _, (start, end) in found]

    def matching(self, expression, characters):
        """Those of the characters that a regular expression matches, each by itself."""
        regex = self._tokenizers.Regex(expression)
        split_ = self._tokenizers.pre_tokenizers.Split(regex, 'removed')
        left = split_.pre_tokenize_str(''.join(characters))
        return {*characters} - {*itertools.chain.from_iterable(part for part, _ in left)}


class TikToken:
    """What tiktoken finds, told by ids: a piece of text that is an entry has its id."""

    def __init__(self, tiktoken):
        self._encoding = tiktoken.Encoding

    def _made(self, expression, entries=()):
        bytes_ = [bytes([byte]) for byte in range(256)]
        ranks = dict.fromkeys([*bytes_, *(each.encode() for each in entries)])
        ranks = {entry: number for number, entry in enumerate(ranks)}
        return self._encoding('', pat_str=expression, mergeable_ranks=ranks, special_tokens={})

    def finds(self, tokens_of_texts, pattern):
        """Whether it finds these tokens, in each text.

        The entries are the tokens, and any two neighbours as one. So the ids of one piece of text
        are never those of two tokens: these would have been merged.
        """
        pairs = [
            left + right for tokens in tokens_of_texts for left, right in itertools.pairwise(tokens)
        ]
        entries = [*itertools.chain.from_iterable(tokens_of_texts), *pairs]
        encoding = self._made(EXPRESSIONS[pattern], entries)
        return all(
            encoding.decode_tokens_bytes(encoding.encode_ordinary(''.join(tokens)))
            == [token.encode() for token in tokens]
            for tokens in tokens_of_texts
        )

    def matching(self, expression, characters):
        """Those that a regular expression matches: others are left out of the text."""
        encoding = self._made(expression)
        return {*encoding.decode(encoding.encode_ordinary(''.join(characters)))}


@pytest.fixture(scope='module')
def hugging_face(tokenizers):
    return HuggingFace(tokenizers)


@pytest.fixture(scope='module')
def tik_token(tiktoken):
    return TikToken(tiktoken)


LETTERS_AND_NUMBERS = ('Lu', 'Lt', 'Ll', 'Lm', 'Lo', 'M', 'N')


def differing(engine, characters=CHARACTERS, classes=LETTERS_AND_NUMBERS):
    """The characters that are of one class there and of another here."""
    categories = [unicodedata.category(character) for character in characters]
    different = engine.matching(r'\s', characters) ^ {*WHITE_SPACE}
    for category in classes:
        here = {
            character
            for character, own in zip(characters, categories, strict=True)
            if own.startswith(category)
        }
        different |= engine.matching(rf'\p{{{category}}}', characters) ^ here
    return different


@pytest.fixture(scope='module')
def unlike_hugging_face(hugging_face):
    return differing(hugging_face)


@pytest.fixture(scope='module')
def unlike_tik_token(tik_token):
    return differing(tik_token)


@pytest.fixture(scope='module')
def unlike(hugging_face, unlike_hugging_face, unlike_tik_token):
    """By pattern the characters that are of another class there. tiktoken has no sequences."""
    in_sequence = differing(hugging_face, classes=(*LETTERS_AND_NUMBERS, 'P', 'S'))
    both = unlike_hugging_face | unlike_tik_token
    return {'deepseek': in_sequence, **dict.fromkeys(PATTERNS, both)}


def test_classes_differ_only_where_unicode_has_grown(unlike_hugging_face, unlike_tik_token):
    for unlike in unlike_hugging_face, unlike_tik_token:
        assert {unicodedata.category(character) for character in unlike} <= {'Cn'}


def texts_of(characters, unlike):
    """Texts with the characters in many places, and with those that are not assigned in one."""
    known = [character for character in characters if character not in unlike]
    assigned = [*filter(is_assigned, known)]
    for first in range(0, len(assigned), 4096):
        yield ''.join(map(CONTEXT.format, assigned[first : first + 4096]))
    yield ''.join(f'a{character}b' for character in known)


@pytest.mark.parametrize('pattern', [*PATTERNS, 'deepseek'])
def test_a_sample_of_characters(hugging_face, tik_token, unlike, pattern):
    # Their classes are those of all patterns of one expression.
    characters = SAMPLE if pattern == 'deepseek' else SAMPLE[PATTERNS.index(pattern) % 3 :: 3]
    for text in texts_of(characters, unlike[pattern]):
        tokens = split(text, pattern)
        assert tokens == hugging_face.tokens(text, pattern)
        assert pattern == 'deepseek' or tik_token.finds([tokens], pattern)


@pytest.fixture(scope='module')
def unlike_of_every_character(hugging_face, tik_token):
    return differing(hugging_face, EVERY_CHARACTER) | differing(tik_token, EVERY_CHARACTER)


@pytest.mark.corpora
@pytest.mark.parametrize('pattern', PATTERNS)
def test_every_character(hugging_face, tik_token, unlike_of_every_character, pattern):
    for text in texts_of(EVERY_CHARACTER, unlike_of_every_character):
        tokens = split(text, pattern)
        assert tokens == hugging_face.tokens(text, pattern)
        assert tik_token.finds([tokens], pattern)


def only(*patterns):
    """Parameters: these patterns, and the others, which take minutes, by the mark `corpora`."""
    return [
        pattern if pattern in patterns else pytest.param(pattern, marks=pytest.mark.corpora)
        for pattern in PATTERNS
    ]


@given(TEXTS, st.sampled_from([*PATTERNS, 'deepseek']))
@example('a \n  ', 'cl100k')
@example('a \n  ', 'llama3')
@example("'ſa 'K \r\n\r\n  x12345٣٤٥", 'cl100k')
def test_any_text(hugging_face, tik_token, unlike, text, pattern):
    if unlike[pattern].isdisjoint(text):
        tokens = split(text, pattern)
        assert hugging_face.tokens(text, pattern) == tokens
        assert pattern == 'deepseek' or tik_token.finds([tokens], pattern)


def lines_of(name, count):
    path = CORPORA / name
    if not path.exists():
        pytest.skip(f'{name} is not at hand')
    with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
        return [line.rstrip('\n') for line in itertools.islice(lines, count)]


def counted(lines, pre_tokenizer):
    """The distinct tokens that the kernel finds, with their counts."""
    data = [line.encode() for line in lines]
    ends = np.cumsum([len(each) for each in data], dtype=np.int64)
    starts = ends - [len(each) for each in data]
    found = TokenAccumulator()
    found.add_rows(np.frombuffer(b''.join(data), np.uint8), starts, ends, pre_tokenizer)
    text, offsets, counts = found.finish()
    return {
        text[offsets[token] : offsets[token + 1]].tobytes().decode(): count
        for token, count in enumerate(counts.tolist())
    }


@pytest.mark.parametrize('pattern', [*only('gpt2', 'cl100k', 'llama3'), 'deepseek'])
@pytest.mark.parametrize('name', ['docs.en.txt.gz', 'enzh.tsv.gz', 'poetry.zh.txt.gz'])
def test_lines_of_the_corpora(hugging_face, tik_token, unlike, name, pattern):
    lines = [line for line in lines_of(name, 20_000) if unlike[pattern].isdisjoint(line)]
    expected = [hugging_face.tokens(line, pattern) for line in lines]
    assert pattern == 'deepseek' or tik_token.finds(expected, pattern)
    counts = collections.Counter(itertools.chain.from_iterable(expected))
    assert counted(lines, pattern_pre_tokenizer(pattern)) == counts


def test_every_pattern_with_a_kernel_is_compared():
    with_a_kernel = {name for name, pattern in DEFINITIONS.items() if pattern.rules is not None}
    assert {*PATTERNS, 'deepseek'} == with_a_kernel
    assert [(EXPRESSIONS[name],) for name in PATTERNS if name != 'cl100k'] == [
        DEFINITIONS[name].expressions for name in PATTERNS if name != 'cl100k'
    ]


def test_the_alphabet(tokenizers):
    made = tokenizers.pre_tokenizers.ByteLevel
    assert sorted(made.alphabet()) == [*ALPHABET]
    whole = made(add_prefix_space=False, use_regex=False)
    for text in ('a é字\n\x7f\xa0\xad', ''.join(map(chr, range(1, 0x800)))):
        assert [token for token, _ in whole.pre_tokenize_str(text)] == [spelled(text.encode())]
