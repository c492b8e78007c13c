"""What becomes of each code point by BERT's rules, as tables for kernels.

An action (uint32) is flags in its lowest five bits, then the number of bytes written, and in the
highest 22 where they begin in `expansions`, should they be others than the character's own.
"""

import collections
import functools
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.text.bert.plain_bert_tokens import (
    CJK_RANGES,
    Kind,
    is_cjk,
    is_dropped,
    is_punctuation,
    is_space,
    without_marks,
)
from tokcore.text.unicode_tables import CODE_POINTS, category_table

BORDER, WRITTEN, ALONE, EXPANDED, ASKING = 1, 2, 4, 8, 16
"""Flags: a token before it ends here; bytes are written; the token ends behind them too; they are
an expansion; the place or the form of what is written may depend on the characters beside it."""

DROP, SPACE, KEEP, SOLO = 0, BORDER, WRITTEN, BORDER | WRITTEN | ALONE
"""Nothing at all; nothing, and no token goes across; a character of a word; a token by itself."""

FLAG_BITS, LENGTH_BITS = 5, 5
BLOCK = 256

ALWAYS = 0xFFFF
"""Among `classes`: the character's neighbours decide, whichever they are."""

_LONGEST_EXPANSION = 16  # bytes: two words, which kernels store at once
_COMMON_IDEOGRAPHS = slice(0x4E00, 0x9FC0)  # those of `ideograph_mask`
_SIGMA = 'Σ'  # lower() looks at the whole word for it alone


class BertTables(NamedTuple):
    """The action of code point c is at place `BLOCK * index[c // BLOCK] + c % BLOCK`."""

    index: np.ndarray  # uint16[CODE_POINTS / BLOCK]
    actions: np.ndarray  # uint32[BLOCK * blocks]
    classes: np.ndarray  # uint16[as many], of those that ask: the first combining class, or ALWAYS,
    # of what is written, and times 256 the last
    asking: np.ndarray  # uint8[256]: 1 for the first bytes of characters that ask
    expansions: np.ndarray  # uint8[...]: UTF-8
    ideograph: int  # the flags of common ideographs, SOLO or KEEP; 0 if they are not alike
    growth: int  # bytes that a byte may become


