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

import numpy as np

from tokcore.bpe import trainer_kernels as kernels
from tokcore.bpe.options import BpeRules, Ties
from tokcore.bpe.trainer_kernels import (
    Merges,
    Neighbors,
    PairCounts,
    Pairs,
    Queue,
    Symbols,
    TrainerConfig,
    Words,
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

_FIRST_SYMBOLS = 1 << 12
_FIRST_PAIRS = 1 << 14
_FIRST_OCCURRENCES = 1 << 16
_FIRST_SLOTS = 1 << 16

_MOST_CELLS = (1 << 31) - 1

_INNER, _FINAL = 0, 1
"""Whether a character is the last of its word: the first index of arrays by code point."""


@dataclass(frozen=True)
class _LearnedMerges:
    """A learned vocabulary.

    Attributes:
        entries: by id, as files spell them (`Ġthe`, or with the end-of-word suffix): special
            tokens, then bytes or characters, then the results of merges.
        merges: (left, right) as entries, in the order in which they were learned.
        counts: int64[merges], of the pair when it was merged.
        special_tokens: without duplicates.
        characters: of the words, by code point; '' if words are bytes.
        smallest_size: the number of entries without any merge.
    """

    entries: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    counts: np.ndarray
    special_tokens: tuple[str, ...]
    characters: str
    smallest_size: int


def learn_merges(
    table: TokenTable,
    rules: BpeRules,
    on_merges: Callable[[int], None] | None = None,
    in_order: bool = False,
) -> _LearnedMerges:
    """Learns merges from distinct tokens and their counts; tokens of count 0 add characters only.

    `fast_ 4, faster_ 3, tall_ 5, taller_ 4` with ties `first` gives `ta tal tall fa fas fast er er_
    tall_ fast_`.

    Memory: some 14 bytes for each byte of the distinct tokens and of their end-of-word suffixes, and
    4 for each listed occurrence of a pair, at most 2 of them for each byte. 10 million tokens of 13
    bytes took 2.3 GiB.

    Args:
        table: distinct tokens.
        rules: which pair is merged next, and when training ends.
        on_merges: is called with the number of merges so far, many times a second.
        in_order: with ties `first`, whether words are scanned in the table's order instead of by
            count, the largest first, then by code points. Other ties do not depend on the order.

    Raises:
        OverflowError: a pair, which is named, occurs more than 2^63 - 1 times.
        InputError: the distinct tokens are 2 GiB or more.
    """
    if rules.ties == 'first' and not in_order:
        table = table.sorted()
        table = table.pick(np.argsort(-table.counts, kind='stable'))
    tokenized = _tokenize(table, rules)
    trainer = _Trainer(tokenized, rules)
    trainer.train(on_merges or (lambda merges: None))
    return trainer.learned(tokenized)


@dataclass(frozen=True)
class _TokenizedWords:
    """The words as symbols, before any merge.

    Attributes:
        words: the strings of the symbols follow the words in `words.text`.
        entries: the symbols by id, as files spell them: special tokens, then bytes or characters.
        starts: int64[n], where the string of each starts in words.text.
        lengths: int32[n], of these strings; 0 if no word can have it.
        units: int32[n], 1 for bytes and characters.
        characters: as of `_LearnedMerges`.
        total_characters: the number of characters within words, plus that at their ends.
    """

    words: Words
    entries: tuple[str, ...]
    starts: np.ndarray
    lengths: np.ndarray
    units: np.ndarray
    characters: str
    total_characters: int


class _Trainer:
    """The words, and the pairs and counts that merges update."""

    def __init__(self, tokenized: _TokenizedWords, rules: BpeRules):
        self._rules = rules
        self._words = tokenized.words
        self._min_count = max(rules.min_count, 1)
        self._state = np.zeros(5, np.int64)
        self._state[kernels.SYMBOLS] = len(tokenized.entries)
        self._symbols = _first_symbols(tokenized)
        self._neighbors = _neighbors(len(self._symbols.starts))
        self._merges = Merges(np.zeros(_PAUSE, np.int64), np.zeros(_PAUSE, np.int64))
        self._pairs, self._queue = _allocate_pairs(0, 0)
        max_merges = LARGEST_INT64 if rules.merges is None else rules.merges
        if rules.total_symbols:
            max_merges -= tokenized.total_characters
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
        state, config = self._state, self._config
        if state[kernels.SYMBOLS] >= config.max_symbols or config.max_merges <= 0:
            return
        has_pairs = self._count_and_list_pairs(lower_threshold=True)
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
                case kernels.EXHAUSTED:
                    has_pairs = self._count_and_list_pairs(lower_threshold=True)
                case kernels.DUPLICATE_SYMBOL:
                    has_pairs = self._count_and_list_pairs(lower_threshold=False)
                case kernels.SYMBOLS_FULL:
                    self._grow_symbols()
                case kernels.PAIRS_FULL:
                    self._grow_pairs()
                case kernels.OCCURRENCES_FULL:
                    self._grow_occurrences()
                case _:
                    self._grow_merges()
                    on_merges(int(state[kernels.MERGES]))
        on_merges(int(state[kernels.MERGES]))

    def _count_and_list_pairs(self, lower_threshold: bool) -> bool:
        """Counts all pairs and lists those above the threshold; returns whether any may be left."""
        if lower_threshold and self._config.threshold <= self._min_count:
            return False
        self._pairs, self._queue = _allocate_pairs(0, 0)  # frees memory for the counts
        table = self._count_pairs()
        if lower_threshold:
            largest = int(table.counts.max())
            if largest < self._min_count:
                return False
            threshold = max(self._min_count, largest // _THRESHOLD_DIVISOR)
            self._config = self._config._replace(threshold=threshold)
        slots = np.flatnonzero(table.counts >= self._config.threshold)
        ends = np.cumsum(table.occurrences[slots])
        starts = ends - table.occurrences[slots]
        size, occurrences = len(slots), int(ends[-1]) if len(ends) else 0
        self._pairs, self._queue = _allocate_pairs(
            _FIRST_PAIRS + 2 * size, _occurrence_room(occurrences, len(self._words.cells))
        )
        self._pairs.keys[:size] = table.keys[slots]
        self._pairs.counts[:size] = table.counts[slots]
        self._pairs.starts[:size] = starts
        self._pairs.ends[:size] = starts
        del table
        self._state[[kernels.PAIRS, kernels.OCCURRENCES, kernels.QUEUED]] = size, occurrences, 0
        kernels.list_pairs(
            self._words, self._symbols, self._pairs, self._queue, self._config, self._state
        )
        return True

    def _count_pairs(self) -> PairCounts:
        table, overflowing = kernels.count_pairs(
            self._words, self._symbols, self._config.max_piece_length, _FIRST_SLOTS
        )
        if overflowing != kernels.NO_PAIR:
            left, right = self._strings(divmod(overflowing, 1 << 32))
            raise OverflowError(
                f'the pair {left!r} {right!r} occurs more than 2^63 - 1 times; make counts smaller'
            )
        return table

    def _grow_symbols(self) -> None:
        room = 2 * len(self._symbols.starts)
        old = self._symbols
        self._symbols = Symbols(
            _resized(old.starts, room),
            _resized(old.lengths, room),
            _resized(old.units, room),
            _resized(old.prefixes, room),
            _empty_slots(room),
        )
        kernels.add_symbols(self._words.text, self._symbols, self._state[kernels.SYMBOLS])
        self._neighbors = _neighbors(room)

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

    def _strings(self, symbols: Iterable[int]) -> list[str]:
        text, starts, lengths = self._words.text, self._symbols.starts, self._symbols.lengths
        strings = (
            text[starts[symbol] : starts[symbol] + lengths[symbol]].tobytes() for symbol in symbols
        )
        return [
            spelled(string) if self._rules.byte_level else string.decode() for string in strings
        ]

    def learned(self, tokenized: _TokenizedWords) -> _LearnedMerges:
        """Returns what was learned."""
        first, symbols = len(tokenized.entries), int(self._state[kernels.SYMBOLS])
        entries = (*tokenized.entries, *self._strings(range(first, symbols)))
        size = int(self._state[kernels.MERGES])
        pairs = (divmod(pair, 1 << 32) for pair in self._merges.pairs[:size].tolist())
        merges = tuple((entries[left], entries[right]) for left, right in pairs)
        return _LearnedMerges(
            entries,
            merges,
            self._merges.counts[:size].copy(),
            tuple(dict.fromkeys(self._rules.special_tokens)),
            tokenized.characters,
            first,
        )


def _first_symbols(tokenized: _TokenizedWords) -> Symbols:
    size = len(tokenized.entries)
    room = _FIRST_SYMBOLS + 2 * size
    symbols = Symbols(
        _resized(tokenized.starts, room),
        _resized(tokenized.lengths, room),
        _resized(tokenized.units, room),
        np.zeros(room, np.uint64),
        _empty_slots(room),
    )
    kernels.add_symbols(tokenized.words.text, symbols, size)
    return symbols


def _neighbors(symbols: int) -> Neighbors:
    shape = (2, symbols)
    return Neighbors(
        np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int32)
    )


def _allocate_pairs(room: int, occurrences: int) -> tuple[Pairs, Queue]:
    keys, counts, starts, ends = (np.zeros(room, np.int64) for _ in range(4))
    pairs = Pairs(_empty_slots(room), keys, counts, starts, ends, np.empty(occurrences, np.int32))
    queue = Queue(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32))
    return pairs, queue


