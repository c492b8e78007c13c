"""BERT's tokens as kernels: written to a buffer 64 bytes at a time, and slices of it.

Bytes that stay are copied at once, capitals lowered on the way, and the places of tokens are bits.
What becomes something else, or nothing, is looked up character by character. A table gives each
code point an action (uint32): flags in the lowest five bits, then the number of bytes written, and
in the highest 22 bits where they begin in `expansions`. Rows whose characters act on each other,
which normalization may reorder or join, are told by the quick check of Unicode's UAX #15 and cut in
plain Python.
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
    without_marks,
)
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, scan_tokens
from tokcore.text.unicode import CODE_POINTS, category_table, decode_word, ideograph_mask

CHUNK = 64

_CHUNK, _WORD = np.uint64(CHUNK), np.uint64(8)

_BYTE = np.uint64(255)

SOFT_BYTES = 64 << 10
"""Of the buffer are used at once, and stay in a core's cache, but for a token that is longer."""

_SOFT = np.uint64(SOFT_BYTES)

_SPARSE = np.uint64(8)  # more characters of 64 bytes are looked up one after another

_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_ALL, _LAST = ~_0, np.uint64(63)

BLOCK = 256

_BLOCK = np.uint64(BLOCK)

BORDER, WRITTEN, ALONE, EXPANDED, ASKING = 1, 2, 4, 8, 16
"""Flags: a token before it ends here; bytes are written; the token ends behind them too; they are
an expansion; the place or the form of what is written may depend on the characters beside it."""

_BORDER, _WRITTEN, _ALONE = np.uint64(BORDER), np.uint64(WRITTEN), np.uint64(ALONE)
_EXPANDED = np.uint64(EXPANDED)

FLAG_BITS, LENGTH_BITS = 5, 5

_FLAG_BITS, _OFFSET_BITS = np.uint64(FLAG_BITS), np.uint64(FLAG_BITS + LENGTH_BITS)
_LENGTH = np.uint64((1 << LENGTH_BITS) - 1)
_FOUR, _NIBBLE = np.uint64(4), np.uint64(0xF)
_SIZES = np.uint64(0x4322000011111111)  # of characters, by the high half of their first byte

DROP, SPACE, KEEP, SOLO = 0, BORDER, WRITTEN, BORDER | WRITTEN | ALONE
"""Nothing at all; nothing, and no token goes across; a character of a word; a token by itself."""

ALWAYS = 0xFFFF
"""Among `classes`: the character's neighbours decide, whichever they are."""

_LONGEST_EXPANSION = 16  # bytes: two words, which kernels store at once
_COMMON_IDEOGRAPHS = slice(0x4E00, 0x9FC0)  # those of `ideograph_mask`
_SIGMA = 'Σ'  # lower() looks at the whole word for it alone


@kernel_without_allocation
def find_out_of_order(text, starts, ends, tables, found):
    """Sets `found` (uint8[rows], 0 at first) to 1 for rows that are not done by tables."""
    for row in range(len(starts)):
        found[row] = is_out_of_order(text, np.uint64(starts[row]), np.uint64(ends[row]), tables)


@kernel_without_allocation
def _class_before(text, behind, place, tables, last):
    """The combining class before a place, `last` being that of what ends at `behind`.

    What is dropped between them parts nothing; only the first character is looked at.
    """
    if behind < place:
        action = tables.actions[action_place(tables, decode_word(load_word(text, behind)))]
        if action & (WRITTEN | BORDER):
            return _0
    return last


@kernel_without_allocation
def is_out_of_order(text, start, end, tables):
    """Whether normalizing may do more to text[start:end] than to each of its characters."""
    last, behind = _0, start
    while start < end:
        inside = ~_0 >> (_CHUNK - min(end - start, _CHUNK))
        leads = byte_range_mask(text, start, 0xC0, 0xFF) & inside
        if leads != _0 and tables.ideograph:
            leads &= ~ideograph_mask(text, start)
        while leads != _0:
            place = start + trailing_zeros(leads)
            leads &= leads - _1
            if not tables.asking[text[place]]:
                continue
            word = load_word(text, place)
            found = action_place(tables, decode_word(word))
            if tables.actions[found] & ASKING:
                classes = np.uint64(tables.classes[found])
                if classes == ALWAYS:
                    return True
                first = classes & _BYTE
                if first and _class_before(text, behind, place, tables, last) > first:
                    return True
                last, behind = classes >> np.uint64(8), place + character_size(word)
        start += _CHUNK
    return False


class KnownRows(NamedTuple):
    """Rows whose tokens are known: row r has those from `row_tokens[number]` on, up to the next."""

    numbers: np.ndarray  # int64[rows]: number of each row, or -1; of no length where none is known
    row_tokens: np.ndarray  # int64[known rows + 1]
    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[tokens + 1]: token i is text[offsets[i]:offsets[i + 1]]


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


class BertText(NamedTuple):
    """The state: what becomes of characters, and what is not looked up."""

    tables: BertTables
    lowering: np.uint8  # 0x20 if capitals are lowered, else 0
    buffer: np.ndarray  # uint8: the tokens of a call
    known: KnownRows
    special_starts: np.ndarray  # uint64[...]: of tokens in the rows' text that stay as they are
    special_ends: np.ndarray  # uint64[...]: and their ends


@kernel_without_allocation
def _word_start(text, start, place, tables):
    """Where the word began that is open at a place; nothing before `start` is of it."""
    while place > start:
        before = place - _1
        while text[before] & 0xC0 == 0x80:
            before -= _1
        if action_of(tables, load_word(text, before)) & np.uint64(BORDER):
            break
        place = before
    return place


