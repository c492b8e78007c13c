r"""The BPE trainer: learns merges from a token table, the most frequent pair first.

`plain_iteration` says what is computed: all pairs are counted again at each merge. Here they are
counted a few times in all, and after each merge the counts around its occurrences are updated:

    TokenTable ── tokenize ──▶ words as symbols: low lower, \0 l o w \0 l o w e r \0
    words ── count ──▶ pair counts ── above a threshold ──▶ pairs with lists of their occurrences
    queue ── the first pair ──▶ merge its occurrences ──▶ counts and lists of the pairs around them

The count of a pair only falls once the pair exists. So the queue may hold counts that are too high,
if the first entry is checked again; and pairs below the threshold need no lists until all above
it are merged. Then all pairs are counted again for a lower threshold. Most pairs are rare and are
never merged, so this takes a few passes and saves most of the work.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from tokcore.bpe import trainer_kernels as kernels
from tokcore.bpe.options import MOST_CELLS, BpeRules, Ties
from tokcore.bpe.pair_counting import compact_cells, count_pairs
from tokcore.bpe.trainer_kernels import (
    Merges,
    Neighbors,
    Pairs,
    Queue,
    Symbols,
    TrainerConfig,
    Words,
)
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.bytes import put_varint, read_varint, varint_size
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

_TIES: dict[Ties, int] = {
    'smallest-ids': kernels.SMALLEST_IDS,
    'largest-pair': kernels.LARGEST_PAIR,
    'first': kernels.FIRST,
}

_PAUSE = 1 << 10
"""Merges between calls of `on_merges`, about a hundredth of a second."""

_THRESHOLD_DIVISOR = 64
"""The threshold is the largest count divided by this. With a smaller one all pairs are counted more
often, with a larger one more pairs are listed that are never merged."""

_PAIRS_FACTOR = 1.5
"""The most pairs that are listed for each merge that is left. With more, pairs are listed that are
never merged; with 1.25 or fewer all pairs are counted more often."""

_CELLS: tuple[type[np.unsignedinteger], ...] = (np.uint16, np.uint32)
"""What cells may be made of, the smallest that fits first. The wider ones take a tenth more time."""

_FIRST_SYMBOLS = 1 << 12
_FIRST_PAIRS = 1 << 14
_FIRST_OCCURRENCES = 1 << 16

_INNER, _FINAL = 0, 1
"""Whether a character is the last of its word: the first index of arrays by code point."""


@dataclass(frozen=True)
class LearnedMerges:
    """A learned vocabulary."""

    entries: tuple[str, ...]
    """By id, as files spell them (`Ġthe`, or with the end-of-word suffix): special tokens, then bytes
    or characters, then the results of merges."""

    merges: tuple[tuple[str, str], ...]  # (left, right) as entries, in the order of learning
    counts: np.ndarray  # int64[merges], of the pair when it was merged
    special_tokens: tuple[str, ...]  # without duplicates
    characters: str  # of the words, by code point; '' if words are bytes
    smallest_size: int  # the number of entries without any merge


def learn_merges(
    table: TokenTable,
    rules: BpeRules,
    on_merges: Callable[[int], None] | None = None,
) -> LearnedMerges:
    """Learns merges from distinct tokens and their counts; tokens of count 0 add characters only.

    `fast_ 4, faster_ 3, tall_ 5, taller_ 4` with ties `first` gives `ta tal tall fa fas fast er er_
    tall_ fast_`.

    Memory: 9 to 12 bytes for each symbol of the distinct tokens and one for each token; 14 to 20 if
    there are 65,533 symbols or more. Measured on texts with 5 to 26 million of them.

    Args:
        table: distinct tokens. With ties `first`, words are scanned in its order if it is ordered, else
            by count, the largest first, then by code points. Other ties do not depend on the order.
        rules: which pair is merged next, and when training ends.
        on_merges: is called with the number of merges so far, many times a second.

    Raises:
        OverflowError: a pair, which is named, occurs more than 2^63 - 1 times.
        InputError: the distinct tokens have 2^31 symbols and borders or more.
    """
    if rules.ties == 'first' and not table.is_ordered:
        table = table.sorted()
        table = table.pick(np.argsort(-table.counts, kind='stable'))
    first = first_symbols([table], rules)
    learning = Learning(first, rules)
    learning.merge_words(first.words(table), learning.min_count, on_merges)
    return learning.learned()


@dataclass(frozen=True)
class FirstSymbols:
    """The symbols before any merge: special tokens, then bytes or characters.

    Attributes:
        entries: by id, as files spell them.
        strings: by id, the UTF-8 or the bytes of each; b'' if no word can have it.
        units: int64[n], of `Learning`: 1 for bytes and characters, else 0.
        ids: int32[256], the symbol of each byte; or int32[2, code points], that of each character
            within a word and at its end, -1 where it is left out of words.
        characters: as of `LearnedMerges`.
        total_characters: the number of characters within words, plus that at their ends.
    """

    entries: tuple[str, ...]
    strings: tuple[bytes, ...]
    units: np.ndarray
    ids: np.ndarray
    characters: str
    total_characters: int

    def words(self, table: TokenTable) -> TokenTable:
        """Returns the tokens of a table as words, in its order, with its counts.

        A word's bytes are its symbols, as LEB128 one after another. A table of words may have a word
        several times, and empty ones.
        """
        room = varint_size(len(self.entries)) * len(table.data)
        data, offsets = np.empty(room, np.uint8), np.empty(len(table) + 1, np.int64)
        write = _write_words_of_bytes if self.ids.ndim == 1 else _write_words_of_characters
        write(table.data, table.offsets, read_only(self.ids), data, offsets)
        return TokenTable(data[: offsets[-1]], offsets, table.counts)


def first_symbols(tables: Iterable[TokenTable], rules: BpeRules) -> FirstSymbols:
    """Returns the symbols of all tokens of some tables, before any merge.

    Args:
        tables: are read only if words are characters. A token may be in several of them.
        rules: say what is a symbol.
    """
    if rules.byte_level:
        if rules.end_of_word:
            raise ValueError('words of bytes have no end of word')
        return symbols_of_bytes(rules)
    return symbols_of_characters(*count_characters(tables), rules)


def symbols_of_bytes(rules: BpeRules) -> FirstSymbols:
    """Returns the symbols of words that are bytes, before any merge."""
    entries = tuple(dict.fromkeys((*rules.special_tokens, *ALPHABET)))
    numbers = {entry: id_ for id_, entry in enumerate(entries)}
    ids = np.array([numbers[BYTE_TO_CHARACTER[byte]] for byte in range(256)], np.int32)
    # A special token with another character spells no bytes, so no word can have it.
    strings = tuple(
        token_bytes(entry) if CHARACTER_TO_BYTE.keys() >= {*entry} else b'' for entry in entries
    )
    return FirstSymbols(entries, strings, _units(ids, len(entries)), ids, '', 256)


def characters_from(within: str, at_ends: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns what `count_characters` would return if each of these characters occurred once."""
    occur = np.zeros((2, CODE_POINTS), np.bool_)
    for row, characters in zip(occur, (within, at_ends)):
        row[[ord(character) for character in characters]] = True
    return occur, occur.sum(0, np.int64)