def _occurrence_room(occurrences: int, cells: int) -> int:
    # Memory that is not written to is not allocated, so there is room for as many as there can be.
    return occurrences + max(cells, _FIRST_OCCURRENCES)


def _empty_slots(room: int) -> np.ndarray:
    """Returns the empty slots of a hash table that stays less than half full."""
    return np.zeros(1 << (2 * room).bit_length(), np.int32)


def _resized(array: np.ndarray, room: int) -> np.ndarray:
    """Returns a larger copy of an array, filled up with zeros."""
    larger = np.zeros(room, array.dtype)
    larger[: len(array)] = array
    return larger


def _tokenize(table: TokenTable, rules: BpeRules) -> _TokenizedWords:
    """Returns the tokens of a table as words, in its order, without empty ones."""
    data, offsets = read_only(table.data), read_only(table.offsets)
    counts = read_only(np.ascontiguousarray(table.counts))
    tokenize = _tokenize_as_bytes if rules.byte_level else _tokenize_as_characters
    return tokenize(data, offsets, counts, rules)


def _tokenize_as_bytes(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rules: BpeRules
) -> _TokenizedWords:
    if rules.end_of_word:
        raise ValueError('words of bytes have no end of word')
    entries = tuple(dict.fromkeys((*rules.special_tokens, *ALPHABET)))
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    symbols = np.array([ids[BYTE_TO_CHARACTER[byte]] for byte in range(256)], np.int32)
    # A special token with another character spells no bytes, so no word can have it.
    strings = [
        token_bytes(entry) if CHARACTER_TO_BYTE.keys() >= {*entry} else b'' for entry in entries
    ]
    text, cells, starts, lengths = _allocate(len(data) + len(counts) + 1, strings)
    size = _write_bytes(data, offsets, read_only(symbols), text, cells)
    units = np.zeros(len(entries), np.int32)
    units[symbols] = 1
    words = Words(text, cells[:size], counts)
    return _TokenizedWords(words, entries, starts, lengths, units, '', 256)


