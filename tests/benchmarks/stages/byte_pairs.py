"""Byte pair encoding: text to counts to merges, text to ids."""

import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tokcore.bpe.files import parse_bpe_file
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import SCHEME, BpeScheme
from tokcore.corpus.line_rows import text_rows
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable

from ..outcome import Outcome
from .blocks import TextBlock, file_blocks, get_ready, text_blocks

_UNBROKEN = 1_000_000

_WARM_UP = b'warm 1, cold 2; warmer.\n' * 20


def learn(
    ready: Callable[[], None], *, text: str, vocabulary_size: int, preset: str = 'gpt2'
) -> Outcome:
    """Counts a file and learns merges from the counts; of codes so many merges, not entries."""
    scheme = BpeScheme(preset=preset)
    get_ready(scheme)
    _learned(scheme, text_blocks(_WARM_UP), 300)
    ready()
    started = time.perf_counter()
    vocabulary = _learned(scheme, file_blocks(Path(text)), vocabulary_size)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'size': vocabulary.vocab_size})


def _learned(scheme: BpeScheme, blocks: Iterable[TextBlock], size: int):
    sums = TokenAccumulator()
    for block in blocks:
        (side,) = text_rows(block.data, block.offset, scheme.normalizer).sides
        sums.add_rows(side.text, side.starts, side.ends, scheme.pre_tokenizer)
    table = TokenTable(*sums.finish())
    asked = {'vocab_size': size} if scheme.preset == 'gpt2' else {'merges': size}
    return scheme.learn(table, BpeOptions(**asked), lambda *_: None).vocabulary


def encode(ready: Callable[[], None], *, text: str, model: str) -> Outcome:
    """Text in memory to ids in memory, by a tokenizer.json."""
    get_ready(SCHEME)
    blocks = text_blocks(Path(text).read_bytes())
    encoder = SCHEME.encoder(parse_bpe_file(Path(model).read_bytes(), model))
    ready()
    started = time.perf_counter()
    rows = (text_rows(block.data, block.offset, SCHEME.normalizer) for block in blocks)
    ids = [encoder.encode_side(each.sides[0]).ids for each in rows]
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'ids': sum(map(len, ids))})


def encode_unbroken(ready: Callable[[], None], *, documents: int, model: str) -> Outcome:
    """Documents of letters alone, each a single token before it is cut, to ids."""
    get_ready(SCHEME)
    draw = random.Random(documents)
    texts = [''.join(draw.choices('etaoinshrdlu', k=_UNBROKEN)) for _ in range(documents)]
    blocks = text_blocks('\n'.join(texts).encode())
    encoder = SCHEME.encoder(parse_bpe_file(Path(model).read_bytes(), model))
    ready()
    started = time.perf_counter()
    rows = (text_rows(block.data, block.offset, SCHEME.normalizer) for block in blocks)
    ids = [encoder.encode_side(each.sides[0]).ids for each in rows]
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'ids': sum(map(len, ids))})