@kernel_without_allocation
def _put_token(text, start, end, buffer, tokens, written):
    """Writes a token as it stands, once an open one is ended; returns `Written`."""
    begun, ended, used = written
    tokens.ends[ended] = used
    tokens.starts[begun] = used
    copy_bytes(buffer, used, text, start, end - start)
    used += end - start
    tokens.ends[begun] = used
    return Written(begun + _1, begun + _1, used)


@kernel_without_allocation
def _put_known(row, position, state, tokens, written):
    """Writes the tokens of a row that are known, from one on, while there is room.

    Returns the position, -1 behind the last, and `Written`.
    """
    known = state.known
    number = known.numbers[row]
    token = known.row_tokens[number] + max(position, 0)
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    while token < known.row_tokens[number + 1]:
        if written.begun >= room or written.used > _SOFT:
            return token - known.row_tokens[number], written
        start, end = np.uint64(known.offsets[token]), np.uint64(known.offsets[token + 1])
        written = _put_token(known.text, start, end, state.buffer, tokens, written)
        token += 1
    return np.int64(-1), written


@inlined_kernel
def _put_looked_up(rows, row, position, state, tokens, written):
    """Writes the tokens of a row from a position on, while there is room; as `_put_known`."""
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
            place, stop, written = scan_chunk(rows.text, place, stop, state, tokens, written)
            place, written = scan_characters(rows.text, place, stop, state, tokens, written)
    tokens.ends[written.ended] = written.used
    return np.int64(-1), Written(written.begun, written.begun, written.used)


@scan_tokens.register(BertText)
@kernel_without_allocation
def scan_bert_words(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the buffer.

    A position is a place in the text, or of a row whose tokens are known the number of one.
    """
    written = Written(_0, _0, _0)
    numbers = pre_tokenizer.known.numbers
    while row < len(rows.starts):
        if len(numbers) > 0 and numbers[row] >= 0:
            stopped, written = _put_known(row, position, pre_tokenizer, tokens, written)
        else:
            stopped, written = _put_looked_up(rows, row, position, pre_tokenizer, tokens, written)
        if stopped >= 0:
            return row, stopped, np.int64(written.ended)
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(written.ended)
    return row, np.int64(position), np.int64(written.ended)


class Written(NamedTuple):
    """How far a call has come: tokens begun and ended, and bytes of the buffer."""

    begun: np.uint64
    ended: np.uint64
    used: np.uint64


@kernel_without_allocation
def character_size(word):
    """The bytes of the character that begins a little-endian word."""
    return _SIZES >> ((word >> _FOUR & _NIBBLE) << _2) & _NIBBLE


@kernel_without_allocation
def action_place(tables, code):
    """Where in `actions` and `classes` a code point's are."""
    return np.uint64(tables.index[code // _BLOCK]) * _BLOCK + code % _BLOCK


@kernel_without_allocation
def action_of(tables, word):
    """That of the character that begins a little-endian word."""
    return np.uint64(tables.actions[action_place(tables, decode_word(word))])


@kernel_without_allocation
def _copy_lowered(text, place, lowering, buffer, used):
    """Copies 64 bytes, capitals of ASCII lowered."""
    for k in range(_CHUNK):
        byte = text[place + k]
        is_capital = (byte >= np.uint8(0x41)) & (byte <= np.uint8(0x5A))
        buffer[used + k] = byte + (lowering if is_capital else np.uint8(0))


@inlined_kernel
def scan_characters(text, place, stop, state, tokens, written):
    """Looks up the characters from a place on that begin before another one.

    Returns the place behind them and `Written`. No branch depends on what they are.
    """
    begun, ended, used = written
    tables, buffer = state.tables, state.buffer
    while place < stop:
        word = load_word(text, place)
        place += character_size(word)
        action = action_of(tables, word)
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
    """Bits of the characters that begin at some: those of words, those alone, those that change."""
    letters = alone = changing = _0
    while leads != _0:
        byte = trailing_zeros(leads)
        leads &= leads - _1
        action = action_of(tables, load_word(text, place + byte))
        stays = action & (_EXPANDED | _WRITTEN | _BORDER)
        changing |= np.uint64(stays == _0 or stays >= _EXPANDED) << byte
        alone |= (action >> _2 & _1) << byte
        letters |= np.uint64(action & (_WRITTEN | _ALONE) == _WRITTEN) << byte
    return letters, alone, changing


@kernel_without_allocation
def _last_character(text, place):
    """How many of 64 bytes are of characters that do not go on behind them."""
    if text[place + _CHUNK] & 0xC0 != 0x80:
        return _CHUNK
    size = _LAST
    while text[place + size] & 0xC0 == 0x80:
        size -= _1
    return size


@inlined_kernel
def _class_others(text, place, end, letters, alone, tables):
    """Classes the characters of a chunk that are not printable ASCII, whose bits are given.

    Returns the bits of letters, of tokens by themselves and of bytes behind the first of
    characters, how many bytes can be copied, and how many after them are not to be looked at again.
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
def scan_chunk(text, place, end, state, tokens, written):
    """Scans up to 64 bytes of text[place:end] that stay as they are, but for capitals.

    Returns the place behind them, the one that characters are to be looked up to, and `Written`.
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
    # A word at the end stays open.
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
    """Returns the tables of BERT's rules; `strip` says whether marks are taken off.

    They come from this Python's `unicodedata`, as `unicode` do.
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


def _combining(character: str, result: str, kind: Kind, lower_case: bool, strip: bool) -> int:
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
