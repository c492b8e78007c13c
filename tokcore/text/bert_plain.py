"""BERT's tokens of a text in plain Python: what the kernel must give.

Two originals are kept. `bert` is the slow `BertTokenizer` of transformers 4: it lowers one
character after another, drops all of category C, and normalizes to NFC. `bert-original` is
google-research's `tokenization.py`: it lowers whole words, so that a sigma at their end is a final
one, drops control and format characters alone, and does not normalize.
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
"""What is cut off as a word by itself: Chinese characters, assigned or not."""

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
        kind: whose rules.
        lower_case: whether words are lowered.
        strip_accents: whether marks are taken off; None if words are lowered.
        split_cjk: whether Chinese characters are words by themselves.
        special_tokens: are cut out first, wherever they stand, and stay as they are.
    """
    strip = lower_case if strip_accents is None else strip_accents
    kept = [re.escape(each) for each in special_tokens]
    if kind == 'bert' and lower_case:
        # In the order given: of `[A` and `[AB` the first is kept, and a `b` follows it.
        part = re.compile('|'.join([*kept, '.']), re.DOTALL)
        text = part.sub(lambda each: _lowered(each[0], special_tokens), text)
    if not kept:
        return list(_ordinary(text, kind, lower_case, strip, split_cjk, ()))
    found = []
    longest_first = sorted(kept, key=len, reverse=True)
    for number, part in enumerate(re.split(f'({"|".join(longest_first)})', text)):
        if number % 2:
            found.append(part)
        else:
            whole = special_tokens if kind == 'bert' else ()
            found += _ordinary(part, kind, lower_case, strip, split_cjk, whole)
    return found


def _lowered(part: str, special_tokens: Sequence[str]) -> str:
    return part if part in special_tokens else part.lower()


def _ordinary(
    text: str, kind: Kind, lower_case: bool, strip: bool, split_cjk: bool, whole: Sequence[str]
) -> Iterator[str]:
    """Yields the tokens of what no special token stands in; words that become one stay `whole`."""
    text = ''.join(
        ' ' if is_space(each) else '' if is_dropped(each, kind) else each for each in text
    )
    if split_cjk:
        text = ''.join(f' {each} ' if is_cjk(ord(each)) else each for each in text)
    if kind == 'bert':
        text = unicodedata.normalize('NFC', text)
    for word in text.split():
        if word not in whole:
            word = word.lower() if lower_case else word
            word = without_marks(word) if strip else word
        if word in whole:
            yield word
        else:
            yield from _cut(word)


def _cut(word: str) -> Iterator[str]:
    """Cuts a word at punctuation, and at white space that normalizing may have brought in."""
    token = ''
    for each in word:
        if is_punctuation(each) or each.isspace():
            yield from filter(None, [token])
            yield from [] if each.isspace() else [each]
            token = ''
        else:
            token += each
    yield from filter(None, [token])


def without_marks(word: str) -> str:
    """Returns a word decomposed (NFD), without its nonspacing marks (Mn)."""
    decomposed = unicodedata.normalize('NFD', word)
    return ''.join(each for each in decomposed if unicodedata.category(each) != 'Mn')


def is_space(character: str) -> bool:
    """Whether cleaning makes a space of it."""
    return character in ' \t\n\r' or unicodedata.category(character) == 'Zs'


def is_dropped(character: str, kind: Kind) -> bool:
    """Whether cleaning drops it; white space comes before."""
    if character in '\0\ufffd':
        return True
    category = unicodedata.category(character)
    return category[0] == 'C' if kind == 'bert' else category in ('Cc', 'Cf')


def is_cjk(code_point: int) -> bool:
    """Whether it is a Chinese character by its number."""
    return any(first <= code_point <= last for first, last in CJK_RANGES)


def is_punctuation(character: str) -> bool:
    """Whether it is a token by itself: ASCII that is no letter, number or space, or category P."""
    return character in _ASCII_PUNCTUATION or unicodedata.category(character)[0] == 'P'
