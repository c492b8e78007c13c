"""Rows that are cut at borders have the ids of whole rows."""

import copy
import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe.vocabulary import BpeVocabulary, ModelRules, TokenizerParts
from tokcore.encoding.encoder import RowEncoder
from tokcore.kernels.bytes import with_margin
from tokcore.pretrained.borders import (
    NO_BORDERS,
    BorderPreTokenizer,
    borders_of_merges,
    borders_of_pieces,
)
from tokcore.pretrained.unigram import UnigramModel
from tokcore.text.character_pairs import CharacterPairs, has_characters
from tokcore.text.listed_tokens import RowTokens
from tokcore.text.pre_tokenizer import one_row, scan_row
from tokcore.text.rows import Side

ALPHABET = 'ab▁,字é'
TEXTS = st.lists(st.text(ALPHABET + '?😀', max_size=40), min_size=1, max_size=6)
PIECES = st.lists(st.text(ALPHABET, min_size=1, max_size=6), max_size=25, unique=True)


def side_of(texts):
    data = [text.encode() for text in texts]
    ends = np.cumsum([len(row) for row in data])
    starts = np.append(0, ends[:-1])
    return Side(np.frombuffer(b''.join(data), np.uint8), starts, ends)


def ids_of(pre_tokenizer, model, texts):
    encoded = RowEncoder(pre_tokenizer, model).encode_side(side_of(texts))
    bounds = encoded.offsets.tolist()
    return [encoded.ids[first:last].tolist() for first, last in itertools.pairwise(bounds)]


def in_one_step(model):
    """The model, which keeps nothing and goes through whole rows."""
    plain = copy.copy(model)
    plain.state = model.state._replace(borders=NO_BORDERS, lowest_level=1000)
    return plain


