"""Where a row can be cut without another id: between two characters that no piece has side by side.

Without a pre-tokenizer a whole row is one token, which no cache holds. But a piece, or the result of a
merge, that reaches across a place has the two characters next to it, and most pairs of characters are
in no piece: a letter and a mark (U+2581), a letter and a comma, most ideographs. So a row is cut
between these, and what lies between two cuts is looked up as a word is. Pairs of ASCII are bits of a
table; others are bits by their hash, and a pair with the hash of another only leaves a place uncut.

A space is U+0020 in some rows and U+2581 in others, and here they are one character.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.kernels.bytes import row_offsets, with_margin
from tokcore.kernels.hash_tables import (
    MOST_BITS,
    CharacterPairs,
    add_characters,
    bits_for,
    character_bytes,
    has_characters,
    no_pairs,
)
from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import CHUNK, byte_range_mask, popcount, trailing_zeros
from tokcore.text.byte_level_scan import put_borders
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, TextRows, scan_tokens, slice_parts
from tokcore.text.unicode import CODE_POINTS, decode_word

_CODE_BITS = 21
_CODE = (1 << _CODE_BITS) - 1
_0, _1, _2, _3 = (np.uint64(number) for number in range(4))
_6, _7, _63 = (np.uint64(number) for number in (6, 7, 63))
_CHUNK = np.uint64(CHUNK)
_MARK = np.uint64(int.from_bytes('▁'.encode(), 'little'))
_BLANK, _WIDE = np.uint64(0x20), np.uint64(0x80)

_CONTEXT = 4
"""Bytes of a chunk that show what is before the others: as many as the longest character has."""

FIRST, LATER = np.uint64(1), np.uint64((1 << _CONTEXT) - 1)
"""The bits of the first chunk of a text, and of those after it, that `border_bits` does not decide."""

_NARROW = 128
_CLASSES = 5
"""Kinds of ASCII: small letters, capital letters, digits, spaces, and others. U+2581 is a space."""

_FEW = np.uint64(4)
"""So many characters of ASCII in a chunk are looked at one by one, without their classes."""

_LETTERS, _SPACES = (0, 1), 3
_WORD_SHARE = 0.74
"""Rows are cut between none of two classes of letters, or after spaces before letters, if so many of these pairs
are in pieces: then words need no look at each pair."""


class Borders(NamedTuple):
    """The pairs of characters that rows are not cut between; arrays are read-only."""

    pairs: np.ndarray
    """uint64[...]: `CharacterPairs.bits` of pairs that are not of ASCII; uint64[0] if rows are cut nowhere."""
    shift: np.uint64  # of `CharacterPairs`
    known: np.ndarray
    """bool[0x110000]: rows are not cut between two characters that are not known; bool[0]: they are."""
    narrow: np.ndarray  # uint64[256]: bit (left << 7 | right) is set for a pair of ASCII
    joined: np.ndarray
    """uint64[6 * 5], by the classes of two characters, the first of which may be wide: all ones where none of
    their pairs is cut between, else 0."""
    cut: np.ndarray  # uint64[6 * 5]: all ones where all of them are, else 0


_NOTHING = read_only(np.empty(0, np.uint64))
NO_BORDERS = Borders(_NOTHING, _0, read_only(np.empty(0, np.bool_)), _NOTHING, _NOTHING, _NOTHING)
"""Rows are cut nowhere."""


def borders_of_pieces(pieces: Collection[str], known: Collection[str] = ()) -> Borders:
    """Returns the borders that none of the pieces reaches across.

    `known` are the known characters; none if all are.
    """
    data = [piece.replace('▁', ' ').encode('utf-8', 'surrogatepass') for piece in pieces]
    bounds = read_only(row_offsets([len(piece) for piece in data]).astype(np.uint64))
    text = read_only(with_margin(np.frombuffer(b''.join(data), np.uint8)))
    # The last row is of all wide characters before one of ASCII.
    narrow = np.zeros((_NARROW + 1, _NARROW), np.bool_)
    size = int(_add_pairs(text, bounds, no_pairs(MOST_BITS), narrow))
    pairs = no_pairs(bits_for(size))
    _add_pairs(text, bounds, pairs, narrow)
    is_known = np.zeros(CODE_POINTS if known else 0, np.bool_)
    if known:
        is_known[[*map(ord, known)]] = True
        is_known[0x20] &= '▁' in known
        is_unknown = np.append(~is_known[:_NARROW], True)
        narrow |= is_unknown[:, None] & is_unknown[:-1]
    joined, cut = _joined_classes(narrow)
    bits = np.packbits(narrow[:-1], bitorder='little').view('<u8').astype(np.uint64)
    return Borders(
        read_only(pairs.bits), pairs.shift, read_only(is_known), read_only(bits), joined, cut
    )


def _joined_classes(narrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns `Borders.joined` and `Borders.cut`; joins the last pairs of classes with most pairs joined."""
    codes = np.arange(_NARROW)
    small, capital = (codes >= 0x61) & (codes <= 0x7A), (codes >= 0x41) & (codes <= 0x5A)
    digits, spaces = (codes >= 0x30) & (codes <= 0x39), codes == 0x20
    of_ascii = [small, capital, digits, spaces, ~(small | capital | digits | spaces)]
    before = [*(np.append(each, False) for each in of_ascii), np.arange(_NARROW + 1) == _NARROW]
    joined, cut = np.zeros((2, _CLASSES + 1, _CLASSES), np.uint64)
    for left, lefts in enumerate(before):
        for right, rights in enumerate(of_ascii):
            block = np.ix_(lefts, rights)
            share = narrow[block].mean()
            is_word = left in (*_LETTERS, _SPACES) and right in _LETTERS
            if share == 0:
                cut[left, right] = ~_0
            elif left < _CLASSES and (share == 1 or (is_word and share >= _WORD_SHARE)):
                narrow[block] = True
                joined[left, right] = ~_0
    return read_only(joined.reshape(-1)), read_only(cut.reshape(-1))


