"""gigatoken: encoding by byte-level BPE, read from a Hugging Face tokenizer.json."""

import time
from collections.abc import Callable
from pathlib import Path

import gigatoken

from ..outcome import Outcome


def encode(ready: Callable[[], None], *, text: str, model: str, parallel: bool) -> Outcome:
    """A text in memory, a document a line, to ids in memory."""
    tokenizer = gigatoken.Tokenizer.from_json(Path(model).read_bytes())
    source = gigatoken.BytesSource([Path(text).read_bytes()], separator=b'\n')
    tokenizer.encode_batch(['warm'], parallel=parallel)  # it imports more on first use
    ready()
    started = time.perf_counter()
    ids = tokenizer.encode_batch(source, parallel=parallel)
    seconds = time.perf_counter() - started
    # One array with awkward, and without it one for each line.
    found = len(ids.layout.content) if hasattr(ids, 'layout') else sum(map(len, ids))
    return Outcome(seconds, {'ids': found})
