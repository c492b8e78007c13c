"""The normalizers of a tokenizer.json, as functions of the texts of a block.

Marks and control characters are those of Unicode 8 and 9, as in `tokenizers`; the rest is as in this
Python's `unicodedata`.

`tokenizers` applies a charsmap by grapheme clusters: of a cluster of up to five bytes the shortest string
at its start replaces the whole cluster; otherwise characters are replaced one by one, each by the shortest
string too. So a table of characters does it, except where two neighbors of up to five bytes may be of
one cluster and a string begins in the first. Such rows are replaced by `ClusterReplacements.__call__`.
"""

from __future__ import annotations

import base64
import functools
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import regex

from tokcore.bpe.vocabulary import expression_tree, flattened, part_type, refuse
from tokcore.errors import InputError
from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.text.alignment import AlignedText
from tokcore.text.bert_plain import is_cjk
from tokcore.text.expression_trees import spelled
from tokcore.text.patterns import WHITE_SPACE
from tokcore.text.regex_splits import matches, replacing
from tokcore.text.rewriting import replace_rows, rewrite_rows
from tokcore.text.rows import Side
from tokcore.text.unicode import CODE_POINTS, category_in, next_character, runs_of
from tokcore.text.unicode_normalization import (
    STAYS,
    Replacements,
    normalize_by_9,
    normalize_rows,
    write_replaced,
)


class TextStep(NamedTuple):
    """A normalizer.

    Attributes:
        rewrite: rewrites texts, as many as there are. No text is within another.
        align: does the same with one text that knows where its characters come from.
        leaves_ascii: whether text in ASCII stays as it is.
    """

    rewrite: Callable[[Side], Side]
    align: Callable[[AlignedText], AlignedText]
    leaves_ascii: bool = False


# Unicode has changed its mind about these since.
_NONSPACING_IN_8 = {'\u1734': True, **dict.fromkeys('\u1885\u1886\ua9bd\U000111c9', False)}
_MARKS_IN_9 = {'\u1cf2': True, '\u1cf3': True, '\U000111c9': False}


def text_steps(part: Any, path: str, place: str) -> list[TextStep]:
    """Returns the steps of a normalizer, in their order.

    Raises:
        InputError: one of them is not supported.
    """
    return [
        _step(member, path, where) for member, where in flattened(part, 'normalizers', path, place)
    ]


def _step(part: Mapping[str, Any], path: str, where: str) -> TextStep:
    kind = part_type(part, path, where)
    match kind:
        case 'NFC' | 'NFD' | 'NFKC' | 'NFKD' as form:
            return TextStep(
                functools.partial(normalize_rows, form=form),
                operator.methodcaller('normalized', form),
                leaves_ascii=True,
            )
        case 'Lowercase':
            return _by_character(_lowercase)
        case 'StripAccents':
            return _by_character(_without_marks)
        case 'Strip':
            sides = bool(part.get('strip_left', True)), bool(part.get('strip_right', True))
            return _text_step(
                functools.partial(_stripped, sides=sides),
                functools.partial(_aligned_stripped, sides=sides),
            )
        case 'Prepend':
            prefix = _string(part, 'prepend', path, where)
            return TextStep(
                functools.partial(prepended, prefix=prefix), lambda text: text.prepended(prefix)
            )
        case 'Replace':
            return _replacement(part, path, where)
        case 'Precompiled':
            replacements = _cluster_replacements(part, path, where)
            return TextStep(replacements.rewrite, replacements.align)
        case 'BertNormalizer':
            return _bert_step(part)
    refuse(path, where, f'the normalizer {kind}')


def _text_step(
    change: Callable[[str], str], align: Callable[[AlignedText], AlignedText]
) -> TextStep:
    return TextStep(functools.partial(rewritten, change=change), align)


def _by_character(change: Callable[[str], str]) -> TextStep:
    """Returns a step that changes each character by itself."""
    return _text_step(change, operator.methodcaller('mapped', change))


def _cluster_replacements(part: Mapping[str, Any], path: str, where: str) -> ClusterReplacements:
    try:
        data = base64.b64decode(part.get('precompiled_charsmap') or '', validate=True)
        charsmap = parse_charsmap(data)
    except (TypeError, ValueError):
        charsmap = None
    if charsmap is None or not data:
        raise InputError(
            f'{path}: {where}.precompiled_charsmap is damaged; give a whole tokenizer.json'
        )
    return ClusterReplacements(charsmap)


