"""The pre-tokenizers of GPT-2 and of cl100k as kernels: 64 bytes at a time, as bits.

Every byte of a row belongs to a token, so a token ends where the next one begins, and no pattern
looks back. What a pattern tries in turn at each place comes to this, for runs of one class:

    both      the last character of white space before something else begins a token, and so does
              white space itself; ' does before letters if no U+0020 is before it, and a contraction
              ends after its letters, though others follow
    gpt2      letters, numbers and others begin one, except that a U+0020 before them does for them
    cl100k    others begin one, except after U+0020; letters except after white space or after one
              other that begins a token; each third number of a run

White space with a line break in it is cut differently by cl100k, and so are numbers of many bytes:
there each alternative of the pattern is tried in turn.
"""

import functools
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, load_word, popcount, trailing_zeros
from tokcore.text.byte_level import PATTERNS, WHITE_SPACE, Pattern, split
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, TextRows, scan_tokens
from tokcore.text.unicode import CODE_POINTS, decode_word, ideograph_mask

_TOKENS_AT_ONCE = 1 << 14

_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)

STRIDE = 60
"""Of 64 bytes that more follow, only so many are decided: those behind show what comes next, and a
character has at most four."""

_CHUNK, _STRIDE, _AT_ONCE = np.uint64(64), np.uint64(STRIDE), np.uint64(8)
_ALL = ~_0

LETTER, NUMBER, SPACE = 1, 2, 4
"""One bit each; 0 are the others."""

_LETTER, _NUMBER, _SPACE = np.uint64(LETTER), np.uint64(NUMBER), np.uint64(SPACE)
_OTHER = _0
_END = np.uint64(8)
_BYTE = np.uint64(0xFF)
_APOSTROPHE, _BLANK, _CR, _LF = (np.uint64(ord(each)) for each in "' \r\n")
_ALL_ONES = np.uint64(2**64 - 1)

_BLOCK = 256
_BLOCK_BITS, _IN_BLOCK = np.uint64(8), np.uint64(0xFF)

_3 = np.uint64(3)
_8, _16 = np.uint64(8), np.uint64(16)
_TWO_BYTES = np.uint64(65535)
_S, _D, _M, _T = (np.uint64(ord(each)) for each in 'sdmt')
# Two letters as they are read, the first one lowest.
_LL, _VE, _RE = (np.uint64(int.from_bytes(each, 'little')) for each in (b'll', b've', b're'))
_LONG_S = np.uint64(int.from_bytes('ſ'.encode(), 'little'))
_LOWER, _LOWER_TWO = np.uint64(0x20), np.uint64(0x2020)

_LAST, _LAST_THREE = np.uint64(STRIDE - 1), np.uint64(STRIDE - 3)
_THREE_BITS = np.uint64(7)


class CharacterClasses(NamedTuple):
    """Code point c is of class blocks[index[c // 256] * 256 + c % 256]: most blocks are alike."""

    index: np.ndarray  # uint8[0x110000 / 256]
    blocks: np.ndarray  # uint8[blocks * 256]


class PatternText(NamedTuple):
    """The state: what characters are, and which pattern it is."""

    classes: CharacterClasses
    is_cl100k: bool  # else GPT-2's


