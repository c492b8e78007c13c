"""`clean_en_xx` as kernels: both sides are cut into sentences, and the English is tested.

One pass over an English text gives a bit per test: bit t is test number t of
`plain_clean_en_xx.TESTS`, from 0. Where the one double quote of a text stands does not matter: the
sixth and the seventh test find only what the fifth has found, and have no bit.
"""

import functools

import numpy as np

from tokcore.corpus.filters.plain_clean_en_xx import DOUBLE_QUOTES, SINGLE_QUOTES
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import trailing_zeros
from tokcore.text.rows import Side
from tokcore.text.unicode import (
    alphanumeric_table,
    category_table,
    next_character,
    whitespace_table,
)

_LINE_FEED, _BLANK, _DASH, _STOP, _COLON = 0x0A, 0x20, 0x2D, 0x2E, 0x3A

_BAR, _UNDERSCORE_BYTE = 124, 95

WORD, _SPACE, _DIGIT, _DOUBLE, _SINGLE, _MARK, _OTHER, CUT = 1, 2, 4, 8, 16, 32, 64, 128
_RARE = _DIGIT | _DOUBLE | _SINGLE | _MARK | _OTHER

_START, _END, _LABEL, _DIGITS, _ONE_QUOTE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4
_QUOTED, _MANY, _MANY_SINGLE, _TOGETHER, _LONE = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
_COPYRIGHT, _LEFT, _RIGHT, _CITY, _UNDERSCORE = 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16

_OPENED, _CLOSED, _SMALL_S, _SMALL_T, _SIGN = 0x28, 0x29, 0x73, 0x74, 0xA9
_COPYRIGHT_WORD, _COPYRIGHT_LETTER = tuple(b'Copyright'), tuple(b'(C)')
_THREE = 1 << 3


def clean_pairs(english: Side, other: Side) -> tuple[Side, Side, np.ndarray, np.ndarray]:
    """Returns the pairs that come of some pairs, the numbers of those, and which are wanted.

    Sides, which share the texts that are given; int64[pairs]; bool[pairs], where only sentences of
    pairs that were cut can be unwanted.
    """
    passed = np.flatnonzero(failed_tests(english) == 0)
    sides = _taken(english, passed), _taken(other, passed)
    counts, others = _counts(sides[0], True), _counts(sides[1], False)
    as_many = np.flatnonzero(counts == others)
    rows, counts = passed[as_many], counts[as_many]
    sides = _taken(sides[0], as_many), _taken(sides[1], as_many)
    several = np.flatnonzero(counts > 1)
    if not len(several):
        return *sides, rows, np.ones(len(rows), bool)
    english, other = _cut(sides[0], several, counts, True), _cut(sides[1], several, counts, False)
    is_wanted = np.ones(len(english), bool)
    is_piece = np.repeat(counts > 1, counts)
    is_wanted[is_piece] = failed_tests(_taken(english, is_piece)) == 0
    return english, other, np.repeat(rows, counts), is_wanted


def failed_tests(english: Side) -> np.ndarray:
    """Returns uint8[rows], 0 for rows that no test drops.

    Else the number, from 1, of the first in `plain_clean_en_xx.TESTS` by which a row is dropped.
    """
    tests = np.empty(len(english), np.uint8)
    first_tests(*_arrays(english), english_classes(), tests)
    return tests


def _taken(side: Side, rows: np.ndarray) -> Side:
    return side.take(rows)


