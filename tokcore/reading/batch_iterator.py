"""Iterates over the batches of a split, in one order for any number of readers.

    rows in the order of `ordered_rows` ─ a rule of `batching` ─▶ batches, in the order in which they fill
    batches of all epochs ─ in rounds of n ─▶ reader i has the batch i of each round

Every reader forms all batches, so a place in their order is the same for all of them, and a run goes on
with another number of readers. A place is a small JSON value at every moment.
"""

from __future__ import annotations

import collections
import dataclasses
import heapq
import itertools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tokcore.checked_json import Within, WrongValue, checked, fields_of
from tokcore.errors import InputError
from tokcore.format_numbers import ITERATOR_STATE, check_format
from tokcore.reading.batching import Batch, BatchedRows, BatchRule, Part, Pieces, Signature
from tokcore.reading.extra_packages import extra_package
from tokcore.reading.model_arrays import ModelArrays
from tokcore.reading.ordered_rows import OrderedRows, permutation
from tokcore.reading.prefetching import PrefetchedBatches
from tokcore.reading.shards import EncodedRows

if typing.TYPE_CHECKING:
    import tensorflow as tf

_MOST_EMPTY_EPOCHS = 100
"""Epochs without a batch until an iterator gives up; it would seem to hang if it went on."""

_PARTIAL = 1
"""With seed and epoch, the seed of the order of partial batches; that of shards has these two alone."""

_Count = Annotated[int, Within(0, (1 << 63) - 1)]


@dataclass(frozen=True)
class ReaderOptions:
    """Which batches one reader gives.

    Attributes:
        name: of what is read, for errors.
        readers, reader: the number of readers, and which of them this is.
        workers, worker: the number of processes that take turns in this reader's batches, and which
            of them this is.
        epochs: how many; None: without end.
        drop_remainder: whether rows that fill no batch at an epoch's end are left out, and batches
            that fill no round after the last epoch.
        first_epoch: the number of the first.
        most_ids: ids of rows after which no round is dealt any more; None: there is no such number.
        seed: of the order of the batches that are not full; None: they come by their lengths.
    """

    name: str
    readers: int = 1
    reader: int = 0
    workers: int = 1
    worker: int = 0
    epochs: int | None = 1
    drop_remainder: bool = False
    first_epoch: int = 0
    most_ids: int | None = None
    seed: int | None = None

    @property
    def end_epoch(self) -> int | None:
        """The number of the epoch at which to stop; None: never."""
        return None if self.epochs is None else self.first_epoch + self.epochs


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

    def check_dataset(self, rows: OrderedRows) -> None:
        """Raises InputError if the state is not of these rows."""
        if self.dataset != rows.identity:
            raise InputError(f'the state is {rows.differs}; give a state of this dataset')

    def check_arguments(self, arguments: Mapping[str, object]) -> None:
        """Raises InputError if the state is of batches with other arguments, and names the first."""
        for name in sorted(self.arguments.keys() | arguments.keys()):
            of_state, own = self.arguments.get(name), arguments.get(name)
            if of_state != own:
                raise InputError(
                    f'the state is of batches with {_shown(name, of_state)}, and these are with '
                    f'{_shown(name, own)}; give a state of these'
                )


def _shown(name: str, value: object) -> str:
    return f'the default of {name}' if value is None else f'{name}={value!r:.60}'


