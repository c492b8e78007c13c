"""subword-nmt: codes learned from the lines of a file."""

import io
import time
from collections.abc import Callable

from subword_nmt.learn_bpe import learn_bpe

from ..outcome import Outcome


def learn(ready: Callable[[], None], *, text: str, vocabulary_size: int) -> Outcome:
    """Learns so many merges."""
    codes = io.StringIO()
    ready()
    started = time.perf_counter()
    with open(text, encoding='utf-8', newline='\n') as lines:
        learn_bpe(lines, codes, vocabulary_size)
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'size': codes.getvalue().count('\n') - 1})
