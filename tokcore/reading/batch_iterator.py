"""Iterates over the batches of a split, in one order for any number of readers.

    lengths in the order of `ordered_rows` ─ a rule of `batching` ─▶ batches, in the order in which they fill
    batches of all epochs ─ in rounds of n ─▶ reader i has the batch i of each round, and reads its rows

Every reader forms all batches, so a place in their order is the same for all of them, and a run goes on
with another number of readers. A place is a small JSON value at every moment. To form batches takes the
lengths of rows alone, which are in the indexes of shards; where they are not, all rows are read for them.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import heapq
import itertools
import queue
import threading
import typing
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tokcore.checked_json import Within, WrongValue, checked, fields_of
from tokcore.errors import InputError, missing_package
from tokcore.format_numbers import ITERATOR_STATE, check_format
from tokcore.reading.batch_options import READER_OPTIONS, OrderOptions, options_type
from tokcore.reading.batching import (
    Batch,
    BatchedRows,
    BatchRule,
    ModelArrays,
    Part,
    Signature,
)
from tokcore.reading.ordered_rows import (
    LENGTHS,
    NUMBER,
    PLACE,
    POSITION,
    START,
    OrderedRows,
    permutation,
)
from tokcore.reading.shards import EncodedRows

if typing.TYPE_CHECKING:
    import tensorflow as tf

_MOST_EMPTY_EPOCHS = 100
"""Epochs without a batch until an iterator gives up; it would seem to hang if it went on."""

_PARTIAL = 1
"""With seed and epoch, the seed of the order of partial batches; that of shards has these two alone."""

_Count = Annotated[int, Within(0, (1 << 63) - 1)]


@dataclass(frozen=True)
class IteratorState:
    """The state of all readers of a split, as JSON holds it.

    Attributes:
        format: `ITERATOR_STATE` of `format_numbers`.
        arguments: of `Dataset.batches` but for the readers, and the split.
        dataset: the identity of the split's shards.
        place: where they are.
        left_out: the rows left out so far, by reason.
    """

    format: Annotated[int, Within(0, (1 << 31) - 1)]
    arguments: dict[str, object]
    dataset: str
    place: _Place
    left_out: LeftOut

    @classmethod
    def read(cls, state: object) -> IteratorState:
        """Checks a value of JSON; raises InputError if it is not a state of this format."""
        try:
            number = fields_of(state, cls, 'the state', only=['format'])['format']
            remedy = 'begin the epoch again, and keep a new state'
            check_format('the state', number, ITERATOR_STATE, remedy)
            return checked(state, cls, 'the state')
        except WrongValue as error:
            raise InputError(
                f'this is not a state of batches ({error}); give what state() returned'
            ) from error

    def asked(self, num_readers: int, reader_index: int) -> tuple[str, OrderOptions]:
        """Returns the split and the options, for a reader; raises InputError if there are none."""
        arguments = dict(self.arguments)
        split, _ = arguments.pop('split', None), arguments.pop('ends', None)
        if not isinstance(split, str) or {'self', *READER_OPTIONS} & arguments.keys():
            raise InputError(
                'this is not a state of batches (it names no split, or a reader); give what state() '
                'returned'
            )
        readers = {'num_readers': num_readers, 'reader_index': reader_index}
        return split, options_type(arguments).of({**arguments, **readers})

    def check_dataset(self, rows: OrderedRows) -> None:
        """Raises InputError if the state is not of these rows."""
        if self.dataset != rows.identity:
            raise InputError(f'the state is {rows.differs}; give a state of this dataset')

    def check_arguments(self, arguments: Mapping[str, object]) -> None:
        """Raises InputError if the state is of batches with other arguments, and names the first."""
        for name in sorted(self.arguments.keys() | arguments.keys()):
            theirs, ours = self.arguments.get(name), arguments.get(name)
            if theirs != ours:
                raise InputError(
                    f'the state is of batches with {_shown(name, theirs)}, and these are with '
                    f'{_shown(name, ours)}; give a state of these'
                )


def _shown(name: str, value: object) -> str:
    return f'the default of {name}' if value is None else f'{name}={value!r:.60}'


class BatchIterator:
    """Iterates over batches, as `Dataset.batches` describes them; for one thread."""

    def __init__(
        self,
        rows: OrderedRows,
        rule: BatchRule,
        options: OrderOptions,
        split: str,
        name: str,
        model_arrays: ModelArrays | None = None,
        worker: int = 0,
        workers: int = 1,
        most_ids: int | None = None,
    ):
        """Use `Dataset.batches`.

        Args:
            name: what is read, for errors.
            model_arrays: makes the arrays of a model; None: batches have the arrays of the rule.
            worker, workers: the processes that take turns in this reader's batches.
            most_ids: the number of ids after which no round is dealt; None: there is no such number.
        """
        self._rows, self._rule, self._options, self._name = rows, rule, options, name
        self._model_arrays, self._workers, self._worker = model_arrays, workers, worker
        self._most_ids = most_ids
        self._arguments = {'split': split, **options.non_defaults()}
        for reader_option in READER_OPTIONS:
            self._arguments.pop(reader_option, None)
        if rule.ends:
            self._arguments['ends'] = dict(rule.ends)  # a dataset made again may have others
        counts_ids = most_ids is not None
        self._order = _BatchOrder(rows, rule, options, split, name, counts_ids)
        self._windows: collections.deque[_FormedWindow] = collections.deque()
        self._dealt = 0  # batches of the first window that all readers have had
        self._place = _Place.at_start(options.first_epoch)  # while there is no window
        self._left_out = LeftOut(0, 0, 0)  # likewise
        self._start: _Start | None = None  # of the window that is formed next
        self._rounds_of_others = worker  # that come before the next one of this worker
        self._cells = self._ids = 0

    @property
    def left_out(self) -> dict[str, int]:
        """The rows left out so far, of all readers, by reason: `damaged`; `length`, which no bucket
        takes; and `remainder`, which filled no batch at an epoch's end, or no round at the end."""
        left_out = self._windows[0].left_out if self._windows else self._left_out
        return dataclasses.asdict(left_out)

    def __iter__(self) -> BatchIterator:
        return self

    def __repr__(self) -> str:
        """Returns what is read, and the arguments that are not the defaults."""
        arguments = {name: value for name, value in self._arguments.items() if name != 'ends'}
        if self._options.num_readers > 1:
            arguments |= {name: getattr(self._options, name) for name in READER_OPTIONS}
        shown = ', '.join(f'{name}={value!r}' for name, value in arguments.items())
        return f'<BatchIterator over {self._name}: {shown}>'

    def __next__(self) -> Batch:
        self._pass_rounds_of_others()
        before = self._windows.copy(), self._dealt, self._place, self._left_out
        part = self._next_round()
        try:
            batch = self._order.read(*part)
        except BaseException:
            # This batch is still the next one.
            self._windows, self._dealt, self._place, self._left_out = before
            raise
        self._rounds_of_others = self._workers - 1
        cells, ids = self._rule.cells(batch)
        self._cells += cells
        self._ids += ids
        return batch if self._model_arrays is None else self._model_arrays.of(batch)

    @property
    def padding_share(self) -> float:
        """The share of padding in the arrays that this iterator has given, from 0 to 1."""
        return 1 - self._ids / self._cells if self._cells else 0.0

    def _pass_rounds_of_others(self) -> None:
        while self._rounds_of_others:
            try:
                self._next_round()
            except StopIteration:
                self._rounds_of_others = 0
            else:
                self._rounds_of_others -= 1

    def _next_round(self) -> tuple[_FormedWindow, np.ndarray, int, range]:
        """Deals a round of batches, one for each reader, and returns this reader's.

        With it come the numbers of those that it will have of the same window.

        Raises StopIteration if there is none.
        """
        if self._most_ids is not None:
            dealt = self._windows[0].ids_after(self._dealt) if self._windows else self._place.ids
            if dealt >= self._most_ids:
                raise StopIteration
        readers, reader = self._options.num_readers, self._options.reader_index
        last = self._find(readers - 1)
        if last is None:
            return *self._last_round(), range(0)
        found = self._find(reader)
        assert found is not None  # it comes before the last one, or is it
        window, number = self._windows[found[0]], found[1]
        for _ in range(last[0]):
            self._windows.popleft()
        self._dealt = last[1] + 1
        # The last round may be cut, so rounds count that end in this window.
        end, step = window.count - (readers - 1 - reader), readers * self._workers
        return window, *window.batches[number], range(number + step, end, step)

    def _find(self, ahead: int) -> tuple[int, int] | None:
        """Returns the window, and the number in it, of the batch that is so many ahead."""
        index, number = 0, self._dealt + ahead
        while index < len(self._windows) or self._form_next_window():
            count = self._windows[index].count
            if number < count:
                return index, number
            number -= count
            index += 1
        return None

    def _form_next_window(self) -> bool:
        """Forms the batches of the next window; returns whether there is one."""
        if self._start is None and self._windows:
            self._start = self._order.start_after(self._windows[-1])
            if self._start and len(self._windows) == 1 and self._dealt == self._windows[0].count:
                # Before the next ones are read.
                self._windows[0] = self._windows[0].without_rows(self._rule)
        elif self._start is None and self._place.epoch != self._options.end_epoch:
            self._start = self._order.start_at(self._place, self._left_out)
        if self._start is None:
            return False
        self._windows.append(self._order.form(*self._start))
        self._start = None
        return True

    def _last_round(self) -> _PartOfWindow:
        """Cuts the batches after the last whole round, so that each reader has one of fewer rows.

        Where there are fewer rows than readers, all are left out. Raises StopIteration if no batch is
        left.
        """
        options, rest = self._options, []
        for window in self._windows:
            rest += [(window, *batch) for batch in window.batches[self._dealt :]]
            self._dealt = 0
        if self._windows:
            assert options.end_epoch is not None
            self._place = _Place.at_start(options.end_epoch, self._windows[-1].ids_after())
            self._left_out = self._order.left_out_after(self._windows[-1])
            self._windows.clear()
        if options.drop_remainder or sum(len(which) for _, which, _ in rest) < options.num_readers:
            rows = {row for window, which, _ in rest for row in window.rows_of(which)}
            self._left_out = self._left_out.plus(remainder=len(rows))
            raise StopIteration
        return _cut(rest, options.num_readers)[options.reader_index]

    def signature(self) -> Signature:
        """Returns the shape and dtype of each array of a batch; None where batches differ."""
        signature = self._rule.signature()
        return signature if self._model_arrays is None else self._model_arrays.signature(signature)

    def prefetch(self, ahead: int = 2) -> PrefetchedBatches:
        """Returns the batches after the last one, some of them made ahead by a thread.

        `state()` of what is returned is that after the last batch that it gave; this iterator is not
        to be used any more.

        Args:
            ahead: how many, from 1 on.
        """
        if ahead < 1:
            raise InputError(f'ahead is {ahead}; give a number of batches from 1 on')
        return PrefetchedBatches(self, ahead)

    def tensorflow(self) -> tf.data.Dataset:
        """Returns the batches after the last one as a `tf.data.Dataset`, each with the state after it.

        An element has the arrays as int32 tensors, and `state`, a string of JSON: what `state()` is after
        this batch. So whatever is prefetched, `Dataset.from_state` goes on after the batch
        that a model was trained with last. It is iterated over once, and this iterator is not to be
        used any more.

        Raises:
            InputError: TensorFlow is not installed.
            tf.errors.OpError: when it is iterated over again, as by workers of tf.data's service.
        """
        with extra_package('tensorflow'):
            from tokcore.reading.tensorflow import with_states
        return with_states(self)

    def state(self) -> dict[str, object]:
        """Returns the state of all readers as a value of JSON, from which `Dataset.from_state` goes on.

        It is that after the round of this iterator's last batch: the same of every reader that has
        given as many batches.
        """
        self._pass_rounds_of_others()
        place = self._place
        if self._windows:
            place = dataclasses.replace(self._windows[0].place, batch=self._dealt)
        return {
            'format': ITERATOR_STATE,
            'arguments': self._arguments,
            'dataset': self._rows.identity,
            'place': place.as_json(),
            'left_out': self.left_out,
        }

    def resume(self, state: object, is_same_worker: bool = False) -> None:
        """Continues where other iterators with the same arguments were, and reads the rows there.

        Args:
            state: theirs, a value of JSON.
            is_same_worker: whether it is of the same worker of as many, so that its round is the next.

        Raises:
            InputError: it is not a state, or of another dataset or other arguments, or of a place
                where no iterator can be.
        """
        checked_state = IteratorState.read(state)
        checked_state.check_arguments(self._arguments)
        checked_state.check_dataset(self._rows)
        place, left_out = checked_state.place, checked_state.left_out
        self._place, self._left_out = place, left_out
        self._windows.clear()
        self._dealt, self._start = 0, None
        self._rounds_of_others = 0 if is_same_worker else self._worker
        if self._order.is_end(place):
            return
        window = self._order.form(*self._order.start_at(place, left_out))
        if place.batch > window.count:
            raise _impossible_state(
                f'it is after batch {place.batch} of {window.count} of a window'
            )
        self._windows.append(window)
        self._dealt = place.batch