def count_characters(tables: Iterable[TokenTable]) -> tuple[np.ndarray, np.ndarray]:
    """Returns whether each character occurs within a token and at the end of one, and how often.

    They are bool[2, code points] and int64[code points]; a count above 2^63 - 1 is 2^63 - 1.
    """
    occur = np.zeros((2, CODE_POINTS), np.bool_)
    totals = np.zeros(CODE_POINTS, np.int64)
    for table in tables:
        _count_characters(table.data, table.offsets, table.counts, occur, totals)
    return occur, totals


def symbols_of_characters(occur: np.ndarray, totals: np.ndarray, rules: BpeRules) -> FirstSymbols:
    """Returns the symbols of words that are characters (see `count_characters`), before any merge."""
    alphabet = np.flatnonzero(occur.any(0))
    if rules.limit_alphabet is not None:
        by_count = alphabet[np.argsort(-totals[alphabet], kind='stable')]
        special = [ord(token) for token in rules.special_tokens if len(token) == 1]
        alphabet = alphabet[np.isin(alphabet, [*by_count[: rules.limit_alphabet], *special])]
    suffix = rules.end_of_word
    inner = [chr(code) for code in alphabet]
    final = [chr(code) + suffix for code in alphabet if occur[_FINAL, code]]
    entries = tuple(dict.fromkeys((*rules.special_tokens, *inner, *final)))
    numbers = {entry: id_ for id_, entry in enumerate(entries)}
    ids = np.full((2, CODE_POINTS), -1, np.int32)
    ids[_INNER, alphabet] = [numbers[character] for character in inner]
    ids[_FINAL, alphabet] = [numbers.get(character + suffix, -1) for character in inner]
    strings = tuple(entry.encode() for entry in entries)
    units, total = _units(ids[:, alphabet], len(entries)), int(occur[:, alphabet].sum())
    return FirstSymbols(entries, strings, units, ids, ''.join(inner), total)


