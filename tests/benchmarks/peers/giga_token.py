"""gigatoken: encoding by BPE, read from a Hugging Face tokenizer.json or a file of ranks."""

import time
from collections.abc import Callable
from pathlib import Path

import gigatoken

from ..outcome import Outcome


def encode(ready: Callable[[], None], *, text: str, model: str, parallel: bool) -> Outcome:
    """A text in memory, a document a line, to ids in memory."""
    tokenizer = gigatoken.Tokenizer.from_json(Path(model).read_bytes())
    return _encoded(ready, tokenizer, text, parallel)


def encode_ranks(ready: Callable[[], None], *, text: str, file: str, pattern: str) -> Outcome:
    """The same on one core, by a file of ranks."""
    return _encoded(ready, gigatoken.Tokenizer.from_tiktoken(file, pattern), text, False)


def convert(ready: Callable[[], None], *, model: str, output: str) -> Outcome:
    """Writes the tokenizer.json of a SentencePiece model."""
    from gigatoken._load.sentencepiece import sentencepiece_to_tokenizer_json

    ready()
    started = time.perf_counter()
    made = sentencepiece_to_tokenizer_json(Path(model).read_bytes())
    Path(output).write_bytes(made if isinstance(made, bytes) else made.encode())
    return Outcome(time.perf_counter() - started)


def _encoded(
    ready: Callable[[], None], tokenizer: gigatoken.Tokenizer, text: str, parallel: bool
) -> Outcome:
    source = gigatoken.BytesSource([Path(text).read_bytes()], separator=b'\n')
    tokenizer.encode_batch(['warm'], parallel=parallel)  # it imports more on first use
    ready()
    started = time.perf_counter()
    ids = tokenizer.encode_batch(source, parallel=parallel)
    seconds = time.perf_counter() - started
    # One array with awkward, and without it one for each line.
    found = len(ids.layout.content) if hasattr(ids, 'layout') else sum(map(len, ids))
    return Outcome(seconds, {'ids': found, 'digest': found})