def borders_of_merges(vocabulary: BpeVocabulary, has_spaces: bool = False) -> Borders:
    """Returns the borders that no merge of characters reaches across; none where one could.

    With `has_spaces`, U+0020 stands for U+2581 in rows.

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
    known = {entry for entry in entries if len(entry) == 1} if joins_unknown else set()
    if has_spaces and '▁' in known:
        known.add(' ')
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


@dataclass(frozen=True, eq=False)
class BorderPreTokenizer:
    """A `PreTokenizer` that cuts rows at all borders."""

    borders: Borders

    name = 'borders'
    options: ClassVar[Mapping[str, object]] = {}

    def prepare(self, rows: TextRows) -> tuple[Borders, np.ndarray]:
        return self.borders, rows.text

    row_parts = slice_parts


@scan_tokens.register(Borders)
@kernel_without_allocation
def _scan_between_borders(rows, row, position, pre_tokenizer, tokens):
    """As `scan_tokens` says; every byte of a row is in a token."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    ended = _0
    while row < len(rows.starts):
        start = np.uint64(rows.starts[row] if position < 0 else position)
        end = np.uint64(rows.ends[row])
        place = tokens.starts[ended] = start
        undecided = FIRST
        while place < end:
            if ended > room:
                return row, np.int64(tokens.starts[ended]), np.int64(ended)
            bits, after = border_bits(rows.text, place, end, undecided, pre_tokenizer)
            ended = put_borders(bits, place, tokens, ended)
            place, undecided = after, LATER
        if start < end:
            tokens.ends[ended] = end
            ended += _1
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)


