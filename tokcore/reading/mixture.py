"""Several datasets read as one, with a weight for each that holds to the row.

The order of a mixture repeats a pattern of 65,536 slots. Of these each source has its share, spread
evenly, so that a source with a quarter of the weight has every fourth slot. At its slots the rows of
a source come in the order of its own epochs, one epoch after another. Where each source ends by itself,
the slots of those that have ended are left out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tokcore.errors import InputError
from tokcore.reading.batch_iterator import BatchIterator, IteratorState
from tokcore.reading.batch_options import BatchOptions, OrderOptions, PackOptions
from tokcore.reading.dataset import Dataset
from tokcore.reading.ordered_rows import LENGTHS, POSITION, OrderedRows, by_part
from tokcore.reading.shards import EncodedRows

_PATTERN = 1 << 16
"""Places of a pattern: weights hold to one in as many."""

Stop = Literal['first', 'all'] | int | Mapping[str, int]


class MixedRows(OrderedRows):
    """The rows of several sources, in one order."""

    def __init__(
        self,
        sources: Mapping[str, OrderedRows],
        weights: Mapping[str, float],
        stop: Stop,
        window_rows: int,
        features: Sequence[str],
        ends: Mapping[str, int] | None = None,
    ):
        """Takes the sources by name, which have as many rows in every epoch, and weights above 0.

        An epoch ends before the `first` source has no more rows, or when all have given theirs once;
        or with `ends` each source gives so many rows.

        Raises:
            InputError: a source has no rows, or so small a share that it has no slot.
        """
        self._sources, self.window_rows = [*sources.values()], window_rows
        self.features = features
        self.has_lengths = all(source.has_lengths for source in self._sources)
        sizes = [source.row_count for source in self._sources]
        self._firsts = [*itertools.accumulate(sizes, initial=0)]  # of the numbers of each source
        for name, size in zip(sources, sizes, strict=True):
            if not size:
                raise InputError(f'{name} has no rows; leave it out')
        shares = _shares({name: weights[name] for name in sources})
        pattern, self._ranks = _pattern(shares)
        self._pattern, self._shares = pattern, shares
        slots = [np.flatnonzero(pattern == number) for number in range(len(sizes))]

        def slot(number: int, rank: int) -> int:
            """Returns the position of the row of a source that comes after `rank` others."""
            share = shares[number]
            return rank // share * _PATTERN + int(slots[number][rank % share])

        if ends is not None:
            self._taken = [ends[name] for name in sources]
            self.row_count = sum(self._taken)
            lasts = [slot(number, rows - 1) for number, rows in enumerate(self._taken)]
            self._stretches = _stretches(pattern, lasts)
        else:
            if stop == 'first':
                self.row_count = min(slot(number, size) for number, size in enumerate(sizes))
            else:
                self.row_count = max(
                    slot(number, size - 1) + 1 for number, size in enumerate(sizes)
                )
            blocks, rest = divmod(self.row_count, _PATTERN)
            counts = np.bincount(pattern[:rest], minlength=len(sizes)).tolist()
            self._taken = [
                blocks * share + count for share, count in zip(shares, counts, strict=True)
            ]
            self._stretches = [_Stretch(0, np.arange(_PATTERN), 0)]
        of_sources = [(name, source.identity) for name, source in sources.items()]
        text = repr((of_sources, shares, self.row_count, stop if ends is None else self._taken))
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.differs = 'of another mixture: its sources, weights or stop differ'

    def numbers(self, epoch: int, positions: np.ndarray) -> np.ndarray:
        turns, slots = np.divmod(self._slots(positions), _PATTERN)
        numbers, sources = np.empty_like(positions), self._pattern[slots]
        for number, source in enumerate(self._sources):
            of_source = np.flatnonzero(sources == number)
            ranks = turns[of_source] * self._shares[number] + self._ranks[slots[of_source]]
            # A source goes on where it was at the end of the mixture's epoch before.
            first_epoch, first = divmod(epoch * self._taken[number], source.row_count)
            epochs, in_epochs = np.divmod(first + ranks, source.row_count)
            for later in np.unique(epochs).tolist():
                is_of_epoch = epochs == later
                rows = source.numbers(first_epoch + later, in_epochs[is_of_epoch])
                numbers[of_source[is_of_epoch]] = self._firsts[number] + rows
        return numbers

    def lengths(self, numbers: np.ndarray) -> np.ndarray:
        lengths = np.empty((len(self.features), len(numbers)), np.int64)
        for source, of_source in by_part(self._firsts, numbers):
            rows = numbers[of_source] - self._firsts[source]
            lengths[:, of_source] = self._sources[source].lengths(rows)
        return lengths

    def read(
        self, numbers: np.ndarray, lengths: np.ndarray | None = None
    ) -> tuple[np.ndarray, EncodedRows]:
        sound, parts = [np.empty(0, np.int64)], [EncodedRows.empty(self.features)]
        for source, of_source in by_part(self._firsts, numbers):
            first = self._firsts[source]
            found, rows = self._sources[source].read(
                numbers[of_source] - first, None if lengths is None else lengths[:, of_source]
            )
            sound.append(first + found)
            parts.append(rows)
        return np.concatenate(sound), EncodedRows.joined(parts)

    def _slots(self, positions: np.ndarray) -> np.ndarray:
        """Returns the slots of positions, counted through all turns of the pattern."""
        firsts = [stretch.first for stretch in self._stretches]
        stretches = np.searchsorted(firsts, positions, side='right') - 1
        slots = np.empty_like(positions)
        for number in np.unique(stretches).tolist():
            is_in = stretches == number
            slots[is_in] = self._stretches[number].slots(positions[is_in])
        return slots


@dataclass(frozen=True)
class _Stretch:
    """Positions in which the same sources have rows.

    Attributes:
        first: the first of them.
        kept: int64[n], ascending: the slots of a pattern that these sources have.
        before: how many such slots come before the first one of the stretch.
    """

    first: int
    kept: np.ndarray
    before: int

    def slots(self, positions: np.ndarray) -> np.ndarray:
        """Returns the slots of positions of the stretch."""
        turns, numbers = np.divmod(positions - self.first + self.before, len(self.kept))
        return turns * _PATTERN + self.kept[numbers]


def _stretches(pattern: np.ndarray, lasts: Sequence[int]) -> list[_Stretch]:
    """Returns the stretches between the ends of sources, of which `lasts` are the last slots."""
    stretches: list[_Stretch] = []
    first = start = 0
    for last in sorted(lasts):
        left = [number for number, end in enumerate(lasts) if end >= start]
        kept = np.flatnonzero(np.isin(pattern, left))
        before = _kept_before(start, kept)
        stretches.append(_Stretch(first, kept, before))
        start = last + 1
        first += _kept_before(start, kept) - before
    return stretches


def _kept_before(slot: int, kept: np.ndarray) -> int:
    """Returns how many kept slots come before a slot, in all turns of the pattern."""
    turns, rest = divmod(slot, _PATTERN)
    return turns * len(kept) + int(np.searchsorted(kept, rest))


def _rows_with(source: OrderedRows, ids: int, name: str) -> int:
    """Returns how many rows of a source, one epoch after another, have so many ids: the fewest.

    Raises:
        InputError: it has no ids at all.
    """
    count = source.row_count
    read = epochs = 0
    while True:
        before = read
        for number in range(source.window_count(epochs)):
            first, last = (source.window_start(epochs, window) for window in (number, number + 1))
            rows, _ = source.look_up(epochs, np.arange(first, last))
            sums = read + np.cumsum(rows[LENGTHS:].sum(axis=0))
            reached = int(np.searchsorted(sums, ids))
            if reached < len(sums):
                return epochs * count + int(rows[POSITION, reached]) + 1
            read = int(sums[-1]) if len(sums) else read
        if read == before:
            raise InputError(f'{name} has no ids, so it never has {ids:,}; leave it out')
        # Each epoch has the same rows, so all but the last need not be read.
        more = (ids - read - 1) // (read - before)
        read += more * (read - before)
        epochs += 1 + more


def _shares(weights: Mapping[str, float]) -> list[int]:
    """Returns how many slots of a pattern each source has: the largest remainders are rounded up."""
    total = math.fsum(weights.values())
    exact = {name: weight / total * _PATTERN for name, weight in weights.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: _PATTERN - sum(shares.values())]:
        shares[name] += 1
    for name, share in shares.items():
        if not share:
            raise InputError(
                f'the weight of {name} is less than 1 of {_PATTERN} of all; give a larger one, or leave '
                f'{name} out'
            )
    return [*shares.values()]


def _pattern(shares: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the source of each slot, and how many slots of that source come before it: int64."""
    numbers = np.repeat(np.arange(len(shares)), shares)
    ranks = np.concatenate([np.arange(share) for share in shares])
    middles = np.concatenate([(2 * np.arange(share) + 1) / share for share in shares])
    order = np.argsort(middles, kind='stable')
    return numbers[order], ranks[order]


