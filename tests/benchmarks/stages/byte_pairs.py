"""Byte pair encoding: text to counts to merges, text to ids."""

import random
from collections.abc import Iterable
from pathlib import Path

from tokcore.bpe.files import parse_bpe_file
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import SCHEME, BpeScheme
from tokcore.corpus.line_rows import text_rows
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable

from ..outcome import Outcome, Ready, timed
from .blocks import TextBlock, file_blocks, get_ready, text_blocks

_UNBROKEN = 1_000_000

_WARM_UP = b'warm 1, cold 2; warmer.\n' * 20


def learn(ready: Ready, *, text: str, vocabulary_size: int, preset: str = 'gpt2') -> Outcome:
    """Counts a file and learns merges from the counts; of codes so many merges, not entries."""
    scheme = BpeScheme(preset=preset)
    get_ready(scheme)
    _learned(scheme, text_blocks(_WARM_UP), 300)
    vocabulary, seconds = timed(
        ready, lambda: _learned(scheme, file_blocks(Path(text)), vocabulary_size)
    )
    return Outcome(seconds, {'size': vocabulary.vocab_size})


def _learned(scheme: BpeScheme, blocks: Iterable[TextBlock], size: int):
    sums = TokenAccumulator()
    for block in blocks:
        (side,) = text_rows(block.data, block.offset, scheme.normalizer).sides
        sums.add_rows(side.text, side.starts, side.ends, scheme.pre_tokenizer)
    table = TokenTable(*sums.finish())
    asked = {'vocab_size': size} if scheme.preset == 'gpt2' else {'merges': size}
    return scheme.learn(table, BpeOptions(**asked), lambda *_: None).vocabulary


def encode(ready: Ready, *, text: str, model: str) -> Outcome:
    """Text in memory to ids in memory, by a tokenizer.json."""
    return _encoded(ready, Path(text).read_bytes(), model)


def encode_unbroken(ready: Ready, *, documents: int, model: str) -> Outcome:
    """Documents of letters alone, each a single token before it is cut, to ids."""
    draw = random.Random(documents)
    texts = [''.join(draw.choices('etaoinshrdlu', k=_UNBROKEN)) for _ in range(documents)]
    return _encoded(ready, '\n'.join(texts).encode(), model)


def _encoded(ready: Ready, text: bytes, model: str) -> Outcome:
    get_ready(SCHEME)
    blocks = text_blocks(text)
    encoder = SCHEME.encoder(parse_bpe_file(Path(model).read_bytes(), model))
    rows = (text_rows(block.data, block.offset, SCHEME.normalizer) for block in blocks)
    ids, seconds = timed(ready, lambda: [encoder.encode_side(each.sides[0]).ids for each in rows])
    return Outcome(seconds, {'ids': sum(map(len, ids))})
