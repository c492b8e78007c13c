"""Glossaries, a vocabulary with a threshold and dropout, as subword-nmt's apply-bpe has them."""

import collections
import functools
import io
import random

import numpy as np
import pytest
from generated_text import chinese_lines, english_lines
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe.apply_codes import CodesSegmenter, NmtRules, _draw, random_state
from tokcore.bpe.codes import NmtVocabulary, entries_file, parse_nmt_codes
from tokcore.bpe.scheme import BpeEncodingOptions, BpeScheme
from tokcore.text.rows import Side
from tokcore.tokenizers import BpeTokenizer

GLOSSARIES = ['[0-9]+', 'et', 'USA|UK', '(a)(b)?', 'x*', '@', '^n', '中']
WORDS = [
    '12low3', '1934USABUSA', 'aab', 'xxaxx', 'etet', 'UK', 'n', 'nn', 'a@@', '中文', 'ab\r', '3\r',
]  # fmt: skip


@pytest.fixture(scope='module')
def codes(subword_nmt):
    """The text of codes, and a vocabulary of half of their pieces with its table of counts."""
    learn, apply, _ = subword_nmt
    lines = [*english_lines(250, 5), *chinese_lines(50, 5)]
    learned = io.StringIO()
    learn.learn_bpe(io.StringIO('\n'.join(lines)), learned, 300)
    text = learned.getvalue()
    plain = apply.BPE(io.StringIO(text))
    pieces = collections.Counter(plain.segment(' '.join(lines)).split())
    threshold = sorted(pieces.values())[len(pieces) // 2]
    table = ''.join(f'{piece} {count}\n' for piece, count in pieces.items())
    known = [(piece, count) for piece, count in pieces.items() if count >= threshold]
    entries = entries_file(known).decode().splitlines()
    vocabulary = NmtVocabulary(parse_nmt_codes(text.encode(), 'codes'), tuple(entries))
    return text, apply.read_vocabulary(io.StringIO(table), threshold), vocabulary


def lines_of_words():
    chance = random.Random(7)
    lines = [*english_lines(250, 6), *chinese_lines(50, 6)]
    crafted = [' '.join(chance.choices(WORDS, k=5)) for _ in range(200)]
    crafted += [line.replace('\r', '') for line in crafted]
    return [*lines, *(f'  {line} \r\n' for line in crafted), '', ' ', 'x' * 500]


@pytest.mark.parametrize('glossaries', [[], GLOSSARIES[:1], GLOSSARIES[:3], GLOSSARIES])
@pytest.mark.parametrize('split_unknown', [False, True])
def test_lines_equal_those_of_apply_bpe(subword_nmt, codes, glossaries, split_unknown):
    _, apply, _ = subword_nmt
    text, known, vocabulary = codes
    theirs = apply.BPE(
        io.StringIO(text), vocab=known if split_unknown else None, glossaries=glossaries or None
    )
    ours = CodesSegmenter(vocabulary, NmtRules(tuple(glossaries), split_unknown))
    lines = lines_of_words()
    if glossaries:  # subword-nmt ends with an error where only white space follows a match
        lines = [line for line in lines if '\r ' not in line.rstrip()]
    assert ours.lines(lines) == [theirs.process_line(line) for line in lines]


@given(words=st.lists(st.text('12aetx中UKS@n', min_size=1, max_size=9), max_size=6))
def test_any_words_equal_those_of_apply_bpe(subword_nmt, codes, words):
    _, apply, _ = subword_nmt
    text, known, vocabulary = codes
    theirs = apply.BPE(io.StringIO(text), vocab=known, glossaries=GLOSSARIES)
    ours = CodesSegmenter(vocabulary, NmtRules(tuple(GLOSSARIES), True))
    assert ours.rows([words]) == [theirs.segment_tokens(words)]


class Drawn:
    """In place of the module `random`, the numbers of a row."""

    def __init__(self, seed, words):
        self.random = functools.partial(_draw, random_state(seed, words))


@pytest.mark.parametrize(
    ('rules', 'dropout'),
    [
        ((), 0.5),
        ((tuple(GLOSSARIES[:3]), True), 1.0),
        pytest.param((tuple(GLOSSARIES[:3]), True), 0.1, marks=pytest.mark.slow),
    ],
)
def test_dropout_is_that_of_apply_bpe_with_the_same_numbers(
    subword_nmt, codes, monkeypatch, rules, dropout
):
    _, apply, _ = subword_nmt
    text, known, vocabulary = codes
    glossaries, split_unknown = rules or ((), False)
    ours = CodesSegmenter(vocabulary, NmtRules(glossaries, split_unknown, dropout, 3))
    lines = [line.strip('\r\n ') for line in lines_of_words() if '\r ' not in line.rstrip()]
    expected = []
    for line in lines:
        theirs = apply.BPE(
            io.StringIO(text), vocab=known if split_unknown else None, glossaries=glossaries or None
        )
        monkeypatch.setattr(apply, 'random', Drawn(3, [word for word in line.split(' ') if word]))
        expected.append(theirs.process_line(line, dropout))
    assert ours.lines(lines) == expected
    # A line has the same pieces wherever it stands, and others for another seed.
    assert ours.lines(lines[::-1]) == expected[::-1]
    other = CodesSegmenter(vocabulary, NmtRules(glossaries, split_unknown, dropout, 4))
    assert (other.lines(lines) == expected) == (dropout == 1.0)


def test_how_often_a_word_is_segmented_so_is_as_in_apply_bpe(subword_nmt, codes):
    _, apply, _ = subword_nmt
    text, _, vocabulary = codes
    theirs, ours = apply.BPE(io.StringIO(text)), CodesSegmenter(vocabulary, NmtRules(dropout=0.3))
    words = collections.Counter(' '.join(english_lines(250, 5)).split())
    word = max(words, key=lambda word: (len(theirs.segment(word).split()) == 1) * len(word))
    rows = 4_000
    random.seed(1)
    of_theirs = collections.Counter(theirs.segment(word, 0.3) for _ in range(rows))
    of_ours = collections.Counter()
    for row in range(rows):
        [pieces] = ours.rows([[word, chr(0x4E00 + row)]])
        of_ours[' '.join(pieces[:-1])] += 1
    assert len(of_theirs) > 3
    # Six standard deviations of a difference of two shares.
    most = 6 * (0.5 / rows) ** 0.5
    for pieces in of_theirs | of_ours:
        assert abs(of_theirs[pieces] - of_ours[pieces]) / rows < most, pieces


def test_numbers_are_even():
    state = random_state(0, ['a'])
    numbers = np.array([_draw(state) for _ in range(20_000)])
    assert abs(numbers.mean() - 0.5) < 0.02 and 0 <= numbers.min() and numbers.max() < 1
    counts = np.histogram(numbers, 10, (0, 1))[0]
    assert counts.min() > 1_700


@pytest.mark.parametrize(
    'options', [{'glossary': ('et',)}, {'split_unknown': True}, {'dropout': 0.2}]
)
def test_ids_are_those_of_the_pieces_however_rows_are_cut(codes, options):
    _, _, vocabulary = codes
    scheme = BpeScheme(preset='subword-nmt')
    keywords, options = options, BpeEncodingOptions(**options)
    encoder = scheme.encoder(vocabulary, options)
    rows = [line.strip('\r\n ').encode() for line in lines_of_words()]
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = np.append(0, ends[:-1] + 1)
    side = Side(np.frombuffer(b'\n'.join(rows), np.uint8), starts, ends)
    encoded = encoder.encode_side(side, '', (0,), (1,))
    writer = scheme.piece_writer(vocabulary, options)
    for row, line in enumerate(writer.lines([row.decode() for row in rows])):
        ids = encoded.ids[encoded.offsets[row] : encoded.offsets[row + 1]].tolist()
        expected = [vocabulary.ids.get(piece, 2) for piece in line.split(' ') if piece]
        assert ids == [0, *expected, 1]
    tokenizer = BpeTokenizer(vocabulary, **keywords)
    for row in rows[:50]:
        text = row.decode()
        encoding = tokenizer.encode_with_offsets(text)
        assert encoding.ids == tokenizer.encode(text)
        spans = [text[start:end] for start, end in encoding.offsets]
        assert spans == [piece.removesuffix('@@') for piece in tokenizer.tokenize(text)]
    one = encoder.encode_side(side.take(slice(40, 41)))
    [start, end] = encoded.offsets[40:42].tolist()
    assert one.ids.tolist() == encoded.ids[start + 1 : end - 1].tolist()
