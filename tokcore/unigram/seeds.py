"""The first pieces: all characters, and the substrings of words that different bytes follow.

SentencePiece builds a suffix array of the whole text and takes the inner nodes of its tree. Since a piece
never goes beyond a word, the words are enough: a word is followed by a zero byte at the end of a sentence
and by the first byte of U+2581 elsewhere. Here the suffixes are sorted in partitions by their first letter,
so that memory does not grow with the text.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.kernels.bytes import pick_ranges
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.unigram.numbers import log
from tokcore.unigram.scripts import INHERITED, script_table
from tokcore.unigram.strings import (
    POSITION_BITS,
    Strings,
    entries_of,
    pick_strings,
    position_of,
    sort_strings,
    starts_of,
)
from tokcore.unigram.words import RARE, WORD_START, Alphabet, Words

_PARTITION = 1 << 19
"""Suffixes that are sorted at a time, of 18 bytes each; in a large text a part of it, since it is read once for
each partition."""

_PARTITIONS = 24

_UNUSABLE = 254
"""As a script: no piece has this letter."""

_WORD_START = 253
"""As a script: only the first letter of a piece is this one, and any script may follow."""

_AFTER_WORD = 0xE2  # the first byte of U+2581

_f32, _f64 = np.float32, np.float64


class Candidates(NamedTuple):
    """Strings that may become pieces, those of equal length in ascending order."""

    positions: np.ndarray  # uint32: in the letters of the words
    lengths: np.ndarray  # int16
    byte_lengths: np.ndarray  # int16
    counts: np.ndarray  # int64

    def scores(self) -> np.ndarray:
        return self.counts.astype(_f32) * self.lengths.astype(_f32)

    def best(self, most: int) -> 'Candidates':
        """Returns the candidates of the `most` largest scores, and those of equal score."""
        if len(self.counts) <= most:
            return self
        scores = self.scores()
        is_best = scores >= np.partition(scores, -most)[-most]
        return Candidates(*(column[is_best] for column in self))


class Letters(NamedTuple):
    """What is known about each letter."""

    scripts: np.ndarray  # uint8
    sizes: np.ndarray  # uint8: bytes in UTF-8
    leads: np.ndarray  # uint8: the first of these


class Pieces(NamedTuple):
    """The pieces so far; their order decides about sums, and the first one about unknown characters."""

    letters: np.ndarray  # uint8: as varints, with a 0 behind each piece
    scores: np.ndarray  # float32[pieces]

    @property
    def unknown_score(self) -> np.float32:
        """The score of a character that is no piece."""
        return _f32(self.scores.min() - _f32(10))

    def pick(self, indices: np.ndarray, scores: np.ndarray) -> 'Pieces':
        """Returns some of the pieces with these scores."""
        starts = starts_of(self.letters).astype(np.uint32)
        letters, _ = pick_ranges(self.letters, starts[indices], starts[indices + 1])
        return Pieces(read_only(letters), scores)


def seed_pieces(
    words: Words, code_points: np.ndarray, most: int, longest: int, max_workers: int
) -> Pieces:
    """Returns the characters by count, and then at most `most` candidates by count times length."""
    letters = letters_of_alphabet(code_points)
    totals, firsts = np.zeros((2, len(code_points)), np.int64)
    _count_letters(words.letters, words.counts, letters, totals, firsts)

    def find(bounds: tuple[int, int]) -> Candidates:
        entries = np.empty(int(firsts[slice(*bounds)].sum()), np.int64)
        _list_suffixes(words.letters, letters, *bounds, entries)
        return find_candidates(words, letters, longest, entries).best(most)

    size = max(_PARTITION, int(firsts.sum()) // _PARTITIONS)
    best: list[Candidates] = []
    with ThreadPoolExecutor(max_workers) as pool:
        for found in pool.map(find, partitions(firsts, size)):
            best.append(found)
            if sum(len(each.counts) for each in best) > most + most // 4:
                best = [_concatenate(best).best(most)]
    best = [_concatenate(best)]
    return choose_pieces(words.letters, code_points, totals, best.pop(), most)


def choose_pieces(
    text: np.ndarray, code_points: np.ndarray, totals: np.ndarray, candidates: Candidates, most: int
) -> Pieces:
    """Returns the characters by their totals, and then the best candidates, which are in a text."""
    singles = np.flatnonzero(np.where(code_points == ord(RARE), 0, totals))
    singles = singles[np.argsort(-totals[singles], kind='stable')]
    scores = candidates.scores()
    order = np.lexsort((-candidates.byte_lengths, -scores))[:most]
    sizes = candidates.lengths[order] + 1
    picked = pick_strings(text, candidates.positions[order], sizes)
    letters = np.concatenate([np.ravel([singles, 0 * singles], 'F').astype(text.dtype), picked])
    values = np.append(totals[singles].astype(_f32), scores[order])
    _take_logs(values, values.sum(dtype=_f64))
    return Pieces(Strings.of(letters, starts_of(letters)[:-1], values).letters, values)


@kernel_without_allocation
def _take_logs(values, total):
    """Replaces values by the logarithms of their parts of the total."""
    log_total = log(total)
    for i in range(len(values)):
        values[i] = _f32(log(_f64(values[i])) - log_total)


def letters_of_alphabet(alphabet: np.ndarray) -> Letters:
    """Returns what is known about the letters of code points."""
    scripts = script_table()[alphabet]
    for character in ('\0', ' ', RARE):
        scripts[alphabet == ord(character)] = _UNUSABLE
    scripts[alphabet == ord(WORD_START)] = _WORD_START
    encoded = [chr(code_point).encode() for code_point in alphabet.tolist()]
    sizes = np.array([*map(len, encoded)], np.uint8)
    leads = np.array([character[0] for character in encoded], np.uint8)
    return Letters(read_only(scripts), read_only(sizes), read_only(leads))


def partitions(firsts: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yields ranges of first letters with up to so many suffixes, or a single letter."""
    low, size = 0, 0
    for letter, count in enumerate(firsts.tolist()):
        if size and size + count > most:
            yield low, letter
            low, size = letter, 0
        size += count
    yield low, len(firsts)


