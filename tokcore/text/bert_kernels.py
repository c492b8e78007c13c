"""BERT's tokens in kernels: text is rewritten to a buffer, and tokens are slices of the buffer.

Text that stays, except for capitals, is copied 64 bytes at a time, with one bit a byte for the bounds
of tokens. Characters that change or vanish are looked up one by one. A table gives each code point
an action (uint32): flags in the lowest five bits, then the number of bytes to write, and in the
highest 22 bits where they begin in `expansions`. Rows in which normalization may reorder or compose
characters fail the quick check (Unicode's UAX #15) and are tokenized in plain Python.
"""

import collections
import functools
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.kernels.bytes import copy_bytes
from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation, read_only
from tokcore.kernels.simd import (
    byte_range_mask,
    load_word,
    popcount,
    put_places,
    store_word,
    trailing_zeros,
)
from tokcore.text.bert_plain import (
    CJK_RANGES,
    Kind,
    is_cjk,
    is_dropped,
    is_punctuation,
    is_space,
    strip_marks,
)
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens
from tokcore.text.unicode import CODE_POINTS, category_table, decode_word, ideograph_mask

CHUNK = 64

_CHUNK, _WORD = np.uint64(CHUNK), np.uint64(8)

_BYTE = np.uint64(255)

SOFT_BYTES = 64 << 10
"""Bytes of the buffer that a call fills, unless a token is longer; they stay in a core's cache."""

_SOFT = np.uint64(SOFT_BYTES)

_SPARSE = np.uint64(8)  # with more characters to look up, a chunk is scanned one by one

_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_ALL, _LAST = ~_0, np.uint64(63)

BLOCK = 256

_BLOCK = np.uint64(BLOCK)

BORDER, WRITTEN, ALONE, EXPANDED, NEEDS_CONTEXT = 1, 2, 4, 8, 16
"""Flags of a character: the token before it ends; bytes are written for it; the token ends after
them; these bytes are an expansion; they may depend on the characters next to it."""

_BORDER, _WRITTEN, _ALONE = np.uint64(BORDER), np.uint64(WRITTEN), np.uint64(ALONE)
_EXPANDED = np.uint64(EXPANDED)

FLAG_BITS, LENGTH_BITS = 5, 5

_FLAG_BITS, _OFFSET_BITS = np.uint64(FLAG_BITS), np.uint64(FLAG_BITS + LENGTH_BITS)
_LENGTH = np.uint64((1 << LENGTH_BITS) - 1)
_FOUR, _NIBBLE = np.uint64(4), np.uint64(0xF)
_SIZES = np.uint64(0x4322000011111111)  # of characters, by the high half of their first byte

DROP, SPACE, KEEP, SOLO = 0, BORDER, WRITTEN, BORDER | WRITTEN | ALONE
"""Actions: vanish; separate tokens; stay in a word; be a token of its own."""

_ALWAYS = 0xFFFF
"""In `classes`: a row with this character always needs normalizing."""

_LONGEST_EXPANSION = 16  # bytes: two words, which kernels store at once
_COMMON_IDEOGRAPHS = slice(0x4E00, 0x9FC0)  # those of `ideograph_mask`
_SIGMA = 'Σ'  # the only character for which lower() looks at the whole word


@kernel_without_allocation
def mark_rows_to_normalize(text, starts, ends, tables, is_plain):
    """Sets is_plain (uint8[rows], 0 before) to 1 for rows that the tables cannot normalize."""
    for row in range(len(starts)):
        is_plain[row] = _needs_normalizing(
            text, np.uint64(starts[row]), np.uint64(ends[row]), tables
        )


@kernel_without_allocation
def _class_before(text, last_end, place, tables, last):
    """Returns the combining class before `place`; `last` is the class of what ends at `last_end`.

    A character in between resets it unless it is dropped. Only the first one is looked up.
    """
    if last_end < place:
        action = tables.actions[_table_index(tables, decode_word(load_word(text, last_end)))]
        if action & (WRITTEN | BORDER):
            return _0
    return last


