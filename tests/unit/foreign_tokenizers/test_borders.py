"""Rows that are cut at borders have the ids of whole rows."""

import copy
import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe.vocabulary import BpeVocabulary, ModelRules, TokenizerParts
from tokcore.encoding.encoder import RowEncoder
from tokcore.foreign_tokenizers.borders import (
    NO_BORDERS,
    BorderPreTokenizer,
    borders_of_merges,
    borders_of_pieces,
)
from tokcore.foreign_tokenizers.unigram import UnigramModel
from tokcore.kernels.bytes import with_margin
from tokcore.kernels.hash_tables import CharacterPairs, has_characters
from tokcore.text.pre_tokenizer import RowTokens, one_row, scan_row
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


def tokens_of(text, borders):
    encoded = text.encode()
    row = one_row(with_margin(np.frombuffer(encoded, np.uint8)), 0, len(encoded))
    return [
        encoded[start:end].decode()
        for starts, ends in scan_row(row, *BorderPreTokenizer(borders).prepare(row))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


@given(PIECES, st.data())
def test_no_pair_of_a_piece_has_a_border_between(pieces, data):
    text = data.draw(st.text(ALPHABET, max_size=30))
    tokens = tokens_of(text, borders_of_pieces(pieces))
    assert ''.join(tokens) == text
    joined = {left + right for piece in pieces for left, right in itertools.pairwise(piece)}
    cuts = [left[-1] + right[0] for left, right in itertools.pairwise(tokens)]
    assert joined.isdisjoint(cuts)
    inside = {left + right for token in tokens for left, right in itertools.pairwise(token)}
    only_look_joined = inside - joined
    assert not [pair for pair in only_look_joined if pair.replace('▁', ' ').isascii()]
    # A few wide pairs that are in no piece may have the hash of one that is.
    assert len(only_look_joined) <= 3


@pytest.mark.parametrize('known', ['', ' ▁' + ''.join(map(chr, range(1, 128, 3)))])
@pytest.mark.parametrize('mark', ['▁', ' '])
def test_pairs_of_ascii_are_exact(known, mark):
    characters = [chr(code) for code in range(128) if chr(code) != ' '] + [mark]
    pairs = [left + right for left, right in itertools.product(characters, repeat=2)]
    # One of five pairs is in a piece, and so none of the classes is joined.
    pieces = pairs[::5]
    borders = borders_of_pieces([*pieces, 'é字'], known)
    assert not borders.joined.any()
    joined = {*pieces, *(pair for pair in pairs if known and not {*pair} & {*known})}
    found = {pair for pair in pairs if len(tokens_of(pair, borders)) == 1}
    assert found == joined
    text = ''.join(pairs)
    assert tokens_of(text, borders) == cut_between(text, borders, joined, known)


LETTERS = 'abcdefghijklmnopqrstuvwxyz'
MIXED = 'abzAZ09 ▁,~\t\0éʰ字あ😀'


@given(st.lists(st.text(MIXED, max_size=90), min_size=1, max_size=4), st.integers(18, 26),
       st.booleans(), st.sampled_from(['', 'ab,é▁', 'a▁ 😀']))  # fmt: skip
@example(['a,b,' * 100_000], 26, False, '')
@example(['a' * 200, ',' + 'a' * 64 + ',b', 'ab▁' * 30, ''], 26, False, '')
@example(['a,' * 30 + 'b' * after + '▁ab▁▁,▁é▁' for after in range(6)], 26, False, '')
@example(['a,' * 30 + 'b' * after + '▁ab▁▁,▁é▁' for after in range(6)], 26, True, '')
@example(['a,' * 30 + 'b' * after + '▁字字▁,😀😀,字é' for after in range(6)], 26, False, 'ab,é▁')
@example([f'{"a" * before}{wide}a{wide}▁{wide} b' for before in range(56, 66)
          for wide in ('é', '字', '😀', '▁', ' ')], 26, True, '')  # fmt: skip
@example(['字▁ a😀9,' * 40_000], 20, True, '')
def test_rows_are_cut_as_character_by_character(texts, size, has_inner_mark, known):
    pieces = [left + right for left in LETTERS[:size] for right in LETTERS]
    pieces += [f'▁{letter}' for letter in LETTERS[:size]]
    pieces += ['é,', '▁é', '字あ', 'あ', '09', ',,', 'Az', *has_inner_mark * ['é▁', 'a▁']]
    borders = borders_of_pieces(pieces, known)
    joined = {left + right for piece in pieces for left, right in itertools.pairwise(piece)}
    of_classes = borders.joined.reshape(6, 5)
    assert known or (of_classes[[0, 3], 0] != 0).tolist() == [size >= 20] * 2
    for left, right in itertools.product({0: LETTERS, 1: LETTERS.upper(), 3: '▁'}.items(),
                                         {0: LETTERS, 1: LETTERS.upper()}.items()):  # fmt: skip
        if of_classes[left[0], right[0]]:
            joined |= {''.join(pair) for pair in itertools.product(left[1], right[1])}
    for text in texts:
        assert tokens_of(text, borders) == cut_between(text, borders, joined, known)


def cut_between(text, borders, joined, known):
    """The tokens of a text, character by character; of wide characters by the bits of their pairs."""
    pairs = CharacterPairs(borders.pairs, borders.shift)
    joined = {pair.replace('▁', ' ') for pair in joined}
    known = {*known} - (set() if '▁' in known else {' '})
    tokens = [text[:1]] if text else []
    for mark_or_left, mark_or_right in itertools.pairwise(text):
        left, right = (' ' if each == '▁' else each for each in (mark_or_left, mark_or_right))
        is_border = not known or left in known or right in known
        if (left + right).isascii():
            is_border &= left + right not in joined
        else:
            numbers = (np.uint64(int.from_bytes(each.encode(), 'little')) for each in (left, right))
            is_border &= not has_characters(*numbers, pairs)
        if is_border:
            tokens.append(mark_or_right)
        else:
            tokens[-1] += mark_or_right
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
