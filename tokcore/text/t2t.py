r"""Tensor2Tensor's tokenizer: in plain Python, as a kernel over 64 bytes at a time; escapes.

A table gives each code point a class. A token is a maximal run of characters of one class; a token
that is exactly one space is dropped, unless it begins or ends the text, and comes back between two
alphanumeric tokens when they are joined. So joining restores any text. In the kernel there is one
bit a byte for letter, space and border; whether a space is a single one between two letters shows
at the byte after it, so starts and ends are emitted one byte late. An escaped token ends with `_`
and has no other one; characters outside the alphabet become `\<decimal>;`.
"""

import functools
import re
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import byte_range_mask, load_word, put_places, trailing_zeros
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, ScannedTokens, TextRows, scan_tokens
from tokcore.text.unicode import alphanumeric_table, decode_word, ideograph_mask

BACKSLASH, UNDERSCORE, LETTER_U, LINE_FEED = ord('\\'), ord('_'), ord('u'), ord('\n')
"""The code points, and the bytes, that escaping treats apart; `u` stands for an underscore."""

ESCAPED_LINE_FEED = tuple(b'\\10;')
"""What always stands for a line feed: a vocabulary file has one subtoken a line."""

ESCAPE_CHARACTERS: frozenset[str] = frozenset('\\_u;0123456789')
"""What escaping itself writes; part of every alphabet."""

_UNDEFINED = '\u3013'  # stands for a code beyond Unicode, as in Tensor2Tensor
_SPECIAL = str.maketrans({'\\': '\\\\', '_': '\\u'})
_ESCAPED = re.compile(r'\\(?:u|\\|([0-9]+);)')

_TOKENS_AT_ONCE = 1 << 14

_CHUNK = np.uint64(64)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_ALL = ~_0
_LAST, _LAST_TWO = np.uint64(63), np.uint64(62)  # shifts that leave the last bits of a chunk
_LOW_SIX = np.uint64(0x3F)


def alphabet_of(pieces: Iterable[str]) -> frozenset[str]:
    """Returns the characters of these tokens or subtokens, and those that escaping needs."""
    return ESCAPE_CHARACTERS.union(*pieces)


def escape_token(token: str, alphabet: Collection[str]) -> str:
    r"""Returns a token's spelling in subtokens: `a_b` gives `a\ub_`.

    `\` becomes `\\`, `_` becomes `\u`, a character outside the alphabet `\<decimal>;`, and
    `_` ends it. A line feed is always written as a number (`ESCAPED_LINE_FEED`). As in Tensor2Tensor, `alphabet` must have `ESCAPE_CHARACTERS` for the result to be readable
    again.
    """
    spelled = (
        character if character in alphabet and character != '\n' else f'\\{ord(character)};'
        for character in token.translate(_SPECIAL)
    )
    return ''.join(spelled) + '_'


def unescape_token(escaped: str) -> str:
    r"""Returns the token: `a\ub_` gives `a_b`. One `_` at the end is dropped if there is one.

    A backslash that begins no escape stays as it is, and a code beyond Unicode becomes U+3013.
    """
    return _ESCAPED.sub(_unescaped, escaped.removesuffix('_'))


def _unescaped(match: re.Match) -> str:
    if match[1] is None:
        return '_' if match[0] == '\\u' else '\\'
    try:
        return chr(int(match[1]))
    except (ValueError, OverflowError):
        return _UNDEFINED


class AlphanumericRuns(NamedTuple):
    """The state of Tensor2Tensor's pre-tokenizer: which characters are letters and numbers."""

    classes: np.ndarray  # uint64[0x110000 / 64], `alphanumeric_bits`


class T2TPreTokenizer:
    """A `PreTokenizer` whose tokens are those of `tokenize`."""

    name = 't2t'
    options: Mapping[str, object] = types.MappingProxyType({})

    def prepare(self, rows: TextRows) -> tuple[AlphanumericRuns, np.ndarray]:
        return AlphanumericRuns(alphanumeric_bits()), rows.text

    def row_parts(self, rows: TextRows, row: int, longest: int) -> Iterator[RowPart]:
        state, text = self.prepare(rows)
        long_row = rows.part(row, row + 1)
        starts = np.empty(_TOKENS_AT_ONCE + CHUNK_TOKENS, np.uint64)
        found = ScannedTokens(text, starts, np.empty_like(starts), np.zeros(2, np.int64))
        done, position = 0, -1
        while not done:
            done, position, tokens = scan_tokens(long_row, done, position, state, found)
            starts, ends = found.starts[:tokens], found.ends[:tokens]
            first = 0
            for token in [*np.flatnonzero(ends - starts > longest).tolist(), tokens]:
                # A part goes from a token to a token: a space between two of them may be none.
                if first < token:
                    yield RowPart(text, int(starts[first]), int(ends[token - 1]), False)
                if token < tokens:
                    yield RowPart(text, int(starts[token]), int(ends[token]), True)
                first = token + 1


@functools.cache
def alphanumeric_bits() -> np.ndarray:
    """Returns uint64[0x110000 / 64]: bit c % 64 of word c // 64 is the class of code point c."""
    return read_only(np.packbits(alphanumeric_table(), bitorder='little').view(np.uint64))