class BatchIterator:
    """Iterates over batches, as `Dataset.batches` describes them; for one thread."""

    def __init__(
        self,
        rows: OrderedRows,
        rule: BatchRule,
        options: ReaderOptions,
        arguments: dict[str, object],
        model_arrays: ModelArrays | None = None,
    ):
        """Takes the rows, the rule and the options, and the arguments of all that the state repeats.

        Without `model_arrays` batches have the arrays of the rule.
        """
        self._rows, self._rule, self._options, self._arguments = rows, rule, options, arguments
        self._model_arrays = model_arrays
        self._order = _BatchOrder(rows, rule, options, str(arguments['split']))
        self._windows: collections.deque[_FormedWindow] = collections.deque()
        self._dealt = 0  # batches of the first window that all readers have had
        self._place = _Place.at_start(options.first_epoch)  # while there is no window
        self._left_out = LeftOut(0, 0, 0)  # likewise
        self._start: _Start | None = None  # of the window that is formed next
        self._rounds_of_others = options.worker  # that come before the next one of this worker
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
        """Tells what is read, and the arguments that are not the defaults."""
        arguments = {name: value for name, value in self._arguments.items() if name != 'ends'}
        if self._options.readers > 1:
            arguments |= {
                'num_readers': self._options.readers, 'reader_index': self._options.reader
            }  # fmt: skip
        shown = ', '.join(f'{name}={value!r}' for name, value in arguments.items())
        return f'<BatchIterator over {self._options.name}: {shown}>'

    def __next__(self) -> Batch:
        self._pass_rounds_of_others()
        window, which, bucket = self._next_round()
        batch = window.batched.batch(which, bucket)
        self._rounds_of_others = self._options.workers - 1
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
            self._rounds_of_others -= 1
            try:
                self._next_round()
            except StopIteration:
                self._rounds_of_others = 0

    def _next_round(self) -> _PartOfWindow:
        """Deals a round of batches, one for each reader, and returns this reader's.

        Raises StopIteration if there is none.
        """
        readers, most_ids = self._options.readers, self._options.most_ids
        if most_ids is not None and self._ids_dealt() >= most_ids:
            raise StopIteration
        last = self._find(readers - 1)
        if last is None:
            return self._last_round()
        own = last if readers == 1 else self._find(self._options.reader)
        assert own is not None  # it comes before the last one
        window = self._windows[own[0]]
        for _ in range(last[0]):
            self._windows.popleft()
        self._dealt = last[1] + 1
        return window, *window.batches[own[1]]

    def _ids_dealt(self) -> int:
        """Returns how many ids the rows of all batches so far have."""
        return self._windows[0].ids_after(self._dealt) if self._windows else self._place.ids

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
                self._windows[0] = self._windows[0].without_rows(
                    self._rule
                )  # before the next ones are read
        elif self._start is None and self._place.epoch != self._options.end_epoch:
            self._start = self._order.start_at(self._place, self._left_out)
        if self._start is None:
            return False
        self._windows.append(self._order.form(self._start))
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
        if options.drop_remainder or sum(len(which) for _, which, _ in rest) < options.readers:
            rows = {row for window, which, _ in rest for row in window.rows_of(which)}
            self._left_out = self._left_out.with_remainder(len(rows))
            raise StopIteration
        return _cut(rest, options.readers)[options.reader]

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

        Beside the arrays, as int32 tensors, an element has `state`, a string of JSON: what `state()`
        is after this batch. So whatever is prefetched, `Dataset.from_state` goes on after the batch
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

    def resume(self, state: object, is_own: bool = False) -> None:
        """Goes to where other iterators were, as `go_to`; `state` is a value of JSON.

        Raises:
            InputError: as `go_to`; or it is not a state, or of batches with other arguments.
        """
        checked_state = IteratorState.read(state)
        checked_state.check_arguments(self._arguments)
        self.go_to(checked_state, is_own)

    def go_to(self, state: IteratorState, is_own: bool = False) -> None:
        """Goes to where other iterators with the same arguments were, and reads the rows there.

        Args:
            state: theirs.
            is_own: whether it is of the same worker of as many, so that its round is the next.

        Raises:
            InputError: the state is of another dataset, or of a place where no iterator can be.
        """
        state.check_dataset(self._rows)
        self._place, self._left_out = state.place, state.left_out
        self._windows.clear()
        self._dealt, self._start = 0, None
        self._rounds_of_others = 0 if is_own else self._options.worker
        if self._order.is_end(state.place):
            return
        window = self._order.form(self._order.start_at(state.place, state.left_out))
        if state.place.batch > window.count:
            raise _impossible_state(
                f'it is after batch {state.place.batch} of {window.count} of a window'
            )
        self._windows.append(window)
        self._dealt = state.place.batch


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


