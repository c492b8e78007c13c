"""What a Python script counts tokens with: `re.findall`, `json`, `iterparse` or `BasicTokenizer`, and a `Counter`.

Run as a command, it counts a text file as Tensor2Tensor does: what is imported here counts as its
start-up.
"""

import re
import sys
from collections import Counter
from pathlib import Path

_TOKENS = re.compile(r'[^\W_]+|[\W_]+')
_LANG = '{http://www.w3.org/XML/1998/namespace}lang'


def _without_single_spaces(counts: Counter[str]) -> Counter[str]:
    # Between two alphanumeric runs a single space is not a token, and it stands nowhere else.
    del counts[' ']
    return counts


def _count_text(data: bytes) -> Counter[str]:
    """Counts the runs of alphanumeric and of other characters in each line."""
    counts: Counter[str] = Counter()
    for line in data.decode().replace('\r', '').split('\n'):
        counts.update(_TOKENS.findall(line.strip()))
    return _without_single_spaces(counts)


def _facts(counts: Counter[str]) -> dict[str, object]:
    from tokcore.counts.token_table import TokenTable

    from ..stages.counting import counts_facts

    return counts_facts(TokenTable.from_items(counts.items()))


def count(ready, *, text: str):
    """Counts a text in memory."""
    from ..outcome import Outcome, second_time

    data = Path(text).read_bytes()
    counts, first, seconds = second_time(ready, lambda: _count_text(data))
    return Outcome(seconds, {**_facts(counts), 'first_seconds': first})


def count_words(ready, *, text: str):
    """Counts BERT's words in a text in memory, by the lines, lowered and without accents."""
    from transformers.models.bert.tokenization_bert import BasicTokenizer

    from ..outcome import Outcome, second_time

    def counted() -> Counter[str]:
        tokenize = BasicTokenizer().tokenize
        counts: Counter[str] = Counter()
        for line in data.decode().split('\n'):
            counts.update(tokenize(line))
        return counts

    data = Path(text).read_bytes()
    counts, first, seconds = second_time(ready, counted)
    return Outcome(seconds, {**_facts(counts), 'first_seconds': first})


def count_json(ready, *, path: str):
    """Counts the field `text` of a file's lines."""
    import json

    from ..outcome import Outcome, timed

    def counted() -> Counter[str]:
        counts: Counter[str] = Counter()
        with open(path, encoding='utf-8', newline='\n') as lines:
            for line in lines:
                text = json.loads(line)['text'].replace('\r', '')
                counts.update(_TOKENS.findall(text.strip()))
        return _without_single_spaces(counts)

    counts, seconds = timed(ready, counted)
    return Outcome(seconds, _facts(counts))


def count_tmx(ready, *, path: str):
    """Counts the English segments of a file's units."""
    from xml.etree.ElementTree import iterparse

    from ..outcome import Outcome, timed

    def counted() -> Counter[str]:
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
        return _without_single_spaces(counts)

    counts, seconds = timed(ready, counted)
    return Outcome(seconds, _facts(counts))


def main(text: str, output: str) -> None:
    """Writes the sorted counts of a text file."""
    counts = _count_text(Path(text).read_bytes())
    with open(output, 'w', encoding='utf-8') as lines:
        lines.writelines(f'{token}\t{count}\n' for token, count in sorted(counts.items()))


if __name__ == '__main__':
    main(*sys.argv[1:])