@kernel_without_allocation
def _needs_normalizing(text, start, end, tables):
    """Whether normalizing text[start:end] may differ from normalizing its characters one by one."""
    last, last_end = _0, start
    while start < end:
        inside = ~_0 >> (_CHUNK - min(end - start, _CHUNK))
        leads = byte_range_mask(text, start, 0xC0, 0xFF) & inside
        if leads != _0 and tables.ideograph:
            leads &= ~ideograph_mask(text, start)
        while leads != _0:
            place = start + trailing_zeros(leads)
            leads &= leads - _1
            if not tables.needs_context[text[place]]:
                continue
            word = load_word(text, place)
            index = _table_index(tables, decode_word(word))
            if tables.actions[index] & NEEDS_CONTEXT:
                classes = np.uint64(tables.classes[index])
                if classes == _ALWAYS:
                    return True
                first = classes & _BYTE
                if first and _class_before(text, last_end, place, tables, last) > first:
                    return True
                last, last_end = classes >> np.uint64(8), place + _character_size(word)
        start += _CHUNK
    return False


class PlainRows(NamedTuple):
    """The tokens of rows tokenized in plain Python: those of row r, i = indices[r], are
    row_tokens[i] up to row_tokens[i + 1]."""

    indices: np.ndarray  # int64[rows]: the index of each row among these, or -1; empty if none is
    row_tokens: np.ndarray  # int64[plain rows + 1]
    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[tokens + 1]: token i is text[offsets[i]:offsets[i + 1]]


class BertTables(NamedTuple):
    """The action of code point c is actions[BLOCK * block_numbers[c // BLOCK] + c % BLOCK]."""

    block_numbers: np.ndarray  # uint16[CODE_POINTS / BLOCK]
    actions: np.ndarray  # uint32[BLOCK * blocks]
    classes: np.ndarray  # uint16[as many]: for NEEDS_CONTEXT the first combining class of what is
    # written plus 256 times the last, or _ALWAYS
    needs_context: np.ndarray  # uint8[256]: 1 for first bytes of characters with NEEDS_CONTEXT
    expansions: np.ndarray  # uint8[...]: UTF-8
    ideograph: int  # the action of common ideographs, SOLO or KEEP; 0 if they differ
    growth: int  # the most bytes that one byte becomes


class BertText(NamedTuple):
    """The state: the actions of characters, and the rows and special tokens found in advance."""

    tables: BertTables
    lowering: np.uint8  # 0x20 if capitals are lowercased, else 0
    buffer: np.ndarray  # uint8: the tokens of a call
    plain: PlainRows
    special_starts: np.ndarray  # uint64[...]: of special tokens in the text of the rows
    special_ends: np.ndarray  # uint64[...]


@kernel_without_allocation
def _word_start(text, start, place, tables):
    """Returns where the word that is open at a place began, at least `start`."""
    while place > start:
        before = place - _1
        while text[before] & 0xC0 == 0x80:
            before -= _1
        if _action_of(tables, load_word(text, before)) & np.uint64(BORDER):
            break
        place = before
    return place


@kernel_without_allocation
def _put_token(text, start, end, buffer, tokens, written):
    """Ends the open token and writes another one unchanged; returns `Written`."""
    begun, ended, used = written
    tokens.ends[ended] = used
    tokens.starts[begun] = used
    copy_bytes(buffer, used, text, start, end - start)
    used += end - start
    tokens.ends[begun] = used
    return Written(begun + _1, begun + _1, used)


@kernel_without_allocation
def _put_plain(row, position, state, tokens, written):
    """Writes the tokens of one of the `PlainRows`, from a position on, while there is room.

    Returns the position, -1 after the last token, and `Written`.
    """
    plain = state.plain
    index = plain.indices[row]
    token = plain.row_tokens[index] + max(position, 0)
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    while token < plain.row_tokens[index + 1]:
        if written.begun >= room or written.used > _SOFT:
            return token - plain.row_tokens[index], written
        start, end = np.uint64(plain.offsets[token]), np.uint64(plain.offsets[token + 1])
        written = _put_token(plain.text, start, end, state.buffer, tokens, written)
        token += 1
    return np.int64(-1), written