def _tokenize_as_characters(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, rules: BpeRules
) -> _TokenizedWords:
    occur = np.zeros((2, CODE_POINTS), np.bool_)
    totals = np.zeros(CODE_POINTS, np.int64)
    _count_characters(data, offsets, counts, occur, totals)
    alphabet = _limited_alphabet(np.flatnonzero(occur.any(0)), totals, rules)
    suffix = rules.end_of_word
    inner = [chr(code) for code in alphabet]
    final = [chr(code) + suffix for code in alphabet if occur[_FINAL, code]]
    entries = tuple(dict.fromkeys((*rules.special_tokens, *inner, *final)))
    ids = {entry: id_ for id_, entry in enumerate(entries)}
    symbols = np.full((2, CODE_POINTS), -1, np.int32)
    symbols[_INNER, alphabet] = [ids[character] for character in inner]
    symbols[_FINAL, alphabet] = [ids.get(character + suffix, -1) for character in inner]
    suffix_bytes = np.frombuffer(suffix.encode(), np.uint8)
    size = _cells_of_characters(data, offsets, read_only(symbols), len(suffix_bytes))
    text, cells, starts, lengths = _allocate(size, [entry.encode() for entry in entries])
    size = _write_characters(data, offsets, read_only(symbols), suffix_bytes, text, cells)
    units = np.zeros(len(entries), np.int32)
    units[symbols[:, alphabet][symbols[:, alphabet] >= 0]] = 1
    words, total = Words(text, cells[:size], counts), int(occur[:, alphabet].sum())
    return _TokenizedWords(words, entries, starts, lengths, units, ''.join(inner), total)