def _cut(batches: Sequence[_PartOfWindow], count: int) -> list[_PartOfWindow]:
    """Cuts the rows of fewer batches than `count` into as many, the largest first, in their order."""
    parts = [1] * len(batches)
    largest = [(-len(which), number) for number, (_, which, _) in enumerate(batches)]
    heapq.heapify(largest)
    for _ in range(count - len(batches)):
        number = largest[0][1]
        parts[number] += 1
        heapq.heapreplace(largest, (-len(batches[number][1]) // parts[number], number))
    return [
        (window, part, bucket)
        for (window, which, bucket), number in zip(batches, parts, strict=True)
        for part in np.array_split(which, number)
    ]


@dataclass(frozen=True, eq=False)
class _BatchOrder:
    """Forms the batches of all epochs in their one order, those of a window of rows at a time."""

    rows: OrderedRows
    rule: BatchRule
    options: OrderOptions
    split: str
    name: str
    counts_ids: bool

    def start_after(self, window: _FormedWindow) -> _Start | None:
        """Returns the start of the window after another; None after the last one of the last epoch.

        Raises:
            InputError: no batch came of many epochs.
        """
        place, left_out = window.place, self.left_out_after(window)
        empty_epochs = 0 if window.count else window.empty_epochs
        if window.is_end_of_epoch:
            empty_epochs += 1
            if empty_epochs > _MOST_EMPTY_EPOCHS:
                raise InputError(
                    f'{self.name}: no batch came of {_MOST_EMPTY_EPOCHS} epochs of '
                    f'{self.split}, so none may ever come; ask for smaller batches or other lengths'
                )
            if place.epoch + 1 == self.options.end_epoch:
                return None
            place = _Place.at_start(place.epoch + 1, window.ids_after())
            return place, left_out, *_nothing(self.rule.features), empty_epochs
        waiting, used = window.batched.waiting()
        kept, encoded = window.kept.take(waiting, axis=1), window.encoded
        kept[START, :1] += used
        if self.rows.has_lengths:
            kept[PLACE], encoded = -1, EncodedRows.empty(self.rule.features)
        else:
            read, kept[PLACE] = np.unique(kept[PLACE], return_inverse=True)
            encoded = encoded.take(read)
        starts = kept[START].tolist() if kept[START].any() else []
        positions = kept[POSITION].tolist()
        number, ids = place.window + 1, window.ids_after()
        place = _Place(place.epoch, number, 0, tuple(positions), tuple(starts), ids)
        return place, left_out, kept, encoded, empty_epochs

    def left_out_after(self, window: _FormedWindow) -> LeftOut:
        """Returns the rows left out up to the end of a window."""
        if window.is_end_of_epoch:
            is_dropped = self.options.drop_remainder
            rows = len(np.unique(window.kept[POSITION]))
            return window.left_out.plus(remainder=rows if is_dropped else 0)
        return window.left_out.plus(damaged=window.damaged, length=window.without_batch)

    def is_end(self, place: _Place) -> bool:
        """Whether a place is the end of all epochs; raises InputError if it is before or after all."""
        first, stop = self.options.first_epoch, self.options.end_epoch
        if place.epoch < first or (stop is not None and place.epoch > stop):
            epochs = f'from {first} on' if stop is None else f'from {first} to {stop - 1}'
            raise _impossible_state(f'epoch {place.epoch} is not one {epochs}')
        if place.epoch == stop and place != _Place.at_start(stop, place.ids):
            raise _impossible_state(f'it is within epoch {place.epoch}, after the last')
        return place.epoch == stop

    def start_at(self, place: _Place, left_out: LeftOut) -> _Start:
        """Returns the start of the window of a place; raises InputError if no iterator can be there."""
        epoch, count = place.epoch, self.rows.window_count(place.epoch)
        if place.window > count:
            raise _impossible_state(f'it is at window {place.window} of {count}')
        end = self.rows.window_start(epoch, place.window)
        waiting, starts = place.waiting, place.starts or (0,) * len(place.waiting)
        problem = f'its {len(waiting)} waiting rows cannot all be waiting there'
        pairs = [*zip(waiting, starts)]
        if len(starts) != len(waiting) or not all(a < b for a, b in itertools.pairwise(pairs)):
            raise _impossible_state(problem)
        if waiting and waiting[-1] >= end:
            raise _impossible_state(problem)
        rows, encoded = self.rows.look_up(epoch, np.unique(np.array(waiting, np.int64)))
        left_out = left_out.plus(damaged=len({*waiting}) - rows.shape[1])
        sound = np.isin(waiting, rows[POSITION])
        positions, firsts = np.array(waiting, np.int64)[sound], np.array(starts, np.int64)[sound]
        kept = rows.take(np.searchsorted(rows[POSITION], positions), axis=1)
        kept[START] = firsts
        lengths = self.rule.lengths_at(kept[LENGTHS:], firsts)
        if lengths is None or not self.rule.arrange(lengths).can_all_wait():
            raise _impossible_state(f'its {len(waiting)} waiting rows do not wait for a batch')
        place, encoded = dataclasses.replace(place, batch=0), encoded.with_ends(self.rule.ends)
        return place, left_out, kept, encoded, 0

    def form(
        self,
        place: _Place,
        left_out: LeftOut,
        kept: np.ndarray,
        encoded: EncodedRows,
        empty_epochs: int,
    ) -> _FormedWindow:
        """Forms the batches of a window; after the last one the waiting rows make the last."""
        epoch, number = place.epoch, place.window
        is_end = number == self.rows.window_count(epoch)
        damaged, without_piece = 0, 0
        if not is_end:
            first, last = (self.rows.window_start(epoch, window) for window in (number, number + 1))
            rows, read = self.rows.look_up(epoch, np.arange(first, last))
            damaged = last - first - rows.shape[1]
            row_of, starts = self.rule.pieces(rows[LENGTHS:])
            without_piece = rows.shape[1] - int(np.count_nonzero(np.diff(row_of, prepend=-1)))
            pieces = rows.take(row_of, axis=1)
            pieces[START] = starts
            pieces[PLACE] += len(encoded)
            kept = np.hstack([kept, pieces])
            encoded = EncodedRows.joined([encoded, read.with_ends(self.rule.ends)])
        lengths = self.rule.lengths_at(kept[LENGTHS:], kept[START])
        assert lengths is not None  # the rule has these pieces
        batched = self.rule.arrange(lengths)
        batches = self._partial_batches(batched, epoch) if is_end else batched.full_batches()
        sizes = []
        if self.counts_ids:
            sizes = [batched.ids_in(which) for which, _ in batches]
        return _FormedWindow(
            place,
            left_out,
            kept,
            encoded,
            empty_epochs,
            batched,
            batches,
            len(batches),
            damaged,
            without_piece + batched.left_out,
            is_end,
            (*itertools.accumulate(sizes, initial=place.ids),),
        )

    def read(self, window: _FormedWindow, which: np.ndarray, bucket: int, ahead: range) -> Batch:
        """Returns a batch of a window; where its rows are not in memory, reads them, and those of others.

        The others have the numbers `ahead`.
        """
        batched, kept = window.batched, window.kept
        pieces = batched.pieces_of(which)
        places = kept[PLACE].take(pieces)
        if places.min() < 0:
            others = (window.batches[number][0] for number in ahead)
            own = batched.pieces_of(np.concatenate([which, *others]))
            numbers, places_of_own = np.unique(kept[NUMBER, own], return_inverse=True)
            lengths = np.empty((len(self.rule.features), len(numbers)), np.int64)
            lengths[:, places_of_own] = kept[LENGTHS:, own]
            window.encoded = self.rows.read(numbers, lengths)[1].with_ends(self.rule.ends)
            kept[PLACE] = -1
            kept[PLACE, own] = places_of_own
            places = kept[PLACE].take(pieces)
        starts = window.encoded.starts(places, kept[START].take(pieces))
        return batched.batch(which, bucket, window.encoded.ids, starts)

    def _partial_batches(self, batched: BatchedRows, epoch: int) -> list[Part]:
        """Returns the batches of rows that wait at the end of an epoch."""
        if self.options.drop_remainder:
            return []
        batches = batched.partial_batches()
        if self.options.shuffle not in (True, 'exact'):
            return batches
        # By their lengths they would be a curriculum that no full batch follows.
        order = permutation(len(batches), self.options.seed, epoch, _PARTIAL)
        return [batches[number] for number in order]


@dataclass(frozen=True)
class _Place:
    """Where iterators are in the order of batches.

    Attributes:
        epoch: counted as `first_epoch` is.
        window: its number in the epoch; after the last one come the batches of waiting rows.
        batch: how many of the window's batches come before.
        waiting: positions of rows of earlier windows that filled no batch before this window.
        starts: the id of each of them at which the part begins that waits; none if all wait whole.
        ids: of rows in all batches before this window, if that counts.
    """

    epoch: _Count
    window: _Count
    batch: _Count
    waiting: tuple[_Count, ...]
    starts: tuple[_Count, ...] = ()
    ids: _Count = 0

    @classmethod
    def at_start(cls, epoch: int, ids: int = 0) -> _Place:
        return cls(epoch, 0, 0, (), (), ids)

    def as_json(self) -> dict[str, object]:
        """Returns the fields as a value of JSON."""
        fields = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        return {k: v for k, v in fields.items() if v or k not in ('starts', 'ids')}


@dataclass(frozen=True)
class LeftOut:
    """How many rows were left out, by reason."""

    damaged: _Count
    length: _Count
    remainder: _Count

    def plus(self, **rows: int) -> LeftOut:
        """Returns the numbers with more rows, by reason."""
        return LeftOut(**{reason: n + rows.get(reason, 0) for reason, n in vars(self).items()})


def _nothing(features: Sequence[str]) -> tuple[np.ndarray, EncodedRows]:
    """Returns no pieces of rows, and no rows."""
    return np.empty((LENGTHS + len(features), 0), np.int64), EncodedRows.empty(features)


_Start = tuple[_Place, LeftOut, np.ndarray, EncodedRows, int]
"""Where a window begins: at which place, what was left out before it, the waiting rows as `POSITION` says, those that are in memory, and how many epochs before this one had no batch."""


@dataclass
class _FormedWindow:
    """The waiting rows, after them the rows of a window, and the batches that these fill.

    Attributes:
        place, left_out, empty_epochs: as in `_Start`.
        kept: the pieces of rows, as `POSITION` says.
        encoded: the rows that were read: all, or those of batches that this reader gives. They have the
            ids that a rule adds.
        batched: the rows in batches.
        batches: these.
        count: the number of batches.
        damaged: how many rows of the window were skipped.
        without_batch: how many no batch takes, because of their lengths.
        is_end_of_epoch: whether it has waiting rows alone.
        ids: of rows in all batches before this window, and with each of its batches, if that counts.
    """

    place: _Place
    left_out: LeftOut
    kept: np.ndarray
    encoded: EncodedRows
    empty_epochs: int
    batched: BatchedRows
    batches: Sequence[Part]
    count: int
    damaged: int
    without_batch: int
    is_end_of_epoch: bool
    ids: tuple[int, ...]

    def ids_after(self, batches: int = -1) -> int:
        """Returns how many ids there are up to and with so many batches of this window, or all."""
        return self.ids[batches] if len(self.ids) > 1 else self.place.ids

    def rows_of(self, which: np.ndarray) -> list[tuple[int, int]]:
        """Returns (epoch, position) of the rows of a batch."""
        positions = self.kept[POSITION, self.batched.pieces_of(which)]
        return [(self.place.epoch, position) for position in positions.tolist()]

    def without_rows(self, rule: BatchRule) -> _FormedWindow:
        """Returns what the place after all of its batches depends on."""
        kept, encoded = _nothing(rule.features)
        batched = rule.arrange(kept[LENGTHS:])
        return dataclasses.replace(self, kept=kept, encoded=encoded, batched=batched, batches=())


_PartOfWindow = tuple[_FormedWindow, np.ndarray, int]
"""A window, and a batch of it."""


def _impossible_state(problem: str) -> InputError:
    return InputError(
        f'the state is of a place where no iterator can be ({problem}); give what state() returned'
    )


@contextlib.contextmanager
def extra_package(name: str) -> Iterator[None]:
    """Raises InputError with the command that installs a package, if its import fails without it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise missing_package(f'dataset.{name}', name) from None


_Made = tuple[Batch | BaseException, dict[str, object]]
"""A batch, or what was raised instead, and the state after it."""


class PrefetchedBatches(Iterator[Batch]):
    """The batches of an iterator, some of them made ahead; for one thread.

    The thread that makes them ends with the batches, or when this is no longer referred to.
    """

    def __init__(self, batches: BatchIterator, ahead: int):
        """Use `BatchIterator.prefetch`."""
        self._made: queue.SimpleQueue[_Made] = queue.SimpleQueue()
        self._room = threading.Semaphore(ahead)
        self._state, self._raised = batches.state(), False
        self._shown = f'<PrefetchedBatches, {ahead} ahead: {batches!r}>'
        stop = threading.Event()
        self._thread = threading.Thread(
            target=_make, args=(batches, self._made, self._room, stop), daemon=True
        )
        self._thread.start()
        self._end = weakref.finalize(self, _end, stop, self._room, self._thread)

    def __next__(self) -> Batch:
        if self._raised:
            raise StopIteration
        made, self._state = self._made.get()
        if isinstance(made, BaseException):
            self._raised = True
            raise made
        self._room.release()
        return made

    def __repr__(self) -> str:
        """Returns what is read ahead."""
        return self._shown

    def state(self) -> dict[str, object]:
        """Returns the state after the last batch that was given, as `BatchIterator.state`."""
        return self._state

    def close(self) -> None:
        """Ends the thread; there are no more batches."""
        self._raised = True
        self._end()


def _make(
    batches: BatchIterator,
    made: queue.SimpleQueue[_Made],
    room: threading.Semaphore,
    stop: threading.Event,
) -> None:
    while True:
        room.acquire()
        if stop.is_set():
            return
        try:
            batch = next(batches)
        except BaseException as error:
            # Whoever asks for the batch gets the error; StopIteration is one of them.
            made.put((error, batches.state()))
            return
        made.put((batch, batches.state()))


def _end(stop: threading.Event, room: threading.Semaphore, thread: threading.Thread) -> None:
    stop.set()
    room.release()
    if thread is not threading.current_thread():  # which may collect garbage
        thread.join()
