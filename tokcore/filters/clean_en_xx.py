"""`clean_en_xx`, Tensor2Tensor's cleaning of pairs with an English side, as kernels.

The tests look at the English side alone. Then both sides are split into sentences, and a pair with
equally many sentences on both sides becomes that many pairs. One pass over an English text gives a bit
for each test, in the original's order. Its tests of a single quote at either end have no bit, since
whatever fails them fails the test for one quote before.
"""

import functools
import unicodedata
from dataclasses import dataclass

import numpy as np

from tokcore.corpus.corpus import Filtered, RowFilter
from tokcore.filters.rules import require_pairs
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import trailing_zeros
from tokcore.text.rows import Side
from tokcore.text.unicode import (
    alphanumeric_table,
    category_table,
    next_character,
    whitespace_table,
)

DOUBLE_QUOTES, SINGLE_QUOTES = '"“”', "'‘’"

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


@dataclass(frozen=True)
class CleanEnXx(RowFilter):
    """Drops pairs whose English does not look like a sentence, and splits others into sentences.

    As `clean_en_xx_pairs` of `data_generators/cleaner_en_xx.py` does, which on Python 3 fails where
    a pair becomes several. Sentences are slices of the text, not
    stripped; one of the other side may be empty if the text has the original's marker.

    Attributes:
        english: the number of the English side; the original's is always the first.
    """

    name = 'clean_en_xx'
    makes_several = True

    english: int = 0

    @property
    def stamp(self) -> str:
        """The version of Unicode: which characters are letters, digits and white space."""
        return f'Unicode {unicodedata.unidata_version}'

    def apply(self, sides: tuple[Side, ...]) -> Filtered:
        """Raises InputError for rows of one side."""
        require_pairs(self.name, sides)
        english, other, rows, is_kept = clean_pairs(sides[self.english], sides[1 - self.english])
        cleaned = (other, english) if self.english else (english, other)
        return Filtered(cleaned, rows, is_kept)


def clean_pairs(english: Side, other: Side) -> tuple[Side, Side, np.ndarray, np.ndarray]:
    """Returns the cleaned pairs, and which of them are kept.

    Returns:
        english, other: the texts, slices of the arguments.
        rows: int64[cleaned pairs], the number of the pair that each was made from.
        is_kept: bool[cleaned pairs]; False only for sentences of a pair that was split.
    """
    passed = np.flatnonzero(failed_tests(english) == 0)
    english, other = english.take(passed), other.take(passed)
    counts = _sentence_counts(english, True)
    is_aligned = counts == _sentence_counts(other, False)
    rows, counts = passed[is_aligned], counts[is_aligned]
    english, other = english.take(is_aligned), other.take(is_aligned)
    if not (counts > 1).any():
        return english, other, rows, np.ones(len(rows), bool)
    english, other = _split(english, counts, True), _split(other, counts, False)
    is_sentence = np.repeat(counts > 1, counts)
    is_kept = np.ones(len(english), bool)
    is_kept[is_sentence] = failed_tests(english.take(is_sentence)) == 0
    return english, other, np.repeat(rows, counts), is_kept


def failed_tests(english: Side) -> np.ndarray:
    """Returns uint8[rows]: the number, from 1, of the first test that a row fails, else 0."""
    tests = np.empty(len(english), np.uint8)
    _first_tests(*english.arrays(), english_classes(), tests)
    return tests


def _sentence_counts(side: Side, is_english: bool) -> np.ndarray:
    counts = np.empty(len(side), np.int64)
    _count_sentences(*side.arrays(), is_english, english_classes(), counts)
    return counts


def _split(side: Side, counts: np.ndarray, is_english: bool) -> Side:
    """Returns the rows, those of several sentences split; `counts` has the sentences of each."""
    text, *rows = side.take(counts > 1).arrays()
    is_sentence = np.repeat(counts > 1, counts)
    size = int(np.count_nonzero(is_sentence))
    sentences = np.empty(size, np.int64), np.empty(size, np.int64)
    _split_sentences(text, tuple(rows), is_english, english_classes(), sentences)
    starts, ends = np.repeat(side.starts, counts), np.repeat(side.ends, counts)
    starts[is_sentence], ends[is_sentence] = sentences
    return Side(side.text, starts, ends)


@kernel_without_allocation
def _count_sentences(text, starts, ends, is_english, classes, counts):
    """Fills in the number of sentences of each row, at least 1.

    `text` is uint8[...] with rows of valid UTF-8, `classes` is of `english_classes`, `counts` is
    int64[rows].
    """
    for row in range(len(starts)):
        count = 0
        begin = matched = starts[row]
        while begin >= 0:
            _, begin, matched = _next_cut(text, begin, matched, ends[row], is_english, classes)
            count += 1
        counts[row] = count