@dataclass(frozen=True)
class PatternPreTokenizer:
    r"""A `PreTokenizer` whose tokens are those of `byte_level.split`.

    Letters and numbers are those of this Python's `unicodedata` (L* and N*), white space is
    `WHITE_SPACE`.

    Attributes:
        pattern: 'gpt2' or 'cl100k'.
    """

    pattern: Pattern = 'gpt2'

    def __post_init__(self):
        if self.pattern not in PATTERNS:
            raise ValueError(f'{self.pattern!r} is no pattern; there are {" and ".join(PATTERNS)}')

    @property
    def name(self) -> str:
        return 'pattern'

    @property
    def options(self) -> Mapping[str, object]:
        return {'pattern': self.pattern}

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, in plain Python."""
        return split(text, self.pattern)

    def prepare(self, rows: TextRows) -> tuple[PatternText, np.ndarray]:
        return PatternText(character_classes(), self.pattern == 'cl100k'), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        state, text = self.prepare(rows)
        long_row = rows.part(row, row + 1)
        starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        found = ScannedTokens(text, starts, np.empty_like(starts), np.zeros(2, np.int64))
        done, position = 0, -1
        while not done:
            done, position, tokens = scan_tokens(long_row, done, position, state, found)
            starts, ends = found.starts[:tokens], found.ends[:tokens]
            first = 0
            for token in [*np.flatnonzero(ends - starts > longest).tolist(), tokens]:
                for last in _part_ends(text, starts, ends, first, token):
                    yield RowPart(text, int(starts[first]), int(ends[last]), False)
                    first = last + 1
                if token < tokens:
                    yield RowPart(text, int(starts[token]), int(ends[token]), True)
                first = token + 1


def _part_ends(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, first: int, end: int
) -> list[int]:
    """The last tokens of parts of the tokens from `first` up to `end`, none if there is no token.

    White space at the end of a text is one token, so where there are several each ends a part.
    """
    last = end - 1
    found = [last] if first < end else []
    while last > first and _is_space(text[starts[last] : ends[last]]):
        last -= 1
        found.insert(0, last)
    return found


def _is_space(token: np.ndarray) -> bool:
    return not token.tobytes().decode().strip(WHITE_SPACE)


@kernel_without_allocation
def _put_borders(bits, place, tokens, ended):
    """Ends the open token at the first bit and begins others; returns how many have ended."""
    end = ended + popcount(bits)
    while True:
        # Eight whether there are or not, as in `put_places`.
        for k in range(_AT_ONCE):
            border = place + trailing_zeros(bits)
            tokens.ends[ended + k] = border
            tokens.starts[ended + k + _1] = border
            bits &= bits - _1
        ended += _AT_ONCE
        if ended >= end:
            return end


@kernel_without_allocation
def _is_cut_otherwise(masks, left, inside):
    """Whether there are line breaks but at the end of the row, or numbers of several bytes."""
    if masks.breaks | masks.numbers & masks.continued == _0:
        return False
    if masks.numbers & masks.continued != _0 or left > _CHUNK:
        return True
    return inside & ~masks.breaks >= masks.breaks & (~masks.breaks + _1)


@kernel_without_allocation
def _scan_one_by_one(text, stop, row_end, classes, tokens, ended):
    """Ends tokens from the open one on until one begins at `stop` or behind, or the row ends.

    Returns that place, and how many have ended.
    """
    place = tokens.starts[ended]
    while place < stop:
        place = cl100k_token_end(text, place, row_end, classes)
        if place == row_end:
            break
        tokens.ends[ended] = place
        ended += _1
        tokens.starts[ended] = place
    return place, ended


@scan_tokens.register(PatternText)
@kernel_without_allocation
def scan_pattern(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    text, classes = rows.text, pre_tokenizer.classes
    ended = _0
    while row < len(rows.starts):
        start = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        tokens.starts[ended] = place = start
        before, first = nothing_before(), _1
        while place < row_end:
            if ended > room:
                return row, np.int64(tokens.starts[ended]), np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            decided = inside if left <= _CHUNK else (_1 << _STRIDE) - _1
            masks = class_masks(text, place, inside, before, classes)
            if pre_tokenizer.is_cl100k:
                if _is_cut_otherwise(masks, left, inside):
                    stop = min(place + _STRIDE, row_end)
                    place, ended = _scan_one_by_one(text, stop, row_end, classes, tokens, ended)
                    before, first = nothing_before(), _1
                    continue
                borders, before = cl100k_borders(text, place, left, decided, masks, before)
            else:
                borders, before = gpt2_borders(text, place, left, decided, masks, before)
            # The first byte of a row, or of what it is gone on with, is in a token begun already.
            ended = _put_borders(borders & decided & ~first, place, tokens, ended)
            first = _0
            place += _STRIDE if left > _CHUNK else left
        if start < row_end:
            tokens.ends[ended] = row_end
            ended += _1
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)


class ClassMasks(NamedTuple):
    """Bit i is about byte i; all bytes of a character are of its class. Each is a uint64."""

    letters: np.uint64
    numbers: np.uint64
    spaces: np.uint64  # white space
    others: np.uint64
    blanks: np.uint64  # U+0020
    breaks: np.uint64  # CR and LF
    apostrophes: np.uint64
    continued: np.uint64  # bytes of a character behind its first


@kernel_without_allocation
def _known_others(text, place):
    """Where U+3001 to U+3003 and U+FF00 to U+FF0F begin: the commas and full stops of Chinese."""
    after, last = place + _1, place + _2
    return (
        byte_range_mask(text, place, 0xE3, 0xE3)
        & byte_range_mask(text, after, 0x80, 0x80)
        & byte_range_mask(text, last, 0x81, 0x83)
    ) | (
        byte_range_mask(text, place, 0xEF, 0xEF)
        & byte_range_mask(text, after, 0xBC, 0xBC)
        & byte_range_mask(text, last, 0x80, 0x8F)
    )


@kernel_without_allocation
def _spread(found, before, continued):
    """Gives all bytes of characters the bit of the first; `before` is that of the byte before."""
    found |= (found << _1 | before) & continued
    found |= (found << _1 | before) & continued
    return found | (found << _1 | before) & continued


@kernel_without_allocation
def class_masks(text, place, inside, before, classes):
    """Returns the `ClassMasks` of the 64 bytes at text[place:], of those that are `inside`.

    `before` has the bits `letter`, `number` and `space` of the byte before, in its lowest place.
    """
    letters = byte_range_mask(text, place, 0x61, 0x7A) | byte_range_mask(text, place, 0x41, 0x5A)
    numbers = byte_range_mask(text, place, 0x30, 0x39)
    blanks = byte_range_mask(text, place, 0x20, 0x20)
    spaces = blanks | byte_range_mask(text, place, 0x09, 0x0D)
    breaks = byte_range_mask(text, place, 0x0A, 0x0A) | byte_range_mask(text, place, 0x0D, 0x0D)
    continued = _0
    wide = byte_range_mask(text, place, 0x80, 0xFF) & inside
    if wide != _0:
        continued = byte_range_mask(text, place, 0x80, 0xBF) & inside
        letters |= ideograph_mask(text, place)
        leads = wide & ~continued & ~letters & ~_known_others(text, place)
        while leads != _0:
            byte = trailing_zeros(leads)
            leads &= leads - _1
            found = class_of(classes, decode_word(load_word(text, place + byte)))
            letters |= (found & _1) << byte
            numbers |= (found >> _1 & _1) << byte
            spaces |= (found >> _2) << byte
        letters = _spread(letters, before.letter, continued)
        numbers = _spread(numbers, before.number, continued)
        spaces = _spread(spaces, before.space, continued)
    return ClassMasks(
        letters & inside,
        numbers & inside,
        spaces & inside,
        inside & ~(letters | numbers | spaces),
        blanks & inside,
        breaks & inside,
        byte_range_mask(text, place, 0x27, 0x27) & inside,
        continued,
    )


@kernel_without_allocation
def _character(text, place, end, classes):
    """The class of the character at a place, and where it ends; at the end `_END`."""
    if place >= end:
        return _END, place
    word = load_word(text, place)
    lead = word & _BYTE
    size = _1
    if lead >= np.uint64(0x80):
        size = np.uint64(2)
        if lead >= np.uint64(0xE0):
            size = np.uint64(4) if lead >= np.uint64(0xF0) else np.uint64(3)
    return class_of(classes, decode_word(word)), place + size


@kernel_without_allocation
def _run_end(text, place, end, kind, most, classes):
    """Where a run of one class ends, of so many characters at most."""
    while most > _0:
        found, behind = _character(text, place, end, classes)
        if found != kind:
            break
        place = behind
        most -= _1
    return place


@kernel_without_allocation
def _is_break(byte):
    return byte == np.uint8(_CR) or byte == np.uint8(_LF)


@kernel_without_allocation
def _space_end(text, place, end, classes):
    """Where a token ends that begins with white space, which nothing behind it is joined to."""
    last, behind_break, at = place, place, place
    while True:
        kind, behind = _character(text, at, end, classes)
        if kind != _SPACE:
            break
        last = at
        if _is_break(text[at]):
            behind_break = behind
        at = behind
    if at == end:
        return end
    if behind_break > place:
        return behind_break
    return last if last > place else at


@kernel_without_allocation
def cl100k_token_end(text, place, end, classes):
    """Where the token ends that begins at a place of a row, which ends at `end`."""
    byte = np.uint64(text[place])
    if byte == _APOSTROPHE:
        size = contraction_size(load_word(text, place), end - place, True)
        if size != _0:
            return place + size
    kind, behind = _character(text, place, end, classes)
    if kind == _NUMBER:
        return _run_end(text, place, end, _NUMBER, np.uint64(3), classes)
    following, _ = _character(text, behind, end, classes)
    if kind == _LETTER or (following == _LETTER and not _is_break(text[place])):
        return _run_end(text, behind, end, _LETTER, _ALL_ONES, classes)
    if kind == _OTHER or (byte == _BLANK and following == _OTHER):
        place = _run_end(text, behind, end, _OTHER, _ALL_ONES, classes)
        while place < end and _is_break(text[place]):
            place += _1
        return place
    return _space_end(text, place, end, classes)


@functools.cache
def character_classes() -> CharacterClasses:
    """Returns the classes by this Python's tables: categories L* and N*, and `WHITE_SPACE`."""
    majors = ''.join(unicodedata.category(chr(code))[0] for code in range(CODE_POINTS))
    letters = np.frombuffer(majors.encode('ascii'), np.uint8)
    table = LETTER * (letters == ord('L')) + NUMBER * (letters == ord('N'))
    table[[ord(each) for each in WHITE_SPACE]] = SPACE
    blocks, index = np.unique(table.reshape(-1, _BLOCK), axis=0, return_inverse=True)
    return CharacterClasses(
        read_only(index.ravel().astype(np.uint8)), read_only(blocks.astype(np.uint8).ravel())
    )


