"""Superwords of 20 MB of text, as a plain form learns them that counts all pairs again at each merge."""

import gzip

import numpy as np
import pytest
from shared_corpora import FOLDER

from tokcore import learn_vocabulary
from tokcore.bpe.extension import encoded_tokens
from tokcore.counts.token_table import TokenTable

pytestmark = pytest.mark.corpora

TEXT_BYTES = 20_000_000
SIZE, MERGES = 4_096, 150


def is_superword(piece):
    """As the trainer of SuperBPE's authors decides."""
    return ':Ġ' not in piece and len([word for word in piece.split('Ġ') if word]) <= 4


def merged(symbols, pair, id_):
    """The symbols with each occurrence of a pair replaced, from the left."""
    found = np.flatnonzero((symbols[:-1] == pair[0]) & (symbols[1:] == pair[1]))
    if pair[0] == pair[1]:  # of occurrences that overlap, every other one is merged
        runs = np.cumsum(np.diff(found, prepend=-2) > 1)
        first = found[np.searchsorted(runs, runs)]
        found = found[(found - first) % 2 == 0]
    symbols = symbols.copy()
    symbols[found] = id_
    return np.delete(symbols, found + 1)


def learned_plainly(symbols, pieces, merges):
    """The pairs that are merged; `symbols` are those of all lines, with -1 between lines."""
    pieces, pairs = list(pieces), []
    for _ in range(merges):
        left, right = symbols[:-1], symbols[1:]
        both = (left >= 0) & (right >= 0)
        keys, counts = np.unique(left[both] << 32 | right[both], return_counts=True)
        for index in np.argsort(-counts, kind='stable'):
            pair = divmod(int(keys[index]), 1 << 32)
            piece = pieces[pair[0]] + pieces[pair[1]]
            if is_superword(piece):
                break
        if piece not in pieces:
            pieces.append(piece)
        pairs.append((pieces[pair[0]], pieces[pair[1]]))
        symbols = merged(symbols, pair, pieces.index(piece))
    return pairs


def test_superwords_are_those_of_the_plain_form(tmp_path):
    path = FOLDER / 'docs.en.txt.gz'
    if not path.exists():
        pytest.skip(f'{path} is not there')
    with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as file:
        text = file.read(TEXT_BYTES)
    lines = [line for line in text.split('\n') if line.strip()]
    old = learn_vocabulary(lines, 'bpe', vocab_size=SIZE).vocabulary
    (tmp_path / 'tokenizer.json').write_bytes(old.dump())
    extend = {'extend': tmp_path / 'tokenizer.json', 'pre_tokenizer': 'none'}
    found = learn_vocabulary(lines, 'bpe', **extend, vocab_size=SIZE + MERGES).vocabulary
    rows = [line.encode() for line in lines]
    offsets = np.cumsum([0, *map(len, rows)])
    data = np.frombuffer(b''.join(rows) + bytes(64), np.uint8)
    encoded = encoded_tokens(TokenTable(data, offsets, np.ones(len(rows), np.int64)), old)
    symbols = np.insert(encoded.ids.astype(np.int64), encoded.offsets[1:-1], -1)
    pairs = learned_plainly(symbols, old.pieces, MERGES)
    assert [*found.merges[len(old.merges) :]] == pairs
    assert any('Ġ' in piece[1:] for piece in found.pieces[SIZE:])
