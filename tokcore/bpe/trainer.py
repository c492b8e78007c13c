r"""The BPE trainer: merges learned from a token table, the most frequent pair first.

    TokenTable ─ words ─▶ text   \0 l o w \0 l o w e r \0     all words in a row
                          cells  (symbol, word) of each byte, see `trainer_kernels`
    Words ─ pair counts ─▶ the pairs above a threshold, with a list of their occurrences
    Pairs ─ heap ─▶ the best pair ─ merge ─▶ cells, counts and occurrences around each place

The count of a pair only falls after it came up first. So the heap may hold counts that are too
high, as long as the top is checked again; and pairs below a threshold need no occurrence lists
until all above are merged. Then everything is counted again for a lower threshold. That takes a few
passes in all and saves most of the work: most pairs are rare and are never merged.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tokcore.bpe import trainer_kernels
from tokcore.bpe.options import BpeRules, Ties
from tokcore.bpe.trainer_kernels import (
    BORDER,
    FIRST,
    INSIDE,
    LARGEST_PAIR,
    NO_PAIR,
    SMALLEST_IDS,
    Limits,
    Merges,
    Neighbours,
    PairCounts,
    Pairs,
    Queue,
    Symbols,
    Words,
    count_pairs,
    enter_counts,
    enter_pairs,
    left_of,
    list_places,
    merge_pairs,
    pack_places,
    push_pairs,
    put_symbols,
    right_of,
)
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import WIDE_BYTES
from tokcore.options import LARGEST_INT64
from tokcore.text.byte_level import (
    ALPHABET,
    BYTE_TO_CHARACTER,
    CHARACTER_TO_BYTE,
    spelled,
    token_bytes,
)
from tokcore.text.unicode import CODE_POINTS, next_character

Progress = Callable[[int], None]

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

_MOST_CELLS = (1 << 31) - 1

INNER, FINAL = 0, 1
"""Whether a character is the last of its word, as the first index of arrays by code point."""

_LARGEST = (1 << 63) - 1


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
    table: TokenTable, rules: BpeRules, report: Progress | None = None, in_order: bool = False
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


@dataclass(frozen=True)
class Layout:
    """Words before any merge.

    Attributes:
        words: behind their text are the strings of the first symbols.
        entries: what these are, as files have them, by id: special tokens, then bytes or characters.
        strings: where words.text has each, (starts int64[n], lengths int32[n]); of no length if no
            word can hold it.
        units: int32[n], 1 for each byte or character that words can begin as.
        characters: the distinct ones that stay, in order of code points; of bytes none.
        character_symbols: how many of those words really begin as: within words, and at their ends.
    """

    words: Words
    entries: tuple[str, ...]
    strings: tuple[np.ndarray, np.ndarray]
    units: np.ndarray
    characters: str
    character_symbols: int


class _Learning:
    """Words and all that is kept about them, while merges are made."""

    def __init__(self, layout: Layout, rules: BpeRules):
        self._rules = rules
        self._words = layout.words
        self._floor = max(rules.min_count, 1)
        self._state = np.zeros(5, np.int64)
        self._state[trainer_kernels.SYMBOLS] = len(layout.entries)
        self._symbols = _symbols_of(layout)
        self._near = _neighbours(len(self._symbols.starts))
        self._merges = Merges(*(np.zeros(_PAUSE, kind) for kind in (np.int64, np.int32, np.int64)))
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

    def run(self, report: Progress) -> None:
        """Makes all merges."""
        state = self._state
        if state[trainer_kernels.SYMBOLS] >= self._limits.symbols or self._limits.merges <= 0:
            return
        is_left = self._list_pairs(lower=True)
        while is_left:
            pause = (state[trainer_kernels.MERGES] // _PAUSE + 1) * _PAUSE
            self._limits = self._limits._replace(pause=int(pause))
            ended = merge_pairs(
                self._words, self._symbols, self._pairs, self._queue, self._near, self._merges,
                self._limits, state,
            )  # fmt: skip
            match ended:
                case trainer_kernels.ENDED:
                    break
                case trainer_kernels.EXHAUSTED | trainer_kernels.MET_AGAIN:
                    is_left = self._list_pairs(lower=ended == trainer_kernels.EXHAUSTED)
                case trainer_kernels.SYMBOLS_FULL:
                    self._make_symbol_room()
                case trainer_kernels.PAIRS_FULL:
                    self._make_pair_room()
                case trainer_kernels.PLACES_FULL:
                    self._make_place_room()
                case _:
                    self._make_merge_room()
                    report(int(state[trainer_kernels.MERGES]))
        report(int(state[trainer_kernels.MERGES]))

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
            np.empty(_place_room(places, len(self._words.cells)), np.int32),
        )
        del table
        enter_pairs(self._pairs, used)
        list_places(self._words, self._symbols, self._pairs)
        self._queue = _queue(room)
        self._state[[trainer_kernels.PAIRS, trainer_kernels.PLACES, trainer_kernels.QUEUED]] = (
            used,
            places,
            0,
        )
        push_pairs(self._words, self._symbols, self._pairs, self._queue, self._limits, self._state)
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
        put_symbols(self._words.text, self._symbols, self._state[trainer_kernels.SYMBOLS])
        self._near = _neighbours(room)

    def _make_pair_room(self) -> None:
        room = 2 * len(self._pairs.keys) + 2 * len(self._symbols.starts)
        _, *arrays, places = self._pairs
        resized = (_resized(array, room) for array in arrays)
        self._pairs = Pairs(_slots(room), *resized, places)
        enter_pairs(self._pairs, self._state[trainer_kernels.PAIRS])
        self._queue = Queue(*(_resized(array, room) for array in self._queue))

    def _make_place_room(self) -> None:
        # What is past goes first. Then half as much is free again, or what the next merge may need.
        used, largest = pack_places(
            self._words, self._symbols, self._pairs, self._state[trainer_kernels.PAIRS]
        )
        self._state[trainer_kernels.PLACES] = used
        room = used + max(used // 2, 2 * largest, _FIRST_PLACES)
        if room > len(self._pairs.places):
            self._pairs = self._pairs._replace(places=_resized(self._pairs.places[:used], room))

    def _make_merge_room(self) -> None:
        if self._state[trainer_kernels.MERGES] + _PAUSE > len(self._merges.pairs):
            room = 2 * len(self._merges.pairs)
            self._merges = Merges(*(_resized(array, room) for array in self._merges))

    def _strings(self, symbols: Iterable[int]) -> list[str]:
        text, starts, lengths = self._words.text, self._symbols.starts, self._symbols.lengths
        return [
            shown(
                text[starts[each] : starts[each] + lengths[each]].tobytes(), self._rules.byte_level
            )
            for each in symbols
        ]

    def learned(self, layout: Layout) -> LearnedMerges:
        """Returns what was learned."""
        first, symbols = len(layout.entries), int(self._state[trainer_kernels.SYMBOLS])
        entries = (*layout.entries, *self._strings(range(first, symbols)))
        made = int(self._state[trainer_kernels.MERGES])
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
    return Neighbours(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int32))


def _queue(room: int) -> Queue:
    return Queue(*(np.empty(room, kind) for kind in (np.int64, np.int64, np.int32)))


def _place_room(places: int, cells: int) -> int:
    # What is not written to takes no memory, so there is room for as many again as there can be.
    return places + max(cells, _FIRST_PLACES)


def _slots(room: int) -> np.ndarray:
    """Returns empty slots for so many, of which less than half will be taken."""
    return np.zeros(1 << (2 * room).bit_length(), np.int32)


def _resized(array: np.ndarray, room: int) -> np.ndarray:
    """Returns an array of so many places, the rest of which are 0."""
    larger = np.zeros(room, array.dtype)
    larger[: len(array)] = array
    return larger


def lay_out(table: TokenTable, rules: BpeRules) -> Layout:
    """Returns the tokens of a table as words, in its order; those of no length are left out.

    Raises:
        InputError: there are 2 GiB of distinct tokens or more.
    """
    data, offsets = read_only(table.data), read_only(table.offsets)
    counts = read_only(np.ascontiguousarray(table.counts))
    return (_byte_layout if rules.byte_level else _character_layout)(data, offsets, counts, rules)


def shown(string: bytes, byte_level: bool) -> str:
    """Returns a symbol's string as files have it."""
    return spelled(string) if byte_level else string.decode()


