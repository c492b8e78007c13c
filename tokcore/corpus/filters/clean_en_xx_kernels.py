"""The tests of `clean_en_xx` as kernels: one pass over an English text of UTF-8.

Bit t of what they return is test number t of `plain_clean_en_xx.TESTS`, from 0. Of a text with one
double quote it does not matter where that is: the sixth and the seventh test find none but what the
fifth has found, and have no bit.
"""

import functools

import numpy as np

from tokcore.compiled.byte_masks import trailing_zeros
from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.corpus.filters.plain_clean_en_xx import DOUBLE_QUOTES, SINGLE_QUOTES
from tokcore.text.unicode_tables import alphanumeric_table, category_table, whitespace_table
from tokcore.text.utf8 import next_character

WORD, _SPACE, _DIGIT, _DOUBLE, _SINGLE, _MARK, _OTHER, CUT = 1, 2, 4, 8, 16, 32, 64, 128
_RARE = _DIGIT | _DOUBLE | _SINGLE | _MARK | _OTHER

_START, _END, _LABEL, _DIGITS, _ONE_QUOTE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4
_QUOTED, _MANY, _MANY_SINGLE, _TOGETHER, _LONE = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11
_COPYRIGHT, _LEFT, _RIGHT, _CITY, _UNDERSCORE = 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16

_LINE_FEED, _BLANK, _DASH, _STOP, _COLON = 0x0A, 0x20, 0x2D, 0x2E, 0x3A
_OPENED, _CLOSED, _SMALL_S, _SMALL_T, _SIGN = 0x28, 0x29, 0x73, 0x74, 0xA9
_COPYRIGHT_WORD, _COPYRIGHT_LETTER = tuple(b'Copyright'), tuple(b'(C)')
_THREE = 1 << 3


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