def _arrays(side: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return read_only(side.text), read_only(side.starts), read_only(side.ends)


def _counts(side: Side, is_english: bool) -> np.ndarray:
    counts = np.empty(len(side), np.int64)
    count_sentences(*_arrays(side), is_english, english_classes(), counts)
    return counts


def _cut(side: Side, several: np.ndarray, counts: np.ndarray, is_english: bool) -> Side:
    """The rows with those that are of several sentences cut into these."""
    text, *rows = _arrays(_taken(side, several))
    size = int(counts[several].sum())
    pieces = np.empty(size, np.int64), np.empty(size, np.int64)
    cut_sentences(text, tuple(rows), is_english, english_classes(), pieces)
    is_piece = np.repeat(counts > 1, counts)
    starts, ends = np.repeat(side.starts, counts), np.repeat(side.ends, counts)
    starts[is_piece], ends[is_piece] = pieces
    return Side(side.text, starts, ends)


@kernel_without_allocation
def count_sentences(text, starts, ends, is_english, classes, counts):
    """Fills in of how many sentences each row is: 1 if it is not cut.

    `text` uint8[...], rows of valid UTF-8, `classes` as of `english_classes`, `counts` int64[rows].
    """
    for row in range(len(starts)):
        count = 0
        begin = taken = starts[row]
        while begin >= 0:
            _, begin, taken = _next_cut(text, begin, taken, ends[row], is_english, classes)
            count += 1
        counts[row] = count


@kernel_without_allocation
def cut_sentences(text, rows, is_english, classes, pieces):
    """Fills in all sentences of some rows, one after another.

    `rows` and `pieces` are (starts, ends), int64[...] each.
    """
    starts, ends = rows
    piece_starts, piece_ends = pieces
    piece = 0
    for row in range(len(starts)):
        begin = taken = starts[row]
        while begin >= 0:
            piece_starts[piece] = begin
            stop, begin, taken = _next_cut(text, begin, taken, ends[row], is_english, classes)
            piece_ends[piece] = stop
            piece += 1


@kernel_without_allocation
def _next_cut(text, begin, taken, end, is_english, classes):
    """Where the sentence that begins at `begin` ends, where the next begins, and the new `taken`.

    The last of a row ends with it, and the next begins at -1. `taken` is the end of what has told
    the sentences before apart: it tells no others.
    """
    for place in range(begin, end - 2):
        byte = text[np.uint64(place)]
        if not classes[byte] & CUT:
            continue
        if byte != _BAR:
            if text[place + 1] == _BLANK and is_capital(text[place + 2]):
                if _ends_sentence(text, taken, place, is_english, classes):
                    return place + 1, place + 2, place + 3
        elif place - 2 >= begin:
            if _is_underscores(text, place - 2) and _is_underscores(text, place + 1):
                return place - 2, place + 3, taken
    return end, -1, taken


@kernel_without_allocation
def _is_underscores(text, place):
    return text[place] == _UNDERSCORE_BYTE and text[place + 1] == _UNDERSCORE_BYTE


@kernel_without_allocation
def _ends_sentence(text, taken, mark, is_english, classes):
    """Whether text[taken:mark] goes before the mark at a sentence's end."""
    last = mark - 1
    if last < taken:
        return False
    byte = text[last]
    is_digit = 0x30 <= byte <= 0x39
    if not is_english:
        return not is_digit
    if is_capital(byte):
        # One capital alone is an initial.
        return last > taken and classes[character_before(text, taken, last)[0]] & WORD != 0
    return is_digit or 0x61 <= byte <= 0x7A


@functools.cache
def english_classes() -> np.ndarray:
    r"""Returns uint8[0x110000], bits that say what a character is.

    `WORD` is a regular expression's `\w`, by this Python's tables, and `CUT` what stands where
    sentences are told apart.
    """
    category = category_table()
    table = WORD * alphanumeric_table() + _SPACE * whitespace_table()
    table[(category == np.frombuffer(b'Nd', np.uint8)).all(axis=1)] |= _DIGIT
    characters_of = {
        WORD: '_', _DOUBLE: DOUBLE_QUOTES, _SINGLE: SINGLE_QUOTES, _MARK: ',:;', _OTHER: '()©\n',
        CUT: '.!?|',
    }  # fmt: skip
    for kind, characters in characters_of.items():
        table[[ord(each) for each in characters]] |= kind
    return read_only(table)


@kernel_without_allocation
def first_tests(text, starts, ends, classes, tests):
    """Fills in the first test by which each English row is dropped, counted from 1, or 0.

    `text` uint8[...], rows of valid UTF-8, `classes` as of `english_classes`, `tests` uint8[rows].
    """
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        # Most are dropped by these, of which a few bytes decide.
        found = find_at_ends(text, start, end, classes)
        if not found:
            found = find_at_beginning(text, start, end, classes)
            found |= find_anywhere(text, start, end, classes)
        tests[row] = trailing_zeros(np.uint64(found)) + 1 if found else 0


@kernel_without_allocation
def is_capital(byte):
    """Whether it is A to Z."""
    return 0x41 <= byte <= 0x5A


@kernel_without_allocation
def character_before(text, start, place):
    """The last character of text[start:place], which is not empty, and where it begins."""
    place -= 1
    while place > start and text[place] & 0xC0 == 0x80:
        place -= 1
    return next_character(text, place)[0], place


@kernel_without_allocation
def find_at_ends(text, start, end, classes):
    """Whether a text begins and ends as no sentence does: the first two tests."""
    found = _START | _END
    if start == end:
        return found
    first, place = next_character(text, start)
    if classes[first] & _DOUBLE and place < end:
        first = text[place]
    if is_capital(first):
        found &= ~_START
    if text[end - 1] == _LINE_FEED:
        end -= 1
    if end - start < 2:
        return found
    last, before = character_before(text, start, end)
    # The opening one closes nothing.
    if classes[last] & _DOUBLE and last != 0x201C and before > start:
        last, before = character_before(text, start, before)
    if (last == _STOP or last == 0x3F or last == 0x21) and before > start:
        if classes[character_before(text, start, before)[0]] & WORD:
            found &= ~_END
    return found


@kernel_without_allocation
def _behind(text, place, end, classes, kind):
    """The end of the run of characters of a class in text[place:end]."""
    while place < end:
        character, behind = next_character(text, place)
        if not classes[character] & kind:
            break
        place = behind
    return place


@kernel_without_allocation
def _behind_range(text, place, end, lowest, highest):
    """The end of the run of bytes from `lowest` to `highest` in text[place:end]."""
    while place < end and lowest <= text[place] <= highest:
        place += 1
    return place


@kernel_without_allocation
def find_at_beginning(text, start, end, classes):
    """What an English text begins with: the tests for labels, copyright, cities, underscores."""
    found = 0
    if _has_label(text, start, end, classes):
        found |= _LABEL
    if _begins(text, start, end, _COPYRIGHT_WORD) or _begins(text, start, end, _COPYRIGHT_LETTER):
        found |= _COPYRIGHT
    capitals = _behind_range(text, start, end, 0x41, 0x5A)
    if capitals == start:
        return found
    lower = _behind_range(text, capitals, end, 0x61, 0x7A)
    if lower < end and text[lower] == 0x5F:
        found |= _UNDERSCORE
    if capitals - start > 1 and _is_city(text, capitals, end, classes):
        found |= _CITY
    return found


@kernel_without_allocation
def _begins(text, start, end, beginning):
    """Whether text[start:end] begins with these bytes."""
    if end - start < len(beginning):
        return False
    for place in range(len(beginning)):
        if text[start + place] != beginning[place]:
            return False
    return True


@kernel_without_allocation
def _has_label(text, start, end, classes):
    r"""Whether `\w+\.?( \w+)?: ` begins the text."""
    place = _behind(text, start, end, classes, WORD)
    if place == start:
        return False
    if place < end and text[place] == _STOP:
        place += 1
    if place < end and text[place] == _BLANK:
        second = place + 1
        place = _behind(text, second, end, classes, WORD)
        if place == second:
            return False
    return place + 1 < end and text[place] == _COLON and text[place + 1] == _BLANK


@kernel_without_allocation
def _is_city(text, place, end, classes):
    r"""Whether `(\s+[A-Z]+)*\s+-` goes on behind capitals that end at `place`."""
    while True:
        gap = _behind(text, place, end, classes, _SPACE)
        if gap == place or gap == end:
            return False
        if text[gap] == _DASH:
            return True
        place = _behind_range(text, gap, end, 0x41, 0x5A)
        if place == gap:
            return False


@kernel_without_allocation
def find_anywhere(text, start, end, classes):
    """The tests for digits, quotes, marks and parentheses anywhere in an English text."""
    found = 0
    # Where the last digit ends, the last quote of any kind, the last double quote.
    digit = quote = double = end
    quotes = in_line = 0
    is_quoted = is_open = was_open = is_broken = False
    # Bit k of `reached`: k single quotes are behind, each with what follows it; of `waiting`: what
    # follows the next one would be this character.
    reached, waiting = 1, 0
    line_end = end - 1 if start < end and text[end - 1] == _LINE_FEED else end
    behind = start
    while behind < end:
        position = behind
        character, behind = next_character(text, position)
        kind = classes[np.uint64(character)]
        # Blanks are none of these: a branch that now and then is taken is guessed wrong as often.
        if not (kind & _RARE or waiting):
            continue
        before = reached
        if character == _LINE_FEED:
            reached = 1
            in_line = 0
            is_broken |= position < line_end
        if character != _SMALL_S and character != _SMALL_T:
            reached |= waiting << 1
        if reached & _THREE:
            found |= _MANY_SINGLE
        waiting = before if kind & _SINGLE else 0
        if kind & _DIGIT:
            if digit < position and _is_blank(text, digit, position):
                found |= _DIGITS
            digit = behind
        elif kind & (_DOUBLE | _SINGLE | _MARK):
            if _is_alone(text, position, behind, (start, end), classes):
                found |= _LONE
            if not kind & _MARK:
                if quote <= position:
                    gap_end = _behind(text, quote, position, classes, _SPACE)
                    found |= _TOGETHER if gap_end == position else 0
                quote = behind
            if kind & _DOUBLE:
                is_quoted |= position == start
                double = behind
                quotes += 1
                in_line += 1
                if in_line > 2:
                    found |= _MANY
        elif character == _OPENED:
            is_open = was_open = True
        elif character == _CLOSED:
            is_open = False
            if not was_open:
                found |= _RIGHT
        elif character == _SIGN:
            found |= _COPYRIGHT
    is_quoted &= double == line_end and not is_broken
    return found | _found_in_whole(quotes, is_open, is_quoted)


@kernel_without_allocation
def _found_in_whole(quotes, is_open, is_quoted):
    """The tests that a whole text decides, of what was counted in it."""
    found = _LEFT if is_open else 0
    if quotes == 1:
        return found | _ONE_QUOTE
    return found | _QUOTED if is_quoted else found


@kernel_without_allocation
def _is_blank(text, place, end):
    """Whether text[place:end] is blanks alone."""
    while place < end and text[place] == _BLANK:
        place += 1
    return place == end


@kernel_without_allocation
def _is_alone(text, place, behind, row, classes):
    """Whether white space is on both sides of the character text[place:behind] of a row."""
    start, end = row
    if place == start or behind == end:
        return False
    if not classes[np.uint64(next_character(text, behind)[0])] & _SPACE:
        return False
    return classes[np.uint64(character_before(text, start, place)[0])] & _SPACE != 0
