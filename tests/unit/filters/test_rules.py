"""Each filter over blocks does what a line of Python says of one row."""

import functools
import itertools
import random
import re
import unicodedata
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import applied, kept

from tokcore.errors import InputError
from tokcore.filters.registry import make_filter
from tokcore.text.unicode import OTHER, OWN, is_script, letter_classes

PIECES = [
    'a', 'Wort', ' ', '  ', '\u3000', '\xa0', '\n', '\t', '字', '字符', 'é', 'e\u0301', '\u0327', 'ー',
    'ア', 'ひ', '한', '\u1112\u1161', 'ж', 'ſ', 'ﬁ', '①', '12', '.', '😀', '&', '&amp;', 'amp;', '& amp;',
    '&lt;', '& gt;', '&apos;', '&quot', ';', '\u212b', '\ufdfa', 'µ', '\U0001d400', 'x' * 70,
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map(''.join),
    st.text(st.characters(codec='utf-8'), min_size=1, max_size=12),
)
PAIRS = st.lists(
    st.one_of(st.tuples(TEXTS, TEXTS), TEXTS.map(lambda text: (text, text))), max_size=12
)
SINGLES = st.lists(st.tuples(TEXTS), min_size=1, max_size=12)


def characters(text):
    return len(text)


def words(text):
    return len(text.split())


def rows_where(rows, is_kept):
    return [number for number, row in enumerate(rows) if is_kept(row)]


@given(st.one_of(PAIRS, SINGLES), st.integers(0, 5), st.integers(0, 9))
def test_length_keeps_rows_whose_every_side_is_within_its_bounds(rows, least, more):
    for unit, length in (('', characters), (':tokens', words), (':characters', characters)):
        made = make_filter(f'length:{least}:{least + more}{unit}')
        assert kept(made, rows) == rows_where(
            rows,
            lambda row, length=length: all(least <= length(text) <= least + more for text in row),
        )


@given(PAIRS, st.decimals(1, 4, places=4, allow_nan=False))
def test_ratio_keeps_pairs_of_which_the_longer_side_is_no_more_times_the_shorter(rows, ratio):
    for unit, length in (('', characters), (':tokens', words)):
        made = make_filter(f'ratio:{ratio:f}{unit}')

        def is_kept(row, length=length):
            shorter, longer = sorted(map(length, row))
            return longer <= Fraction(str(ratio)) * shorter

        assert kept(made, rows) == rows_where(rows, is_kept)


@pytest.mark.parametrize(
    ('ratio', 'lengths'), [('1.15', (23, 20)), ('1.1', (11, 10)), ('3', (3, 1))]
)
def test_a_ratio_is_exact_at_its_bound(ratio, lengths):
    longer, shorter = lengths
    rows = [('x' * shorter, 'y' * longer), ('x' * (longer + 1), 'y' * shorter)]
    assert kept(make_filter(f'ratio:{ratio}'), rows) == [0]


@given(PAIRS)
def test_different_drops_equal_sides(rows):
    assert kept(make_filter('different'), rows) == rows_where(rows, lambda row: row[0] != row[1])


NAMED = {
    'Latn': 'LATIN', 'Cyrl': 'CYRILLIC', 'Hira': 'HIRAGANA LETTER', 'Kana': 'KATAKANA LETTER',
    'Hani': 'CJK UNIFIED IDEOGRAPH', 'Hang': 'HANGUL SYLLABLE', 'Grek': 'GREEK SMALL LETTER',
}  # fmt: skip


@functools.cache
def names_of_letters():
    """By letter the name that Python knows it by."""
    letters = (each for each in range(0x110000) if unicodedata.category(chr(each))[0] == 'L')
    return {each: unicodedata.name(chr(each), '') for each in letters}


@functools.cache
def letters_named(begins):
    return [each for each, name in names_of_letters().items() if name.startswith(begins)]


@pytest.mark.parametrize('code', NAMED)
def test_letters_are_of_the_script_that_their_names_say(code):
    classes = letter_classes(code)
    for other, begins in NAMED.items():
        letters = letters_named(begins)
        assert letters
        assert (classes[letters] == (OWN if other == code else OTHER)).all(), begins
    for each in ' 1٣.。\u0301\ud800😀\u0903':
        assert classes[ord(each)] == 0, each


def test_letters_of_no_script_in_particular_are_of_none():
    for letter in 'ー\U0001d400µ':
        assert unicodedata.category(letter)[0] == 'L'
        assert letter_classes('Latn')[ord(letter)] == 0