@kernel_without_allocation
def _wide_marks(text, place):
    """Where U+3000 to U+3003 and U+FF00 to U+FF0F begin, no letters: the commas and full stops."""
    after, last = place + _1, place + _2
    return (
        byte_range_mask(text, place, 0xE3, 0xE3)
        & byte_range_mask(text, after, 0x80, 0x80)
        & byte_range_mask(text, last, 0x80, 0x83)
    ) | (
        byte_range_mask(text, place, 0xEF, 0xEF)
        & byte_range_mask(text, after, 0xBC, 0xBC)
        & byte_range_mask(text, last, 0x80, 0x8F)
    )


@kernel_without_allocation
def _letters_of_chunk(text, place, inside, before, classes):
    """The bits of the 64 bytes at text[place:] that are letters or numbers.

    Only of those whose bits are set in `inside`; `before` says whether the byte before is one.
    """
    found = (
        byte_range_mask(text, place, 0x61, 0x7A)
        | byte_range_mask(text, place, 0x41, 0x5A)
        | byte_range_mask(text, place, 0x30, 0x39)
    )
    others = byte_range_mask(text, place, 0x80, 0xFF) & inside
    if others != _0:
        continued = byte_range_mask(text, place, 0x80, 0xBF)
        found |= ideograph_mask(text, place)  # all letters
        leads = others & ~continued & ~found & ~_wide_marks(text, place)
        while leads != _0:
            byte = trailing_zeros(leads)
            leads &= leads - _1
            code = decode_word(load_word(text, place + byte))
            found |= (classes[code >> np.uint64(6)] >> (code & _LOW_SIX) & _1) << byte
        # All bytes of a character are of its class.
        found |= (found << _1 | before) & continued
        found |= (found << _1 | before) & continued
        found |= (found << _1 | before) & continued
    return found & inside


@scan_tokens.register(AlphanumericRuns)
@kernel_without_allocation
def scan_alphanumeric_runs(rows, row, position, pre_tokenizer, tokens):
    """Finds tokens as `scan_tokens` says; they are slices of the rows."""
    room = np.uint64(len(tokens.starts) - CHUNK_TOKENS)
    begun = ended = _0
    while row < len(rows.starts):
        place = np.uint64(rows.starts[row] if position < 0 else position)
        row_end = np.uint64(rows.ends[row])
        # What is carried on from chunk to chunk: whether there is a border at the last byte,
        # whether it is a space, and whether it and the one before are alphanumeric (two bits).
        border = space = _0
        # Where a row is gone on with, a space there had a letter before it.
        letters = _0 if position < 0 else _2
        first = _1
        before = ended
        while place < row_end or first == _0:
            if begun > room:
                if ended > before:
                    position = np.int64(tokens.ends[ended - _1])
                return row, position, np.int64(ended)
            left = row_end - place
            inside = _ALL if left >= _CHUNK else (_1 << left) - _1
            last = letters >> _1
            found = _letters_of_chunk(rows.text, place, inside, last, pre_tokenizer.classes)
            spaces = byte_range_mask(rows.text, place, 0x20, 0x20)
            borders = ((found ^ (found << _1 | last)) | first) & inside
            # Behind a lone space there is a letter, and before it too.
            lone = found & (spaces << _1 | space) & (found << _2 | letters)
            behind = (borders << _1 | border) & ~lone
            closed = borders & ~lone & ~first
            if left < _CHUNK:
                closed |= _1 << left
            begun = put_places(behind, place - _1, tokens.starts, begun)
            ended = put_places(closed, place, tokens.ends, ended)
            if left < _CHUNK:
                break
            border, space, letters = borders >> _LAST, spaces >> _LAST, found >> _LAST_TWO
            first = _0
            place += _CHUNK
        begun = ended
        row += 1
        position = -1
        tokens.row_tokens[row] = np.int64(ended)
    return row, position, np.int64(ended)


def tokenize(text: str) -> list[str]:
    """Returns the tokens of a text: `'Hi, you 2'` gives `['Hi', ', ', 'you', '2']`.

    Equal to Tensor2Tensor's `tokenizer.encode` for every `str`, lone surrogates included.
    """
    code_points = np.frombuffer(text.encode('utf-32-le', 'surrogatepass'), '<u4')
    classes = alphanumeric_table()[code_points]
    borders = (np.flatnonzero(classes[1:] != classes[:-1]) + 1).tolist()
    starts = [0, *borders]
    ends = [*borders, len(text)]
    last = len(text)
    return [
        token
        for start, end in zip(starts, ends)
        if (token := text[start:end]) and (token != ' ' or start == 0 or end == last)
    ]


def detokenize(tokens: Iterable[str]) -> str:
    """Returns the text whose tokens these are: `['Hi', ', ', 'you', '2']` gives `'Hi, you 2'`.

    One space is put between two tokens that both begin with a letter or number. Equal to
    Tensor2Tensor's `tokenizer.decode`, save that an empty token is a ValueError.
    """
    alphanumeric = alphanumeric_table()
    pieces = []
    after_word = False
    for token in tokens:
        if not token:
            raise ValueError('a token must have at least one character')
        word = bool(alphanumeric[ord(token[0])])
        if word and after_word:
            pieces.append(' ')
        pieces.append(token)
        after_word = word
    return ''.join(pieces)
