"""What may be asked of batches, by name, and the rule that it stands for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from tokcore.encoding.special_ids import SpecialIds
from tokcore.encoding.templates import NO_TEMPLATE, Template
from tokcore.errors import InputError
from tokcore.reading.batch_rules import BatchRule
from tokcore.reading.budget_batches import BudgetBatches, growing_boundaries
from tokcore.reading.declared_json import Within, WrongValue, fields_of
from tokcore.reading.nmt_batches import NmtBatches

_LARGEST = (1 << 63) - 1
_WIDEST = 1 << 26
"""Ids of a row that is padded to a bound, whatever there is of text."""

_Id = Annotated[int, Within(-(1 << 31), (1 << 31) - 1)]
_Size = Annotated[int, Within(1, (1 << 31) - 1)]
_Length = Annotated[int, Within(1, _LARGEST)]
_Whole = Annotated[int, Within(-_LARGEST, _LARGEST)]

_NMT = ('num_buckets', 'source_max_length', 'target_max_length', 'start', 'end')
_BUDGET = ('min_length', 'max_length', 'boundaries', 'pad_to_boundary')


class Batched(Protocol):
    """What rules ask of a dataset."""

    @property
    def features(self) -> tuple[str, ...]:
        """Those of its examples."""

    def special_ids(self, feature: str = 'targets') -> SpecialIds:
        """Returns which ids have a role."""

    def template(self, feature: str = 'targets') -> Template:
        """Returns what surrounds rows."""


@dataclass(frozen=True)
class BatchOptions:
    """Arguments of `Dataset.batches`; either `batch_size` or `tokens_per_batch` is given.

    Attributes:
        batch_size: rows of a batch, by NMT's rule.
        num_buckets: one less than there are buckets of length; up to 1 makes none.
        source_max_length, target_max_length: ids that are kept of a row at most.
        start, end: ids of the target's ends; None: those with the roles `begin` and `end`.
        tokens_per_batch: by Tensor2Tensor's rule: rows times the longest length, at most.
        min_length, max_length: rows of other lengths are left out; a row's length is that of its
            longest feature, what surrounds it included.
        boundaries: bounds of the buckets' lengths, ascending; None: from 8 on by a tenth.
        pad_to_boundary: arrays are as wide as rows of their bucket can be, so that there are few
            shapes; rows longer than `max_length`, or the budget, are then left out.
        drop_remainder: rows that fill no batch at an epoch's end are left out.
        pad: the id of padding; None: that with the role `pad`.
        shuffle: another order each epoch; without it rows come as they are stored.
        seed: of the orders.
        epochs: how many; None: without end.
        first_epoch: the number of the first.
        window: rows that are shuffled together, those of a shard at most (default 65,536).
        num_readers, reader_index: this is one of so many readers, which share all rows.
        on_error: `stop`, or `skip` to pass over damaged records and count them in `left_out`.
    """

    batch_size: _Size | None = None
    num_buckets: Annotated[int, Within(-(1 << 63), 1 << 20)] = 5
    source_max_length: _Length | None = None
    target_max_length: _Length | None = None
    start: _Id | None = None
    end: _Id | None = None
    tokens_per_batch: _Size | None = None
    min_length: _Whole = 0
    max_length: _Length | None = None
    boundaries: tuple[_Length, ...] | None = None
    pad_to_boundary: bool = False
    drop_remainder: bool = False
    pad: _Id | None = None
    shuffle: bool = True
    seed: int = 0
    epochs: _Length | None = 1
    first_epoch: Annotated[int, Within(0, _LARGEST)] = 0
    window: _Length | None = None
    num_readers: _Length = 1
    reader_index: _Whole = 0
    on_error: Literal['stop', 'skip'] = 'stop'

    @classmethod
    def of(cls, asked: Mapping[str, object]) -> BatchOptions:
        """Raises InputError for a name that there is not, or values that cannot be."""
        names = [each.name for each in dataclasses.fields(cls)]
        for name in asked:
            if name not in names:
                raise InputError(f'batches takes no argument {name!r}; there are {", ".join(names)}')
        try:
            options = cls(**fields_of(asked, cls))
        except WrongValue as error:
            raise InputError(f'{error.where} is {error.shown}; give {error.expected}') from error
        options._check(asked)
        return options

    def _check(self, asked: Mapping[str, object]) -> None:
        if (self.batch_size is None) == (self.tokens_per_batch is None):
            raise InputError('give batch_size, or tokens_per_batch, and not both')
        others, rule = (_BUDGET, 'tokens_per_batch') if self.batch_size else (_NMT, 'batch_size')
        for name in others:
            if name in asked and getattr(self, name) != getattr(type(self), name):
                raise InputError(f'{name} goes with {rule}; leave it out')
        if not 0 <= self.reader_index < self.num_readers:
            raise InputError(
                f'reader_index is {self.reader_index}; give one of 0 to {self.num_readers - 1}'
            )
        bounds = self.boundaries
        if bounds is not None and list(bounds) != sorted(set(bounds)):
            raise InputError('boundaries must be whole numbers from 1 on, each above the one before')
        widest = max(self.max_length or 0, *(bounds or ()), 0)
        if self.pad_to_boundary and widest > _WIDEST:
            raise InputError(
                f'pad_to_boundary makes rows of {widest} ids; give bounds of {_WIDEST} or less'
            )

    def given(self) -> dict[str, object]:
        """Returns what is not the default, as JSON can hold it."""
        found = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value != getattr(type(self), name)
        }

    def rule(self, dataset: Batched) -> BatchRule:
        """Returns the rule for a dataset; raises InputError for an id that nothing has."""
        if self.batch_size is not None:
            paired = 'inputs' in dataset.features
            return NmtBatches(
                self.batch_size,
                _id(self.start, 'start', 'begin', dataset),
                _id(self.end, 'end', 'end', dataset),
                _id(self.pad, 'pad', 'pad', dataset),
                self.num_buckets,
                self.source_max_length,
                self.target_max_length,
                'inputs' if paired else None,
                'targets',
                dataset.template('inputs') if paired else NO_TEMPLATE,
                dataset.template(),
            )
        longest = self.max_length or self.tokens_per_batch
        bounds = self.boundaries
        if bounds is None:
            bounds = growing_boundaries(longest)
        longest = max(longest, *bounds) if bounds else longest
        return BudgetBatches(
            self.tokens_per_batch,
            _id(self.pad, 'pad', 'pad', dataset),
            bounds,
            longest,
            dataset.features,
            self.min_length,
            longest if self.pad_to_boundary and self.max_length is None else self.max_length,
            self.pad_to_boundary,
        )


def _id(given: int | None, argument: str, role: str, dataset: Batched) -> int:
    if given is not None:
        return given
    found = getattr(dataset.special_ids('targets'), role)
    if found is None:
        raise InputError(
            f'no id of the vocabulary has the role {role!r}; give {argument}=, or build with '
            f'--special-token {_EXAMPLES[role]}'
        )
    return found


_EXAMPLES = {'begin': "'<s>'", 'end': "'</s>'", 'pad': "'<pad>'"}