class Mixture:
    """Several datasets read as one; made by `mixture`."""

    def __init__(
        self, datasets: Mapping[str, Dataset], weights: Mapping[str, float] | None, stop: Stop
    ):
        """Use `mixture`."""
        self._datasets, self._weights = dict(datasets), weights
        self._stop = dict(stop) if isinstance(stop, Mapping) else stop

    def batches(self, split: str, **arguments: Any) -> BatchIterator:
        """Returns batches of the rows of a split of all datasets, as `Dataset.batches`, whose
        arguments it takes.

        Raises:
            InputError: as there; a dataset has no such split, or no rows in it.
        """
        return self._batches(split, BatchOptions.of(arguments))

    def packed(self, split: str, length: int, **arguments: Any) -> BatchIterator:
        """Returns packed rows as `Dataset.packed`, whose arguments it takes; raises as `batches`."""
        return self._batches(split, PackOptions.of({'length': length, **arguments}))

    def from_state(
        self, state: Mapping[str, object], *, num_readers: int = 1, reader_index: int = 0
    ) -> BatchIterator:
        """Returns an iterator that continues where others were, as `Dataset.from_state` does.

        Raises:
            InputError: it is not a state, or one of another mixture.
        """
        asked = IteratorState.read(state).asked(num_readers, reader_index)
        iterator = self._batches(*asked)
        iterator.resume(state)
        return iterator

    def _batches(self, split: str, options: OrderOptions) -> BatchIterator:
        most_ids = self._stop if isinstance(self._stop, int) else None
        budgets = self._stop if isinstance(self._stop, Mapping) else None
        if most_ids is not None or budgets is not None:
            if options.epochs not in (1, None) or (budgets and options.first_epoch):
                raise InputError(f'a mixture with stop={self._stop} has no epochs; leave them out')
            options = dataclasses.replace(options, epochs=1 if budgets else None)
        manifests = [dataset._manifest for dataset in self._datasets.values()]
        [rule, *_] = map(options.rule, manifests)
        [arrays, *_] = map(options.model_arrays, manifests)
        sources = {
            name: dataset.in_order(split, rule.features, options, keeps_window=True)
            for name, dataset in self._datasets.items()
        }
        ends = None
        if budgets is not None:
            ends = {name: _rows_with(rows, budgets[name], name) for name, rows in sources.items()}
        weights = self._weights or ends or {name: rows.row_count for name, rows in sources.items()}
        window_rows = min(source.window_rows for source in sources.values())
        rows = MixedRows(sources, weights, self._stop, window_rows, rule.features, ends)
        return BatchIterator(rows, rule, options, split, repr(self), arrays, most_ids=most_ids)

    def __repr__(self) -> str:
        """Returns the datasets and their weights."""
        names = ', '.join(
            name if self._weights is None else f'{name} {self._weights[name]:g}'
            for name in self._datasets
        )
        return f'<Mixture of {names}; stop {self._stop}>'