def _units(ids: np.ndarray, symbols: int) -> np.ndarray:
    units = np.zeros(symbols, np.int64)
    units[ids[ids >= 0]] = 1
    return units


class Learning:
    """The symbols and merges so far.

    Attributes:
        first: the symbols before any merge.
        rules: which pair is merged next, and when training ends.
        strings: the string of each symbol, in bytes; b'' if no word can have it.
        units: int64[symbols], the length of each in bytes or characters, 0 while no word has it, and more
            for superwords; see `joined_units`.
        pairs: int64[merges], left << 32 | right of each merge.
        counts: int64[merges], of each pair when it was merged.
        min_count: pairs that occur less often are never merged.
    """

    def __init__(self, first: FirstSymbols, rules: BpeRules):
        self.first, self.rules = first, rules
        self.strings = list(first.strings)
        self.units = first.units
        self.pairs = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)
        self.min_count = max(rules.min_count, 1)
        self._max_merges = LARGEST_INT64 if rules.merges is None else rules.merges
        if rules.total_symbols:
            self._max_merges -= first.total_characters

    @property
    def is_complete(self) -> bool:
        """Whether there are as many merges or symbols as the rules want."""
        size = self.rules.vocab_size
        is_full = size is not None and len(self.strings) >= size
        return is_full or len(self.pairs) >= self._max_merges

    def merge_words(
        self, words: TokenTable, min_count: int, on_merges: Callable[[int], None] | None = None
    ) -> None:
        """Makes all merges of pairs that occur `min_count` times or more in these words.

        Args:
            words: all merges so far are made in them.
            min_count: at least that of the rules.
            on_merges: is called with the number of all merges so far.

        Raises:
            OverflowError, InputError: as `learn_merges`.
        """
        if self.is_complete:
            return
        before = len(self.pairs)
        trainer = Trainer(words, self, min_count, self._max_merges - before)
        trainer.train(lambda merges: on_merges(before + merges) if on_merges else None)
        trainer.store(self)

    def resume(self, pairs: np.ndarray, counts: np.ndarray) -> None:
        """Continues with the merges (`pairs` and `counts`) of an earlier learning of these words."""
        ids = self._ids()
        units = self.units.tolist()
        for pair in pairs.tolist():
            left, right = divmod(pair, 1 << 32)
            string = self.strings[left] + self.strings[right]
            if string not in ids:
                ids[string] = len(self.strings)
                self.strings.append(string)
                units.append(0)
            units[ids[string]] = kernels.joined_units(units[left], units[right])
        self.units = np.array(units, np.int64)
        self.pairs, self.counts = pairs, counts

    def products(self, pairs: np.ndarray) -> np.ndarray:
        """Returns the symbols that merges of pairs (int64[n]) result in, int64[n]."""
        ids = self._ids()
        split = (divmod(pair, 1 << 32) for pair in pairs.tolist())
        return np.array([ids[self.strings[a] + self.strings[b]] for a, b in split], np.int64)

    def _ids(self) -> dict[bytes, int]:
        ids: dict[bytes, int] = {}
        for symbol, string in enumerate(self.strings):
            ids.setdefault(string, symbol)
        return ids

    def learned(self) -> LearnedMerges:
        """Returns what was learned."""
        added = self.strings[len(self.first.entries) :]
        entries = (*self.first.entries, *(_spelled(string, self.rules) for string in added))
        pairs = (divmod(pair, 1 << 32) for pair in self.pairs.tolist())
        return LearnedMerges(
            entries,
            tuple((entries[left], entries[right]) for left, right in pairs),
            self.counts,
            tuple(dict.fromkeys(self.rules.special_tokens)),
            self.first.characters,
            len(self.first.entries),
        )


