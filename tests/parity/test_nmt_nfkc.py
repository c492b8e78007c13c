"""Normalized sentences are SentencePiece's, whatever Unicode this Python has."""

import functools
import itertools
import unicodedata
from collections import defaultdict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows_of_text import side_of

from tokcore.foreign_tokenizers.normalizers import parse_charsmap, replacement_at
from tokcore.foreign_tokenizers.sentencepiece import normalized_rows
from tokcore.foreign_tokenizers.sentences import (
    charsmap_data,
    trainer_normalizer,
)

sentencepiece = pytest.importorskip('sentencepiece', '0.2.3')

RULES = ['nmt_nfkc', 'identity']
CHARACTERS = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]

MARKS = '\u0300\u0301\u0303\u0307\u0308\u030a\u0323\u0327\u0328\u0331\u0341\u05b0\u05bc\u05c1\u0651\u064e\u093c\u0f71\u3099\u309a'
PARTS = [
    *'aAcCeSsoOuüÇ', *MARKS, 'か', 'ハ', 'ﾊ', 'ﾞ', '\u1112\u1161\u11ab', '\u1100', '\uffa1', '각', 'Ａ', '①', '½',
    'ﬁ', '㍿', '\uff5e', '~', ' ', '  ', '\u3000', '\u00a0', '\u00b4', '\u0384', '\u200b', '\u200d', '\ufeff', '\t',
    '\x01', '\x7f', '\x85', '\x9f', '▁', '\u2028', '\U0001d165', '\U0001d15e', '\ufdfa', '\U0001ccd6', '\ua7f1',
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map(''.join) | st.text(
    st.characters(exclude_categories=['Cs'], exclude_characters='\0'), max_size=12
)


@functools.cache
def original(rule):
    return sentencepiece.SentencePieceNormalizer(
        rule_name=rule,
        add_dummy_prefix=True,
        remove_extra_whitespaces=True,
        escape_whitespaces=True,
    )


def normalized(texts, rule):
    rows = normalized_rows(side_of(texts, itertools.repeat('\n')), trainer_normalizer(rule))
    return [rows.row(number) for number in range(len(rows))]


@pytest.mark.parametrize('rule', RULES)
def test_all_characters_are_normalized_as_by_sentencepiece(rule):
    assert normalized(CHARACTERS, rule) == original(rule).normalize(CHARACTERS)


@pytest.mark.parametrize('rule', RULES)
@given(texts=st.lists(TEXTS, min_size=1, max_size=20))
@example(texts=['sonuc\u0327', 'e\u0323\u0301 e\u0301\u0323', '', ' ▁ ', '\x01 \x01', 'a \x01 b'])
def test_sequences_are_normalized_as_by_sentencepiece(rule, texts):
    expected = [original(rule).normalize(text) for text in texts]
    assert normalized(texts, rule) == expected


def rules_in_the_table():
    """The strings that are replaced, with what replaces them."""
    charsmap = parse_charsmap(charsmap_data('nmt_nfkc'))
    units = charsmap.units.tolist()

    def children(unit):
        return (unit >> 10) << ((unit & 512) >> 6)

    rules, left = {}, [(children(units[0]), b'')]
    while left:
        node, key = left.pop()
        for byte in range(1, 256):
            unit = units[node ^ byte]
            if unit & 0x800000FF == byte:
                child, string = node ^ byte ^ children(unit), key + bytes([byte])
                left.append((child, string))
                if unit >> 8 & 1:
                    place = units[child] & 0x7FFFFFFF
                    rules[string.decode()] = replacement_at(charsmap, place).decode()
    return rules


def derived_rules():
    """The rules of SentencePiece's builder.cc for the Unicode of this Python: BuildNmtNFKCMap."""
    form = unicodedata.normalize
    rules, singles, decomposed = {}, defaultdict(list), set()
    for character in CHARACTERS:
        if (composed := form('NFKC', character)) != character:
            rules[character] = composed
        parts = form('NFKD', character)
        if len(parts) == 1:
            singles[parts].append(character)
        else:
            decomposed.add(parts)
    for parts in decomposed:
        composed = form('NFKC', parts)
        if composed != parts:
            strings = map(''.join, itertools.product(*(singles[part] for part in parts)))
            rules.update((string, composed) for string in strings if string != composed)
    rules.update(dict.fromkeys('\t\n\f\r\u061c\u1680\u200b\u200e\u200f\u2028\u2029', ' '))
    rules.update(dict.fromkeys('\u2581\ufeff\ufffd\u200c', ' '))
    removed = [*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]
    rules.update(dict.fromkeys(map(chr, removed), ''))
    del rules['\uff5e']
    needed = {string: new for string, new in rules.items() if len(string) == 1}
    for size in range(2, max(map(len, rules)) + 1):
        shorter = dict(needed)
        for string, new in rules.items():
            if len(string) == size and replaced(string, shorter, size - 1) != new:
                needed[string] = new
    return needed


def replaced(text, rules, most):
    """A text with the longest string at each place replaced."""
    out, place = '', 0
    while place < len(text):
        sizes = range(min(most, len(text) - place), 0, -1)
        size = next((size for size in sizes if text[place : place + size] in rules), 0)
        out += rules[text[place : place + size]] if size else text[place]
        place += size or 1
    return out


@pytest.mark.slow
def test_the_table_has_the_rules_of_the_builder_for_unicode_17():
    table, derived = rules_in_the_table(), derived_rules()
    assert len(table) == 225276
    # This Python may have an older Unicode: then rules with newer characters are missing, and no others.
    newer = {string: new for string, new in table.items() if string not in derived}
    assert {string: new for string, new in table.items() if string not in newer} == derived
    assert all(
        any(unicodedata.category(character) == 'Cn' for character in string + new)
        for string, new in newer.items()
    )
