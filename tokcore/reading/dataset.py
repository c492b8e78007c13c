"""A dataset that `build` or `encode` wrote: its sizes, its rows, their text, and batches of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from tokcore.encoding.document_ends import EndOfDocument
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.vocabulary import SpecialIds, Template, Vocabulary, without_special_ids
from tokcore.errors import InputError
from tokcore.object_stores import is_object
from tokcore.options import shown
from tokcore.reading.batch_iterator import (
    BatchIterator,
    IteratorState,
    extra_package,
)
from tokcore.reading.batch_options import (
    BatchOptions,
    OrderOptions,
    PackOptions,
    options_type,
)
from tokcore.reading.batching import ForModel
from tokcore.reading.html import dataset_html
from tokcore.reading.manifest import DatasetManifest, copied_dataset
from tokcore.reading.ordered_rows import SplitInOrder, SplitRows
from tokcore.reading.other_records import is_of_others, other_manifest
from tokcore.reading.packing import Strategy
from tokcore.reading.record_index import Addresses, index_path, read_index, write_index
from tokcore.reading.shards import ShardFile, open_shard, row_sizes, rows_at_once
from tokcore.regular_files import refuse_hub_address

if typing.TYPE_CHECKING:
    import tensorflow as tf

    from tokcore.reading.grain import GrainBatches
    from tokcore.reading.torch import TorchBatches

_EXAMPLE_ROWS = 1 << 12
"""Rows that are read at once where they are wanted one by one, unless they are long."""


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
    cache: str | os.PathLike | None = None,
) -> Dataset:
    """Opens a folder that `tokbeam build` or `tokbeam encode` wrote; reads its manifest, no record.

    A folder with TFRecords of another program is opened too, after `tokbeam index`. Its splits are in
    the names of files, its features are the lists of int64 in its first records. Without a vocabulary
    batches need ids as arguments: `pad`, and what the rule takes.

    A folder of `s3://` or `gs://` is copied to this machine first, as far as that was not done before;
    its files are compared with their checksums.

    Args:
        folder: holds `tokbeam.json`, or TFRecords and what `tokbeam index` wrote.
        vocabulary: of TFRecords of another program, the file that the rows were made with, or that of
            the inputs if each side has one. Rows must have the template that its scheme has by default,
            which is not checked.
        target_vocabulary: likewise for the targets.
        cache: the folder for copies; None: `tokbeam/datasets` in the user's cache folder.

    Raises:
        InputError: there is no manifest, a shard is missing or cut off, or a vocabulary is given for a
            dataset, which has its own.

    Examples:
        >>> dataset = tokcore.open_dataset('data/enzh')
        >>> dataset
        <Dataset data/enzh: examples of train 400, dev 20; ids of inputs 2,065, targets 2,065; scheme subword>
        >>> batch = next(dataset.batches('train', for_model='seq2seq', batch_size=8, seed=1))
        >>> batch['encoder_inputs'].shape, batch['labels'].shape
        ((8, 20), (8, 19))
    """
    refuse_hub_address(os.fspath(folder))
    is_copy = is_object(os.fspath(folder))
    if is_copy:
        folder = copied_dataset(os.fspath(folder), None if cache is None else os.fspath(cache))
    if is_of_others(os.fspath(folder)):
        manifest = other_manifest(os.fspath(folder), vocabulary, target_vocabulary)
    elif vocabulary is None and target_vocabulary is None:
        manifest = DatasetManifest.read(folder, is_copy)
    else:
        raise InputError(
            f'{os.fspath(folder)} has the vocabulary that its rows were made with; leave vocabulary and '
            'target_vocabulary out'
        )
    return Dataset(manifest)


_Parameters = ParamSpec('_Parameters')
_Returned = TypeVar('_Returned')
_Method = TypeVar('_Method', bound=Callable[..., object])


def _with_parameters_of(
    original: Callable[_Parameters, object],
) -> Callable[[Callable[..., _Returned]], Callable[_Parameters, _Returned]]:
    """Returns a decorator: to type checkers the method takes what `original` does."""
    return lambda method: method


def _showing_parameters_of(original: Callable) -> Callable[[_Method], _Method]:
    """Returns a decorator: in `help` the method takes what `original` does."""

    def decorate(method: _Method) -> _Method:
        parameters = inspect.signature(original).parameters.values()
        signature = inspect.signature(method).replace(parameters=[*parameters])
        vars(method)['__signature__'] = signature
        return method

    return decorate


class Dataset:
    """A dataset for training. Threads and processes can share it; an iterator is for one thread.

    It has no `source`: `pipelines.source(folder, split, rows)` returns where in the corpus rows come from.
    """

    def __init__(self, manifest: DatasetManifest):
        """Use `open_dataset`."""
        self._manifest = manifest

    @property
    def folder(self) -> str:
        """Its path."""
        return self._manifest.folder

    @property
    def features(self) -> tuple[str, ...]:
        """`inputs` and `targets` of pairs, `inputs` of texts with a label, else `targets`.

        Of TFRecords of other programs they are what these have.
        """
        return self._manifest.features

    @property
    def scheme(self) -> Scheme:
        """The scheme that made ids of text.

        Raises:
            InputError: the rows are of another program, and no vocabulary was given.
        """
        return self._manifest.known_scheme

    @property
    def splits(self) -> Mapping[str, SplitSizes]:
        """The sizes of each split."""
        sizes = {}
        for name, shards in self._manifest.splits.items():
            rows = tuple(shard.rows for shard in shards)
            sizes[name] = SplitSizes(sum(rows), rows)
        return sizes

    def vocab_size(self, feature: str = 'targets') -> int:
        """Returns the number of ids of a feature's vocabulary; raises as `vocabulary`."""
        return self._manifest.size(feature)

    def special_ids(self, feature: str = 'targets') -> SpecialIds:
        """Returns the ids that have a role in a feature: `pad`, `begin`, `end`, `unknown`."""
        return self._manifest.special_ids(feature)

    def vocabulary(self, feature: str = 'targets') -> Vocabulary:
        """Returns a feature's vocabulary.

        Raises:
            InputError: it is damaged; or the rows are of another program, and it was not given to
                `open_dataset`.
        """
        return self._manifest.vocabulary(feature)

    def end_of_document(self, feature: str = 'targets') -> EndOfDocument | None:
        """Returns the token that ends documents where rows are joined; None if it is not known."""
        return self._manifest.end_of_document(feature)

    @property
    def has_no_ends(self) -> bool:
        """Whether documents are to be joined without an end: the dataset was made with `--end none`."""
        return self._manifest.has_no_ends

    def template(self, feature: str = 'targets') -> Template:
        """Returns the ids that surround each row of a feature; raises as `vocabulary`."""
        return self._manifest.template(feature)

    def byte_lengths(self, feature: str = 'targets') -> np.ndarray:
        """Returns the bytes of text of each id of a feature: int32[vocab_size]; special tokens have 0.

        With a byte-level tokenizer without a normalizer they add up, over the ids of a split without
        prefixes, to the bytes of text in its manifest; `tokcore.byte_lengths` says where they do not.

        Raises:
            InputError: as `vocabulary`.
        """
        from tokcore.bytes_of_ids import byte_lengths
        from tokcore.tokenizers import tokenizer_of

        lengths = byte_lengths(tokenizer_of(self.vocabulary(feature), self.scheme))
        # Rows may have ids that the vocabulary's file does not list.
        return np.pad(lengths, (0, self.vocab_size(feature) - len(lengths)))

    def text(self, ids: Iterable[int], feature: str = 'targets') -> str:
        """Returns the text of a row, without its padding, template and end.

        Raises:
            InputError: there is no vocabulary; give it to `open_dataset`.
        """
        vocabulary = self.vocabulary(feature)
        row = [int(id_) for id_ in ids]
        special_ids = vocabulary.special_ids
        if (end := self.end_of_document(feature)) is not None and not end.in_template:
            special_ids = special_ids._replace(end=end.id)
        return vocabulary.decode(without_special_ids(row, self.template(feature), special_ids))

    def __getitem__(self, split: str) -> SplitRows:
        """Returns the rows of a split by their numbers: `dataset['train'][5]`, slices, `rows`, `len`.

        Rows are as stored. Those of TFRecords take an index, which is written with the shards; where it is
        missing, `tokbeam index` and `write_index` write it.

        Raises:
            InputError: there is no such split.
        """
        return SplitRows(self._shards(split), self.features, self._manifest.id_counts)

    def write_index(self) -> int:
        """Writes the index of each shard of TFRecords into the folder `index`; returns how many.

        Where rows come from is known from the index that is there; where that is missing, it is not known.

        Raises:
            InputError: a shard is damaged, or the folder cannot be written to.
        """
        shards = [shard for split in self.splits for shard in self._shards(split)]
        records = [shard for shard in shards if not shard.is_parquet]
        for shard in records:
            try:
                write_index(shard, len(self.features), self._addresses(shard))
            except OSError as error:
                raise InputError(
                    f'{index_path(shard)} cannot be written ({error.strerror}); give a folder that can'
                ) from error
        return len(records)

    def _addresses(self, shard: ShardFile) -> Iterator[Addresses]:
        """Yields the rows of a shard of TFRecords."""
        known, row = None, 0
        with contextlib.suppress(InputError):
            known = read_index(shard)
        for lengths, ids in row_sizes(shard, self.features):
            own, keys = slice(row, row + len(ids)), None
            if known is not None and known.has_keys:
                keys, ids = known.keys[own], np.column_stack([ids, known.text_bytes[own]])
            yield Addresses(lengths, keys, ids)
            row = own.stop

    def examples(self, split: str, *, on_error: str = 'stop') -> Iterator[dict[str, np.ndarray]]:
        """Yields the rows of a split in the order in which they are stored, by feature int32[length].

        Args:
            split: a key of `splits`.
            on_error: `stop`, or `skip` to skip damaged records.

        Raises:
            InputError: naming shard, record and byte, for a damaged record.
        """
        if on_error not in ('stop', 'skip'):
            raise InputError(f'on_error is {on_error!r}; give "stop" or "skip"')
        for shard in self._shards(split):
            id_counts = self._manifest.id_counts
            reader = open_shard(shard, self.features, id_counts, skips=on_error == 'skip')
            step = rows_at_once([shard], _EXAMPLE_ROWS)
            for first in range(0, shard.rows, step):
                _, rows = reader.read(first, min(first + step, shard.rows))
                for row in range(len(rows)):
                    yield {
                        name: rows.ids[name][offsets[row] : offsets[row + 1]]
                        for name, offsets in rows.offsets.items()
                    }

    def batches(
        self,
        split: str,
        *,
        for_model: ForModel | None = None,
        batch_size: int | None = None,
        num_buckets: int = 5,
        source_max_length: int | None = None,
        target_max_length: int | None = None,
        start: int | None = None,
        end: int | Literal[False] | None = None,
        tokens_per_batch: int | None = None,
        min_length: int = 0,
        max_length: int | None = None,
        boundaries: Sequence[int] | None = None,
        pad_to_boundary: bool = False,
        drop_remainder: bool = False,
        pad: int | None = None,
        shuffle: bool | Literal['exact', 'corpus'] = True,
        seed: int = 0,
        epochs: int | None = 1,
        first_epoch: int = 0,
        window: int | None = None,
        num_readers: int = 1,
        reader_index: int = 0,
        on_error: Literal['stop', 'skip'] = 'stop',
    ) -> BatchIterator:
        """Returns an iterator over batches, which are dictionaries of int32 arrays.

        With `batch_size` the rule is TensorFlow NMT's (see `batching`). The arrays are `source`,
        `target_input`, `target_output` [batch, length], `source_sequence_length` and
        `target_sequence_length` [batch]; without inputs, those of the target only. A row's template
        is removed, and `start` and `end` take its place; with `for_model` an encoder reads that of its row,
        and its end.

        With `tokens_per_batch` the rule is Tensor2Tensor's. Rows are as they are stored, by feature
        [batch, length], and their lengths are in `inputs_length` and `targets_length` [batch].

        With `for_model` a batch is what a model learns from, by either rule: `labels` [batch, length] has
        the id that belongs to each id that the model reads, and -100 at padding.

        - `seq2seq`, of pairs: `encoder_inputs`, `decoder_inputs` [batch, length], and their lengths
          `encoder_inputs_length` and `decoder_inputs_length` [batch]. Targets are shifted right with
          `start`; where the template begins with a token, that one is read first instead.
        - `lm`, of single texts: `inputs` [batch, length] and `inputs_length` [batch]. A label is the next
          id, and the first id of a row is one if `start` is given, or by NMT's rule.

        Args:
            split: a key of `splits`.
            for_model: `seq2seq` or `lm`; None: batches have the arrays of the rule.
            batch_size: rows of a batch, by NMT's rule; either this or `tokens_per_batch` is given.
            num_buckets: one less than the number of buckets; up to 1: a single bucket.
            source_max_length, target_max_length: rows are cut to so many ids, not counting their template
                and end.
            start, end: ids before and after each target, by NMT's rule or for a model. None: that with
                the role `begin`, without it the first of the template or `pad`; and that of
                `end_of_document`, without it that with the role `end`. For a model, the first of the
                template is before the role, and rows that have their end get no other; with False none
                does. An encoder reads the end of its row too; if its side has another vocabulary, it is
                that of `end_of_document`, whatever `end` is.
            tokens_per_batch: rows times the longest length at most, by Tensor2Tensor's rule.
            min_length, max_length: rows of other lengths are left out; a row is as long as its
                longest feature, its template included.
            boundaries: bounds of the buckets' lengths, ascending; None: from 8 on, each a tenth
                larger.
            pad_to_boundary: arrays are as wide as the longest row that their bucket can hold, so
                that there are few shapes; rows longer than `max_length`, or the budget, are then
                left out.
            drop_remainder: rows that fill no batch at an epoch's end are left out, and so are batches
                that are not one for each reader at the end of all epochs.
            pad: the id of padding; None: of each feature that with the role `pad` in its vocabulary; if
                there is none, by NMT's rule and for a model, the end.
            shuffle: each epoch has another order of the shards, and of rows within windows of them;
                `exact`: one of all rows, which are read one by one by an index (see `__getitem__`), and
                takes 8 bytes of memory for each; `corpus`: likewise, in the order of the corpus;
                False: rows are in the order as stored.
            seed: of the orders.
            epochs: how many; None: without end.
            first_epoch: the number of the first.
            window: rows that are shuffled together, at most those of a shard; None: 65,536, or as many as
                have 256 MiB.
            num_readers, reader_index: the number of readers that share the batches, and which this is.
                The order of batches is the same for any number: reader `i` of `n` has every `n`-th one,
                from number `i` on, and all have equally many. What is left at the end for fewer than `n`
                is cut into `n` batches of fewer rows, or left out if there are not `n` rows.
            on_error: `stop`, or `skip` to skip damaged records and count them in `left_out`.

        Raises:
            InputError: an argument has a wrong value, or the vocabulary lacks an id that is needed;
                when a batch is read, for damage.
        """
        arguments = dict(locals())  # every parameter by its name
        del arguments['self'], arguments['split']
        return self._batches(split, BatchOptions.of(arguments))

    def packed(
        self,
        split: str,
        length: int,
        *,
        for_model: ForModel | None = None,
        batch_size: int = 8,
        strategy: Strategy = 'best-fit',
        start: int | None = None,
        end: int | Literal[False] | None = None,
        cross_documents: bool = False,
        positions: bool = False,
        drop_remainder: bool = False,
        pad: int | None = None,
        shuffle: bool | Literal['exact', 'corpus'] = True,
        seed: int = 0,
        epochs: int | None = 1,
        first_epoch: int = 0,
        window: int | None = None,
        num_readers: int = 1,
        reader_index: int = 0,
        on_error: Literal['stop', 'skip'] = 'stop',
    ) -> BatchIterator:
        """Returns an iterator over batches of packed rows: several rows one after another in each.

        For every feature there are three int32 arrays [batch, length]: the ids (`targets`), the number
        of the row that each is of, from 1 on and 0 for padding (`targets_segmentation`), and its place
        in it (`targets_position`), as Tensor2Tensor and MaxText name them. A pair is one segment in
        both of its features. Order, readers and states are as of `batches`, and `padding_share` is
        the share of padding so far.

        With `for_model` a batch is what a model learns from, all arrays int32 [batch, length].

        - `lm`, of single texts: `inputs` and `labels`, which are the ids of a packed row but the last one,
          and but the first one; so packed rows have `length` + 1 ids. Labels are -100 at padding, and
          where the next id is of another document. With `start` each document is shifted right with it
          instead, so that its first id is a label.
        - `seq2seq`, of pairs: `encoder_inputs`, `decoder_inputs` and `labels` as of `batches`, each pair by
          itself, and numbers and places as `encoder_inputs_segmentation`, `decoder_inputs_position` and
          so on.

        Args:
            split: a key of `splits`.
            length: ids of a feature in a packed row, as a model reads them.
            for_model: `lm` or `seq2seq`; None: batches have the three arrays of each feature.
            batch_size: packed rows of a batch.
            strategy: `best-fit` places the rows of a window, the longest first, where the least room is
                left after each; `greedy` places them in their order into the first of ten packed rows
                with room, as Tensor2Tensor; `concat` puts them one after another, and cuts them where
                a packed row is full. The first two cut rows that are longer than `length`, and leave
                out pairs that are. A part of a row is a segment of its own.
            start: the id before each row, for a model; None: as of `batches` for `seq2seq`, none for `lm`.
            end: the id after each row; None: that of `end_of_document`, or none with `has_no_ends`;
                False: none. Where the template of rows ends with it, none is added. If each side has a
                vocabulary, an id is the end of targets, and `end_of_document` that of inputs.
            cross_documents: of `lm`, whether the first id of a document is the label of the id before it.
            positions: of `lm`, whether there are `inputs_segmentation` and `inputs_position` too.
            pad: the id of padding; None: of each feature that with the role `pad` in its vocabulary, or
                the end if there is none.
            drop_remainder: as of `batches`; a row is left out if any part of it is.
            shuffle, seed, epochs, first_epoch, window: as of `batches`.
            num_readers, reader_index, on_error: likewise.

        Raises:
            InputError: as `batches`; or which token ends documents is not known.
        """
        arguments = dict(locals())  # every parameter by its name
        del arguments['self'], arguments['split']
        return self._batches(split, PackOptions.of(arguments))

    def _batches(
        self, split: str, options: OrderOptions, worker: int = 0, workers: int = 1
    ) -> BatchIterator:
        rule = options.rule(self._manifest)
        rows = self.in_order(split, rule.features, options)
        arrays = options.model_arrays(self._manifest)
        return BatchIterator(rows, rule, options, split, self.folder, arrays, worker, workers)

    def in_order(
        self, split: str, features: Sequence[str], options: OrderOptions, keeps_window: bool = False
    ) -> SplitInOrder:
        """Returns the rows of a split in the order that these options ask for."""
        return SplitInOrder(
            split,
            self.folder,
            self._shards(split),
            features,
            self._manifest.id_counts,
            options,
            self._manifest.seed,
            keeps_window,
        )

    def difference(self, other: Dataset) -> str | None:
        """Returns in what rows of another dataset differ in kind; None if they are of one kind."""
        ours, theirs = self._manifest, other._manifest
        kinds = {
            'features': ours.features != theirs.features,
            'schemes': ours.scheme != theirs.scheme,
            'templates': ours.asked_template != theirs.asked_template,
            'ends of documents': ours.ends != theirs.ends,
            'vocabularies': ours.checksums != theirs.checksums,
        }
        return next((kind for kind, differs in kinds.items() if differs), None)

    def from_state(
        self, state: Mapping[str, object], *, num_readers: int = 1, reader_index: int = 0
    ) -> BatchIterator:
        """Returns an iterator that continues where others were, with the batches after their last.

        Args:
            state: what `BatchIterator.state()` returned in any one of the readers, in any process.
                These have given equally many batches.
            num_readers, reader_index: as for `batches`; there may be another number of readers now.

        Raises:
            InputError: it is not a state, or a state of another dataset.
        """
        checked_state = IteratorState.read(state)
        split, options = checked_state.asked(num_readers, reader_index)
        # Before the rule, which may need an id that another dataset has not.
        checked_state.check_dataset(self.in_order(split, self.features, options))
        iterator = self._batches(split, options)
        iterator.resume(state)
        return iterator

    @typing.overload
    @_with_parameters_of(batches)
    def tensorflow(self, split: str, **arguments: Any) -> tf.data.Dataset: ...

    @typing.overload
    @_with_parameters_of(packed)
    def tensorflow(self, split: str, **arguments: Any) -> tf.data.Dataset: ...

    @_showing_parameters_of(batches)
    def tensorflow(
        self, split: str, length: int | None = None, **arguments: Any
    ) -> tf.data.Dataset:
        """Returns the batches as a `tf.data.Dataset`; takes the arguments of `batches`, or of `packed`.

        Each iteration over it continues with the next `epochs` epochs. `tf.train.Checkpoint` cannot
        save its place, because a Python function makes the batches: to resume at an epoch, give
        `first_epoch`, and to resume within one, use `batches(…).tensorflow()`, which gives states. A
        distribution strategy, or tf.data's service, does not shard it; that is what readers do.

        Raises:
            InputError: as `batches`; or TensorFlow is not installed.
        """
        with extra_package('tensorflow'):
            from tokcore.reading.tensorflow import as_tensorflow
        options = _options(length, arguments)

        def iteration(number: int) -> BatchIterator:
            first = options.first_epoch + number * (options.epochs or 1)
            return self._batches(split, dataclasses.replace(options, first_epoch=first))

        return as_tensorflow(iteration)

    @typing.overload
    @_with_parameters_of(batches)
    def grain(self, split: str, **arguments: Any) -> GrainBatches: ...

    @typing.overload
    @_with_parameters_of(packed)
    def grain(self, split: str, **arguments: Any) -> GrainBatches: ...

    @_showing_parameters_of(batches)
    def grain(self, split: str, length: int | None = None, **arguments: Any) -> GrainBatches:
        """Returns the batches as a `grain.IterDataset`; takes the arguments of `batches`, or of `packed`.

        It maps, mixes, prefetches and is saved in checkpoints as grain's own datasets are. Every
        iterator over it begins at the first batch. Workers of `mp_prefetch` take turns in the batches,
        so that their order is the same for any number of them.

        Raises:
            InputError: as `batches`; or grain is not installed.
        """
        with extra_package('grain'):
            from tokcore.reading.grain import GrainBatches
        return GrainBatches(functools.partial(self._batches, split), _options(length, arguments))

    @typing.overload
    @_with_parameters_of(batches)
    def torch(self, split: str, **arguments: Any) -> TorchBatches: ...

    @typing.overload
    @_with_parameters_of(packed)
    def torch(self, split: str, **arguments: Any) -> TorchBatches: ...

    @_showing_parameters_of(batches)
    def torch(self, split: str, length: int | None = None, **arguments: Any) -> TorchBatches:
        """Returns the batches as a `torch.utils.data.IterableDataset`, for a `DataLoader`.

        Takes the arguments of `batches`, or of `packed`; tensors have the names, shapes and values of the arrays.
        Each iteration continues with the next `epochs` epochs. Workers of a `DataLoader` take turns in
        the batches, so that their order is the same for any number of them. Give it
        `batch_size=None`, since these are batches already.

        Raises:
            InputError: as `batches`; or PyTorch is not installed.
        """
        with extra_package('torch'):
            from tokcore.reading.torch import TorchBatches
        return TorchBatches(functools.partial(self._batches, split), _options(length, arguments))

    def __repr__(self) -> str:
        """Returns where it is, its scheme, and the sizes of splits and vocabularies."""
        splits = ', '.join(f'{name} {sizes.examples:,}' for name, sizes in self.splits.items())
        counts = self._manifest.id_counts
        ids = ', '.join(
            f'{name} {counts[name]:,}' if name in counts else name for name in self.features
        )
        scheme = self._manifest.scheme
        of_scheme = '' if scheme is None else f'; scheme {scheme.name}'
        return f'<Dataset {self.folder}: examples of {splits}; ids of {ids}{of_scheme}>'

    def _repr_html_(self) -> str:
        """Shows the sizes of splits and the first rows in a notebook."""
        return dataset_html(self)

    def _shards(self, split: str) -> tuple[ShardFile, ...]:
        splits = self._manifest.splits
        if split not in splits:
            raise InputError(
                f'{self.folder} has no split {shown(split)}; there are {", ".join(splits)}'
            )
        return splits[split]


def _options(length: int | None, arguments: Mapping[str, object]) -> OrderOptions:
    """Returns the options of `batches`, or with a length those of `packed`."""
    if length is not None:
        arguments = {'length': length, **arguments}
    return options_type(arguments).of(arguments)
