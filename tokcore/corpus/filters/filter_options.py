"""The words behind the names of filters, as values within bounds.

Each function returns the fields of its filter's class, or raises ValueError with what is wrong.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from tokcore.options.values import LARGEST_INT32, said, shown

MOST_RATIO = 1_000

_NUMBER = re.compile(r'[0-9]{1,10}', re.ASCII)
_FRACTION = re.compile(r'[0-9]{1,4}(\.[0-9]{1,4})?', re.ASCII)
_SIDES = {'source': 0, 'target': 1}
_CODE = re.compile(r'[A-Z][a-z]{3}', re.ASCII)


def no_options(words: Sequence[str]) -> dict[str, object]:
    """Of a filter that has none."""
    if words:
        raise ValueError('it takes no options')
    return {}


def form_options(form: str, words: Sequence[str]) -> dict[str, object]:
    """Of a normal form, which is its name."""
    return {**no_options(words), 'form': form.upper()}


def length_options(words: Sequence[str]) -> dict[str, object]:
    """Of limits of lengths: `1:200`, `1:200:tokens`."""
    words, tokens = _unit(words)
    if len(words) != 2:
        raise ValueError('it takes two lengths')
    least, most = map(_number, words)
    if least > most:
        raise ValueError(f'{least} is more than {most}')
    return {'least': least, 'most': most, 'tokens': tokens}


def ratio_options(words: Sequence[str]) -> dict[str, object]:
    """Of a limit of a ratio: `3`, `1.5:tokens`."""
    words, tokens = _unit(words)
    if len(words) != 1:
        raise ValueError('it takes one ratio')
    ratio = _fraction(words[0])
    if ratio is None or not 1 <= ratio <= MOST_RATIO:
        raise ValueError(
            f'{shown(words[0])} is no ratio from 1 to {said(MOST_RATIO)}, with four decimals at '
            'most'
        )
    return {'most': ratio, 'tokens': tokens}


def script_options(words: Sequence[str]) -> dict[str, object]:
    """Of the share of a script: `Latn:0.5`, `Hani:0.3:target`."""
    if len(words) not in (2, 3):
        raise ValueError('it takes a code of ISO 15924 and a share')
    code, share = words[0], _fraction(words[1])
    if not _CODE.fullmatch(code):
        raise ValueError(f'{shown(code)} is no code of ISO 15924, as Latn, Cyrl or Hani')
    from tokcore.corpus.filters.texts.script_letters import is_script

    if not is_script(code):
        raise ValueError(f'Unicode has no script {code}, as Latn, Cyrl or Hani')
    if share is None or not 0 <= share <= 1:
        raise ValueError(
            f'{shown(words[1])} is no share from 0 to 1, with four decimals at most'
        )
    return {'code': code, 'least': share, 'side': _side(words[2:])}


def english_options(words: Sequence[str]) -> dict[str, object]:
    """Of cleaning by English: which side that is, the source if nothing is said."""
    if len(words) > 1:
        raise ValueError('it takes a side and nothing else')
    return {'english': _side(words) or 0}


def _side(words: Sequence[str]) -> int | None:
    if words and words[0] not in _SIDES:
        raise ValueError(f'{shown(words[0])} is no side, which is source or target')
    return _SIDES[words[0]] if words else None


def _unit(words: Sequence[str]) -> tuple[list[str], bool]:
    """Returns the words before a unit, and whether lengths are in tokens."""
    if words and words[-1] in ('tokens', 'characters'):
        return list(words[:-1]), words[-1] == 'tokens'
    return list(words), False


def _number(word: str) -> int:
    number = int(word) if _NUMBER.fullmatch(word) else None
    if number is None or number > LARGEST_INT32:
        raise ValueError(
            f'{shown(word)} is no whole number from 0 to {said(LARGEST_INT32)}'
        )
    return number


def _fraction(word: str) -> Fraction | None:
    return Fraction(word) if _FRACTION.fullmatch(word) else None
