"""Weights of datasets: factors for the counts of their tables, so that a mixture is arithmetic on tables.

The factor of a dataset is its weight divided by the bytes of its table (the sum of length x count). All
factors are divided by the smallest, so that the smallest is 1 and no token disappears. They are exact
fractions. `2x` is a factor itself: the dataset counts as if its files were read twice.
"""

import argparse
import re
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

from tokcore.options import shown

_WEIGHT = re.compile(r'(?P<whole>[0-9]{1,18})(?:(?P<factor>x)|\.(?P<digits>[0-9]{1,18}))?')

_ROOTS = Context(prec=50)
"""Python computes powers in decimal with the same digits on every machine."""


def weight(word: str) -> str:
    """A weight above 0, as `0.7`, or a whole factor, as `2x`; a kind of option. Returns one spelling."""
    spelled = spelled_weight(word)
    if spelled is None:
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a weight above 0, as 0.7, nor a whole factor, as 2x'
        )
    return spelled


def temperature(word: str) -> str:
    """A temperature from 0.1 on, as `3`; a kind of option. Returns one spelling.

    With smaller ones nothing but the largest dataset counts, and powers exceed floats.
    """
    spelled = spelled_weight(word)
    if spelled is None or word.endswith('x') or Fraction(spelled) < Fraction(1, 10):
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not a temperature from 0.1 on, as 3 or 1.43'
        )
    return spelled


def spelled_weight(word: str) -> str | None:
    """Returns a weight without zeros at its ends, as manifests record it; None for any other word."""
    match = _WEIGHT.fullmatch(word)
    if match is None or not Fraction(word.removesuffix('x')):
        return None
    digits = (match['digits'] or '').rstrip('0')
    return f'{int(match["whole"])}{"." * bool(digits)}{digits}{match["factor"] or ""}'


def reason_against(weights: Sequence[str | None], temperature: str | None) -> str | None:
    """Returns why the weights of datasets do not go together, or None. A weight may be missing."""
    given = [each for each in weights if each is not None]
    if temperature is not None:
        return '--temperature takes the place of weights; give one of the two' if given else None
    if len(given) < len(weights):
        return 'some datasets have a weight and others do not; give one to each'
    if len({each.endswith('x') for each in given}) > 1:
        return 'a factor, as 2x, and a weight, as 0.7, do not go together; give only one of these kinds'
    return None


def factors_of_tables(
    sizes: Sequence[int], weights: Sequence[str | None], temperature: str | None = None
) -> list[Fraction]:
    """Returns by what the counts of each table are multiplied.

    Args:
        sizes: of the tables in bytes, all above 0.
        weights: of the tables, as `weight` returns them; not used with a temperature.
        temperature: T, where the weight of a table is its share of all bytes to the power of 1/T.

    Examples:
        >>> factors_of_tables([300, 100], ['0.5', '0.5'])
        [Fraction(1, 1), Fraction(3, 1)]
        >>> factors_of_tables([300, 100], ['2x', '7x'])
        [Fraction(2, 1), Fraction(7, 1)]
    """
    if temperature is not None:
        exponent = _ROOTS.divide(Decimal(1), Decimal(temperature))
        shares = [Fraction(_ROOTS.power(Decimal(size), exponent)) for size in sizes]
    else:
        words = [each or '' for each in weights]
        if words[0].endswith('x'):
            return [Fraction(word.removesuffix('x')) for word in words]
        shares = [*map(Fraction, words)]
    factors = [share / size for share, size in zip(shares, sizes, strict=True)]
    smallest = min(factors)
    return [factor / smallest for factor in factors]