class _BatchOrder:
    """Forms the batches of all epochs in their one order, those of a window of rows at a time."""

    def __init__(self, rows: OrderedRows, rule: BatchRule, options: ReaderOptions, split: str):
        self._rows, self._rule, self._options, self._split = rows, rule, options, split

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
                    f'{self._options.name}: no batch came of {_MOST_EMPTY_EPOCHS} epochs of '
                    f'{self._split}, so none may ever come; ask for smaller batches or other lengths'
                )
            if place.epoch + 1 == self._options.end_epoch:
                return None
            nothing = EncodedRows.empty(self._rule.features)
            place = _Place.at_start(place.epoch + 1, window.ids_after())
            return _Start(place, left_out, _Held.none(nothing), empty_epochs)
        waiting, given = window.batched.waiting()
        held = window.held.take(waiting, given)
        starts = held.starts.tolist() if held.starts.any() else []
        place = _Place(
            place.epoch,
            place.window + 1,
            0,
            (*held.positions.tolist(),),
            (*starts,),
            window.ids_after(),
        )
        return _Start(place, left_out, held, empty_epochs)

    def left_out_after(self, window: _FormedWindow) -> LeftOut:
        """Returns the rows left out up to the end of a window."""
        left_out = window.left_out
        if window.is_end_of_epoch:
            is_dropped = self._options.drop_remainder
            rows = len(np.unique(window.held.positions))
            return left_out.with_remainder(rows if is_dropped else 0)
        return dataclasses.replace(
            left_out,
            damaged=left_out.damaged + window.damaged,
            length=left_out.length + window.without_batch,
        )

    def is_end(self, place: _Place) -> bool:
        """Whether a place is the end of all epochs; raises InputError if it is before or after all."""
        first, stop = self._options.first_epoch, self._options.end_epoch
        if place.epoch < first or (stop is not None and place.epoch > stop):
            epochs = f'from {first} on' if stop is None else f'from {first} to {stop - 1}'
            raise _impossible_state(f'epoch {place.epoch} is not one {epochs}')
        if place.epoch == stop and place != _Place.at_start(stop, place.ids):
            raise _impossible_state(f'it is within epoch {place.epoch}, after the last')
        return place.epoch == stop

    def start_at(self, place: _Place, left_out: LeftOut) -> _Start:
        """Returns the start of the window of a place; raises InputError if no iterator can be there."""
        epoch, count = place.epoch, self._rows.window_count(place.epoch)
        if place.window > count:
            raise _impossible_state(f'it is at window {place.window} of {count}')
        end = self._rows.window_start(epoch, place.window)
        waiting, starts = place.waiting, place.starts or (0,) * len(place.waiting)
        problem = f'its {len(waiting)} waiting rows cannot all be waiting there'
        pairs = [*zip(waiting, starts)]
        if len(starts) != len(waiting) or not all(a < b for a, b in itertools.pairwise(pairs)):
            raise _impossible_state(problem)
        if waiting and waiting[-1] >= end:
            raise _impossible_state(problem)
        read, rows = self._rows.read(epoch, np.unique(np.array(waiting, np.int64)))
        damaged = len({*waiting}) - len(read)
        left_out = dataclasses.replace(left_out, damaged=left_out.damaged + damaged)
        sound = np.isin(waiting, read)
        positions, firsts = np.array(waiting, np.int64)[sound], np.array(starts, np.int64)[sound]
        pieces = self._rule.pieces_at(rows.take(np.searchsorted(read, positions)), firsts)
        if pieces is None or not self._rule.arrange(pieces.rows).can_all_wait():
            raise _impossible_state(f'its {len(waiting)} waiting rows do not wait for a batch')
        held = _Held(positions, firsts, pieces.rows)
        return _Start(dataclasses.replace(place, batch=0), left_out, held, 0)

    def form(self, start: _Start) -> _FormedWindow:
        """Reads a window and forms its batches; after the last one the waiting rows make the last."""
        epoch, number = start.place.epoch, start.place.window
        is_end = number == self._rows.window_count(epoch)
        damaged, without_piece, held = 0, 0, start.held
        if not is_end:
            first, last = (
                self._rows.window_start(epoch, window) for window in (number, number + 1)
            )
            positions, rows = self._rows.read(epoch, np.arange(first, last))
            damaged = last - first - len(rows)
            pieces = self._rule.pieces(rows)
            without_piece = len(rows) - len(np.unique(pieces.numbers))
            held = held.with_pieces(positions, pieces)
        batched = self._rule.arrange(held.rows)
        batches = self._partial_batches(batched, epoch) if is_end else batched.full_batches()
        sizes = []
        if self._options.most_ids is not None:
            sizes = [batched.ids_in(which) for which, _ in batches]
        return _FormedWindow(
            start.place,
            start.left_out,
            held,
            start.empty_epochs,
            batched,
            batches,
            len(batches),
            damaged,
            without_piece + batched.left_out,
            is_end,
            (*itertools.accumulate(sizes, initial=start.place.ids),),
        )

    def _partial_batches(self, batched: BatchedRows, epoch: int) -> list[Part]:
        """Returns the batches of rows that wait at the end of an epoch."""
        if self._options.drop_remainder:
            return []
        batches, seed = batched.partial_batches(), self._options.seed
        if seed is None:
            return batches
        # By their lengths they would be a curriculum that no full batch follows.
        return [batches[number] for number in permutation(len(batches), seed, epoch, _PARTIAL)]