def _byte_layout(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rules: BpeRules
) -> Layout:
    if rules.end_of_word:
        raise ValueError('words of bytes have no end of word')
    entries = tuple(dict.fromkeys((*rules.special_tokens, *ALPHABET)))
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    symbols = np.array([ids[BYTE_TO_CHARACTER[byte]] for byte in range(256)], np.int32)
    text, cells, strings = _room(
        len(data) + len(counts) + 1, [_bytes_of(entry) for entry in entries]
    )
    used = lay_bytes(data, offsets, read_only(symbols), text, cells)
    units = np.zeros(len(entries), np.int32)
    units[symbols] = 1
    return Layout(Words(text, cells[:used], counts), entries, strings, units, '', 256)


def _bytes_of(entry: str) -> bytes:
    """The bytes that an entry spells, none if it spells no bytes."""
    return token_bytes(entry) if CHARACTER_TO_BYTE.keys() >= set(entry) else b''


def _character_layout(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rules: BpeRules
) -> Layout:
    are_met = np.zeros((2, CODE_POINTS), np.bool_)
    totals = np.zeros(CODE_POINTS, np.int64)
    survey_characters(data, offsets, counts, are_met, totals)
    found = np.flatnonzero(are_met.any(0))
    if rules.limit_alphabet is not None:
        most = found[np.argsort(-totals[found], kind='stable')]
        special = [ord(token) for token in rules.special_tokens if len(token) == 1]
        stays = np.isin(found, [*most[: rules.limit_alphabet], *special])
        found = found[stays]
    ending = rules.end_of_word
    plain = [chr(character) for character in found]
    final = [chr(character) + ending for character in found if are_met[FINAL, character]]
    entries = tuple(dict.fromkeys((*rules.special_tokens, *plain, *final)))
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    symbols = np.full((2, CODE_POINTS), -1, np.int32)
    symbols[INNER, found] = [ids[character] for character in plain]
    symbols[FINAL, found] = [ids.get(character + ending, -1) for character in plain]
    end = np.frombuffer(ending.encode(), np.uint8)
    size = cells_of_characters(data, offsets, read_only(symbols), len(end))
    text, cells, strings = _room(size, [entry.encode() for entry in entries])
    used = lay_characters(data, offsets, read_only(symbols), end, text, cells)
    units = np.zeros(len(entries), np.int32)
    units[symbols[:, found][symbols[:, found] >= 0]] = 1
    return Layout(
        Words(text, cells[:used], counts),
        entries,
        strings,
        units,
        ''.join(plain),
        int(are_met[:, found].sum()),
    )


