"""Rows with special tokens in their prefix have the ids that the original tools give them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_pretrained_ids import LINES, LLAMA

from tokcore.bpe.files import parse_tokenizer
from tokcore.bpe.scheme import SCHEME as BPE
from tokcore.encoding.encoder import PrefixEncoder
from tokcore.encoding.scheme import Scheme
from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.scheme import SCHEME as PRETRAINED
from tokcore.subword.scheme import SCHEME as SUBWORD
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.rows import Side

TAGS = ('<2zh>', '<|x|>', '<mask>', '<one>')
PARTS = st.sampled_from(['the dog', ' ', '  ', 'x', ': ', 'Größe', '字', *TAGS, *TAGS])
PREFIXES = st.lists(PARTS, max_size=6).map(''.join)
ROWS = st.lists(st.sampled_from(['the quick', ' ', 'dog', "'s", '字', '\u00a0', '.'])).map(''.join)


def rows_of(scheme: Scheme, vocabulary, prefix: str, rows: list[str]) -> list[list[int]]:
    """The ids of rows of a block, without a template."""
    encoder = PrefixEncoder(
        scheme.encoder(vocabulary), lambda text: scheme.special_tokens_in(vocabulary, text)
    )
    data = [row.encode() for row in rows]
    lengths = np.array([len(row) for row in data], np.int64)
    ends = np.cumsum(lengths)
    side = Side(np.frombuffer(b''.join(data), np.uint8), ends - lengths, ends)
    encoded = encoder.encode_side(side, prefix)
    bounds = encoded.offsets.tolist()
    return [encoded.ids[start:end].tolist() for start, end in zip(bounds, bounds[1:])]


@pytest.mark.parametrize('kind', ['bpe', 'bytes', 'llama', 'first', 'always'])
def test_tokenizers(tokenizers, kind):
    from tokenizers import AddedToken, models, pre_tokenizers, trainers

    theirs = tokenizers.Tokenizer(models.BPE(unk_token=None if 'b' in kind else '<unk>'))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ['<unk>', '<2zh>', '<|x|>']
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if kind in ('llama', 'first', 'always'):
        theirs.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = []
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator(LINES * 3, trainer)
    if kind == 'llama':
        from json import dumps, loads

        file = {**loads(theirs.to_str()), 'normalizer': LLAMA, 'pre_tokenizer': None}
        theirs = tokenizers.Tokenizer.from_str(dumps(file))
    elif kind in ('first', 'always'):
        theirs.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind)
    if kind != 'bpe':  # the scheme bpe refuses such tokens
        flagged = [
            AddedToken('<mask>', special=True, lstrip=True, normalized=False),
            AddedToken('<one>', special=True, single_word=True, normalized=False),
        ]
        theirs.add_special_tokens(flagged)
    data = theirs.to_str().encode()
    scheme, vocabulary = (
        (BPE, parse_tokenizer(data, 'small.json'))
        if kind == 'bpe'
        else (PRETRAINED, parse_pretrained(data, 'small.json'))
    )

    @given(PREFIXES, st.lists(ROWS, max_size=3))
    def same(prefix, rows):
        if prefix.endswith('<one>'):  # whether it stands alone depends on the row
            prefix += ' '
        expected = [theirs.encode(prefix + row, add_special_tokens=False).ids for row in rows]
        assert rows_of(scheme, vocabulary, prefix, rows) == expected

    same()


def test_tensor2tensor(t2t_text_encoder, tmp_path):
    """A tag has the id of its line, the text around it the ids of the original, which reads it back."""
    from tokcore.learn import count_tokens
    from tokcore.subword.scheme import SubwordOptions

    options = SubwordOptions(vocab_size=150, reserved_tokens=('<2zh>', '<|x|>'))
    learned = SUBWORD.learn(count_tokens(SUBWORD, LINES), options, lambda *_: None).vocabulary
    assert isinstance(learned, SubwordTextEncoder)
    path = tmp_path / 'vocab.subwords'
    learned.save(path)
    original = t2t_text_encoder.SubwordTextEncoder(str(path))

    @given(ROWS)
    def same(row):
        [ids] = rows_of(SUBWORD, learned, 'to <2zh><|x|>: ', [row])
        assert ids == [*original.encode('to '), 2, 3, *original.encode(': ' + row)]
        assert original.decode(ids) == learned.decode(ids) == 'to <2zh><|x|>: ' + row

    same()
