"""Several datasets read as one, with a weight for each that holds to the row.

The order of a mixture repeats a pattern of 65,536 places. Of these each source has its share, spread
evenly, so that a source with a quarter of the weight has every fourth place. At its places the rows of
a source come in the order of its own epochs, one epoch after another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tokcore.errors import InputError
from tokcore.reading.batch_iterator import BatchIterator, IteratorState
from tokcore.reading.batch_options import BatchOptions, OrderOptions, PackOptions
from tokcore.reading.dataset import Dataset, asked_of, batch_iterator
from tokcore.reading.ordered_rows import OrderedRows
from tokcore.reading.shards import EncodedRows

_PATTERN = 1 << 16
"""Places of a pattern: weights hold to one in as many."""

Stop = Literal['first', 'all'] | int


class MixedRows(OrderedRows):
    """The rows of several sources, in one order."""

    def __init__(
        self,
        sources: Mapping[str, OrderedRows],
        weights: Mapping[str, float],
        stop: Stop,
        window_rows: int,
        features: Sequence[str],
    ):
        """Takes the sources by name, with their weights.

        Args:
            sources: all have the same number of rows in every epoch.
            weights: of each, above 0.
            stop: of an epoch: before the `first` source has no more rows, otherwise when all have given
                theirs once.
            window_rows: rows that are read together.
            features: those that are read.

        Raises:
            InputError: a source has no rows, or so small a share that it has no place.
        """
        self._sources, self._window_rows = [*sources.values()], window_rows
        self._features = features
        sizes = [source.rows(0) for source in self._sources]
        for name, size in zip(sources, sizes, strict=True):
            if not size:
                raise InputError(f'{name} has no rows; leave it out')
        shares = _shares({name: weights[name] for name in sources})
        pattern, self._ranks = _pattern(shares)
        self._pattern, self._shares = pattern, shares
        places = [np.flatnonzero(pattern == number) for number in range(len(sizes))]

        def place(number: int, rank: int) -> int:
            """Returns the position of the row of a source that comes after `rank` others."""
            share = shares[number]
            return rank // share * _PATTERN + int(places[number][rank % share])

        if stop == 'first':
            self._rows = min(place(number, size) for number, size in enumerate(sizes))
        else:
            self._rows = max(place(number, size - 1) + 1 for number, size in enumerate(sizes))
        blocks, rest = divmod(self._rows, _PATTERN)
        counts = np.bincount(pattern[:rest], minlength=len(sizes)).tolist()
        self._taken = [blocks * share + count for share, count in zip(shares, counts, strict=True)]
        of_sources = [(name, source.identity) for name, source in sources.items()]
        text = repr((of_sources, shares, self._rows, stop))
        self.identity = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.differs = 'of another mixture: its sources, weights or stop differ'

    def rows(self, epoch: int) -> int:
        return self._rows

    def window_count(self, epoch: int) -> int:
        return -(-self._rows // self._window_rows)

    def window_start(self, epoch: int, number: int) -> int:
        return min(number * self._window_rows, self._rows)

    def read(self, epoch: int, positions: np.ndarray) -> tuple[np.ndarray, EncodedRows]:
        places = positions % _PATTERN
        numbers = self._pattern[places]
        sound, parts = [np.empty(0, np.int64)], [EncodedRows.empty(self._features)]
        for number, source in enumerate(self._sources):
            own = numbers == number
            ranks = positions[own] // _PATTERN * self._shares[number] + self._ranks[places[own]]
            # A source goes on where it was at the end of the mixture's epoch before.
            first_epoch, first = divmod(epoch * self._taken[number], source.rows(0))
            epochs, own_positions = np.divmod(first + ranks, source.rows(0))
            for own_epoch in np.unique(epochs).tolist():
                is_of_epoch = epochs == own_epoch
                own_sound, rows = source.read(first_epoch + own_epoch, own_positions[is_of_epoch])
                is_sound = np.isin(own_positions[is_of_epoch], own_sound)
                sound.append(positions[own][is_of_epoch][is_sound])
                parts.append(rows)
        joined = np.concatenate(sound)
        order = np.argsort(joined)
        return joined[order], EncodedRows.joined(parts).take(order)


def _shares(weights: Mapping[str, float]) -> list[int]:
    """Returns how many places of a pattern each source has: the largest remainders are rounded up."""
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
    """Returns the source of each place, and how many places of that source come before it: int64."""
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
        self._datasets, self._weights, self._stop = dict(datasets), weights, stop

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
        checked_state = IteratorState.read(state)
        iterator = self._batches(*asked_of(checked_state, num_readers, reader_index))
        iterator.go_to(checked_state)
        return iterator

    def _batches(self, split: str, options: OrderOptions) -> BatchIterator:
        most_ids = self._stop if isinstance(self._stop, int) else None
        if most_ids is not None:
            if options.epochs not in (1, None):
                raise InputError(f'a mixture with stop={most_ids} has no epochs; leave them out')
            options = dataclasses.replace(options, epochs=None)
        [rule, *_] = [options.rule(dataset) for dataset in self._datasets.values()]
        sources = {
            name: dataset.in_order(split, rule.features, options, keeps_window=True)
            for name, dataset in self._datasets.items()
        }
        weights = self._weights or {name: rows.rows(0) for name, rows in sources.items()}
        rows = MixedRows(sources, weights, self._stop, options.order.window_rows, rule.features)
        return batch_iterator(rows, rule, options, split, repr(self), most_ids=most_ids)

    def __repr__(self) -> str:
        """Tells the datasets and their weights."""
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
        weights: of each, any numbers above 0; None: as many as it has rows.
        stop: of an epoch: `first`, where a dataset would begin again before the others, so that no
            row comes twice; or `all`, when each has given all of its rows, and some have begun again. A
            number ends everything, whatever `epochs` is: with the round of batches, one for each
            reader, whose rows are the first to have so many ids together with those before.

    Raises:
        InputError: there is no dataset, one differs from the others, or a weight is wrong.
    """
    if not datasets:
        raise InputError('a mixture takes one dataset or more, by name')
    is_number = isinstance(stop, int) and not isinstance(stop, bool)
    if stop not in ('first', 'all') and not (is_number and 0 < int(stop) < 1 << 63):
        raise InputError(f'stop is {stop!r}; give "first", "all" or a number of ids')
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
