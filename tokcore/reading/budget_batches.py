"""Batches by a budget of tokens, as Tensor2Tensor makes them (utils/data_reader.py).

Bounds of length grow by a tenth from 8 on. A bucket holds lengths below its bound, and as many rows
as the budget has room for at the bound, lowered to a divisor of a highly composite number.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.reading.batch_rules import LEFT_OUT, Batch, padded
from tokcore.reading.shards.rows import Rows

FIRST_BOUNDARY = 8
STEP = 1.1


def growing_boundaries(
    max_length: int, first: int = FIRST_BOUNDARY, step: float = STEP
) -> tuple[int, ...]:
    """Returns bounds below a length, each a tenth larger than the one before, and at least by 1.

    >>> growing_boundaries(14)
    (8, 9, 10, 11, 12, 13)
    """
    found, bound = [], first
    while bound < max_length:
        found.append(bound)
        bound = max(bound + 1, int(bound * step))
    return tuple(found)


def batch_sizes(tokens: int, bounds: Sequence[int]) -> tuple[int, ...]:
    """Returns the rows of a batch for each bound.

    >>> batch_sizes(100, [8, 16, 50])
    (12, 6, 2)
    """
    most = [max(1, tokens // bound) for bound in bounds]
    divisors = _divisors_of_highly_composite(3 * max(most))
    return tuple(divisors[bisect.bisect(divisors, each) - 1] for each in most)


def _divisors_of_highly_composite(limit: int) -> list[int]:
    """Returns the divisors of the largest number up to a limit that has more than all numbers below it."""
    found: tuple[int, ...] = ()
    most = 0
    for _, exponents in sorted(_products(limit, 0, limit.bit_length())):
        count = math.prod(each + 1 for each in exponents)
        if count > most:
            found, most = exponents, count
    divisors = [1]
    for prime, exponent in zip(_PRIMES, found, strict=False):
        divisors = [each * prime**power for each in divisors for power in range(exponent + 1)]
    return sorted(divisors)


def _products(limit: int, place: int, most: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields the products up to a limit of primes from a place on, with exponents that do not grow.

    Numbers with more divisors than all below are among them: other exponents, or other primes, have
    as many divisors at a larger number.
    """
    yield 1, ()
    product = 1
    for exponent in range(1, most + 1):
        product *= _PRIMES[place]
        if product > limit:
            return
        for rest, exponents in _products(limit // product, place + 1, exponent):
            yield product * rest, (exponent, *exponents)


_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)
"""Their product is larger than any number of 64 bits."""


@dataclass(frozen=True)
class BudgetBatches:
    """The rule.

    Attributes:
        tokens: of a batch, padding included, at most; a longer row is a batch by itself.
        pad: an id.
        boundaries: ascending; a bucket holds lengths below its own and not below the one before.
        longest: the bound that sizes the last bucket, whose lengths are up to it.
        names: the features; a row's length is that of its longest.
        min_length, max_length: others are left out; None: no row is too long.
        pad_to_boundary: arrays are as wide as rows of their bucket can be.
    """

    tokens: int
    pad: int
    boundaries: tuple[int, ...]
    longest: int
    names: tuple[str, ...]
    min_length: int = 0
    max_length: int | None = None
    pad_to_boundary: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        return self.names

    @property
    def sizes(self) -> np.ndarray:
        return np.array(batch_sizes(self.tokens, (*self.boundaries, self.longest)), np.int64)

    @property
    def widths(self) -> tuple[int, ...]:
        """The greatest length of each bucket."""
        return (*(bound - 1 for bound in self.boundaries), self.longest)

    def look_at(self, rows: Rows) -> BudgetRows:
        return BudgetRows(self, rows)

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        found = {}
        for name in self.names:
            found[name] = ((None, None), np.int32)
            found[f'{name}_length'] = ((None,), np.int32)
        return found


class BudgetRows:
    """Rows and their buckets by the rule."""

    def __init__(self, rule: BudgetBatches, rows: Rows):
        self._rule, self._ids = rule, rows.ids
        self._starts = {name: rows.offsets[name][:-1] for name in rule.names}
        self._lengths = {name: np.diff(rows.offsets[name]) for name in rule.names}
        longest = np.max([*self._lengths.values()], axis=0)
        kept = longest >= rule.min_length
        if rule.max_length is not None:
            kept &= longest <= rule.max_length
        found = np.searchsorted(np.array(rule.boundaries, np.int64), longest, side='right')
        self.buckets = np.where(kept, found, LEFT_OUT)

    def batch(self, which: np.ndarray, bucket: int) -> Batch:
        width = self._rule.widths[bucket] if self._rule.pad_to_boundary else None
        batch = {}
        for name, lengths in self._lengths.items():
            batch[name] = padded(
                self._ids[name], self._starts[name], lengths, which, self._rule.pad, width
            )
            batch[f'{name}_length'] = lengths[which].astype(np.int32)
        return batch
