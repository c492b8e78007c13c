"""The learner of merges, over a token table in memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tokcore.bpe.learning import merging
from tokcore.bpe.learning.merge_rules import BpeRules, Ties
from tokcore.bpe.learning.merging import Limits, Merges, Neighbours, merge_pairs, push_pairs
from tokcore.bpe.learning.pair_counting import (
    NO_PAIR,
    PairCounts,
    Pairs,
    count_pairs,
    enter_counts,
    enter_pairs,
    left_of,
    list_places,
    pack_places,
    right_of,
)
from tokcore.bpe.learning.pair_queue import FIRST, LARGEST_PAIR, SMALLEST_IDS, Queue
from tokcore.bpe.learning.word_cells import Symbols, put_symbols
from tokcore.bpe.learning.word_layout import Layout, lay_out, shown
from tokcore.counts.token_table import TokenTable
from tokcore.options.values import LARGEST_INT64

Report = Callable[[int], None]

_RULES: dict[Ties, int] = {
    'smallest-ids': SMALLEST_IDS,
    'largest-pair': LARGEST_PAIR,
    'first': FIRST,
}

_PAUSE = 1 << 10
"""Merges between reports, a hundredth of a second or so."""

_FALL = 64
"""A threshold for pairs is the largest count over this: when none reaches it, all are counted anew."""

_FIRST_SYMBOLS = 1 << 12
_FIRST_PAIRS = 1 << 14
_FIRST_PLACES = 1 << 16
_FIRST_SLOTS = 1 << 16


@dataclass(frozen=True)
class LearnedMerges:
    """What was learned.

    Attributes:
        entries: by id, as files have them (of bytes `Ġthe`, an end of word on those that have it):
            special tokens, then bytes or characters, then what merges made.
        merges: (left, right) as entries, in the order in which they were learned.
        counts: int64[n], of each merge when it was made.
        special_tokens: those of the entries that are, without repeats.
        characters: the distinct ones of the words in order of code points; of bytes none.
        smallest_size: entries that there are without any merge.
    """

    entries: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    counts: np.ndarray
    special_tokens: tuple[str, ...]
    characters: str
    smallest_size: int


def learn_merges(
    table: TokenTable, rules: BpeRules, report: Report | None = None, in_order: bool = False
) -> LearnedMerges:
    """Learns merges from distinct tokens and their counts: those of a plain recount at each step.

    `fast_ 4, faster_ 3, tall_ 5, taller_ 4` gives, ties `first`, `ta tal tall fa fas fast er er_
    tall_ fast_`. Tokens of count 0 give characters and no merges.

    Takes some 14 bytes for each byte of the distinct tokens (and one for each token, and what
    `end_of_word` adds), and 4 more for each place of a pair that may be merged soon, of which there
    are at most 2 for each byte. 10 million tokens of 13 bytes took 2.3 GiB.

    Args:
        table: distinct tokens.
        rules: which pair is next, and when it ends.
        report: is told of merges so far, many times a second.
        in_order: whether `first` scans words in the table's order. Otherwise it does by count, the
            largest first, then by code points; the other rules know no order.

    Raises:
        OverflowError: naming a pair that occurs more than 2^63 - 1 times.
        InputError: the distinct tokens are 2 GiB or more.
    """
    if rules.ties == 'first' and not in_order:
        table = table.sorted()
        table = table.pick(np.argsort(-table.counts, kind='stable'))
    layout = lay_out(table, rules)
    learning = _Learning(layout, rules)
    learning.run(report or (lambda merges: None))
    return learning.learned(layout)


class _Learning:
    """Words and all that is kept about them, while merges are made."""

    def __init__(self, layout: Layout, rules: BpeRules):
        self._rules = rules
        self._words = layout.words
        self._floor = max(rules.min_count, 1)
        self._state = np.zeros(5, np.int64)
        self._state[merging.SYMBOLS] = len(layout.entries)
        self._symbols = _symbols_of(layout)
        self._near = _neighbours(len(self._symbols.starts))
        self._merges = Merges(
            *(np.empty(_FIRST_SYMBOLS, kind) for kind in (np.int64, np.int32, np.int64))
        )
        most = LARGEST_INT64 if rules.merges is None else rules.merges
        if rules.total_symbols:
            most -= layout.character_symbols
        longest = rules.max_piece_length
        self._limits = Limits(
            pause=0,
            merges=most,
            symbols=LARGEST_INT64 if rules.vocab_size is None else rules.vocab_size,
            threshold=LARGEST_INT64,
            max_piece_length=LARGEST_INT64 if longest is None else longest,
            rule=_RULES[rules.ties],
        )

    def run(self, report: Report) -> None:
        """Makes all merges."""
        state = self._state
        if state[merging.SYMBOLS] >= self._limits.symbols or self._limits.merges <= 0:
            return
        is_left = self._list_pairs(lower=True)
        while is_left:
            pause = (state[merging.MERGES] // _PAUSE + 1) * _PAUSE
            self._limits = self._limits._replace(pause=int(pause))
            ended = merge_pairs(
                self._words, self._symbols, self._pairs, self._queue, self._near, self._merges,
                self._limits, state,
            )  # fmt: skip
            match ended:
                case merging.ENDED:
                    break
                case merging.EXHAUSTED | merging.MET_AGAIN:
                    is_left = self._list_pairs(lower=ended == merging.EXHAUSTED)
                case merging.SYMBOLS_FULL:
                    self._make_symbol_room()
                case merging.PAIRS_FULL:
                    self._make_pair_room()
                case merging.PLACES_FULL:
                    self._make_place_room()
                case _:
                    self._make_merge_room()
                    report(int(state[merging.MERGES]))
        report(int(state[merging.MERGES]))

    def _list_pairs(self, lower: bool) -> bool:
        """Counts all pairs anew and lists those of a threshold; returns whether there are any."""
        if lower and self._limits.threshold <= self._floor:
            return False
        self._pairs = self._queue = None
        table = self._counted()
        if lower:
            top = int(table.counts.max())
            if top < self._floor:
                return False
            self._limits = self._limits._replace(threshold=max(self._floor, top // _FALL))
        found = np.flatnonzero(table.counts >= self._limits.threshold)
        ends = np.cumsum(table.numbers[found])
        starts = ends - table.numbers[found]
        used, places = len(found), int(ends[-1]) if len(ends) else 0
        room = _FIRST_PAIRS + 2 * used
        self._pairs = Pairs(
            _slots(room),
            _resized(table.keys[found], room),
            _resized(table.counts[found], room),
            _resized(starts, room),
            _resized(starts, room),
            np.empty(places + max(len(self._words.cells), _FIRST_PLACES), np.int32),
        )
        del table
        enter_pairs(self._pairs, used)
        list_places(self._words, self._symbols, self._pairs)
        self._queue = _queue(room)
        self._state[[merging.PAIRS, merging.PLACES, merging.QUEUED]] = used, places, 0
        push_pairs(
            self._words, self._symbols, self._pairs, self._queue, self._limits, self._state
        )
        return True

    def _counted(self) -> PairCounts:
        """Returns all pairs that may be merged, however rare."""
        table, used = PairCounts.empty(_FIRST_SLOTS), 0
        place, last = 1, len(self._words.cells) - 1
        while True:
            place, used, pair = count_pairs(
                place, self._words, self._symbols, self._limits.max_piece_length, table, used
            )
            if pair != NO_PAIR:
                left, right = self._strings([left_of(pair), right_of(pair)])
                raise OverflowError(
                    f'the pair {left!r} {right!r} occurs more than 2^63 - 1 times; make counts '
                    'smaller'
                )
            if place >= last:
                return table
            larger = PairCounts.empty(4 * len(table.keys))
            enter_counts(table, larger)
            table = larger

    def _make_symbol_room(self) -> None:
        room = 2 * len(self._symbols.starts)
        *arrays, _ = self._symbols
        self._symbols = Symbols(*(_resized(array, room) for array in arrays), _slots(room))
        put_symbols(self._words.text, self._symbols, self._state[merging.SYMBOLS])
        self._near = _neighbours(room)

    def _make_pair_room(self) -> None:
        room = 2 * len(self._pairs.keys) + 2 * len(self._symbols.starts)
        _, *arrays, places = self._pairs
        resized = (_resized(array, room) for array in arrays)
        self._pairs = Pairs(_slots(room), *resized, places)
        enter_pairs(self._pairs, self._state[merging.PAIRS])
        self._queue = Queue(*(_resized(array, room) for array in self._queue))

    def _make_place_room(self) -> None:
        # What is past goes first. Then half as much is free again, or what the next merge may need.
        used, largest = pack_places(
            self._words, self._symbols, self._pairs, self._state[merging.PAIRS]
        )
        self._state[merging.PLACES] = used
        room = used + max(used // 2, 2 * largest, _FIRST_PLACES)
        if room > len(self._pairs.places):
            self._pairs = self._pairs._replace(places=_resized(self._pairs.places[:used], room))

    def _make_merge_room(self) -> None:
        if self._state[merging.MERGES] + _PAUSE > len(self._merges.pairs):
            room = 2 * len(self._merges.pairs)
            self._merges = Merges(*(_resized(array, room) for array in self._merges))

    def _strings(self, symbols: Iterable[int]) -> list[str]:
        text, starts, lengths = self._words.text, self._symbols.starts, self._symbols.lengths
        return [
            shown(text[starts[each] : starts[each] + lengths[each]].tobytes(), self._rules.byte_level)
            for each in symbols
        ]

    def learned(self, layout: Layout) -> LearnedMerges:
        """Returns what was learned."""
        first, symbols = len(layout.entries), int(self._state[merging.SYMBOLS])
        entries = (*layout.entries, *self._strings(range(first, symbols)))
        made = int(self._state[merging.MERGES])
        merges = tuple(
            (entries[left_of(pair)], entries[right_of(pair)])
            for pair in self._merges.pairs[:made].tolist()
        )
        return LearnedMerges(
            entries,
            merges,
            self._merges.counts[:made].copy(),
            tuple(dict.fromkeys(self._rules.special_tokens)),
            layout.characters,
            first,
        )


def _symbols_of(layout: Layout) -> Symbols:
    used = len(layout.entries)
    room = _FIRST_SYMBOLS + 2 * used
    starts, lengths = layout.strings
    symbols = Symbols(
        _resized(starts, room),
        _resized(lengths, room),
        _resized(layout.units, room),
        np.zeros(room, np.uint64),
        _slots(room),
    )
    put_symbols(layout.words.text, symbols, used)
    return symbols


def _neighbours(symbols: int) -> Neighbours:
    size = (2, symbols)
    return Neighbours(
        np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int32)
    )


def _queue(room: int) -> Queue:
    return Queue(*(np.empty(room, kind) for kind in (np.int64, np.int64, np.int32)))


def _slots(room: int) -> np.ndarray:
    """Returns empty slots for so many, of which less than half will be taken."""
    return np.zeros(1 << (2 * room).bit_length(), np.int32)


def _resized(array: np.ndarray, room: int) -> np.ndarray:
    """Returns an array of so many places, the rest of which are 0."""
    larger = np.zeros(room, array.dtype)
    larger[: len(array)] = array
    return larger
