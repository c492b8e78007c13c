"""Tensor2Tensor's `clean_en_xx_pairs` in plain Python: which pairs of sentences are kept.

The tests look at the English side alone. Then both sides are split into sentences, and a pair with
equally many sentences on both sides becomes that many pairs.
"""

from collections.abc import Callable

from tokcore.filters.clean_en_xx import DOUBLE_QUOTES, SINGLE_QUOTES

_QUOTES = DOUBLE_QUOTES + SINGLE_QUOTES

_MARKER = '__|__'
"""The original inserts it between sentences and then splits at it, even where the text had it."""


def is_word(character: str) -> bool:
    r"""Returns whether a character is `\w` of a regular expression; False for ''."""
    return character == '_' or character.isalnum()


def _is_capital(character: str) -> bool:
    return 'A' <= character <= 'Z'


def _run_end(text: str, place: int, belongs: Callable[[str], bool]) -> int:
    """Returns where the run of characters that belong, from `place` on, ends."""
    while place < len(text) and belongs(text[place]):
        place += 1
    return place


def _quotes(text: str) -> int:
    return sum(map(text.count, DOUBLE_QUOTES))


def _line(text: str) -> str:
    """Returns the text without a final line feed, before which `$` also matches."""
    return text.removesuffix('\n')


def _bad_start(text: str) -> bool:
    first = text[1:2] if text[:1] in DOUBLE_QUOTES else text[:1]
    return not _is_capital(first)


def _bad_end(text: str) -> bool:
    line = _line(text)
    if line.endswith(('"', '”')):
        line = line[:-1]
    return not (line.endswith(('.', '?', '!')) and is_word(line[-2:-1]))


def _label(text: str) -> bool:
    place = _run_end(text, 0, is_word)
    if place == 0:
        return False
    place += text.startswith('.', place)
    if text.startswith(' ', place):
        second = place + 1
        place = _run_end(text, second, is_word)
        if place == second:
            return False
    return text.startswith(': ', place)


def _digits_apart(text: str) -> bool:
    words = [word for word in text.split(' ') if word]
    return any(a[-1].isdecimal() and b[0].isdecimal() for a, b in zip(words, words[1:]))


def _one_quote(text: str) -> bool:
    return _quotes(text) == 1


def _only_initial_quote(text: str) -> bool:
    return len(text) > 1 and text[0] in DOUBLE_QUOTES and _quotes(text) == 1


def _only_final_quote(text: str) -> bool:
    line = _line(text)
    return len(line) > 1 and line[-1] in DOUBLE_QUOTES and _quotes(line) == 1


def _all_in_quotes(text: str) -> bool:
    line = _line(text)
    is_quoted = len(line) > 1 and line[0] in DOUBLE_QUOTES and line[-1] in DOUBLE_QUOTES
    return is_quoted and '\n' not in line


def _many_quotes(text: str) -> bool:
    return any(_quotes(line) >= 3 for line in text.split('\n'))


def _many_single_quotes(text: str) -> bool:
    chains: list[tuple[int, int]] = []
    for place, character in enumerate(text[:-1]):
        if character in SINGLE_QUOTES and text[place + 1] not in 'st':
            # A match includes the character after the quote, even a quote or a line feed.
            lengths = (
                length
                for before, length in chains
                if before + 2 <= place and '\n' not in text[before + 2 : place]
            )
            chains.append((place, 1 + max(lengths, default=0)))
    return any(length >= 3 for _, length in chains)


def _quotes_together(text: str) -> bool:
    dense = ''.join(character for character in text if not character.isspace())
    return any(a in _QUOTES and b in _QUOTES for a, b in zip(dense, dense[1:]))


def _lone_mark(text: str) -> bool:
    marks = _QUOTES + ',:;'
    return any(
        a.isspace() and b in marks and c.isspace() for a, b, c in zip(text, text[1:], text[2:])
    )


def _copyright(text: str) -> bool:
    return '©' in text or text.startswith(('Copyright', '(C)'))


def _left_parenthesis(text: str) -> bool:
    return text.rfind('(') > text.rfind(')')


def _right_parenthesis(text: str) -> bool:
    return ')' in text and '(' not in text[: text.index(')')]


def _city(text: str) -> bool:
    place = _run_end(text, 0, _is_capital)
    if place < 2:
        return False
    while True:
        gap = _run_end(text, place, str.isspace)
        if gap == place:
            return False
        if text.startswith('-', gap):
            return True
        place = _run_end(text, gap, _is_capital)
        if place == gap:
            return False


def _name_with_underscore(text: str) -> bool:
    capitals = _run_end(text, 0, _is_capital)
    lower = _run_end(text, capitals, lambda character: 'a' <= character <= 'z')
    return capitals > 0 and text.startswith('_', lower)


TESTS: dict[str, Callable[[str], bool]] = {
    'start': _bad_start,
    'end': _bad_end,
    'label': _label,
    'digits': _digits_apart,
    'one-quote': _one_quote,
    'initial-quote': _only_initial_quote,
    'final-quote': _only_final_quote,
    'quoted': _all_in_quotes,
    'many-quotes': _many_quotes,
    'many-single-quotes': _many_single_quotes,
    'quotes-together': _quotes_together,
    'lone-mark': _lone_mark,
    'copyright': _copyright,
    'left-parenthesis': _left_parenthesis,
    'right-parenthesis': _right_parenthesis,
    'city': _city,
    'underscore': _name_with_underscore,
}
"""The tests by name, in the original's order: each returns whether an English text is dropped."""


def failed_test(text: str) -> str | None:
    """Returns the name of the first test by which an English text is dropped, or None."""
    return next((name for name, is_bad in TESTS.items() if is_bad(text)), None)


def sentences(text: str, is_english: bool) -> list[str]:
    """Returns the sentences of a text, split at blanks and at `_MARKER`."""
    marked, copied, matched = '', 0, 0
    for place in range(1, len(text) - 1):
        if text[place] == ' ' and text[place - 1] in '.!?' and _is_capital(text[place + 1]):
            before = text[max(matched, place - 3) : place - 1]
            if _ends_english(before) if is_english else before and before[-1] not in '0123456789':
                marked += text[copied:place] + _MARKER
                # The match includes the capital, which cannot end a sentence as well.
                copied, matched = place + 1, place + 2
    return (marked + text[copied:]).split(_MARKER)


def _ends_english(before: str) -> bool:
    last = before[-1:]
    if _is_capital(last):
        return is_word(before[-2:-1])
    return last.isascii() and last.isalnum()


def clean_pair(english: str, other: str) -> list[tuple[str, str]]:
    """Returns the pairs made from a pair, English first: none, itself, or pairs of its sentences.

    Pairs of sentences whose English fails a test are dropped.
    """
    if failed_test(english):
        return []
    pieces = sentences(english, True), sentences(other, False)
    if len(pieces[0]) != len(pieces[1]):
        return []
    pairs = zip(*pieces, strict=True)
    return [pair for pair in pairs if failed_test(pair[0]) is None]
