"""nanotoken: encoding by BERT's WordPiece, read from a Hugging Face tokenizer.json."""

import time
from collections.abc import Callable
from pathlib import Path

import nanotoken

from ..outcome import Outcome


def encode(ready: Callable[[], None], *, text: str, model: str, parallel: bool) -> Outcome:
    """A text file, mapped into memory, a document a line, to ids in memory."""
    tokenizer = nanotoken.Tokenizer.from_json(Path(model).read_bytes())
    source = nanotoken.TextFileSource(text, separator='\n')
    Path(text).read_bytes()  # into the page cache
    ready()
    started = time.perf_counter()
    ids = tokenizer.encode_files(source, add_special_tokens=False, parallel=parallel)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'ids': ids.num_tokens})