def _room(
    cells: int, strings: list[bytes]
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Returns text, with strings behind the room for cells, the cells, and where the strings are."""
    if cells > _MOST_CELLS:
        raise InputError(
            f'the distinct tokens are {cells:,} bytes, but merges are learned from fewer than 2^31; '
            'leave out the rarest tokens'
        )
    lengths = np.array([len(string) for string in strings], np.int32)
    ends = cells + np.cumsum(lengths, dtype=np.int64)
    text = np.zeros(int(ends[-1] if len(ends) else cells) + WIDE_BYTES, np.uint8)
    text[cells : len(text) - WIDE_BYTES] = np.frombuffer(b''.join(strings), np.uint8)
    return text, np.zeros((cells, 2), np.int32), (ends - lengths, lengths)


@kernel_without_allocation
def survey_characters(data, offsets, counts, are_met, totals):
    """Finds which characters there are (bool[2, code points]) and how often (int64[code points]).

    Counts past 2^63 - 1 stay that.
    """
    for token in range(len(counts)):
        place, end = offsets[token], offsets[token + 1]
        while place < end:
            character, place = next_character(data, place)
            are_met[FINAL if place == end else INNER, character] = True
            total = totals[character]
            totals[character] = total + min(counts[token], _LARGEST - total)


@kernel_without_allocation
def lay_bytes(data, offsets, symbols, text, cells):
    """Lays tokens out, whose bytes have these symbols (int32[256]); returns the cells used."""
    used = 1
    cells[0, 0] = BORDER
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        for place in range(start, end):
            text[used] = data[place]
            cells[used, 0] = symbols[data[place]]
            cells[used, 1] = token
            used += 1
        if end > start:
            cells[used, 0] = BORDER
            used += 1
    return used


@kernel_without_allocation
def lay_characters(data, offsets, symbols, ending, text, cells):
    """Lays tokens out, whose characters have these symbols (int32[2, code points]).

    Characters without one (-1) are left out. `ending` is written behind each that is final, if it
    belongs to that. Returns the cells used.
    """
    used = 1
    cells[0, 0] = BORDER
    for token in range(len(offsets) - 1):
        place, end = offsets[token], offsets[token + 1]
        first = used
        while place < end:
            start = place
            character, place = next_character(data, place)
            is_final = place == end
            symbol = symbols[FINAL if is_final else INNER, character]
            if symbol < 0:
                continue
            begin = used
            for each in range(start, place):
                text[used] = data[each]
                cells[used, 0] = INSIDE
                cells[used, 1] = token
                used += 1
            if is_final:
                for byte in ending:
                    text[used] = byte
                    cells[used, 0] = INSIDE
                    cells[used, 1] = token
                    used += 1
            cells[begin, 0] = cells[used - 1, 0] = symbol
        if used > first:
            cells[used, 0] = BORDER
            used += 1
    return used


@kernel_without_allocation
def cells_of_characters(data, offsets, symbols, ending_length):
    """Returns how many cells `lay_characters` needs."""
    used = 1
    for token in range(len(offsets) - 1):
        place, end = offsets[token], offsets[token + 1]
        first = used
        while place < end:
            start = place
            character, place = next_character(data, place)
            is_final = place == end
            if symbols[FINAL if is_final else INNER, character] >= 0:
                used += place - start
                if is_final:
                    used += ending_length
        if used > first:
            used += 1
    return used
