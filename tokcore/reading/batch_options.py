"""The arguments of `Dataset.batches` and `packed`: their types and ranges, and the rules they ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeVar

from tokcore.checked_json import Within, WrongValue, fields_of
from tokcore.encoding.vocabulary import NO_TEMPLATE
from tokcore.errors import InputError
from tokcore.options import shown
from tokcore.reading.batching import (
    BatchRule,
    BudgetBatches,
    ForModel,
    ModelArrays,
    NmtBatches,
    growing_boundaries,
)
from tokcore.reading.manifest import DatasetManifest
from tokcore.reading.packing import PackedBatches, Strategy
from tokcore.reading.shards import check_features

_LARGEST = (1 << 63) - 1
_WIDEST = 1 << 26
"""Ids of a row that is padded to a bound: 256 MiB."""

_Id = Annotated[int, Within(-(1 << 31), (1 << 31) - 1)]
_Size = Annotated[int, Within(1, (1 << 31) - 1)]
_Length = Annotated[int, Within(1, _LARGEST)]
_Whole = Annotated[int, Within(-_LARGEST, _LARGEST)]

_NMT_OPTIONS = ('num_buckets', 'source_max_length', 'target_max_length')
_BUDGET_OPTIONS = ('min_length', 'max_length', 'boundaries', 'pad_to_boundary')

READER_OPTIONS = ('num_readers', 'reader_index')
"""The options that change with the number of readers; a state has none of them."""

_Options = TypeVar('_Options', bound='OrderOptions')

_SPECIAL_TOKEN_EXAMPLES = {'begin': "'<s>'", 'end': "'</s>'", 'pad': "'<pad>'"}


@dataclass(frozen=True, kw_only=True)
class OrderOptions:
    """The arguments of both methods, which describe them, with their ranges."""

    for_model: ForModel | None = None
    start: _Id | None = None
    end: _Id | Literal[False] | None = None
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
    _reason_for_ends: ClassVar[str] = ''

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
    def end_epoch(self) -> int | None:
        """The number of the epoch at which to stop; None: never."""
        return None if self.epochs is None else self.first_epoch + self.epochs

    def _check(self) -> None:
        """Raises InputError if values do not go together."""

    def _refuse(self, names: Sequence[str], others: str) -> None:
        """Raises InputError if one of these arguments is there, which others need."""
        for name in names:
            if getattr(self, name) != getattr(type(self), name):
                raise InputError(f'{name} goes with {others}; leave it out')

    def rule(self, dataset: DatasetManifest) -> BatchRule:
        """Returns the rule for a dataset; raises InputError if an id that it needs is not known."""
        check_features(dataset.features, dataset.folder)
        if self.for_model == 'lm' and len(dataset.features) > 1:
            raise InputError(
                f'a language model learns single texts, and rows of {dataset.folder} are pairs of '
                f"{' and '.join(dataset.features)}; give for_model='seq2seq'"
            )
        if self.for_model == 'seq2seq' and dataset.features != ('inputs', 'targets'):
            raise InputError(
                f'an encoder and a decoder learn pairs of inputs and targets, and rows of {dataset.folder} '
                f"are {' and '.join(dataset.features)}; give for_model='lm' for single texts"
            )
        return self._rule(dataset)

    def model_arrays(self, dataset: DatasetManifest) -> ModelArrays | None:
        """Returns what makes the arrays of a model; None: batches have those of the rule."""
        if self.for_model is None:
            return None
        feature = _learned(dataset)
        is_read_first = self.for_model == 'lm' or dataset.template(feature).before
        start = None if is_read_first and self.start is None else self._start(dataset)
        return ModelArrays(self.for_model, feature, start)

    def _start(self, dataset: DatasetManifest) -> int:
        """Returns the id before each target; as in Tensor2Tensor that of padding if none begins texts."""
        feature = _learned(dataset)
        begin, before = dataset.special_ids(feature).begin, dataset.template(feature).before[:1]
        # The decoder of a model begins as by the other rules; NMT's names the token in its options.
        begins = [*before, begin] if self.for_model else [begin, *before]
        return _first([self.start, *begins, *self._pads(dataset, feature)], 'start', 'begin')

    def _pads(self, dataset: DatasetManifest, feature: str) -> list[int | None]:
        """Returns the ids that may pad a feature, the best ones first; None where there is no such id."""
        if feature not in dataset.id_counts:
            feature = _learned(dataset)  # other programs have features without a vocabulary
        return [
            self.pad,
            dataset.special_ids(feature).pad,
            *self._known_ends(dataset, feature),
            None if self.end is False else self.end,
        ]

    def _known_ends(self, dataset: DatasetManifest, feature: str) -> list[int | None]:
        """Returns the ids that end rows: as it is recorded, and by the roles of the vocabulary."""
        recorded = dataset.end_of_document(feature)
        end = dataset.special_ids(feature).end
        return [None if recorded is None else recorded.id, end]

    def _ends(self, dataset: DatasetManifest) -> dict[str, int]:
        """Returns by feature the id that is added to each row, where rows do not have their end."""
        ends: dict[str, int] = {}
        learned = _learned(dataset)
        for name in () if self.end is False else dataset.features:
            # An id of the targets is another token, or none, in another vocabulary.
            is_asked = name == learned or len(dataset.vocabularies) < 2
            end = self.end if is_asked else None
            if end is not None:
                if dataset.template(name).after[-1:] != (end,):
                    ends[name] = end
            elif (recorded := dataset.end_of_document(name)) is not None:
                if not recorded.in_template:
                    ends[name] = recorded.id
            elif self.end is None and not dataset.has_no_ends:
                raise InputError(
                    f'{dataset.folder} does not say which token ends its documents, and {self._reason_for_ends}'
                )
        return ends

    def _rule(self, dataset: DatasetManifest) -> BatchRule:
        raise NotImplementedError

    def non_defaults(self) -> dict[str, object]:
        """Returns the values that are not the defaults, as JSON can hold them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != getattr(type(self), name, dataclasses.MISSING)
        }