def prepended(side: Side, prefix: str, to: np.ndarray | None = None) -> Side:
    """Returns the texts with a prefix, except for empty ones, and for those where `to`, bool[texts], is False."""
    spaced = side.with_prefix(prefix)
    is_left_out = side.starts == side.ends
    if to is not None:
        is_left_out |= ~to
    starts = spaced.starts + is_left_out * len(prefix.encode())
    return Side(spaced.text, starts, spaced.ends)


def starting_with(side: Side, prefix: str) -> np.ndarray:
    """Returns bool[texts]: which of them start with a prefix."""
    data = np.frombuffer(prefix.encode(), np.uint8)
    starts = side.ends - side.starts >= len(data)
    for number, byte in enumerate(data.tolist()):
        starts[starts] = side.text[side.starts[starts] + number] == byte
    return starts


def _string(part: Mapping[str, Any], name: str, path: str, where: str) -> str:
    value = part.get(name)
    if not isinstance(value, str):
        refuse(path, f'{where}.{name}', f'{value!r:.80} for a string')
    return value


def _replacement(part: Mapping[str, Any], path: str, where: str) -> TextStep:
    content = _string(part, 'content', path, where)
    match part.get('pattern'):
        case {'String': str(text)} if text:
            rewrite: Callable[[Side], Side] = functools.partial(
                replaced, old=text.encode(), new=content.encode()
            )
            if '\n' in text or '\n' in content:
                rewrite = functools.partial(
                    rewritten, change=lambda value: value.replace(text, content)
                )
            literal = re.compile(re.escape(text))
            return TextStep(
                rewrite,
                lambda value: value.replaced(
                    [match.span() for match in literal.finditer(value.text)], content
                ),
            )
        case {'Regex': str(expression)}:
            tree = expression_tree(expression, path, f'{where}.pattern')
            return _text_step(
                replacing(tree, content),
                lambda value: value.replaced(matches(spelled(tree), value.text), content),
            )
    refuse(path, f'{where}.pattern', f'the pattern {part.get("pattern")!r:.80}')


def replaced(side: Side, old: bytes, new: bytes) -> Side:
    """Returns the texts with some bytes for others; none of them is a line feed."""
    # So all texts can be one, with line feeds between.
    return rewrite_rows(side, np.arange(len(side)), lambda lines: lines.replace(old, new))


def rewritten(side: Side, change: Callable[[str], str]) -> Side:
    """Returns the texts, each of them changed by a function."""
    numbers, texts = [], []
    data = side.text.tobytes()
    bounds = zip(side.starts.tolist(), side.ends.tolist(), strict=True)
    for number, (start, end) in enumerate(bounds):
        text = data[start:end].decode('utf-8', 'surrogatepass')
        changed = change(text)
        if changed != text:
            numbers.append(number)
            texts.append(changed.encode('utf-8', 'surrogatepass'))
    if not numbers:
        return side
    offsets = row_offsets([*map(len, texts)])
    new = Side(np.frombuffer(b''.join(texts), np.uint8), offsets[:-1], offsets[1:])
    return replace_rows(side, np.array(numbers), new)


def _lowercase(text: str) -> str:
    # `tokenizers` lowers each character by itself, so it has no final sigma.
    return text.replace('Σ', 'σ').lower()


def _without_marks(text: str) -> str:
    if text.isascii():
        return text
    return ''.join(character for character in text if not _is_mark(character))


@functools.lru_cache(1 << 14)
def _is_mark(character: str) -> bool:
    return _MARKS_IN_9.get(character, category_in(9, character)[0] == 'M')


def _without_nonspacing_marks(text: str) -> str:
    """Returns a text decomposed (NFD), without its nonspacing marks."""
    if text.isascii():
        return text
    decomposed = normalize_by_9('NFD', text)
    return ''.join(character for character in decomposed if not _is_nonspacing(character))


@functools.lru_cache(1 << 14)
def _is_nonspacing(character: str) -> bool:
    return _NONSPACING_IN_8.get(character, category_in(8, character) == 'Mn')


def _stripped(text: str, sides: tuple[bool, bool]) -> str:
    left, right = sides
    if left:
        text = text.lstrip(WHITE_SPACE)
    return text.rstrip(WHITE_SPACE) if right else text


