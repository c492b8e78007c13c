"""`re.findall` with a `Counter`: what a Python script would count Tensor2Tensor's tokens with."""

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_TOKENS = re.compile(r'[^\W_]+|[\W_]+')


def count_text(data: bytes) -> Counter[str]:
    """Counts the runs of alphanumeric and of other characters in each line."""
    counts: Counter[str] = Counter()
    for line in data.decode().replace('\r', '').split('\n'):
        counts.update(_TOKENS.findall(line.strip()))
    # Between two alphanumeric runs a single space is not a token, and it stands nowhere else.
    del counts[' ']
    return counts


def count(ready: Callable[[], None], *, text: str):
    """Counts a text in memory."""
    from tokcore.counts.token_table import TokenTable

    from ..outcome import Outcome, second_time
    from ..stages.counting import counts_digest

    data = Path(text).read_bytes()
    ready()
    counts, first, seconds = second_time(lambda: count_text(data))
    facts = {
        'digest': counts_digest(TokenTable.from_items(counts.items())),
        'tokens': sum(counts.values()),
    }
    return Outcome(seconds, {**facts, 'distinct': len(counts), 'first_seconds': first})


def main(text: str, output: str) -> None:
    """The same as a command: a text file in, sorted counts out."""
    counts = count_text(Path(text).read_bytes())
    with open(output, 'w', encoding='utf-8') as lines:
        lines.writelines(f'{token}\t{count}\n' for token, count in sorted(counts.items()))


if __name__ == '__main__':
    main(*sys.argv[1:])
