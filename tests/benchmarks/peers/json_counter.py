"""`json.loads`, `re.findall` and a `Counter`: what a Python script counts JSON lines with."""

import json
import time
from collections import Counter
from collections.abc import Callable

from .regex_counter import _TOKENS


def count(ready: Callable[[], None], *, path: str):
    """Counts the field `text` of a file's lines."""
    from tokcore.counts.token_table import TokenTable

    from ..outcome import Outcome
    from ..stages.counting import counts_digest

    ready()
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    with open(path, encoding='utf-8', newline='\n') as lines:
        for line in lines:
            text = json.loads(line)['text'].replace('\r', '')
            counts.update(_TOKENS.findall(text.strip()))
    del counts[' ']  # between two alphanumeric runs it is not a token, and it stands nowhere else
    seconds = time.perf_counter() - started
    facts = {'digest': counts_digest(TokenTable.from_items(counts.items()))}
    return Outcome(seconds, {**facts, 'tokens': counts.total(), 'distinct': len(counts)})
