"""Rules that make batches: a row goes to a bucket by its length, and a full bucket is a batch.

`NmtBatches` is the rule of TensorFlow NMT's `get_iterator` (nmt/utils/iterator_utils.py): a fixed
number of rows, in `num_buckets + 1` buckets by the longer side, the last for all longer rows; the
length of a target counts the start token.

`BudgetBatches` is Tensor2Tensor's (utils/data_reader.py): a budget of tokens. Bounds of length grow
by a tenth from 8 on, and a bucket takes as many rows as the budget allows at its bound, rounded down
to a divisor of a highly composite number.

`ModelArrays` makes what a model learns from a batch: the ids that it reads, and for each of them the label.

    for_model='seq2seq'   `a b <EOS>` is shifted right: decoder inputs `<pad> a b`, labels `a b <EOS>`
    for_model='lm'        each id has the next one as its label: of `a b c` inputs `a b`, labels `b c`

Labels are -100, which losses leave out, where nothing is to be learned: at padding, and where the next id
is of another document.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from tokcore.encoding.vocabulary import NO_TEMPLATE, Template
from tokcore.reading.record_kernels import fill_rows

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)
"""Their product is larger than any number of 64 bits."""

_BUCKET_WIDTH = 10
"""Lengths in a bucket, where `source_max_length` is not given."""

_LEFT_OUT = -1
"""The bucket of rows that go into no batch."""

Batch = dict[str, np.ndarray]

Part = tuple[np.ndarray, int]
"""Numbers of rows that are a batch, or of packed rows, int64; and their bucket."""

Signature = dict[str, tuple[tuple[int | None, ...], type]]
"""The shape and dtype of each array of a batch; None where batches differ."""


def growing_boundaries(max_length: int) -> tuple[int, ...]:
    """Returns bounds from 8 up to a length, each larger than the one before by a tenth, or by 1.

    >>> growing_boundaries(14)
    (8, 9, 10, 11, 12, 13)
    """
    bounds, bound = [], 8
    while bound < max_length:
        bounds.append(bound)
        bound = max(bound + 1, int(bound * 1.1))
    return tuple(bounds)


class BatchRule(Protocol):
    """How rows become batches."""

    @property
    def features(self) -> tuple[str, ...]:
        """The features of a row that are read."""

    @property
    def ends(self) -> Mapping[str, int]:
        """By feature the id that is added to each row."""

    def pieces(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the parts of rows that go into batches one by one.

        Args:
            lengths: int64[features, rows], of the rows as they are stored.

        Returns the row of each piece, int64[n], ascending, and the id of that row at which the piece
        begins, int64[n]. A row that has no piece is left out.
        """

    def lengths_at(self, lengths: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
        """Returns the lengths of the piece of each row that begins at an id, int64[rows], as `lengths` are.

        None if no piece can begin at one of these.
        """

    def arrange(self, lengths: np.ndarray) -> BatchedRows:
        """Returns pieces of these lengths, int64[features, n], in the batches that they fill."""

    def cells(self, batch: Batch) -> tuple[int, int]:
        """Returns how many cells for ids the arrays of a batch have, and how many hold one."""

    def signature(self) -> Signature:
        """Returns the shape and dtype of each array of a batch."""


class BatchedRows(Protocol):
    """Pieces of rows, arranged in batches by a rule."""

    left_out: int
    """How many go into no batch."""

    def full_batches(self) -> list[Part]:
        """Returns the full batches in their order."""

    def partial_batches(self) -> list[Part]:
        """Returns batches of all pieces that wait at the end of an epoch, in their order."""

    def waiting(self) -> tuple[np.ndarray, int]:
        """Returns the pieces that are in no full batch, int64, ascending; and how many ids of the
        first of them are in one all the same."""

    def can_all_wait(self) -> bool:
        """Whether these can be the pieces that wait for the next window."""

    def pieces_of(self, which: np.ndarray) -> np.ndarray:
        """Returns the pieces in rows of a batch, int64."""

    def ids_in(self, which: np.ndarray) -> int:
        """Returns how many ids the rows of a batch have, with those of `ends` that are added to them."""

    def batch(self, which: np.ndarray, bucket: int, ids: Ids, starts: Starts) -> Batch:
        """Returns a batch as padded arrays.

        Args:
            which, bucket: of the batch.
            ids: int32 by feature, in which all of its pieces are.
            starts: int64[n] by feature, where the pieces `pieces_of(which)` begin.
        """


Ids = Mapping[str, np.ndarray]
Starts = Mapping[str, np.ndarray]


def with_ends(lengths: np.ndarray, features: Sequence[str], ends: Mapping[str, int]) -> np.ndarray:
    """Returns the lengths of rows, int64[features, rows], with the ids that are added to them."""
    return lengths + np.array([[name in ends] for name in features], np.int64)


class _WholeRows:
    """A rule that puts whole rows into batches."""

    def pieces(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = lengths.shape[1]
        return np.arange(count), np.zeros(count, np.int64)

    def lengths_at(self: BatchRule, lengths: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
        return None if starts.any() else with_ends(lengths, self.features, self.ends)


@dataclass(frozen=True)
class BudgetBatches(_WholeRows):
    """Tensor2Tensor's rule: a batch has a budget of tokens.

    Attributes:
        tokens: the budget, padding included; a longer row is a batch by itself.
        pads: by feature the id of padding.
        boundaries: ascending; a bucket holds the lengths below its bound, down to the one before.
        longest: the bound of the last bucket, whose lengths are up to it.
        features: those of the rows; a row is as long as its longest feature.
        min_length, max_length: other rows are left out; None: no row is too long.
        pad_to_boundary: arrays are as wide as the longest row that their bucket can hold.
        ends: by feature the id that is added to each row.
    """

    tokens: int
    pads: Mapping[str, int]
    boundaries: tuple[int, ...]
    longest: int
    features: tuple[str, ...]
    min_length: int = 0
    max_length: int | None = None
    pad_to_boundary: bool = False
    ends: Mapping[str, int] = field(default_factory=dict)

    def arrange(self, lengths: np.ndarray) -> BucketedRows:
        longest = lengths.max(axis=0)
        is_allowed = longest >= self.min_length
        if self.max_length is not None:
            is_allowed &= longest <= self.max_length
        buckets = np.searchsorted(np.array(self.boundaries, np.int64), longest, side='right')
        sizes = np.array(batch_sizes(self.tokens, (*self.boundaries, self.longest)), np.int64)
        buckets, ids = np.where(is_allowed, buckets, _LEFT_OUT), np.sum(lengths, axis=0)
        return BucketedRows(buckets, sizes, ids, functools.partial(self._batch, lengths))

    def _batch(
        self, lengths: np.ndarray, which: np.ndarray, bucket: int, ids: Ids, starts: Starts
    ) -> Batch:
        width = None
        if self.pad_to_boundary:  # the greatest length of the bucket
            width = (*(bound - 1 for bound in self.boundaries), self.longest)[bucket]
        batch = {}
        for name, sizes in zip(self.features, lengths.take(which, axis=1), strict=True):
            batch[name] = _padded(ids[name], starts[name], sizes, self.pads[name], width)
            batch[f'{name}_length'] = sizes.astype(np.int32)
        return batch

    def cells(self, batch: Batch) -> tuple[int, int]:
        ids = sum(int(batch[f'{name}_length'].sum()) for name in self.features)
        return sum(batch[name].size for name in self.features), ids

    def signature(self) -> Signature:
        signature: Signature = {}
        for name in self.features:
            signature[name] = ((None, None), np.int32)
            signature[f'{name}_length'] = ((None,), np.int32)
        return signature


def batch_sizes(tokens: int, bounds: Sequence[int]) -> tuple[int, ...]:
    """Returns the rows of a batch for each bound.

    >>> batch_sizes(100, [8, 16, 50])
    (12, 6, 2)
    """
    most_rows = [max(1, tokens // bound) for bound in bounds]
    divisors = _divisors_of_highly_composite(3 * max(most_rows))
    return tuple(divisors[bisect.bisect(divisors, rows) - 1] for rows in most_rows)


def _divisors_of_highly_composite(limit: int) -> list[int]:
    """Returns the divisors of the largest highly composite number up to a limit.

    Such a number has more divisors than every smaller number.
    """
    best: tuple[int, ...] = ()
    most_divisors = 0
    for _, exponents in sorted(_products(limit, 0, limit.bit_length())):
        divisor_count = math.prod(exponent + 1 for exponent in exponents)
        if divisor_count > most_divisors:
            best, most_divisors = exponents, divisor_count
    divisors = [1]
    for prime, exponent in zip(_PRIMES, best, strict=False):
        divisors = [divisor * prime**power for divisor in divisors for power in range(exponent + 1)]
    return sorted(divisors)


def _products(limit: int, first: int, most: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields (product, exponents) of consecutive primes from the `first`-th on, up to a limit.

    Exponents do not grow, and are at most `most`. Highly composite numbers are among these products:
    with the exponents in another order, or other primes, a larger number has as many divisors.
    """
    yield 1, ()
    product = 1
    for exponent in range(1, most + 1):
        product *= _PRIMES[first]
        if product > limit:
            return
        for rest, exponents in _products(limit // product, first + 1, exponent):
            yield product * rest, (exponent, *exponents)


class BucketedRows:
    """Rows with their buckets, of which a full one is a batch.

    Attributes:
        buckets: that of each row, int64[rows]; -1: it is left out.
        sizes: the rows of a full batch of each bucket, int64[buckets].
    """

    def __init__(
        self,
        buckets: np.ndarray,
        sizes: np.ndarray,
        ids: np.ndarray,
        batch: Callable[[np.ndarray, int, Ids, Starts], Batch],
    ):
        self.buckets, self.sizes, self._ids_of_rows, self.batch = buckets, sizes, ids, batch
        self.left_out = int(np.count_nonzero(buckets == _LEFT_OUT))

    def full_batches(self) -> list[Part]:
        """Returns them in the order in which their last rows come."""
        batches = []
        for bucket, (rows, size) in enumerate(zip(self._rows_by_bucket(), self.sizes.tolist())):
            for end in range(size, len(rows) + 1, size):
                batches.append((int(rows[end - 1]), bucket, rows[end - size : end]))
        return [(rows, bucket) for _, bucket, rows in sorted(batches, key=lambda batch: batch[0])]

    def partial_batches(self) -> list[Part]:
        """Returns them by ascending bucket."""
        return [(rows, bucket) for bucket, rows in enumerate(self._rows_by_bucket()) if len(rows)]

    def waiting(self) -> tuple[np.ndarray, int]:
        waiting = [
            rows[len(rows) - len(rows) % size :]
            for rows, size in zip(self._rows_by_bucket(), self.sizes.tolist())
        ]
        return np.sort(np.concatenate([np.empty(0, np.int64), *waiting])), 0

    def can_all_wait(self) -> bool:
        return not self.left_out and not self.full_batches()

    def pieces_of(self, which: np.ndarray) -> np.ndarray:
        return which

    def ids_in(self, which: np.ndarray) -> int:
        return int(self._ids_of_rows[which].sum())

    def _rows_by_bucket(self) -> list[np.ndarray]:
        """Returns for each bucket the numbers of its rows, ascending."""
        order = np.argsort(self.buckets, kind='stable')
        bounds = np.searchsorted(self.buckets[order], np.arange(len(self.sizes) + 1))
        return [order[start:end] for start, end in zip(bounds, bounds[1:])]


@dataclass(frozen=True)
class NmtBatches(_WholeRows):
    """TensorFlow NMT's rule: a batch has a fixed number of rows.

    Attributes:
        batch_size: rows of a batch.
        start, end: ids around the target.
        pads: by feature the id of padding.
        num_buckets: one less than the number of buckets; up to 1: a single bucket.
        source_max_length, target_max_length: rows are cut to so many ids; None: they are not.
        source: the feature that is the source; None: batches have targets only.
        target: the feature that is the target.
        source_template, target_template: the ids around each row, which are removed.
        keeps_source_template: those of the source stay, and its bound does not count them.
        ends: by feature the id that is added to each row; the source's is the last of its template.
    """

    batch_size: int
    start: int
    end: int
    pads: Mapping[str, int]
    num_buckets: int = 5
    source_max_length: int | None = None
    target_max_length: int | None = None
    source: str | None = 'inputs'
    target: str = 'targets'
    source_template: Template = NO_TEMPLATE
    target_template: Template = NO_TEMPLATE
    keeps_source_template: bool = False
    ends: Mapping[str, int] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.target,) if self.source is None else (self.source, self.target)

    def arrange(self, lengths: np.ndarray) -> BucketedRows:
        target = _cut(lengths[-1], self.target_template, self.target_max_length)
        buckets_but_one = self.num_buckets if self.num_buckets > 1 else 0
        width = _BUCKET_WIDTH
        if self.source is not None and self.source_max_length and buckets_but_one:
            width = (self.source_max_length + self.num_buckets - 1) // self.num_buckets
        source, ids, is_allowed = None, target, target > 0
        buckets = (target + 1) // width
        if self.source is not None:
            source = _cut(lengths[0], self.source_template, self.source_max_length)
            ids, is_allowed = ids + source, is_allowed & (source > 0)
            buckets = np.maximum(source // width, buckets)
        buckets = np.where(is_allowed, np.minimum(buckets, buckets_but_one), _LEFT_OUT)
        sizes = np.full(buckets_but_one + 1, self.batch_size)
        return BucketedRows(buckets, sizes, ids, functools.partial(self._batch, source, target))

    def _batch(
        self,
        source: np.ndarray | None,
        target: np.ndarray,
        which: np.ndarray,
        bucket: int,
        ids: Ids,
        starts: Starts,
    ) -> Batch:
        lengths, pad = target[which], self.pads[self.target]
        width = int(lengths.max()) + 1
        rows = ids[self.target], starts[self.target] + len(self.target_template.before), lengths
        target_input = _padded(*rows, pad, width, 1)
        target_input[:, 0] = self.start
        target_output = _padded(*rows, pad, width)
        target_output[np.arange(len(which)), lengths] = self.end
        batch = {'target_input': target_input, 'target_output': target_output}
        batch['target_sequence_length'] = (lengths + 1).astype(np.int32)
        if self.source is not None and source is not None:
            template, lengths, firsts = self.source_template, source[which], starts[self.source]
            if self.keeps_source_template:
                lengths = lengths + template.size
            else:
                firsts = firsts + len(template.before)
            texts = _padded(ids[self.source], firsts, lengths, self.pads[self.source])
            if self.keeps_source_template:  # which ends a row that is cut too
                for place, id_ in enumerate(template.after, -len(template.after)):
                    texts[np.arange(len(which)), lengths + place] = id_
            batch = {
                'source': texts,
                **batch,
                'source_sequence_length': lengths.astype(np.int32),
            }
        return batch

    def cells(self, batch: Batch) -> tuple[int, int]:
        # The targets stand there twice, as input and as output.
        ids = 2 * int(batch['target_sequence_length'].sum())
        cells = 2 * batch['target_input'].size
        if self.source is not None:
            ids += int(batch['source_sequence_length'].sum())
            cells += batch['source'].size
        return cells, ids

    def signature(self) -> Signature:
        arrays = ['source'] * (self.source is not None) + ['target_input', 'target_output']
        lengths = ['target_sequence_length']
        lengths += ['source_sequence_length'] * (self.source is not None)
        return {
            **dict.fromkeys(arrays, ((None, None), np.int32)),
            **dict.fromkeys(lengths, ((None,), np.int32)),
        }


def _cut(lengths: np.ndarray, template: Template, most: int | None) -> np.ndarray:
    """Returns the lengths of rows without their template, cut to a length; one of 0 is left out."""
    lengths = np.maximum(lengths - template.size, 0)
    return np.minimum(lengths, most) if most else lengths


def _padded(
    ids: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    pad: int,
    width: int | None = None,
    column: int = 0,
) -> np.ndarray:
    """Returns rows as int32[rows, width], their ids from `column` on.

    If `width` is None, it is that of the longest row.
    """
    if width is None:
        width = column + int(lengths.max(initial=0))
    out = np.full((len(starts), width), pad, np.int32)
    fill_rows(ids, starts, lengths, out, column)
    return out


ForModel = Literal['seq2seq', 'lm']

IGNORED = -100
"""The label that counts in no loss: the default of PyTorch's `cross_entropy` and of Hugging Face's models.
No id is below 0."""

LABELS = 'labels'

_OF_NMT = {
    'source': 'inputs',
    'source_sequence_length': 'inputs_length',
    'target_output': 'targets',
    'target_sequence_length': 'targets_length',
}
"""The arrays of NMT's rule, by the names that other rules have for such."""


@dataclass(frozen=True)
class ModelArrays:
    """Makes the arrays that a model takes of those that a rule makes.

    Attributes:
        for_model: the kind of model.
        feature: whose ids are learned.
        start: the id that each row is shifted right with; None: the first id of a row is no label.
        cross_documents: whether the first id of a document is the label of the id before it.
        positions: whether there are positions and segments of packed rows too.
    """

    for_model: ForModel
    feature: str
    start: int | None = None
    cross_documents: bool = False
    positions: bool = True

    def of(self, batch: Batch) -> Batch:
        """Returns the arrays of a batch, all int32."""
        batch = {_OF_NMT.get(name, name): array for name, array in batch.items()}
        ids, segments = batch[self.feature], batch.get(f'{self.feature}_segmentation')
        if segments is None:
            lengths = batch[f'{self.feature}_length']
            segments = np.where(np.arange(ids.shape[1]) < lengths[:, None], 1, 0)
        if self.start is None:
            batch[LABELS] = next_ids(ids, segments, self.cross_documents)
        else:
            batch[self.feature], batch[LABELS] = shifted_right(ids, segments, self.start)
        if self._has_no_last:
            most = max(ids.shape[1] - 1, 0)
            for name, array in batch.items():
                batch[name] = np.minimum(array, most) if array.ndim == 1 else array[:, :most]
        return {new: array for name, array in batch.items() if (new := self._name(name))}

    def signature(self, signature: Signature) -> Signature:
        """Returns the shape and dtype of each array, from those of a rule."""
        arrays: Signature = {}
        for name, (shape, dtype) in signature.items():
            if new := self._name(_OF_NMT.get(name, name)):
                width = shape[-1] if len(shape) == 2 else None
                if self._has_no_last and width is not None:
                    shape = (shape[0], width - 1)
                arrays[new] = shape, dtype
        return {**arrays, LABELS: arrays[self._inputs]}

    @property
    def _inputs(self) -> str:
        return 'decoder_inputs' if self.for_model == 'seq2seq' else 'inputs'

    @property
    def _has_no_last(self) -> bool:
        """Whether the last id of a row is a label alone."""
        return self.for_model == 'lm' and self.start is None

    def _name(self, name: str) -> str | None:
        """Returns what an array is called here; None if it is left out."""
        if name == LABELS:
            return name
        if name == 'target_input' or (
            not self.positions and name.endswith(('_segmentation', '_position'))
        ):
            return None
        if name.startswith(self.feature):
            return self._inputs + name.removeprefix(self.feature)
        return f'encoder_{name}'


def shifted_right(
    ids: np.ndarray, segments: np.ndarray, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids that a decoder reads, and their labels: int32, both as large as `ids`.

    Args:
        ids: int32[rows, length].
        segments: int[rows, length], the number of the text that each id is of, and 0 at padding.
        start: the first id that is read of each text.

    >>> read, labels = shifted_right(np.array([[5, 6, 1, 7, 1, 0]]), np.array([[1, 1, 1, 2, 2, 0]]), 9)
    >>> read.tolist(), labels.tolist()
    ([[9, 5, 6, 9, 7, 0]], [[5, 6, 1, 7, 1, -100]])
    """
    goes_on = segments[:, 1:] == segments[:, :-1]
    read = np.full_like(ids, start)
    read[:, 1:][goes_on] = ids[:, :-1][goes_on]
    is_text = segments > 0
    return np.where(is_text, read, ids), np.where(is_text, ids, np.full_like(ids, IGNORED))


def next_ids(ids: np.ndarray, segments: np.ndarray, cross_documents: bool = False) -> np.ndarray:
    """Returns the label of each id, int32[rows, length]: the id after it.

    Args:
        ids, segments: as of `shifted_right`.
        cross_documents: whether the first id of a text is a label too.

    >>> next_ids(np.array([[5, 6, 1, 7, 1, 0]]), np.array([[1, 1, 1, 2, 2, 0]])).tolist()
    [[6, 1, -100, 1, -100, -100]]
    """
    is_learned = segments[:, 1:] > 0
    if not cross_documents:
        is_learned &= segments[:, 1:] == segments[:, :-1]
    labels = np.full_like(ids, IGNORED)
    labels[:, :-1][is_learned] = ids[:, 1:][is_learned]
    return labels