def _spelled(string: bytes, rules: BpeRules) -> str:
    return spelled(string) if rules.byte_level else string.decode()


class Trainer:
    """The words, and the pairs and counts that merges update.

    Either `train` makes all merges, or `list_all` begins, and each call of `merge` makes one.
    """

    def __init__(self, words: TokenTable, learning: Learning, min_count: int, max_merges: int):
        rules = self._rules = learning.rules
        self._min_count = min_count
        self._state = np.zeros(8, np.int64)
        self._first = len(learning.strings)
        most = self._first + max_merges if rules.vocab_size is None else rules.vocab_size
        self._words, self._symbols = _lay_out(words, learning, most, self._state)
        self._neighbors = _neighbors(len(self._symbols.starts), self._words.cells[:0])
        self._most_merges = min(max_merges, most - self._first)
        self._merges = Merges(np.zeros(_PAUSE, np.int64), np.zeros(_PAUSE, np.int64))
        self._pairs, self._queue = _allocate_pairs(0, 0)
        longest = rules.max_piece_length
        self._config = TrainerConfig(
            pause_at=0,
            max_merges=max_merges,
            max_symbols=LARGEST_INT64 if rules.vocab_size is None else rules.vocab_size,
            threshold=LARGEST_INT64,
            max_piece_length=LARGEST_INT64 if longest is None else longest,
            ties=_TIES[rules.ties],
        )

    def train(self, on_merges: Callable[[int], None]) -> None:
        """Makes all merges."""
        state = self._state
        has_pairs = self._list_pairs(lower_threshold=True)
        while has_pairs:
            pause_at = (int(state[kernels.MERGES]) // _PAUSE + 1) * _PAUSE
            self._config = self._config._replace(pause_at=pause_at)
            reason = kernels.merge_pairs(
                self._words, self._symbols, self._pairs, self._queue, self._neighbors,
                self._merges, self._config, state,
            )  # fmt: skip
            match reason:
                case kernels.DONE:
                    break
                case kernels.EXHAUSTED if self._config.threshold <= self._min_count:
                    break
                case kernels.EXHAUSTED | kernels.DUPLICATE_SYMBOL:
                    compact_cells(self._words, self._symbols, state)
                    has_pairs = self._list_pairs(lower_threshold=reason == kernels.EXHAUSTED)
                case kernels.PAUSED:
                    self._grow_merges()
                    on_merges(int(state[kernels.MERGES]))
                case _:
                    self._grow(reason)
        on_merges(int(state[kernels.MERGES]))

    def list_all(self) -> None:
        """Lists all pairs, so that any of them can be merged."""
        self._config = self._config._replace(threshold=1)
        self._list_pairs(lower_threshold=False)

    def most_frequent(self) -> tuple[int, int]:
        """Returns the pair to merge next, as in `Learning.pairs`, and its count; (-1, 0) if there is none."""
        index = kernels.most_frequent(
            self._words, self._symbols, self._pairs, self._queue, self._config, self._state
        )
        return (self._pairs.keys[index], self._pairs.counts[index]) if index >= 0 else (-1, 0)

    def merge(self, pair: int) -> int:
        """Merges a pair, which need not occur; returns by how many symbols the text is shorter."""
        while True:
            reason, fewer = kernels.merge_pair(
                pair, self._words, self._symbols, self._pairs, self._queue, self._neighbors,
                self._config, self._state,
            )  # fmt: skip
            if reason == kernels.DUPLICATE_SYMBOL:
                compact_cells(self._words, self._symbols, self._state)
                self._list_pairs(lower_threshold=False)
            elif reason != kernels.PAUSED:
                self._grow(reason)
                continue
            return int(fewer)

    @property
    def size(self) -> int:
        """How many symbols there are."""
        return int(self._state[kernels.SYMBOLS])

    @property
    def added(self) -> list[bytes]:
        """The strings of the symbols that merges have added."""
        return self._strings(range(self._first, self.size))

    def _grow(self, reason: int) -> None:
        match reason:
            case kernels.SYMBOLS_FULL:
                self._grow_symbols()
            case kernels.PAIRS_FULL:
                self._grow_pairs()
            case _:
                self._grow_occurrences()

    def _list_pairs(self, lower_threshold: bool) -> bool:
        """Counts all pairs and lists those above the threshold; returns whether there are any."""
        self._pairs, self._queue = _allocate_pairs(0, 0)  # frees memory for the counts
        words, symbols, state = self._words, self._symbols, self._state
        counted = count_pairs(words, symbols, self._config.max_piece_length, state)
        if counted.largest < 0:
            self._refuse(~counted.largest)
        if lower_threshold:
            if counted.largest < self._min_count:
                return False
            most = _PAIRS_FACTOR * (self._most_merges - int(state[kernels.MERGES]))
            threshold = max(
                self._min_count,
                counted.largest // _THRESHOLD_DIVISOR,
                min(counted.threshold(most), counted.largest),
            )
            self._config = self._config._replace(threshold=threshold)
        self._pairs, self._queue = _allocate_pairs(
            _FIRST_PAIRS + 2 * counted.number(self._config.threshold),
            _occurrence_room(counted.occurrences, int(state[kernels.CELLS])),
        )
        state[[kernels.PAIRS, kernels.OCCURRENCES, kernels.QUEUED]] = 0
        counted.list_into(self._pairs, self._config)
        longest = (self._pairs.ends - self._pairs.starts).max()
        self._neighbors = self._neighbors._replace(around=np.empty((longest, 2), words.cells.dtype))
        kernels.queue_pairs(words, symbols, self._pairs, self._queue, self._config, state)
        return True

    def _refuse(self, overflowing: int) -> NoReturn:
        pair = self._strings(divmod(overflowing, 1 << 32))
        left, right = (_spelled(string, self._rules) for string in pair)
        raise OverflowError(
            f'the pair {left!r} {right!r} occurs more than 2^63 - 1 times; make counts smaller'
        )

    def _grow_symbols(self) -> None:
        room = 2 * len(self._symbols.starts)
        old = self._symbols
        self._symbols = Symbols(
            _resized(old.strings, 2 * len(old.strings) + 2 * int(old.lengths.max())),
            _resized(old.starts, room),
            _resized(old.lengths, room),
            _resized(old.units, room),
            _resized(old.spans, room),
            _resized(old.prefixes, room),
            _empty_slots(room, np.int32),
        )
        kernels.add_symbols(self._symbols, self._state[kernels.SYMBOLS])
        self._neighbors = _neighbors(room, self._neighbors.around)

    def _grow_pairs(self) -> None:
        room = 2 * len(self._pairs.keys) + 2 * len(self._symbols.starts)
        old = self._pairs
        self._pairs = Pairs(
            _empty_slots(room),
            _resized(old.keys, room),
            _resized(old.counts, room),
            _resized(old.starts, room),
            _resized(old.ends, room),
            old.occurrences,
        )
        kernels.insert_pairs(self._pairs, self._state[kernels.PAIRS])
        self._queue = Queue(*(_resized(array, room) for array in self._queue))

    def _grow_occurrences(self) -> None:
        # Afterwards half as much as is used is free, or what the next merge needs.
        pairs, size = self._pairs, int(self._state[kernels.OCCURRENCES])
        longest = int((pairs.ends - pairs.starts)[: self._state[kernels.PAIRS]].max())
        room = size + max(size // 2, 2 * longest, _FIRST_OCCURRENCES)
        if room > len(pairs.occurrences):
            self._pairs = pairs._replace(occurrences=_resized(pairs.occurrences[:size], room))

    def _grow_merges(self) -> None:
        if self._state[kernels.MERGES] + _PAUSE > len(self._merges.pairs):
            room = 2 * len(self._merges.pairs)
            self._merges = Merges(*(_resized(array, room) for array in self._merges))

    def _strings(self, symbols: Iterable[int]) -> list[bytes]:
        text, starts = self._symbols.strings, self._symbols.starts
        ends = starts + self._symbols.lengths
        return [text[starts[symbol] : ends[symbol]].tobytes() for symbol in symbols]

    def store(self, learning: Learning) -> None:
        """Adds the merges and their results to what is learned."""
        merges = int(self._state[kernels.MERGES])
        learning.strings += self.added
        learning.units = self._symbols.units[: self.size].copy()
        learning.pairs = np.concatenate([learning.pairs, self._merges.pairs[:merges]])
        learning.counts = np.concatenate([learning.counts, self._merges.counts[:merges]])


def _neighbors(symbols: int, around: np.ndarray) -> Neighbors:
    return Neighbors(
        np.zeros((2, symbols, 2), np.int64), np.zeros((2, symbols + 1), np.int32), around
    )


def _allocate_pairs(room: int, occurrences: int) -> tuple[Pairs, Queue]:
    keys, counts, starts, ends = (np.zeros(room, np.int64) for _ in range(4))
    pairs = Pairs(_empty_slots(room), keys, counts, starts, ends, np.empty(occurrences, np.int32))
    queue = Queue(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32))
    return pairs, queue


def _occurrence_room(occurrences: int, cells: int) -> int:
    # Memory that is not written to is not allocated, so there is room for as many as there can be.
    return occurrences + max(cells, _FIRST_OCCURRENCES)


def _empty_slots(room: int, dtype: type = np.uint64) -> np.ndarray:
    """Returns the empty slots of a hash table that stays less than half full."""
    return np.zeros(1 << (2 * room).bit_length(), dtype)


def _resized(array: np.ndarray, room: int) -> np.ndarray:
    """Returns a larger copy of an array, filled up with zeros."""
    larger = np.zeros(room, array.dtype)
    larger[: len(array)] = array
    return larger


def _lay_out(
    words: TokenTable, learning: Learning, most_symbols: int, state: np.ndarray
) -> tuple[Words, Symbols]:
    """Returns words as cells, and their symbols."""
    lengths = np.array([len(string) for string in learning.strings], np.int32)
    size = count_cells(words)
    if size > MOST_CELLS:
        raise InputError(
            f'the distinct tokens have {size:,} symbols and borders, but merges are learned from fewer '
            'than 2^31; leave out the rarest tokens'
        )
    for dtype in _CELLS:
        inside, first_index = np.iinfo(dtype).max - 1, (np.iinfo(dtype).max + 1) // 2
        large = words.counts >= first_index
        counts = words.counts[large]
        # A number more is for what `ALIAS` stands for.
        if len(counts) <= first_index and max(most_symbols, len(lengths)) + 1 < inside:
            break
    weights = words.counts.astype(dtype)
    weights[large] = first_index + np.arange(len(counts))
    cells = np.empty((size, 2), dtype)
    state[kernels.CELLS] = _write_cells(
        words.data, words.offsets, read_only(weights), inside + 1, cells
    )
    strings = np.frombuffer(b''.join(learning.strings), np.uint8)
    room = _FIRST_SYMBOLS + 2 * len(lengths)
    symbols = Symbols(
        _resized(strings, 8 * room + 2 * len(strings) + WIDE_BYTES),
        _resized(np.cumsum(lengths, dtype=np.int64) - lengths, room),
        _resized(lengths, room),
        _resized(learning.units, room),
        np.ones(room, np.int32),
        np.zeros(room, np.uint64),
        _empty_slots(room, np.int32),
    )
    state[kernels.SYMBOLS], state[kernels.STRING_BYTES] = len(lengths), len(strings)
    state[kernels.ALIAS] = -1
    kernels.add_symbols(symbols, len(lengths))
    may_overflow = int(words.counts.max(initial=0)) * size > LARGEST_INT64
    return Words(cells, counts, inside, first_index, may_overflow), symbols


def count_cells(words: TokenTable) -> int:
    """Returns how many cells words take: one for each symbol, and borders.

    `words` are as of `FirstSymbols.words`.
    """
    return int(_count_symbols(words.data)) + len(words) + 1


@kernel_without_allocation
def _count_characters(data, offsets, counts, occur, totals):
    """Sets which characters occur (bool[2, code points]) and counts them (int64[code points]).

    Counts above 2^63 - 1 become 2^63 - 1.
    """
    for token in range(len(counts)):
        byte, end = offsets[token], offsets[token + 1]
        while byte < end:
            code, byte = next_character(data, byte)
            occur[_FINAL if byte == end else _INNER, code] = True
            total = totals[code]
            totals[code] = total + min(counts[token], LARGEST_INT64 - total)


@kernel_without_allocation
def _write_words_of_bytes(data, offsets, ids, words, word_offsets):
    """Writes tokens as words, by the symbol of each byte (int32[256])."""
    end = 0
    word_offsets[0] = end
    for token in range(len(offsets) - 1):
        for byte in range(offsets[token], offsets[token + 1]):
            end = put_varint(words, end, np.int64(ids[data[byte]]))
        word_offsets[token + 1] = end


@kernel_without_allocation
def _write_words_of_characters(data, offsets, ids, words, word_offsets):
    """Writes tokens as words, by the symbol of each character (int32[2, code points]).

    Characters without a symbol (-1) are left out.
    """
    written = 0
    word_offsets[0] = written
    for token in range(len(offsets) - 1):
        byte, end = offsets[token], offsets[token + 1]
        while byte < end:
            code, byte = next_character(data, byte)
            symbol = ids[_FINAL if byte == end else _INNER, code]
            if symbol >= 0:
                written = put_varint(words, written, np.int64(symbol))
        word_offsets[token + 1] = written


@kernel_without_allocation
def _count_symbols(data):
    symbols = 0
    for i in range(len(data)):
        symbols += data[i] < 0x80  # the last byte of a symbol's LEB128
    return symbols


@kernel_without_allocation
def _write_cells(data, offsets, weights, border, cells):
    """Writes words as cells; returns how many."""
    size = 1
    cells[0, 0] = border
    for word in range(len(offsets) - 1):
        position, end = offsets[word], offsets[word + 1]
        if position == end:
            continue
        weight = weights[word]
        while position < end:
            symbol, position = read_varint(data, position)
            cells[size, 0] = symbol
            cells[size, 1] = weight
            size += 1
        cells[size, 0] = border
        size += 1
    return size
