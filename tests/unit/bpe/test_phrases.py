"""Phrases that are cut have the ids of whole tokens."""

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe.model_kernels import MergeState
from tokcore.bpe.phrases import NO_CUTS, joins_of_tokens, part_end
from tokcore.bpe.vocabulary import BpeVocabulary, ModelRules
from tokcore.encoding.encoder import RowEncoder
from tokcore.kernels.bytes import with_margin
from tokcore.text.byte_level import BYTE_TO_CHARACTER, spelled
from tokcore.text.pre_tokenizer import RowTokens
from tokcore.text.rows import Side

from .test_model import merged, random_merges

_TEXT = 'a 中丮丮文，é🙂'
_TEXTS = st.lists(st.text(_TEXT, min_size=1, max_size=30), min_size=1, max_size=8)


def vocabulary_of(merges, rules, others=()):
    """Of merges of bytes, whose results have the ids from 256 on, and of tokens without merges."""
    tokens = {byte: bytes([byte]) for byte in range(256)}
    for left, right, result in sorted(merges, key=lambda merge: merge[2]):
        tokens[result] = tokens[left] + tokens[right]
    ids = {}
    for id_, token in tokens.items():
        ids.setdefault(token, id_)
    for number, token in enumerate(others):
        ids.setdefault(token, 1000 + number)
    pairs = tuple((spelled(tokens[left]), spelled(tokens[right])) for left, right, _ in merges)
    entries = {spelled(token): id_ for token, id_ in ids.items()}
    return BpeVocabulary(entries, tuple(dict.fromkeys(pairs)), rules=rules)


def encoded(state: MergeState, model, texts: list[str]) -> list[list[int]]:
    model.state = state
    data = [text.encode() for text in texts]
    ends = np.cumsum([*map(len, data)])
    side = Side(np.frombuffer(b''.join(data), np.uint8), ends - [*map(len, data)], ends)
    rows = RowEncoder(RowTokens(), model).encode_side(side)
    return [rows.ids[a:b].tolist() for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]


@given(st.randoms(use_true_random=False), _TEXTS, st.booleans(), st.booleans())
def test_ids_are_those_of_whole_tokens(chance, texts, shuffled, ignores_merges):
    merges = random_merges(chance, ''.join(texts).encode(), chance.randrange(60), shuffled)
    others = [text.encode() for text in chance.sample(texts, 1)] if ignores_merges else []
    vocabulary = vocabulary_of(
        merges, ModelRules(ignore_merges=ignores_merges, ranks_of_results=shuffled), others
    )
    model = vocabulary.model
    assert len(model.state.joins.sides)
    whole = model.state._replace(joins=NO_CUTS)
    texts = [*texts, ''.join(texts), *texts]
    cut = encoded(model.state, model, texts)
    assert cut == encoded(whole, model, texts)
    if not ignores_merges and not shuffled:
        ids = vocabulary.merge_ids.tolist()
        assert cut == [merged(text.encode(), ids) for text in texts]


def parts_of(text: str, tokens: list[bytes]) -> list[str]:
    sizes = np.array([*map(len, tokens)], np.int64)
    joins = joins_of_tokens(np.frombuffer(b''.join(tokens), np.uint8), sizes)
    data = text.encode()
    row, place, parts = with_margin(np.frombuffer(data, np.uint8)), 0, []
    while place < len(data):
        end = int(part_end(row, np.uint64(place), np.uint64(len(data)), joins))
        parts.append(data[place:end].decode())
        place = end
    return parts


@pytest.mark.parametrize(
    ('tokens', 'parts'),
    [
        ([], ['中', '文', '，', '文', '中']),
        (['文，'.encode()], ['中', '文，', '文', '中']),
        (['x中文y'.encode()], ['中文', '，', '文', '中']),
        (['，'.encode() + b'\xe6'], ['中', '文', '，文', '中']),
        (['中'.encode()[1:] + '文'.encode()], ['中文', '，文', '中']),
        (['中'.encode()[2:] + '文'.encode()[:1]], ['中文', '，文', '中']),
        ([b'\xad\xe4'], ['中', '文', '，', '文中']),
        ([b'\x80\x80', b'\xff\xfe', b'\xe4\xff\xff', b'\x80\xff'], ['中', '文', '，', '文', '中']),
    ],
)
def test_where_phrases_are_cut(tokens, parts):
    assert parts_of('中文，文中', tokens) == parts


@example([b'\xf0', b'a'], 'a🙂🙂')
@given(st.lists(st.binary(min_size=1, max_size=9), max_size=5), st.text(_TEXT, max_size=20))
def test_no_token_reaches_across_a_cut(tokens, text):
    # Tokens of any bytes, and pieces of the text itself.
    data = text.encode()
    tokens = [*tokens, *(data[k : k + 1 + k % 7] for k in range(0, len(data), 3))]
    place = 0
    for part in parts_of(text, tokens)[:-1]:
        place += len(part.encode())
        for token in tokens:
            for first in range(max(0, place - len(token) + 1), place):
                assert data[first : first + len(token)] != token


def test_nothing_is_cut_where_bytes_may_vanish_or_ids_are_shared():
    entries = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
    vocabulary = BpeVocabulary(entries, ())
    assert len(vocabulary.model.state.joins.sides)
    for other in (
        {entry: id_ for entry, id_ in entries.items() if id_ != 0xFF},
        {**entries, 'ab': 7},
    ):
        changed = dataclasses.replace(vocabulary, entries=other)
        assert not len(changed.model.state.joins.sides)
