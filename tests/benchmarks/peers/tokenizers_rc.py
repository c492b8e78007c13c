"""The release candidate of tokenizers 1.0, which only encodes, from a folder of its own."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from ..outcome import Outcome

REQUIREMENT = 'tokenizers==1.0.0rc3'

_BATCH_LINES = 10_000


def encode(ready: Callable[[], None], *, text: str, model: str, packages: str) -> Outcome:
    """Lines in memory to ids by `encode_batch`; `packages` has the release candidate."""
    sys.path.insert(0, packages)
    from tokenizers import Tokenizer  # the one installed is another version

    tokenizer = Tokenizer.from_file(model)
    lines = Path(text).read_text(encoding='utf-8').split('\n')
    batches = [lines[start : start + _BATCH_LINES] for start in range(0, len(lines), _BATCH_LINES)]
    ready()
    started = time.perf_counter()
    ids = 0
    for batch in batches:
        ids += sum(map(len, tokenizer.encode_batch(batch, add_special_tokens=False)))
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'ids': ids, 'digest': ids})