@kernel_without_allocation
def _split_sentences(text, rows, is_english, classes, sentences):
    """Fills in all sentences of some rows, one after another.

    `rows` and `sentences` are (starts, ends), int64[...] each.
    """
    starts, ends = rows
    sentence_starts, sentence_ends = sentences
    sentence = 0
    for row in range(len(starts)):
        begin = matched = starts[row]
        while begin >= 0:
            sentence_starts[sentence] = begin
            stop, begin, matched = _next_cut(text, begin, matched, ends[row], is_english, classes)
            sentence_ends[sentence] = stop
            sentence += 1


@kernel_without_allocation
def _next_cut(text, begin, matched, end, is_english, classes):
    """Returns where the sentence at `begin` ends, where the next begins (-1: none), and `matched`.

    `matched` is the end of the last match of the original's expression: matches do not overlap.
    """
    for place in range(begin, end - 2):
        byte = text[np.uint64(place)]
        if not classes[byte] & CUT:
            continue
        if byte != _BAR:
            if text[place + 1] == _BLANK and is_capital(text[place + 2]):
                if _ends_sentence(text, matched, place, is_english, classes):
                    return place + 1, place + 2, place + 3
        elif place - 2 >= begin:
            if _is_underscores(text, place - 2) and _is_underscores(text, place + 1):
                return place - 2, place + 3, matched
    return end, -1, matched


@kernel_without_allocation
def _is_underscores(text, place):
    return text[place] == _UNDERSCORE_BYTE and text[place + 1] == _UNDERSCORE_BYTE


@kernel_without_allocation
def _ends_sentence(text, matched, mark, is_english, classes):
    """Whether the punctuation mark after text[matched:mark] ends a sentence."""
    last = mark - 1
    if last < matched:
        return False
    byte = text[last]
    is_digit = 0x30 <= byte <= 0x39
    if not is_english:
        return not is_digit
    if is_capital(byte):
        # One capital alone is an initial.
        return last > matched and classes[_character_before(text, matched, last)[0]] & WORD != 0
    return is_digit or 0x61 <= byte <= 0x7A


@functools.cache
def english_classes() -> np.ndarray:
    r"""Returns uint8[0x110000], the classes of characters as bits.

    `WORD` is a regular expression's `\w`, by this Python's tables, and `CUT` the characters at which
    sentences end.
    """
    category = category_table()
    table = WORD * alphanumeric_table() + _SPACE * whitespace_table()
    table[(category == np.frombuffer(b'Nd', np.uint8)).all(axis=1)] |= _DIGIT
    characters_of = {
        WORD: '_', _DOUBLE: DOUBLE_QUOTES, _SINGLE: SINGLE_QUOTES, _MARK: ',:;', _OTHER: '()©\n',
        CUT: '.!?|',
    }  # fmt: skip
    for kind, characters in characters_of.items():
        table[[ord(character) for character in characters]] |= kind
    return read_only(table)


@kernel_without_allocation
def _first_tests(text, starts, ends, classes, tests):
    """Fills in the number, from 1, of the first test that each English row fails, or 0.

    `text` and `classes` are as for `_count_sentences`, `tests` is uint8[rows].
    """
    for row in range(len(starts)):
        start, end = starts[row], ends[row]
        # Most rows that fail do so here, where a few bytes decide.
        failed = check_ends(text, start, end, classes)
        if not failed:
            failed = check_beginning(text, start, end, classes)
            failed |= check_whole(text, start, end, classes)
        tests[row] = trailing_zeros(np.uint64(failed)) + 1 if failed else 0


@kernel_without_allocation
def is_capital(byte):
    """Whether a byte is A to Z."""
    return 0x41 <= byte <= 0x5A


@kernel_without_allocation
def _character_before(text, start, place):
    """Returns the last character of text[start:place], not empty, and where it begins."""
    place -= 1
    while place > start and text[place] & 0xC0 == 0x80:
        place -= 1
    return next_character(text, place)[0], place


@kernel_without_allocation
def check_ends(text, start, end, classes):
    """Returns the bits of the failed tests of the two ends of a text: the first two."""
    failed = _START | _END
    if start == end:
        return failed
    first, place = next_character(text, start)
    if classes[first] & _DOUBLE and place < end:
        first = text[place]
    if is_capital(first):
        failed &= ~_START
    if text[end - 1] == _LINE_FEED:
        end -= 1
    if end - start < 2:
        return failed
    last, before = _character_before(text, start, end)
    # An opening quote does not close anything.
    if classes[last] & _DOUBLE and last != 0x201C and before > start:
        last, before = _character_before(text, start, before)
    if (last == _STOP or last == 0x3F or last == 0x21) and before > start:
        if classes[_character_before(text, start, before)[0]] & WORD:
            failed &= ~_END
    return failed


