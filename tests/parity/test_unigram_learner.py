"""Pieces, their order and the bits of their scores are those of SentencePiece's trainer."""

import gzip
import pathlib
import random

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from tokcore.unigram.learner import PieceRules, learn_pieces

pytest.importorskip('sentencepiece')

from generated_text import chinese_lines, english_lines
from sentencepiece_words import METAS, trained, words_of

ODD = [
    'नमस्ते दुनिया', 'السلام عليكم', '안녕하세요 세계', 'これはテストーです', 'カタカナとひらがなと漢字', 'สวัสดีชาวโลก',
    'привет мир', 'γειά σου', 'e\u0301a\u0308o\u0302 a\u0301\u0301', '👩‍👩‍👧‍👦 👍🏽 ☎️', '1,234.56 abc123 123abc 2024-01-02',
    'ﬁ ﬂ ½ ① Ａｂｃ', 'x' * 40, '=' * 80, 'ab' * 30, 'foo <s> bar</s> <unk> baz', 'under▁score ▁▁ x▁',
    'soft\u00adhyphen zero\u200bwidth nb\u00a0sp', 'tab\tinside  two  spaces ', 'don’t “quote” – dash — … €',
    'עברית', 'ქართული', 'አማርኛ', 'a\u0300\u0301b', '々〆〇', '\ufeffbom', 'ſtreet ß ẞ', '(a)(b)(c)', 'naïve café', 'x\u2044y',
    '𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠀀𠀁𠀂', 'contains ▅ block', '   ', '\u3000', 'the end of the documentation', 'documentation',
]  # fmt: skip


def odd_lines(seed, many):
    """Lines of many scripts, marks, emoji, names of meta pieces, rare characters; some are empty."""
    rng = random.Random(seed)
    lines = []
    for _ in range(many):
        if rng.random() < 0.1:
            ranges = (0x21, 0x7E), (0xA0, 0x17F), (0x4E00, 0x4F00), (0x3040, 0x30FF)
            code_points = [rng.randint(*rng.choice(ranges)) for _ in range(rng.randint(1, 12))]
            lines.append(''.join(map(chr, code_points)))
        else:
            lines.append(' '.join(rng.choice(ODD) for _ in range(rng.randint(1, 6))))
    lines += [*english_lines(600, seed), *chinese_lines(150, seed)]
    rng.shuffle(lines)
    # The last sentence decides about some scores; an empty one changes places with it.
    return lines + rng.choice([['   ', ' '], ['the end of the documentation', '  '], ['ab']])


def learned(lines, vocab_size, *, rule='nmt_nfkc', metas=METAS, num_meta_pieces=None, **options):
    rules = PieceRules(vocab_size, num_meta_pieces or len(metas), **options)
    found = learn_pieces(words_of(lines, rule, metas), rules, 2)
    return [(piece.encode(), score) for piece, score in found]


@pytest.mark.parametrize('num_threads', [1, 2, 16])
@pytest.mark.parametrize('seed', [3, 6])
def test_text_of_many_scripts(seed, num_threads):
    lines = odd_lines(seed, 300)
    for size, coverage in ((1000, 0.98), (1500, 0.9995), (1800, 1.0)):
        options = {'num_threads': num_threads, 'character_coverage': coverage}
        assert learned(lines, size, **options) == trained(lines, size, **options)


@pytest.mark.parametrize(
    'options',
    [
        {'seed_sentencepiece_size': 2400},
        {'seed_sentencepiece_size': 0},
        {'shrinking_factor': 0.5, 'num_sub_iterations': 3},
        {'max_sentencepiece_length': 6},
    ],
    ids=str,
)
def test_options(options):
    lines = odd_lines(9, 300)
    assert learned(lines, 1400, **options) == trained(lines, 1400, **options)


def test_options_beyond_the_learner():
    lines = odd_lines(9, 300)
    assert learned(lines, 1400, rule='identity') == trained(
        lines, 1400, normalization_rule_name='identity'
    )
    assert learned(lines, 2000, num_meta_pieces=259) == trained(lines, 2000, byte_fallback=True)
    symbols = ['the', 'foo']
    expected = trained(lines, 1400, user_defined_symbols=symbols)
    assert learned(lines, 1400, metas=(*METAS, *symbols)) == [
        each for each in expected if each[0].decode() not in symbols
    ]


PHRASES = st.sampled_from(
    [*ODD, '', 'a', 'ab', 'abab', '<s>', '日本', '日本語', '日本\u3000']
) | st.text(st.characters(exclude_categories=['Cs', 'Cn', 'Co', 'Cc']), max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.lists(st.lists(PHRASES, max_size=5).map(' '.join), min_size=1, max_size=25),
    st.sampled_from([1, 2, 16]),
    st.sampled_from([0.98, 0.9995]),
)
@example(['ab ab', 'ab', '  '], 1, 0.9995)
def test_generated_text(lines, num_threads, coverage):
    lines = [line.replace('\n', ' ').replace('\r', ' ').replace('\0', ' ') for line in lines]
    options = {
        'num_threads': num_threads,
        'character_coverage': coverage,
        'hard_vocab_limit': False,
    }
    usable = [line for line in lines if line.strip() and '\u2585' not in line]
    assume(usable)
    words = words_of(usable)
    assume(len(words))
    size = len({*words.data.tobytes().decode()} - {'\0'}) + 12
    assert learned(lines, size, **options) == trained(lines, size, **options)


CORPORA = pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'corpora'


def lines_of(corpus, begin=0, size=None):
    """The lines of a part of a corpus that begins in a line and has up to `size` bytes."""
    path = CORPORA / f'{corpus}.gz'
    if not path.exists():
        pytest.skip('there are no corpora')
    with gzip.open(path) as file:
        file.seek(begin)
        data = file.read(-1 if size is None else size)
    first = data.index(b'\n') + 1 if begin else 0
    last = len(data) if size is None else data.rindex(b'\n')
    return data[first:last].decode('utf-8', 'replace').split('\n')


MB = 1_000_000


@pytest.mark.corpora
@pytest.mark.parametrize('num_threads', [1, 2, 16])
@pytest.mark.parametrize(
    'corpus, begin, size, vocab_sizes',
    [
        ('docs.en.txt', 0, 300_000, (500, 3000)),
        ('docs.en.txt', 0, 3 * MB, (500, 4000, 8000)),
        ('docs.en.txt', 60 * MB, 3 * MB, (1000, 4000)),
        ('poetry.zh.txt', 0, 300_000, (4000, 8000)),
        ('poetry.zh.txt', 0, 3 * MB, (8000, 16000)),
        ('enzh.tsv', 0, MB, (4000, 8000)),
    ],
)
def test_parts_of_corpora(corpus, begin, size, vocab_sizes, num_threads):
    lines = lines_of(corpus, begin, size)
    for vocab_size in vocab_sizes:
        options = {'num_threads': num_threads}
        assert learned(lines, vocab_size, **options) == trained(lines, vocab_size, **options)


@pytest.mark.corpora
@pytest.mark.parametrize('corpus', ['docs.en.txt', 'poetry.zh.txt', 'enzh.tsv'])
def test_whole_corpora(corpus):
    lines = lines_of(corpus)
    assert learned(lines, 32_000) == trained(lines, 32_000, num_threads=16)
