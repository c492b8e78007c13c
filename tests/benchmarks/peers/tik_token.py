"""tiktoken: encoding by byte-level BPE, with the merges of a Hugging Face tokenizer.json."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import tiktoken

from tokcore.text.byte_level import BYTE_TO_CHARACTER

from ..outcome import Outcome

_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def encode(ready: Callable[[], None], *, text: str, model: str) -> Outcome:
    """Lines in memory to ids, one line after another."""
    bytes_of = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
    merges = json.loads(Path(model).read_bytes())['model']['merges']
    pieces = [bytes([byte]) for byte in range(256)]
    pieces += [bytes(map(bytes_of.get, left + right)) for left, right in merges]
    ranks = {piece: rank for rank, piece in enumerate(dict.fromkeys(pieces))}
    encoding = tiktoken.Encoding('ours', pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})
    lines = Path(text).read_text(encoding='utf-8').split('\n')
    ready()
    started = time.perf_counter()
    ids = [encoding.encode_ordinary(line) for line in lines]
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'ids': sum(map(len, ids))})