@inlined_kernel
def _put_row(rows, row, position, state, tokens, written):
    """Writes the tokens of any other row from a position on, and returns what `_put_plain` does."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    start, end = np.uint64(rows.starts[row]), np.uint64(rows.ends[row])
    place = start if position < 0 else np.uint64(position)
    special = np.searchsorted(state.special_starts, place)
    while place < end:
        begun, ended, used = written
        if begun == _0:
            written = Written(_0, _0, _0)
        elif begun > room or (used > _SOFT and ended > _0):
            if begun > ended:
                if special:
                    start = max(start, state.special_ends[special - 1])
                place = _word_start(rows.text, start, place, state.tables)
            return np.int64(place), Written(ended, ended, used)
        stop = end
        if special < len(state.special_starts):
            stop = min(end, state.special_starts[special])
        if stop == place:
            place = state.special_ends[special]
            written = _put_token(rows.text, stop, place, state.buffer, tokens, written)
            special += 1
        else:
            place, stop, written = _scan_chunk(rows.text, place, stop, state, tokens, written)
            place, written = _scan_characters(rows.text, place, stop, state, tokens, written)
    tokens.ends[written.ended] = written.used
    return np.int64(-1), Written(written.begun, written.begun, written.used)


@scan_tokens.register(BertText)
@kernel_without_allocation
def _scan_bert_words(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the buffer.

    A position is a place in the text, or among the tokens of a row of `PlainRows`.
    """
    written = Written(_0, _0, _0)
    indices = pre_tokenizer.plain.indices
    while row < len(rows.starts):
        if len(indices) > 0 and indices[row] >= 0:
            stopped, written = _put_plain(row, position, pre_tokenizer, tokens, written)
        else:
            stopped, written = _put_row(rows, row, position, pre_tokenizer, tokens, written)
        if stopped >= 0:
            return row, stopped, np.int64(written.ended)
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(written.ended)
    return row, np.int64(position), np.int64(written.ended)


class Written(NamedTuple):
    """The progress of a call: tokens begun and ended, and bytes written to the buffer."""

    begun: np.uint64
    ended: np.uint64
    used: np.uint64


@kernel_without_allocation
def _character_size(word):
    """Returns the size of the character at the start of a little-endian word."""
    return _SIZES >> ((word >> _FOUR & _NIBBLE) << _2) & _NIBBLE