def mixture(
    datasets: Mapping[str, Dataset],
    *,
    weights: Mapping[str, float] | None = None,
    stop: Stop = 'first',
) -> Mixture:
    """Returns several datasets as one, which gives batches and packed rows as each of them does.

    The order of rows depends on seed and epoch alone, and has one state for any number of readers. Of
    each 65,536 rows every dataset has its share of the weights, spread evenly; in it its rows come in
    the order of its own epochs, one epoch after another.

    Args:
        datasets: by names of yours, with the same features, scheme, template and vocabularies.
        weights: of each, any numbers above 0; None: as many as it has rows, or gives until its `stop`.
        stop: of an epoch: `first`, where a dataset would begin again before the others, so that no
            row comes twice; or `all`, when each has given all of its rows, and some have begun again. A
            number ends everything, whatever `epochs` is: with the round of batches, one for each
            reader, whose rows are the first to have so many ids together with those before, the ends
            that are added to rows for a model among them. A number for each dataset ends each by
            itself: with the row by which its rows, as they are stored, have so many ids. The others go
            on among themselves by their weights, until all have ended. To know those rows, they are
            read once when batches are asked for, at most an epoch or two.

    Raises:
        InputError: there is no dataset, one differs from the others, or a weight or `stop` is wrong.

    Examples:
        >>> dataset = tokcore.open_dataset('data/enzh')
        >>> both = tokcore.mixture({'old': dataset, 'new': dataset}, weights={'old': 1, 'new': 3})
        >>> next(both.batches('train', for_model='seq2seq', batch_size=8, seed=1))['labels'].shape
        (8, 19)
    """
    if not datasets:
        raise InputError('a mixture takes one dataset or more, by name')
    if isinstance(stop, Mapping):
        if stop.keys() != datasets.keys():
            raise InputError(
                f'stop is of {", ".join(stop)}, and datasets are {", ".join(datasets)}; give a number of '
                'ids for each'
            )
        for name, ids in stop.items():
            if not _is_number_of_ids(ids):
                raise InputError(f'stop of {name} is {ids!r}; give a number of ids')
    elif stop not in ('first', 'all') and not _is_number_of_ids(stop):
        raise InputError(
            f'stop is {stop!r}; give "first", "all" or a number of ids, or one for each'
        )
    if weights is not None:
        if weights.keys() != datasets.keys():
            raise InputError(
                f'weights are of {", ".join(weights)}, and datasets are {", ".join(datasets)}; give a '
                'weight for each'
            )
        for name, weight in weights.items():
            if not (isinstance(weight, (int, float)) and 0 < weight < math.inf):
                raise InputError(f'the weight of {name} is {weight!r}; give a number above 0')
    (first, one), *others = datasets.items()
    for name, other in others:
        if difference := one.difference(other):
            raise InputError(
                f'{first} and {name} have different {difference}; mix datasets that were made with the '
                'same'
            )
    return Mixture(datasets, weights, stop)


def _is_number_of_ids(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63
