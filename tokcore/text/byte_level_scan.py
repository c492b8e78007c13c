"""The pre-tokenizers of models' patterns as kernels: 64 bytes at a time, one bit a byte.

Every byte of a row is in a token, so a token ends where the next one begins, and no pattern looks
back. For runs of characters of one class, the alternatives of the patterns amount to this, by the
`words` of their `PatternRules`:

    all       white space begins a token, and so does its last character if something follows
    blank     letters, numbers and others begin a token, but after U+0020 that begins it
    any       others begin a token, except after U+0020; letters too, except after white space or
              after one other that begins a token; numbers at every one or every third of a run
    these     ' begins a token before letters unless U+0020 is before it, and a contraction ends
              after its letters even if more letters follow

    cased     as `any`, and capital letters begin a token after small ones; a contraction after letters
              is in their token, which it ends
    punctuated   as `any`, in ASCII without control characters; where there are numbers, each text
              between them is one that ends

All but `blank` have line breaks that follow others in their token. Other white space is cut after its last
line break, which begins no token; not at a text's end unless the pattern `ends_at_break`.

Where this is not all (thirds of numbers of several bytes, capital letters after those without case, and so
on), the alternatives of the pattern are tried one after another at each token. Of cased words a chunk
begins with a token, so that none depends on what is before.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, load_word, popcount, trailing_zeros
from tokcore.text.patterns import DEFINITIONS, WHITE_SPACE, Pattern, PatternRules, split
from tokcore.text.pre_tokenizer import (
    CHUNK_TOKENS,
    RowPart,
    TextRows,
    scan_tokens,
    slice_parts,
)
from tokcore.text.unicode import category_table, decode_word, ideograph_mask

_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)

STRIDE = 60
"""Bytes of a chunk of 64 that are decided if more follow: the rest, as many as the longest character
has, shows what comes next."""

_CHUNK, _STRIDE, _AT_ONCE = np.uint64(64), np.uint64(STRIDE), np.uint64(8)
_ALL = ~_0

LETTER, NUMBER, SPACE = 1, 2, 4
"""A bit for each class; others are 0."""

UPPER, LOWER = 16, 32
"""Bits for where words are cased: what may stand before the small letters of a word, and in place of
them. Letters without case, and combining marks, are both; marks are not a `LETTER`."""

PUNCTUATION = 64
"""The bit of punctuation and symbols, where words are punctuated."""

_LETTER, _NUMBER, _SPACE = np.uint64(LETTER), np.uint64(NUMBER), np.uint64(SPACE)
_UPPER, _LOWER = np.uint64(UPPER), np.uint64(LOWER)
_PUNCTUATION = np.uint64(PUNCTUATION)
_OTHER = _0
_LETTER_NUMBER_SPACE = np.uint64(LETTER | NUMBER | SPACE)
_UPPER_BIT, _LOWER_BIT = np.uint64(4), np.uint64(5)
_END = np.uint64(8)
_BYTE = np.uint64(0xFF)
_APOSTROPHE, _BLANK, _CR, _LF, _SLASH = (np.uint64(ord(byte)) for byte in "' \r\n/")

_BLOCK = 256
_BLOCK_BITS, _IN_BLOCK = np.uint64(8), np.uint64(0xFF)

_3 = np.uint64(3)
_8 = np.uint64(8)
_TWO_BYTES = np.uint64(65535)
_S, _D, _M, _T = (np.uint64(ord(byte)) for byte in 'sdmt')
# Two letters as they are read, the first one lowest.
_LL, _VE, _RE = (np.uint64(int.from_bytes(pair, 'little')) for pair in (b'll', b've', b're'))
_LONG_S = np.uint64(int.from_bytes('ſ'.encode(), 'little'))
_LOWERED, _LOWERED_TWO = np.uint64(0x20), np.uint64(0x2020)

_LAST, _LAST_THREE = np.uint64(STRIDE - 1), np.uint64(STRIDE - 3)
_THREE_BITS = np.uint64(7)


class CharacterClasses(NamedTuple):
    """The class of c is blocks[block_numbers[c // 256] * 256 + c % 256]; equal blocks are stored once."""

    block_numbers: np.ndarray  # uint8[0x110000 / 256]
    blocks: np.ndarray  # uint8[blocks * 256]


class PatternText(NamedTuple):
    """The state: the classes of characters, and which pattern it is."""

    classes: CharacterClasses
    words: int  # _BLANK_WORDS, _ANY_WORDS, _CASED_WORDS, _PUNCTUATED_WORDS or _WHOLE
    most_digits: np.uint64  # in a token; 0 for any number of them
    ends_at_break: bool  # white space at a row's end is cut after its last line break
    ends_in_contraction: bool  # cased words may end in one, as one token


_BLANK_WORDS, _ANY_WORDS, _CASED_WORDS, _PUNCTUATED_WORDS, _WHOLE = range(5)
_WORDS = ('blank', 'any', 'cased', 'punctuated')  # of `PatternRules`, in the order of these numbers


@dataclass(frozen=True)
class PatternPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `patterns.split`, for one expression with rules.

    Letters and numbers are those of this Python's `unicodedata` (L* and N*), white space is
    `WHITE_SPACE`.
    """

    name = 'pattern'

    pattern: Pattern = 'gpt2'

    def __post_init__(self):
        if self.pattern not in DEFINITIONS:
            raise ValueError(
                f'{self.pattern!r} is not a pattern; there are {", ".join(DEFINITIONS)}'
            )
        expressions, rules = DEFINITIONS[self.pattern]
        if rules is None or len(expressions) > 1:
            raise ValueError(f'{self.pattern} has no kernel of its own; use pattern_pre_tokenizer')

    @property
    def options(self) -> Mapping[str, object]:
        return {'pattern': self.pattern}

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, in plain Python."""
        return split(text, self.pattern)

    def prepare(self, rows: TextRows) -> tuple[PatternText, np.ndarray]:
        rules = DEFINITIONS[self.pattern].rules
        assert rules is not None  # __post_init__ saw to it
        return pattern_text(rules), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        return slice_parts(self, rows, row, longest, last_tokens)


@functools.cache
def pattern_text(rules: PatternRules | None) -> PatternText:
    """Returns the state of a pattern; None: a text is one token."""
    if rules is None:
        return pattern_text(PatternRules('any', 0))._replace(words=_WHOLE)
    return PatternText(
        character_classes(rules),
        _WORDS.index(rules.words),
        np.uint64(rules.most_digits),
        rules.ends_at_break,
        rules.contractions == 'word',
    )


def last_tokens(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray, first: int, end: int
) -> list[int]:
    """Returns the last token of each part of the tokens from `first` up to `end`.

    White space at the end of a text is a single token, so a part must not end with two tokens of it.
    """
    last = end - 1
    of_parts = [last] if first < end else []
    while last > first and not (
        text[starts[last] : ends[last]].tobytes().decode().strip(WHITE_SPACE)
    ):
        last -= 1
        of_parts.insert(0, last)
    return of_parts


@kernel_without_allocation
def put_borders(bits, place, tokens, ended):
    """Ends the open token at the first bit and begins others; returns the number of ended tokens."""
    end = ended + popcount(bits)
    while True:
        # Always eight, however many there are, as in `put_places`.
        for k in range(_AT_ONCE):
            border = place + trailing_zeros(bits)
            tokens.ends[ended + k] = border
            tokens.starts[ended + k + _1] = border
            bits &= bits - _1
        ended += _AT_ONCE
        if ended >= end:
            return end


@kernel_without_allocation
def _needs_one_by_one(masks, most_digits):
    """Whether there are numbers without a limit, or thirds of numbers of several bytes."""
    if most_digits == _0:
        return masks.numbers != _0
    return most_digits != _1 and masks.numbers & masks.continued != _0


@kernel_without_allocation
def _scan_one_by_one(text, stop, row_end, pre_tokenizer, tokens, ended):
    """Ends tokens, from the open one on, until one begins at or after `stop`, or the row ends.

    Returns that place, and the number of ended tokens.
    """
    place = tokens.starts[ended]
    while place < stop:
        place = token_end(text, place, row_end, pre_tokenizer)
        if place == row_end:
            break
        tokens.ends[ended] = place
        ended += _1
        tokens.starts[ended] = place
    return place, ended


@kernel_without_allocation
def _scan_chunk(text, place, end, pre_tokenizer, tokens, ended):
    """Ends tokens of cased words, from the open one on, which begins at `place`; the text ends at `end`.

    Returns where the last one begins, or `end` if it is not ended before, and the number of ended
    tokens.
    """
    left = end - place
    if left > _AT_ONCE:
        borders, are_all = _borders_in_chunk(text, place, left, pre_tokenizer)
        if are_all and (borders != _0 or left <= _CHUNK):
            ended = put_borders(borders, place, tokens, ended)
            return (end if left <= _CHUNK else tokens.starts[ended]), ended
    stop = min(place + _STRIDE, end)
    return _scan_one_by_one(text, stop, end, pre_tokenizer, tokens, ended)


@scan_tokens.register(PatternText)
@kernel_without_allocation
def _scan_pattern(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    ended = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        end = np.uint64(rows.ends[row])
        place, ended = scan_text(rows.text, place, end, pre_tokenizer, tokens, ended, room)
        if place < end:
            return row, np.int64(place), np.int64(ended)
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, np.int64(position), np.int64(ended)


@kernel_without_allocation
def scan_text(text, place, end, pre_tokenizer, tokens, ended, room):
    """Ends the tokens of text[place:end], the first of which begins at `place`.

    Returns the end, or where a token begins for which there is no room; and the number of ended tokens.
    """
    if place == end:
        return end, ended
    words, most_digits = pre_tokenizer.words, pre_tokenizer.most_digits
    tokens.starts[ended] = place
    before, first = _nothing_before(), _1
    while place < end:
        if ended > room:
            return tokens.starts[ended], ended
        if words == _CASED_WORDS:
            place, ended = _scan_chunk(text, place, end, pre_tokenizer, tokens, ended)
            continue
        left = end - place
        inside = _ALL if left >= _CHUNK else (_1 << left) - _1
        decided = inside if left <= _CHUNK else (_1 << _STRIDE) - _1
        size = _STRIDE if left > _CHUNK else left
        wide, resumes = _0, False
        if words == _PUNCTUATED_WORDS:
            wide = byte_range_mask(text, place, 0x80, 0xFF) & inside
            if wide != _0:
                # What is before the first wide character, but for the one before it, which depends on it.
                size = trailing_zeros(wide)
                inside = (_1 << size) - _1
                decided &= inside >> _1
        is_clear = words != _WHOLE and (first == _0 or size >= _AT_ONCE)
        if is_clear:
            masks = _class_masks(text, place, inside, before, pre_tokenizer.classes)
            if words == _BLANK_WORDS:
                borders, before = _borders_after_blanks(text, place, left, decided, masks, before)
            else:
                is_clear = not _needs_one_by_one(masks, most_digits)
                if words == _PUNCTUATED_WORDS:
                    is_clear &= _controls(text, place) & inside & ~masks.spaces == _0
                borders, decided, resumes, before = _borders_after_any(
                    text, place, left, decided, masks, before, pre_tokenizer
                )
                is_clear &= decided != _0
        if is_clear:
            # The token at the first byte of a text, or of the rest of one, has begun already.
            ended = put_borders(borders & decided & ~first, place, tokens, ended)
            first = _0
        if is_clear and wide == _0:
            place += size
            if resumes:
                place, before, first = tokens.starts[ended], _nothing_before(), _1
        else:
            stop = min(place + size + np.uint64(wide != _0), end)
            place, ended = _scan_one_by_one(text, stop, end, pre_tokenizer, tokens, ended)
            before, first = _nothing_before(), _1
    tokens.ends[ended] = end
    return end, ended + _1


class _ClassMasks(NamedTuple):
    """Masks (uint64) in which bit i is about byte i; all bytes of a character are of its class."""

    letters: np.uint64
    numbers: np.uint64
    spaces: np.uint64  # white space
    others: np.uint64
    blanks: np.uint64  # U+0020
    breaks: np.uint64  # CR and LF
    apostrophes: np.uint64
    continued: np.uint64  # bytes of a character after its first
    uppers: np.uint64  # where words are cased: as `UPPER`
    lowers: np.uint64  # as `LOWER`


@kernel_without_allocation
def _wide_punctuation(text, place):
    """Returns bits: where U+3001 to U+3003 and U+FF00 to U+FF0F begin, wide punctuation."""
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
def _spread(firsts, before, continued):
    """Spreads the bit of a character's first byte to all; `before` is that of the byte before."""
    spread = firsts | (firsts << _1 | before) & continued
    spread |= (spread << _1 | before) & continued
    return spread | (spread << _1 | before) & continued


@kernel_without_allocation
def _class_masks(text, place, inside, before, classes):
    """Returns the `_ClassMasks` of the bytes at text[place:] whose bits are set in `inside`.

    `before` is the `Before` of these bytes, of which `letter`, `number` and `space` are read.
    """
    lowers, uppers = (
        byte_range_mask(text, place, 0x61, 0x7A),
        byte_range_mask(text, place, 0x41, 0x5A),
    )
    letters = lowers | uppers
    numbers = byte_range_mask(text, place, 0x30, 0x39)
    blanks = byte_range_mask(text, place, 0x20, 0x20)
    spaces = blanks | byte_range_mask(text, place, 0x09, 0x0D)
    breaks = byte_range_mask(text, place, 0x0A, 0x0A) | byte_range_mask(text, place, 0x0D, 0x0D)
    continued = _0
    wide = byte_range_mask(text, place, 0x80, 0xFF) & inside
    if wide != _0:
        continued = byte_range_mask(text, place, 0x80, 0xBF) & inside
        ideographs = ideograph_mask(text, place)
        letters |= ideographs
        lowers |= ideographs
        uppers |= ideographs
        leads = wide & ~continued & ~letters & ~_wide_punctuation(text, place)
        while leads != _0:
            byte = trailing_zeros(leads)
            leads &= leads - _1
            kind = class_of(classes, decode_word(load_word(text, place + byte)))
            letters |= (kind & _1) << byte
            numbers |= (kind >> _1 & _1) << byte
            spaces |= (kind >> _2 & _1) << byte
            uppers |= (kind >> _UPPER_BIT & _1) << byte
            lowers |= (kind >> _LOWER_BIT & _1) << byte
        letters = _spread(letters, before.letter, continued)
        numbers = _spread(numbers, before.number, continued)
        spaces = _spread(spaces, before.space, continued)
        # Chunks of cased words begin with a token.
        uppers = _spread(uppers, _0, continued)
        lowers = _spread(lowers, _0, continued)
    return _ClassMasks(
        letters & inside,
        numbers & inside,
        spaces & inside,
        inside & ~(letters | numbers | spaces),
        blanks & inside,
        breaks & inside,
        byte_range_mask(text, place, 0x27, 0x27) & inside,
        continued,
        uppers & inside,
        lowers & inside,
    )


@kernel_without_allocation
def next_class(text, place, end, classes):
    """Returns the class of the character at a place, and where it ends; 8 at the end of the text."""
    if place >= end:
        return _END, place
    word = load_word(text, place)
    lead = word & _BYTE
    size = _1
    if lead >= np.uint64(0x80):
        size = np.uint64(2)
        if lead >= np.uint64(0xE0):
            size = np.uint64(4) if lead >= np.uint64(0xF0) else np.uint64(3)
    return class_of(classes, decode_word(word)), min(place + size, end)


@kernel_without_allocation
def _run_end(text, place, end, kind, most, classes):
    """Returns where a run of characters of one class ends, at most `most` characters long."""
    while most > _0:
        next_kind, after = next_class(text, place, end, classes)
        if next_kind != kind:
            break
        place = after
        most -= _1
    return place


@kernel_without_allocation
def _is_break(byte):
    return byte == np.uint8(_CR) or byte == np.uint8(_LF)


@kernel_without_allocation
def token_end(text, place, end, pre_tokenizer):
    """Returns where the token that begins at a place of a text ends; the text ends at `end`."""
    if pre_tokenizer.words == _CASED_WORDS:
        return _cased_token_end(text, place, end, pre_tokenizer)
    if pre_tokenizer.words == _PUNCTUATED_WORDS:
        return _punctuated_token_end(text, place, end, pre_tokenizer)
    if pre_tokenizer.words == _BLANK_WORDS:
        return _blank_token_end(text, place, end, pre_tokenizer)
    if pre_tokenizer.words == _ANY_WORDS:
        return _any_token_end(text, place, end, pre_tokenizer)
    return end


@kernel_without_allocation
def _space_end(text, place, end, classes, ends_at_break):
    """Returns where a token ends that is white space alone, and that line breaks end."""
    last, after_break, at = place, place, place
    while True:
        kind, after = next_class(text, at, end, classes)
        if kind != _SPACE:
            break
        last = at
        if _is_break(text[at]):
            after_break = after
        at = after
    if kind == _END and not ends_at_break:
        return at
    if after_break > place:
        return after_break
    if kind == _END:
        return at
    return last if last > place else at


@kernel_without_allocation
def _blank_token_end(text, place, end, pre_tokenizer):
    """As `token_end`, where words begin after a blank; white space is cut before its last character."""
    classes = pre_tokenizer.classes
    byte = np.uint64(text[place])
    if byte == _APOSTROPHE:
        size = _contraction_size(load_word(text, place), end - place, False)
        if size != _0:
            return place + size
    kind, after = next_class(text, place, end, classes)
    if byte == _BLANK:
        following, _ = next_class(text, after, end, classes)
        if following & (_SPACE | _END) == _0:
            return _run_end(text, after, end, following, _ALL, classes)
    run_end = _run_end(text, after, end, kind, _ALL, classes)
    if kind != _SPACE or run_end == end or run_end == after:
        return run_end
    last = run_end - _1
    while text[last] & np.uint8(0xC0) == np.uint8(0x80):
        last -= _1
    return last


@kernel_without_allocation
def _any_token_end(text, place, end, pre_tokenizer):
    """As `token_end`, where words begin after any character."""
    classes = pre_tokenizer.classes
    byte = np.uint64(text[place])
    if byte == _APOSTROPHE:
        size = _contraction_size(load_word(text, place), end - place, True)
        if size != _0:
            return place + size
    kind, after = next_class(text, place, end, classes)
    if kind == _NUMBER:
        return _run_end(text, place, end, _NUMBER, pre_tokenizer.most_digits, classes)
    following, _ = next_class(text, after, end, classes)
    if kind == _LETTER or (following == _LETTER and not _is_break(text[place])):
        return _run_end(text, after, end, _LETTER, _ALL, classes)
    if kind == _OTHER or (byte == _BLANK and following == _OTHER):
        place = _run_end(text, after, end, _OTHER, _ALL, classes)
        while place < end and _is_break(text[place]):
            place += _1
        return place
    return _space_end(text, place, end, classes, pre_tokenizer.ends_at_break)


@kernel_without_allocation
def _punctuated_token_end(text, place, end, pre_tokenizer):
    """As `token_end`, where words are punctuated; marks are letters."""
    classes = pre_tokenizer.classes
    byte = np.uint64(text[place])
    kind, after = next_class(text, place, end, classes)
    if kind == _END:  # of a text: here a number begins
        return _run_end(text, place, end, _END, pre_tokenizer.most_digits, classes)
    following, _ = next_class(text, after, end, classes)
    if kind == _PUNCTUATION and byte < np.uint64(0x80) and following == _LETTER:
        while after < end and _is_ascii_letter(text[after]):
            after += _1
        return after
    if kind == _LETTER or (
        following == _LETTER and kind != _PUNCTUATION and not _is_break(text[place])
    ):
        return _run_end(text, after, end, _LETTER, _ALL, classes)
    if kind == _PUNCTUATION or (byte == _BLANK and following == _PUNCTUATION):
        place = _run_end(text, after, end, _PUNCTUATION, _ALL, classes)
        while place < end and _is_break(text[place]):
            place += _1
        return place
    if kind == _SPACE:
        return _space_end(text, place, end, classes, pre_tokenizer.ends_at_break)
    # No alternative begins here, and so with what follows, but for one character before letters.
    while following & (_LETTER | _PUNCTUATION | _SPACE | _END) == _0:
        place = after
        _, after = next_class(text, place, end, classes)
        following, _ = next_class(text, after, end, classes)
        if following == _LETTER:
            return place
    return after


@kernel_without_allocation
def _is_ascii_letter(byte):
    return np.uint8(0x61) <= byte | np.uint8(0x20) <= np.uint8(0x7A)


@kernel_without_allocation
def _cased_ends(text, place, end, classes):
    """Returns where capital letters and then small ones end, and where capital letters alone do.

    The first is `place` where there are no small ones. Both are of the longest run: of letters
    without case as many as possible count as capital ones, and the last one as a small one if no
    small letter follows.
    """
    small_end = place
    while True:
        kind, after = next_class(text, place, end, classes)
        if kind & _UPPER == _0:
            break
        place = after
        if kind & _LOWER != _0:
            small_end = place
    upper_end = place
    while kind & _LOWER != _0:
        place = small_end = after
        kind, after = next_class(text, place, end, classes)
    return small_end, upper_end


@kernel_without_allocation
def _cased_word_end(text, place, after, kind, end, classes):
    """Returns where the word ends that begins at a place with a character of a kind, else `place`."""
    if kind & _LETTER != _0:
        small_end, upper_end = _cased_ends(text, place, end, classes)
        return small_end if small_end > place else upper_end
    # One character that is not a letter may be before the word, also a mark.
    small_end, upper_end = _cased_ends(text, after, end, classes)
    if small_end > after:
        return small_end
    if kind & _LOWER != _0:
        return _cased_ends(text, place, end, classes)[0]
    return upper_end if upper_end > after else place


@kernel_without_allocation
def _cased_token_end(text, place, end, pre_tokenizer):
    """As `token_end`, where words are cased."""
    classes = pre_tokenizer.classes
    kind, after = next_class(text, place, end, classes)
    if kind == _NUMBER:
        return _run_end(text, place, end, _NUMBER, pre_tokenizer.most_digits, classes)
    if not _is_break(text[place]):
        word_end = _cased_word_end(text, place, after, kind, end, classes)
        if word_end > place:
            if (
                pre_tokenizer.ends_in_contraction
                and word_end < end
                and np.uint64(text[word_end]) == _APOSTROPHE
            ):
                word_end += _contraction_size(load_word(text, word_end), end - word_end, True)
            return word_end
    others = after
    if kind == _SPACE and np.uint64(text[place]) == _BLANK:
        kind, others = next_class(text, after, end, classes)
    if kind & (_LETTER_NUMBER_SPACE | _END) == _0:
        while kind & (_LETTER_NUMBER_SPACE | _END) == _0:
            place = others
            kind, others = next_class(text, place, end, classes)
        while place < end and (_is_break(text[place]) or np.uint64(text[place]) == _SLASH):
            place += _1
        return place
    return _space_end(text, place, end, classes, pre_tokenizer.ends_at_break)


def character_classes(rules: PatternRules) -> CharacterClasses:
    """Returns the classes by this Python's tables: categories L* and N*, and `WHITE_SPACE`.

    Where words are cased, letters and marks have the bits `UPPER` and `LOWER`. Where they are punctuated,
    P* and S* are `PUNCTUATION`, and with `most_digits` a number is what the end of a text is.
    """
    is_punctuated = rules.words == 'punctuated'
    majors, minors = category_table().T
    letters, marks = majors == ord('L'), majors == ord('M')
    number = int(_END) if is_punctuated and rules.most_digits else NUMBER
    table = LETTER * letters + number * (majors == ord('N'))
    if rules.marks_are_letters:
        table[marks] = LETTER
    if rules.words == 'cased':
        is_small = letters & (minors == ord('l'))
        is_capital = letters & ((minors == ord('u')) | (minors == ord('t')))
        table += UPPER * (letters & ~is_small | marks) + LOWER * (letters & ~is_capital | marks)
    if is_punctuated:
        table += PUNCTUATION * ((majors == ord('P')) | (majors == ord('S')))
    table[[ord(character) for character in WHITE_SPACE]] = SPACE
    return stored_classes(table)


def stored_classes(table: np.ndarray) -> CharacterClasses:
    """Returns the classes of all code points, below 256 each."""
    rows = table.astype(np.uint8).view(f'V{_BLOCK}')  # as strings of bytes, which sort much faster
    blocks, index = np.unique(rows, return_inverse=True)
    return CharacterClasses(read_only(index.astype(np.uint8)), read_only(blocks.view(np.uint8)))


@kernel_without_allocation
def class_of(classes, code):
    """Returns the class of a code point; both are uint64."""
    block = np.uint64(classes.block_numbers[code >> _BLOCK_BITS])
    return np.uint64(classes.blocks[(block << _BLOCK_BITS) + (code & _IN_BLOCK)])


class Before(NamedTuple):
    """What borders in a chunk depend on in the bytes before it, uint64; all 0 at a token's start."""

    letter: np.uint64  # the class of the byte before: 1 or 0
    number: np.uint64
    space: np.uint64  # which is not in the token of others
    other: np.uint64
    blank: np.uint64  # it is U+0020
    joins: np.uint64  # letters that follow are in the token of the byte before
    absorbed: np.uint64  # it is a line break in the token of others
    numbers: np.uint64  # three bits, the last byte highest: numbers
    thirds: np.uint64  # likewise: numbers that begin tokens
    contraction_ends: np.uint64  # bits of the chunk


@kernel_without_allocation
def _nothing_before():
    """Returns the `Before` of a token's first byte."""
    return Before(_0, _0, _0, _0, _0, _0, _0, _0, _0, _0)


@kernel_without_allocation
def _contraction_size(word, left, any_case):
    """Returns the size of the contraction at the start of a little-endian word, 0 if there is none.

    The first byte is an apostrophe; `left` is the number of bytes left in the row.
    """
    one, two = word >> _8 & _BYTE, word >> _8 & _TWO_BYTES
    if any_case:
        if two == _LONG_S and left >= _3:
            return _3
        one |= _LOWERED
        two |= _LOWERED_TWO
    if left >= _2 and (one == _S or one == _T or one == _M or one == _D):
        return _2
    if left >= _3 and (two == _LL or two == _VE or two == _RE):
        return _3
    return _0


@kernel_without_allocation
def _contractions(text, place, left, candidates, any_case):
    """Returns bits: the apostrophes that begin contractions, and where these end within the row."""
    apostrophes = ends = _0
    while candidates != _0:
        byte = trailing_zeros(candidates)
        candidates &= candidates - _1
        size = _contraction_size(load_word(text, place + byte), left - byte, any_case)
        if size != _0:
            apostrophes |= _1 << byte
            if byte + size < left:
                ends |= _1 << (byte + size)
    return apostrophes, ends


@kernel_without_allocation
def _last_spaces(masks, nonspaces):
    """Returns bits: where the last character of white space begins, if something follows."""
    last = masks.spaces & (nonspaces >> _1)
    if masks.continued != _0:
        last = (last & ~masks.continued) | (last & masks.continued) >> _1
        last = (last & ~masks.continued) | (last & masks.continued) >> _1
    return last


@kernel_without_allocation
def _carried(masks, absorbed, joins, thirds, contraction_ends):
    """Returns the `Before` of the next chunk."""
    return Before(
        masks.letters >> _LAST & _1,
        masks.numbers >> _LAST & _1,
        (masks.spaces & ~absorbed) >> _LAST & _1,
        masks.others >> _LAST & _1,
        masks.blanks >> _LAST & _1,
        joins >> _LAST & _1,
        absorbed >> _LAST & _1,
        masks.numbers >> _LAST_THREE & _THREE_BITS,
        thirds >> _LAST_THREE & _THREE_BITS,
        contraction_ends >> np.uint64(STRIDE),
    )


@kernel_without_allocation
def _borders_after_blanks(text, place, left, decided, masks, before):
    """Returns the bits of the bytes at which tokens begin, and the `Before` of the next chunk.

    `masks` are those of the bytes at text[place:], and `left` bytes are left of the row. Only the
    bits in `decided` are final.
    """
    after_letter = masks.letters << _1 | before.letter
    after_number = masks.numbers << _1 | before.number
    after_other = masks.others << _1 | before.other
    nonspaces = masks.letters | masks.numbers | masks.others
    after_space = masks.spaces << _1 | before.space
    after_blank = masks.blanks << _1 | before.blank
    starts = (
        (masks.letters & ~after_letter)
        | (masks.numbers & ~after_number)
        | (masks.others & ~after_other)
    ) & ~after_blank
    apostrophes, contraction_ends = _0, before.contraction_ends
    candidates = masks.apostrophes & starts & masks.letters >> _1 & decided
    if candidates != _0:
        apostrophes, ends = _contractions(text, place, left, candidates, False)
        contraction_ends |= ends
    starts &= ~(masks.letters & (apostrophes << _1 | before.joins))
    starts |= masks.spaces & ~after_space | _last_spaces(masks, nonspaces) | contraction_ends
    return starts, _carried(masks, _0, apostrophes, _0, contraction_ends)


@kernel_without_allocation
def _thirds(masks, before):
    """Returns bits: the numbers that begin tokens, every third of a run; a number is one byte."""
    one = masks.numbers << _1 | before.numbers >> _2
    three = masks.numbers << _3 | before.numbers
    thirds = masks.numbers & ~one
    fourth = masks.numbers & one & (masks.numbers << _2 | before.numbers >> _1) & three
    if fourth != _0:
        more = (thirds << _3 | before.thirds) & fourth
        while more != _0:
            thirds |= more
            more = more << _3 & fourth
    return thirds


@kernel_without_allocation
def _cut_at_breaks(spaces, breaks, before_space, decided, is_end, pre_tokenizer):
    """Returns where white space begins, also after line breaks; the bits that are decided; and if one ends them.

    Args:
        spaces: the bits of white space that is not in the token of others.
        breaks: the line breaks among them.
        before_space: whether the byte before the first is such white space.
        decided: bits from the first on.
        is_end: whether the text ends with the bits, if it is not punctuated.
        pre_tokenizer: the `PatternText`.

    White space with line breaks that may be cut elsewhere, because of what follows, is decided up to
    where it begins; nothing is decided if that is not after the first byte.
    """
    starts = spaces & ~(spaces << _1 | before_space)
    if breaks == _0:
        return starts, decided, False
    resumes = False
    last = decided & ~(decided >> _1)
    if last & spaces != _0:
        start = starts & decided
        while start & (start - _1) != _0:
            start &= start - _1  # the last one
        goes_on = last & spaces >> _1 != _0 or (is_end and not pre_tokenizer.ends_at_break)
        if goes_on and breaks & decided & ~(max(start, _1) - _1) != _0:
            decided, resumes = (start << _1) - _1 if start > _1 else _0, True
    rest = spaces & ~breaks
    after_breaks = rest & breaks << _1
    if (rest + after_breaks) & breaks == _0:
        return starts | after_breaks, decided, resumes
    while after_breaks != _0:
        after_break = after_breaks & (~after_breaks + _1)
        after_breaks &= after_breaks - _1
        if (rest + after_break) & breaks == _0:
            starts |= after_break
    return starts, decided, resumes


@kernel_without_allocation
def _borders_after_any(text, place, left, decided, masks, before, pre_tokenizer):
    """Returns what `_borders_after_blanks` does, and between them which bits are decided, and if they resume.

    They may be fewer, or none. The next chunk begins at the last border if they resume. Contractions
    are found in `_ANY_WORDS` alone. Numbers are one byte unless each is a token.
    """
    words, most_digits = pre_tokenizer.words, pre_tokenizer.most_digits
    after_letter = masks.letters << _1 | before.letter
    after_other = masks.others << _1 | before.other
    # Adding a bit carries through the line breaks from there on.
    first_absorbed = masks.breaks & (after_other | before.absorbed)
    absorbed = (masks.breaks + first_absorbed ^ masks.breaks) & masks.breaks
    spaces, decided, resumes = _cut_at_breaks(
        masks.spaces & ~absorbed, masks.breaks & ~absorbed, before.space, decided, left <= _CHUNK,
        pre_tokenizer,
    )  # fmt: skip
    if words == _CASED_WORDS and absorbed != _0:
        # Slashes are in the token too, and more line breaks after them.
        if byte_range_mask(text, place, 0x2F, 0x2F) & absorbed << _1 != _0:
            decided = _0
    nonspaces = masks.letters | masks.others
    if words != _PUNCTUATED_WORDS:  # there a text ends before a number
        nonspaces |= masks.numbers
    after_blank = masks.blanks << _1 | before.blank
    others = masks.others & ~after_other & ~after_blank
    contraction_ends = before.contraction_ends
    candidates = masks.apostrophes & others & masks.letters >> _1 & decided
    if words == _ANY_WORDS and candidates != _0:
        _, ends = _contractions(text, place, left, candidates, True)
        contraction_ends |= ends
    joins = others | masks.spaces & ~masks.breaks
    if masks.continued != _0:
        # From the first byte of a character to all of them.
        joins |= (joins << _1 | before.joins) & masks.continued
        joins |= (joins << _1 | before.joins) & masks.continued
        joins |= (joins << _1 | before.joins) & masks.continued
    letters = masks.letters & ~after_letter & ~(joins << _1 | before.joins)
    thirds = _thirds(masks, before) if most_digits != _1 else masks.numbers & ~masks.continued
    starts = letters | thirds | others | spaces | contraction_ends
    starts |= _last_spaces(masks, nonspaces) & ~masks.breaks
    return starts, decided, resumes, _carried(masks, absorbed, joins, thirds, contraction_ends)


@kernel_without_allocation
def _borders_in_chunk(text, place, left, pre_tokenizer):
    """Returns bits: where tokens begin in text[place:], after the one at `place`, and if these are all.

    Of cased words; `left` bytes are left of the text.
    """
    inside = _ALL if left >= _CHUNK else (_1 << left) - _1
    decided = inside if left <= _CHUNK else (_1 << _STRIDE) - _1
    before = _nothing_before()
    masks = _class_masks(text, place, inside, before, pre_tokenizer.classes)
    if _needs_one_by_one(masks, pre_tokenizer.most_digits):
        return _0, False
    borders, decided, _, _ = _borders_after_any(
        text, place, left, decided, masks, before, pre_tokenizer
    )
    only_uppers = masks.uppers & ~masks.lowers & ~masks.continued
    words = only_uppers & (masks.lowers & ~masks.uppers) << _1
    # Marks are not letters here.
    unclear = masks.uppers & ~masks.letters | only_uppers & (masks.lowers & masks.uppers) << _1
    borders |= words
    if pre_tokenizer.ends_in_contraction:
        candidates = masks.apostrophes & masks.letters << _1 & masks.letters >> _1 & decided
        if candidates != _0:
            apostrophes, ends = _contractions(text, place, left, candidates, True)
            borders = borders & ~apostrophes | ends
            # The second of two contractions is a word, and capital letters may be in the first.
            unclear |= masks.apostrophes & ends | words & apostrophes << _2
    if unclear != _0 or decided == _0:
        return _0, False
    return borders & decided & ~_1, True


@kernel_without_allocation
def _controls(text, place):
    return byte_range_mask(text, place, 0x00, 0x1F) | byte_range_mask(text, place, 0x7F, 0x7F)
