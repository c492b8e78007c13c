"""Added tokens of rows of a block, as of each row by itself."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe.added_tokens import AddedTokenFinder, join_parts
from tokcore.bpe.scheme import SCHEME, BpeEncodingOptions, BpeScheme
from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary, TokenizerParts
from tokcore.encoding.encoder import EncodedSide
from tokcore.errors import InputError
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.text.rows import Side
from tokcore.tokenizers import BpeTokenizer

ALPHABET = sorted(BYTE_TO_CHARACTER[byte] for byte in range(256))
ADDED = (
    AddedToken(256, '<s>'),
    AddedToken(257, '<s><s>'),
    AddedToken(258, 'ab', special=False),
    AddedToken(259, '  ', special=False, normalized=True),
)
VOCABULARY = BpeVocabulary({each: id_ for id_, each in enumerate(ALPHABET)}, (), ADDED)
ALLOWED = BpeEncodingOptions(allow_special_tokens=True)


def side_of(rows):
    coded = [row.encode() for row in rows]
    ends = np.cumsum([len(row) for row in coded], dtype=np.int64)
    text = np.frombuffer(b''.join(coded), np.uint8)
    return Side(text, ends - np.array([len(row) for row in coded], np.int64), ends)


def rows_of(encoded):
    bounds = encoded.offsets.tolist()
    return [encoded.ids[a:b].tolist() for a, b in zip(bounds, bounds[1:], strict=False)]


def characters(text):
    return [VOCABULARY.entries[BYTE_TO_CHARACTER[byte]] for byte in text.encode()]


def test_the_leftmost_and_of_several_the_longest():
    find = AddedTokenFinder(ADDED)
    found = [(0, 1, -1), (1, 7, 257), (7, 10, 256), (10, 12, 258)]
    assert find.find(b'x<s><s><s>ab') == found
    assert AddedTokenFinder(()).find(b'x<s>') == [(0, 4, -1)]


def test_special_tokens_that_are_text_hide_others():
    tokens = (AddedToken(1, '<ab>'), AddedToken(2, 'b', special=False))
    find = AddedTokenFinder(tokens, allow_special_tokens=False)
    assert find.find(b'b<ab>b') == [(0, 1, 2), (1, 5, -1), (5, 6, 2)]
    assert not AddedTokenFinder(tokens[:1], allow_special_tokens=False)


def test_raw_ones_are_found_before_normalized_ones():
    encoder = SCHEME.encoder(VOCABULARY, ALLOWED)
    found = rows_of(encoder.encode_side(side_of(['c  <s>', '', 'c'])))
    assert found == [[*characters('c'), 259, 256], [], characters('c')]


@given(
    st.lists(st.lists(st.sampled_from(['a', 'ab', '<s>', ' ', 'é', '<']), max_size=8), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_rows_of_a_block_are_encoded_each_by_itself(rows, allowed, prefix):
    parts = dataclasses.replace(VOCABULARY.parts, add_prefix_space=prefix)
    vocabulary = dataclasses.replace(VOCABULARY, parts=parts)
    texts = [''.join(row) for row in rows]
    scheme = SCHEME.configured_for(vocabulary)
    encoder = scheme.encoder(vocabulary, ALLOWED if allowed else None)
    together = rows_of(encoder.encode_side(side_of(texts), '', (7,), (8, 9)))
    tokenizer = BpeTokenizer(vocabulary, allow_special_tokens=allowed)
    assert together == [[7, *tokenizer.encode(text), 8, 9] for text in texts]


def test_what_is_found_in_raw_text_is_refused_for_rows_that_are_normalized():
    vocabulary = dataclasses.replace(VOCABULARY, parts=TokenizerParts.of(form='NFC'))
    scheme = BpeScheme(form='NFC')
    with pytest.raises(InputError, match="'ab' is to be found before .*NFC"):
        scheme.encoder(vocabulary)
    assert BpeTokenizer(vocabulary).encode('abe\u0301') == [258, *characters('é')]
    with pytest.raises(InputError, match='leave out --preset'):
        SCHEME.encoder(vocabulary)


IDS = st.lists(st.integers(0, 70_000), max_size=5)


@given(
    st.lists(st.lists(IDS | st.integers(0, 70_000)), max_size=6),
    IDS, IDS, st.sampled_from([np.int32, np.uint16]),
)  # fmt: skip
def test_parts_are_joined_to_rows(rows, before, after, dtype):
    """A part is a list of ids, or the id of an added token."""
    texts = [[] if isinstance(part, int) else part for parts in rows for part in parts]
    added = [part if isinstance(part, int) else -1 for parts in rows for part in parts]
    numbers = [row for row, parts in enumerate(rows) for _ in parts]
    ids = np.array([id_ for text in texts for id_ in text], np.int64).astype(dtype)
    offsets = np.cumsum([0, *map(len, texts)])
    encoded = join_parts(
        EncodedSide(ids, offsets), np.array(numbers, np.int64), np.array(added, np.int64),
        len(rows), (before, after),
    )  # fmt: skip
    flat = iter(ids.tolist())
    expected = []
    for parts in rows:
        found = [[part] if isinstance(part, int) else [next(flat) for _ in part] for part in parts]
        expected.append([*before, *(id_ for part in found for id_ in part), *after])
    assert rows_of(encoded) == expected
