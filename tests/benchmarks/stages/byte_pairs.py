"""Byte pair encoding: text to counts to merges, text to ids."""

import random
from collections.abc import Iterable
from pathlib import Path

from tokcore.bpe.files import parse_bpe_file
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import SCHEME, BpeScheme
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable

from ..outcome import Outcome, Ready, timed
from .blocks import TextBlock, add_tokens, file_blocks, get_ready, ids_of_blocks, text_blocks

_UNBROKEN = 1_000_000

_WARM_UP = b'warm 1, cold 2; warmer.\n' * 20


def learn(ready: Ready, *, text: str, vocabulary_size: int, preset: str = 'gpt2') -> Outcome:
    """Counts a file and learns from the counts; the size of subword-nmt's codes is in merges."""
    scheme = BpeScheme(preset=preset)
    get_ready(scheme)
    _learned(scheme, text_blocks(_WARM_UP), 300)
    vocabulary, seconds = timed(
        ready, lambda: _learned(scheme, file_blocks(Path(text)), vocabulary_size)
    )
    return Outcome(seconds, {'size': vocabulary.vocab_size})


def _learned(scheme: BpeScheme, blocks: Iterable[TextBlock], size: int):
    sums = TokenAccumulator()
    add_tokens(sums, blocks, scheme.normalizer, scheme.pre_tokenizer)
    table = TokenTable(*sums.finish())
    size_option = {'vocab_size': size} if scheme.preset == 'gpt2' else {'merges': size}
    return scheme.learn(table, BpeOptions(**size_option), lambda *_: None).vocabulary


def encode(ready: Ready, *, text: str, model: str) -> Outcome:
    """Text in memory to ids in memory, by a tokenizer.json."""
    return _encoded(ready, Path(text).read_bytes(), model)


def encode_unbroken(ready: Ready, *, documents: int, model: str) -> Outcome:
    """Documents of letters to ids; each document is a single token before it is cut."""
    draw = random.Random(documents)
    texts = [''.join(draw.choices('etaoinshrdlu', k=_UNBROKEN)) for _ in range(documents)]
    return _encoded(ready, '\n'.join(texts).encode(), model)


def _encoded(ready: Ready, text: bytes, model: str) -> Outcome:
    get_ready(SCHEME)
    blocks = text_blocks(text)
    encoder = SCHEME.encoder(parse_bpe_file(Path(model).read_bytes(), model))
    encoded = ids_of_blocks(encoder, blocks, SCHEME.normalizer)
    ids, seconds = timed(ready, lambda: list(encoded))
    return Outcome(seconds, {'ids': sum(map(len, ids))})
