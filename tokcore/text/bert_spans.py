"""BERT's words with their places in the text: what `bert_plain` does, character by character."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from tokcore.text.bert_plain import Kind, is_cjk, is_dropped, is_punctuation, is_space
from tokcore.text.normal_units import Span, normalized_units

_Word = tuple[str, list[Span]]
"""A word, and for each of its characters what of the text became it."""


def bert_words(
    text: str, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool, specials: Sequence[str]
) -> Iterator[_Word]:
    """Yields the tokens of `bert_tokens` with their places; arguments as there."""
    longest_first = sorted(map(re.escape, specials), key=len, reverse=True)
    parts = re.split(f'({"|".join(longest_first)})', text) if specials else [text]
    place = 0
    for number, part in enumerate(parts):
        if number % 2:
            yield part, [(place, place + len(part))] * len(part)
        else:
            yield from _ordinary_words(part, place, kind, lower_case, strip, split_cjk)
        place += len(part)


def _ordinary_words(
    text: str, place: int, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool
) -> Iterator[_Word]:
    characters: list[str] = []
    spans: list[Span] = []
    for start, original in enumerate(text, place):
        lowered = original.lower() if kind == 'bert' and lower_case else original
        for character in lowered:
            if is_space(character):
                character = ' '
            elif is_dropped(character, kind):
                continue
            spaced = f' {character} ' if split_cjk and is_cjk(ord(character)) else character
            characters += spaced
            spans += [(start, start + 1)] * len(spaced)
    if kind == 'bert':
        characters, spans = normalized_units('NFC', characters, spans)
    for first, end in _runs(characters):
        word, own = characters[first:end], spans[first:end]
        if lower_case:
            word, own = _lowercase(word, own)
        if strip:
            word, own = normalized_units('NFD', word, own)
            unmarked = [
                n for n, character in enumerate(word) if unicodedata.category(character) != 'Mn'
            ]
            word, own = [word[n] for n in unmarked], [own[n] for n in unmarked]
        yield from _split_at_punctuation(word, own)


def _runs(characters: Sequence[str]) -> Iterator[Span]:
    """Yields the words between white space."""
    first = None
    for place, character in enumerate([*characters, ' ']):
        if character.isspace():
            if first is not None:
                yield first, place
            first = None
        elif first is None:
            first = place


def _lowercase(word: Sequence[str], spans: Sequence[Span]) -> tuple[list[str], list[Span]]:
    # As a whole, for the sigma at its end; every character has as many alone as within the word.
    lowered = list(''.join(word).lower())
    of_characters = [
        span for character, span in zip(word, spans, strict=True) for _ in character.lower()
    ]
    return lowered, of_characters


def _split_at_punctuation(word: Sequence[str], spans: Sequence[Span]) -> Iterator[_Word]:
    first = 0
    for place, character in enumerate([*word, ' ']):
        if character.isspace() or is_punctuation(character):
            if first < place:
                yield ''.join(word[first:place]), list(spans[first:place])
            if not character.isspace():
                yield character, [spans[place]]
            first = place + 1
