"""Random expressions in the dialects of two engines, and texts that their classes tell apart."""

import dataclasses
import functools
import random
import unicodedata

from hypothesis import strategies as st

from tokcore.text.expression_trees import Class, Node, compiled

_LITERALS = "abkKsSßſtTiIıİfézZ19²½٣_ .,'\n\r\tσΣﬆﬁΐ字か\u0301\u0345\u200dǅʕⅣⓐ€"
_SPECIAL = frozenset('.^$|()[]{}*+?\\-&~#/')
_PROPERTIES = (
    'L Lu Ll Lt Lm Lo M Mn N Nd Nl No P Pc Pd Po S Sm So Z Zs Cc Cf Alphabetic Uppercase Lowercase '
    'White_Space Han Hiragana Katakana Latin Greek Cyrillic Hangul alpha upper digit space punct any'
).split()
_POSIX = (
    'alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit'.split()
)


def _escaped(character):
    return f'\\{character}' if character in _SPECIAL else character


def _coded(character):
    forms = [rf'\x{{{ord(character):x}}}']
    forms += [rf'\u{ord(character):04x}'] if ord(character) < 0x10000 else []
    forms += [rf'\x{ord(character):02x}'] if ord(character) < 0x80 else []
    return st.sampled_from(forms)


_CHARACTER = st.sampled_from(_LITERALS).map(_escaped) | st.sampled_from(_LITERALS).flatmap(_coded)
_NAMED = st.sampled_from(_PROPERTIES).flatmap(
    lambda name: st.sampled_from([rf'\p{{{name}}}', rf'\P{{{name}}}', rf'\p{{^{name}}}'])
)
_ESCAPES = st.sampled_from([rf'\{letter}' for letter in 'dDsSwWhH'])


@st.composite
def _range(draw):
    first, last = sorted(draw(st.tuples(*[st.sampled_from(_LITERALS)] * 2)))
    return f'{_escaped(first)}-{_escaped(last)}'


@st.composite
def _classes(draw, operators, depth=2):
    member = st.one_of(_CHARACTER, _CHARACTER, _range(), _ESCAPES, _NAMED, _posix())
    if depth:
        member |= _classes(operators, depth - 1)
    sides = st.lists(member, min_size=1, max_size=3).map(''.join)
    made = draw(sides)
    while draw(st.integers(0, 4)) == 0:
        made += draw(st.sampled_from(operators)) + draw(sides)
    return f'[{draw(st.sampled_from(["", "^"]))}{made}]'


def _posix():
    return st.builds('[:{}{}:]'.format, st.sampled_from(['', '^']), st.sampled_from(_POSIX))


def expressions(is_ruby):
    """Random expressions, most of which the engine of a dialect takes."""
    classes = _classes(['&&'] if is_ruby else ['&&', '--', '~~'])
    anchors = ['^', '$', r'\A', r'\z', r'\Z', r'\b', r'\B', r'\G']
    words = st.sampled_from(['ss', 'st', 'ſT', 'ffi', 'ß', 'ab', "'s", r'\r\n', 'ΐ', 'ab?', 'sSs'])
    leaves = st.one_of(
        _CHARACTER,
        words,
        st.just('.'),
        _ESCAPES,
        _NAMED,
        classes,
        classes,
        st.sampled_from(anchors),
    )
    flags = 'i m -i im i-m'.split() if is_ruby else 'i m s is -i im i-s'.split()
    opened = [
        '(?:',
        '(?:',
        '(',
        '(?>',
        '(?=',
        '(?!',
        '(?<=',
        '(?<!',
        *(f'(?{each}:' for each in flags),
    ]
    times = ['?', '*', '+', '??', '*?', '+?', '?+', '*+', '++', '{2}', '{1,3}', '{,2}', '{1,}', '{1,2}+',
             '{2}?', '{1,3}?', '{2}+']  # fmt: skip

    def larger(smaller):
        several = st.lists(smaller, min_size=1, max_size=4).map(''.join)
        choice = st.lists(several, min_size=1, max_size=3).map('|'.join)
        group = st.builds('{}{})'.format, st.sampled_from(opened), choice)
        reference = st.builds(r'({}){}\1'.format, several, several)
        repeated = st.builds('{}{}'.format, group | leaves, st.sampled_from(times))
        return st.one_of(several, choice, group, repeated, repeated, reference)

    return st.recursive(leaves, larger, max_leaves=8)


def texts_for(tree, seed, is_known):
    """Returns texts of characters at the borders of all classes of a tree, and of 2,000 random ones.

    Args:
        tree: the tree.
        seed: of what is drawn.
        is_known: whether a character is assigned in all tables.
    """
    dice = random.Random(seed)
    borders = sorted({character for each in _classes_of(tree) for character in _borders(each)})
    borders = dice.sample(borders, min(len(borders), 60))
    cases = {other for each in borders for other in (each.upper(), each.lower(), each.casefold())}
    pool = [*filter(is_known, {*borders, *''.join(cases), *_LITERALS})]
    pool.sort()
    texts = [
        ''.join(dice.choice(pool) * dice.choice([1, 1, 1, 2]) for _ in range(12)) for _ in range(80)
    ]
    few = dice.sample(pool, min(len(pool), 4))
    texts += [''.join(dice.choices(few, k=10)) for _ in range(20)]
    others = dice.choices(known_characters(), k=2000)
    others = [*filter(is_known, others)]
    return texts + [''.join(others[first : first + 20]) for first in range(0, len(others), 20)]


@functools.cache
def known_characters():
    """The characters that this Python's tables know."""
    return [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) not in ('Cn', 'Cs', 'Co')
    ]


def _classes_of(tree):
    if isinstance(tree, Class):
        if tree.kind in ('ranges', 'property'):
            return [tree]
        inner = tree.of if isinstance(tree.of, frozenset) else [tree.of]
    elif isinstance(tree, tuple):
        inner = tree
    elif dataclasses.is_dataclass(tree):
        inner = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    else:
        return []
    return [each for part in inner for each in _classes_of(part)]


@functools.cache
def _borders(of):
    if of.kind == 'ranges':
        codes = [code for first, last in of.of for code in (first - 1, first, last, last + 1)]
        return [chr(code) for code in codes if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000]
    text = ''.join(known_characters())
    runs = [match.span() for match in compiled(Node('repeat', (of, 1, None, False))).finditer(text)]
    return sorted({text[at] for a, b in runs for at in (a - 1, a, b - 1, b) if 0 <= at < len(text)})