def _aligned_stripped(text: AlignedText, sides: tuple[bool, bool]) -> AlignedText:
    first = len(text.text) - len(_stripped(text.text, (sides[0], False)))
    return text.part(first, first + len(_stripped(text.text, sides)))


def _bert_step(part: Mapping[str, Any]) -> TextStep:
    lower = bool(part.get('lowercase', True))
    strips = lower if part.get('strip_accents') is None else bool(part['strip_accents'])
    wanted: dict[str, dict] = {'clean_text': _CLEANED, 'handle_chinese_chars': _SPACED}
    tables = [table for name, table in wanted.items() if part.get(name, True)]

    def change(text: str) -> str:
        for table in tables:
            text = text.translate(table)
        if strips:
            text = _without_nonspacing_marks(text)
        return _lowercase(text) if lower else text

    def align(text: AlignedText) -> AlignedText:
        for table in tables:
            text = text.mapped(operator.methodcaller('translate', table))
        if strips:
            text = text.decomposed_by_9().mapped(_without_nonspacing_marks)
        return text.mapped(_lowercase) if lower else text

    return _text_step(change, align)


class _Cleaned(dict):
    """The table for `str.translate`: control characters vanish, and white space is U+0020."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        if character in WHITE_SPACE and (
            character in '\t\n\r' or unicodedata.category(character) != 'Cc'
        ):
            value: str | None = ' '
        elif code in (0, 0xFFFD) or category_in(8, character) in ('Cc', 'Cf', 'Co', 'Cs'):
            value = None
        else:
            value = character
        self[code] = value
        return value


class _Spaced(dict):
    """The table for `str.translate`: spaces around ideographs, but for U+2B820 to U+2B91F, as in `tokenizers`."""

    def __missing__(self, code: int) -> str:
        is_ideograph = is_cjk(code) and not 0x2B820 <= code < 0x2B920
        value = f' {chr(code)} ' if is_ideograph else chr(code)
        self[code] = value
        return value


_CLEANED, _SPACED = _Cleaned(), _Spaced()

_LARGEST_CLUSTER = 5  # bytes
_CACHED = 1 << 16  # clusters
_CLUSTERS = regex.compile(r'\X')

_BEGINS_STRING, _JOINS_LAST, _JOINS_NEXT = 1, 2, 4
_JOINING = {
    # Others that join have three bytes, and so have those that they join.
    r'[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]+': _JOINS_LAST,
    r'[\p{GCB=Prepend}\p{GCB=CR}]+': _JOINS_NEXT,
}
_SAME, _OTHER = -1, -2


class ClusterReplacements:
    """What `tokenizers` makes of text with a charsmap."""

    def __init__(self, charsmap: Charsmap):
        """Takes the strings and their replacements."""
        self._charsmap = charsmap
        self._replaced = functools.lru_cache(_CACHED)(self._of_cluster)

    def __reduce__(self) -> tuple[type, tuple[Charsmap]]:
        return type(self), (self._charsmap,)

    def __call__(self, text: str) -> str:
        """Returns a text with its replacements."""
        return ''.join(map(self._replaced, _CLUSTERS.findall(text)))

    def align(self, text: AlignedText) -> AlignedText:
        """Returns a text with its replacements, which knows where its characters come from."""
        changes: list[tuple[str, int]] = []
        for cluster in _CLUSTERS.findall(text.text):
            for old, new in self._parts(cluster):
                changes += [(each, int(number >= len(old))) for number, each in enumerate(new)]
                if changes and len(new) < len(old):
                    changes[-1] = changes[-1][0], changes[-1][1] + len(new) - len(old)
        return text.changed(changes)

    def rewrite(self, side: Side) -> Side:
        """Returns the rows with their replacements."""
        table = self._table
        sizes = np.empty(len(side), np.int64)
        _measure(*side.arrays(), table, sizes)
        changed = np.flatnonzero(sizes >= 0)
        if len(changed):
            offsets = row_offsets(sizes[changed])
            text = np.empty(int(offsets[-1]), np.uint8)
            write_replaced(*side.take(changed).arrays(), table.replacements, offsets, text)
            side = replace_rows(side, changed, Side(text, offsets[:-1], offsets[1:]))
        rows = np.flatnonzero(sizes == _OTHER)
        if not len(rows):
            return side
        return replace_rows(side, rows, rewritten(side.take(rows).joined(), self))

    @functools.cached_property
    def _table(self) -> _ClusterTable:
        kinds = np.zeros(CODE_POINTS, np.uint8)
        places = np.full(CODE_POINTS, -1)
        bounds = (0, 0x80, 0x800, 0x10000, CODE_POINTS)
        for size in range(1, 5):
            codes = np.arange(*bounds[size - 1 : size + 1])
            begin, places[codes] = strings_of_characters(codes, size, self._charsmap)
            kinds[codes[begin]] = _BEGINS_STRING
        for expression, kind in _JOINING.items():
            for first, end in runs_of(expression):
                kinds[first:end] |= kind
        numbers = np.full(CODE_POINTS, STAYS, np.int32)
        is_replaced = places >= 0
        distinct, numbers[is_replaced] = np.unique(places[is_replaced], return_inverse=True)
        pool = [replacement_at(self._charsmap, place) for place in distinct.tolist()]
        data = read_only(np.frombuffer(b''.join(pool), np.uint8))
        offsets = read_only(row_offsets(list(map(len, pool))))
        return _ClusterTable(read_only(kinds), Replacements(read_only(numbers), offsets, data))

    def _of_cluster(self, cluster: str) -> str:
        return ''.join(new for _, new in self._parts(cluster))

    def _parts(self, cluster: str) -> list[tuple[str, str]]:
        """Returns what is replaced of a cluster, all of it or each character, with what replaces it."""
        if len(cluster.encode('utf-8', 'surrogatepass')) <= _LARGEST_CLUSTER:
            replaced = shortest_replacement(cluster, self._charsmap)
            if replaced is not None:
                return [(cluster, replaced)]
        replacements = [shortest_replacement(each, self._charsmap) for each in cluster]
        return [
            (character, character if new is None else new)
            for character, new in zip(cluster, replacements, strict=True)
        ]


class _ClusterTable(NamedTuple):
    """What becomes of each character that is a cluster."""

    kinds: np.ndarray  # uint8[0x110000]: bits
    replacements: Replacements


@kernel_without_allocation
def _measure(text, starts, ends, table, sizes):
    """Fills in the bytes of each row once its characters are replaced.

    int64[rows]: -1 for rows that stay, -2 for those that the table cannot do.
    """
    replacements = table.replacements
    for row in range(len(starts)):
        position, end = starts[row], ends[row]
        size, stays = 0, True
        last, last_begins = position, False
        while position < end:
            character, after = next_character(text, position)
            kind = table.kinds[character]
            joins_last = kind & _JOINS_LAST and last_begins and after - last <= _LARGEST_CLUSTER
            if joins_last or (kind & _JOINS_NEXT and after < end):
                size, stays = _OTHER, False
                break
            number = replacements.numbers[character]
            if number >= 0:
                size += replacements.offsets[number + 1] - replacements.offsets[number]
                stays = False
            else:
                size += after - position
            last, last_begins = position, kind & _BEGINS_STRING != 0
            position = after
        sizes[row] = _SAME if stays else size


_LABEL = np.uint32((1 << 31) | 0xFF)
_PLACE = (1 << 31) - 1
_0, _1, _BYTE, _LAST_BYTE = (np.uint64(number) for number in (0, 1, 0xFF, 56))
_NEXT, _LOW = np.uint64(0x80), np.uint64(0x3F)  # a later byte's lead, and its other bits
_LEADS = (0, 0, 0xC0, 0xE0, 0xF0)  # the bits that characters of so many bytes begin with


class Charsmap(NamedTuple):
    """SentencePiece's `precompiled_charsmap`: strings and what replaces them, in a double array of Darts.

    The layout of a file's is a number of bytes (uint32, little-endian), so many bytes of the double array,
    and the replacements, each of which ends with a zero byte. A unit of the array is a uint32: its label
    in bits 0 to 7 and 31, whether a string ends at it in bit 8, and the offset of its children in bits
    10 to 30, times 256 if bit 9 is set. The child of node n by a byte is unit n ^ offset ^ byte, if that
    has the byte as its label; the child by zero has the place of the replacement.

    SentencePiece replaces the longest string at each place; `ClusterReplacements` does what `tokenizers`
    does. Arrays are read-only.
    """

    units: np.ndarray  # uint32[units]; none if nothing is replaced
    replacements: np.ndarray  # uint8[bytes]


def parse_charsmap(data: bytes) -> Charsmap | None:
    """Returns the strings and their replacements, or None if the data is damaged."""
    if not data:
        return Charsmap(read_only(np.empty(0, np.uint32)), read_only(np.empty(0, np.uint8)))
    size = int.from_bytes(data[:4], 'little')
    if len(data) <= 4 or not 0 < size < len(data) - 3 or size % 4:
        return None
    units = np.frombuffer(data, '<u4', size // 4, 4).astype(np.uint32)
    replacements = np.frombuffer(data, np.uint8, offset=4 + size).copy()
    try:
        replacements.tobytes().decode()
    except UnicodeDecodeError:
        return None
    # So no walk leaves the arrays.
    nodes = np.arange(len(units), dtype=np.uint32)
    is_node = units >> np.uint32(31) == 0
    is_node[0] = True  # the root, whose label nobody reads
    base = nodes ^ _child_offsets(units)
    if (base[is_node] | np.uint32(0xFF)).max(initial=0) >= len(units):
        return None
    ends = base[is_node & (units >> np.uint32(8) & np.uint32(1) == 1)]
    values = units[ends] & np.uint32(_PLACE)
    if values.max(initial=0) >= max(1, len(replacements)):
        return None
    if (replacements[values[values < len(replacements)]] & 0xC0 == 0x80).any():
        return None  # within a character
    return Charsmap(read_only(units), read_only(replacements))


def _child_offsets(units: np.ndarray) -> np.ndarray:
    return (units >> np.uint32(10)) << ((units & np.uint32(1 << 9)) >> np.uint32(6))


def replacement_at(charsmap: Charsmap, place: int) -> bytes:
    """Returns the replacement that begins at a place."""
    data = charsmap.replacements[place:].tobytes()
    return data.partition(b'\0')[0]


def shortest_replacement(text: str, charsmap: Charsmap) -> str | None:
    """Returns the replacement of the shortest string that a text begins with; None if there is none."""
    units = charsmap.units
    if not len(units):
        return None
    node = int(_child_offsets(units[:1])[0])
    for byte in text.encode('utf-8', 'surrogatepass'):
        if byte == 0:
            return None
        node ^= byte
        unit = int(units[node])
        if unit & int(_LABEL) != byte:
            return None
        node ^= (unit >> 10) << ((unit & (1 << 9)) >> 6)
        if unit >> 8 & 1:
            return replacement_at(charsmap, int(units[node]) & _PLACE).decode()
    return None


def strings_of_characters(
    codes: np.ndarray, size: int, charsmap: Charsmap
) -> tuple[np.ndarray, np.ndarray]:
    """Returns what a charsmap has for characters, int64[characters], of `size` bytes of UTF-8.

    Whether a string begins with each, or ends in it: bool[characters]; and the places of the shortest
    ones' replacements, int64[characters], -1 if they end later.
    """
    places = np.full(len(codes), -1, np.int64)
    units = charsmap.units
    if not len(units):
        return np.zeros(len(codes), np.bool_), places
    go_on = np.ones(len(codes), np.bool_)
    nodes = np.full(len(codes), _child_offsets(units[:1])[0])
    for number in range(size):
        bits = codes >> 6 * (size - 1 - number)
        bytes_ = (bits & 0x3F | 0x80 if number else bits | _LEADS[size]).astype(np.uint32)
        nodes = np.where(go_on, nodes ^ bytes_, 0)
        node_units = units[nodes]
        go_on &= (node_units & _LABEL == bytes_) & (bytes_ != 0)
        nodes = np.where(go_on, nodes ^ _child_offsets(node_units), 0)
        is_end = go_on & (places < 0) & (node_units >> np.uint32(8) & np.uint32(1) == 1)
        places[is_end] = units[nodes[is_end]] & np.uint32(_PLACE)
    return go_on | (places >= 0), places


def sizes_of_unchanged(charsmap: Charsmap) -> np.ndarray:
    """Returns the bytes of characters that SentencePiece does not replace, by their first byte.

    uint8[256]: 0 if the charsmap has a string for that byte to begin. A byte of ASCII has 1 also if each
    of these strings goes on with another character than of ASCII; then that must not follow.
    """
    sizes = np.zeros(256, np.uint8)
    for first, size in ((0, 1), (0xC0, 2), (0xE0, 3), (0xF0, 4)):
        sizes[first:] = size
    sizes[0x80:0xC0] = 0  # not the first byte of a character
    units = charsmap.units
    if not len(units):
        return sizes
    labels = np.arange(256, dtype=np.uint32)
    nodes = _child_offsets(units[:1])[0] ^ labels
    has_strings = units[nodes] & _LABEL == labels
    sizes[has_strings & (labels >= 0x80)] = 0
    for byte in np.flatnonzero(has_strings[:0x80]).tolist():
        unit = units[nodes[byte]]
        children = nodes[byte] ^ _child_offsets(unit) ^ labels[1:0x80]
        if (
            unit >> np.uint32(8) & np.uint32(1)
            or (units[children] & _LABEL == labels[1:0x80]).any()
        ):
            sizes[byte] = 0
    return sizes


def words_of_characters(charsmap: Charsmap) -> np.ndarray:
    """Returns what SentencePiece writes for characters of three bytes, whatever follows, by their code point.

    uint64[0x10000]: up to seven bytes, the first the lowest, and as the last one their number. It is 0 where
    they are more or none, or have U+0020; and where a longer string begins with the character.
    """
    words = np.zeros(1 << 16, np.uint64)
    _put_words(charsmap, words)
    return words


@kernel_without_allocation
def _put_words(charsmap, words):
    """Fills in the words of `words_of_characters`."""
    units, replacements = charsmap.units, charsmap.replacements
    for code in range(np.uint64(0x800), np.uint64(len(words))):
        lead, second = np.uint64(0xE0) | code >> np.uint64(12), code >> np.uint64(6) & _LOW | _NEXT
        own = lead | second << np.uint64(8) | (code & _LOW | _NEXT) << np.uint64(16)
        words[code] = own | np.uint64(3) << _LAST_BYTE
        if len(units) == 0:
            continue
        unit = np.uint64(units[0])
        node = _offset(unit)
        matched = 0
        while matched < 3:
            byte = own >> np.uint64(8 * matched) & _BYTE
            unit = np.uint64(units[node ^ byte])
            if unit & np.uint64(_LABEL) != byte:
                break
            node ^= byte ^ _offset(unit)
            matched += 1
            # A string may end here, even within the character.
            if unit >> np.uint64(8) & _1:
                words[code] = _0
        if matched == 3:
            words[code] = _0
            goes_on = unit >> np.uint64(8) & _1 == _0
            for byte in range(_1, _BYTE + _1):
                goes_on |= np.uint64(units[node ^ byte]) & np.uint64(_LABEL) == byte
            if not goes_on:
                words[code] = _word(replacements, np.uint64(units[node]) & np.uint64(_PLACE))


@kernel_without_allocation
def _word(replacements, place):
    """Returns the word of `words_of_characters` for the replacement at a place."""
    word = size = _0
    while place < np.uint64(len(replacements)) and replacements[place] != 0:
        byte = np.uint64(replacements[place])
        if size == np.uint64(7) or byte == np.uint64(0x20):
            return _0
        word |= byte << (size << np.uint64(3))
        size += _1
        place += _1
    return word | size << _LAST_BYTE if size else _0


@kernel_without_allocation
def longest_replacement(text, place, end, charsmap):
    """Returns the end of the longest string at text[place:end], and where its replacement is.

    The end is the place (uint64) if there is none.
    """
    units = charsmap.units
    longest, value = place, np.uint64(0)
    if len(units) == 0:
        return longest, value
    unit = np.uint64(units[0])
    node = _offset(unit)
    while place < end:
        byte = np.uint64(text[place])
        node ^= byte
        unit = np.uint64(units[node])
        if unit & np.uint64((1 << 31) | 0xFF) != byte or byte == np.uint64(0):
            break
        node ^= _offset(unit)
        place += np.uint64(1)
        if unit >> np.uint64(8) & np.uint64(1):
            longest, value = place, np.uint64(units[node]) & np.uint64(_PLACE)
    return longest, value


@kernel_without_allocation
def _offset(unit):
    return (unit >> np.uint64(10)) << ((unit & np.uint64(1 << 9)) >> np.uint64(6))
