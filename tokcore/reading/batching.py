"""Rules for batches: rows go to buckets by length, and a full bucket is a batch.

TensorFlow NMT's `get_iterator` has `num_buckets + 1` buckets of the longer side's length, the last
for all that is longer; the target's length counts the start token (nmt/utils/iterator_utils.py).
Tensor2Tensor's batches have a budget of tokens (utils/data_reader.py): bounds of length grow by a
tenth from 8 on, and a bucket has as many rows as the budget allows at its bound, lowered to a
divisor of a highly composite number.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from tokcore.encoding.vocabulary import NO_TEMPLATE, Template
from tokcore.reading.record_kernels import fill_rows
from tokcore.reading.shards import EncodedRows

FIRST_BOUNDARY = 8
STEP = 1.1

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)
"""Their product is larger than any number of 64 bits."""

_WIDTH = 10
"""Of a bucket, where no greatest length of the source is given."""

LEFT_OUT = -1
"""The bucket of rows that no batch has."""

Batch = dict[str, np.ndarray]


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

    def look_at(self, rows: EncodedRows) -> BudgetRows:
        return BudgetRows(self, rows)

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        found = {}
        for name in self.names:
            found[name] = ((None, None), np.int32)
            found[f'{name}_length'] = ((None,), np.int32)
        return found


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


class BudgetRows:
    """Rows and their buckets by the rule."""

    def __init__(self, rule: BudgetBatches, rows: EncodedRows):
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


@dataclass(frozen=True)
class NmtBatches:
    """The rule.

    Attributes:
        batch_size: rows of a batch.
        start, end, pad: ids.
        num_buckets: one less than there are; up to 1 makes none.
        source_max_length, target_max_length: rows are cut to so many ids; None: they are not.
        source: the feature that is the source; None: there are targets alone.
        target: the feature that is the target.
        source_template, target_template: what surrounds the rows, and is taken off.
    """

    batch_size: int
    start: int
    end: int
    pad: int
    num_buckets: int = 5
    source_max_length: int | None = None
    target_max_length: int | None = None
    source: str | None = 'inputs'
    target: str = 'targets'
    source_template: Template = NO_TEMPLATE
    target_template: Template = NO_TEMPLATE

    @property
    def features(self) -> tuple[str, ...]:
        return (self.target,) if self.source is None else (self.source, self.target)

    @property
    def sizes(self) -> np.ndarray:
        return np.full(self.num_buckets + 1 if self.num_buckets > 1 else 1, self.batch_size)

    def look_at(self, rows: EncodedRows) -> NmtRows:
        target = self._side(rows, self.target, self.target_template, self.target_max_length)
        source = None
        if self.source is not None:
            source = self._side(rows, self.source, self.source_template, self.source_max_length)
        return NmtRows(self, source, target)

    @staticmethod
    def _side(rows: EncodedRows, feature: str, template: Template, most: int | None) -> FeatureRows:
        offsets = rows.offsets[feature]
        whole = np.maximum(np.diff(offsets) - template.size, 0)
        lengths = np.minimum(whole, most) if most else whole
        return FeatureRows(rows.ids[feature], offsets[:-1] + len(template.before), lengths)

    @property
    def width(self) -> int:
        """The lengths in a bucket."""
        if self.source is None or not self.source_max_length or self.num_buckets <= 1:
            return _WIDTH
        return (self.source_max_length + self.num_buckets - 1) // self.num_buckets

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        arrays = ['source'] * (self.source is not None) + ['target_input', 'target_output']
        lengths = ['target_sequence_length']
        lengths += ['source_sequence_length'] * (self.source is not None)
        return {
            **dict.fromkeys(arrays, ((None, None), np.int32)),
            **dict.fromkeys(lengths, ((None,), np.int32)),
        }


class FeatureRows(NamedTuple):
    """One side's rows as batches hold them: without their template, and cut."""

    ids: np.ndarray  # int32, of all rows
    starts: np.ndarray  # int64[rows]
    lengths: np.ndarray  # int64[rows]; a row of 0 is left out

    def padded(self, which: np.ndarray, pad: int, width: int | None = None, column: int = 0):
        """Returns rows as int32[len(which), width], as `padded`."""
        return padded(self.ids, self.starts, self.lengths, which, pad, width, column)