def find_among(
    tables: Iterable[TokenTable], alphabet: Alphabet, longest: int, low: int, high: int, most: int
) -> tuple[np.ndarray, Candidates]:
    """Returns the best candidates that begin with letters from `low` to before `high`, in letters.

    A word may be in several tables. Of their suffixes there is what decides about candidates: one letter
    more than the longest has.
    """
    letters, parts = letters_of_alphabet(alphabet.code_points), []
    for words in map(alphabet.words_of, tables):
        entries = np.empty(len(words.letters), np.int64)
        entries = entries[: _list_suffixes(words.letters, letters, low, high, entries)]
        positions, of_word = entries & (1 << POSITION_BITS) - 1, entries >> POSITION_BITS
        sizes = np.minimum(starts_of(words.letters)[of_word + 1] - positions, longest + 2)
        cut = pick_strings(words.letters, positions, sizes)
        parts.append((cut, words.counts[of_word], words.are_last[of_word]))
    text, counts, are_last = (read_only(np.concatenate(column)) for column in zip(*parts))
    suffixes, entries = Words(text, counts, are_last, words.last), entries_of(text)
    return text, find_candidates(suffixes, letters, longest, entries).best(most)


def find_candidates(
    words: Words, letters: Letters, longest: int, entries: np.ndarray
) -> Candidates:
    """Returns the candidates among the beginnings of suffixes, all that begin with some letters."""
    size = len(entries)
    common = np.zeros(size, np.uint16)
    sort_strings(words.letters, len(letters.scripts), longest + 1, entries, common)
    types = (np.uint32, np.int16, np.int16, np.int64)
    found = Candidates._make(np.empty(2 * size, dtype) for dtype in types)
    used = _walk_suffixes(words, letters, longest, entries, common, found)
    return Candidates(*(column[:used].copy() for column in found))


def _concatenate(parts: list[Candidates]) -> Candidates:
    return Candidates(*map(np.concatenate, zip(*parts)))


