"""Byte pair encoding in the plain form, on lists of strings: begin here.

Words start as their bytes or characters. Count all pairs of adjacent symbols, replace the most
frequent pair by one symbol wherever it occurs, and count again: each such merge is an entry of the
vocabulary. It takes a pass over all words for each merge, and is the reference for `trainer`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from tokcore.bpe.options import BpeRules, Ties
from tokcore.text.byte_level import ALPHABET, spelled

Pair = tuple[str, str]


def learn_plainly(
    items: Iterable[tuple[str, int]], rules: BpeRules
) -> tuple[list[str], list[Pair], list[int]]:
    """Returns the entries by id, the merges, and the count of each, of (word, count) in order.

    >>> items = [('fast_', 4), ('faster_', 3), ('tall_', 5), ('taller_', 4)]
    >>> learn_plainly(items, BpeRules('first', byte_level=False, merges=3))[1:]
    ([('t', 'a'), ('ta', 'l'), ('tal', 'l')], [9, 9, 9])
    """
    items = [(word, count) for word, count in items if word]
    alphabet, final = alphabet_of(items, rules)
    ids = {entry: id_ for id_, entry in enumerate(
        dict.fromkeys((*rules.special_tokens, *alphabet, *(c + rules.end_of_word for c in final)))
    )}  # fmt: skip
    words = [(_symbols_of(word, alphabet, rules), count) for word, count in items]
    units = {symbol: 1 for symbols, _ in words for symbol in symbols}
    max_merges = float('inf') if rules.merges is None else rules.merges
    if rules.total_symbols:
        max_merges -= len({c for word, _ in items for c in word[:-1]}) + len(final)
    merges: list[Pair] = []
    counts: list[int] = []
    while len(merges) < max_merges and len(ids) < (rules.vocab_size or float('inf')):
        pair_counts = count_pairs(words, units, rules.max_piece_length)
        pair = _next_pair(pair_counts, ids, rules.ties)
        if pair is None or pair_counts[pair] < max(rules.min_count, 1):
            break
        merges.append(pair)
        counts.append(pair_counts[pair])
        merged = ''.join(pair)
        ids.setdefault(merged, len(ids))
        units[merged] = units[pair[0]] + units[pair[1]]
        words = [(merge(symbols, pair), count) for symbols, count in words]
    return list(ids), merges, counts


def alphabet_of(items: Iterable[tuple[str, int]], rules: BpeRules) -> tuple[list[str], list[str]]:
    """Returns the characters that stay in words, and those of them that end a word, in order."""
    if rules.byte_level:
        return [*ALPHABET], []
    totals: Counter[str] = Counter()
    for word, count in items:
        for character in word:
            totals[character] += count
    by_count = sorted(totals, key=lambda character: (-totals[character], character))
    limited = {*by_count[: rules.limit_alphabet], *rules.special_tokens}
    ends = {word[-1] for word, _ in items}
    return sorted(limited & totals.keys()), sorted(limited & ends)


def _symbols_of(word: str, alphabet: Iterable[str], rules: BpeRules) -> list[str]:
    """Returns the first symbols of a word.

    >>> _symbols_of('aé', [], BpeRules())
    ['a', 'Ã', '©']
    >>> _symbols_of('low', 'low', BpeRules(byte_level=False, end_of_word='</w>'))
    ['l', 'o', 'w</w>']
    """
    if rules.byte_level:
        return list(spelled(word.encode()))
    symbols = [*word[:-1], word[-1] + rules.end_of_word]
    return [symbol for symbol, character in zip(symbols, word) if character in alphabet]


def count_pairs(
    words: Iterable[tuple[list[str], int]], units: Mapping[str, int], max_piece_length: int | None
) -> dict[Pair, int]:
    """Returns the counts of pairs that may be merged, in the order in which they first occur.

    >>> count_pairs([(['a', 'b', 'a', 'b'], 3)], {'a': 1, 'b': 1}, None)
    {('a', 'b'): 6, ('b', 'a'): 3}
    """
    counts: dict[Pair, int] = {}
    for symbols, count in words:
        for left, right in zip(symbols, symbols[1:]):
            length = units[left] + units[right]
            if max_piece_length is None or length < max_piece_length or length == 2:
                counts[left, right] = counts.get((left, right), 0) + count
    return counts


def _next_pair(counts: Mapping[Pair, int], ids: Mapping[str, int], ties: Ties) -> Pair | None:
    """Returns the most frequent pair; `ties` decides between equal counts."""
    if ties == 'smallest-ids':
        return min(
            counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]), default=None
        )
    if ties == 'largest-pair':
        return max(counts, key=lambda pair: (counts[pair], pair), default=None)
    # `max` returns the first of equals, and counts are in the order of first occurrence.
    return max(counts, key=lambda pair: counts[pair], default=None)


def merge(symbols: list[str], pair: Pair) -> list[str]:
    """Returns the symbols with each occurrence of a pair replaced, from the left.

    >>> merge(['a', 'a', 'a', 'b'], ('a', 'a'))
    ['aa', 'a', 'b']
    """
    merged: list[str] = []
    position = 0
    while position < len(symbols):
        if tuple(symbols[position : position + 2]) == pair:
            merged.append(''.join(pair))
            position += 2
        else:
            merged.append(symbols[position])
            position += 1
    return merged
