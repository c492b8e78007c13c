"""A dataset's folder, opened: its sizes, its rows, its text again, and batches of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tokcore.encoding.scheme import Scheme
from tokcore.encoding.special_ids import SpecialIds, Vocabulary
from tokcore.encoding.templates import Template
from tokcore.errors import InputError
from tokcore.reading.batch_iterator import BatchIterator, IteratorState, Reading
from tokcore.reading.batch_options import BatchOptions
from tokcore.reading.epoch_order import WINDOW_ROWS
from tokcore.reading.folder_manifest import FolderManifest
from tokcore.reading.opened_vocabularies import OpenedVocabularies
from tokcore.reading.shards.open_shard import open_shard

_EXAMPLE_ROWS = 1 << 12


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

        With `batch_size` by the rule of TensorFlow NMT (`nmt_batches`): `source` [batch, length],
        `target_input`, `target_output` [batch, length], `source_sequence_length`,
        `target_sequence_length` [batch]; of a dataset without inputs the targets' alone. What
        surrounded rows is taken off, `start` and `end` are put in its place.

        With `tokens_per_batch` by Tensor2Tensor's (`budget_batches`): rows as they are stored, by
        feature [batch, length], and their lengths, `inputs_length` and `targets_length` [batch].

        Args:
            split: a key of `splits`.
            asked: the fields of `batch_options.BatchOptions`, by name.

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
        from tokcore.reading.tensorflow_batches import as_tensorflow

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
