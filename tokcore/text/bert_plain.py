"""BERT's pre-tokenization in plain Python, which the kernels must equal.

There are two originals. `bert` is the slow `BertTokenizer` of transformers 4: it lowercases
character by character, drops all of category C, and normalizes to NFC. `bert-original` is
google-research's `tokenization.py`: it lowercases whole words, so that a sigma at the end of one
becomes a final sigma, drops control and format characters only, and does not normalize.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal

Kind = Literal['bert', 'bert-original']

CJK_RANGES = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""Chinese characters, assigned or not: each is a word of its own."""

_ASCII_PUNCTUATION = frozenset('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~')


def bert_tokens(
    text: str,
    kind: Kind = 'bert',
    lower_case: bool = True,
    strip_accents: bool | None = None,
    split_cjk: bool = True,
    special_tokens: Sequence[str] = (),
) -> list[str]:
    """Returns the tokens of a text: `'Çà va?'` gives `['ca', 'va', '?']`.

    Args:
        text: any.
        kind: which original.
        lower_case: whether words are lowercased.
        strip_accents: whether accents are stripped; None: if words are lowercased.
        split_cjk: whether each Chinese character is a word of its own.
        special_tokens: are split off first, wherever they are, and stay as they are.
    """
    strip = lower_case if strip_accents is None else strip_accents
    escaped = [re.escape(token) for token in special_tokens]
    if kind == 'bert' and lower_case:
        # In the order given: of `[A` and `[AB` the first matches, and the `B` is lowercased.
        parts = re.compile('|'.join([*escaped, '.']), re.DOTALL)
        text = parts.sub(
            lambda match: match[0] if match[0] in special_tokens else match[0].lower(), text
        )
    if not escaped:
        return list(_split_ordinary(text, kind, lower_case, strip, split_cjk, ()))
    tokens = []
    longest_first = sorted(escaped, key=len, reverse=True)
    for number, part in enumerate(re.split(f'({"|".join(longest_first)})', text)):
        if number % 2:
            tokens.append(part)
        else:
            never_split = special_tokens if kind == 'bert' else ()
            tokens += _split_ordinary(part, kind, lower_case, strip, split_cjk, never_split)
    return tokens


def _split_ordinary(
    text: str,
    kind: Kind,
    lower_case: bool,
    strip: bool,
    split_cjk: bool,
    never_split: Sequence[str],
) -> Iterator[str]:
    """Yields the tokens of a text without special tokens; a word in `never_split` is not split."""
    text = ''.join(
        ' ' if is_space(character) else '' if is_dropped(character, kind) else character
        for character in text
    )
    if split_cjk:
        text = ''.join(
            f' {character} ' if is_cjk(ord(character)) else character for character in text
        )
    if kind == 'bert':
        text = unicodedata.normalize('NFC', text)
    for word in text.split():
        if word not in never_split:
            word = word.lower() if lower_case else word
            word = strip_marks(word) if strip else word
        if word in never_split:
            yield word
        else:
            yield from _split_at_punctuation(word)


def _split_at_punctuation(word: str) -> Iterator[str]:
    """Splits a word at punctuation, and at white space that normalization may have made."""
    token = ''
    for character in word:
        if is_punctuation(character) or character.isspace():
            yield from filter(None, [token])
            yield from [] if character.isspace() else [character]
            token = ''
        else:
            token += character
    yield from filter(None, [token])


def strip_marks(word: str) -> str:
    """Returns a word decomposed (NFD), without its nonspacing marks (Mn)."""
    decomposed = unicodedata.normalize('NFD', word)
    return ''.join(character for character in decomposed if unicodedata.category(character) != 'Mn')


def is_space(character: str) -> bool:
    """Returns whether cleaning turns a character into a space."""
    return character in ' \t\n\r' or unicodedata.category(character) == 'Zs'


def is_dropped(character: str, kind: Kind) -> bool:
    """Returns whether cleaning drops a character for which `is_space` is False."""
    if character in '\0\ufffd':
        return True
    category = unicodedata.category(character)
    return category[0] == 'C' if kind == 'bert' else category in ('Cc', 'Cf')


def is_cjk(code_point: int) -> bool:
    """Returns whether a code point is a Chinese character."""
    return any(first <= code_point <= last for first, last in CJK_RANGES)


def is_punctuation(character: str) -> bool:
    """Returns whether a character is a token of its own: an ASCII symbol, or category P."""
    return character in _ASCII_PUNCTUATION or unicodedata.category(character)[0] == 'P'
