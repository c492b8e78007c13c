"""What becomes of each code point by BERT's rules, as tables for kernels.

An action (uint32) has its kind in the lowest three bits. That of `EXPAND` and `EXPAND_SOLO` has the
number of bytes in the five bits above, and in the highest 24 where they begin in `expansions`.
"""

import functools
import unicodedata
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

KEEP, DROP, SPACE, SOLO, EXPAND, EXPAND_SOLO, LEAVE = range(7)
"""Kinds of actions: a character of a word as it stands; nothing; a border; a token by itself; other
characters of a word; another one by itself; what only its neighbours tell, so the row leaves."""

KIND_BITS, LENGTH_BITS = 3, 5
BLOCK = 256

_SIGMA = 'Σ'  # lower() looks at the whole word for it alone


class BertTables(NamedTuple):
    """The actions of all code points: that of c is `actions[BLOCK * index[c // BLOCK] + c % BLOCK]`."""

    index: np.ndarray  # uint16[CODE_POINTS / BLOCK]
    actions: np.ndarray  # uint32[BLOCK * blocks]
    expansions: np.ndarray  # uint8[...]: UTF-8
    leaving: np.ndarray  # uint8[CODE_POINTS / BLOCK]: 1 for a block with a code point to leave
    growth: int  # bytes that a byte may become


@functools.lru_cache
def bert_tables(kind: Kind, lower_case: bool, strip: bool, split_cjk: bool) -> BertTables:
    """Returns the tables of BERT's rules; `strip` says whether marks are taken off.

    They come from this Python's `unicodedata`, as `unicode_tables` do.
    """
    actions = _clean_actions(kind, split_cjk).copy()
    expansions: dict[bytes, int] = {}
    size = 0
    growth = 1
    for code_point in _changing(lower_case).tolist():
        if actions[code_point] in (DROP, SPACE):
            continue
        character = chr(code_point)
        result = _normalized(character, kind, lower_case, strip)
        if _depends_on_neighbours(character, result, kind, lower_case, strip):
            actions[code_point] = LEAVE
        elif not result:
            actions[code_point] = DROP
        elif result != character:
            stands_alone = is_punctuation(result) if len(result) == 1 else None
            if stands_alone is None and any(is_punctuation(each) for each in result):
                actions[code_point] = LEAVE
                continue
            is_solo = stands_alone or (split_cjk and is_cjk(code_point))
            data = result.encode('utf-8', 'surrogatepass')
            growth = max(growth, -(-len(data) // len(character.encode('utf-8', 'surrogatepass'))))
            if data not in expansions:
                expansions[data] = size
                size += len(data)
            kind_of = EXPAND_SOLO if is_solo else EXPAND
            actions[code_point] = (
                expansions[data] << (KIND_BITS + LENGTH_BITS) | len(data) << KIND_BITS | kind_of
            )
    if lower_case and kind == 'bert-original':
        actions[ord(_SIGMA)] = LEAVE
    blocks: dict[bytes, int] = {}
    by_block = actions.reshape(-1, BLOCK)
    index = [blocks.setdefault(each.tobytes(), len(blocks)) for each in by_block]
    leaving = (by_block == LEAVE).any(axis=1)
    return BertTables(
        read_only(np.array(index, np.uint16)),
        read_only(np.frombuffer(b''.join(blocks), np.uint32)),
        read_only(np.frombuffer(b''.join(expansions) + bytes(32), np.uint8)),
        read_only(leaving.astype(np.uint8)),
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
    """int64[...]: the code points that lowering or normalizing may change, alone or beside others."""
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


def _depends_on_neighbours(
    character: str, result: str, kind: Kind, lower_case: bool, strip: bool
) -> bool:
    """Whether what a character becomes, or where, may depend on those beside it."""
    if strip:
        # Marks go; what else has a combining class may change places with its like.
        return any(map(unicodedata.combining, result))
    if kind == 'bert-original':
        return False
    lowered = character.lower() if lower_case else character
    return any(
        unicodedata.combining(each) or ord(each) in _later_in_compositions()
        for each in lowered + result
    )