@kernel_without_allocation
def class_of(classes, code):
    """The class of a code point, uint64 both."""
    block = np.uint64(classes.index[code >> _BLOCK_BITS])
    return np.uint64(classes.blocks[(block << _BLOCK_BITS) + (code & _IN_BLOCK)])


class Before(NamedTuple):
    """What the bytes decided before say of those that follow, uint64 each; 0 at a token's start."""

    letter: np.uint64  # the class of the byte before: 1 or 0
    number: np.uint64
    space: np.uint64
    other: np.uint64
    blank: np.uint64  # it is U+0020
    joining: np.uint64  # letters are one token with the character of the byte before
    numbers: np.uint64  # three bits, the byte before highest: numbers
    thirds: np.uint64  # likewise: where numbers begin tokens
    put: np.uint64  # where contractions end


@kernel_without_allocation
def nothing_before():
    """Returns the `Before` of a token's first byte."""
    return Before(_0, _0, _0, _0, _0, _0, _0, _0, _0)


@kernel_without_allocation
def contraction_size(word, left, any_case):
    """The bytes of the contraction that begins a word of text, 0 if none does.

    `left` is how many bytes of the word are of the row; the first is an apostrophe.
    """
    one, two = word >> _8 & _BYTE, word >> _8 & _TWO_BYTES
    if any_case:
        if two == _LONG_S:
            return _3
        one |= _LOWER
        two |= _LOWER_TWO
    if left >= _2 and (one == _S or one == _T or one == _M or one == _D):
        return _2
    if left >= _3 and (two == _LL or two == _VE or two == _RE):
        return _3
    return _0


