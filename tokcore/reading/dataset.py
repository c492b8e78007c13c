"""A dataset that `build` or `encode` wrote: its sizes, its rows, their text, and batches of them."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np

from tokcore.checked_json import Within, WrongValue, fields_of
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import (
    NO_TEMPLATE,
    SpecialIds,
    Template,
    Vocabulary,
    without_special_ids,
)
from tokcore.errors import InputError
from tokcore.reading.batch_iterator import (
    WINDOW_ROWS,
    BatchIterator,
    IteratorState,
    ReaderOptions,
)
from tokcore.reading.batching import BatchRule, BudgetBatches, NmtBatches, growing_boundaries
from tokcore.reading.manifest import DatasetManifest, DatasetVocabularies
from tokcore.reading.shards import ShardFile, open_shard

if typing.TYPE_CHECKING:
    import tensorflow as tf

_EXAMPLE_ROWS = 1 << 12
"""Rows that are read at once where they are wanted one by one."""

_LARGEST = (1 << 63) - 1
_WIDEST = 1 << 26
"""Ids of a row that is padded to a bound: 256 MiB."""

_Id = Annotated[int, Within(-(1 << 31), (1 << 31) - 1)]
_Size = Annotated[int, Within(1, (1 << 31) - 1)]
_Length = Annotated[int, Within(1, _LARGEST)]
_Whole = Annotated[int, Within(-_LARGEST, _LARGEST)]

_NMT_OPTIONS = ('num_buckets', 'source_max_length', 'target_max_length', 'start', 'end')
_BUDGET_OPTIONS = ('min_length', 'max_length', 'boundaries', 'pad_to_boundary')

_SPECIAL_TOKEN_EXAMPLES = {'begin': "'<s>'", 'end': "'</s>'", 'pad': "'<pad>'"}


@dataclass(frozen=True)
class SplitSizes:
    """The number of examples of a split, and of each of its shards."""

    examples: int
    shard_examples: tuple[int, ...]


def open_dataset(
    folder: str | os.PathLike,
    *,
    vocabulary: str | os.PathLike | None = None,
    target_vocabulary: str | os.PathLike | None = None,
) -> Dataset:
    """Opens a folder that `tokbeam build` or `tokbeam encode` wrote; reads its manifest, no record.

    Args:
        folder: holds `tokbeam.json`.
        vocabulary: the file that the rows were made with, or that of the inputs if each side has
            one; None: the one in the folder.
        target_vocabulary: likewise for the targets.

    Raises:
        InputError: there is no manifest, a shard is missing or cut off, or a vocabulary is not the
            one that the rows were made with.
    """
    manifest = DatasetManifest.read(folder)
    return Dataset(manifest, DatasetVocabularies.of(manifest, vocabulary, target_vocabulary))


class Dataset:
    """A dataset for training. Threads and processes can share it; an iterator is for one thread."""

    def __init__(self, manifest: DatasetManifest, vocabularies: DatasetVocabularies):
        """Use `open_dataset`."""
        self._manifest, self._vocabularies = manifest, vocabularies

    @property
    def folder(self) -> str:
        """Its path."""
        return self._manifest.folder

    @property
    def features(self) -> tuple[str, ...]:
        """`inputs` and `targets` of pairs, `inputs` of texts with a label, else `targets`."""
        return self._manifest.features

    @property
    def scheme(self) -> Scheme:
        """The scheme that made ids of text."""
        return self._vocabularies.scheme

    @property
    def splits(self) -> Mapping[str, SplitSizes]:
        """The sizes of each split."""
        sizes = {}
        for name, shards in self._manifest.splits.items():
            rows = tuple(shard.rows for shard in shards)
            sizes[name] = SplitSizes(sum(rows), rows)
        return sizes

    def vocab_size(self, feature: str = 'targets') -> int:
        """Returns the number of ids of a feature's vocabulary."""
        return self._vocabularies.size(feature)

    def special_ids(self, feature: str = 'targets') -> SpecialIds:
        """Returns the ids that have a role in a feature: `pad`, `begin`, `end`, `unknown`."""
        return self._vocabularies.special_ids(feature)

    def vocabulary(self, feature: str = 'targets') -> Vocabulary:
        """Returns a feature's vocabulary.

        Raises:
            InputError: it is not in the folder, and was not given to `open_dataset`.
        """
        return self._vocabularies.vocabulary(feature)

    def template(self, feature: str = 'targets') -> Template:
        """Returns the ids that surround each row of a feature; raises as `vocabulary`."""
        return self._vocabularies.template(feature)

    def text(self, ids: Iterable[int], feature: str = 'targets') -> str:
        """Returns the text of a row, without its padding, template and end.

        Raises:
            InputError: there is no vocabulary; give it to `open_dataset`.
        """
        vocabulary = self.vocabulary(feature)
        row = [int(id_) for id_ in ids]
        return vocabulary.decode(
            without_special_ids(row, self.template(feature), vocabulary.special_ids)
        )

    def examples(self, split: str, *, on_error: str = 'stop') -> Iterator[dict[str, np.ndarray]]:
        """Yields the rows of a split in the order in which they are stored, by feature int32[length].

        Args:
            split: a key of `splits`.
            on_error: `stop`, or `skip` to skip damaged records.

        Raises:
            InputError: naming shard, record and byte, for a damaged record.
        """
        for shard in self._shards(split):
            reader = open_shard(
                shard, self.features, self._vocabularies.id_counts, _skips(on_error)
            )
            for first in range(0, shard.rows, _EXAMPLE_ROWS):
                _, rows = reader.read(first, min(first + _EXAMPLE_ROWS, shard.rows))
                for row in range(len(rows)):
                    yield {
                        name: rows.ids[name][offsets[row] : offsets[row + 1]]
                        for name, offsets in rows.offsets.items()
                    }

    def batches(self, split: str, **arguments: object) -> BatchIterator:
        """Returns an iterator over batches, which are dictionaries of int32 arrays.

        With `batch_size` the rule is TensorFlow NMT's (see `batching`). The arrays are `source`,
        `target_input`, `target_output` [batch, length], `source_sequence_length` and
        `target_sequence_length` [batch]; without inputs, those of the target only. A row's template
        is removed, and `start` and `end` take its place.

        With `tokens_per_batch` the rule is Tensor2Tensor's. Rows are as they are stored, by feature
        [batch, length], and their lengths are in `inputs_length` and `targets_length` [batch].

        Args:
            split: a key of `splits`.
            arguments: the fields of `BatchOptions`, by name.

        Raises:
            InputError: an argument has a wrong value, or the vocabulary lacks an id that is needed;
                when a batch is read, for damage.
        """
        options = BatchOptions.of(arguments)
        reader_options = ReaderOptions(
            folder=self.folder,
            shards=self._shards(split),
            id_counts=self._vocabularies.id_counts,
            window_rows=options.window or WINDOW_ROWS,
            seed=options.seed if options.shuffle else None,
            readers=options.num_readers,
            reader=options.reader_index,
            epochs=options.epochs,
            drop_remainder=options.drop_remainder,
            skips=_skips(options.on_error),
            first_epoch=options.first_epoch,
        )
        non_defaults = {'split': split, **options.non_defaults()}
        return BatchIterator(options.rule(self), reader_options, non_defaults)

    def from_state(self, state: Mapping[str, object]) -> BatchIterator:
        """Returns an iterator that continues where another one was, with the batch after its last.

        Args:
            state: what `BatchIterator.state()` returned there, in any process.

        Raises:
            InputError: it is not a state, or a state of another dataset.
        """
        checked_state = IteratorState.read(state)
        arguments = dict(checked_state.arguments)
        split = arguments.pop('split', None)
        if not isinstance(split, str) or 'self' in arguments:
            raise InputError(
                'this is not a state of batches (it names no split); give what state() returned'
            )
        iterator = self.batches(split, **arguments)
        iterator.go_to(checked_state)
        return iterator

    def tensorflow(self, split: str, **arguments: object) -> tf.data.Dataset:
        """Returns the batches as a `tf.data.Dataset`; takes the arguments of `batches`.

        Each iteration over it continues with the next `epochs` epochs.
        """
        from tokcore.reading.tensorflow import as_tensorflow

        options = BatchOptions.of(arguments)

        def iteration(number: int) -> BatchIterator:
            first = options.first_epoch + number * (options.epochs or 0)
            return self.batches(split, **{**arguments, 'first_epoch': first})

        return as_tensorflow(iteration)

    def _shards(self, split: str) -> tuple[ShardFile, ...]:
        splits = self._manifest.splits
        if split not in splits:
            raise InputError(f'{self.folder} has no split {split!r}; there are {", ".join(splits)}')
        return splits[split]