@functools.lru_cache
def bert_tables(kind: Kind, lower_case: bool, strip: bool, split_cjk: bool) -> BertTables:
    """Returns the tables of BERT's rules; `strip` says whether marks are taken off.

    They come from this Python's `unicodedata`, as `unicode_tables` do.
    """
    actions = _clean_actions(kind, split_cjk).copy()
    flags = actions[_COMMON_IDEOGRAPHS]
    ideograph = int(flags[0]) if (flags == flags[0]).all() else DROP
    lengths = np.full(CODE_POINTS, 4, np.uint32)
    lengths[:0x80], lengths[0x80:0x800], lengths[0x800:0x10000] = 1, 2, 3
    actions[actions & WRITTEN != 0] |= (lengths << FLAG_BITS)[actions & WRITTEN != 0]
    classes = np.zeros(CODE_POINTS, np.uint16)
    expansions: dict[bytes, int] = {}
    size, growth = 0, 1
    for code_point in _changing(lower_case).tolist():
        if not actions[code_point] & WRITTEN:
            continue
        character = chr(code_point)
        result = _normalized(character, kind, lower_case, strip)
        data = result.encode('utf-8', 'surrogatepass')
        is_alone = split_cjk and is_cjk(code_point) or len(result) == 1 and is_punctuation(result)
        order = _combining(character, result, kind, lower_case, strip)
        if len(data) > _LONGEST_EXPANSION or len(result) > 1 and any(map(is_punctuation, result)):
            order = ALWAYS
        if order == ALWAYS:
            actions[code_point] |= ASKING
        elif not result:
            actions[code_point] = DROP
        elif result != character:
            if data not in expansions:
                expansions[data] = size
                size += len(data)
            growth = max(growth, -(-len(data) // int(lengths[code_point])))
            actions[code_point] = (
                expansions[data] << (FLAG_BITS + LENGTH_BITS)
                | len(data) << FLAG_BITS
                | (SOLO if is_alone else KEEP)
                | EXPANDED
            )
        if order:
            actions[code_point] |= ASKING
            classes[code_point] = order
    return _in_blocks(actions, classes, b''.join(expansions), ideograph, growth)


def _in_blocks(
    actions: np.ndarray, classes: np.ndarray, expansions: bytes, ideograph: int, growth: int
) -> BertTables:
    """Keeps blocks of code points once that are alike."""
    by_block = actions.reshape(-1, BLOCK)
    its_classes = classes.reshape(-1, BLOCK)
    numbers: dict[bytes, int] = {}
    index, first = [], []
    for block, (some, others) in enumerate(zip(by_block, its_classes, strict=True)):
        known = len(numbers)
        index.append(numbers.setdefault(some.tobytes() + others.tobytes(), known))
        if index[-1] == known:
            first.append(block)
    asking = np.zeros(256, np.uint8)
    for code_point in np.flatnonzero(actions & ASKING).tolist():
        asking[chr(code_point).encode('utf-8', 'surrogatepass')[0]] = 1
    return BertTables(
        read_only(np.array(index, np.uint16)),
        read_only(by_block[first].ravel()),
        read_only(its_classes[first].ravel()),
        read_only(asking),
        read_only(np.frombuffer(expansions + bytes(_LONGEST_EXPANSION), np.uint8)),
        ideograph,
        growth,
    )


@functools.lru_cache
def _clean_actions(kind: Kind, split_cjk: bool) -> np.ndarray:
    """uint32[CODE_POINTS]: the actions before anything is lowered, decomposed or composed."""
    major = category_table()[:, 0]
    actions = np.full(CODE_POINTS, KEEP, np.uint32)
    if kind == 'bert':
        actions[major == ord('C')] = DROP
    # What else cleaning and cutting look at is ASCII, or of these categories.
    looked_at = np.isin(major, np.frombuffer(b'ZP', np.uint8))
    minor_control = np.isin(category_table()[:, 1], np.frombuffer(b'cf', np.uint8))
    looked_at |= (major == ord('C')) & minor_control
    looked_at[:0x80] = looked_at[0xFFFD] = True
    for code_point in np.flatnonzero(looked_at).tolist():
        character = chr(code_point)
        if is_space(character):
            actions[code_point] = SPACE
        elif is_dropped(character, kind):
            actions[code_point] = DROP
        elif character.isspace():
            actions[code_point] = SPACE
        elif is_punctuation(character):
            actions[code_point] = SOLO
    if split_cjk:
        for first, last in CJK_RANGES:
            part = actions[first : last + 1]
            part[part == KEEP] = SOLO
    return read_only(actions)


@functools.lru_cache
def _changing(lower_case: bool) -> np.ndarray:
    """int64[...]: what lowering or normalizing may change, alone or beside other characters."""
    later = _later_in_compositions()
    return np.array(
        [
            code_point
            for code_point in _decomposed_or_cased()
            if (lower_case and chr(code_point).lower() != chr(code_point))
            or code_point in later
            or unicodedata.category(chr(code_point))[0] == 'M'
            or unicodedata.combining(chr(code_point))
            or not unicodedata.is_normalized('NFD', chr(code_point))
        ],
        np.int64,
    )


@functools.cache
def _decomposed_or_cased() -> list[int]:
    """The code points of blocks of which something is lowered, decomposed, or joined to others."""
    found = []
    major = category_table()[:, 0]
    joined = _later_in_compositions()
    with_joined = {code_point // BLOCK for code_point in joined}
    for first in range(0, CODE_POINTS, BLOCK):
        if first in range(0xD800, 0xE000) or np.all(major[first : first + BLOCK] == ord('C')):
            continue
        text = ''.join(map(chr, range(first, first + BLOCK)))
        if (
            text.lower() != text
            or (major[first : first + BLOCK] == ord('M')).any()
            or not unicodedata.is_normalized('NFD', text)
            or first // BLOCK in with_joined
        ):
            found += range(first, first + BLOCK)
    return found


@functools.cache
def _later_in_compositions() -> frozenset[int]:
    """The code points that NFC may join with what stands before them."""
    found = set()
    for first in range(0, CODE_POINTS, BLOCK):
        text = ''.join(map(chr, range(first, first + BLOCK)))
        if first in range(0xAC00, 0xE000) or unicodedata.is_normalized('NFD', text):
            continue
        for character in text:
            parts = unicodedata.decomposition(character).split()
            if len(parts) == 2 and not parts[0].startswith('<'):
                if unicodedata.is_normalized('NFC', character):
                    found.add(int(parts[1], 16))
    # Hangul is composed by rule: a consonant with a vowel, and a syllable with a final consonant.
    for syllable in (*range(0xAC00, 0xAC00 + 28), *range(0xAC00, 0xAC00 + 28 * 21, 28)):
        found.update(map(ord, unicodedata.normalize('NFD', chr(syllable))[1:]))
    return frozenset(found)


def _normalized(character: str, kind: Kind, lower_case: bool, strip: bool) -> str:
    """What stands for a character by itself."""
    result = character.lower() if lower_case else character
    if kind == 'bert':
        result = unicodedata.normalize('NFC', result)
        result = result.lower() if lower_case else result
    return without_marks(result) if strip else result


def _combining(
    character: str, result: str, kind: Kind, lower_case: bool, strip: bool
) -> int:
    """What `classes` has for a character; 0 if its neighbours do not matter to it."""
    if kind == 'bert-original' and lower_case and character == _SIGMA:
        return ALWAYS
    if kind == 'bert-original' and not strip:
        return 0  # nothing is normalized
    found = [unicodedata.combining(each) for each in result]
    if not strip:
        # What NFC leaves alone is in its form already where it is in order and nothing may join.
        lowered = character.lower() if lower_case else character
        if any(ord(each) in _later_in_compositions() for each in lowered + result):
            return ALWAYS
        if any(map(unicodedata.combining, lowered + result)) and result != character:
            return ALWAYS
    # Marks that are taken off move nothing; what else has a class may change places with its like.
    return found[0] | found[-1] << 8 if any(found) else 0


@functools.lru_cache
def ascii_sources(lower_case: bool, strip: bool) -> Mapping[str, Sequence[str]]:
    """Returns for characters of ASCII the other characters that become them by transformers' rules.

    Or that become several, that one among them, or are it for a while.
    """
    sources = collections.defaultdict(list)
    for character in map(chr, _changing(lower_case).tolist()):
        lowered = character.lower() if lower_case else character
        results = {lowered, _normalized(character, 'bert', lower_case, strip)}
        for each in set(''.join([*results, unicodedata.normalize('NFC', lowered)])):
            if each.isascii() and each != character:
                sources[each].append(character)
    return sources