@kernel_without_allocation
def _count_letters(text, counts, letters, totals, firsts):
    """Counts the occurrences of letters, and the suffixes that begin with each and can be pieces."""
    word = 0
    for position in range(len(text)):
        letter = np.int64(text[position])
        if letter == 0:
            word += 1
        else:
            totals[letter] += counts[word]
            firsts[letter] += _is_piece(text, position, 2, letters.scripts)


@kernel_without_allocation
def _list_suffixes(text, letters, low, high, entries):
    """Lists the suffixes that begin with letters from `low` to before `high`; returns how many."""
    size = word = 0
    for position in range(len(text)):
        letter = np.int64(text[position])
        if letter == 0:
            word += 1
        elif low <= letter < high and _is_piece(text, position, 2, letters.scripts):
            entries[size] = word << POSITION_BITS | position
            size += 1
    return size


@kernel_without_allocation
def _is_piece(text, position, length, scripts):
    """Whether these letters may be a piece: of one script, and `_WORD_START` only as the first one."""
    previous = np.uint8(0)
    for k in range(length):
        script = scripts[text[position + k]]
        if script == _WORD_START and k == 0:
            continue
        if script == INHERITED:
            script = previous
        if script >= _WORD_START or (script != 0 and previous != 0 and script != previous):
            return False
        previous = script
    return True


@kernel
def _walk_suffixes(words, letters, longest, entries, common, found):
    """Lists the inner nodes of the tree of sorted suffixes, and the strings that all end words.

    On the stack are the nodes from the root to the last suffix, which is a node too. Returns how many
    candidates there are.

    After the last sentence there is nothing, so that the rests of its last word are followed by a zero byte
    and nothing or U+2581: they are nodes again, with the zero byte, and count twice.
    """
    text = words.letters
    # By node: its depth, a position, the sums before it, the sums of sentences that end here.
    nodes = np.zeros((6, longest + 3), np.int64)
    depths, positions, befores, ended = nodes[0], nodes[1], nodes[2], nodes[3]
    leads = nodes[4:]  # the least and the largest byte after it
    total, top, used = np.int64(0), 0, 0
    for i in range(len(entries) + 1):
        depth = min(np.int64(common[i]), longest + 1) if i < len(entries) else 0
        while depths[top] > depth:
            size = depths[top]
            count = total - befores[top] if leads[0, top] < leads[1, top] else 0
            if ended[top] > 1 and _is_rest(text, positions[top], size, words.last):
                count += ended[top]
            if count > 1 and 1 < size <= longest:
                if _is_piece(text, positions[top], size, letters.scripts):
                    found.positions[used], found.lengths[used] = positions[top], size
                    found.counts[used], found.byte_lengths[used] = count, 0
                    for k in range(size):
                        found.byte_lengths[used] += letters.sizes[text[positions[top] + k]]
                    used += 1
            if depths[top - 1] >= depth:
                top -= 1
                continue
            # The node becomes the first child of a new one.
            depths[top], ended[top] = depth, 0
            leads[:, top] = letters.leads[text[positions[top] + depth]]
        if i == len(entries):
            break
        position, word = position_of(entries[i]), entries[i] >> POSITION_BITS
        end = depth
        while end <= longest and text[position + end] != 0:
            end += 1
        if end > depth:
            _add_lead(leads, top, letters.leads[text[position + depth]])
            top += 1
            depths[top], positions[top], befores[top], ended[top] = end, position, total, 0
            leads[0, top], leads[1, top] = 0xFF, 0
        if end <= longest and words.counts[word] > 0:
            if words.are_last[word]:
                ended[top] += words.counts[word]
            _add_lead(leads, top, 0 if words.are_last[word] else _AFTER_WORD)
        total += words.counts[word]
    return used


@kernel_without_allocation
def _add_lead(leads, node, lead):
    leads[0, node] = min(leads[0, node], lead)
    leads[1, node] = max(leads[1, node], lead)


@kernel_without_allocation
def _is_rest(text, position, size, last):
    """Whether the last word of all ends with a string."""
    for k in range(size):
        if size > len(last) or text[position + k] != last[len(last) - size + k]:
            return False
    return True