@pytest.mark.parametrize(
    ('whole', 'parts'),
    [('Jpan', ['Hani', 'Hira', 'Kana']), ('Kore', ['Hang', 'Hani']), ('Hant', ['Hani'])],
)
def test_codes_of_how_a_language_is_written_are_several_scripts(whole, parts):
    of_parts = np.any([letter_classes(each) == OWN for each in parts], axis=0)
    assert ((letter_classes(whole) == OWN) == of_parts).all()
    assert of_parts.any()


@pytest.mark.parametrize('code', ['Zyyy', 'Zinh', 'Zzzz', 'Xxxx', 'Roma'])
def test_what_is_not_a_script_is_none(code):
    assert not is_script(code)


@given(PAIRS, st.sampled_from(['Latn', 'Hani', 'Jpan']), st.sampled_from(['0', '0.3', '0.5', '1']))
def test_script_keeps_rows_with_enough_letters_of_it(rows, code, least):
    classes = letter_classes(code)

    def has_enough(text):
        of_it = [classes[ord(each)] for each in text if classes[ord(each)]]
        return of_it.count(OWN) >= Fraction(least) * len(of_it)

    sides = {'': (0, 1), ':source': (0,), ':target': (1,)}
    for word, looked_at in sides.items():
        assert kept(make_filter(f'script:{code}:{least}{word}'), rows) == rows_where(
            rows, lambda row, looked_at=looked_at: all(has_enough(row[side]) for side in looked_at)
        )


def test_a_stamp_tells_the_letters_of_scripts_apart():
    codes = ['Latn', 'Hira', 'Hani']
    stamps = {make_filter(f'script:{code}:{least}').stamp for code in codes for least in (0, 1)}
    assert len(stamps) == len(codes)


@given(st.one_of(PAIRS, SINGLES), st.sampled_from(['NFC', 'NFD', 'NFKC', 'NFKD']))
def test_normal_forms_are_those_of_unicodedata(rows, form):
    texts, numbers = applied(make_filter(form.lower()), rows)
    assert numbers == list(range(len(rows)))
    assert texts == [tuple(unicodedata.normalize(form, text) for text in row) for row in rows]


@pytest.mark.parametrize('form', ['NFC', 'NFD', 'NFKC', 'NFKD'])
def test_every_character_is_normalized_between_others(form):
    """With marks before and after it, which may stand in another order then."""
    points = [*range(1, 0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200)]
    few = [points[at : at + 20] for at in range(0, len(points), 20)]
    rows = [
        (
            ''.join(f'a\u0327{chr(each)}\u0301' for each in those),
            ''.join(f'가{chr(each)}é' for each in those),
        )
        for those in few
    ]
    texts, _ = applied(make_filter(form.lower()), rows)
    assert texts == [tuple(unicodedata.normalize(form, text) for text in row) for row in rows]


@pytest.mark.parametrize('form', ['NFC', 'NFD', 'NFKC', 'NFKD'])
def test_characters_that_change_are_normalized_beside_each_other(form):
    """Each with those that follow it in the order of code points, and with drawn ones."""
    changing = [each for each in map(chr, range(0x30000)) if needs_a_look(form, each)]
    dice = random.Random(form)
    rows = [
        (first + second, first + dice.choice(changing) + 'e' + dice.choice(changing))
        for first, second in itertools.pairwise(changing)
    ]
    texts, _ = applied(make_filter(form.lower()), rows)
    assert texts == [tuple(unicodedata.normalize(form, text) for text in row) for row in rows]


def needs_a_look(form, character):
    parts = unicodedata.decomposition(character)
    is_changed = not '\ud800' <= character <= '\udfff' and (
        unicodedata.normalize(form, character) != character
    )
    return (
        is_changed or unicodedata.combining(character) or '\u1100' <= character <= '\u11ff' or parts
    )


def without_entities(text):
    for entity, character in (
        ('&amp;', '&'), ('& ?amp;', '&'), ('& ?apos;', "'"), ('& ?quot;', '"'), ('& ?lt;', '<'),
        ('& ?gt;', '>'),
    ):  # fmt: skip
        text = re.sub(entity, character, text)
    return text


@given(st.one_of(PAIRS, SINGLES))
@example([('&amp;amp;lt; & apos;', '&amp; lt;&;')])
def test_paracrawl_decodes_entities_one_after_another(rows):
    texts, numbers = applied(make_filter('paracrawl'), rows)
    assert numbers == list(range(len(rows)))
    assert texts == [tuple(map(without_entities, row)) for row in rows]


@pytest.mark.parametrize('spec', ['ratio:2', 'different', 'script:Latn:0.5:source'])
def test_what_is_for_pairs_says_so(spec):
    with pytest.raises(InputError, match='leave it out'):
        kept(make_filter(spec), [('one side',)])