@kernel_without_allocation
def _contractions(text, place, left, candidates, any_case):
    """Of apostrophes those that begin contractions, and where within the row these end, as bits."""
    found = ends = _0
    while candidates != _0:
        byte = trailing_zeros(candidates)
        candidates &= candidates - _1
        size = contraction_size(load_word(text, place + byte), left - byte, any_case)
        if size != _0:
            found |= _1 << byte
            if byte + size < left:
                ends |= _1 << (byte + size)
    return found, ends


@kernel_without_allocation
def _last_spaces(masks, nonspaces):
    """Where the last characters of white space begin that something follows."""
    found = masks.spaces & (nonspaces >> _1)
    if masks.continued != _0:
        found = (found & ~masks.continued) | (found & masks.continued) >> _1
        found = (found & ~masks.continued) | (found & masks.continued) >> _1
    return found


@kernel_without_allocation
def _carried(masks, joining, thirds, put):
    return Before(
        masks.letters >> _LAST & _1,
        masks.numbers >> _LAST & _1,
        masks.spaces >> _LAST & _1,
        masks.others >> _LAST & _1,
        masks.blanks >> _LAST & _1,
        joining >> _LAST & _1,
        masks.numbers >> _LAST_THREE & _THREE_BITS,
        thirds >> _LAST_THREE & _THREE_BITS,
        put >> np.uint64(STRIDE),
    )


