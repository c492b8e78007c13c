"""Where a row can be cut without another id: between two characters that no piece has side by side.

Without a pre-tokenizer a whole row is one token, which no cache holds. But a piece, or the result of a
merge, that reaches across a place has the two characters beside it, and most pairs of characters are
in no piece: a letter and a mark (U+2581), a letter and a comma, most ideographs. So a row is cut
between these, and what lies between two cuts is looked up as a word is. Pairs are bits of a table by
their hash; a pair with the hash of another only leaves a place uncut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import CHUNK, byte_range_mask, put_places, trailing_zeros
from tokcore.text.character_pairs import (
    BITS_PER_PAIR,
    MOST_BITS,
    CharacterPairs,
    add_characters,
    bits_for,
    character_bytes,
    has_characters,
    no_pairs,
)
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, TextRows, scan_tokens, slice_parts
from tokcore.text.unicode import CODE_POINTS, decode_word

_CODE_BITS = 21
_CODE = (1 << _CODE_BITS) - 1
_0, _1, _2, _3 = (np.uint64(number) for number in range(4))
_SMALL_A, _SMALL_Z = np.uint64(0x61), np.uint64(0x7A)
_MARK = np.uint64(int.from_bytes('▁'.encode(), 'little'))
_MOST_LETTER_PAIRS = 500
"""Of 676: with so many in pieces, rows are not cut between any small letters of ASCII."""


class Borders(NamedTuple):
    """The pairs of characters that rows are not cut between; arrays are read-only."""

    pairs: np.ndarray  # uint64[...]: `CharacterPairs.bits`; none if rows are cut nowhere
    shift: np.uint64  # of `CharacterPairs`
    known: np.ndarray
    """bool[0x110000]: rows are not cut between two characters that are not known; bool[0]: they are."""
    joins_letters: bool
    """Whether all pairs of small letters of ASCII are there, and of U+2581 and such a letter."""

    cuts_before_marks: bool  # whether no pair has U+2581 as its second character


NO_BORDERS = Borders(
    read_only(np.empty(0, np.uint64)), np.uint64(0), read_only(np.empty(0, np.bool_)), False, False
)
"""Rows are cut nowhere."""


def borders_of_pieces(
    pieces: Collection[str], known: Collection[str] = (), bits_per_pair: int = BITS_PER_PAIR
) -> Borders:
    """Returns the borders that none of the pieces reaches across.

    Args:
        pieces: strings.
        known: the known characters; none if all are.
        bits_per_pair: bits of memory for each pair, at least; with more of them fewer borders are missed.
    """
    data = [piece.encode('utf-8', 'surrogatepass') for piece in pieces]
    offsets = row_offsets([len(piece) for piece in data])
    text = with_margin(np.frombuffer(b''.join(data), np.uint8))
    bounds = read_only(offsets.astype(np.uint64))
    _, size = _pairs_of(read_only(text), bounds, MOST_BITS)
    pairs, _ = _pairs_of(read_only(text), bounds, bits_for(size, bits_per_pair))
    is_known = np.zeros(CODE_POINTS if known else 0, np.bool_)
    is_known[[*map(ord, known)]] = True
    joins_letters = bool(_joined_letters(pairs) >= _MOST_LETTER_PAIRS)
    if joins_letters:
        _add_letters(pairs)  # the few others leave places uncut, and are rare
    cuts_before_marks = (not known or '▁' in known) and not any(
        '▁' in piece[1:] for piece in pieces
    )
    return Borders(
        read_only(pairs.bits), pairs.shift, read_only(is_known), joins_letters, cuts_before_marks
    )


def borders_of_merges(vocabulary: BpeVocabulary) -> Borders:
    """Returns the borders that no merge of characters reaches across; none where one could.

    A merge of what stands for other characters, of `<0x0A>` or the unknown entry, does not show which;
    where characters vanish, their neighbors are merged; and where some bytes have no entry, `tokenizers`
    puts an unknown entry after the bytes of characters that follow.
    """
    entries, rules = vocabulary.entries, vocabulary.rules
    fallback = {f'<0x{byte:02X}>' for byte in range(256)} if rules.byte_fallback else set()
    parts = vocabulary.merge_ids[:, :2]
    symbols = {rules.unk_token, *fallback}
    symbol_ids = [id_ for entry, id_ in entries.items() if entry in symbols]
    if (
        rules.ignore_merges
        or not fallback.issubset(entries)
        or not (fallback or rules.unk_token in entries)
        or np.isin(parts, symbol_ids).any()
    ):
        return NO_BORDERS
    first, last = _outer_characters(entries)
    pairs = np.unique(last[parts[:, 0]] << _CODE_BITS | first[parts[:, 1]])
    if (pairs < 0).any():  # a part is the empty string
        return NO_BORDERS
    of_merges = [chr(pair >> _CODE_BITS) + chr(pair & _CODE) for pair in pairs.tolist()]
    joins_unknown = rules.fuse_unk and not fallback
    known = {entry for entry in entries if len(entry) == 1} if joins_unknown else ()
    return borders_of_pieces(of_merges, known)


def _outer_characters(entries: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the code points of the first and the last character of each id, -1 where there is none."""
    strings = [entry for entry in entries if entry]
    codes = np.frombuffer(''.join(strings).encode('utf-32-le', 'surrogatepass'), np.uint32)
    offsets = row_offsets([*map(len, strings)])
    ids = np.fromiter(map(entries.__getitem__, strings), np.int64, len(strings))
    first, last = np.full((2, 1 + max(entries.values(), default=-1)), -1, np.int64)
    first[ids], last[ids] = codes[offsets[:-1]], codes[offsets[1:] - 1]
    return first, last


