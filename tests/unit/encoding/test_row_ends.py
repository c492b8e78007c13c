"""Ids of a row do not depend on what is behind it, also where the row ends inside a character."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe.vocabulary import BpeVocabulary, ModelRules, TokenizerParts
from tokcore.encoding.encoder import RowEncoder
from tokcore.foreign_tokenizers.borders import BorderPreTokenizer, borders_of_merges
from tokcore.foreign_tokenizers.pre_tokenizers import MarkPreTokenizer
from tokcore.foreign_tokenizers.unigram import UnigramModel
from tokcore.kernels.bytes import READABLE
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.byte_level import BYTE_TO_CHARACTER, spelled
from tokcore.text.patterns import DEFINITIONS
from tokcore.text.pre_tokenizer import RowTokens
from tokcore.text.rows import Side
from tokcore.text.split_sequence import pattern_pre_tokenizer
from tokcore.text.t2t import T2TPreTokenizer

CHARACTERS = 'ab 1,▁éΩ字典，\u3000\u2028ａ𝔞😀٣\u0301'
PAIRS = ['字典', '▁字', 'é字', '典😀', 'ab', '▁a', '\u2028a', '，字', 'Ω1']


def merged_characters():
    entries = dict.fromkeys(['?', *CHARACTERS, *(f'<0x{byte:02X}>' for byte in range(256)), *PAIRS])
    return BpeVocabulary(
        {entry: id_ for id_, entry in enumerate(entries)}, tuple(map(tuple, PAIRS)), (),
        TokenizerParts(byte_level=False), ModelRules('?', byte_fallback=True),
    )  # fmt: skip


def merged_bytes():
    entries, merges = dict.fromkeys(BYTE_TO_CHARACTER.values()), []
    # Of some, a token joins a character with the first bytes of another.
    cut = [text.encode()[:-1] for text in ('，\u3000', 'aΩ', '1٣', '，\u2028', '\u3000字', 'Ω字')]
    for data in [*(text.encode() for text in [*CHARACTERS, *PAIRS]), *cut]:
        token = spelled(data)
        for size in range(2, len(token) + 1):
            if token[:size] not in entries:
                entries[token[:size]] = None
                merges.append((token[: size - 1], token[size - 1]))
    return BpeVocabulary({entry: id_ for id_, entry in enumerate(entries)}, tuple(merges))


def unigram():
    pieces = {piece: 1 + id_ for id_, piece in enumerate([*CHARACTERS[::2], *PAIRS])}
    scores = [0.0, *(-1.0 - id_ / 8 for id_ in range(len(pieces)))]
    return UnigramModel(pieces, scores, -20.0, 0, single_precision=True)


BYTES, CHARACTER_MERGES = merged_bytes(), merged_characters()
WORDS = SubwordTextEncoder(['<pad>_', '<EOS>_', *CHARACTERS, *'\\_;u0123456789'])
ENCODINGS = {
    'borders': (
        BorderPreTokenizer(borders_of_merges(CHARACTER_MERGES)), CHARACTER_MERGES.model,
    ),
    'marks': (MarkPreTokenizer(), CHARACTER_MERGES.model),
    'phrases': (RowTokens(), BYTES.model),
    'unigram': (RowTokens(), unigram()),
    'subwords': (T2TPreTokenizer(), WORDS.model),
    **{name: (pattern_pre_tokenizer(name), BYTES.model) for name in DEFINITIONS},
}  # fmt: skip
QUICK = {'borders', 'marks', 'phrases', 'unigram', 'subwords', 'cl100k', 'o200k'}
BEHIND = [b'', b'a', b'\x80', b'\xbf', b'\x9f\x98\x80', b'\x97', b'\x81', b'\xff', b' ', b'\n']


def ids_of(name, row, behind):
    encoder = RowEncoder(*ENCODINGS[name])
    text = np.frombuffer(row + (behind * READABLE)[:READABLE], np.uint8)
    return encoder.encode_side(Side(text, np.zeros(1, np.int64), np.full(1, len(row)))).ids.tolist()


@pytest.mark.parametrize(
    'name',
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in ENCODINGS],
)
@given(st.text(CHARACTERS, min_size=1, max_size=80), st.integers(1, 3))
@example('典😀', 2)
@example('a\u3000', 1)
@example('字典' * 12 + 'a' * 50 + '字', 2)
@example('字，\u3000', 1)
@example('1٣', 1)
@example('aΩ', 1)
def test_what_is_behind_does_not_matter(name, text, left_out):
    row = text.encode()[:-left_out]
    alone = ids_of(name, row, b'')
    if ENCODINGS[name][1] is BYTES.model:
        assert BYTES.decode_bytes(alone) == row
    for behind in BEHIND:
        assert ids_of(name, row, behind) == alone, behind


def test_rows_of_one_block_are_as_alone():
    text = ''.join(CHARACTERS).encode()
    begins = [len(CHARACTERS[:size].encode()) for size in range(len(CHARACTERS))]
    bounds = ((start, end) for start in begins for end in range(start, len(text) + 1))
    starts, ends = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    for name, parts in ENCODINGS.items():
        block = RowEncoder(*parts).encode_side(Side(np.frombuffer(text, np.uint8), starts, ends))
        for row in range(0, len(starts), 17):
            ids = block.ids[block.offsets[row] : block.offsets[row + 1]].tolist()
            assert ids == ids_of(name, text[starts[row] : ends[row]], b''), (name, row)
