"""The arguments of `Dataset.batches` and `packed`: their types and ranges, and the rules they ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeVar

from tokcore.checked_json import Within, WrongValue, fields_of
from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.vocabulary import NO_TEMPLATE, SpecialIds, Template
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.reading.batching import BatchRule, BudgetBatches, NmtBatches, growing_boundaries
from tokcore.reading.ordered_rows import Shuffle
from tokcore.reading.packing import PackedBatches, Strategy
from tokcore.reading.shards import check_features

_LARGEST = (1 << 63) - 1
_WIDEST = 1 << 26
"""Ids of a row that is padded to a bound: 256 MiB."""

_Id = Annotated[int, Within(-(1 << 31), (1 << 31) - 1)]
_Size = Annotated[int, Within(1, (1 << 31) - 1)]
_Length = Annotated[int, Within(1, _LARGEST)]
_Whole = Annotated[int, Within(-_LARGEST, _LARGEST)]

_NMT_OPTIONS = ('num_buckets', 'source_max_length', 'target_max_length', 'start', 'end')
_BUDGET_OPTIONS = ('min_length', 'max_length', 'boundaries', 'pad_to_boundary')

READER_OPTIONS = ('num_readers', 'reader_index')
"""The options that change with the number of readers; a state has none of them."""

_Options = TypeVar('_Options', bound='OrderOptions')

_SPECIAL_TOKEN_EXAMPLES = {'begin': "'<s>'", 'end': "'</s>'", 'pad': "'<pad>'"}


@dataclass(frozen=True, kw_only=True)
class OrderOptions:
    """The arguments of both methods, which describe them, with their ranges."""

    drop_remainder: bool = False
    pad: _Id | None = None
    shuffle: bool | Literal['exact', 'corpus'] = True
    seed: int = 0
    epochs: _Length | None = 1
    first_epoch: Annotated[int, Within(0, _LARGEST)] = 0
    window: _Length | None = None
    num_readers: Annotated[int, Within(1, 1 << 20)] = 1
    reader_index: _Whole = 0
    on_error: Literal['stop', 'skip'] = 'stop'

    @classmethod
    def of(cls: type[_Options], arguments: Mapping[str, object]) -> _Options:
        """Raises InputError for an unknown name, or a wrong value."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in arguments:
            if name not in names:
                raise InputError(
                    f'batches takes no argument {shown(name)}; there are {", ".join(names)}'
                )
        try:
            options = cls(**fields_of(arguments, cls))
        except WrongValue as error:
            raise InputError(f'{error.where} is {error.shown}; give {error.expected}') from error
        if not 0 <= options.reader_index < options.num_readers:
            raise InputError(
                f'reader_index is {options.reader_index}; give one of 0 to {options.num_readers - 1}'
            )
        if isinstance(options.shuffle, str) and options.on_error == 'skip':
            raise InputError(
                f"on_error='skip' cannot be with shuffle={options.shuffle!r}; leave one of them out"
            )
        options._check()
        return options

    @property
    def order(self) -> Shuffle:
        """The order of rows."""
        seed = self.seed if self.shuffle else None
        return Shuffle(self.window, seed, self.shuffle == 'exact', self.shuffle == 'corpus')

    def _check(self) -> None:
        """Raises InputError if values do not go together."""

    def rule(self, dataset: _RowFormat) -> BatchRule:
        """Returns the rule for a dataset; raises InputError if an id that it needs is not known."""
        check_features(dataset.features, dataset.folder)
        return self._rule(dataset)

    def _rule(self, dataset: _RowFormat) -> BatchRule:
        raise NotImplementedError

    def non_defaults(self) -> dict[str, object]:
        """Returns the values that are not the defaults, as JSON can hold them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != getattr(type(self), name, dataclasses.MISSING)
        }

    def of_all_readers(self) -> dict[str, object]:
        """Returns the same without the values of `READER_OPTIONS`."""
        return {
            name: value for name, value in self.non_defaults().items() if name not in READER_OPTIONS
        }


@dataclass(frozen=True, kw_only=True)
class BatchOptions(OrderOptions):
    """The arguments of `Dataset.batches`."""

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

    def _check(self) -> None:
        if (self.batch_size is None) == (self.tokens_per_batch is None):
            raise InputError('give batch_size, or tokens_per_batch, and not both')
        others: tuple[str, ...]
        if self.batch_size:
            others, rule = _BUDGET_OPTIONS, 'tokens_per_batch'
        else:
            others, rule = _NMT_OPTIONS, 'batch_size'
        for name in others:
            if getattr(self, name) != getattr(type(self), name):
                raise InputError(f'{name} goes with {rule}; leave it out')
        bounds = self.boundaries
        if bounds is not None and list(bounds) != sorted(set(bounds)):
            raise InputError(
                'boundaries must be whole numbers from 1 on, each larger than the one before'
            )
        widest = max(self.max_length or 0, *(bounds or ()), 0)
        if self.pad_to_boundary and widest > _WIDEST:
            raise InputError(
                f'pad_to_boundary makes rows of {widest} ids; give bounds of {_WIDEST} or less'
            )

    def _rule(self, dataset: _RowFormat) -> BatchRule:
        if self.batch_size is not None:
            has_inputs = 'inputs' in dataset.features
            start = _id(self.start, 'start', 'begin', dataset)
            end = _id(self.end, 'end', 'end', dataset)
            pad = dataset.special_ids('targets').pad if self.pad is None else self.pad
            return NmtBatches(
                batch_size=self.batch_size,
                start=start,
                end=end,
                pad=end
                if pad is None
                else pad,  # as TensorFlow NMT, whose vocabularies have no pad
                num_buckets=self.num_buckets,
                source_max_length=self.source_max_length,
                target_max_length=self.target_max_length,
                source='inputs' if has_inputs else None,
                source_template=dataset.template('inputs') if has_inputs else NO_TEMPLATE,
                target_template=dataset.template(),
            )
        assert self.tokens_per_batch is not None  # `_check` saw to it
        longest = self.max_length or self.tokens_per_batch
        bounds = self.boundaries
        if bounds is None:
            bounds = growing_boundaries(longest)
        longest = max(longest, *bounds) if bounds else longest
        max_length = self.max_length
        if self.pad_to_boundary and max_length is None:
            max_length = longest
        return BudgetBatches(
            tokens=self.tokens_per_batch,
            pad=_id(self.pad, 'pad', 'pad', dataset),
            boundaries=bounds,
            longest=longest,
            features=dataset.features,
            min_length=self.min_length,
            max_length=max_length,
            pad_to_boundary=self.pad_to_boundary,
        )


@dataclass(frozen=True, kw_only=True)
class PackOptions(OrderOptions):
    """The arguments of `Dataset.packed`."""

    length: Annotated[int, Within(1, _WIDEST)]
    batch_size: _Size = 8
    strategy: Strategy = 'best-fit'
    end: _Id | Literal[False] | None = None

    def _rule(self, dataset: _RowFormat) -> BatchRule:
        if self.strategy == 'concat' and len(dataset.features) > 1:
            raise InputError(
                f'concat cuts rows, and these are pairs of {" and ".join(dataset.features)}; give '
                'another strategy'
            )
        ends = {name: self._end(name, dataset) for name in dataset.features}
        last = dataset.features[-1]
        special_ids = dataset.special_ids(last)
        known = dataset.end_of_document(last)
        recorded = None if known is None else known.id
        pads = [self.pad, special_ids.pad, special_ids.end, recorded, ends[last]]
        pad = next((id_ for id_ in pads if id_ is not None), None)
        return PackedBatches(
            length=self.length,
            batch_size=self.batch_size,
            strategy=self.strategy,
            pad=_id(pad, 'pad', 'pad', dataset),
            features=dataset.features,
            ends={name: id_ for name, id_ in ends.items() if id_ is not None},
        )

    def _end(self, feature: str, dataset: _RowFormat) -> int | None:
        """Returns the id that is added to each row; None: rows have their end, or are to have none."""
        if self.end is False:
            return None
        if self.end is not None:
            return None if dataset.template(feature).after[-1:] == (self.end,) else self.end
        recorded = dataset.end_of_document(feature)
        if recorded is None and not dataset.has_no_ends:
            raise InputError(
                f'{dataset.folder} does not say which token ends its documents, and packed rows have several '
                'of them; give end=ID, or end=False to join them without an end'
            )
        return None if recorded is None or recorded.in_template else recorded.id


def options_type(arguments: Mapping[str, object]) -> type[OrderOptions]:
    """Returns of which method these arguments are: `packed` alone has a `length`."""
    return PackOptions if 'length' in arguments else BatchOptions


class _RowFormat(Protocol):
    """What a rule needs of a dataset."""

    @property
    def folder(self) -> str: ...

    @property
    def features(self) -> tuple[str, ...]: ...

    def special_ids(self, feature: str = 'targets') -> SpecialIds: ...

    @property
    def has_no_ends(self) -> bool: ...

    def template(self, feature: str = 'targets') -> Template: ...

    def end_of_document(self, feature: str = 'targets') -> EndOfDocument | None: ...


def _id(argument_value: int | None, argument: str, role: str, dataset: _RowFormat) -> int:
    if argument_value is not None:
        return argument_value
    id_ = getattr(dataset.special_ids('targets'), role)
    if id_ is None:
        raise InputError(
            f'no id of the vocabulary has the role {role!r}; give {argument}=, or build with '
            f'--special-token {_SPECIAL_TOKEN_EXAMPLES[role]}'
        )
    return id_
