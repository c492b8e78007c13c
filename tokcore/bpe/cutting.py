"""Merges of more words than the trainer can hold, learned in rounds from pieces of the words.

A boundary whose pair of symbols is rare now will not be merged while frequent pairs are left: every
pair that may stand there later is over this boundary too, so it is at most as frequent. A round

    counts the pairs of all words                   l o w e r 2, l o w 5:  l o 7, o w 7, w e 2, e r 2
    chooses a threshold below the largest count     4
    cuts the words at all pairs that are rarer      l o w | e | r,  l o w
    adds up equal fragments of two symbols or more  l o w 7
    learns from these while counts reach it         lo 7, low 7
    makes the merges in all words                   low e r 2, low 5

and the next round has a lower threshold. Merges, counts and ids are those of `trainer.learn_merges`,
whatever the thresholds; `docs/design/bpe-by-cutting.md` has the proof. It needs that equal strings
begin as equal symbols, which the suffix of an end of word may break: see `ambiguous_word`.

Words and fragments are rows of symbols, as `FirstSymbols.words` writes them; counts of pairs are a
token table too, whose tokens are the 8 bytes of `left << 32 | right`, the lowest first.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokcore.bpe.model import merge_work
from tokcore.bpe.model_kernels import SHORT, merge_long, merge_short
from tokcore.bpe.options import MOST_CELLS, BpeRules
from tokcore.bpe.trainer import LearnedMerges, Learning, count_cells, first_symbols
from tokcore.bpe.trainer_kernels import may_join
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.kernels.bytes import pick_ranges, put_varint, read_varint, varint_size
from tokcore.kernels.hash_tables import NO_PAIR, PairTable, find_pair, pair_table
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.options import LARGEST_INT64

_THRESHOLD_DIVISOR = 8
"""The threshold is the largest count divided by this. On 127 MB of English, 32,000 merges took 15
rounds of at most 3 % of all symbols with 2, 5 of 9 % with 8, and 3 of 21 % with 32."""

_LEAST_CELLS = 1 << 20
"""Of fragments to learn from at once, 20 MB in memory: with fewer there are many rounds."""

_PAIRS_AT_ONCE = 1 << 18
"""Pairs or fragments between calls of a kernel: some MB of memory."""

MORE_FRAGMENTS = 4
"""Times `most_cells` that fragments may take while they are collected: they are packed, and a byte of
them takes a quarter of what it takes in the trainer."""

_PAIR = np.dtype('<i8')

_0, _1 = np.uint64(0), np.uint64(1)


@dataclass(frozen=True)
class Round:
    """What a round did."""

    largest_count: int  # of a pair, when it began
    threshold: int  # fragments were cut where pairs are rarer, and merges made down to it
    pairs: int  # distinct ones
    fragments: int  # distinct ones
    cells: int  # the memory that the trainer needed for the fragments, in symbols and borders
    merges: int  # that it made


class Words(Protocol):
    """The words to learn from, wherever they are."""

    def merge_and_count(self, learning: Learning) -> tuple[int, int]:
        """Makes the merges so far in all words, and counts the pairs that may then be merged.

        Returns how many distinct pairs there are, and the largest count, or 0.
        """

    def cut(self, threshold: int, most_cells: int) -> tuple[TokenTable, int]:
        """Cuts the words at all pairs that were counted less often than the threshold.

        Fragments that take more than `most_cells` cells are cut again at a higher threshold.
        Returns the fragments, and the threshold that they were cut at.
        """


@dataclass(frozen=True)
class NewMerges:
    """Merges to be made in words."""

    pairs: np.ndarray  # int64[merges], left << 32 | right, in order
    products: np.ndarray  # int64[merges], the symbol that replaces each
    units: np.ndarray  # int64[symbols], of `Learning`
    max_piece_length: int | None  # of `BpeRules`

    @classmethod
    def since(cls, applied: int, learning: Learning) -> 'NewMerges':
        """Returns all merges so far but the first `applied`."""
        pairs = learning.pairs[applied:]
        products = learning.products(pairs)
        return cls(pairs, products, learning.units, learning.rules.max_piece_length)


def learn_by_cutting(
    tables: Callable[[], Iterable[TokenTable]],
    rules: BpeRules,
    most_cells: int,
    folder: str | os.PathLike[str] | None = None,
    on_merges: Callable[[int], None] | None = None,
    on_round: Callable[[Round], None] | None = None,
    begun: Learning | None = None,
) -> LearnedMerges:
    """Learns what `trainer.learn_merges` learns from the sum of tables, in less memory.

    Memory: the trainer's for `most_cells` symbols of fragments, the counts of all distinct pairs, one
    table, and all words unless there is a folder for them.

    Args:
        tables: returns the tables, and is called twice; a token may be in several of them.
        rules: which pair is merged next, and when training ends.
        most_cells: of fragments that are learned from at once: their symbols, and one for each. Only
            if the most frequent pairs alone have more, there are more.
        folder: an empty folder for files of words; None: they stay in memory.
        on_merges: is called with the number of merges so far, many times a second.
        on_round: is called after each round.
        begun: the merges to continue from, with the symbols of all words; None: there are none.

    Raises:
        InputError: the rules or a token, which is named, do not allow cutting.
        OverflowError: a pair occurs more than 2^63 - 1 times.
    """
    reason = reason_against_cutting(rules)
    if reason is not None:
        raise InputError(f'merges cannot be learned in rounds: {reason}')
    learning = begun or Learning(first_symbols(_unambiguous(tables(), rules), rules), rules)
    words = LocalWords((learning.first.words(table) for table in tables()), folder)
    learn_in_rounds(words, learning, most_cells, on_merges, on_round)
    return learning.learned()


def learn_in_rounds(
    words: Words,
    learning: Learning,
    most_cells: int,
    on_merges: Callable[[int], None] | None = None,
    on_round: Callable[[Round], None] | None = None,
    choose_threshold: Callable[[int, int], int] | None = None,
) -> None:
    """Makes all merges of words.

    Args:
        words: no merge is made in them yet.
        learning: the merges so far, which are made in the words first; gets the others.
        most_cells: see `learn_by_cutting`.
        on_merges: is called with the number of merges so far, many times a second.
        on_round: is called after each round.
        choose_threshold: returns the threshold of a round, given the largest count of a pair and the
            least count that is merged; it changes how much work a round is, never the result.
    """
    choose = choose_threshold or _default_threshold
    while not learning.is_complete:
        made = len(learning.pairs)
        distinct, largest = words.merge_and_count(learning)
        if largest < learning.min_count:
            break
        chosen = choose(largest, learning.min_count)
        fragments, threshold = words.cut(chosen, min(most_cells, MOST_CELLS))
        learning.merge_words(fragments, threshold, on_merges)
        if on_round is not None:
            merges, cells = len(learning.pairs) - made, count_cells(fragments)
            on_round(Round(largest, threshold, distinct, len(fragments), cells, merges))


def _default_threshold(largest: int, min_count: int) -> int:
    return max(min_count, -(-largest // _THRESHOLD_DIVISOR))


def cells_within(memory_bytes: int, bytes_per_cell: int) -> int:
    """Returns how many cells of fragments to learn from at once, to keep within some memory.

    Half of the memory is for them; the other half is for counts of pairs, and for fragments while
    they are collected.
    """
    return max(memory_bytes // 2 // bytes_per_cell, _LEAST_CELLS)


def reason_against_cutting(rules: BpeRules) -> str | None:
    """Returns why rules need all words in memory at once, or None if they do not."""
    if rules.ties == 'first':
        return 'the first of equally frequent pairs is merged, and fragments have no order'
    if rules.end_of_word and rules.limit_alphabet is not None:
        return (
            f'characters that --limit-alphabet leaves out could put {rules.end_of_word!r} inside '
            'words; leave it out'
        )
    return None


def ambiguous_word(table: TokenTable, rules: BpeRules) -> str | None:
    """Returns a token that has the end-of-word suffix before its own end, or None.

    In `a</w>b` the last four characters of `a</w>` are symbols; in the word `a` they are part of one.
    So the string has two histories, counts of pairs may rise, and a cut may lose a merge.
    """
    suffix = rules.end_of_word
    if not suffix or not len(table):
        return None
    buffers = [None, pa.py_buffer(table.offsets), pa.py_buffer(table.data)]
    tokens = pa.LargeStringArray.from_buffers(len(table), *buffers[1:])
    begun, nothing = (pa.scalar(part, pa.large_string()) for part in (suffix[:-1], ''))
    joined = pc.binary_join_element_wise(tokens, begun, nothing)
    index = pc.index(pc.match_substring(joined, suffix), True).as_py()
    return None if index < 0 else tokens[index].as_py()


def refuse_ambiguous(word: str | None, rules: BpeRules) -> None:
    """Raises InputError, naming it, for what `ambiguous_word` found."""
    if word is not None:
        raise InputError(
            f'merges cannot be learned in rounds: the token {word[:100]!r} has '
            f'{rules.end_of_word!r} inside, where it is not the end of a word; take such tokens '
            'out, or give --learner memory'
        )


def _unambiguous(tables: Iterable[TokenTable], rules: BpeRules) -> Iterator[TokenTable]:
    """Yields tables, if none has an ambiguous word."""
    for table in tables:
        refuse_ambiguous(ambiguous_word(table, rules), rules)
        yield table


class LocalWords:
    """Words on this machine, in memory or in files of a folder, one for each table."""

    def __init__(self, tables: Iterable[TokenTable], folder: str | os.PathLike[str] | None = None):
        self._folder = None if folder is None else Path(folder)
        self._tables = [self._stored(index, table) for index, table in enumerate(tables)]
        self._applied = 0
        self._pairs = TokenTable.from_items(())

    def merge_and_count(self, learning: Learning) -> tuple[int, int]:
        """As of `Words`."""
        merges = NewMerges.since(self._applied, learning)
        self._applied = len(learning.pairs)
        sums = TokenAccumulator()
        for index, table in enumerate(self._read()):
            merged = merge_words(table, merges)
            add_pair_counts(merged, merges, sums)
            self._tables[index] = self._stored(index, merged)
        pairs = self._pairs = TokenTable(*sums.finish())
        return len(pairs), int(pairs.counts.max(initial=0))

    def cut(self, threshold: int, most_cells: int) -> tuple[TokenTable, int]:
        """As of `Words`."""
        frequent = frequent_pairs(self._pairs, threshold)
        largest = int(frequent.counts.max())
        sums = TokenAccumulator()
        for table in self._read():
            add_fragments(table, frequent, sums)
            fragments = TokenTable(*sums.finish())
            while count_cells(fragments) > MORE_FRAGMENTS * most_cells and threshold < largest:
                threshold = min(2 * threshold, largest)
                frequent = frequent_pairs(frequent, threshold)
                fragments = cut_again(fragments, frequent)
                sums = TokenAccumulator()
                sums.add_tokens(fragments.data, fragments.offsets, fragments.counts)
        return cut_to_limit(fragments, frequent, threshold, most_cells)

    def _read(self) -> Iterator[TokenTable]:
        for table in self._tables:
            yield TokenTable.from_bytes(table.read_bytes()) if isinstance(table, Path) else table

    def _stored(self, index: int, table: TokenTable) -> TokenTable | Path:
        if self._folder is None:
            return table
        path = self._folder / f'words-{index:05d}'
        path.write_bytes(table.to_bytes())
        return path


def cut_to_limit(
    fragments: TokenTable, frequent: TokenTable, threshold: int, most_cells: int
) -> tuple[TokenTable, int]:
    """Cuts fragments again until they take at most `most_cells`; returns them and their threshold.

    That is the least such threshold, which takes a search: fragments grow in leaps where the threshold
    passes the pairs of frequent letters, so that twice the threshold could leave a hundredth of them.

    Args:
        fragments: cut at the pairs that are rarer than the threshold.
        frequent: the pairs at which they were not cut.
        threshold: of the fragments.
        most_cells: of the result; more only if the most frequent pairs alone take more.
    """
    if count_cells(fragments) <= most_cells:
        return fragments, threshold
    counts = np.unique(frequent.counts)
    too_low, high = 0, len(counts) - 1
    result = None
    while high - too_low > 1:
        middle = (too_low + high) // 2
        cut = cut_again(fragments, frequent_pairs(frequent, int(counts[middle])))
        if count_cells(cut) > most_cells:
            too_low, fragments = middle, cut
        else:
            high, result = middle, cut
    if result is None:
        result = cut_again(fragments, frequent_pairs(frequent, int(counts[high])))
    # No pair has a count between these two, so the least threshold cuts alike and merges more.
    return result, int(counts[max(high - 1, 0)]) + 1 if high else threshold


def cut_again(fragments: TokenTable, frequent: TokenTable) -> TokenTable:
    """Cuts fragments at all pairs but the frequent ones; returns what is left of them."""
    sums = TokenAccumulator()
    add_fragments(fragments, frequent, sums)
    return TokenTable(*sums.finish())


def merge_words(words: TokenTable, merges: NewMerges) -> TokenTable:
    """Returns words with merges made, in order, without words that are one symbol then."""
    ranks = np.arange(len(merges.pairs), dtype=np.uint64)
    pairs, products = merges.pairs.astype(np.uint64), merges.products.astype(np.uint64)
    model = _RankedMerges(_pair_table(pairs, ranks << np.uint64(32) | products), 1)
    sizes = np.diff(words.offsets)
    work = merge_work(int(sizes.max()) if len(words) else 0, 0)
    # An upper bound: memory that is not written to is not allocated.
    data = np.empty(varint_size(len(merges.units)) * len(words.data), np.uint8)
    offsets, counts = np.zeros(len(words) + 1, np.int64), np.empty(len(words), np.int64)
    size = _merge_words(words.data, words.offsets, words.counts, model, work, data, offsets, counts)
    used = int(offsets[size])
    return TokenTable(data[:used].copy(), offsets[: size + 1].copy(), counts[:size].copy())


def add_pair_counts(words: TokenTable, merges: NewMerges, sums: TokenAccumulator) -> None:
    """Adds the counts of the pairs of words that may be merged.

    Raises:
        OverflowError: a pair occurs more than 2^63 - 1 times.
    """
    longest = LARGEST_INT64 if merges.max_piece_length is None else merges.max_piece_length
    room = _room(words)
    pairs, weights = np.empty(room, _PAIR), np.empty(room, np.int64)
    offsets = 8 * np.arange(room + 1)
    arrays, units = (words.data, words.offsets, words.counts), read_only(merges.units)
    word = 0
    while word < len(words):
        word, size = _write_pairs(*arrays, word, units, longest, pairs, weights)
        try:
            sums.add_tokens(pairs[:size].view(np.uint8), offsets[: size + 1], weights[:size])
        except OverflowError as error:
            raise OverflowError(
                'a pair of symbols occurs more than 2^63 - 1 times; make counts smaller'
            ) from error


def add_fragments(words: TokenTable, frequent: TokenTable, sums: TokenAccumulator) -> None:
    """Cuts words at all pairs but the frequent ones; adds fragments of two symbols or more."""
    pairs = frequent.data.view(_PAIR)  # left << 32 | right
    table = _pair_table(pairs.astype(np.uint64), frequent.counts.astype(np.uint64))
    room = _room(words)
    starts, ends, indices = (np.empty(room, np.int64) for _ in range(3))
    word = 0
    while word < len(words):
        word, size = _cut_words(words.data, words.offsets, word, table, starts, ends, indices)
        bounds = read_only(starts[:size]), read_only(ends[:size])
        fragments, borders = pick_ranges(words.data, *bounds)
        sums.add_tokens(fragments, borders, words.counts[indices[:size]])


def frequent_pairs(counts: TokenTable, threshold: int) -> TokenTable:
    """Returns the pairs of a count at or above the threshold."""
    return counts.pick((counts.counts >= threshold).nonzero()[0])


def _room(words: TokenTable) -> int:
    """Returns room for the pairs of many words, and of any one of them."""
    longest = int(np.diff(words.offsets).max()) if len(words) else 0
    return max(_PAIRS_AT_ONCE, longest)


def _pair_table(pairs: np.ndarray, values: np.ndarray) -> PairTable:
    return pair_table(pairs >> np.uint64(32), pairs & np.uint64(0xFFFF_FFFF), values)


class _RankedMerges(NamedTuple):
    """What `merge_short` and `merge_long` read of a `MergeState`."""

    pairs: PairTable
    batched_merges: int


@kernel_without_allocation
def _merge_words(data, offsets, counts, merges, work, merged, merged_offsets, merged_counts):
    """Writes words with merges made; returns how many have two symbols or more then."""
    words = used = 0
    for word in range(len(counts)):
        count, position, end = _0, offsets[word], offsets[word + 1]
        while position < end:
            symbol, position = read_varint(data, position)
            work.ids[count] = np.int32(symbol)
            count += _1
        if count > np.uint64(SHORT):
            count, _ = merge_long(_0, count, merges, work)
        elif count > _1:
            count = merge_short(_0, count, merges, work)
        if count > _1:
            for k in range(count):
                used = put_varint(merged, used, np.int64(work.ids[k]))
            merged_counts[words] = counts[word]
            words += 1
            merged_offsets[words] = used
    return words


@kernel_without_allocation
def _write_pairs(data, offsets, counts, word, units, max_piece_length, pairs, weights):
    """Writes the pairs of words from `word` on while there is room.

    Returns (the first word that is left, how many pairs).
    """
    size = 0
    while word < len(counts) and size + offsets[word + 1] - offsets[word] <= len(pairs):
        position, end = offsets[word], offsets[word + 1]
        left = np.int64(-1)
        while position < end:
            right, position = read_varint(data, position)
            if left >= 0 and may_join(units[left], units[right], max_piece_length):
                pairs[size] = left << 32 | right
                weights[size] = counts[word]
                size += 1
            left = right
        word += 1
    return word, size


@kernel_without_allocation
def _cut_words(data, offsets, word, frequent, starts, ends, indices):
    """Writes where the fragments of words from `word` on are, while there is room.

    Returns (the first word that is left, how many fragments).
    """
    size = 0
    words = len(offsets) - 1
    while word < words and size + offsets[word + 1] - offsets[word] <= len(starts):
        position, end = offsets[word], offsets[word + 1]
        start, symbols, left = position, 0, np.int64(-1)
        while position < end:
            right, following = read_varint(data, position)
            if left >= 0 and find_pair(np.uint64(left), np.uint64(right), frequent) == NO_PAIR:
                if symbols > 1:
                    starts[size], ends[size], indices[size] = start, position, word
                    size += 1
                start, symbols = position, 0
            symbols += 1
            left, position = right, following
        if symbols > 1:
            starts[size], ends[size], indices[size] = start, end, word
            size += 1
        word += 1
    return word, size