@given(PIECES, st.data())
def test_no_pair_of_a_piece_has_a_border_between(pieces, data):
    text = data.draw(st.text(ALPHABET, max_size=30))
    borders = BorderPreTokenizer(borders_of_pieces(pieces))
    encoded = text.encode()
    row = one_row(with_margin(np.frombuffer(encoded, np.uint8)), 0, len(encoded))
    tokens = [
        encoded[start:end].decode()
        for starts, ends in scan_row(row, *borders.prepare(row))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    assert ''.join(tokens) == text
    joined = {left + right for piece in pieces for left, right in itertools.pairwise(piece)}
    cuts = [left[-1] + right[0] for left, right in itertools.pairwise(tokens)]
    assert joined.isdisjoint(cuts)
    # A few pairs that are in no piece may have the hash of one that is.
    inside = {left + right for token in tokens for left, right in itertools.pairwise(token)}
    assert len(inside - joined) <= 3


LETTERS = 'abcdefghijklmnopqrstuvwxyz'


@given(st.lists(st.text('abz,▁é字😀', max_size=80), min_size=1, max_size=4), st.integers(19, 26),
       st.booleans(), st.sampled_from(['', 'ab,é', 'a▁😀']))  # fmt: skip
@example(['a,b,' * 20_000], 26, False, '')
@example(['a' * 200, ',' + 'a' * 64 + ',b', 'ab▁' * 30, ''], 26, False, '')
@example(['a,' * 30 + 'b' * after + '▁ab▁▁,▁é▁' for after in range(6)], 26, False, '')
@example(['a,' * 30 + 'b' * after + '▁ab▁▁,▁é▁' for after in range(6)], 26, True, '')
@example(['a,' * 30 + 'b' * after + '▁字字▁,😀😀,字é' for after in range(6)], 26, False, 'ab,é')
def test_words_are_passed_where_letters_are_joined(texts, size, has_inner_mark, known):
    pieces = [left + right for left in LETTERS[:size] for right in LETTERS]
    borders = borders_of_pieces([*pieces, 'é,', '▁é', *has_inner_mark * ['é▁']], known)
    assert borders.joins_letters == (size * len(LETTERS) >= 500)
    assert borders.cuts_before_marks == (not has_inner_mark and (not known or '▁' in known))
    for text in texts:
        encoded = text.encode()
        row = one_row(with_margin(np.frombuffer(encoded, np.uint8)), 0, len(encoded))
        tokens = [
            encoded[start:end].decode()
            for starts, ends in scan_row(row, *BorderPreTokenizer(borders).prepare(row))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        assert tokens == cut_between(text, known, borders)


def cut_between(text, known, borders):
    """The tokens of a text, character by character; a mark may have a border that its pair has not."""
    pairs = CharacterPairs(borders.pairs, borders.shift)
    cuts_before_marks = borders.joins_letters and borders.cuts_before_marks
    tokens = [text[:1]] if text else []
    for left, right in itertools.pairwise(text):
        numbers = (np.uint64(int.from_bytes(each.encode(), 'little')) for each in (left, right))
        is_known = not known or left in known or right in known
        if is_known and not has_characters(*numbers, pairs) or (right == '▁' and cuts_before_marks):
            tokens.append(right)
        else:
            tokens[-1] += right
    return tokens


# The last scores differ by less than what a sum of many loses by rounding.
SCORES = st.sampled_from([-1.0, -2.5, -7.3, -0.1, -3.3, -3.3 - 2e-7, -6.6, -6.6 - 5e-7])


@given(st.dictionaries(st.text(ALPHABET, min_size=1, max_size=5), SCORES, max_size=30), TEXTS,
       st.booleans(), st.integers(1, 400))  # fmt: skip
@example({'a': -3.3, 'b': -3.3, 'ab': -6.6 - 5e-7}, ['ab,ab,ab,ab'], False, 100)
@example({'a': -3.3, 'aa': -6.6}, ['aa,' * 12], True, 300)
def test_unigrams_of_single_precision(scored, texts, has_bytes, times):
    names = [f'<{byte}>' for byte in range(256)] if has_bytes else []
    pieces = {piece: 1 + id_ for id_, piece in enumerate(scored)}
    scores = [
        0.0,
        *(float(np.float32(score)) for score in scored.values()),
        *map(float, range(len(names))),
    ]
    fallback = list(range(1 + len(pieces), len(scores)))
    lowest = float(np.float32(min(scored.values(), default=0) - 10))
    model = UnigramModel(pieces, scores, lowest, 0, fallback, single_precision=True)
    texts = [*texts, ''.join(texts) * times, *texts]
    assert ids_of(RowTokens(), model, texts) == ids_of(RowTokens(), in_one_step(model), texts)


def test_steps_that_share_a_line():
    # Of some thousands of steps about a hundred are kept in the line of another; they have 3 to 7 ids.
    letters = [''.join(four) for four in itertools.product('ab', repeat=4)]
    pieces = {piece: 1 + id_ for id_, piece in enumerate(['a', 'b', ',', *letters])}
    scores = [0.0, -9.0, -9.5, -2.0, *(-8.0 - number / 8 for number in range(len(letters)))]
    model = UnigramModel(pieces, scores, -30.0, 0, single_precision=True)
    words = [''.join(word) for word in itertools.product('ab', repeat=11)]
    words = [word + 'b' * (1 + number % 5) for number, word in enumerate(words)]
    # A long step after each, and a short one again.
    row = ''.join(f'{word},{word}aaaabbbb,{word},' for word in words)
    texts = [row, row[::-1], row]
    assert ids_of(RowTokens(), model, texts) == ids_of(RowTokens(), in_one_step(model), texts)


def test_a_choice_that_the_sum_before_decides():
    # Alone, `ab` is one piece; behind a thousand others both ways have the same sum, and the first wins.
    scores = [0.0, -3.3, -3.3, -6.6 + 4e-7, -20.0]
    model = UnigramModel(
        {'a': 1, 'b': 2, 'ab': 3, ',': 4}, [float(np.float32(score)) for score in scores],
        -30.0, 0, single_precision=True,
    )  # fmt: skip
    texts = [',' * count + 'ab,' * 40 for count in range(0, 3000, 37)]
    found = ids_of(RowTokens(), model, texts)
    assert found == ids_of(RowTokens(), in_one_step(model), texts)
    assert {tuple(ids[-3:]) for ids in found} == {(4, 3, 4), (1, 2, 4)}


RULES = [
    ModelRules('?', fuse, bytes_, ignore)
    for fuse, bytes_, ignore in itertools.product((False, True), repeat=3)
]


@given(PIECES, TEXTS, st.sampled_from([*RULES, ModelRules(), ModelRules(byte_fallback=True)]),
       st.sampled_from(['all', 'some', 'merged']))  # fmt: skip
@example([], ['é😀é😀é😀'], ModelRules('?', byte_fallback=True), 'some')
def test_merges(pieces, texts, rules, fallback):
    names = [f'<0x{byte:02X}>' for byte in range(256 if fallback != 'some' else 200)]
    known = [character for character in ALPHABET[:5] if character != 'é']
    entries = dict.fromkeys(['?', *known, *names, *pieces])
    merges = [
        (piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in entries and piece[cut:] in entries
    ]
    if fallback == 'merged':
        entries['<0xF0><0x9F>'] = None
        merges.append(('<0xF0>', '<0x9F>'))
    entries = {entry: id_ for id_, entry in enumerate(entries)}
    vocabulary = BpeVocabulary(entries, tuple(merges), (), TokenizerParts(byte_level=False), rules)
    borders = borders_of_merges(vocabulary)
    if fallback != 'all' and rules.byte_fallback:
        assert not len(borders.pairs)
    texts = [*texts, ''.join(texts) * 3]
    whole = ids_of(RowTokens(), vocabulary.model, texts)
    assert ids_of(BorderPreTokenizer(borders), vocabulary.model, texts) == whole


def test_no_borders_where_characters_vanish():
    entries = {'a': 0, 'b': 1, 'ab': 2}

    def borders(entries, rules, merges=(('a', 'b'),)):
        return borders_of_merges(BpeVocabulary(entries, merges, rules=rules)).pairs

    assert not len(borders(entries, ModelRules()))
    assert not len(borders(entries, ModelRules('a')))
    assert len(borders({**entries, '?': 3}, ModelRules('?')))
    assert not len(borders({**entries, '?': 3, '': 4}, ModelRules('?'), [('', 'b')]))


@pytest.mark.parametrize('size', [0, 1, 7])
def test_rows_that_are_cut_nowhere(size):
    text = np.frombuffer(b'a' * size, np.uint8)
    row = one_row(with_margin(text), 0, size)
    [(starts, ends)] = scan_row(row, *BorderPreTokenizer(NO_BORDERS).prepare(row))
    assert (starts.tolist(), ends.tolist()) == (([0], [size]) if size else ([], []))