@dataclass(frozen=True)
class _Place:
    """A place in the order of batches.

    Attributes:
        epoch: counted as `ReaderOptions.first_epoch` is.
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
        fields: dict[str, object] = {
            'epoch': self.epoch,
            'window': self.window,
            'batch': self.batch,
            'waiting': list(self.waiting),
        }
        if self.starts:
            fields['starts'] = list(self.starts)
        if self.ids:
            fields['ids'] = self.ids
        return fields


@dataclass(frozen=True)
class LeftOut:
    """How many rows were left out, by reason."""

    damaged: _Count
    length: _Count
    remainder: _Count

    def with_remainder(self, rows: int) -> LeftOut:
        """Returns the numbers with more rows that filled no batch, or no round."""
        return dataclasses.replace(self, remainder=self.remainder + rows)


@dataclass(frozen=True)
class _Held:
    """Rows, or pieces of rows, that are in memory.

    Attributes:
        positions: int64[n], ascending: their places in the epoch's order.
        starts: int64[n]: the id of its row at which each begins.
        rows: their ids.
    """

    positions: np.ndarray
    starts: np.ndarray
    rows: EncodedRows

    @classmethod
    def none(cls, rows: EncodedRows) -> _Held:
        """Takes no rows, of the features that are read."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), rows)

    def take(self, numbers: np.ndarray, given: int) -> _Held:
        """Returns those of these numbers, without the first ids of the first one."""
        rows, starts = self.rows.take(numbers), self.starts[numbers]
        if given:
            firsts = {name: bounds[:-1].copy() for name, bounds in rows.offsets.items()}
            for array in (starts, *firsts.values()):
                array[0] += given
            rows = rows.ranges({name: (firsts[name], rows.offsets[name][1:]) for name in firsts})
        return _Held(self.positions[numbers], starts, rows)

    def with_pieces(self, positions: np.ndarray, pieces: Pieces) -> _Held:
        """Returns these, and after them the pieces of rows at these positions."""
        return _Held(
            np.concatenate([self.positions, positions[pieces.numbers]]),
            np.concatenate([self.starts, pieces.starts]),
            EncodedRows.joined([self.rows, pieces.rows]),
        )


@dataclass(frozen=True)
class _Start:
    """What is known before a window is read.

    Attributes:
        place: of its first batch.
        left_out: the rows left out before it.
        held: the waiting rows.
        empty_epochs: how many before this one had no batch.
    """

    place: _Place
    left_out: LeftOut
    held: _Held
    empty_epochs: int


@dataclass(frozen=True)
class _FormedWindow(_Start):
    """The waiting rows, after them the rows of a window, and the batches that these fill.

    Attributes:
        batched: the rows in batches.
        batches: these.
        count: the number of batches.
        damaged: how many rows of the window were skipped.
        without_batch: how many no batch takes, because of their lengths.
        is_end_of_epoch: whether it has waiting rows alone.
        ids: of rows in all batches before this window, and with each of its batches, if that counts.
    """

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
        positions = self.held.positions[self.batched.pieces_of(which)]
        return [(self.place.epoch, position) for position in positions.tolist()]

    def without_rows(self, rule: BatchRule) -> _FormedWindow:
        """Returns what tells the place after all of its batches."""
        held = _Held.none(EncodedRows.empty(rule.features))
        return dataclasses.replace(self, held=held, batched=rule.arrange(held.rows), batches=())


_PartOfWindow = tuple[_FormedWindow, np.ndarray, int]
"""A window, and a batch of it."""


def _impossible_state(problem: str) -> InputError:
    return InputError(
        f'the state is of a place where no iterator can be ({problem}); give what state() returned'
    )
