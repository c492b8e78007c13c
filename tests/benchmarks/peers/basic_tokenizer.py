"""transformers' `BasicTokenizer` with a `Counter`: BERT's words as a Python script counts them."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from transformers.models.bert.tokenization_bert import BasicTokenizer

from tokcore.counts.token_table import TokenTable

from ..outcome import Outcome, second_time
from ..stages.counting import counts_digest


def count_text(data: bytes) -> Counter[str]:
    """Counts the words of each line, lowered and without accents."""
    tokenize = BasicTokenizer().tokenize
    counts: Counter[str] = Counter()
    for line in data.decode().split('\n'):
        counts.update(tokenize(line))
    return counts


def count(ready: Callable[[], None], *, text: str) -> Outcome:
    """Counts a text in memory."""
    data = Path(text).read_bytes()
    ready()
    counts, first, seconds = second_time(lambda: count_text(data))
    facts = {'digest': counts_digest(TokenTable.from_items(counts.items()))}
    return Outcome(seconds, {**facts, 'distinct': len(counts), 'first_seconds': first})
