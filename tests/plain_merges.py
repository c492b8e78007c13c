"""Byte pair encoding learned by counting all pairs again at each step: what the learner must give."""

import collections
from collections.abc import Iterable

from tokcore.bpe.options import BpeRules

Merges = list[tuple[str, str]]


def learn_plainly(
    items: Iterable[tuple[str, int]], rules: BpeRules
) -> tuple[list[str], Merges, list[int]]:
    """Returns (entries, merges, counts) of words in order; strings as files have them."""
    items = [(word, count) for word, count in items]
    entries = dict.fromkeys(rules.special_tokens)
    if rules.byte_level:
        characters = sorted(byte_characters().values())
        words = [([byte_characters()[byte] for byte in word.encode()], n) for word, n in items]
    else:
        kept = _alphabet(items, rules)
        characters = sorted(kept)
        stay = {*kept, *rules.special_tokens}
        words = [(_symbols(word, stay, rules.end_of_word), count) for word, count in items]
    entries |= dict.fromkeys(characters)
    # Characters at the ends of words have ids behind all others, by code point too.
    final = {word[-1] for word, _ in items if word and word[-1] in characters}
    entries |= dict.fromkeys(each + rules.end_of_word for each in sorted(final))
    units = {symbol: 1 for symbols, _ in words for symbol in symbols}
    most = rules.merges
    if rules.total_symbols:
        most -= len({each for word, _ in items for each in word[:-1]}) + len(final)
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    merges, counts = [], []
    while (most is None or len(merges) < most) and len(ids) < (rules.vocab_size or len(ids) + 1):
        found = _count(words, units, rules.max_piece_length)
        if not found or max(found.values()) < max(rules.min_count, 1):
            break
        left, right = pair = _next(found, ids, rules.ties)
        merges.append(pair)
        counts.append(found[pair])
        ids.setdefault(left + right, len(ids))
        units[left + right] = units[left] + units[right]
        for symbols, _ in words:
            _merge(symbols, pair)
    return list(ids), merges, counts


def byte_characters() -> dict[int, str]:
    """GPT-2's characters of bytes."""
    kept = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte if byte in kept else 256 + others.index(byte)) for byte in range(256)}


def _alphabet(items, rules):
    totals = collections.Counter()
    for word, count in items:
        for character in word:
            totals[character] += count
    ordered = sorted(totals, key=lambda character: (-totals[character], character))
    return ordered[: rules.limit_alphabet]


def _symbols(word, kept, ending):
    symbols = [
        character + (ending if place == len(word) else '')
        for place, character in enumerate(word, 1)
        if character in kept
    ]
    return symbols


def _count(words, units, longest):
    found = {}
    for symbols, count in words:
        for pair in zip(symbols, symbols[1:]):
            size = units[pair[0]] + units[pair[1]]
            if longest is None or size < longest or size == 2:
                found[pair] = found.get(pair, 0) + count
    return found


def _next(found, ids, ties):
    if ties == 'smallest-ids':
        return min(found, key=lambda pair: (-found[pair], ids[pair[0]], ids[pair[1]]))
    if ties == 'largest-pair':
        return max(found, key=lambda pair: (found[pair], pair))
    return max(found, key=found.get)  # of equals the first, as they were met


def _merge(symbols, pair):
    place = 0
    while place + 1 < len(symbols):
        if (symbols[place], symbols[place + 1]) == pair:
            symbols[place : place + 2] = [pair[0] + pair[1]]
        place += 1