@inlined_kernel
def border_bits(text, place, end, undecided, borders):
    """Finds the borders of text[place:place + 64] that are before `end`.

    `READABLE` bytes follow the text. `undecided` is `FIRST` if a row or a token begins at the place, or else
    `LATER`. Returns (bits, next): bit i says whether there is a border before text[place + i]; and the place of
    the next chunk.
    """
    if len(borders.pairs) == 0:
        return _0, end
    inside, after = ~_0, place + np.uint64(CHUNK - _CONTEXT)
    if end - place <= _CHUNK:
        inside, after = inside >> (_CHUNK - (end - place)), end
    small = byte_range_mask(text, place, 0x61, 0x7A)
    capital = byte_range_mask(text, place, 0x41, 0x5A)
    digits = byte_range_mask(text, place, 0x30, 0x39)
    blanks = byte_range_mask(text, place, 0x20, 0x20)
    wide = byte_range_mask(text, place, 0x80, 0xFF)
    others = ~(small | capital | digits | blanks | wide)
    marks = _mark_bits(text, place) if wide else _0
    after_marks = marks << _3
    after_wide = wide << _1 & ~after_marks
    left = inside & ~undecided
    bits = _0
    passed = _0
    if popcount(inside & (~wide | marks)) > _FEW:
        befores = (
            small << _1,
            capital << _1,
            digits << _1,
            blanks << _1 | after_marks,
            others << _1,
            after_wide,
        )
        characters = (small, capital, digits, blanks | marks, others)
        for before in range(_CLASSES + 1):
            for character in range(_CLASSES):
                both = befores[before] & characters[character]
                number = np.uint64(before * _CLASSES + character)
                passed |= both & borders.joined[number]
                bits |= both & borders.cut[number]
    bits &= left
    left &= ~(passed | bits)
    wide_pairs = left & (wide & ~marks | after_wide)
    left &= ~wide_pairs
    while left:
        number = trailing_zeros(left)
        left &= left - _1
        pair = _narrow(text[place + number - _1]) << _7 | _narrow(text[place + number])
        bits |= (borders.narrow[pair >> _6] >> (pair & _63) & _1 ^ _1) << number
    if wide_pairs:
        bits |= _wide_borders(text, place, wide_pairs, borders)
    return bits, after


@kernel_without_allocation
def _narrow(byte):
    """Returns the character of ASCII that a byte is, or U+0020 for one of U+2581."""
    return np.uint64(byte) if byte < np.uint8(_WIDE) else _BLANK


@inlined_kernel
def _wide_borders(text, place, left, borders):
    """Returns the bits in `left` before which borders are; each, or the character before it, is not of ASCII."""
    left &= ~byte_range_mask(text, place, 0x80, 0xBF)
    pairs = CharacterPairs(borders.pairs, borders.shift)
    bits, previous, previous_end = _0, _0, _0
    while left:
        number = trailing_zeros(left)
        left &= left - _1
        at = place + number
        if previous_end != at:
            before = at - _1
            while before > place and text[before] & np.uint8(0xC0) == np.uint8(0x80):
                before -= _1
            previous = _with_blank(character_bytes(text, before)[0])
        character, previous_end = character_bytes(text, at)
        character = _with_blank(character)
        is_border = not has_characters(previous, character, pairs)
        if len(borders.known):
            is_border &= (
                borders.known[decode_word(previous)] or borders.known[decode_word(character)]
            )
        bits |= np.uint64(is_border) << number
        previous = character
    return bits


@kernel_without_allocation
def _with_blank(character):
    return _BLANK if character == _MARK else character


@kernel_without_allocation
def _mark_bits(text, place):
    """Bit i says whether text[place + i] begins U+2581."""
    return (
        byte_range_mask(text, place, 0xE2, 0xE2)
        & byte_range_mask(text, place + _1, 0x96, 0x96)
        & byte_range_mask(text, place + _2, 0x81, 0x81)
    )


@kernel_without_allocation
def _add_pairs(text, offsets, pairs, narrow):
    """Adds all pairs of characters in the strings text[offsets[i]:offsets[i + 1]].

    Those before a character of ASCII are in `narrow`; the wide ones of these, and all others, in `pairs`. Returns
    how many bits are set there then.
    """
    size = 0
    for string in range(len(offsets) - 1):
        place, end = offsets[string], offsets[string + 1]
        if place == end:
            continue
        character, place = character_bytes(text, place)
        while place < end:
            following, place = character_bytes(text, place)
            if following < _WIDE:
                narrow[min(character, _WIDE), following] = True
            if character >= _WIDE or following >= _WIDE:
                size += add_characters(character, following, pairs)
            character = following
    return size