def _limited_alphabet(codes: np.ndarray, totals: np.ndarray, rules: BpeRules) -> np.ndarray:
    """Returns the code points that stay in words, ascending: all without `rules.limit_alphabet`."""
    if rules.limit_alphabet is None:
        return codes
    by_count = codes[np.argsort(-totals[codes], kind='stable')]
    special = [ord(token) for token in rules.special_tokens if len(token) == 1]
    return codes[np.isin(codes, [*by_count[: rules.limit_alphabet], *special])]


def _allocate(
    size: int, strings: list[bytes]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns text and cells of a size, and where in the text, after these, the strings are."""
    if size > _MOST_CELLS:
        raise InputError(
            f'the distinct tokens are {size:,} bytes, but merges are learned from fewer than 2^31; '
            'leave out the rarest tokens'
        )
    lengths = np.array([len(string) for string in strings], np.int32)
    ends = size + np.cumsum(lengths, dtype=np.int64)
    text = np.zeros(int(ends[-1] if len(ends) else size) + WIDE_BYTES, np.uint8)
    text[size : len(text) - WIDE_BYTES] = np.frombuffer(b''.join(strings), np.uint8)
    return text, np.zeros((size, 2), np.int32), ends - lengths, lengths


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
def _write_bytes(data, offsets, symbols, text, cells):
    """Writes tokens as cells, by the symbol of each byte (int32[256]); returns how many cells."""
    size = 1
    cells[0, 0] = kernels.BORDER
    for token in range(len(offsets) - 1):
        start, end = offsets[token], offsets[token + 1]
        for byte in range(start, end):
            text[size] = data[byte]
            cells[size, 0] = symbols[data[byte]]
            cells[size, 1] = token
            size += 1
        if end > start:
            cells[size, 0] = kernels.BORDER
            size += 1
    return size


@kernel_without_allocation
def _write_characters(data, offsets, symbols, suffix, text, cells):
    """Writes tokens as cells, by the symbol of each character (int32[2, code points]).

    Characters without a symbol (-1) are left out. The suffix follows the last character of a token
    unless that is left out. Returns how many cells were written.
    """
    size = 1
    cells[0, 0] = kernels.BORDER
    for token in range(len(offsets) - 1):
        byte, end = offsets[token], offsets[token + 1]
        first = size
        while byte < end:
            start = byte
            code, byte = next_character(data, byte)
            is_final = byte == end
            symbol = symbols[_FINAL if is_final else _INNER, code]
            if symbol < 0:
                continue
            begin = size
            for k in range(start, byte):
                text[size] = data[k]
                cells[size, 0] = kernels.INSIDE
                cells[size, 1] = token
                size += 1
            if is_final:
                for suffix_byte in suffix:
                    text[size] = suffix_byte
                    cells[size, 0] = kernels.INSIDE
                    cells[size, 1] = token
                    size += 1
            cells[begin, 0] = cells[size - 1, 0] = symbol
        if size > first:
            cells[size, 0] = kernels.BORDER
            size += 1
    return size


@kernel_without_allocation
def _cells_of_characters(data, offsets, symbols, suffix_length):
    """Returns how many cells `_write_characters` writes."""
    size = 1
    for token in range(len(offsets) - 1):
        byte, end = offsets[token], offsets[token + 1]
        first = size
        while byte < end:
            start = byte
            code, byte = next_character(data, byte)
            is_final = byte == end
            if symbols[_FINAL if is_final else _INNER, code] >= 0:
                size += byte - start
                if is_final:
                    size += suffix_length
        if size > first:
            size += 1
    return size