@kernel_without_allocation
def _table_index(tables, code):
    """Returns the index of a code point in `actions` and `classes`."""
    return np.uint64(tables.block_numbers[code // _BLOCK]) * _BLOCK + code % _BLOCK


@kernel_without_allocation
def _action_of(tables, word):
    """Returns the action of the character at the start of a little-endian word."""
    return np.uint64(tables.actions[_table_index(tables, decode_word(word))])


@kernel_without_allocation
def _copy_lowered(text, place, lowering, buffer, used):
    """Copies 64 bytes, with ASCII capitals lowercased."""
    for k in range(_CHUNK):
        byte = text[place + k]
        is_capital = (byte >= np.uint8(0x41)) & (byte <= np.uint8(0x5A))
        buffer[used + k] = byte + (lowering if is_capital else np.uint8(0))


@inlined_kernel
def _scan_characters(text, place, stop, state, tokens, written):
    """Looks up the characters that begin from `place` up to `stop`.

    Returns the place after them and `Written`. No branch depends on the characters.
    """
    begun, ended, used = written
    tables, buffer = state.tables, state.buffer
    while place < stop:
        word = load_word(text, place)
        place += _character_size(word)
        action = _action_of(tables, word)
        tokens.ends[ended] = used
        ended += action & _BORDER & (begun - ended)
        tokens.starts[begun] = used
        begun += action >> _1 & _1 & ~(begun - ended)
        offset = action >> _OFFSET_BITS
        other = _ALL * (action >> _3 & _1)
        store_word(buffer, used, word ^ (word ^ load_word(tables.expansions, offset)) & other)
        store_word(buffer, used + _WORD, load_word(tables.expansions, offset + _WORD))
        used += action >> _FLAG_BITS & _LENGTH
        tokens.ends[ended] = used
        ended += action >> _2 & _1
    return place, Written(begun, ended, used)


@inlined_kernel
def _look_up(text, place, leads, tables):
    """Returns bits, of the characters at `leads`: in words, tokens of their own, changing."""
    letters = alone = changing = _0
    while leads != _0:
        byte = trailing_zeros(leads)
        leads &= leads - _1
        action = _action_of(tables, load_word(text, place + byte))
        stays = action & (_EXPANDED | _WRITTEN | _BORDER)
        changing |= np.uint64(stays == _0 or stays >= _EXPANDED) << byte
        alone |= (action >> _2 & _1) << byte
        letters |= np.uint64(action & (_WRITTEN | _ALONE) == _WRITTEN) << byte
    return letters, alone, changing


@kernel_without_allocation
def _last_character(text, place):
    """Returns how many of 64 bytes are in characters that end within them."""
    if text[place + _CHUNK] & 0xC0 != 0x80:
        return _CHUNK
    size = _LAST
    while text[place + size] & 0xC0 == 0x80:
        size -= _1
    return size


@inlined_kernel
def _class_others(text, place, end, letters, alone, tables):
    """Classifies the characters of a chunk that are not printable ASCII.

    `letters` and `alone` are the bits of printable ASCII. Returns the bits of all letters, tokens of
    their own, and continuation bytes; the number of bytes to copy; and how many bytes after those
    are to be looked up one by one.
    """
    left = min(end - place, _CHUNK)
    inside = _ALL >> (_CHUNK - left)
    leads = byte_range_mask(text, place, 0xC0, 0xFF) & inside
    if tables.ideograph:
        ideographs = ideograph_mask(text, place) & leads
        leads &= ~ideographs
        if tables.ideograph & ALONE:
            alone |= ideographs
        else:
            letters |= ideographs
    if popcount(leads) > _SPARSE:
        return _0, _0, _0, _0, left
    more_letters, more_alone, changing = _look_up(text, place, leads, tables)
    controls = byte_range_mask(text, place, 0x00, 0x1F) | byte_range_mask(text, place, 0x7F, 0x7F)
    spaces = byte_range_mask(text, place, 0x09, 0x0A) | byte_range_mask(text, place, 0x0D, 0x0D)
    size = min(trailing_zeros(controls & ~spaces | changing), left)
    looked_up = np.uint64(size < left)
    if size == _CHUNK and end - place > _CHUNK:
        size = _last_character(text, place)
    inside = _ALL >> (_CHUNK - size) if size else _0
    continued = byte_range_mask(text, place, 0x80, 0xBF) & inside
    letters = (letters | more_letters) & inside
    return letters, (alone | more_alone) & inside, continued, size, looked_up


@inlined_kernel
def _scan_chunk(text, place, end, state, tokens, written):
    """Scans up to 64 bytes of text[place:end] that stay, except for capitals.

    Returns the place after them, the place up to which characters must be looked up, and `Written`.
    """
    left = min(end - place, _CHUNK)
    inside = _ALL >> (_CHUNK - left)
    letters = inside & (
        byte_range_mask(text, place, 0x61, 0x7A)
        | byte_range_mask(text, place, 0x41, 0x5A)
        | byte_range_mask(text, place, 0x30, 0x39)
    )
    printable = byte_range_mask(text, place, 0x20, 0x7E) & inside
    alone = printable & ~letters & ~byte_range_mask(text, place, 0x20, 0x20)
    continued, size, looked_up = _0, left, _0
    whole = alone
    if printable != inside:
        letters, alone, continued, size, looked_up = _class_others(
            text, place, end, letters, alone, state.tables
        )
        if size == _0:
            return place, place + looked_up, written
        # All bytes of a character are of its class.
        whole = alone
        for _ in range(3):
            letters |= letters << _1 & continued
            whole |= whole << _1 & continued
        inside = _ALL >> (_CHUNK - size)
    begun, ended, used = written
    _copy_lowered(text, place, state.lowering, state.buffer, used)
    before = letters << _1 | (begun - ended)
    # A word at the end of the chunk stays open.
    begun = put_places((letters & ~before) | alone, used, tokens.starts, begun)
    ends = (before & ~letters & inside) | (whole << _1 & ~continued)
    ended = put_places(ends, used, tokens.ends, ended)
    if whole >> _LAST != _0:
        tokens.ends[ended] = used + _CHUNK
        ended += _1
    place += size
    return place, place + looked_up, Written(begun, ended, used + size)


@functools.lru_cache
def bert_tables(kind: Kind, lower_case: bool, strip: bool, split_cjk: bool) -> BertTables:
    """Returns the tables of BERT's rules, by this Python's `unicodedata`.

    `strip` says whether accents are stripped.
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
    for code_point in _changing_code_points(lower_case).tolist():
        if not actions[code_point] & WRITTEN:
            continue
        character = chr(code_point)
        result = _written_as(character, kind, lower_case, strip)
        data = result.encode('utf-8', 'surrogatepass')
        is_alone = split_cjk and is_cjk(code_point) or len(result) == 1 and is_punctuation(result)
        order = _combining_classes(character, result, kind, lower_case, strip)
        if len(data) > _LONGEST_EXPANSION or len(result) > 1 and any(map(is_punctuation, result)):
            order = _ALWAYS
        if order == _ALWAYS:
            actions[code_point] |= NEEDS_CONTEXT
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
            actions[code_point] |= NEEDS_CONTEXT
            classes[code_point] = order
    return _store_blocks_once(actions, classes, b''.join(expansions), ideograph, growth)


@functools.lru_cache
def ascii_sources(lower_case: bool, strip: bool) -> Mapping[str, Sequence[str]]:
    """Returns, by ASCII character, the other characters that may become it by transformers' rules.

    They become it at any step of the rules, alone or among several characters.
    """
    sources = collections.defaultdict(list)
    for character in map(chr, _changing_code_points(lower_case).tolist()):
        lowered = character.lower() if lower_case else character
        results = {lowered, _written_as(character, 'bert', lower_case, strip)}
        for result in set(''.join([*results, unicodedata.normalize('NFC', lowered)])):
            if result.isascii() and result != character:
                sources[result].append(character)
    return sources


def _store_blocks_once(
    actions: np.ndarray, classes: np.ndarray, expansions: bytes, ideograph: int, growth: int
) -> BertTables:
    """Returns the tables with equal blocks of code points stored once."""
    action_blocks = actions.reshape(-1, BLOCK)
    class_blocks = classes.reshape(-1, BLOCK)
    numbers: dict[bytes, int] = {}
    index, first = [], []
    for block, contents in enumerate(zip(action_blocks, class_blocks, strict=True)):
        stored = len(numbers)
        index.append(numbers.setdefault(b''.join(array.tobytes() for array in contents), stored))
        if index[-1] == stored:
            first.append(block)
    needs_context = np.zeros(256, np.uint8)
    for code_point in np.flatnonzero(actions & NEEDS_CONTEXT).tolist():
        needs_context[chr(code_point).encode('utf-8', 'surrogatepass')[0]] = 1
    return BertTables(
        read_only(np.array(index, np.uint16)),
        read_only(action_blocks[first].ravel()),
        read_only(class_blocks[first].ravel()),
        read_only(needs_context),
        read_only(np.frombuffer(expansions + bytes(_LONGEST_EXPANSION), np.uint8)),
        ideograph,
        growth,
    )


@functools.lru_cache
def _clean_actions(kind: Kind, split_cjk: bool) -> np.ndarray:
    """Returns uint32[CODE_POINTS]: the actions by cleaning and splitting alone."""
    major = category_table()[:, 0]
    actions = np.full(CODE_POINTS, KEEP, np.uint32)
    if kind == 'bert':
        actions[major == ord('C')] = DROP
    # Other characters that cleaning or splitting treats apart are ASCII, or of these categories.
    special = np.isin(major, np.frombuffer(b'ZP', np.uint8))
    minor_control = np.isin(category_table()[:, 1], np.frombuffer(b'cf', np.uint8))
    special |= (major == ord('C')) & minor_control
    special[:0x80] = special[0xFFFD] = True
    for code_point in np.flatnonzero(special).tolist():
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
def _changing_code_points(lower_case: bool) -> np.ndarray:
    """Returns int64[...]: code points that lowercasing or normalizing may change."""
    seconds = _second_in_compositions()
    return np.array(
        [
            code_point
            for code_point in _decomposed_or_cased()
            if (lower_case and chr(code_point).lower() != chr(code_point))
            or code_point in seconds
            or unicodedata.category(chr(code_point))[0] == 'M'
            or unicodedata.combining(chr(code_point))
            or not unicodedata.is_normalized('NFD', chr(code_point))
        ],
        np.int64,
    )


@functools.cache
def _decomposed_or_cased() -> list[int]:
    """Returns the code points of the blocks in which any is lowercased, decomposed or composed."""
    code_points: list[int] = []
    major = category_table()[:, 0]
    composing_blocks = {code_point // BLOCK for code_point in _second_in_compositions()}
    for first in range(0, CODE_POINTS, BLOCK):
        if first in range(0xD800, 0xE000) or np.all(major[first : first + BLOCK] == ord('C')):
            continue
        text = ''.join(map(chr, range(first, first + BLOCK)))
        if (
            text.lower() != text
            or (major[first : first + BLOCK] == ord('M')).any()
            or not unicodedata.is_normalized('NFD', text)
            or first // BLOCK in composing_blocks
        ):
            code_points += range(first, first + BLOCK)
    return code_points


@functools.cache
def _second_in_compositions() -> frozenset[int]:
    """Returns the code points that NFC may compose with the character before them."""
    seconds = set()
    for first in range(0, CODE_POINTS, BLOCK):
        text = ''.join(map(chr, range(first, first + BLOCK)))
        if first in range(0xAC00, 0xE000) or unicodedata.is_normalized('NFD', text):
            continue
        for character in text:
            parts = unicodedata.decomposition(character).split()
            if len(parts) == 2 and not parts[0].startswith('<'):
                if unicodedata.is_normalized('NFC', character):
                    seconds.add(int(parts[1], 16))
    # Hangul composes by rule: a consonant with a vowel, and a syllable with a final consonant.
    for syllable in (*range(0xAC00, 0xAC00 + 28), *range(0xAC00, 0xAC00 + 28 * 21, 28)):
        seconds.update(map(ord, unicodedata.normalize('NFD', chr(syllable))[1:]))
    return frozenset(seconds)


def _written_as(character: str, kind: Kind, lower_case: bool, strip: bool) -> str:
    """Returns what a character becomes by itself."""
    result = character.lower() if lower_case else character
    if kind == 'bert':
        result = unicodedata.normalize('NFC', result)
        result = result.lower() if lower_case else result
    return strip_marks(result) if strip else result


def _combining_classes(
    character: str, result: str, kind: Kind, lower_case: bool, strip: bool
) -> int:
    """Returns what `classes` has for a character; 0 if its neighbors do not matter."""
    if kind == 'bert-original' and lower_case and character == _SIGMA:
        return _ALWAYS
    if kind == 'bert-original' and not strip:
        return 0  # nothing is normalized
    classes = list(map(unicodedata.combining, result))
    if not strip:
        # Text is in NFC if its marks are in order, nothing composes, and each character stays.
        lowered = character.lower() if lower_case else character
        seconds = _second_in_compositions()
        if any(ord(character) in seconds for character in lowered + result):
            return _ALWAYS
        if any(map(unicodedata.combining, lowered + result)) and result != character:
            return _ALWAYS
    # Stripped marks cannot change the order; other marks may change places.
    return classes[0] | classes[-1] << 8 if any(classes) else 0
