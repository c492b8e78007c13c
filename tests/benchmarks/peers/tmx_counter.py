"""`iterparse`, `re.findall` and a `Counter`: what a Python script counts TMX with."""

import time
from collections import Counter
from collections.abc import Callable
from xml.etree.ElementTree import iterparse

from .regex_counter import _TOKENS

_LANG = '{http://www.w3.org/XML/1998/namespace}lang'


def count(ready: Callable[[], None], *, path: str):
    """Counts the English segments of a file's units."""
    from tokcore.counts.token_table import TokenTable

    from ..outcome import Outcome
    from ..stages.counting import counts_digest

    ready()
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    events = iterparse(path, events=('start', 'end'))
    _, root = next(events)
    for event, element in events:
        if event == 'start' or element.tag != 'tu':
            continue
        for variant in element.iter('tuv'):
            if variant.get(_LANG, '').lower().partition('-')[0] == 'en':
                text = ''.join(variant.find('seg').itertext()).strip()
                counts.update(_TOKENS.findall(text))
                break
        root.clear()
    del counts[' ']  # between two alphanumeric runs it is not a token, and it stands nowhere else
    seconds = time.perf_counter() - started
    facts = {'digest': counts_digest(TokenTable.from_items(counts.items()))}
    return Outcome(seconds, {**facts, 'tokens': counts.total(), 'distinct': len(counts)})
