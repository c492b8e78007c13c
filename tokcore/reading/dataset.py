"""Opens a dataset's folder: its sizes, its rows, its text, and batches of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import numpy as np

from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import NO_TEMPLATE, SpecialIds, Template, Vocabulary
from tokcore.errors import InputError
from tokcore.reading.batch_iterator import WINDOW_ROWS, BatchIterator, IteratorState, Reading
from tokcore.reading.batching import BatchRule, BudgetBatches, NmtBatches, growing_boundaries
from tokcore.reading.declared_json import Within, WrongValue, fields_of
from tokcore.reading.manifest import FolderManifest, OpenedVocabularies
from tokcore.reading.shards import open_shard

_EXAMPLE_ROWS = 1 << 12

_LARGEST = (1 << 63) - 1
_WIDEST = 1 << 26
"""Ids of a row that is padded to a bound, whatever there is of text."""

_Id = Annotated[int, Within(-(1 << 31), (1 << 31) - 1)]
_Size = Annotated[int, Within(1, (1 << 31) - 1)]
_Length = Annotated[int, Within(1, _LARGEST)]
_Whole = Annotated[int, Within(-_LARGEST, _LARGEST)]

_NMT = ('num_buckets', 'source_max_length', 'target_max_length', 'start', 'end')
_BUDGET = ('min_length', 'max_length', 'boundaries', 'pad_to_boundary')

_EXAMPLES = {'begin': "'<s>'", 'end': "'</s>'", 'pad': "'<pad>'"}


@dataclass(frozen=True)
class SplitSizes:
    """How large a split is: all its examples, and those of each shard."""

    examples: int
    shard_examples: tuple[int, ...]


def open_dataset(
    folder: str | os.PathLike,
    *,
    vocabulary: str | os.PathLike | None = None,
    target_vocabulary: str | os.PathLike | None = None,
) -> Dataset:
    """Opens what `tokbeam build` or `tokbeam encode` wrote, by its manifest; no record is read.

    Args:
        folder: with its `tokbeam.json`.
        vocabulary: the file that the rows were made with, or the inputs' if there is one of each
            side; None: those in the folder.
        target_vocabulary: that of the targets.

    Raises:
        InputError: there is no manifest, a shard is missing or cut off, or a vocabulary is another
            one than the rows were made with.
    """
    manifest = FolderManifest.read(folder)
    return Dataset(manifest, OpenedVocabularies.of(manifest, vocabulary, target_vocabulary))


class Dataset:
    """A dataset for training. Threads and processes may share it; each iterator is for one thread."""

    def __init__(self, manifest: FolderManifest, vocabularies: OpenedVocabularies):
        """Takes what `open_dataset` found."""
        self._manifest, self._vocabularies = manifest, vocabularies

    @property
    def folder(self) -> str:
        """The path."""
        return self._manifest.folder

    @property
    def features(self) -> tuple[str, ...]:
        """`inputs` and `targets` of pairs, `inputs` of texts with a label, else `targets`."""
        return self._manifest.sides

    @property
    def scheme(self) -> Scheme:
        """How its rows were made from text."""
        return self._vocabularies.scheme

    @property
    def splits(self) -> Mapping[str, SplitSizes]:
        """The sizes of each split."""
        rows = {
            name: tuple(each.rows for each in shards)
            for name, shards in self._manifest.splits.items()
        }
        return {name: SplitSizes(sum(each), each) for name, each in rows.items()}

    def vocab_size(self, feature: str = 'targets') -> int:
        """Returns how many ids a feature's vocabulary has."""
        return self._vocabularies.size(feature)

    def special_ids(self, feature: str = 'targets') -> SpecialIds:
        """Returns which ids of a feature have a role: `pad`, `begin`, `end`, `unknown`."""
        return self._vocabularies.special_ids(feature)

    def vocabulary(self, feature: str = 'targets') -> Vocabulary:
        """Returns a feature's vocabulary.

        Raises:
            InputError: it is not in the folder, and was not given.
        """
        return self._vocabularies.vocabulary(feature)

    def template(self, feature: str = 'targets') -> Template:
        """Returns the ids that surround each row of a feature; raises as `vocabulary`."""
        return self._vocabularies.template(feature)

    def text(self, ids: Iterable[int], feature: str = 'targets') -> str:
        """Returns the text of a row's ids, without padding and what surrounds it.

        Raises:
            InputError: there is no vocabulary; give it to `open_dataset`.
        """
        vocabulary = self.vocabulary(feature)
        at_end = vocabulary.special_ids.at_end
        row = [int(each) for each in ids]
        while row and row[-1] == vocabulary.special_ids.pad:
            row.pop()
        row = self.template(feature).stripped(row)
        while row and row[-1] in at_end:
            row.pop()
        return vocabulary.decode(row)

    def examples(self, split: str, *, on_error: str = 'stop') -> Iterator[dict[str, np.ndarray]]:
        """Yields the rows of a split as they are stored: by feature int32[length].

        Args:
            split: a key of `splits`.
            on_error: `stop`, or `skip` to pass over damaged records.

        Raises:
            InputError: naming shard, record and byte offset, for a damaged record.
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

    def batches(self, split: str, **asked: object) -> BatchIterator:
        """Returns an iterator of batches: dictionaries of int32 arrays.

        With `batch_size` by the rule of TensorFlow NMT (`batching`): `source` [batch, length],
        `target_input`, `target_output` [batch, length], `source_sequence_length`,
        `target_sequence_length` [batch]; of a dataset without inputs the targets' alone. What
        surrounded rows is taken off, `start` and `end` are put in its place.

        With `tokens_per_batch` by Tensor2Tensor's (`batching`): rows as they are stored, by
        feature [batch, length], and their lengths, `inputs_length` and `targets_length` [batch].

        Args:
            split: a key of `splits`.
            asked: the fields of `BatchOptions`, by name.

        Raises:
            InputError: arguments that cannot be; an id that the vocabulary lacks; damage, when it
                is met.
        """
        options = BatchOptions.of(asked)
        shards = self._shards(split)
        reading = Reading(
            self.folder,
            tuple(shards),
            self._vocabularies.id_counts,
            options.window or WINDOW_ROWS,
            options.seed if options.shuffle else None,
            options.num_readers,
            options.reader_index,
            options.epochs,
            options.drop_remainder,
            _skips(options.on_error),
            options.first_epoch,
        )
        rule = options.rule(self)
        return BatchIterator(rule, reading, {'split': split, **options.given()})

    def from_state(self, state: Mapping[str, object]) -> BatchIterator:
        """Returns an iterator that goes on at the first batch that another has not given.

        Args:
            state: of that one, `BatchIterator.state()`, also of another process.

        Raises:
            InputError: it is no such state, or one of another dataset.
        """
        found = IteratorState.read(state)
        arguments = dict(found.arguments)
        split = arguments.pop('split', None)
        if not isinstance(split, str) or 'self' in arguments:
            raise InputError(
                'this is no state of batches (it names no split); give what state() returned'
            )
        iterator = self.batches(split, **arguments)
        iterator.go_to(found)
        return iterator

    def tensorflow(self, split: str, **asked: object):
        """Returns the batches of `batches` as a `tf.data.Dataset`; it takes the same arguments.

        Each iteration over it goes on with the next epochs, as many as were asked for.
        """
        from tokcore.reading.tensorflow import as_tensorflow

        options = BatchOptions.of(asked)

        def one_pass(number: int) -> BatchIterator:
            first = options.first_epoch + number * (options.epochs or 0)
            return self.batches(split, **{**asked, 'first_epoch': first})

        return as_tensorflow(one_pass)

    def _shards(self, split: str) -> Sequence:
        found = self._manifest.splits.get(split)
        if found is None:
            raise InputError(
                f'{self.folder} has no split {split!r}; there are {", ".join(self._manifest.splits)}'
            )
        return found


def _skips(on_error: str) -> bool:
    if on_error not in ('stop', 'skip'):
        raise InputError(f'on_error is {on_error!r}; give "stop" or "skip"')
    return on_error == 'skip'


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
                raise InputError(
                    f'batches takes no argument {name!r}; there are {", ".join(names)}'
                )
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
            raise InputError(
                'boundaries must be whole numbers from 1 on, each above the one before'
            )
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