def _skips(on_error: str) -> bool:
    if on_error not in ('stop', 'skip'):
        raise InputError(f'on_error is {on_error!r}; give "stop" or "skip"')
    return on_error == 'skip'


class _RowFormat(Protocol):
    """What a rule needs of a dataset."""

    @property
    def features(self) -> tuple[str, ...]: ...

    def special_ids(self, feature: str = 'targets') -> SpecialIds: ...

    def template(self, feature: str = 'targets') -> Template: ...


@dataclass(frozen=True)
class BatchOptions:
    """The arguments of `Dataset.batches`; either `batch_size` or `tokens_per_batch` is given.

    Attributes:
        batch_size: rows of a batch, by NMT's rule.
        num_buckets: one less than the number of buckets; up to 1: a single bucket.
        source_max_length, target_max_length: rows are cut to so many ids.
        start, end: ids before and after each target; None: those with the roles `begin` and `end`.
        tokens_per_batch: rows times the longest length at most, by Tensor2Tensor's rule.
        min_length, max_length: rows of other lengths are left out; a row is as long as its longest
            feature, its template included.
        boundaries: bounds of the buckets' lengths, ascending; None: from 8 on, each a tenth larger.
        pad_to_boundary: arrays are as wide as the longest row that their bucket can hold, so that
            there are few shapes; rows longer than `max_length`, or the budget, are then left out.
        drop_remainder: rows that fill no batch at an epoch's end are left out.
        pad: the id of padding; None: that with the role `pad`.
        shuffle: each epoch has another order; otherwise rows are in the order as stored.
        seed: of the orders.
        epochs: how many; None: without end.
        first_epoch: the number of the first.
        window: rows that are shuffled together, at most those of a shard (default: 65,536).
        num_readers, reader_index: the number of readers that share the rows, and which this is.
        on_error: `stop`, or `skip` to skip damaged records and count them in `left_out`.
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
    def of(cls, arguments: Mapping[str, object]) -> BatchOptions:
        """Raises InputError for an unknown name, or a wrong value."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in arguments:
            if name not in names:
                raise InputError(
                    f'batches takes no argument {name!r}; there are {", ".join(names)}'
                )
        try:
            options = cls(**fields_of(arguments, cls))
        except WrongValue as error:
            raise InputError(f'{error.where} is {error.shown}; give {error.expected}') from error
        options._check(arguments)
        return options

    def _check(self, arguments: Mapping[str, object]) -> None:
        if (self.batch_size is None) == (self.tokens_per_batch is None):
            raise InputError('give batch_size, or tokens_per_batch, and not both')
        others: tuple[str, ...]
        if self.batch_size:
            others, rule = _BUDGET_OPTIONS, 'tokens_per_batch'
        else:
            others, rule = _NMT_OPTIONS, 'batch_size'
        for name in others:
            if name in arguments and getattr(self, name) != getattr(type(self), name):
                raise InputError(f'{name} goes with {rule}; leave it out')
        if not 0 <= self.reader_index < self.num_readers:
            raise InputError(
                f'reader_index is {self.reader_index}; give one of 0 to {self.num_readers - 1}'
            )
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

    def non_defaults(self) -> dict[str, object]:
        """Returns the values that are not the defaults, as JSON can hold them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != getattr(type(self), name)
        }

    def rule(self, dataset: _RowFormat) -> BatchRule:
        """Returns the rule for a dataset; raises InputError if an id that it needs is not known."""
        if self.batch_size is not None:
            has_inputs = 'inputs' in dataset.features
            return NmtBatches(
                batch_size=self.batch_size,
                start=_id(self.start, 'start', 'begin', dataset),
                end=_id(self.end, 'end', 'end', dataset),
                pad=_id(self.pad, 'pad', 'pad', dataset),
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