class NmtRows:
    """Rows and their buckets by the rule."""

    def __init__(self, rule: NmtBatches, source: FeatureRows | None, target: FeatureRows):
        self._rule, self._source, self._target = rule, source, target
        longest, kept = target.lengths + 1, target.lengths > 0
        found = longest // rule.width
        if source is not None:
            kept &= source.lengths > 0
            found = np.maximum(source.lengths // rule.width, found)
        buckets = np.minimum(found, rule.num_buckets) if rule.num_buckets > 1 else 0
        self.buckets = np.where(kept, buckets, LEFT_OUT)

    def batch(self, which: np.ndarray, bucket: int) -> Batch:
        rule, source, target = self._rule, self._source, self._target
        lengths = target.lengths[which]
        width = int(lengths.max()) + 1
        given = target.padded(which, rule.pad, width, 1)
        given[:, 0] = rule.start
        wanted = target.padded(which, rule.pad, width)
        wanted[np.arange(len(which)), lengths] = rule.end
        batch = {'target_input': given, 'target_output': wanted}
        batch['target_sequence_length'] = (lengths + 1).astype(np.int32)
        if source is not None:
            lengths = source.lengths[which].astype(np.int32)
            batch = {
                'source': source.padded(which, rule.pad), **batch, 'source_sequence_length': lengths
            }  # fmt: skip
        return batch


class BatchedRows(Protocol):
    """Rows that are to become batches, looked at once."""

    buckets: np.ndarray
    """int64[rows]: the bucket of each row, or `LEFT_OUT`."""

    def batch(self, which: np.ndarray, bucket: int) -> Batch:
        """Returns the rows of these numbers as padded arrays."""


class BatchRule(Protocol):
    """How rows become batches."""

    @property
    def features(self) -> tuple[str, ...]:
        """The features that are read."""

    @property
    def sizes(self) -> np.ndarray:
        """int64[buckets]: the rows of a whole batch."""

    def look_at(self, rows: EncodedRows) -> BatchedRows:
        """Returns rows with their buckets."""

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        """Returns the shape and dtype of each array of a batch; None is what differs."""


def whole_batches(buckets: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Yields (rows, bucket) of the batches that fill, in the order in which they do."""
    order = np.argsort(buckets, kind='stable')
    starts = np.searchsorted(buckets[order], np.arange(len(sizes) + 1))
    found = []
    for bucket, size in enumerate(sizes.tolist()):
        own = order[starts[bucket] : starts[bucket + 1]]
        for end in range(size, len(own) + 1, size):
            found.append((int(own[end - 1]), bucket, own[end - size : end]))
    for _, bucket, rows in sorted(found, key=lambda each: each[0]):
        yield rows, bucket


def waiting_rows(buckets: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns the rows that fill no batch, in their order."""
    order = np.argsort(buckets, kind='stable')
    starts = np.searchsorted(buckets[order], np.arange(len(sizes) + 1))
    rest = [
        order[end - (end - start) % size : end]
        for start, end, size in zip(starts[:-1], starts[1:], sizes.tolist(), strict=True)
    ]
    return np.sort(np.concatenate([*rest, np.empty(0, np.int64)]).astype(np.int64))


def part_batches(buckets: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Yields (rows, bucket) of what waits at the end of an epoch, by ascending bucket."""
    for bucket in range(len(sizes)):
        rows = np.flatnonzero(buckets == bucket)
        if len(rows):
            yield rows, bucket


def padded(
    ids: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    which: np.ndarray,
    pad: int,
    width: int | None = None,
    column: int = 0,
) -> np.ndarray:
    """Returns rows as int32[len(which), width]; None: as wide as the longest needs."""
    if width is None:
        width = column + int(lengths[which].max(initial=0))
    out = np.full((len(which), width), pad, np.int32)
    fill_rows(ids, starts, lengths, which, out, column)
    return out