@dataclass(frozen=True, kw_only=True)
class BatchOptions(OrderOptions):
    """The arguments of `Dataset.batches`."""

    batch_size: _Size | None = None
    num_buckets: Annotated[int, Within(-(1 << 63), 1 << 20)] = 5
    source_max_length: _Length | None = None
    target_max_length: _Length | None = None
    tokens_per_batch: _Size | None = None
    min_length: _Whole = 0
    max_length: _Length | None = None
    boundaries: tuple[_Length, ...] | None = None
    pad_to_boundary: bool = False
    _reason_for_ends = (
        'a model learns by it where to stop; give end=ID, or end=False for rows that have one'
    )

    def _check(self) -> None:
        if (self.batch_size is None) == (self.tokens_per_batch is None):
            raise InputError('give batch_size, or tokens_per_batch, and not both')
        if self.batch_size:
            self._refuse(_BUDGET_OPTIONS, 'tokens_per_batch')
        else:
            self._refuse(_NMT_OPTIONS, 'batch_size')
        if self.batch_size is None and self.for_model is None:
            self._refuse(('start', 'end'), 'batch_size, or with for_model')
        if self.batch_size and self.end is False:
            raise InputError('end is False, and batches of batch_size end each target; give an id')
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

    def model_arrays(self, dataset: DatasetManifest) -> ModelArrays | None:
        arrays = super().model_arrays(dataset)
        if arrays is None or self.batch_size is None:
            return arrays
        return dataclasses.replace(arrays, feature='targets', start=self._start(dataset))

    def _rule(self, dataset: DatasetManifest) -> BatchRule:
        if self.batch_size is not None:
            target = _learned(dataset)
            source = 'inputs' if 'inputs' in dataset.features and target != 'inputs' else None
            if source is None and self.source_max_length is not None:
                raise InputError(
                    f'source_max_length cuts inputs, and batches of {dataset.folder} have {target} only; '
                    'give target_max_length, or leave it out'
                )
            end = _first([self.end, *self._known_ends(dataset, target)], 'end', 'end')
            # As TensorFlow NMT, whose vocabularies have no pad, and which pads each side with its end.
            pads = {target: _first([self.pad, dataset.special_ids(target).pad, end], 'pad', 'pad')}
            if source is not None:
                # An id of the targets is another token, or none, in another vocabulary.
                has_own_ids = len(dataset.vocabularies) > 1
                ends = self._known_ends(dataset, source) if has_own_ids else [end]
                known = dataset.special_ids(source)
                pads[source] = _first([self.pad, known.pad, *ends], 'pad', 'pad')
            added: dict[str, int] = {}
            around = NO_TEMPLATE if source is None else dataset.template(source)
            if source is not None and self.for_model:
                added = {name: id_ for name, id_ in self._ends(dataset).items() if name == source}
                around = around._replace(after=(*around.after, *added.values()))
            return NmtBatches(
                batch_size=self.batch_size,
                start=self._start(dataset),
                end=end,
                pads=pads,
                num_buckets=self.num_buckets,
                source_max_length=self.source_max_length,
                target_max_length=self.target_max_length,
                source=source,
                target=target,
                source_template=around,
                target_template=dataset.template(target),
                keeps_source_template=self.for_model is not None,
                ends=added,
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
        # Without masked labels padding must differ from all other ids.
        most = None if self.for_model else 2
        pads = {
            name: _first(self._pads(dataset, name)[:most], 'pad', 'pad')
            for name in dataset.features
        }
        return BudgetBatches(
            tokens=self.tokens_per_batch,
            pads=pads,
            boundaries=bounds,
            longest=longest,
            features=dataset.features,
            ends=self._ends(dataset) if self.for_model else {},
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
    cross_documents: bool = False
    positions: bool = False
    _reason_for_ends = (
        'packed rows have several of them; give end=ID, or end=False to join them without an end'
    )

    def _check(self) -> None:
        if self.for_model != 'lm':
            self._refuse(('cross_documents', 'positions'), "for_model='lm'")
        if self.for_model is None:
            self._refuse(('start',), 'for_model')

    def model_arrays(self, dataset: DatasetManifest) -> ModelArrays | None:
        arrays = super().model_arrays(dataset)
        if arrays is None or self.for_model != 'lm':
            return arrays
        return dataclasses.replace(
            arrays, cross_documents=self.cross_documents, positions=self.positions
        )

    def _rule(self, dataset: DatasetManifest) -> BatchRule:
        if self.strategy == 'concat' and len(dataset.features) > 1:
            raise InputError(
                f'concat cuts rows, and these are pairs of {" and ".join(dataset.features)}; give '
                'another strategy'
            )
        ends = self._ends(dataset)  # before the padding: who lacks both is to give the end
        # The last id that a language model has of a packed row is a label alone.
        is_longer = self.for_model == 'lm' and self.start is None
        return PackedBatches(
            length=self.length + is_longer,
            batch_size=self.batch_size,
            strategy=self.strategy,
            pads={
                name: _first(self._pads(dataset, name), 'pad', 'pad') for name in dataset.features
            },
            features=dataset.features,
            ends=ends,
        )


def options_type(arguments: Mapping[str, object]) -> type[OrderOptions]:
    """Returns the class of these arguments: `packed` alone has a `length`."""
    return PackOptions if 'length' in arguments else BatchOptions


def _learned(dataset: DatasetManifest) -> str:
    """Returns the feature that a model learns."""
    return 'targets' if 'targets' in dataset.features else dataset.features[-1]


def _first(ids: Sequence[int | None], argument: str, role: str) -> int:
    """Returns the first of some ids; raises InputError if there is none."""
    for id_ in ids:
        if id_ is not None:
            return id_
    raise InputError(
        f'no id of the vocabulary has the role {role!r}; give {argument}=, or build with '
        f'--special-tokens {_SPECIAL_TOKEN_EXAMPLES[role]}'
    )
