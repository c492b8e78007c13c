"""tiktoken: encoding by byte-level BPE, with a tokenizer.json's merges or a file of ranks."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import tiktoken

from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.text.patterns import DEFINITIONS

from ..outcome import Outcome

_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def encode(ready: Callable[[], None], *, text: str, model: str) -> Outcome:
    """Lines in memory to ids, one line after another."""
    bytes_of = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
    merges = json.loads(Path(model).read_bytes())['model']['merges']
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [bytes(map(bytes_of.get, left + right)) for left, right in merges]
    ranks = {piece: rank for rank, piece in enumerate(dict.fromkeys(pieces))}
    return _encoded(ready, text, _PATTERN, ranks)


def encode_ranks(ready: Callable[[], None], *, text: str, file: str, pattern: str) -> Outcome:
    """The same by a file of ranks and the name of its pattern."""
    lines = map(bytes.split, Path(file).read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in filter(None, lines)}
    return _encoded(ready, text, DEFINITIONS[pattern].expressions[0], ranks)


def _encoded(
    ready: Callable[[], None], text: str, pattern: str, ranks: Mapping[bytes, int]
) -> Outcome:
    encoding = tiktoken.Encoding('x', pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    lines = Path(text).read_text(encoding='utf-8').split('\n')
    ready()
    started = time.perf_counter()
    ids = [encoding.encode_ordinary(line) for line in lines]
    seconds = time.perf_counter() - started
    count = sum(map(len, ids))
    return Outcome(seconds, {'ids': count, 'digest': count})