def _pairs_of(text: np.ndarray, bounds: np.ndarray, bits: int) -> tuple[CharacterPairs, int]:
    """Returns the pairs of characters in strings, and how many bits are set."""
    pairs = no_pairs(bits)
    return pairs, int(_add_pairs(text, bounds, pairs))


@dataclass(frozen=True, eq=False)
class BorderPreTokenizer:
    """A `PreTokenizer` that cuts rows at all borders."""

    borders: Borders

    name = 'borders'

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def prepare(self, rows: TextRows) -> tuple[Borders, np.ndarray]:
        return self.borders, rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        return slice_parts(self, rows, row, longest)


@scan_tokens.register(Borders)
@kernel_without_allocation
def _scan_between_borders(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; every byte of a row is in a token."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    count = _0
    while row < len(rows.starts):
        start = np.uint64(rows.starts[row] if position < 0 else position)
        end = np.uint64(rows.ends[row])
        chunk, previous = start, _0
        while chunk < end:
            if count >= room:
                return row, np.int64(start), np.int64(count)
            bits, previous = border_bits(rows.text, chunk, previous, end, pre_tokenizer)
            if bits:
                first = count
                count = put_places(bits, chunk, tokens.ends, count)
                for token in range(first, count):
                    tokens.starts[token] = start
                    start = tokens.ends[token]
            chunk += np.uint64(CHUNK)
        if start < end:
            tokens.starts[count], tokens.ends[count] = start, end
            count += _1
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(count)
    return row, np.int64(position), np.int64(count)


@inlined_kernel
def border_bits(text, place, previous, end, borders):
    """Finds all borders of text[place:place + 64] that are before `end`, without a branch on text.

    `READABLE` bytes follow the text. `previous` is the character (uint64) before it, as this returns it;
    0 if a row or a token begins there. Returns (bits, previous): bit i says whether there is a border before
    text[place + i]; and the last character.
    """
    if len(borders.pairs) == 0:
        return _0, _1
    pairs = CharacterPairs(borders.pairs, borders.shift)
    characters = ~byte_range_mask(text, place, 0x80, 0xBF)
    if end - place < np.uint64(CHUNK):
        characters &= (_1 << (end - place)) - _1
    begins_row = np.uint64(previous == _0)
    joined = cut_marks = _0
    if borders.joins_letters:
        # Most places need no look at their pair: no border is in a word, and one before each mark.
        marks = _mark_bits(text, place) & characters
        letters = byte_range_mask(text, place, 0x61, 0x7A) & characters
        joined = letters & (letters << _1 | marks << _3)
        if _SMALL_A <= previous <= _SMALL_Z or previous == _MARK:
            joined |= letters & characters & (~characters + _1)
        if borders.cuts_before_marks:
            cut_marks = marks & ~begins_row
    if begins_row:
        characters &= ~_1
        previous, _ = character_bytes(text, place)
    characters &= ~(joined | cut_marks)
    bits, after_letters, after_marks = cut_marks, joined << _1, cut_marks << _3
    while characters:
        number = trailing_zeros(characters)
        characters &= characters - _1
        character, _ = character_bytes(text, place + number)
        if after_letters >> number & _1:
            previous = np.uint64(text[place + number - _1])
        if after_marks >> number & _1:
            previous = _MARK
        is_border = not has_characters(previous, character, pairs)
        if len(borders.known):
            is_border &= (
                borders.known[decode_word(previous)] or borders.known[decode_word(character)]
            )
        bits |= np.uint64(is_border) << number
        previous = character
    if joined >> np.uint64(CHUNK - 1):
        previous = np.uint64(text[place + np.uint64(CHUNK - 1)])
    if cut_marks >> np.uint64(CHUNK - 3):
        previous = _MARK
    return bits, previous


@kernel_without_allocation
def _mark_bits(text, place):
    """Bit i says whether text[place + i] begins U+2581."""
    return (
        byte_range_mask(text, place, 0xE2, 0xE2)
        & byte_range_mask(text, place + _1, 0x96, 0x96)
        & byte_range_mask(text, place + _2, 0x81, 0x81)
    )


@kernel_without_allocation
def _add_pairs(text, offsets, pairs):
    """Adds all pairs of characters in the strings text[offsets[i]:offsets[i + 1]].

    Returns how many bits are set then.
    """
    size = 0
    for string in range(len(offsets) - 1):
        place, end = offsets[string], offsets[string + 1]
        if place == end:
            continue
        character, place = character_bytes(text, place)
        while place < end:
            following, place = character_bytes(text, place)
            size += add_characters(character, following, pairs)
            character = following
    return size


@kernel_without_allocation
def _joined_letters(pairs):
    """Returns how many pairs of small letters of ASCII there are."""
    count = 0
    for letter in range(_SMALL_A, _SMALL_Z + _1):
        for following in range(_SMALL_A, _SMALL_Z + _1):
            count += has_characters(letter, following, pairs)
    return count


@kernel_without_allocation
def _add_letters(pairs):
    """Adds all pairs of small letters of ASCII, and of U+2581 and such a letter."""
    for letter in range(_SMALL_A, _SMALL_Z + _1):
        add_characters(_MARK, letter, pairs)
        for following in range(_SMALL_A, _SMALL_Z + _1):
            add_characters(letter, following, pairs)
