"""BERT's words with their places in the text: what `bert_plain` does, character by character."""

import re
from collections.abc import Iterator, Sequence

from tokcore.text.alignment import AlignedText, Span
from tokcore.text.bert_plain import (
    Kind,
    is_cjk,
    is_dropped,
    is_punctuation,
    is_space,
    strip_marks,
)

_Word = tuple[str, list[Span]]
"""A word, and for each of its characters what of the text became it."""


def bert_words(
    text: str, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool, specials: Sequence[str]
) -> Iterator[_Word]:
    """Yields the tokens of `bert_tokens` with their places; arguments as there."""
    longest_first = sorted(map(re.escape, specials), key=len, reverse=True)
    parts = re.split(f'({"|".join(longest_first)})', text) if specials else [text]
    whole = AlignedText(text, [(place, place + 1) for place in range(len(text))])
    end = 0
    for number, part in enumerate(parts):
        start, end = end, end + len(part)
        if number % 2:
            yield part, [(start, end)] * len(part)
        else:
            yield from _ordinary_words(whole.part(start, end), kind, lower_case, strip, split_cjk)


def _ordinary_words(
    text: AlignedText, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool
) -> Iterator[_Word]:
    text = text.mapped(
        lambda each: ' ' if is_space(each) else '' if is_dropped(each, kind) else each
    )
    if kind == 'bert' and lower_case:
        text = text.mapped(str.lower)
    if split_cjk:
        text = text.mapped(lambda each: f' {each} ' if is_cjk(ord(each)) else each)
    if kind == 'bert':
        text = text.normalized('NFC')
    for first, end in _runs(text.text):
        word = text.part(first, end)
        if lower_case:  # as a whole, for the sigma at its end
            word = word.mapped(str.lower)._replace(text=word.text.lower())
        if strip:
            word = word.normalized('NFD').mapped(strip_marks)
        yield from _split_at_punctuation(word)


def _runs(text: str) -> Iterator[Span]:
    """Yields the words between white space."""
    first = None
    for place, character in enumerate(f'{text} '):
        if character.isspace():
            if first is not None:
                yield first, place
            first = None
        elif first is None:
            first = place


def _split_at_punctuation(word: AlignedText) -> Iterator[_Word]:
    first = 0
    for place, character in enumerate(f'{word.text} '):
        if character.isspace() or is_punctuation(character):
            if first < place:
                yield word.text[first:place], word.spans[first:place]
            if not character.isspace():
                yield character, [word.spans[place]]
            first = place + 1