@kernel_without_allocation
def _run_end(text, place, end, classes, kind):
    """Returns where the run of characters of a class at the start of text[place:end] ends."""
    while place < end:
        character, after = next_character(text, place)
        if not classes[character] & kind:
            break
        place = after
    return place


@kernel_without_allocation
def _byte_run_end(text, place, end, lowest, highest):
    """Returns where the run of bytes in a range at the start of text[place:end] ends."""
    while place < end and lowest <= text[place] <= highest:
        place += 1
    return place


@kernel_without_allocation
def check_beginning(text, start, end, classes):
    """Returns the bits of the failed tests for labels, copyright, cities and underscores."""
    failed = 0
    if _has_label(text, start, end, classes):
        failed |= _LABEL
    if _begins(text, start, end, _COPYRIGHT_WORD) or _begins(text, start, end, _COPYRIGHT_LETTER):
        failed |= _COPYRIGHT
    capitals = _byte_run_end(text, start, end, 0x41, 0x5A)
    if capitals == start:
        return failed
    lower = _byte_run_end(text, capitals, end, 0x61, 0x7A)
    if lower < end and text[lower] == 0x5F:
        failed |= _UNDERSCORE
    if capitals - start > 1 and _is_city(text, capitals, end, classes):
        failed |= _CITY
    return failed


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
    r"""Whether the text begins with `\w+\.?( \w+)?: `."""
    place = _run_end(text, start, end, classes, WORD)
    if place == start:
        return False
    if place < end and text[place] == _STOP:
        place += 1
    if place < end and text[place] == _BLANK:
        second = place + 1
        place = _run_end(text, second, end, classes, WORD)
        if place == second:
            return False
    return place + 1 < end and text[place] == _COLON and text[place + 1] == _BLANK


@kernel_without_allocation
def _is_city(text, place, end, classes):
    r"""Whether `(\s+[A-Z]+)*\s+-` follows the capitals that end at `place`."""
    while True:
        gap = _run_end(text, place, end, classes, _SPACE)
        if gap == place or gap == end:
            return False
        if text[gap] == _DASH:
            return True
        place = _byte_run_end(text, gap, end, 0x41, 0x5A)
        if place == gap:
            return False


@kernel_without_allocation
def check_whole(text, start, end, classes):
    """Returns the bits of the failed tests for digits, quotes, marks and parentheses."""
    failed = 0
    # Ends of the last digit, of the last quote of any kind, of the last double quote.
    digit = quote = double = end
    quotes = in_line = 0
    is_quoted = is_open = was_open = is_broken = False
    # The expression for many single quotes as an automaton. Bit k of `reached`: k quotes, each with
    # the character after it, have been matched; of `waiting`: this character would be the one after.
    reached, waiting = 1, 0
    line_end = end - 1 if start < end and text[end - 1] == _LINE_FEED else end
    after = start
    while after < end:
        position = after
        character, after = next_character(text, position)
        kind = classes[np.uint64(character)]
        # Blanks are not rare: a branch taken now and then is mispredicted as often.
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
            failed |= _MANY_SINGLE
        waiting = before if kind & _SINGLE else 0
        if kind & _DIGIT:
            blank_end = _byte_run_end(text, digit, position, _BLANK, _BLANK)
            if digit < position and blank_end == position:
                failed |= _DIGITS
            digit = after
        elif kind & (_DOUBLE | _SINGLE | _MARK):
            if _is_alone(text, position, after, (start, end), classes):
                failed |= _LONE
            if not kind & _MARK:
                if quote <= position:
                    gap_end = _run_end(text, quote, position, classes, _SPACE)
                    failed |= _TOGETHER if gap_end == position else 0
                quote = after
            if kind & _DOUBLE:
                is_quoted |= position == start
                double = after
                quotes += 1
                in_line += 1
                if in_line > 2:
                    failed |= _MANY
        elif character == _OPENED:
            is_open = was_open = True
        elif character == _CLOSED:
            is_open = False
            if not was_open:
                failed |= _RIGHT
        elif character == _SIGN:
            failed |= _COPYRIGHT
    is_quoted &= double == line_end and not is_broken
    failed |= _LEFT if is_open else 0
    if quotes == 1:
        return failed | _ONE_QUOTE
    return failed | _QUOTED if is_quoted else failed


@kernel_without_allocation
def _is_alone(text, place, after, row, classes):
    """Whether white space is on both sides of the character text[place:after] of a row."""
    start, end = row
    if place == start or after == end:
        return False
    if not classes[np.uint64(next_character(text, after)[0])] & _SPACE:
        return False
    return classes[np.uint64(_character_before(text, start, place)[0])] & _SPACE != 0