@kernel_without_allocation
def gpt2_borders(text, place, left, decided, masks, before):
    """Returns the bits of the bytes where tokens begin, and `Before` of the next.

    `masks` are of the bytes at text[place:], where so many are left of the row; the bits in
    `decided` are good.
    """
    behind_letter = masks.letters << _1 | before.letter
    behind_number = masks.numbers << _1 | before.number
    behind_other = masks.others << _1 | before.other
    nonspaces = masks.letters | masks.numbers | masks.others
    behind_space = masks.spaces << _1 | before.space
    behind_blank = masks.blanks << _1 | before.blank
    starts = (
        (masks.letters & ~behind_letter)
        | (masks.numbers & ~behind_number)
        | (masks.others & ~behind_other)
    ) & ~behind_blank
    found, put = _0, before.put
    candidates = masks.apostrophes & starts & masks.letters >> _1 & decided
    if candidates != _0:
        found, ends = _contractions(text, place, left, candidates, False)
        put |= ends
    starts &= ~(masks.letters & (found << _1 | before.joining))
    starts |= masks.spaces & ~behind_space | _last_spaces(masks, nonspaces) | put
    return starts, _carried(masks, found, _0, put)


@kernel_without_allocation
def _thirds(masks, before):
    """Where numbers begin tokens: the first of a run and each third one; a number is one byte."""
    one = masks.numbers << _1 | before.numbers >> _2
    three = masks.numbers << _3 | before.numbers
    found = masks.numbers & ~one
    fourth = masks.numbers & one & (masks.numbers << _2 | before.numbers >> _1) & three
    if fourth != _0:
        more = (found << _3 | before.thirds) & fourth
        while more != _0:
            found |= more
            more = more << _3 & fourth
    return found


@kernel_without_allocation
def cl100k_borders(text, place, left, decided, masks, before):
    """As `gpt2_borders`; the only line breaks are at the row's end, and numbers are one byte."""
    behind_letter = masks.letters << _1 | before.letter
    behind_other = masks.others << _1 | before.other
    behind_space = masks.spaces << _1 | before.space
    nonspaces = masks.letters | masks.numbers | masks.others
    behind_blank = masks.blanks << _1 | before.blank
    others = masks.others & ~behind_other & ~behind_blank
    put = before.put
    candidates = masks.apostrophes & others & masks.letters >> _1 & decided
    if candidates != _0:
        _, ends = _contractions(text, place, left, candidates, True)
        put |= ends
    joining = others | masks.spaces & ~masks.breaks
    if masks.continued != _0:
        # From the first byte of an other to all of them.
        joining |= (joining << _1 | before.joining) & masks.continued
        joining |= (joining << _1 | before.joining) & masks.continued
        joining |= (joining << _1 | before.joining) & masks.continued
    letters = masks.letters & ~behind_letter & ~(joining << _1 | before.joining)
    thirds = _thirds(masks, before)
    spaces = masks.spaces & ~behind_space & ~(masks.breaks & behind_other)
    starts = letters | thirds | others | spaces | _last_spaces(masks, nonspaces) | put
    return starts, _carried(masks, joining, thirds, put)
